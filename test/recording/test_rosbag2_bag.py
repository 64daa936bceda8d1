"""Bags by the reader of ROS 2 itself. Where it is not installed, what it reads is read for it by rosbags."""

import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from bag_files import START, joint_state, write_bag
from rosbags.rosbag2 import Reader

pytest.importorskip("rclpy")

from dynid_ros.errors import RecordingError
from dynid_ros.recording import Recording, bag_reader as bags

STATES = [("/joint_states", START + i * 10**7, joint_state(START + i * 10**7, ["a", "b"], [i, -i])) for i in range(50)]


class SequentialReader:
    """As rosbag2_py's of Jazzy (its _reader.pyi): raw messages of the topics in the filter."""

    def open_uri(self, uri):
        try:
            self.bag = Reader(uri)
            self.bag.open()
        except Exception as error:
            raise RuntimeError(f"No storage could be initialized: {error}") from error
        self.wanted = None

    def get_all_topics_and_types(self):
        return [SimpleNamespace(name=each.topic, type=each.msgtype) for each in self.bag.connections]

    def set_filter(self, found):
        of = [each for each in self.bag.connections if each.topic in found.topics]
        self.rest = list(self.bag.messages(of))

    def has_next(self):
        return bool(self.rest)

    def read_next(self):
        connection, time, raw = self.rest.pop(0)
        return connection.topic, bytes(raw), time


@pytest.fixture(autouse=True)
def _without_rosbags(monkeypatch):
    if not find_spec("rosbag2_py"):
        stand_in = ModuleType("rosbag2_py")
        stand_in.SequentialReader, stand_in.StorageFilter = SequentialReader, SimpleNamespace
        monkeypatch.setitem(sys.modules, "rosbag2_py", stand_in)
    monkeypatch.delitem(sys.modules, "dynid_ros.recording.rosbag2_bag", raising=False)
    monkeypatch.setattr(bags, "find_spec", lambda name: name != "rosbags")
    yield
    sys.modules.pop("dynid_ros.recording.rosbag2_bag", None)


def test_a_recording_is_as_rosbags_reads_it(tmp_path, monkeypatch):
    path = write_bag(tmp_path / "bag", STATES)
    it = Recording.read(path)
    monkeypatch.undo()
    other = Recording.read(path)
    assert it.joint_names == other.joint_names
    for name in ("time", "position", "velocity", "torque"):
        np.testing.assert_array_equal(getattr(it, name), getattr(other, name))


def test_a_file_that_is_no_bag_is_named(tmp_path):
    path = tmp_path / "no.mcap"
    path.write_bytes(b"nothing")
    with pytest.raises(RecordingError, match=r"cannot read .*no\.mcap .*install rosbags"):
        Recording.read(path)


def test_without_either_library_both_are_named(tmp_path, monkeypatch):
    path = write_bag(tmp_path / "bag", STATES)
    monkeypatch.setattr(bags, "find_spec", lambda name: None)
    with pytest.raises(RecordingError, match=r"bags need rosbags .* or rosbag2_py"):
        Recording.read(path)
