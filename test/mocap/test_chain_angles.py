"""Test angles of all joints of a chain from markers, and their standard errors."""

import numpy as np
import pytest
from marker_experiment import (
    NOISE_M,
    add_ghosts,
    add_noise,
    draw_pose,
    fit_body,
    load_ur10,
    place_markers,
    simulate_experiment,
    swap_markers,
    track_bodies,
)
from pinocchio_arm import PinocchioArm
from random_chains import TIP, random_urdf
from scipy.spatial.transform import Rotation

from dynid_ros.errors import MocapError
from dynid_ros.mocap.link_angles import chain_angles
from dynid_ros.mocap.marker_set import MarkerSet, body_markers
from dynid_ros.model import RobotModel


def rms(values):
    return np.sqrt(np.mean(np.nan_to_num(values) ** 2, axis=0) / np.maximum(np.isfinite(values).mean(axis=0), 1e-9))


def estimate_angles(scene, positions, **settings):
    markers = MarkerSet.on_links(scene.robot, scene.links, scene.places)
    return chain_angles(scene.robot, markers, positions, scene.camera, **({"seed": scene.motor} | settings))


@pytest.mark.parametrize(("missing", "mixed", "ghosts"), [(0.0, 0.0, 0.0), (0.2, 0.0, 0.0), (0.2, 0.1, 0.02)])
def test_angles_of_six_joints_agree_with_their_standard_errors(missing, mixed, ghosts):
    rng = np.random.default_rng(1)
    scene = simulate_experiment(rng, load_ur10(), frames=400, per_link=4)
    positions = add_ghosts(rng, swap_markers(rng, add_noise(rng, scene.positions, missing), mixed), ghosts)
    angles = estimate_angles(scene, positions, time=scene.time)
    error = angles.position - scene.link
    assert np.isfinite(error).mean(axis=0).min() > 0.98
    assert angles.noise == pytest.approx(NOISE_M, rel=0.03)
    # Errors divided by their standard errors are standard normal for each joint, without outliers.
    np.testing.assert_allclose(rms(error / angles.standard_errors), 1.0, atol=0.12)
    assert np.nanmax(np.abs(error / angles.standard_errors)) < 5.5
    np.testing.assert_allclose(angles.residual_rms, np.sqrt(3) * NOISE_M, rtol=0.2)


def test_only_the_joint_with_hidden_markers_is_unknown():
    rng = np.random.default_rng(3)
    scene = simulate_experiment(rng, load_ur10(), frames=200)
    positions = add_noise(rng, scene.positions)
    positions[50:100, 15:] = np.nan  # link 6
    positions[120, :] = np.nan
    angles = estimate_angles(scene, positions)
    is_unknown = np.isnan(angles.position)
    assert is_unknown[50:100, 5].all()
    assert not is_unknown[50:100, :5].any()
    assert is_unknown[120].all()
    assert is_unknown.sum() == 50 + 6
    (remark,) = [remark for remark in angles.remarks if remark.startswith("wrist_3_joint")]
    assert "51 of 200" in remark
    assert "no marker beyond it was seen (51)" in remark


def test_joints_that_markers_cannot_distinguish_are_named():
    rng = np.random.default_rng(4)
    scene = simulate_experiment(rng, load_ur10(), frames=100, per_link=3, on=(5,))
    positions = add_noise(rng, scene.positions)
    positions[:10, 0] = np.nan  # two markers of a body do not determine its rotation about their line
    angles = estimate_angles(scene, positions)
    assert np.isnan(angles.position[:10, [2, 5]]).all()
    assert np.isfinite(angles.position[10:]).mean() > 0.9  # except in wrist singularities
    assert any(r.startswith("elbow_joint") and "do not distinguish it from" in r for r in angles.remarks)


def test_angles_without_motor_positions_are_tracked():
    rng = np.random.default_rng(5)
    scene = simulate_experiment(rng, load_ur10(), frames=200, per_link=4)
    positions = add_ghosts(rng, add_noise(rng, scene.positions, 0.1), 0.01)
    angles = estimate_angles(scene, positions, seed=None)
    error = np.angle(np.exp(1j * (angles.position - scene.link)))  # whole turns are undetermined
    np.testing.assert_allclose(rms(error / angles.standard_errors), 1.0, atol=0.15)


def test_prismatic_joints():
    rng = np.random.default_rng(6)
    robot = RobotModel.from_urdf(random_urdf(rng, 5, prismatic_share=0.5), tip=TIP)
    assert 0 < sum(kind == "prismatic" for kind in robot.joint_types) < 5
    scene = simulate_experiment(rng, robot, frames=300, per_link=4)
    angles = estimate_angles(scene, add_noise(rng, scene.positions))
    np.testing.assert_allclose(rms((angles.position - scene.link) / angles.standard_errors), 1.0, atol=0.15)


def test_bodies_measured_as_poses():
    """The poses have the noise of three markers at the radius of the virtual markers."""
    rng = np.random.default_rng(7)
    scene = simulate_experiment(rng, load_ur10(), frames=300)
    arm = PinocchioArm(scene.robot.urdf, scene.robot.joint_names, scene.robot.gravity)
    poses = np.array([arm.poses(row) for row in scene.link])
    points = []
    links = []
    for i in (2, 5):
        true = body_markers(poses[:, i, :3, 3], np.array([to_quaternion(p) for p in poses[:, i, :3, :3]]))
        noise = rng.normal(scale=NOISE_M, size=true.shape)
        fitted = np.array([fit_body(a + n, a) for a, n in zip(true, noise, strict=True)])
        points.append(fitted @ scene.camera[:3, :3].T + scene.camera[:3, 3])
        links += [scene.robot.link_names[i]] * 3
    places = body_markers(np.zeros((1, 3)), np.array([[0, 0, 0, 1.0]]))[0]
    markers = MarkerSet.on_links(scene.robot, links, np.tile(places, (2, 1)), dof=2.0)
    angles = chain_angles(scene.robot, markers, np.concatenate(points, axis=1), scene.camera, seed=scene.motor)
    assert angles.noise == pytest.approx(NOISE_M, rel=0.05)
    np.testing.assert_allclose(rms((angles.position - scene.link) / angles.standard_errors), 1.0, atol=0.12)


def test_wrong_tracker_poses_are_left_out_as_a_whole():
    """Constant distances show which markers form a body; one pose in twenty is wrong except for the first marker."""
    rng = np.random.default_rng(12)
    scene = simulate_experiment(rng, load_ur10(), frames=300, per_link=4, on=(1, 3, 5))
    positions, wrong = track_bodies(rng, scene.positions, 4, wrong=0.05)
    angles = estimate_angles(scene, positions)
    assert angles.noise == pytest.approx(NOISE_M, rel=0.05)
    right = ~wrong.any(axis=1)
    pulls = (angles.position - scene.link) / angles.standard_errors
    np.testing.assert_allclose(rms(pulls[right]), 1.0, atol=0.15)
    # Wrong poses are not used; if two of three are wrong, none is.
    assert np.nanmax(np.abs(pulls[~right])) < 6
    lost = int(np.where(wrong.sum(axis=1) > 1, 3, wrong.sum(axis=1)).sum())
    assert f"{lost} of {wrong.size} positions left out as outliers" in angles.remarks


def test_one_body_at_the_tip_gives_six_angles_without_errors():
    rng = np.random.default_rng(10)
    scene = simulate_experiment(rng, load_ur10(), frames=100, per_link=3, on=(5,))
    markers = MarkerSet.on_links(scene.robot, scene.links, scene.places, dof=2.0)
    is_regular = (
        np.abs(np.sin(scene.link[:, [2, 4]])).min(axis=1) > 0.2
    )  # in singular poses the six angles are not unique
    measured = add_noise(rng, scene.positions)
    fitted = np.array([fit_body(points, true) for points, true in zip(measured, scene.positions, strict=True)])[
        is_regular
    ]
    angles = chain_angles(scene.robot, markers, fitted, scene.camera, seed=scene.motor[is_regular])
    assert np.isfinite(angles.position).all()
    assert np.median(np.abs(angles.position - scene.link[is_regular])) < np.deg2rad(0.5)
    assert np.isnan(angles.standard_errors).all()
    assert np.isnan(angles.noise)
    assert any("no standard errors" in remark for remark in angles.remarks)


def to_quaternion(rotation):
    return Rotation.from_matrix(rotation).as_quat()


def test_invalid_input_is_refused():
    rng = np.random.default_rng(9)
    scene = simulate_experiment(rng, load_ur10(), frames=20)
    markers = MarkerSet.on_links(scene.robot, scene.links, scene.places)

    def assert_refused(match, marker_set=markers, positions=scene.positions, camera=scene.camera, **keywords):
        with pytest.raises(MocapError, match=match):
            chain_angles(scene.robot, marker_set, positions, camera, seed=keywords.pop("seed", scene.motor), **keywords)

    assert_refused("expected \\(frames, 18, 3\\)", positions=scene.positions[:, :5])
    assert_refused(
        "2 marker\\(s\\) beyond joint 'wrist_3_joint'", markers.select(np.arange(17)), scene.positions[:, :17]
    )
    assert_refused("mirrored", camera=scene.camera @ np.diag([1.0, 1.0, -1.0, 1.0]))
    assert_refused("no 4 x 4 transform", camera=np.zeros((4, 4)))
    assert_refused("seed has shape", seed=scene.motor[:5])
    assert_refused("time has shape", time=scene.time[:5])
    assert_refused("no marker on a moving link", positions=np.full_like(scene.positions, np.nan))
    places = scene.places.copy()
    places[15:] = np.outer([0.1, 0.2, 0.3], [0.0, 1.0, 0.0])
    arm = PinocchioArm(scene.robot.urdf, scene.robot.joint_names, scene.robot.gravity)
    line = place_markers(arm, scene.link, np.repeat(np.arange(6), 3), places)
    camera = draw_pose(rng)
    assert_refused("wrist_3_joint.*lie on one line", positions=line @ camera[:3, :3].T + camera[:3, 3])
    with pytest.raises(MocapError, match=r"no link 'gripper'.*shoulder_link"):
        MarkerSet.on_links(scene.robot, ["gripper"])
