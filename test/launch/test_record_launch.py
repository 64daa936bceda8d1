"""The launch file of the recorder records from its start, and ends with a whole bag."""

import tempfile
import time
import unittest
from pathlib import Path

import pytest

pytest.importorskip("launch_testing", reason="ROS 2 launch_testing is not installed")

import launch_testing.asserts
from launch_client import LaunchClient
from launch_together import launched
from std_srvs.srv import Trigger

from dynid_ros.recording import Recording

FOLDER = tempfile.TemporaryDirectory()
ENOUGH = 20_000
"""Bytes of some fifty joint states."""
ARGUMENTS = {"simulate": {}, "record": {"output_folder": FOLDER.name}}


@pytest.mark.launch_test
def generate_test_description():
    return launched(ARGUMENTS, {"simulator": {"rate": 100.0}})


class TestRecord(LaunchClient):
    def test_something_is_recorded(self):
        assert self.call(Trigger, "/simulator/reset").success
        deadline = time.monotonic() + 30.0
        while sum(path.stat().st_size for path in Path(FOLDER.name).rglob("*.mcap")) < ENOUGH:
            assert time.monotonic() < deadline, "no bag with joint states in it"
            time.sleep(0.1)


@launch_testing.post_shutdown_test()
class TestShutdown(unittest.TestCase):
    def test_exit_codes(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)

    def test_bag_is_whole(self):
        (bag,) = Path(FOLDER.name).iterdir()
        assert len(Recording.read(bag).time) > 10
