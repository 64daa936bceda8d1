import numpy as np
import pytest
from marker_experiment import SIGMA, experiment, haunted, noisy, pose, rigid, seen, swapped, tracked, ur10
from pinocchio_arm import PinocchioArm
from random_chains import TIP, random_urdf
from scipy.spatial.transform import Rotation

from dynid_ros.errors import MocapError
from dynid_ros.mocap.link_angles import chain_angles
from dynid_ros.mocap.marker_set import MarkerSet, body_markers
from dynid_ros.model import RobotModel


def rms(values):
    return np.sqrt(np.mean(np.nan_to_num(values) ** 2, axis=0) / np.maximum(np.isfinite(values).mean(axis=0), 1e-9))


@pytest.mark.parametrize(("missing", "mixed", "ghosts"), [(0.0, 0.0, 0.0), (0.2, 0.0, 0.0), (0.2, 0.1, 0.02)])
def test_angles_of_six_joints_with_honest_errors(missing, mixed, ghosts):
    rng = np.random.default_rng(1)
    robot = ur10()
    e = experiment(rng, robot, frames=400, per_link=4)
    positions = haunted(rng, swapped(rng, noisy(rng, e.positions, missing), mixed), ghosts)
    markers = MarkerSet.on_links(robot, e.links, e.places)
    angles = chain_angles(robot, markers, positions, e.camera, e.time, seed=e.motor)
    error = angles.position - e.link
    assert np.isfinite(error).mean(axis=0).min() > 0.98
    assert angles.noise == pytest.approx(SIGMA, rel=0.03)
    # In units of what is claimed, errors are standard normal: joint by joint, and no one is far out.
    np.testing.assert_allclose(rms(error / angles.standard_errors), 1.0, atol=0.12)
    assert np.nanmax(np.abs(error / angles.standard_errors)) < 5.5
    np.testing.assert_allclose(angles.residual_rms, np.sqrt(3) * SIGMA, rtol=0.2)


def test_joint_whose_markers_are_hidden_is_unknown_and_the_others_stay():
    rng = np.random.default_rng(3)
    robot = ur10()
    e = experiment(rng, robot, frames=200)
    positions = noisy(rng, e.positions)
    positions[50:100, 15:] = np.nan  # link 6
    positions[120, :] = np.nan
    angles = chain_angles(robot, MarkerSet.on_links(robot, e.links, e.places), positions, e.camera, seed=e.motor)
    unknown = np.isnan(angles.position)
    assert unknown[50:100, 5].all()
    assert not unknown[50:100, :5].any()
    assert unknown[120].all()
    assert unknown.sum() == 50 + 6
    (remark,) = [remark for remark in angles.remarks if remark.startswith("wrist_3_joint")]
    assert "51 of 200" in remark
    assert "no marker beyond it was seen (51)" in remark


def test_joints_that_markers_do_not_tell_apart_are_named():
    rng = np.random.default_rng(4)
    robot = ur10()
    e = experiment(rng, robot, frames=100, per_link=3, on=(5,))
    positions = noisy(rng, e.positions)
    positions[:10, 0] = np.nan  # two markers of one body leave its rotation about their line open
    angles = chain_angles(robot, MarkerSet.on_links(robot, e.links, e.places), positions, e.camera, seed=e.motor)
    assert np.isnan(angles.position[:10, [2, 5]]).all()
    assert np.isfinite(angles.position[10:]).mean() > 0.9  # but where the wrist is singular
    assert any(r.startswith("elbow_joint") and "do not distinguish it from" in r for r in angles.remarks)


def test_without_motors_each_frame_starts_from_those_before():
    rng = np.random.default_rng(5)
    robot = ur10()
    e = experiment(rng, robot, frames=200, per_link=4)
    positions = haunted(rng, noisy(rng, e.positions, 0.1), 0.01)
    markers = MarkerSet.on_links(robot, e.links, e.places)
    angles = chain_angles(robot, markers, positions, e.camera)
    error = np.angle(np.exp(1j * (angles.position - e.link)))  # which turn it is, nobody can tell
    np.testing.assert_allclose(rms(error / angles.standard_errors), 1.0, atol=0.15)


def test_sliding_joints():
    rng = np.random.default_rng(6)
    robot = RobotModel.from_urdf(random_urdf(rng, 5, prismatic_share=0.5), tip=TIP)
    assert 0 < sum(kind == "prismatic" for kind in robot.joint_types) < 5
    e = experiment(rng, robot, frames=300, per_link=4)
    markers = MarkerSet.on_links(robot, e.links, e.places)
    angles = chain_angles(robot, markers, noisy(rng, e.positions), e.camera, seed=e.motor)
    np.testing.assert_allclose(rms((angles.position - e.link) / angles.standard_errors), 1.0, atol=0.15)


def test_bodies_measured_as_poses():
    """Noise of position and rotation that three markers at the radius of the virtual ones would have."""
    rng = np.random.default_rng(7)
    robot = ur10()
    e = experiment(rng, robot, frames=300)
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    poses = np.array([arm.poses(row) for row in e.link])
    points, links = [], []
    for i in (2, 5):
        true = body_markers(poses[:, i, :3, 3], np.array([_quaternion(p) for p in poses[:, i, :3, :3]]))
        noise = rng.normal(scale=SIGMA, size=true.shape)
        fitted = np.array([rigid(a + n, a) for a, n in zip(true, noise, strict=True)])
        points.append(fitted @ e.camera[:3, :3].T + e.camera[:3, 3])
        links += [robot.link_names[i]] * 3
    places = body_markers(np.zeros((1, 3)), np.array([[0, 0, 0, 1.0]]))[0]
    markers = MarkerSet.on_links(robot, links, np.tile(places, (2, 1)), dof=2.0)
    angles = chain_angles(robot, markers, np.concatenate(points, axis=1), e.camera, seed=e.motor)
    assert angles.noise == pytest.approx(SIGMA, rel=0.05)
    np.testing.assert_allclose(rms((angles.position - e.link) / angles.standard_errors), 1.0, atol=0.12)


def test_poses_of_a_tracker_are_left_out_as_a_whole():
    """One in twenty is wrong, but for the body's first marker. That they are bodies shows in their distances."""
    rng = np.random.default_rng(12)
    robot = ur10()
    e = experiment(rng, robot, frames=300, per_link=4, on=(1, 3, 5))
    positions, wrong = tracked(rng, e.positions, 4, wrong=0.05)
    markers = MarkerSet.on_links(robot, e.links, e.places)
    angles = chain_angles(robot, markers, positions, e.camera, seed=e.motor)
    assert angles.noise == pytest.approx(SIGMA, rel=0.05)
    right = ~wrong.any(axis=1)
    pulls = (angles.position - e.link) / angles.standard_errors
    np.testing.assert_allclose(rms(pulls[right]), 1.0, atol=0.15)
    # Nothing of a wrong one is used; where two of three are wrong, none is believed.
    assert np.nanmax(np.abs(pulls[~right])) < 6
    lost = int(np.where(wrong.sum(axis=1) > 1, 3, wrong.sum(axis=1)).sum())
    assert f"{lost} of {wrong.size} positions left out as outliers" in angles.remarks


def test_one_body_at_the_tip_tells_six_joints_but_not_its_own_noise():
    rng = np.random.default_rng(10)
    robot = ur10()
    e = experiment(rng, robot, frames=100, per_link=3, on=(5,))
    markers = MarkerSet.on_links(robot, e.links, e.places, dof=2.0)
    bent = np.abs(np.sin(e.link[:, [2, 4]])).min(axis=1) > 0.2  # singular poses would leave a number over
    measured = noisy(rng, e.positions)
    fitted = np.array([rigid(points, true) for points, true in zip(measured, e.positions, strict=True)])[bent]
    angles = chain_angles(robot, markers, fitted, e.camera, seed=e.motor[bent])
    assert np.isfinite(angles.position).all()
    assert np.median(np.abs(angles.position - e.link[bent])) < np.deg2rad(0.5)
    assert np.isnan(angles.standard_errors).all()
    assert np.isnan(angles.noise)
    assert any("no standard errors" in remark for remark in angles.remarks)


def _quaternion(rotation):
    return Rotation.from_matrix(rotation).as_quat()


def test_bad_input_is_refused():
    rng = np.random.default_rng(9)
    robot = ur10()
    e = experiment(rng, robot, frames=20)
    markers = MarkerSet.on_links(robot, e.links, e.places)

    def refused(match, chosen=markers, positions=e.positions, camera=e.camera, **keywords):
        with pytest.raises(MocapError, match=match):
            chain_angles(robot, chosen, positions, camera, seed=keywords.pop("seed", e.motor), **keywords)

    refused("expected \\(frames, 18, 3\\)", positions=e.positions[:, :5])
    refused("2 marker\\(s\\) beyond joint 'wrist_3_joint'", markers.select(np.arange(17)), e.positions[:, :17])
    refused("mirrored", camera=e.camera @ np.diag([1.0, 1.0, -1.0, 1.0]))
    refused("no 4 x 4 transform", camera=np.zeros((4, 4)))
    refused("seed has shape", seed=e.motor[:5])
    refused("time has shape", time=e.time[:5])
    refused("no marker on a moving link", positions=np.full_like(e.positions, np.nan))
    places = e.places.copy()
    places[15:] = np.outer([0.1, 0.2, 0.3], [0.0, 1.0, 0.0])
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    line = seen(arm, e.link, np.repeat(np.arange(6), 3), places)
    camera = pose(rng)
    refused("wrist_3_joint.*lie on one line", positions=line @ camera[:3, :3].T + camera[:3, 3])
    with pytest.raises(MocapError, match=r"no link 'gripper'.*shoulder_link"):
        MarkerSet.on_links(robot, ["gripper"])
