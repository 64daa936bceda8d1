"""The node `gravity_compensation` on the planar arm, beside a driver and all that listens to the node."""

import math
import time
from itertools import pairwise
from typing import Any

import planar_arm
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from helpers.command_watch import JITTER, CommandWatch, torque_of
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
RAMP = 0.3
FAULT_RAMP = 0.3
PERIOD = 0.01
CALM = 10.0
"""s without joint states until there is a fault, in tests that want none: the machine that runs them is busy."""
TIMEOUT = 1.0
"""The same in tests that want one."""
EFFORT = 50.0  # N m, of each joint in the URDF
POSE = [0.5, 0.3, -0.4]


class Robot(Node):
    """A driver that publishes joint states at 100 Hz, and everything that listens to the compensation."""

    def __init__(self, message=Float64MultiArray, topic=EFFORT_TOPIC):
        super().__init__("robot")
        self.names = list(planar_arm.JOINTS)
        self.position = list(POSE)
        self.silent = False
        self.stamp = None
        self.late = 0.0  # s, at worst
        self._published = math.inf
        self.spoil = lambda message: None  # what is wrong with a joint state
        self.watch = CommandWatch()
        self.states: list[str] = []
        self.diagnostics: list[Any] = []
        best_effort = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
        self.publisher = self.create_publisher(JointState, "joint_states", best_effort)
        self.create_timer(PERIOD, self._tick)
        self.controller = self.create_subscription(message, topic, self.watch, 1000)
        self.create_subscription(String, "/gravity_compensation/state", lambda m: self.states.append(m.data), LATCHED)
        self.create_subscription(DiagnosticArray, "/diagnostics", lambda m: self.diagnostics.append(m.status[0]), 10)

    @property
    def commands(self):
        return self.watch.commands

    def stop_listening(self):
        """As a controller that ends; in the node's own thread, which may be waiting for the subscription."""
        self.executor.create_task(self.destroy_subscription, self.controller)

    def _tick(self):
        before, self._published = self._published, time.monotonic()
        self.late = max(self.late, self._published - before - PERIOD)
        self.publish()

    def publish(self):
        if not self.silent:
            message = JointState(name=self.names, position=[float(value) for value in self.position])
            message.header.stamp = self.stamp or self.get_clock().now().to_msg()
            self.spoil(message)
            self.publisher.publish(message)


class Bench:
    """The node under test and the robot, each in its own thread; whatever a test does, the torque must not step."""

    def __init__(self, model_file, message=Float64MultiArray, topic=EFFORT_TOPIC, driver=Robot, **parameters):
        values = {
            "robot_description": planar_arm.urdf(),
            "model_file": str(model_file),
            "ramp_time": RAMP,
            "fault_ramp_time": FAULT_RAMP,
            "timeout": CALM,
            "unchecked_controller": True,
            "position_controller": "",
            "scale": [1.0],
            "assume_no_effort": True,
            "descent_time": 0.0,
            "speed_limit": [1e9],  # this robot jumps
            "watch_motion": False,
        } | parameters
        self.limit = max(values.get("torque_limits", [EFFORT]))
        self.start: list[float] | None = None  # the torque that acts before the first command, where that is not zero
        self.rate = max(values.get("max_rate", [self.limit / values["fault_ramp_time"]]))
        self.robot = driver(message, topic)
        self.node = GravityCompensation(parameter_overrides=[Parameter(k, value=v) for k, v in values.items()])
        self.threads = NodeThreads(self.robot, self.node)

    def close(self):
        self.threads.close()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "END_DESCENT_S", 0.0)  # test/control lowers arms; here no joint state comes any more
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
        self.enabled()
        return self

    def enabled(self):
        """Enable, once more where a busy machine let joint states grow stale meanwhile."""
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

    def check_fade(self, safe):
        """The last commands go from `safe` to zero on a straight line, and then there is silence."""
        wait(lambda: not any(self.torque))
        commands = [(sent, torque_of(message)) for sent, message in list(self.robot.commands)]
        start = max(i for i, (_, torque) in enumerate(commands) if torque == pytest.approx(safe, abs=1e-6))
        slope, jitter = abs(safe[1]) / FAULT_RAMP, JITTER + self.robot.late
        for (before, last), (sent, torque) in pairwise(commands[start:]):
            assert 0.0 <= abs(last[1]) - abs(torque[1]) <= slope * (sent - before + jitter)
        begun, ended = commands[min(start + 1, len(commands) - 1)][0], commands[-1][0]
        assert ended - commands[start][0] > FAULT_RAMP - jitter
        assert ended - begun < FAULT_RAMP + PERIOD + jitter
        time.sleep(0.1)
        assert len(self.robot.commands) == len(commands)


def process(model_file, tmp_path, timeout):
    """The node in a process of its own, active as soon as joint states come."""
    (tmp_path / "planar.urdf").write_text(planar_arm.urdf())
    parameters = {
        "robot_description": tmp_path / "planar.urdf",
        "model_file": model_file,
        "autostart": "true",
        "enable_on_activate": "true",
        "ramp_time": RAMP,
        "fault_ramp_time": FAULT_RAMP,
        "timeout": timeout,
        "unchecked_controller": "true",
        "assume_no_effort": "true",
        "scale": "[1.0]",
    }
    return NodeProcess("gravity_compensation", parameters)
