"""The arm beside other devices on the same topic."""

import time
from types import SimpleNamespace

import planar_arm
import pytest

rclpy = pytest.importorskip("rclpy")

from helpers.waiting import START_TIME, wait  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from dynid_ros.model import RobotModel  # noqa: E402
from dynid_ros.nodes.experiment.trajectory_execution import Arm  # noqa: E402
from dynid_ros.trajectories import MotionLimits  # noqa: E402

LIMITS = MotionLimits.of(RobotModel.from_urdf(planar_arm.urdf()), 2.0, torque_limits=[50.0, 40.0, 30.0])
SETTINGS = SimpleNamespace(
    command_topic="commands",
    command_interface="auto",
    action_name="",
    accept_jerk=False,
    controller_joints=[""],
    tracking_error_limit=[0.1],
    effort_limit=[float("nan")],
    effort_grace=0.1,
    stale_after=1.0,
)


def test_a_state_of_the_arm_counts_though_a_gripper_spoke_after_it(ros):
    node, driver = rclpy.create_node("arm"), rclpy.create_node("driver")
    arm = Arm(node, SETTINGS, LIMITS, on_halt=str, on_rest=str)
    assert "no usable joint_states" in arm.doubt
    publisher = driver.create_publisher(JointState, "joint_states", 10)
    wait(lambda: publisher.get_subscription_count() > 0, START_TIME)
    publisher.publish(JointState(name=list(planar_arm.JOINTS), position=[0.1, 0.2, 0.3]))
    publisher.publish(JointState(name=["finger"], position=[0.0]))
    time.sleep(0.5)  # until both wait
    arm.watch()
    assert time.monotonic() - arm.states.received < 10.0
    assert (
        arm.doubt == f"no controller listens on '/{SETTINGS.command_topic}'; start it, or set parameter command_topic"
    )
    for made in (node, driver):
        made.destroy_node()
