"""Recordings as objects: selection, slices, and refusals of inconsistent arrays."""

import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.recording import PoseSeries, Recording, WrenchSeries


def make_recording(n=5, joints=("a", "b"), **changes):
    time = np.arange(n) * 0.1
    values = np.arange(n * len(joints), dtype=float).reshape(n, len(joints))
    fields = {"time": time, "position": values, "velocity": values + 100, "torque": values + 200, **changes}
    return Recording(joint_names=joints, source="run.csv", **fields)


def test_arrays_are_read_only_copies():
    position = np.zeros((5, 2))
    recording = make_recording(position=position)
    with pytest.raises(ValueError, match="read-only"):
        recording.position[0, 0] = 1.0
    position[0, 0] = 1.0


def test_select_reorders_by_name():
    recording = make_recording(link_position=np.arange(10.0).reshape(5, 2) + 300).select(["b", "a"])
    assert recording.joint_names == ("b", "a")
    for array, first in (
        (recording.position, 1),
        (recording.velocity, 101),
        (recording.torque, 201),
        (recording.link_position, 301),
    ):
        np.testing.assert_array_equal(array[0], [first, first - 1])


def test_refuses_missing_joints_and_empty_slices():
    with pytest.raises(RecordingError, match=r"run\.csv lacks joint\(s\) c, d; it has a, b"):
        make_recording().select(["a", "c", "d"])
    with pytest.raises(RecordingError, match="no samples"):
        make_recording().slice(slice(0, 0))


@pytest.mark.parametrize("samples", [slice(1, 4), np.array([False, True, True, True, False]), np.array([1, 2, 3])])
def test_slice_keeps_times(samples):
    series = np.arange(-1, 7) * 0.1
    recording = make_recording(
        wrenches={"/w": WrenchSeries(series, np.ones((8, 3)), np.ones((8, 3)))},
        poses={"/p": PoseSeries(series, np.ones((8, 3)), np.ones((8, 4)))},
    ).slice(samples)
    np.testing.assert_allclose(recording.time, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(recording.torque[:, 0], [202, 204, 206])
    np.testing.assert_allclose(recording.wrenches["/w"].time, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(recording.poses["/p"].time, [0.1, 0.2, 0.3])
    assert recording.poses["/p"].quaternion.shape == (3, 4)


def test_wrench_needs_a_single_topic():
    series = WrenchSeries(np.zeros(1), np.zeros((1, 3)), np.zeros((1, 3)))
    assert make_recording().wrench is None
    assert make_recording(wrenches={"/w": series}).wrench is series
    with pytest.raises(RecordingError, match="several wrench topics: /v, /w"):
        _ = make_recording(wrenches={"/v": series, "/w": series}).wrench


@pytest.mark.parametrize(
    ("time", "match"),
    [
        ([0, 0.1, 0.1, 0.2, 0.3], r"time repeats at sample 2: 0\.100000000 s after 0\.100000000 s \(1 such"),
        ([0, 0.1, 0.2, 0.05, 0.1], r"time goes backward at sample 3: 0\.050000000 s after 0\.200000000 s \(1 such"),
        ([0, 0.1, np.nan, 0.3, 0.4], "time is not a number at sample 2"),
        ([np.nan, 0.1, 0.2, 0.3, 0.4], "time of sample 0 is nan"),
    ],
)
def test_refuses_times_that_do_not_increase(time, match):
    with pytest.raises(RecordingError, match=rf"run\.csv: {match}.*; remove"):
        make_recording(time=np.array(time))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"position": np.zeros((5, 3))}, r"position has shape \(5, 3\); expected \(5, 2\)"),
        ({"torque": np.zeros((4, 2))}, r"torque has shape \(4, 2\); expected \(5, 2\)"),
        ({"link_position": np.zeros(5)}, r"link_position has shape \(5,\)"),
        ({"time": np.zeros((5, 1))}, r"time has shape \(5, 1\)"),
        ({"joints": ("a", "a")}, r"names joint\(s\) a more than once"),
        ({"joints": ()}, "no samples.*0 joints"),
        ({"n": 0}, "no samples"),
    ],
)
def test_refuses_wrong_shapes(changes, match):
    with pytest.raises(RecordingError, match=match):
        make_recording(**changes)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -2e12])
def test_refuses_non_finite_positions(bad):
    position = np.zeros((5, 2))
    position[3, 1] = bad
    with pytest.raises(RecordingError, match=rf"position of joint 'b' is {bad} at sample 3, t = 0\.3 s"):
        make_recording(position=position)


def test_missing_torques_are_nan_and_infinite_ones_refused():
    missing = np.full((5, 2), np.nan)
    assert np.isnan(make_recording(velocity=missing, torque=missing).torque).all()
    missing[4, 0] = np.inf
    with pytest.raises(RecordingError, match="torque of joint 'a' is inf at sample 4"):
        make_recording(torque=missing)


@pytest.mark.parametrize("name", ["none.csv", "none.npz", "none", "none.mcap", "run.dat"])
def test_refuses_missing_and_unknown_files(tmp_path, name):
    (tmp_path / "run.dat").touch()
    message = "no known kind of recording" if name == "run.dat" else f"{name} does not exist; give a rosbag2 folder"
    with pytest.raises(RecordingError, match=message):
        Recording.read(tmp_path / name)


@pytest.mark.parametrize(
    "option",
    [{"torque_topic": "/t"}, {"joint_states_topic": "/j"}, {"receive_time": True}],
    ids=lambda o: next(iter(o)),
)
def test_refuses_topics_of_tables(tmp_path, option):
    path = tmp_path / "run.csv"
    path.write_text("t,a_position\n0,1\n")
    with pytest.raises(RecordingError, match="for bags, not for tables"):
        Recording.read(path, **option)


def test_refuses_times_in_another_unit():
    with pytest.raises(RecordingError, match=r"its 30 samples take 2.9e-10 s; time must be in s"):
        Recording(("a",), 1e-11 * np.arange(30), *np.zeros((3, 30, 1)))
