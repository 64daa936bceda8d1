"""Test that the demo's arm waits for a simulated arm that a busy computer delays."""

from types import SimpleNamespace

import planar_arm
import pytest
from helpers.node_threads import NodeThreads
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.demo import arm as demo_arm
from dynid_ros.nodes.shared.child_process import ServiceCaller
from dynid_ros.nodes.shared.robot_description import ROBOT_PARAMETERS

DELAY_S = 0.6
"""Delay in s of the arm's clock behind the computer's, longer than `REST_TIME_S`."""
PERIOD_S = 0.01
TOPIC = "arm/joint_trajectory"
POSE = (0.2, -0.1, 0.3)


class DelayedArm(Node):
    """Arm that follows the last trajectory linearly, with a clock that falls behind while it moves."""

    def __init__(self):
        super().__init__("delayed_arm")
        self.names = list(planar_arm.JOINTS)
        self.time = 100.0
        self.begin = None
        self.duration = 1.0
        self.progress = 0.0
        self.debt = 0.0
        self.publisher = self.create_publisher(JointState, "joint_states", 100)
        self.create_subscription(JointTrajectory, TOPIC, self.on_trajectory, 10)
        self.create_timer(PERIOD_S, self.cycle)

    def on_trajectory(self, message):
        time = message.points[0].time_from_start
        self.begin = self.time
        self.duration = time.sec + 1e-9 * time.nanosec
        self.debt = DELAY_S

    def cycle(self):
        if self.debt > 0.0:
            self.debt -= PERIOD_S
            return
        self.time += PERIOD_S
        if self.begin is not None:
            self.progress = min((self.time - self.begin) / self.duration, 1.0)
        state = JointState(name=self.names, position=[self.progress * angle for angle in POSE])
        state.header.stamp.sec = int(self.time)
        state.header.stamp.nanosec = int(1e9 * (self.time % 1.0))
        self.publisher.publish(state)


@pytest.fixture(name="delayed_arm")
def fixture_delayed_arm(ros):
    node = DelayedArm()
    threads = NodeThreads(node)
    yield node
    threads.close()
    node.destroy_node()


def test_move_ends_when_the_delayed_arm_rests(delayed_arm):
    values = {parameter.name: parameter.default for parameter in ROBOT_PARAMETERS}
    settings = SimpleNamespace(**values | {"robot_description": planar_arm.urdf(), "command_topic": TOPIC})
    node = Node("demo_arm_test")
    try:
        arm = demo_arm.DemoArm(node, ServiceCaller(node), settings)
        arm.move(POSE)
        assert delayed_arm.time >= delayed_arm.begin + delayed_arm.duration + demo_arm.REST_TIME_S - 2 * PERIOD_S
        assert delayed_arm.progress == 1.0
    finally:
        node.destroy_node()
