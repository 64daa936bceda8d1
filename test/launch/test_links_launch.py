"""The launch file for identification, told to identify links."""

import tempfile
import unittest
from pathlib import Path

import pytest

pytest.importorskip("launch_testing", reason="ROS 2 launch_testing is not installed")

import launch_testing.asserts
from launch_client import LaunchClient
from launch_together import SHARE, launched
from std_srvs.srv import Trigger

FOLDER = tempfile.TemporaryDirectory()
ARGUMENTS = {
    "identification": "links",
    "robot_description": str(SHARE / "config" / "demo_arm.urdf"),
    "effort_convention": "torque",
    "acceleration_limits": "[6.0]",
}
PARAMETERS = {
    "excitation": {"design_time": 1.0, "workers": 1},
    "recorder": {"output_folder": FOLDER.name},
    "link_identification": {
        "recording": str(Path(FOLDER.name) / "nowhere"),
        "output": FOLDER.name,
        "friction": "coulomb,viscous",
        "cutoff": 8.0,
    },
}


@pytest.mark.launch_test
def generate_test_description():
    return launched({"identify": ARGUMENTS}, PARAMETERS)


class TestLinks(LaunchClient):
    def test_all_joints_move_and_links_are_asked_for(self):
        answer = self.call(Trigger, "/excitation/design")
        assert answer.success, answer.message
        assert "condition number" in answer.message, "this is not a Fourier motion"
        answer = self.call(Trigger, "/link_identification/identify")
        assert not answer.success
        assert "nowhere does not exist" in answer.message


@launch_testing.post_shutdown_test()
class TestShutdown(unittest.TestCase):
    def test_exit_codes(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)
