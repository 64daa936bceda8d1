"""The simulated arm as hardware of a real controller manager; skips where ros2_control is not installed."""

import time
import unittest

import numpy as np
import pytest

pytest.importorskip("launch_testing", reason="ROS 2 launch_testing is not installed")

from ament_index_python.packages import PackageNotFoundError, get_package_prefix

for needed in (
    "controller_manager",
    "joint_state_broadcaster",
    "joint_trajectory_controller",
    "forward_command_controller",
    "joint_state_topic_hardware_interface",
):
    try:
        get_package_prefix(needed)
    except PackageNotFoundError:
        pytest.skip(f"ros2_control is not all there: package {needed} is not installed", allow_module_level=True)

import launch_testing.asserts
import rclpy
from launch_client import LaunchClient
from launch_together import launched
from rcl_interfaces.srv import GetParameters
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

START_TIME = 60.0
NAMES = [f"joint_{i}" for i in range(1, 7)]
SAG = 0.05
"""More than the servo without model gives way, rad."""


@pytest.mark.launch_test
def generate_test_description():
    return launched({"simulate": {"controller": "ros2_control", "namespace": "left"}})


class TestRealControllers(LaunchClient):
    def setUp(self):
        super().setUp()
        self.states = []
        self.node.create_subscription(JointState, "/left/joint_states", self.states.append, qos_profile_sensor_data)

    def until(self, condition, what):
        deadline = time.monotonic() + START_TIME
        while not condition():
            assert time.monotonic() < deadline, what
            rclpy.spin_once(self.node, timeout_sec=0.1)

    def position(self):
        latest = self.states[-1]
        return np.array([latest.position[latest.name.index(name)] for name in NAMES])

    def test_the_broadcaster_tells_the_simulators_states_and_trajectories_move_it(self):
        self.until(lambda: self.states, "no joint states from the broadcaster")
        assert len(self.states[-1].effort) == len(NAMES), "with the torque, which the identification needs"
        publisher = self.node.create_publisher(
            JointTrajectory, "/left/joint_trajectory_controller/joint_trajectory", 10
        )
        self.until(publisher.get_subscription_count, "no joint_trajectory_controller")
        start = self.position()
        point = JointTrajectoryPoint(positions=(start + 0.3).tolist(), velocities=[0.0] * len(NAMES))
        point.time_from_start.sec = 3

        def arrived():
            if not len(self.states) % 50:  # it takes none until it is active
                publisher.publish(JointTrajectory(joint_names=NAMES, points=[point]))
            return np.abs(self.position() - start - 0.3).max() < SAG

        self.until(arrived, "the arm did not follow")

    def test_the_controllers_are_loaded_as_the_file_says(self):
        for controller, name in (
            ("joint_trajectory_controller", "interpolate_from_desired_state"),
            ("forward_effort_controller", "interface_name"),
        ):
            client = self.node.create_client(GetParameters, f"/left/{controller}/get_parameters")
            assert client.wait_for_service(timeout_sec=START_TIME), f"{controller} was not loaded"
            future = client.call_async(GetParameters.Request(names=[name]))
            rclpy.spin_until_future_complete(self.node, future, timeout_sec=START_TIME)
            (value,) = future.result().values
            assert value.bool_value or value.string_value == "effort"


@launch_testing.post_shutdown_test()
class TestShutdown(unittest.TestCase):
    def test_the_simulator_ends_well(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info, process="simulator")
