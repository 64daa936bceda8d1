import numpy as np
import pytest
from marker_experiment import SIGMA, experiment, haunted, noisy, seen, swapped, tracked, ur10
from pinocchio_arm import PinocchioArm, example_urdf

from dynid_ros.errors import MocapError
from dynid_ros.mocap.link_angles import chain_angles
from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.mocap.registration import register
from dynid_ros.model import RobotModel


def errors(registration, e):
    """Rotation in rad about the base's axes, shift in m along them, and places in m."""
    turn = registration.camera[:3, :3].T @ e.camera[:3, :3]
    rotation = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
    shift = e.camera[:3, :3].T @ (registration.camera[:3, 3] - e.camera[:3, 3])
    return rotation, shift, registration.markers.places - e.places


@pytest.mark.parametrize("stiff", [True, False])
def test_stiff_arm(stiff):
    rng = np.random.default_rng(1)
    robot = ur10()
    e = experiment(rng, robot, frames=400, rate=50, deflection=0.0)
    positions = haunted(rng, swapped(rng, noisy(rng, e.positions, 0.2), 0.1), 0.02)
    found = register(robot, MarkerSet.on_links(robot, e.links), e.motor, positions, stiff=stiff)
    rotation, shift, places = errors(found, e)
    assert found.noise == pytest.approx(SIGMA, rel=0.05)
    assert np.abs(rotation).max() < np.deg2rad(0.005)
    assert np.abs(shift).max() < 0.1e-3
    assert np.sqrt(np.mean(places**2)) < 0.05e-3
    assert np.sqrt(np.mean((places / found.place_errors) ** 2)) < 2
    assert found.undecided == found.remarks == ()
    assert "marker 17: at" in found.summary()


def test_poses_of_a_tracker_are_outliers_as_a_whole():
    """One pose in twenty is wrong, but for the body's first marker, which is not used without the others."""
    rng = np.random.default_rng(13)
    robot = ur10()
    e = experiment(rng, robot, frames=300, rate=20, per_link=4, deflection=0.0, on=(5,))
    positions, wrong = tracked(rng, e.positions, 4, wrong=0.05)
    assert wrong.sum() > 5
    found = register(robot, MarkerSet.on_links(robot, e.links), e.motor, positions)
    np.testing.assert_allclose(found.used, 1 - wrong.mean())
    assert found.noise == pytest.approx(SIGMA, rel=0.05)
    np.testing.assert_array_equal(found.markers.dof, 6 / 4)
    rotation, shift, _ = errors(found, e)
    pulls = np.concatenate([rotation / found.camera_errors[:3], shift / found.camera_errors[3:]])
    assert np.sqrt(np.mean(pulls**2)) < 2
    # Seen one by one, the same markers are no body.
    alone = register(robot, MarkerSet.on_links(robot, e.links), e.motor, noisy(rng, e.positions))
    np.testing.assert_array_equal(alone.markers.dof, 3)
    assert alone.noise == pytest.approx(SIGMA, rel=0.05)


def test_noise_of_tracked_bodies_on_an_arm_that_gives_way():
    rng = np.random.default_rng(14)
    robot = ur10()
    e = experiment(rng, robot, frames=200, rate=20, per_link=4, deflection=np.deg2rad(0.5), on=(1, 3, 5))
    positions, wrong = tracked(rng, e.positions, 4, wrong=0.05)
    found = register(robot, MarkerSet.on_links(robot, e.links), e.motor, positions)
    assert found.deflection is not None
    np.testing.assert_allclose(found.used, np.repeat(1 - wrong.mean(axis=0), 4), atol=0.03)
    np.testing.assert_array_equal(np.ptp(found.used.reshape(3, 4), axis=1), 0)
    assert found.noise == pytest.approx(SIGMA, rel=0.1)


def test_arm_that_gives_way_is_registered_better_if_it_may():
    """Deflections of half a degree: places of the markers to 0.2 mm in place of 1 to 2 mm, link angles likewise."""
    rng = np.random.default_rng(2)
    robot = ur10()
    e = experiment(rng, robot, frames=600, rate=50, deflection=np.deg2rad(0.5))
    positions = noisy(rng, e.positions, 0.1)
    markers = MarkerSet.on_links(robot, e.links)
    stiff = register(robot, markers, e.motor, positions, stiff=True)
    found = register(robot, markers, e.motor, positions)
    assert stiff.noise > 3 * SIGMA
    assert found.noise == pytest.approx(SIGMA, rel=0.05)
    assert np.abs(errors(found, e)[1]).max() < 0.2e-3 < np.abs(errors(stiff, e)[1]).max()
    pulls = np.concatenate([(a / b).ravel() for a, b in zip(errors(found, e), _claimed(found), strict=True)])
    assert 0.4 < np.sqrt(np.mean(pulls**2)) < 1.8

    def spread(registration):
        angles = chain_angles(robot, registration.markers, positions, registration.camera, seed=e.motor)
        return np.nanstd(angles.position - e.link, axis=0), np.nanmedian(angles.standard_errors, axis=0)

    varying, claimed = spread(found)
    np.testing.assert_array_less(varying, 1.2 * claimed + np.deg2rad(0.01))
    assert np.median(spread(stiff)[0] / varying) > 3


def _claimed(found):
    return found.camera_errors[:3], found.camera_errors[3:], found.place_errors


def test_what_markers_of_the_first_link_leave_open():
    rng = np.random.default_rng(3)
    robot = ur10()
    e = experiment(rng, robot, frames=300, per_link=4, deflection=0.0, on=(0,))
    positions = noisy(rng, e.positions)
    found = register(robot, MarkerSet.on_links(robot, e.links), e.motor, positions)
    assert len(found.undecided) == 2
    assert any("turn about (0.00, 0.00, " in words for words in found.undecided)
    assert any("slide along (0.00, 0.00, " in words for words in found.undecided)
    # The angle does not care.
    angles = chain_angles(robot, found.markers, positions, found.camera, seed=e.motor)
    assert np.sqrt(np.nanmean(((angles.position - e.link)[:, 0] / angles.standard_errors[:, 0]) ** 2)) < 1.2


def test_one_joint_that_moves_alone():
    """The usual experiment: brakes on all joints but one. Its angle is told, the camera but for a screw about it."""
    rng = np.random.default_rng(9)
    robot = ur10()
    e = experiment(rng, robot, frames=300, deflection=0.0)
    alone = np.tile(e.link[0], (300, 1))
    alone[:, 2] = e.link[:, 2]
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    points = seen(arm, alone, np.repeat(np.arange(6), 3), e.places) @ e.camera[:3, :3].T + e.camera[:3, 3]
    markers = MarkerSet.on_links(robot, e.links)
    positions = noisy(rng, points)
    found = register(robot, markers, alone, positions)
    assert len(found.undecided) == 2
    angles = chain_angles(robot, found.markers, positions, found.camera, seed=alone)
    error = angles.position - alone
    assert np.sqrt(np.mean((error / angles.standard_errors) ** 2)) < 1.2


def test_markers_on_the_base_fix_the_first_joint():
    rng = np.random.default_rng(4)
    robot = ur10()
    e = experiment(rng, robot, frames=300, per_link=4, deflection=0.0, on=(-1, 0))
    found = register(robot, MarkerSet.on_links(robot, e.links), e.motor, noisy(rng, e.positions))
    # Where the base's markers are on the base is not known: the same freedom stays.
    assert len(found.undecided) == 2
    assert found.noise == pytest.approx(SIGMA, rel=0.1)


def test_offsets_where_they_are_decidable():
    rng = np.random.default_rng(5)
    robot = ur10()
    e = experiment(rng, robot, frames=400, rate=50, deflection=0.0)
    truth = np.deg2rad([0.5, -0.4, 0.3, 0.6, -0.7, 0.2])
    markers = MarkerSet.on_links(robot, e.links)
    found = register(robot, markers, e.motor - truth, noisy(rng, e.positions), offsets=True, stiff=True)
    decided = np.isfinite(found.offset_errors)
    np.testing.assert_array_equal(decided, [False, True, True, True, True, False])
    np.testing.assert_allclose(found.offsets[decided], truth[decided], atol=np.deg2rad(0.02))
    np.testing.assert_array_equal(found.offsets[~decided], 0.0)
    pulls = (found.offsets - truth)[decided] / found.offset_errors[decided]
    assert np.abs(pulls).max() < 5
    assert any("shoulder_pan_joint" in words for words in found.undecided)
    assert any("wrist_3_joint" in words for words in found.undecided)


def test_markers_on_wrong_links_are_named_and_left_out():
    rng = np.random.default_rng(6)
    robot = ur10()
    e = experiment(rng, robot, frames=400, per_link=4, deflection=np.deg2rad(0.1))
    links = list(e.links)
    links[3], links[13] = "wrist_2_link", "shoulder_link"
    found = register(robot, MarkerSet.on_links(robot, links), e.motor, noisy(rng, e.positions))
    assert np.isnan(found.markers.places[[3, 13]]).all()
    assert np.isfinite(np.delete(found.markers.places, [3, 13], axis=0)).all()
    assert len(found.remarks) == 2
    assert "marker 3" in found.remarks[0]
    assert "'shoulder_link'" in found.remarks[0]
    assert "'wrist_1_link'" in found.remarks[1]


def test_markers_far_out_on_an_arm_that_gives_way_are_kept():
    rng = np.random.default_rng([5, 4])
    robot = RobotModel.from_urdf(example_urdf("panda_description/urdf/panda.urdf"), tip="panda_link8", held={})
    e = experiment(rng, robot, per_link=4, on=(0, 1, 2, 6), deflection=np.deg2rad(0.7), rate=30.0)
    positions = noisy(rng, e.positions, 0.02)
    found = register(robot, MarkerSet.on_links(robot, e.links), e.motor, positions)
    assert np.isfinite(found.markers.places).all()
    assert not found.remarks
    placed = np.linalg.norm(found.markers.places - e.places, axis=1)
    assert (placed < 4 * np.linalg.norm(found.place_errors, axis=1)).all()
    # A marker that is loose on its own link is still left out.
    positions[:, 13] += rng.normal(scale=0.05, size=(len(positions), 3))
    loose = register(robot, MarkerSet.on_links(robot, e.links), e.motor, positions)
    assert np.flatnonzero(np.isnan(loose.markers.places).any(axis=1)).tolist() == [13]
    assert "marker 13" in loose.remarks[0]


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ([1000, 1000, 1000], "in millimetres: divide them by 1000;"),
        ([-1000, 1000, 1000], "in millimetres and of a left-handed frame"),
    ],
)
def test_other_conventions_are_recognised(factors, words):
    rng = np.random.default_rng(7)
    robot = ur10()
    e = experiment(rng, robot, frames=300, on=(1, 3, 5))
    with pytest.raises(MocapError, match=words):
        register(robot, MarkerSet.on_links(robot, e.links), e.motor, noisy(rng, e.positions) * factors)


def test_bad_input_is_refused():
    rng = np.random.default_rng(8)
    robot = ur10()
    e = experiment(rng, robot, frames=100)
    markers = MarkerSet.on_links(robot, e.links)

    def refused(match, motor=e.motor, positions=e.positions):
        with pytest.raises(MocapError, match=match):
            register(robot, markers, motor, positions)

    refused("motor positions have shape", motor=e.motor[:, :3])
    refused("do the clocks of robot and camera overlap", motor=np.full_like(e.motor, np.nan))
    refused("would have to give way by .* joint order fit", motor=e.motor[:, ::-1], positions=noisy(rng, e.positions))
    longer = experiment(rng, robot, frames=400, rate=50)
    refused("stray by .* joint order fit", motor=longer.motor[:, ::-1], positions=longer.positions)
    refused("do not move", motor=np.tile(e.motor[0], (100, 1)))
    still = e.positions.copy()
    still[:, 6:9] = still[0, 6:9]
    refused("marker 6, marker 7, marker 8 stand still .*'forearm_link'", positions=noisy(rng, still))
