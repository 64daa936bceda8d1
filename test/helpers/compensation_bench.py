"""Bench of the node `gravity_compensation` on the planar arm, with a driver and a listener."""

import math
import time
from itertools import pairwise
from typing import Any

import planar_arm
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from helpers.command_watch import JITTER_S, CommandWatch, torque_of
from helpers.node_process import NodeProcess
from helpers.node_threads import NodeThreads, call
from helpers.waiting import wait
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from dynid_ros.nodes.compensation import loop
from dynid_ros.nodes.gravity_compensation import GravityCompensation

LATCHED = QoSProfile(depth=20, durability=DurabilityPolicy.TRANSIENT_LOCAL)
EFFORT_TOPIC = "/forward_effort_controller/commands"
RAMP_S = 0.3
FAULT_RAMP_S = 0.3
PERIOD_S = 0.01
LONG_TIMEOUT_S = 10.0
"""Timeout in s of joint states in tests without this fault, long because the tests share a busy computer."""
TIMEOUT_S = 1.0
"""Timeout in s of joint states in tests of this fault."""
EFFORT_LIMIT = 50.0  # N m, effort limit of each joint in the URDF
POSE = [0.5, 0.3, -0.4]


class Robot(Node):
    """Driver that publishes joint states at 100 Hz, and listener of the compensation."""

    def __init__(self, message=Float64MultiArray, topic=EFFORT_TOPIC):
        super().__init__("robot")
        self.names = list(planar_arm.JOINTS)
        self.position = list(POSE)
        self.silent = False
        self.stamp = None
        self.late = 0.0  # s, largest delay of the timer
        self._published = math.inf
        self.spoil = lambda message: None  # changes each joint state
        self.watch = CommandWatch()
        self.states: list[str] = []
        self.diagnostics: list[Any] = []
        best_effort = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
        self.publisher = self.create_publisher(JointState, "joint_states", best_effort)
        self.create_timer(PERIOD_S, self._tick)
        self.controller = self.create_subscription(message, topic, self.watch, 1000)
        self.create_subscription(String, "/gravity_compensation/state", lambda m: self.states.append(m.data), LATCHED)
        self.create_subscription(DiagnosticArray, "/diagnostics", lambda m: self.diagnostics.append(m.status[0]), 10)

    @property
    def commands(self):
        return self.watch.commands

    def stop_listening(self):
        """End the controller's subscription; the robot's thread does it, because it may wait for this subscription."""
        self.executor.create_task(self.destroy_subscription, self.controller)

    def _tick(self):
        before = self._published
        self._published = time.monotonic()
        self.late = max(self.late, self._published - before - PERIOD_S)
        self.publish()

    def publish(self):
        if not self.silent:
            message = JointState(name=self.names, position=[float(value) for value in self.position])
            message.header.stamp = self.stamp or self.get_clock().now().to_msg()
            self.spoil(message)
            self.publisher.publish(message)


class Bench:
    """Node under test and robot, each in a thread; `close` asserts that no torque stepped."""

    def __init__(self, model_file, message=Float64MultiArray, topic=EFFORT_TOPIC, driver=Robot, **parameters):
        values = {
            "robot_description": planar_arm.urdf(),
            "model_file": str(model_file),
            "ramp_time": RAMP_S,
            "fault_ramp_time": FAULT_RAMP_S,
            "timeout": LONG_TIMEOUT_S,
            "unchecked_controller": True,
            "position_controller": "",
            "scale": [1.0],
            "assume_no_effort": True,
            "descent_time": 0.0,
            "speed_limit": [1e9],  # the robot's position may jump
            "watch_motion": False,
        } | parameters
        self.limit = max(values.get("torque_limits", [EFFORT_LIMIT]))
        self.start: list[float] | None = None  # torque that acts before the first command; None: zero
        self.rate = max(values.get("max_rate", [self.limit / values["fault_ramp_time"]]))
        self.robot = driver(message, topic)
        self.node = GravityCompensation(parameter_overrides=[Parameter(k, value=v) for k, v in values.items()])
        self.threads = NodeThreads(self.robot, self.node)

    def close(self):
        self.threads.close()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "END_DESCENT_S", 0.0)  # no joint state comes any more, so no descent is possible
            self.node.end()
        self.node.destroy_node()
        self.robot.destroy_node()
        self.robot.watch.check(self.rate, self.limit, self.robot.late, start=self.start)

    def call(self, kind, name, request):
        return call(self.robot, kind, f"/gravity_compensation/{name}", request)

    def transition(self, identifier):
        return self.call(ChangeState, "change_state", ChangeState.Request(transition=Transition(id=identifier))).success

    def configure(self):
        return self.transition(Transition.TRANSITION_CONFIGURE)

    def activate(self):
        assert self.configure()
        assert self.transition(Transition.TRANSITION_ACTIVATE)

    def enable(self, on=True):
        return self.call(SetBool, "enable", SetBool.Request(data=on))

    def reload(self):
        return self.call(Trigger, "reload", Trigger.Request())

    def run(self):
        self.activate()
        wait(lambda: self.robot.publisher.get_subscription_count() and self.node._loop.compensator.position)
        self.enable_until_active()
        return self

    def enable_until_active(self):
        """Enable, repeatedly if joint states become stale on a busy computer."""
        deadline = time.monotonic() + 30.0
        while self.state != "active":
            assert time.monotonic() < deadline, "timed out"
            answer = self.enable()
            assert answer.success or "no new joint state" in answer.message, answer.message
            wait(lambda: self.state in ("active", "disabled") or self.state.startswith("fault"))

    @property
    def state(self):
        return self.robot.states[-1] if self.robot.states else ""

    @property
    def torque(self):
        return torque_of(self.robot.commands[-1][1])

    def torques(self):
        return self.robot.watch.torques()

    def wait_for_torque(self, torque):
        wait(lambda: self.robot.commands and self.torque == pytest.approx(torque, abs=1e-9))

    def check_fade(self, safe):
        """Assert that the last commands fall from `safe` to zero linearly, followed by silence."""
        wait(lambda: not any(self.torque))
        commands = [(sent, torque_of(message)) for sent, message in list(self.robot.commands)]
        start = max(i for i, (_, torque) in enumerate(commands) if torque == pytest.approx(safe, abs=1e-6))
        slope = abs(safe[1]) / FAULT_RAMP_S
        jitter = JITTER_S + self.robot.late
        for (before, last), (sent, torque) in pairwise(commands[start:]):
            assert 0.0 <= abs(last[1]) - abs(torque[1]) <= slope * (sent - before + jitter)
        start_time = commands[min(start + 1, len(commands) - 1)][0]
        end_time = commands[-1][0]
        assert end_time - commands[start][0] > FAULT_RAMP_S - jitter
        assert end_time - start_time < FAULT_RAMP_S + PERIOD_S + jitter
        time.sleep(0.1)
        assert len(self.robot.commands) == len(commands)


def start_process(model_file, tmp_path, timeout):
    """Start the node as a process that becomes active with the first joint states."""
    (tmp_path / "planar.urdf").write_text(planar_arm.urdf())
    parameters = {
        "robot_description": tmp_path / "planar.urdf",
        "model_file": model_file,
        "autostart": "true",
        "enable_on_activate": "true",
        "ramp_time": RAMP_S,
        "fault_ramp_time": FAULT_RAMP_S,
        "timeout": timeout,
        "unchecked_controller": "true",
        "assume_no_effort": "true",
        "scale": "[1.0]",
    }
    return NodeProcess("gravity_compensation", parameters)
