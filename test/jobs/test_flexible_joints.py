"""One joint of an arm whose brakes hold the others."""

from dataclasses import replace

import flexible_joint_files as files
import numpy as np
import pa10
import pytest

from dynid_ros.errors import MocapError, RecordingError
from dynid_ros.jobs.flexible_joints import marker_links, single_joint, with_camera_files
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording

# What users say of cameras and markers.


def test_links_by_marker():
    assert marker_links(["/hand/pose=link_6", "/markers"]) == {"/hand/pose": "link_6", "/markers": None}
    assert marker_links([]) is None


@pytest.mark.parametrize(("texts", "words"), [(["=link"], "names nothing"), (["/a=b", "/a"], "'/a' comes twice")])
def test_bad_markers_are_refused(texts, words):
    with pytest.raises(MocapError, match=words):
        marker_links(texts)


def test_files_belong_to_recordings(tmp_path):
    path = tmp_path / "take.csv"
    path.write_text("t,hand_x,hand_y,hand_z\n" + "".join(f"{k / 100},{k},2,3\n" for k in range(50)))
    recordings = [files.with_encoders()]
    (found,) = with_camera_files(recordings, [path], unit="mm")
    np.testing.assert_allclose(found.poses["hand"].position[3], [0.003, 0.002, 0.003])
    with pytest.raises(MocapError, match="1 files of the camera for 2 recordings; give one for each"):
        with_camera_files(2 * recordings, [path])
    with pytest.raises(RecordingError, match=r"nowhere\.csv"):
        with_camera_files(recordings, [tmp_path / "nowhere.csv"])


POSE = np.array([0.3, 0.0, 1.2, 0.3, 0.9, 0.2])
ROBOT = RobotModel.from_urdf(pa10.arm_urdf())


def recording(way=0.0):
    position = np.tile(POSE, (100, 1))
    position[:, 1] = np.linspace(-1, 1, 100)
    position[:, 3] += np.deg2rad(way) * np.linspace(-0.5, 0.5, 100)
    nothing = np.full_like(position, np.nan)
    return Recording(ROBOT.joint_names, np.arange(100) / 100, position, nothing, nothing, source="held.npz")


def test_it_is_the_arm_with_its_other_joints_fixed():
    found = single_joint(ROBOT, "joint_2", [recording(), recording(0.9)])
    fixed = RobotModel.from_urdf(pa10.arm_urdf(alone=2, pose=tuple(POSE)))
    motion = np.random.default_rng(0).uniform(-1, 1, (3, 20, 1))
    np.testing.assert_allclose(found.inverse_dynamics(*motion), fixed.inverse_dynamics(*motion), atol=1e-9)


def test_a_joint_that_is_not_held_is_refused():
    with pytest.raises(RecordingError, match=r"held.npz, held.npz: joint 'joint_4' moves by 1.1° while only 'joint_2'"):
        single_joint(ROBOT, "joint_2", [recording(), recording(1.1)])
    lifted = replace(recording(), position=recording().position + np.array([0, 0, 0.1, 0, 0, 0]))
    with pytest.raises(RecordingError, match=r"'joint_3' moves by 5\.7°"):
        single_joint(ROBOT, "joint_2", [recording(), lifted])
