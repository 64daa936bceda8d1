"""Test the inputs of the flexible-joint job: markers, camera files and joints held by brakes."""

from dataclasses import replace

import flexible_joint_files as files
import numpy as np
import pa10
import pytest

from dynid_ros.errors import MocapError, RecordingError
from dynid_ros.jobs.flexible_joints import marker_links, single_joint, with_camera_files
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording


def test_marker_options_name_links():
    assert marker_links(["/hand/pose=link_6", "/markers"]) == {"/hand/pose": "link_6", "/markers": None}
    assert marker_links([]) is None


@pytest.mark.parametrize(("texts", "words"), [(["=link"], "names nothing"), (["/a=b", "/a"], "'/a' comes twice")])
def test_invalid_marker_options_are_refused(texts, words):
    with pytest.raises(MocapError, match=words):
        marker_links(texts)


def test_each_recording_needs_one_camera_file(tmp_path):
    path = tmp_path / "take.csv"
    path.write_text("t,hand_x,hand_y,hand_z\n" + "".join(f"{k / 100},{k},2,3\n" for k in range(50)))
    recordings = [files.with_encoders()]
    (recording,) = with_camera_files(recordings, [path], unit="mm")
    np.testing.assert_allclose(recording.poses["hand"].position[3], [0.003, 0.002, 0.003])
    with pytest.raises(MocapError, match="1 files of the camera for 2 recordings; give one for each"):
        with_camera_files(2 * recordings, [path])
    with pytest.raises(RecordingError, match=r"nowhere\.csv"):
        with_camera_files(recordings, [tmp_path / "nowhere.csv"])


POSE = np.array([0.3, 0.0, 1.2, 0.3, 0.9, 0.2])
ROBOT = RobotModel.from_urdf(pa10.arm_urdf())


def record_joint_2(angle=0.0):
    """Return a recording of joint 2 while joint 4 moves by an angle in degrees."""
    position = np.tile(POSE, (100, 1))
    position[:, 1] = np.linspace(-1, 1, 100)
    position[:, 3] += np.deg2rad(angle) * np.linspace(-0.5, 0.5, 100)
    unknown = np.full_like(position, np.nan)
    return Recording(ROBOT.joint_names, np.arange(100) / 100, position, unknown, unknown, source="held.npz")


def test_single_joint_has_the_other_joints_fixed():
    robot = single_joint(ROBOT, "joint_2", [record_joint_2(), record_joint_2(0.9)])
    fixed = RobotModel.from_urdf(pa10.arm_urdf(alone=2, pose=tuple(POSE)))
    motion = np.random.default_rng(0).uniform(-1, 1, (3, 20, 1))
    np.testing.assert_allclose(robot.inverse_dynamics(*motion), fixed.inverse_dynamics(*motion), atol=1e-9)


def test_moving_held_joint_is_refused():
    with pytest.raises(RecordingError, match=r"held.npz, held.npz: joint 'joint_4' moves by 1.1° while only 'joint_2'"):
        single_joint(ROBOT, "joint_2", [record_joint_2(), record_joint_2(1.1)])
    lifted = replace(record_joint_2(), position=record_joint_2().position + np.array([0, 0, 0.1, 0, 0, 0]))
    with pytest.raises(RecordingError, match=r"'joint_3' moves by 5\.7°"):
        single_joint(ROBOT, "joint_2", [record_joint_2(), lifted])
