"""Bags read by rosbag2_py; where it is not installed, rosbags imitates it."""

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
    """Imitation of rosbag2_py's reader (Jazzy, _reader.pyi): raw messages of the selected topics."""

    def open_uri(self, uri):
        try:
            self.bag = Reader(uri)
            self.bag.open()
        except Exception as error:
            raise RuntimeError(f"No storage could be initialized: {error}") from error
        self.wanted = None

    def get_all_topics_and_types(self):
        return [SimpleNamespace(name=connection.topic, type=connection.msgtype) for connection in self.bag.connections]

    def set_filter(self, storage_filter):
        connections = [entry for entry in self.bag.connections if entry.topic in storage_filter.topics]
        self.rest = list(self.bag.messages(connections))

    def has_next(self):
        return bool(self.rest)

    def read_next(self):
        connection, time, raw = self.rest.pop(0)
        return connection.topic, bytes(raw), time


@pytest.fixture(autouse=True)
def _without_rosbags(monkeypatch):
    if not find_spec("rosbag2_py"):
        stand_in = ModuleType("rosbag2_py")
        stand_in.SequentialReader = SequentialReader
        stand_in.StorageFilter = SimpleNamespace
        monkeypatch.setitem(sys.modules, "rosbag2_py", stand_in)
    monkeypatch.delitem(sys.modules, "dynid_ros.recording.rosbag2_bag", raising=False)
    monkeypatch.setattr(bags, "find_spec", lambda name: name != "rosbags")
    yield
    sys.modules.pop("dynid_ros.recording.rosbag2_bag", None)


def test_recording_equals_that_of_rosbags(tmp_path, monkeypatch):
    path = write_bag(tmp_path / "bag", STATES)
    recording = Recording.read(path)
    monkeypatch.undo()
    other = Recording.read(path)
    assert recording.joint_names == other.joint_names
    for name in ("time", "position", "velocity", "torque"):
        np.testing.assert_array_equal(getattr(recording, name), getattr(other, name))


def test_refuses_a_file_that_is_no_bag(tmp_path):
    path = tmp_path / "no.mcap"
    path.write_bytes(b"nothing")
    with pytest.raises(RecordingError, match=r"cannot read .*no\.mcap .*install rosbags"):
        Recording.read(path)


def test_refuses_bags_without_either_library(tmp_path, monkeypatch):
    path = write_bag(tmp_path / "bag", STATES)
    monkeypatch.setattr(bags, "find_spec", lambda name: None)
    with pytest.raises(RecordingError, match=r"bags need rosbags .* or rosbag2_py"):
        Recording.read(path)
