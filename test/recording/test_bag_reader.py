"""Joint states of bags: storages, names, stamps, missing fields and damaged files."""

import mmap
import shutil

import numpy as np
import pytest
from bag_files import MS, NAMES, STAMP, START, TYPES, header, joint_state, states, wrench, write_bag, write_mcap
from rosbags.rosbag2 import StoragePlugin, Writer

from dynid_ros.errors import RecordingError
from dynid_ros.files import disk_arrays
from dynid_ros.recording import EffortConvention, Recording, check


@pytest.mark.parametrize("storage", StoragePlugin)
def test_reads_joint_states(tmp_path, storage):
    path = write_bag(tmp_path / "bag", states(), storage)
    recording = Recording.read(path)
    i = np.arange(20.0)
    assert recording.joint_names == ("a", "b")
    assert recording.start_time == 5.0
    assert not recording.truncated
    np.testing.assert_allclose(recording.time, i / 100, atol=1e-12)
    np.testing.assert_array_equal(recording.position, np.column_stack([i, i + 100]))
    np.testing.assert_array_equal(recording.velocity, recording.position + 1000)
    np.testing.assert_array_equal(recording.torque, recording.position + 2000)


def test_joint_states_of_a_long_bag_are_mapped_from_disk(tmp_path, monkeypatch):
    path = write_bag(tmp_path / "bag", states(200))
    recording = Recording.read(path)
    monkeypatch.setattr(disk_arrays, "MIN_DISK_BYTES", 1000)
    on_disk = Recording.read(path)
    for name in ("position", "velocity", "torque"):
        np.testing.assert_array_equal(getattr(on_disk, name), getattr(recording, name))
        values = getattr(on_disk, name)
        while isinstance(values, np.ndarray):
            values = values.base
        assert isinstance(values, memoryview | mmap.mmap)


@pytest.mark.parametrize("storage", StoragePlugin)
def test_reads_a_storage_file_without_metadata(tmp_path, storage):
    path = write_bag(tmp_path / "bag", states(), storage)
    (file,) = (file for file in path.iterdir() if file.suffix in (".mcap", ".db3"))
    assert Recording.read(file).n_samples == 20
    (path / "metadata.yaml").unlink()
    assert Recording.read(path).n_samples == 20


def test_reads_split_files_in_order_of_time(tmp_path):
    folder = tmp_path / "split"
    folder.mkdir()
    for name, first in (("split_10", 0), ("split_9", 1)):
        bag = write_bag(tmp_path / name, states(20, stamp=STAMP + first * 10**9, received=START + first * 10**9))
        shutil.copy(bag / f"{name}.mcap", folder)
    recording = Recording.read(folder)
    assert recording.n_samples == 40
    assert recording.duration == pytest.approx(1.19)


def test_applies_effort_convention_and_joint_names(tmp_path):
    path = write_bag(tmp_path / "bag", states())
    recording = Recording.read(path, ["b", "a"], effort_convention=EffortConvention("motor_current", [10.0, -1.0]))
    np.testing.assert_array_equal(recording.torque[3], [21030, -2003])
    with pytest.raises(RecordingError, match="gravity is not in the recorded effort"):
        Recording.read(path, effort_convention=EffortConvention("gravity_compensated"))
    with pytest.raises(RecordingError, match=r"no message of /joint_states names joint\(s\) c, d; it has a, b"):
        Recording.read(path, ["a", "c", "d"])


def test_joint_names_may_change_their_order(tmp_path):
    messages = [message for pair in zip(states(20), states(20, names=["b", "a"]), strict=True) for message in pair]
    recording = Recording.read(write_bag(tmp_path / "bag", [m for i, m in enumerate(messages) if i % 4 in (0, 3)]))
    np.testing.assert_array_equal(recording.position[:, 1], recording.position[:, 0] + 100)


def test_selects_joints_of_one_publisher(tmp_path):
    arm = list(states(20))
    gripper = list(states(20, names=["finger"], stamp=STAMP + 2 * MS, received=START + 2 * MS))
    path = write_bag(tmp_path / "bag", [message for pair in zip(gripper, arm, strict=True) for message in pair])
    assert Recording.read(path, NAMES).n_samples == 20
    assert Recording.read(path, ["finger"]).joint_names == ("finger",)
    with pytest.raises(RecordingError, match=r"name different joints \(a, b; then finger\); give joint_names"):
        Recording.read(path)
    with pytest.raises(RecordingError, match=r"names all of a, finger at once: they come in separate messages"):
        Recording.read(path, ["a", "finger"])


def test_refuses_a_double_publisher(tmp_path):
    path = write_bag(tmp_path / "bag", [message for message in states() for _ in range(2)])
    with pytest.raises(RecordingError, match=r"bag: /joint_states: time repeats at sample 1: 0\.0+ s.*two publishers"):
        Recording.read(path)


def test_refuses_backward_stamps_unless_reception_times_are_used(tmp_path):
    later = states(received=START + 10**9)
    path = write_bag(tmp_path / "bag", [*states(), *later])
    with pytest.raises(RecordingError, match=r"time goes backward at sample 20: .*receive_time=True"):
        Recording.read(path)
    recording = Recording.read(path, receive_time=True)
    assert recording.start_time == pytest.approx(START * 1e-9)
    assert recording.time[20] == pytest.approx(1.0)


def test_uses_reception_times_without_stamps(tmp_path):
    recording = Recording.read(write_bag(tmp_path / "bag", states(stamp=0)))
    assert recording.start_time == pytest.approx(START * 1e-9)
    np.testing.assert_allclose(recording.time, np.arange(20) / 100)


def test_empty_fields_are_nan(tmp_path):
    messages = [("/joint_states", START + i, joint_state(STAMP + i, NAMES, [i, i])) for i in range(3)]
    recording = Recording.read(write_bag(tmp_path / "bag", messages))
    assert np.isnan(recording.velocity).all()
    assert np.isnan(recording.torque).all()


@pytest.mark.parametrize(
    ("message", "match"),
    [
        (joint_state(STAMP + 1, NAMES, [1.0]), "message 1 of /joint_states has 1 values of position for 2 names"),
        (joint_state(STAMP + 1, NAMES, [1, 2], effort=[1, 2, 3]), "message 1 .* has 3 values of effort for 2 names"),
        (joint_state(STAMP + 1, NAMES, [1, np.nan]), "position of joint 'b' is nan at sample 1"),
        (joint_state(STAMP + 1, NAMES, []), "position of joint 'a' is nan at sample 1"),
        (joint_state(STAMP + 1, ["a", "b", "a"], [1, 2, 3]), r"message 1 .* names joint\(s\) a more than once"),
    ],
)
def test_refuses_bad_messages(tmp_path, message, match):
    good = joint_state(STAMP, NAMES, [1, 2])
    path = write_bag(tmp_path / "bag", [("/joint_states", START, good), ("/joint_states", START + 1, message)])
    with pytest.raises(RecordingError, match=match):
        Recording.read(path)


def test_selects_the_joint_states_topic(tmp_path):
    lone = write_bag(tmp_path / "lone", states(topic="/left/joint_states"))
    assert Recording.read(lone).n_samples == 20
    two = write_bag(tmp_path / "two", [*states(5, topic="/left/joint_states"), *states(6, topic="/right/joint_states")])
    with pytest.raises(RecordingError, match=r"2 topics of type .*\(/left/joint_states, /right/joint_states\); give"):
        Recording.read(two)
    assert Recording.read(two, joint_states_topic="right/joint_states").n_samples == 6
    with pytest.raises(RecordingError, match="has no topic /middle; it has /left/joint_states, /right/joint_states"):
        Recording.read(two, joint_states_topic="/middle")
    default = write_bag(tmp_path / "default", [*states(5, topic="/desired"), *states(6)])
    assert Recording.read(default).n_samples == 6


def bag_of(messages):
    return lambda folder: write_bag(folder / "bag", messages)


def bag_of_topics(*topics):
    def write(folder):
        with Writer(folder / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            for topic, kind in topics:
                writer.add_connection(topic, kind, typestore=TYPES)
        return folder / "bag"

    return write


def without_its_file(folder):
    path = write_bag(folder / "bag", states())
    (path / "bag.mcap").unlink()
    return path


def half_a_database(folder):
    path = write_bag(folder / "bag", states(2000), StoragePlugin.SQLITE3)
    file = path / "bag.db3"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return path


STATES, POSES = ("/joint_states", "sensor_msgs/msg/JointState"), ("/tool/pose", "geometry_msgs/msg/PoseStamped")
NO_RECORDINGS = {
    "no names": (bag_of([("/joint_states", START, joint_state(STAMP, [], [1, 2]))]), "/joint_states name no joints"),
    "empty": (bag_of([]), r"bag has 0 topics of type .*\(no topics at all\); record the joint states"),
    "no messages": (bag_of_topics(STATES, POSES), "topic /joint_states has no messages"),
    "no joint states": (
        bag_of([("/ft", START, wrench(STAMP, [1, 2, 3], [4, 5, 6]))]),
        r"has 0 topics of type sensor_msgs/msg/JointState.*\(/ft\)",
    ),
    "no bag": (lambda folder: folder, r"holds no bag.*expected a rosbag2 folder"),
    "two types": (
        bag_of_topics(STATES, ("/joint_states", "std_msgs/msg/String")),
        "topic /joint_states has messages of two types",
    ),
    "no file": (without_its_file, r"holds no bag \(Some database files are missing"),
    "cut database": (half_a_database, r"bag.* damaged"),
}


@pytest.mark.parametrize(("write", "match"), NO_RECORDINGS.values(), ids=NO_RECORDINGS)
def test_refuses_bags_without_a_recording(tmp_path, write, match):
    with pytest.raises(RecordingError, match=match):
        Recording.read(write(tmp_path))


@pytest.mark.parametrize("suffix", [".mcap", ".db3"])
@pytest.mark.parametrize("content", [b"", b"not a bag" * 100], ids=["empty", "garbage"])
def test_refuses_files_that_are_no_bags(tmp_path, suffix, content):
    path = tmp_path / f"run{suffix}"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=rf"run{suffix}.* empty or damaged|run{suffix} has 0 topics"):
        Recording.read(path)


def test_refuses_a_damaged_message(tmp_path):
    path = write_bag(tmp_path / "bag", states())
    file = path / "bag.mcap"
    content = bytearray(file.read_bytes())
    length_of_name = content.index(b"a\x00\x00\x00\x02\x00\x00\x00b\x00") - 4
    content[length_of_name : length_of_name + 4] = b"\xff" * 4
    file.write_bytes(content)
    with pytest.raises(RecordingError, match="bag is damaged after message 0 of /joint_states"):
        Recording.read(path)


def test_reads_a_compressed_and_unsorted_bag(tmp_path):
    compression = pytest.importorskip("mcap.writer").CompressionType.ZSTD
    file = tmp_path / "other.mcap"
    write_mcap(file, states(100), {"/other": 5 * MS, "/joint_states": 0}, chunk_size=2000, compression=compression)
    recording = Recording.read(file)
    np.testing.assert_array_equal(recording.position[:, 0], np.arange(100))


class TestInvalidStamps:
    def read_with_stamps(self, path, stamps):
        messages = list(states(len(stamps)))
        for (_, _, message), stamp in zip(messages, stamps, strict=True):
            message.header = header(int(stamp))
        return Recording.read(write_bag(path, messages))

    def test_remarks_on_equal_stamps(self, tmp_path):
        recording = self.read_with_stamps(tmp_path / "bag", np.full(60, STAMP))
        assert "time stamps are the same" in recording.clock_remark
        assert recording.n_samples == 60
        assert [finding.kind for finding in check(recording) if finding.kind == "time stamps"]

    def test_omits_a_first_message_without_stamp(self, tmp_path):
        stamps = 1_700_000_000 * 10**9 + MS * 4 * np.arange(60)
        stamps[0] = 0
        recording = self.read_with_stamps(tmp_path / "bag", stamps)
        assert recording.n_samples == 59
        assert recording.duration < 1.0
        assert "1 of 60 messages" in recording.clock_remark

    def test_remarks_on_a_first_block_without_stamps(self, tmp_path):
        stamps = STAMP + MS * 4 * np.arange(60)
        stamps[:20] = 0
        recording = self.read_with_stamps(tmp_path / "bag", stamps)
        assert recording.n_samples == 60
        assert "20 of 60 messages" in recording.clock_remark

    def test_valid_stamps_have_no_remark(self, tmp_path):
        assert not self.read_with_stamps(tmp_path / "bag", STAMP + MS * 4 * np.arange(60)).clock_remark
