"""The excitation node on the planar arm, beside a robot that follows exactly."""

import math
from contextlib import suppress

import numpy as np
import planar_arm
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from helpers.node_threads import NodeThreads, call
from helpers.waiting import START_TIME, wait
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from scipy.interpolate import BPoly
from sensor_msgs.msg import JointState
from std_msgs.msg import Float32, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.nodes.excitation import ExcitationNode

LATCHED = QoSProfile(depth=50, durability=DurabilityPolicy.TRANSIENT_LOCAL)
TOPIC = "/joint_trajectory_controller/joint_trajectory"
START = [0.4, -0.3, 0.2]
VELOCITY, ACCELERATION = 3.0, 12.0
AT_ONCE = 0.02
"""s by which a stamp may be later than the message, of one that is to begin at once."""
PARAMETERS = {
    "robot_description": planar_arm.urdf(),
    "floor_height": 0.1,
    "clearance": 0.1,
    "steps": 3,
    "dwell": 0.05,
    "sweep": 0.8,
    "speed_fraction": 0.8,
    "travel_speed_fraction": 0.8,
    "acceleration_limits": [ACCELERATION],
    "stale_after": 0.8,  # generous: the machine that runs the tests is busy
}


class Robot(Node):
    """Follows trajectories exactly, as a joint trajectory controller reads them; names its joints in another order."""

    def __init__(self, controller=True):
        super().__init__("robot")
        self.joints = list(planar_arm.JOINTS)
        self.named = ["finger", "joint_3", "joint_1", "joint_2"]
        self.state = np.array([START, [0.0] * 3, [0.0] * 3])
        self.spline, self.spline_start, self.spline_end = None, 0.0, 0.0
        self.pending = None
        self.fault = None
        self.spoil = lambda message: None  # what is wrong with a joint state
        self.commands: list[JointTrajectory] = []
        self.holds: list[JointTrajectory] = []  # of one point, while no motion is under way
        self.track: list[tuple[float, np.ndarray]] = []
        self.states: list[str] = []
        self.plans: list[dict] = []
        self.progress: list[float] = []
        self.levels: list[bytes] = []
        self.publisher = self.create_publisher(JointState, "joint_states", 10)
        if controller:
            self.controller = self.create_subscription(JointTrajectory, TOPIC, self.follow, 10)
        self.create_subscription(String, "/excitation/state", lambda m: self.states.append(m.data), LATCHED)
        self.create_subscription(
            String, "/excitation/plan", lambda m: self.plans.append(yaml.safe_load(m.data)), LATCHED
        )
        self.create_subscription(Float32, "/excitation/progress", lambda m: self.progress.append(m.data), LATCHED)
        self.create_subscription(DiagnosticArray, "/diagnostics", lambda m: self.levels.append(m.status[0].level), 10)
        self.create_timer(0.01, self.publish)

    def now(self):
        return self.get_clock().now().nanoseconds * 1e-9

    def follow(self, message, info):
        """From its stamp or when it was sent on: that a busy machine brings it late is no matter of the motion."""
        sent = info["source_timestamp"] * 1e-9
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        under_way = self.commands and sent < self.spline_start + self.spline_end
        (self.holds if len(message.points) == 1 and not under_way else self.commands).append(message)
        if self.fault == "deaf":
            return
        if stamp > sent + AT_ONCE and self.spline is not None:
            self.pending = message, stamp  # what is under way goes on up to there
        else:
            self.pending = None
            self.begin(message, stamp or sent)

    def begin(self, message, start):
        if self.spline is not None and self.fault != "stuck":
            self.state = self.at(start)
        time_ = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in message.points]
        order = [message.joint_names.index(name) for name in self.joints]
        points = np.array([[p.positions, p.velocities, p.accelerations] for p in message.points])[:, :, order]
        if time_[0] > 0:
            time_, points = [0.0, *time_], np.concatenate([[self.state], points])
        spline = BPoly.from_derivatives(time_, points)
        self.spline = spline, spline.derivative(1), spline.derivative(2)
        self.spline_start, self.spline_end = start, time_[-1]

    def at(self, time_):
        elapsed = min(max(time_ - self.spline_start, 0.0), self.spline_end)
        return np.array([of(elapsed) for of in self.spline])

    def move(self):
        if self.spline is not None and self.fault != "stuck":
            now = self.now()
            if self.pending is not None and now >= self.pending[1]:
                self.begin(*self.pending)
                self.pending = None
            self.state = self.at(now)
            self.track.append((now, self.state.copy()))

    def publish(self):
        self.move()
        if self.fault == "silent":
            return
        names = self.named[:3] if self.fault == "missing" else self.named
        values = {name: self.state[:2, i] for i, name in enumerate(self.joints)} | {"finger": [0.01, 0.0]}
        position, velocity = ([float(values[name][k]) for name in names] for k in range(2))
        if self.fault == "nan":
            position[1] = math.nan
        effort = [math.nan if name == "finger" else 1.0 for name in names]
        if self.fault == "strained":
            effort[names.index("joint_2")] = -60.0
        message = JointState(name=names, position=position, velocity=velocity, effort=effort)
        message.header.stamp = self.get_clock().now().to_msg()
        self.spoil(message)
        self.publisher.publish(message)


class Bench:
    """The node under test and the robot, each in its own thread."""

    def __init__(self, controller=True, **parameters):
        self.robot = Robot(controller)
        overrides = [Parameter(name, value=value) for name, value in (PARAMETERS | parameters).items()]
        self.node = ExcitationNode(parameter_overrides=overrides)
        self.threads = NodeThreads(self.robot, self.node)

    def close(self):
        self.threads.close()
        self.node.destroy_node()
        self.robot.destroy_node()

    def call(self, name):
        return ask(self.robot, name)

    def client(self, name):
        client = self.robot.create_client(Trigger, f"/excitation/{name}")
        assert client.wait_for_service(START_TIME)
        return client

    def later(self, name):
        """Call a service that takes its time."""
        return self.client(name).call_async(Trigger.Request())

    def set(self, **values):
        results = self.node.set_parameters([Parameter(name, value=value) for name, value in values.items()])
        assert all(result.successful for result in results), [result.reason for result in results]

    def listened_to(self):
        with suppress(InvalidHandle):  # the node, in its own thread, may make its publisher anew meanwhile
            return self.node.arm._has_controller()

    def start(self):
        wait(lambda: self.listened_to() and self.robot.publisher.get_subscription_count())
        answer = self.call("start")
        assert answer.success, answer.message
        wait(lambda: self.robot.commands)
        return answer

    @property
    def state(self):
        return self.robot.states[-1] if self.robot.states else ""


def ask(robot, name):
    return call(robot, Trigger, f"/excitation/{name}")


def moving(robot):
    return robot.track and np.abs(robot.state[1]).max() > 0.5


def check_smooth(robot):
    """What the robot was made to do, from sample to sample; it ends at rest."""
    wait(lambda: robot.now() - robot.spline_start > robot.spline_end + 0.1)
    wait(lambda: np.abs(robot.track[-1][1][1]).max() < 1e-9)  # its timer may be late
    times = np.array([t for t, _ in robot.track])
    states = np.array([state for _, state in robot.track])
    assert np.abs(states[:, 1]).max() <= VELOCITY
    assert np.abs(states[:, 2]).max() <= 3.0 * ACCELERATION
    np.testing.assert_allclose(states[-1, 1], 0.0, atol=1e-9)
    steps = np.abs(np.diff(states[:, 0], axis=0))
    assert np.all(steps <= VELOCITY * np.diff(times)[:, np.newaxis] + 1e-6)
