"""The launch file of the controller routes beside the simulator: it asks the simulated controller for its joints."""

import tempfile
import time
import unittest
from pathlib import Path

import pytest

pytest.importorskip("launch_testing", reason="ROS 2 launch_testing is not installed")

import demo_arm_model
import launch_testing.asserts
from launch_client import LaunchClient
from launch_together import launched
from lifecycle_msgs.srv import GetState

FOLDER = tempfile.TemporaryDirectory()
ARGUMENTS = {
    "simulate": {"controller": "trajectory_effort"},
    "controller_stack": {
        "route": "trajectory",
        "model_file": str(demo_arm_model.write(Path(FOLDER.name) / "identified.yaml")),
    },
}
START_TIME = 60.0


@pytest.mark.launch_test
def generate_test_description():
    return launched(ARGUMENTS, {"simulator": {"rate": 100.0}})


class TestRoute(LaunchClient):
    def test_the_node_becomes_active_once_the_controller_has_answered(self):
        deadline = time.monotonic() + START_TIME
        while self.call(GetState, "/gravity_compensation/get_state").current_state.label != "active":
            assert time.monotonic() < deadline, "it did not become active"
            time.sleep(0.2)


@launch_testing.post_shutdown_test()
class TestShutdown(unittest.TestCase):
    def test_exit_codes(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)
