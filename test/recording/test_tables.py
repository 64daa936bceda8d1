"""NPZ archives and CSV tables: spellings, commands, and refusals."""

from dataclasses import replace

import numpy as np
import pytest

from dynid_ros.errors import DynidError, RecordingError
from dynid_ros.recording import CommandSeries, EffortConvention, PoseSeries, Recording, WrenchSeries

T = np.array([5.0, 5.1, 5.2])
Q = np.arange(6.0).reshape(3, 2)


def write_archive(tmp_path, **arrays):
    path = tmp_path / "run.npz"
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("time", "position", "velocity", "torque"),
    [("time", "position", "velocity", "torque"), ("t", "q", "dq", "tau"), ("t", "pos", "qd", "effort")],
)
def test_reads_spellings_of_arrays(tmp_path, time, position, velocity, torque):
    path = write_archive(
        tmp_path, **{time: T, position: Q, velocity: Q + 10, torque: Q + 20, "joint_names": ["a", "b"]}
    )
    recording = Recording.read(path)
    assert recording.joint_names == ("a", "b")
    assert recording.start_time == 5.0
    np.testing.assert_allclose(recording.time, [0, 0.1, 0.2])
    np.testing.assert_array_equal(recording.velocity, Q + 10)
    np.testing.assert_array_equal(recording.torque, Q + 20)


def test_joint_names_name_or_select_columns(tmp_path):
    unnamed = write_archive(tmp_path, t=T, q=Q)
    assert Recording.read(unnamed, ["x", "y"]).joint_names == ("x", "y")
    with pytest.raises(RecordingError, match="does not name its 2 joints; give joint_names"):
        Recording.read(unnamed)
    with pytest.raises(RecordingError, match=r"2 columns of position, but 1 joint_names were given \(x\)"):
        Recording.read(unnamed, ["x"])
    named = write_archive(tmp_path, t=T, q=Q, joint_names=["a", "b"])
    np.testing.assert_array_equal(Recording.read(named, ["b"]).position, Q[:, 1:])


def test_arrays_of_one_joint_may_be_vectors(tmp_path):
    recording = Recording.read(write_archive(tmp_path, t=T, q=Q[:, 0], tau=Q[:, 1]), ["a"])
    np.testing.assert_array_equal(recording.torque, Q[:, 1:])


def test_declared_current_replaces_torque(tmp_path):
    path = write_archive(tmp_path, t=T, q=Q, current=Q, torque=Q + 100)
    declared = EffortConvention("motor_current", [2.0, 2.0])
    np.testing.assert_array_equal(Recording.read(path, ["a", "b"], effort_convention=declared).torque, Q * 2)
    np.testing.assert_array_equal(Recording.read(path, ["a", "b"]).torque, Q + 100)


def test_archive_is_read_back_completely(tmp_path):
    recording = Recording(
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
    recording.write_npz(tmp_path / "out.npz")
    read = Recording.read(tmp_path / "out.npz")
    assert (read.joint_names, read.start_time, read.truncated) == (recording.joint_names, recording.start_time, True)
    for name in ("time", "position", "velocity", "torque", "link_position"):
        np.testing.assert_array_equal(getattr(read, name), getattr(recording, name))
    assert read.wrenches.keys() == recording.wrenches.keys()
    np.testing.assert_array_equal(read.wrench.torque, recording.wrench.torque)
    assert read.wrench.frame_id == "tool"
    np.testing.assert_array_equal(read.poses["/markers[1]"].quaternion, np.ones((2, 4)))
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
def test_refuses_bad_archives(tmp_path, arrays, match):
    with pytest.raises(RecordingError, match=match) as error:
        Recording.read(write_archive(tmp_path, **arrays), ["a", "b"])
    assert "run.npz" in str(error.value)


def test_refuses_a_damaged_archive(tmp_path):
    path = write_archive(tmp_path, t=np.arange(1000.0), q=np.zeros((1000, 2)))
    content = bytearray(path.read_bytes())
    content[4000:4100] = b"?" * 100
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=r"cannot read .* as a NPZ archive"):
        Recording.read(path, ["a", "b"])


def write_table(tmp_path, *lines, name="run.csv"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return path


def test_reads_documented_columns(tmp_path):
    path = write_table(
        tmp_path,
        "t,arm_1_position,arm_2_position,arm_1_velocity,arm_2_velocity,arm_1_torque,arm_2_torque,arm_1_link_position",
        "10.5,1,2,3,4,5,6,7",
        "10.6,11,12,13,14,15,16,17",
    )
    recording = Recording.read(path)
    assert recording.joint_names == ("arm_1", "arm_2")
    assert recording.start_time == 10.5
    np.testing.assert_allclose(recording.time, [0, 0.1])
    np.testing.assert_array_equal(recording.position, [[1, 2], [11, 12]])
    np.testing.assert_array_equal(recording.velocity, [[3, 4], [13, 14]])
    np.testing.assert_array_equal(recording.torque, [[5, 6], [15, 16]])
    np.testing.assert_array_equal(recording.link_position, [[7, np.nan], [17, np.nan]])
    assert recording.source == str(path)


@pytest.mark.parametrize(
    "header",
    [
        "time,q_a,q_b,dq_a,dq_b,tau_a,tau_b",
        "t,a_q,b_q,a_dq,b_dq,a_tau,b_tau",
        "T,pos_a,pos_b,qd_a,qd_b,torque_a,torque_b",
        "Time,a_pos,b_pos,vel_a,vel_b,a_effort,b_effort",
        "t,position_a,position_b,velocity_a,velocity_b,effort_a,effort_b",
        " t , a_position , b_position , a_velocity , b_velocity , a_torque , b_torque ",
    ],
)
def test_reads_spellings_of_columns(tmp_path, header):
    recording = Recording.read(write_table(tmp_path, header, "0,1,2,3,4,5,6"))
    assert recording.joint_names == ("a", "b")
    np.testing.assert_array_equal(
        np.concatenate([recording.position, recording.velocity, recording.torque], axis=1), [[1, 2, 3, 4, 5, 6]]
    )


@pytest.mark.parametrize("style", ["q{}", "q_{}", "position_{}"])
def test_joint_names_apply_to_numbered_columns_in_order(tmp_path, style):
    numbers = [10, 2, 1]
    path = write_table(tmp_path, ",".join(["t", *map(style.format, numbers), "tau_2"]), "0,10,2,1,7")
    recording = Recording.read(path, ["base", "shoulder", "elbow"])
    np.testing.assert_array_equal(recording.position, [[1, 2, 10]])
    np.testing.assert_array_equal(recording.torque, [[np.nan, 7, np.nan]])
    with pytest.raises(RecordingError, match="does not name its 3 joints; give joint_names"):
        Recording.read(path)
    with pytest.raises(RecordingError, match="has 3 columns of position, but 2 joint_names"):
        Recording.read(path, ["base", "shoulder"])


def test_joint_names_select_columns(tmp_path):
    path = write_table(tmp_path, "t,a_position,b_position,note", "0,1,2,slow")
    np.testing.assert_array_equal(Recording.read(path, ["b"]).position, [[2]])
    with pytest.raises(RecordingError, match=r"lacks joint\(s\) c; it has a, b"):
        Recording.read(path, ["a", "c"])


def test_missing_columns_and_empty_cells_are_nan(tmp_path):
    recording = Recording.read(
        write_table(tmp_path, "t,a_position,a_torque,b_position", "0,1,,2", "1,3,nan,4", "", "2,5,6,7")
    )
    np.testing.assert_array_equal(recording.torque, [[np.nan, np.nan], [np.nan, np.nan], [6, np.nan]])
    assert np.isnan(recording.velocity).all()


def test_refuses_currents_without_gains(tmp_path):
    rows = [f"{t},{q[0]},{q[1]},{q[0]},{q[1]}" for t, q in zip(T, Q, strict=True)]
    text = write_table(tmp_path, "t,a_position,b_position,a_current,b_current", *rows)
    for path in (text, write_archive(tmp_path, t=T, q=Q, current=Q)):
        for convention in (None, EffortConvention("torque")):
            with pytest.raises(RecordingError, match="motor currents and no torques; give effort_convention"):
                Recording.read(path, ["a", "b"], effort_convention=convention)
        recording = Recording.read(path, ["a", "b"], effort_convention=EffortConvention("motor_current", [2.0, 3.0]))
        np.testing.assert_array_equal(recording.torque, Q * [2.0, 3.0])


def test_reads_byte_order_mark_and_windows_line_ends(tmp_path):
    path = tmp_path / "excel.csv"
    path.write_bytes(b"\xef\xbb\xbft,a_position\r\n0,1\r\n1,2\r\n")
    np.testing.assert_array_equal(Recording.read(path).position, [[1], [2]])


@pytest.mark.parametrize(
    ("lines", "match"),
    [
        (["a_position", "1"], "must name one column 't'.*it has a_position"),
        (["t,time,a_position", "0,0,1"], "must name one column 't'"),
        ([""], "must name one column 't'.*it has nothing"),
        (["t,a_velocity", "0,1"], "no column '<joint>_position' among t, a_velocity"),
        (["t,a_position,q_a", "0,1,1"], "columns 'a_position' and 'q_a' both give the position of joint 'a'"),
        (["t,a_position"], "no samples"),
        (["t,a_position", "0,1", "1,x7"], r"line 3, column 'a_position': 'x7' is not a number"),
        (["t,a_position", "0,1", "1"], r"line 3: 1 cells; expected 2"),
        (["t,a_position", "0,1", "1,2,3"], r"line 3: 3 cells; expected 2"),
        (["t,a_position", "0,1", "1,"], "position of joint 'a' is nan at sample 1"),
        (["t,a_position", "0,1", "0,2"], "time repeats at sample 1"),
        (["t|a_position", "0|1"], "must name one column 't'"),
        (["t;a_position", "0;1,5"], "'1,5' is not a number"),
    ],
)
def test_refuses_bad_tables(tmp_path, lines, match):
    with pytest.raises(RecordingError, match=match) as error:
        Recording.read(write_table(tmp_path, *lines))
    assert "run.csv" in str(error.value)


def test_refuses_unreadable_files_with_the_system_message(tmp_path):
    path = tmp_path / "run.csv"
    path.symlink_to("/proc/self/mem")
    with pytest.raises(RecordingError, match=r"cannot read .*run\.csv as a CSV table \(Input/output error\); expected"):
        Recording.read(path)


def test_table_is_read_back(tmp_path):
    values = np.random.default_rng(1).normal(size=(20, 3))
    time = np.linspace(0, 1, 20)
    recording = Recording(
        ("x", "y", "z"), time, values, np.full((20, 3), np.nan), values * 50, link_position=values + 1e-3
    )
    recording.write_csv(tmp_path / "out.csv")
    read = Recording.read(tmp_path / "out.csv")
    assert read.joint_names == recording.joint_names
    for name in ("time", "position", "velocity", "torque", "link_position"):
        np.testing.assert_allclose(getattr(read, name), getattr(recording, name), rtol=1e-11)
    assert "velocity" not in (tmp_path / "out.csv").read_text()
    assert [file.name for file in tmp_path.iterdir()] == ["out.csv"]


def test_refuses_an_unwritable_folder(tmp_path):
    (tmp_path / "none").write_text("a file")
    recording = Recording(("x",), np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 1)))
    with pytest.raises(DynidError, match=r"cannot write .*out\.csv \((File exists|Not a directory)\)"):
        recording.write_csv(tmp_path / "none" / "out.csv")


def test_reads_commands_of_tables_and_archives(tmp_path):
    path = tmp_path / "commands.csv"
    path.write_text("t,a_position,b_position,b_command,a_command\n5,1,2,4,3\n6,1,2,,5\n")
    recording = Recording.read(path)
    assert recording.command.time.tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(recording.command.position, [[3.0, 4.0], [5.0, np.nan]])
    recording.write_csv(tmp_path / "again.csv")
    np.testing.assert_array_equal(Recording.read(tmp_path / "again.csv").command.position, recording.command.position)
    with_commands = replace(recording, command=CommandSeries(np.array([0.25, 0.5, 2.0]), np.ones((3, 2))))
    with_commands.write_npz(tmp_path / "commands.npz")
    assert Recording.read(tmp_path / "commands.npz").command.time.tolist() == [0.25, 0.5, 2.0]
    with pytest.raises(RecordingError, match=r"command has shape \(3, 1\); expected \(K, 2\)"):
        replace(recording, command=CommandSeries(np.arange(3.0), np.ones((3, 1))))
    np.savez(tmp_path / "bad.npz", t=[0.0, 1.0], q=np.ones((2, 2)), command=np.ones((3, 2)), joint_names=["a", "b"])
    with pytest.raises(RecordingError, match=r"bad.npz: position of a series has shape \(3, 2\); expected \(2, 2\)"):
        Recording.read(tmp_path / "bad.npz")


@pytest.mark.parametrize("joints", [("a,b", 'c"d'), ("关节", "é"), ("", " "), ("#", "'")])
def test_table_may_have_any_joint_names(tmp_path, joints):
    recording = Recording(joints, T - T[0], Q, Q, Q)
    recording.write_csv(tmp_path / "run.csv")
    if all(map(str.strip, joints)):
        assert Recording.read(tmp_path / "run.csv").joint_names == joints


@pytest.mark.parametrize("where", ["joint_names", "wrenches", "frame_id", "others"])
def test_refuses_names_with_line_breaks(where):
    name = {**dict.fromkeys(("joint_names", "wrenches", "frame_id", "others"), "plain"), where: "line\nbreak"}
    sensor = WrenchSeries(T, np.zeros((3, 3)), np.zeros((3, 3)), name["frame_id"])
    others = {name["others"] + "2": np.zeros(3)}
    with pytest.raises(RecordingError, match="control character"):
        Recording((name["joint_names"],), T, *[Q[:, :1]] * 3, wrenches={name["wrenches"]: sensor}, others=others)


def test_omits_first_samples_without_a_time(tmp_path):
    """A zero before times since the epoch would yield a recording of fifty years."""
    path = tmp_path / "run.csv"
    rows = [f"{0 if k == 0 else 1.7e9 + 0.01 * k:.3f},{0.1 * k},{k}" for k in range(20)]
    path.write_text("\n".join(["t,a_position,a_torque", *rows]))
    recording = Recording.read(path)
    assert recording.n_samples == 19
    assert recording.duration < 1.0
    assert recording.start_time == pytest.approx(1.7e9 + 0.01)
    assert recording.clock_remark


@pytest.mark.parametrize(
    ("name", "first_line"),
    [
        ("rtde.csv", "timestamp actual_q_0 actual_q_1 actual_qd_0 actual_qd_1 target_q_0"),
        ("plotjuggler.csv", "__time,/arm/a/position,/arm/b/position,/arm/a/velocity,/arm/b/velocity,/clock"),
        ("savetxt.txt", "# t  q_a  q_b  qd_a  qd_b  note"),
        ("table.tsv", "t;q1;q2;dq1;dq2;note"),
        ("tabs.csv", "time\tq_a\tq_b\tqd_a\tqd_b\tnote"),
    ],
)
def test_tables_of_other_programs_are_read(tmp_path, name, first_line):
    delimiter = next(one for one in (",", ";", "\t", " ") if one in first_line)
    values = np.arange(18.0).reshape(3, 6)
    lines = [delimiter.join(map(str, row)) for row in values]
    path = tmp_path / name
    path.write_text("\n".join([first_line, *lines, ""]))
    recording = Recording.read(path, ("a", "b"))
    np.testing.assert_array_equal(recording.time, values[:, 0])
    np.testing.assert_array_equal(recording.position, values[:, 1:3])
    np.testing.assert_array_equal(recording.velocity, values[:, 3:5])
