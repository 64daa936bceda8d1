"""The launch file of the controller routes beside the simulator: it asks the simulated controller for its joints."""

import tempfile
import time
import unittest
from pathlib import Path

import pytest

pytest.importorskip("launch_testing", reason="ROS 2 launch_testing is not installed")

import demo_arm_model
import launch_testing.actions
import launch_testing.asserts
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription
from launch_client import LaunchClient
from lifecycle_msgs.srv import GetState

try:
    LAUNCH = Path(get_package_share_directory("dynid_ros")) / "launch"
except PackageNotFoundError:
    pytest.skip("dynid_ros is not installed by colcon", allow_module_level=True)

FOLDER = tempfile.TemporaryDirectory()
ARGUMENTS = {
    "simulate": {"rate": "100", "controller": "trajectory_effort"},
    "controller_stack": {
        "route": "trajectory",
        "model_file": str(demo_arm_model.write(Path(FOLDER.name) / "identified.yaml")),
    },
}
START_TIME = 60.0


@pytest.mark.launch_test
def generate_test_description():
    included = [
        # scoped, for the files share argument names
        GroupAction(
            [IncludeLaunchDescription(str(LAUNCH / f"{name}.launch.py"), launch_arguments=arguments.items())],
            scoped=True,
            forwarding=False,
        )
        for name, arguments in ARGUMENTS.items()
    ]
    return LaunchDescription([*included, launch_testing.actions.ReadyToTest()])


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
