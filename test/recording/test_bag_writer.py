"""Bag writer: message types, reception times, completeness after crashes, full disks and split files."""

import gc
import io
import json
import os
import re
import resource
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from bag_files import START, TYPES, joint_state
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import Reader

from dynid_ros.errors import RecordingError
from dynid_ros.recording import Recording, bag_writer, bag_writer as reception_time
from dynid_ros.recording.bag_writer import BagWriter, ReceptionTime, distribution_types, learn

RECORDED = [
    "sensor_msgs/msg/JointState",
    "std_msgs/msg/Float64MultiArray",
    "std_msgs/msg/String",
    "geometry_msgs/msg/WrenchStamped",
    "geometry_msgs/msg/PoseStamped",
    "geometry_msgs/msg/PoseArray",
]


@pytest.mark.parametrize("msgtype", RECORDED)
def test_type_hashes_match_the_installed_distribution(msgtype):
    package, _, name = msgtype.split("/")
    installed = [
        Path(prefix) / "share" / package / "msg" / f"{name}.json"
        for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    ]
    files = [file for file in installed if file.is_file()]
    if not files:
        pytest.skip(f"{package} is not installed (AMENT_PREFIX_PATH)")
    hashes = {entry["type_name"]: entry["hash_string"] for entry in json.loads(files[0].read_text())["type_hashes"]}
    assert distribution_types().hash_rihs01(msgtype) == hashes[msgtype]


def test_unknown_distribution_uses_the_newest(monkeypatch):
    monkeypatch.setenv("ROS_DISTRO", "zeppelin")
    assert "sensor_msgs/msg/JointState" in distribution_types().fielddefs


@pytest.fixture
def driver_package(tmp_path, monkeypatch):
    messages = tmp_path / "prefix" / "share" / "driver_msgs" / "msg"
    messages.mkdir(parents=True)
    (messages / "Arm.msg").write_text("std_msgs/Header header\nMotor[] motors\ngeometry_msgs/Point[2] corners\n")
    (messages / "Motor.msg").write_text("float32 current\nstring<=8 mode\nuint8 OFF=0\n")
    (messages / "Broken.msg").write_text("float64 [ \n")
    (messages / "Orphan.msg").write_text("nowhere_msgs/Thing thing\n")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/none{os.pathsep}{tmp_path / 'prefix'}")


@pytest.mark.usefixtures("driver_package")
def test_learns_installed_types_with_their_parts(tmp_path):
    with BagWriter(tmp_path / "bags") as bag:
        bag.add_topic("/arm", "driver_msgs/msg/Arm")
    content = (bag.path / f"{bag.path.name}.mcap").read_bytes()
    for part in (
        b"driver_msgs/Motor[] motors",
        b"MSG: driver_msgs/Motor\n",
        b"string<=8 mode",
        b"MSG: geometry_msgs/Point\n",
    ):
        assert part in content


@pytest.mark.usefixtures("driver_package")
@pytest.mark.parametrize(
    ("msgtype", "match"),
    [
        ("driver_msgs/msg/None", r"driver_msgs/msg/None is unknown: no .*/None\.msg under AMENT_PREFIX_PATH"),
        ("driver_msgs/msg/Orphan", "nowhere_msgs/msg/Thing is unknown"),
        ("driver_msgs/msg/Broken", "message type driver_msgs/msg/Broken: its definition cannot be read"),
    ],
)
def test_refuses_unknown_types(msgtype, match):
    with pytest.raises(RecordingError, match=match):
        learn(distribution_types(), msgtype)


NS_PER_S = 10**9


class Clocks:
    """Stand-in for the module `time`, with a monotonic clock and an offset of the wall clock."""

    def __init__(self):
        self.steady = 50 * NS_PER_S
        self.set = 1_700_000_000 * NS_PER_S

    def time_ns(self):
        return self.steady + self.set

    def monotonic_ns(self):
        return self.steady


@pytest.fixture
def clocks(monkeypatch):
    clocks = Clocks()
    monkeypatch.setattr(reception_time, "time", clocks)
    return clocks


def test_reception_times_are_those_of_the_middleware(clocks):
    times = ReceptionTime()
    for delay in (0, 10**6, 9 * NS_PER_S):
        clocks.steady += 10 * NS_PER_S
        assert not times.look()
        assert times.of("/a", clocks.time_ns() - delay) == clocks.time_ns() - delay
    assert times.jump == 0.0


@pytest.mark.parametrize("jump", [-3600.0, -0.2, 0.2, 1e6])
def test_reception_times_are_independent_of_clock_changes(clocks, jump):
    times = ReceptionTime()
    clocks.steady += NS_PER_S
    before = [clocks.time_ns() + k * 10**6 for k in range(20)]  # these wait in the queue during the change
    clocks.steady += 20 * 10**6
    clocks.set += round(jump * NS_PER_S)
    after = [clocks.time_ns() + k * 10**6 for k in range(20)]
    clocks.steady += 20 * 10**6
    assert times.look()
    assert not times.look()
    reception = [times.of("/a", received) for received in before + after]
    assert reception == [before[0] + k * 10**6 for k in range(40)]
    assert times.jump == pytest.approx(jump)
    assert times.of("/b", after[3]) == reception[23]


def test_small_step_back_keeps_the_order_of_a_topic(clocks):
    times = ReceptionTime()
    first = times.of("/a", clocks.time_ns())
    clocks.set -= NS_PER_S // 50
    assert not times.look()
    assert times.of("/a", clocks.time_ns()) == first
    clocks.steady += NS_PER_S // 20
    assert times.of("/a", clocks.time_ns()) == clocks.time_ns()


TYPE = "sensor_msgs/msg/JointState"
TOPIC = "/joint_states"
FOREVER = QosTime(9223372036, 854775807)
LATCHED = Qos(
    QosHistory.KEEP_LAST,
    1,
    QosReliability.RELIABLE,
    QosDurability.TRANSIENT_LOCAL,
    FOREVER,
    FOREVER,
    QosLiveliness.AUTOMATIC,
    FOREVER,
    avoid_ros_namespace_conventions=False,
)


def serialize(i):
    return bytes(TYPES.serialize_cdr(joint_state(START + i * 10**6, ["a", "b"], [i, -i]), TYPE))


def write(bag, start, end):
    for i in range(start, end):
        bag.write(TOPIC, START + i * 10**6, serialize(i))


def test_mcap_library_reads_the_bag(tmp_path):
    reader = pytest.importorskip("mcap.reader")
    decoder = pytest.importorskip("mcap_ros2.decoder")
    with BagWriter(tmp_path) as bag:
        bag.add_topic(TOPIC, TYPE, [LATCHED])
        write(bag, 0, 100)
        bag.flush()
        write(bag, 100, 200)
    with (bag.path / f"{bag.path.name}.mcap").open("rb") as stream:
        mcap = reader.make_reader(stream, decoder_factories=[decoder.DecoderFactory()], validate_crcs=True)
        assert mcap.get_header().profile == "ros2"
        summary = mcap.get_summary()
        assert summary.statistics.message_count == 200
        assert summary.statistics.chunk_count == len(summary.chunk_indexes) == 2
        (channel,) = summary.channels.values()
        assert "transient_local" in channel.metadata["offered_qos_profiles"]
        positions = [message.position[0] for _, _, _, message in mcap.iter_decoded_messages()]
    assert positions == list(range(200))


def test_bag_is_complete_after_each_flush(tmp_path):
    with BagWriter(tmp_path / "bags") as bag:
        copies = [shutil.copytree(bag.path, tmp_path / "copy_0")]
        bag.add_topic(TOPIC, TYPE)
        for k in range(1, 6):
            write(bag, 100 * (k - 1), 100 * k)
            bag.flush()
            copies.append(shutil.copytree(bag.path, tmp_path / f"copy_{k}"))
    for k, copy in enumerate(copies):
        with Reader(copy) as reader:
            assert reader.message_count == 100 * k
            assert sum(1 for _ in reader.messages()) == 100 * k
        assert sorted(file.suffix for file in copy.iterdir()) == [".mcap", ".yaml"]


def test_writes_large_messages_between_flushes(tmp_path):
    with BagWriter(tmp_path) as bag:
        bag.add_topic("/urdf", "std_msgs/msg/String")
        text = TYPES.types["std_msgs/msg/String"]("x" * 700_000)
        raw = bytes(TYPES.serialize_cdr(text, "std_msgs/msg/String"))
        for i in range(20):
            bag.write("/urdf", START + i, raw)
            if i % 7 == 0:
                bag.flush()
    with Reader(bag.path) as reader:
        assert [bytes(data) for _, _, data in reader.messages()] == [raw] * 20


def test_metadata_follow_rosbag2(tmp_path):
    with BagWriter(tmp_path) as bag:
        bag.add_topic(TOPIC, TYPE, [LATCHED])
        write(bag, 0, 11)
    info = yaml.safe_load((bag.path / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert info["version"] == 9
    assert info["storage_identifier"] == "mcap"
    assert info["relative_file_paths"] == [f"{bag.path.name}.mcap"]
    assert info["starting_time"] == {"nanoseconds_since_epoch": START}
    assert info["duration"] == {"nanoseconds": 10 * 10**6}
    (topic,) = info["topics_with_message_count"]
    assert topic["message_count"] == 11
    (qos,) = topic["topic_metadata"].pop("offered_qos_profiles")
    assert qos["durability"] == "transient_local"
    assert topic["topic_metadata"] == {
        "name": TOPIC,
        "type": TYPE,
        "serialization_format": "cdr",
        # Hash of ROS 2 Jazzy: share/sensor_msgs/msg/JointState.json
        "type_description_hash": "RIHS01_a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e",
    }


def test_bags_are_never_overwritten(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "strftime", lambda _: "2024_01_02-03_04_05")
    paths = []
    for _ in range(3):
        with BagWriter(tmp_path, prefix="run") as bag:
            paths.append(bag.path.name)
    assert paths == [f"run_2024_01_02-03_04_05{suffix}" for suffix in ("", "_1", "_2")]


def test_name_contains_the_time(tmp_path):
    with BagWriter(tmp_path) as bag:
        assert re.fullmatch(r"recording_\d{4}_\d\d_\d\d-\d\d_\d\d_\d\d", bag.path.name)
        assert bag.path.is_absolute()


def test_refuses_an_unwritable_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecordingError, match=r"cannot write bag .*file/recording.*\(.+\); choose a writable folder"):
        BagWriter(tmp_path / "file")


def _check_complete(path, count, others=0):
    recording = Recording.read(path, joint_states_topic=TOPIC)
    assert not recording.truncated
    np.testing.assert_array_equal(recording.position[:, 0], np.arange(count))
    with Reader(path) as reader:
        assert reader.message_count == count + others
    listed = yaml.safe_load((path / "metadata.yaml").read_text())["rosbag2_bagfile_information"]["relative_file_paths"]
    assert sorted(file.name for file in path.iterdir()) == sorted([*listed, "metadata.yaml"])


def _fill(bag, flush, flushed):
    for end in range(sum(flushed) + flush, 10**6, flush):
        write(bag, end - flush, end)
        bag.flush()
        flushed.append(end)


@pytest.mark.parametrize("flush", [pytest.param(10, marks=pytest.mark.slow), 100])
def test_full_disk_leaves_a_complete_bag(small_disk, flush):
    bag = BagWriter(small_disk)
    bag.add_topic(TOPIC, TYPE)
    flushed: list[int] = []
    with pytest.raises(RecordingError, match=r"cannot write bag .*No space left.*free space"):
        _fill(bag, flush, flushed)
    end = flushed[-1]
    assert end > 500
    _check_complete(bag.path, end)
    with pytest.raises(RecordingError, match="No space left"):
        write(bag, 0, 1)
    with pytest.raises(RecordingError, match="No space left"):
        bag.close()
    del bag
    gc.collect()  # the rest of the buffer must not be written
    (path,) = (path for path in small_disk.iterdir() if path.is_dir())
    _check_complete(path, end)


@pytest.mark.parametrize("chunks", [3, 100])
def test_kill_at_any_write_keeps_data_of_the_last_flush(tmp_path, monkeypatch, chunks):
    monkeypatch.setattr(bag_writer, "CHUNKS_PER_FILE", chunks)
    flushed = 0
    copies = []

    def copy_bags():
        copies.append((flushed, shutil.copytree(tmp_path / "bags", tmp_path / f"copy_{len(copies)}")))

    class Watched(io.FileIO):
        def write(self, data):
            half = len(data) // 2
            super().write(data[:half])
            copy_bags()
            super().write(data[half:])
            copy_bags()
            return len(data)

        def truncate(self, size=None):
            size = super().truncate(size)
            copy_bags()
            return size

    monkeypatch.setattr(bag_writer.io, "FileIO", Watched)
    with BagWriter(tmp_path / "bags") as bag:
        bag.add_topic(TOPIC, TYPE)
        for end in range(100, 600, 100):
            write(bag, end - 100, end)
            bag.flush()
            flushed = end
    assert len(copies) > 15
    for count, copy in copies:
        (path,) = copy.iterdir()
        if count:
            recording = Recording.read(path)
            assert recording.n_samples >= count
            np.testing.assert_array_equal(recording.position[:, 0], np.arange(recording.n_samples))
            info = yaml.safe_load((path / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
            assert count <= info["message_count"] <= recording.n_samples


def test_does_not_use_a_folder_of_another_process(tmp_path, monkeypatch):
    opened = bag_writer.Writer.open

    def late(writer):
        if not writer.path.name.endswith("_1"):
            writer.path.mkdir(parents=True)
        opened(writer)

    monkeypatch.setattr(bag_writer.Writer, "open", late)
    monkeypatch.setattr(time, "strftime", lambda _: "now")
    with BagWriter(tmp_path) as bag:
        assert bag.path.name == "recording_now_1"
    assert not list((tmp_path / "recording_now").iterdir())


@pytest.fixture
def short_files(monkeypatch):
    """Limit files to three chunks."""
    monkeypatch.setattr(bag_writer, "CHUNKS_PER_FILE", 3)


def write_in_flushes(bag, start, end):
    for first in range(start, end, 100):
        write(bag, first, first + 100)
        bag.flush()


def test_long_recording_is_split_into_files(tmp_path, short_files):
    with BagWriter(tmp_path) as bag:
        bag.add_topic(TOPIC, TYPE, [LATCHED])
        write_in_flushes(bag, 0, 400)
        bag.add_topic("/later", TYPE)
        bag.write("/later", START + 400 * 10**6, serialize(400))
        write_in_flushes(bag, 400, 800)
    name = bag.path.name
    files = [f"{name}.mcap", f"{name}_1.mcap", f"{name}_2.mcap"]
    assert sorted(file.name for file in bag.path.iterdir()) == sorted([*files, "metadata.yaml"])
    _check_complete(bag.path, 800, others=1)
    information = yaml.safe_load((bag.path / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert information["relative_file_paths"] == files
    assert [file["path"] for file in information["files"]] == files
    assert [file["message_count"] for file in information["files"]] == [300, 301, 200]
    starts = [file["starting_time"]["nanoseconds_since_epoch"] for file in information["files"]]
    assert starts == [START, START + 300 * 10**6, START + 600 * 10**6]
    assert [file["duration"]["nanoseconds"] for file in information["files"]] == [299 * 10**6, 299 * 10**6, 199 * 10**6]
    assert information["duration"]["nanoseconds"] == 799 * 10**6
    reader = pytest.importorskip("mcap.reader")
    for file, count in zip(files, (300, 301, 200), strict=True):
        with (bag.path / file).open("rb") as stream:
            mcap = reader.make_reader(stream, validate_crcs=True)
            assert mcap.get_summary().statistics.message_count == count
            assert len(list(mcap.iter_messages())) == count
        assert Recording.read(bag.path / file, joint_states_topic=TOPIC).n_samples == (200 if count == 200 else 300)


def test_recording_may_end_with_a_full_file(tmp_path, short_files):
    with BagWriter(tmp_path) as bag:
        bag.add_topic(TOPIC, TYPE)
        write_in_flushes(bag, 0, 300)
    _check_complete(bag.path, 300)


@pytest.mark.parametrize(("flush", "full"), [(100, 0), (100, 30_000), pytest.param(10, 10_000, marks=pytest.mark.slow)])
def test_full_disk_in_a_second_file_leaves_a_complete_bag(tmp_path, short_files, flush, full):
    """The disk is full at the first byte, in the second chunk, or where the list of files no longer fits."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    bag = BagWriter(tmp_path)
    bag.add_topic(TOPIC, TYPE)
    write_in_flushes(bag, 0, 300)
    flushed = [300]
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (full, before[1]))
        with pytest.raises(RecordingError, match="File too large"):
            _fill(bag, flush, flushed)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (flushed[-1] > 300) == (full > 0)
    _check_complete(bag.path, flushed[-1])


def test_rewritten_data_do_not_grow_with_the_recording(tmp_path, monkeypatch):
    """Only the index of the current file is kept."""
    monkeypatch.setattr(bag_writer, "CHUNKS_PER_FILE", 10)
    ends = []
    with BagWriter(tmp_path) as bag:
        bag.add_topic(TOPIC, TYPE)
        for k in range(0, 500, 10):
            write(bag, k, k + 10)
            bag.flush()
            assert bag._storage.chunk.bio.tell() == 0
            assert len(bag._storage.chunks) < 10
            ends.append(len(bag._file._end))
    assert ends[8] - ends[1] > 7 * 50, "an index grows"
    assert max(ends) < ends[8] + 100
