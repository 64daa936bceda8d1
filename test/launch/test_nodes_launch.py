"""Test the launch files of single nodes together, with the simulator as robot."""

import tempfile
import time
import unittest
from pathlib import Path

import pytest

pytest.importorskip("launch_testing", reason="ROS 2 launch_testing is not installed")

import launch_testing.asserts
from launch_client import LaunchClient
from launch_together import describe_launch
from lifecycle_msgs.srv import GetState
from std_srvs.srv import Trigger

FOLDER = tempfile.TemporaryDirectory()
OUTPUT = Path(FOLDER.name)
ARGUMENTS = {
    "simulate": {},
    "identify": {"effort_convention": "torque", "acceleration_limits": "[6.0]"},
    "gravity_compensation": {"autostart": "false"},
}
PARAMETERS = {
    "simulator": {"rate": 100.0},
    "excitation": {"steps": 5},
    "recorder": {"output_folder": str(OUTPUT / "bags"), "autostart": True},
    "gravity_identification": {"recording": str(OUTPUT / "nowhere"), "output": str(OUTPUT)},
    "gravity_compensation": {"torque_limits": [1.0]},
}


@pytest.mark.launch_test
def generate_test_description():
    return describe_launch(ARGUMENTS, PARAMETERS)


class TestNodes(LaunchClient):
    def test_services_answer(self):
        assert self.call(Trigger, "/simulator/reset").success
        answer = self.call(Trigger, "/excitation/design")
        assert answer.success, answer.message
        answer = self.call(Trigger, "/gravity_identification/identify")
        assert not answer.success
        assert f"{OUTPUT / 'nowhere'} does not exist" in answer.message
        assert self.call(GetState, "/gravity_compensation/get_state").current_state.label == "unconfigured"

    def test_records_from_the_start(self):
        assert self.call(Trigger, "/simulator/reset").success
        time.sleep(1.0)
        answer = self.call(Trigger, "/recorder/stop")
        assert answer.success, answer.message
        assert len(list((OUTPUT / "bags").iterdir())) == 1


@launch_testing.post_shutdown_test()
class TestShutdown(unittest.TestCase):
    def test_exit_codes(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)
