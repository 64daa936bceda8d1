"""Test the registration of camera and markers on stiff and flexible arms."""

import numpy as np
import pytest
from marker_experiment import (
    NOISE_M,
    add_ghosts,
    add_noise,
    load_ur10,
    place_markers,
    simulate_experiment,
    swap_markers,
    track_bodies,
)
from pinocchio_arm import PinocchioArm, example_urdf
from scipy.spatial.transform import Rotation

from dynid_ros.errors import MocapError
from dynid_ros.mocap.link_angles import chain_angles
from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.mocap.registration import register
from dynid_ros.model import RobotModel


def registration_errors(result, scene):
    """Return rotation in rad and shift in m along the base's axes, and errors of the places in m."""
    rotation = Rotation.from_matrix(result.camera[:3, :3].T @ scene.camera[:3, :3]).as_rotvec()
    shift = scene.camera[:3, :3].T @ (result.camera[:3, 3] - scene.camera[:3, 3])
    return rotation, shift, result.markers.places - scene.places


def register_scene(scene, positions, motor=None, links=None, **settings):
    markers = MarkerSet.on_links(scene.robot, links or scene.links)
    return register(scene.robot, markers, scene.motor if motor is None else motor, positions, **settings)


@pytest.mark.parametrize("stiff", [True, False])
def test_stiff_arm_is_registered_with_faulty_markers(stiff):
    rng = np.random.default_rng(1)
    scene = simulate_experiment(rng, load_ur10(), frames=400, rate=50, deflection=0.0)
    positions = add_ghosts(rng, swap_markers(rng, add_noise(rng, scene.positions, 0.2), 0.1), 0.02)
    registration = register_scene(scene, positions, stiff=stiff)
    rotation, shift, places = registration_errors(registration, scene)
    assert registration.noise == pytest.approx(NOISE_M, rel=0.05)
    assert np.abs(rotation).max() < np.deg2rad(0.005)
    assert np.abs(shift).max() < 0.1e-3
    assert np.sqrt(np.mean(places**2)) < 0.05e-3
    assert np.sqrt(np.mean((places / registration.place_errors) ** 2)) < 2
    assert registration.undecided == registration.remarks == ()
    assert "marker 17: at" in registration.summary()


def test_wrong_tracker_poses_are_outliers_as_a_whole():
    """The first marker of a wrong pose is right, but is not used without the others."""
    rng = np.random.default_rng(13)
    scene = simulate_experiment(rng, load_ur10(), frames=300, rate=20, per_link=4, deflection=0.0, on=(5,))
    positions, wrong = track_bodies(rng, scene.positions, 4, wrong=0.05)
    assert wrong.sum() > 5
    registration = register_scene(scene, positions)
    np.testing.assert_allclose(registration.used, 1 - wrong.mean())
    assert registration.noise == pytest.approx(NOISE_M, rel=0.05)
    np.testing.assert_array_equal(registration.markers.dof, 6 / 4)
    rotation, shift, _ = registration_errors(registration, scene)
    pulls = np.concatenate([rotation / registration.camera_errors[:3], shift / registration.camera_errors[3:]])
    assert np.sqrt(np.mean(pulls**2)) < 2
    # The same markers measured individually are no body.
    individual = register_scene(scene, add_noise(rng, scene.positions))
    np.testing.assert_array_equal(individual.markers.dof, 3)
    assert individual.noise == pytest.approx(NOISE_M, rel=0.05)


def test_noise_of_tracked_bodies_on_a_flexible_arm():
    rng = np.random.default_rng(14)
    scene = simulate_experiment(
        rng, load_ur10(), frames=200, rate=20, per_link=4, deflection=np.deg2rad(0.5), on=(1, 3, 5)
    )
    positions, wrong = track_bodies(rng, scene.positions, 4, wrong=0.05)
    registration = register_scene(scene, positions)
    assert registration.deflection is not None
    np.testing.assert_allclose(registration.used, np.repeat(1 - wrong.mean(axis=0), 4), atol=0.03)
    np.testing.assert_array_equal(np.ptp(registration.used.reshape(3, 4), axis=1), 0)
    assert registration.noise == pytest.approx(NOISE_M, rel=0.1)


def test_modeled_deflection_improves_the_registration():
    """Markers are placed to 0.2 mm instead of 1 to 2 mm, with deflections of 0.5°."""
    rng = np.random.default_rng(2)
    scene = simulate_experiment(rng, load_ur10(), frames=600, rate=50, deflection=np.deg2rad(0.5))
    positions = add_noise(rng, scene.positions, 0.1)
    stiff = register_scene(scene, positions, stiff=True)
    registration = register_scene(scene, positions)
    assert stiff.noise > 3 * NOISE_M
    assert registration.noise == pytest.approx(NOISE_M, rel=0.05)
    errors = registration_errors(registration, scene)
    assert np.abs(errors[1]).max() < 0.2e-3 < np.abs(registration_errors(stiff, scene)[1]).max()
    pulls = np.concatenate([(a / b).ravel() for a, b in zip(errors, reported_errors(registration), strict=True)])
    assert 0.4 < np.sqrt(np.mean(pulls**2)) < 1.8

    def angle_spread(result):
        angles = chain_angles(scene.robot, result.markers, positions, result.camera, seed=scene.motor)
        return np.nanstd(angles.position - scene.link, axis=0), np.nanmedian(angles.standard_errors, axis=0)

    spread_of_angles, median_errors = angle_spread(registration)
    np.testing.assert_array_less(spread_of_angles, 1.2 * median_errors + np.deg2rad(0.01))
    assert np.median(angle_spread(stiff)[0] / spread_of_angles) > 3


def reported_errors(registration):
    return registration.camera_errors[:3], registration.camera_errors[3:], registration.place_errors


def test_markers_on_the_first_link_leave_a_screw_undetermined():
    rng = np.random.default_rng(3)
    scene = simulate_experiment(rng, load_ur10(), frames=300, per_link=4, deflection=0.0, on=(0,))
    positions = add_noise(rng, scene.positions)
    registration = register_scene(scene, positions)
    assert len(registration.undecided) == 2
    assert any("turn about (0.00, 0.00, " in words for words in registration.undecided)
    assert any("slide along (0.00, 0.00, " in words for words in registration.undecided)
    # The angle does not depend on it.
    angles = chain_angles(scene.robot, registration.markers, positions, registration.camera, seed=scene.motor)
    assert np.sqrt(np.nanmean(((angles.position - scene.link)[:, 0] / angles.standard_errors[:, 0]) ** 2)) < 1.2


def test_single_moving_joint_determines_its_angle():
    """Brakes hold the other joints in the usual experiment, so the camera is undetermined by a screw motion."""
    rng = np.random.default_rng(9)
    scene = simulate_experiment(rng, load_ur10(), frames=300, deflection=0.0)
    motor = np.tile(scene.link[0], (300, 1))
    motor[:, 2] = scene.link[:, 2]
    arm = PinocchioArm(scene.robot.urdf, scene.robot.joint_names, scene.robot.gravity)
    points = place_markers(arm, motor, np.repeat(np.arange(6), 3), scene.places)
    positions = add_noise(rng, points @ scene.camera[:3, :3].T + scene.camera[:3, 3])
    registration = register_scene(scene, positions, motor)
    assert len(registration.undecided) == 2
    angles = chain_angles(scene.robot, registration.markers, positions, registration.camera, seed=motor)
    error = angles.position - motor
    assert np.sqrt(np.mean((error / angles.standard_errors) ** 2)) < 1.2


def test_markers_on_the_base_leave_the_same_screw_undetermined():
    rng = np.random.default_rng(4)
    scene = simulate_experiment(rng, load_ur10(), frames=300, per_link=4, deflection=0.0, on=(-1, 0))
    registration = register_scene(scene, add_noise(rng, scene.positions))
    # The places of the markers on the base are unknown, so the same freedom remains.
    assert len(registration.undecided) == 2
    assert registration.noise == pytest.approx(NOISE_M, rel=0.1)


def test_identifiable_joint_offsets_are_estimated():
    rng = np.random.default_rng(5)
    scene = simulate_experiment(rng, load_ur10(), frames=400, rate=50, deflection=0.0)
    truth = np.deg2rad([0.5, -0.4, 0.3, 0.6, -0.7, 0.2])
    positions = add_noise(rng, scene.positions)
    registration = register_scene(scene, positions, scene.motor - truth, offsets=True, stiff=True)
    is_determined = np.isfinite(registration.offset_errors)
    np.testing.assert_array_equal(is_determined, [False, True, True, True, True, False])
    np.testing.assert_allclose(registration.offsets[is_determined], truth[is_determined], atol=np.deg2rad(0.02))
    np.testing.assert_array_equal(registration.offsets[~is_determined], 0.0)
    pulls = (registration.offsets - truth)[is_determined] / registration.offset_errors[is_determined]
    assert np.abs(pulls).max() < 5
    assert any("shoulder_pan_joint" in words for words in registration.undecided)
    assert any("wrist_3_joint" in words for words in registration.undecided)


def test_markers_on_wrong_links_are_left_out():
    rng = np.random.default_rng(6)
    scene = simulate_experiment(rng, load_ur10(), frames=400, per_link=4, deflection=np.deg2rad(0.1))
    links = list(scene.links)
    links[3] = "wrist_2_link"
    links[13] = "shoulder_link"
    registration = register_scene(scene, add_noise(rng, scene.positions), links=links)
    assert np.isnan(registration.markers.places[[3, 13]]).all()
    assert np.isfinite(np.delete(registration.markers.places, [3, 13], axis=0)).all()
    assert len(registration.remarks) == 2
    assert "marker 3" in registration.remarks[0]
    assert "'shoulder_link'" in registration.remarks[0]
    assert "'wrist_1_link'" in registration.remarks[1]


def test_distant_markers_on_a_flexible_arm_are_kept():
    rng = np.random.default_rng([5, 4])
    robot = RobotModel.from_urdf(example_urdf("panda_description/urdf/panda.urdf"), tip="panda_link8", held={})
    scene = simulate_experiment(rng, robot, per_link=4, on=(0, 1, 2, 6), deflection=np.deg2rad(0.7), rate=30.0)
    positions = add_noise(rng, scene.positions, 0.02)
    registration = register_scene(scene, positions)
    assert np.isfinite(registration.markers.places).all()
    assert not registration.remarks
    place_errors = np.linalg.norm(registration.markers.places - scene.places, axis=1)
    assert (place_errors < 4 * np.linalg.norm(registration.place_errors, axis=1)).all()
    # A marker that moves on its link is still left out.
    positions[:, 13] += rng.normal(scale=0.05, size=(len(positions), 3))
    loose = register_scene(scene, positions)
    assert np.flatnonzero(np.isnan(loose.markers.places).any(axis=1)).tolist() == [13]
    assert "marker 13" in loose.remarks[0]


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ([1000, 1000, 1000], "in millimetres: divide them by 1000;"),
        ([-1000, 1000, 1000], "in millimetres and of a left-handed frame"),
    ],
)
def test_millimetres_and_left_handed_frames_are_recognized(factors, words):
    rng = np.random.default_rng(7)
    scene = simulate_experiment(rng, load_ur10(), frames=300, on=(1, 3, 5))
    with pytest.raises(MocapError, match=words):
        register_scene(scene, add_noise(rng, scene.positions) * factors)


def test_invalid_input_is_refused():
    rng = np.random.default_rng(8)
    scene = simulate_experiment(rng, load_ur10(), frames=100)

    def assert_refused(match, motor=None, positions=scene.positions):
        with pytest.raises(MocapError, match=match):
            register_scene(scene, positions, motor)

    assert_refused("motor positions have shape", motor=scene.motor[:, :3])
    assert_refused("do the clocks of robot and camera overlap", motor=np.full_like(scene.motor, np.nan))
    noisy = add_noise(rng, scene.positions)
    assert_refused("would have to give way by .* joint order fit", motor=scene.motor[:, ::-1], positions=noisy)
    longer = simulate_experiment(rng, scene.robot, frames=400, rate=50)
    assert_refused("stray by .* joint order fit", motor=longer.motor[:, ::-1], positions=longer.positions)
    assert_refused("do not move", motor=np.tile(scene.motor[0], (100, 1)))
    still = scene.positions.copy()
    still[:, 6:9] = still[0, 6:9]
    assert_refused("marker 6, marker 7, marker 8 stand still .*'forearm_link'", positions=add_noise(rng, still))
