"""The launch file of the demo brings up all its nodes; the first act begins."""

import tempfile
import unittest
from pathlib import Path

import pytest

pytest.importorskip("launch_testing", reason="ROS 2 launch_testing is not installed")

import launch_testing.actions
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription

try:
    LAUNCH = Path(get_package_share_directory("dynid_ros")) / "launch"
except PackageNotFoundError:
    pytest.skip("dynid_ros is not installed by colcon", allow_module_level=True)


FOLDER = tempfile.TemporaryDirectory()


@pytest.mark.launch_test
def generate_test_description():
    arguments = {"output": FOLDER.name}.items()
    demo = IncludeLaunchDescription(str(LAUNCH / "demo.launch.py"), launch_arguments=arguments)
    return LaunchDescription([demo, launch_testing.actions.ReadyToTest()])


class TestDemo(unittest.TestCase):
    def test_first_act(self, proc_output):
        proc_output.assertWaitFor("1/", timeout=60.0, stream="stdout")
