"""Link positions from recorded markers and bodies: clock offset, camera pose, markers and joint angles."""

from dataclasses import replace

import numpy as np
import pytest
from marker_experiment import add_noise, load_ur10, simulate_experiment
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from dynid_ros.errors import MocapError
from dynid_ros.mocap.recorded_links import mocap_links
from dynid_ros.recording import Recording
from dynid_ros.recording.series import PoseSeries


def recorded(seed, offset, shuffled=False):
    """Return robot, experiment and recording: joints at 250 Hz, markers at 50 Hz with a separate clock."""
    rng = np.random.default_rng(seed)
    robot = load_ur10()
    e = simulate_experiment(rng, robot, frames=800, on=(0, 2, 5), rate=50, deflection=np.deg2rad(0.05))
    positions = add_noise(rng, e.positions, 0.05)
    if shuffled:
        positions = np.array([row[rng.permutation(len(row))] for row in positions])
    time = np.arange(0.0, e.time[-1], 0.004)
    motor = CubicSpline(e.time, e.motor)(time)
    nothing = np.full_like(motor, np.nan)
    empty = np.full((len(e.time), 4), np.nan)
    poses = {f"/markers[{i}]": PoseSeries(e.time - offset, positions[:, i], empty) for i in range(positions.shape[1])}
    return robot, e, Recording(robot.joint_names, time, motor, nothing, nothing, poses=poses)


@pytest.mark.parametrize(("offset", "shuffled"), [pytest.param(0.013, False, marks=pytest.mark.slow), (512.25, True)])
def test_estimates_clock_camera_markers_and_angles(offset, shuffled):
    robot, e, recording = recorded(1, offset, shuffled)
    links = None if shuffled else {f"/markers[{i}]": link for i, link in enumerate(e.links)}
    links_result = mocap_links(robot, recording, links)
    assert links_result.clock.offset == pytest.approx(offset, abs=5e-4)
    np.testing.assert_allclose(links_result.robot_time(), e.time, atol=1e-3)
    error = links_result.angles.position - e.link
    varying = np.nanstd(error, axis=0)
    claimed = np.sqrt(np.nanmean(links_result.angles.standard_errors**2, axis=0))
    np.testing.assert_array_less(varying, 1.2 * claimed + np.deg2rad(0.01))
    np.testing.assert_allclose(np.nanmean(error, axis=0), 0.0, atol=np.deg2rad(0.15))
    assert any("links found" in remark for remark in links_result.angles.remarks) == shuffled
    assert any("tracks" in remark for remark in links_result.angles.remarks) == shuffled
    assert "wrist_3_joint: known in" in links_result.angles.summary(robot.joint_names)


def test_accepts_topics_of_markers_and_bodies():
    """Some markers are replaced by PoseStamped bodies with link poses from Pinocchio."""
    robot, e, recording = recorded(2, 0.0)
    poses = {name: series for name, series in recording.poses.items() if int(name[9:-1]) < 3}
    frames = e.camera @ robot.forward_kinematics(e.link)
    rng = np.random.default_rng(3)
    for link in (2, 5):
        position = frames[:, link, :3, 3] + rng.normal(scale=2e-4, size=(len(e.time), 3))
        turn = Rotation.from_rotvec(rng.normal(scale=2e-3, size=(len(e.time), 3)))
        quaternion = (turn * Rotation.from_matrix(frames[:, link, :3, :3])).as_quat()
        poses[f"/body_{link}/pose"] = PoseSeries(e.time, position, quaternion)
    links = {"/markers": "shoulder_link", "/body_2/pose": robot.link_names[2], "/body_5/pose": robot.link_names[5]}
    links_result = mocap_links(robot, replace(recording, poses=poses), links)
    assert links_result.angles.marker_names[:4] == ("/markers[0]", "/markers[1]", "/markers[2]", "/body_2/pose (0)")
    # A marker has three coordinates; a pose has six, represented by three points.
    np.testing.assert_array_equal(links_result.registration.markers.dof, [3.0] * 3 + [2.0] * 6)
    assert np.nanstd(links_result.angles.position - e.link, axis=0).max() < np.deg2rad(0.5)
    assert abs(links_result.clock.offset) < 1e-3


def test_refuses_unknown_topics_links_and_times():
    robot, e, recording = recorded(4, 0.0)
    with pytest.raises(MocapError, match="has no '/tip'; it has /markers"):
        mocap_links(robot, recording, {"/tip": "wrist_3_link"})
    with pytest.raises(MocapError, match="'/markers' is to be on link 'hand'; expected one of world"):
        mocap_links(robot, recording, {"/markers": "hand"})
    with pytest.raises(MocapError, match="no markers or bodies"):
        mocap_links(robot, replace(recording, poses={}))
    rng = np.random.default_rng(5)
    elsewhere = simulate_experiment(rng, robot, frames=800, on=(0, 2, 5), rate=50)
    poses = {
        name: replace(series, time=series.time + 1000, position=elsewhere.positions[:, i])
        for i, (name, series) in enumerate(recording.poses.items())
    }
    links = dict(zip(poses, e.links, strict=True))
    with pytest.raises(MocapError, match=r"do not overlap in time: joints from 0\.000 to 15\.9"):
        mocap_links(robot, replace(recording, poses=poses), links)
