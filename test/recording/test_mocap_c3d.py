"""C3D files as the library c3d writes them."""

import sys

import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.recording import read_mocap

POINTS = np.random.default_rng(0).uniform(-1.0, 1.0, (4, 3, 3))
"""Four frames of three markers, m."""


@pytest.fixture
def take(tmp_path):
    c3d = pytest.importorskip("c3d")

    def written(unit="mm  ", rate=200.0, labels=("hand", "elbow", "knee_angles"), angles=""):
        writer = c3d.Writer(point_rate=rate, analog_rate=rate, point_units=unit, point_scale=-1.0)
        for frame, positions in enumerate(POINTS):
            points = np.zeros((3, 5), dtype=np.float32)
            points[:, :3] = positions * {"mm  ": 1000.0}.get(unit, 1.0)
            points[1, 3] = -1.0 if frame == 2 else 0.0
            writer.add_frames([(points, np.zeros((1, 1)))])
        writer.set_point_labels(list(labels))
        if angles:
            writer.get("POINT").add_str("ANGLES", "results", angles, len(angles), 1)
        writer.set_analog_labels(["none"])
        path = tmp_path / "take.c3d"
        with path.open("wb") as handle:
            writer.write(handle)
        return path

    return written


def test_markers_come_in_metres_and_seconds_and_results_of_a_body_model_do_not(take):
    tracks = read_mocap(take(angles="knee_angles"))
    assert list(tracks) == ["hand", "elbow"]
    np.testing.assert_allclose(tracks["hand"].position, POINTS[:, 0], atol=1e-6)
    np.testing.assert_allclose(tracks["elbow"].position[[0, 1, 3]], POINTS[[0, 1, 3], 1], atol=1e-6)
    assert np.isnan(tracks["elbow"].position[2]).all()
    assert np.isnan(tracks["hand"].quaternion).all()
    np.testing.assert_allclose(tracks["hand"].time, np.arange(4) / 200.0)
    np.testing.assert_allclose(read_mocap(take(), rate=100.0)["hand"].time, np.arange(4) / 100.0)
    np.testing.assert_allclose(read_mocap(take("m   "))["hand"].position, POINTS[:, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "told"),
    [({"unit": "inch"}, "inch"), ({"labels": ("a", "a", "b")}, "a come twice")],
)
def test_what_makes_no_sense_is_refused_by_name_of_the_file(take, settings, told):
    with pytest.raises(RecordingError, match=rf"take\.c3d: .*{told}"):
        read_mocap(take(**settings))


@pytest.mark.parametrize("left", [0, 1, 600, 2100])
def test_a_file_that_is_cut_off_or_none_at_all_is_refused(take, left):
    path = take()
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(RecordingError, match=r"take\.c3d: .*export it again"):
        read_mocap(path)
    with pytest.raises(RecordingError, match=r"cannot read .*No such file"):
        read_mocap(path.with_name("none.c3d"))


@pytest.mark.parametrize("processor", [0, 255])
def test_a_processor_that_does_not_exist_is_refused(take, processor):
    path = take()
    data = bytearray(path.read_bytes())
    data[512 + 3] = processor
    path.write_bytes(data)
    with pytest.raises(RecordingError, match=r"take\.c3d: .*export it again"):
        read_mocap(path)


def test_without_the_library_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "c3d", None)
    with pytest.raises(RecordingError, match=r"pip install 'c3d>=0\.5'"):
        read_mocap(tmp_path / "take.c3d")
