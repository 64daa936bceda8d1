import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.recording import EffortConvention, PoseSeries, Recording, WrenchSeries

T = np.array([5.0, 5.1, 5.2])
Q = np.arange(6.0).reshape(3, 2)


def archive(tmp_path, **arrays):
    path = tmp_path / "run.npz"
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("time", "position", "velocity", "torque"),
    [("time", "position", "velocity", "torque"), ("t", "q", "dq", "tau"), ("t", "pos", "qd", "effort")],
)
def test_spellings(tmp_path, time, position, velocity, torque):
    path = archive(tmp_path, **{time: T, position: Q, velocity: Q + 10, torque: Q + 20, "joint_names": ["a", "b"]})
    it = Recording.read(path)
    assert it.joint_names == ("a", "b")
    assert it.start_time == 5.0
    np.testing.assert_allclose(it.time, [0, 0.1, 0.2])
    np.testing.assert_array_equal(it.velocity, Q + 10)
    np.testing.assert_array_equal(it.torque, Q + 20)


def test_names_come_from_the_caller_or_select(tmp_path):
    unnamed = archive(tmp_path, t=T, q=Q)
    assert Recording.read(unnamed, ["x", "y"]).joint_names == ("x", "y")
    with pytest.raises(RecordingError, match="does not name its 2 joints; give joint_names"):
        Recording.read(unnamed)
    with pytest.raises(RecordingError, match=r"2 columns of position, but 1 joint_names were given \(x\)"):
        Recording.read(unnamed, ["x"])
    named = archive(tmp_path, t=T, q=Q, joint_names=["a", "b"])
    np.testing.assert_array_equal(Recording.read(named, ["b"]).position, Q[:, 1:])


def test_one_joint_needs_no_second_axis(tmp_path):
    it = Recording.read(archive(tmp_path, t=T, q=Q[:, 0], tau=Q[:, 1]), ["a"])
    np.testing.assert_array_equal(it.torque, Q[:, 1:])


def test_currents_need_gains(tmp_path):
    path = archive(tmp_path, t=T, q=Q, current=Q)
    for convention in (None, EffortConvention("torque")):
        with pytest.raises(RecordingError, match="motor currents and no torques"):
            Recording.read(path, ["a", "b"], effort_convention=convention)
    it = Recording.read(path, ["a", "b"], effort_convention=EffortConvention("motor_current", [2.0, 3.0]))
    np.testing.assert_array_equal(it.torque, Q * [2.0, 3.0])


def test_current_wins_over_torque_when_it_is_declared(tmp_path):
    path = archive(tmp_path, t=T, q=Q, current=Q, torque=Q + 100)
    declared = EffortConvention("motor_current", [2.0, 2.0])
    np.testing.assert_array_equal(Recording.read(path, ["a", "b"], effort_convention=declared).torque, Q * 2)
    np.testing.assert_array_equal(Recording.read(path, ["a", "b"]).torque, Q + 100)


def test_written_archive_is_read_back_whole(tmp_path):
    it = Recording(
        joint_names=("a", "b"),
        time=np.array([0, 0.001, 0.0020000001]),
        position=Q,
        velocity=np.full((3, 2), np.nan),
        torque=Q / 3,
        start_time=1_700_000_000.25,
        link_position=Q + 1e-9,
        wrenches={"/ft/wrench": WrenchSeries(T, Q[:, [0, 0, 1]], Q[:, [1, 0, 1]], "tool")},
        poses={"/markers[1]": PoseSeries(T[:2], Q[:2, [0, 0, 1]], np.ones((2, 4)), "world")},
        truncated=True,
    )
    it.write_npz(tmp_path / "out.npz")
    back = Recording.read(tmp_path / "out.npz")
    assert (back.joint_names, back.start_time, back.truncated) == (it.joint_names, it.start_time, True)
    for name in ("time", "position", "velocity", "torque", "link_position"):
        np.testing.assert_array_equal(getattr(back, name), getattr(it, name))
    assert back.wrenches.keys() == it.wrenches.keys()
    np.testing.assert_array_equal(back.wrench.torque, it.wrench.torque)
    assert back.wrench.frame_id == "tool"
    np.testing.assert_array_equal(back.poses["/markers[1]"].quaternion, np.ones((2, 4)))
    assert [file.name for file in tmp_path.iterdir()] == ["out.npz"]


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"q": Q}, "has no array time; it has q"),
        ({"t": T}, "has no array position; it has t"),
        ({}, "has no array time; it has nothing"),
        ({"t": T, "q": Q, "position": Q}, "arrays position and q both give the position"),
        ({"t": T, "q": Q, "tau": Q[:2]}, r"torque has shape \(2, 2\); expected \(3, 2\)"),
        ({"t": T[:2], "q": Q}, r"position has shape \(3, 2\); expected \(2, 2\)"),
        ({"t": T, "q": Q[np.newaxis]}, r"position has shape \(1, 3, 2\); expected \(N, n\)"),
        ({"t": T, "q": np.full((3, 2), "x")}, "array 'q' does not hold numbers"),
        ({"t": T, "q": Q.astype(object)}, "cannot read .* as a NPZ archive of plain arrays"),
        ({"t": T[[0, 0, 1]], "q": Q}, "time repeats at sample 1"),
        ({"t": T[:0], "q": Q[:0]}, "no samples"),
        ({"t": T, "q": Q, "wrenches:/w:time": T}, "arrays of wrenches are incomplete"),
    ],
)
def test_bad_archives(tmp_path, arrays, match):
    with pytest.raises(RecordingError, match=match) as error:
        Recording.read(archive(tmp_path, **arrays), ["a", "b"])
    assert "run.npz" in str(error.value)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 broken"])
def test_no_archive(tmp_path, content):
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=r"cannot read .* as a NPZ archive"):
        Recording.read(path)


def test_damaged_archive(tmp_path):
    path = archive(tmp_path, t=np.arange(1000.0), q=np.zeros((1000, 2)))
    content = bytearray(path.read_bytes())
    content[4000:4100] = b"?" * 100
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=r"cannot read .* as a NPZ archive"):
        Recording.read(path, ["a", "b"])
