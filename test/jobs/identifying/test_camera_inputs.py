"""What users say of cameras and markers."""

import flexible_joint_files as files
import numpy as np
import pytest

from dynid_ros.errors import MocapError, RecordingError
from dynid_ros.jobs.flexible_joints import CameraFiles, marker_links, with_camera_files


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
    (found,) = with_camera_files(recordings, CameraFiles([path], unit="mm"))
    np.testing.assert_allclose(found.poses["hand"].position[3], [0.003, 0.002, 0.003])
    with pytest.raises(MocapError, match="1 files of the camera for 2 recordings; give one for each"):
        with_camera_files(2 * recordings, CameraFiles([path]))
    with pytest.raises(RecordingError, match=r"nowhere\.csv"):
        with_camera_files(recordings, CameraFiles([tmp_path / "nowhere.csv"]))
