"""Bench of the excitation node on the planar arm, with a robot that follows trajectories exactly."""

import math
from contextlib import suppress

import numpy as np
import planar_arm
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from helpers.node_threads import NodeThreads, call
from helpers.waiting import START_TIMEOUT_S, wait
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
from dynid_ros.trajectories import Trajectory, move

LATCHED = QoSProfile(depth=50, durability=DurabilityPolicy.TRANSIENT_LOCAL)
TOPIC = "/joint_trajectory_controller/joint_trajectory"
START = [0.4, -0.3, 0.2]
SWING = [START[0] + 0.5, START[1] - 0.4, START[2] + 0.4]
MAX_VELOCITY = 3.0
MAX_ACCELERATION = 12.0
STAMP_TOLERANCE_S = 0.02
"""Time in s by which the stamp of a trajectory that starts at once may be later than its message."""
PARAMETERS = {
    "robot_description": planar_arm.urdf(),
    "floor_height": 0.1,
    "clearance": 0.1,
    "steps": 3,
    "dwell": 0.05,
    "sweep": 0.8,
    "speed_fraction": 0.8,
    "travel_speed_fraction": 0.8,
    "acceleration_limits": [MAX_ACCELERATION],
    "stale_after": 0.8,  # generous, because the tests share a busy computer
}


class Robot(Node):
    """Robot that follows trajectories exactly, with joint names in another order."""

    def __init__(self, controller=True):
        super().__init__("robot")
        self.joints = list(planar_arm.JOINTS)
        self.named = ["finger", "joint_3", "joint_1", "joint_2"]
        self.state = np.array([START, [0.0] * 3, [0.0] * 3])
        self.spline = None
        self.spline_start = 0.0
        self.spline_end = 0.0
        self.pending = None
        self.fault = None
        self.spoil = lambda message: None  # changes each joint state
        self.commands: list[JointTrajectory] = []
        self.holds: list[JointTrajectory] = []  # trajectories of one point, received while no motion runs
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
        """Follow a trajectory from its stamp or the time at which it was sent, whatever the delay of its arrival."""
        sent = info["source_timestamp"] * 1e-9
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        under_way = self.commands and sent < self.spline_start + self.spline_end
        (self.holds if len(message.points) == 1 and not under_way else self.commands).append(message)
        if self.fault == "deaf":
            return
        if stamp > sent + STAMP_TOLERANCE_S and self.spline is not None:
            self.pending = message, stamp  # the current motion continues until then
        else:
            self.pending = None
            self.begin(message, stamp or sent)

    def begin(self, message, start):
        if self.spline is not None and self.fault != "stuck":
            self.state = self.interpolate(start)
        time_ = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in message.points]
        order = [message.joint_names.index(name) for name in self.joints]
        points = np.array([[p.positions, p.velocities, p.accelerations] for p in message.points])[:, :, order]
        if time_[0] > 0:
            time_ = [0.0, *time_]
            points = np.concatenate([[self.state], points])
        spline = BPoly.from_derivatives(time_, points)
        self.spline = spline, spline.derivative(1), spline.derivative(2)
        self.spline_start = start
        self.spline_end = time_[-1]

    def interpolate(self, time_):
        elapsed = min(max(time_ - self.spline_start, 0.0), self.spline_end)
        return np.array([derivative(elapsed) for derivative in self.spline])

    def move(self):
        if self.spline is not None and self.fault != "stuck":
            now = self.now()
            if self.pending is not None and now >= self.pending[1]:
                self.begin(*self.pending)
                self.pending = None
            self.state = self.interpolate(now)
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
    """Node under test and robot, each in a thread."""

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
        return call_excitation(self.robot, name)

    def client(self, name):
        client = self.robot.create_client(Trigger, f"/excitation/{name}")
        assert client.wait_for_service(START_TIMEOUT_S)
        return client

    def call_async(self, name):
        """Call a service and return the future of its response."""
        return self.client(name).call_async(Trigger.Request())

    def set(self, **values):
        results = self.node.set_parameters([Parameter(name, value=value) for name, value in values.items()])
        assert all(result.successful for result in results), [result.reason for result in results]

    def has_listener(self):
        with suppress(InvalidHandle):  # the node's thread may create its publisher again meanwhile
            return self.node.arm._has_controller()

    def start(self):
        wait(lambda: self.has_listener() and self.robot.publisher.get_subscription_count())
        answer = self.call("start")
        assert answer.success, answer.message
        wait(lambda: self.robot.commands)
        return answer

    @property
    def state(self):
        return self.robot.states[-1] if self.robot.states else ""


def write_swing(folder):
    """Write a motion from START to SWING and back; return the parameters that select it."""
    swing = [move(planar_arm.JOINTS, *ends, 1.0) for ends in ((START, SWING), (SWING, START))]
    return {"motion": "file", "motion_file": str(Trajectory.join(swing).save(folder / "swing.yaml"))}


def call_excitation(robot, name):
    return call(robot, Trigger, f"/excitation/{name}")


def is_moving(robot):
    return robot.track and np.abs(robot.state[1]).max() > 0.5


def check_smooth(robot):
    """Assert that the robot's motion kept the limits, was continuous and ended at rest."""
    wait(lambda: robot.now() - robot.spline_start > robot.spline_end + 0.1)
    wait(lambda: np.abs(robot.track[-1][1][1]).max() < 1e-9)  # the robot's timer may be late
    times = np.array([t for t, _ in robot.track])
    states = np.array([state for _, state in robot.track])
    assert np.abs(states[:, 1]).max() <= MAX_VELOCITY
    assert np.abs(states[:, 2]).max() <= 3.0 * MAX_ACCELERATION
    np.testing.assert_allclose(states[-1, 1], 0.0, atol=1e-9)
    steps = np.abs(np.diff(states[:, 0], axis=0))
    assert np.all(steps <= MAX_VELOCITY * np.diff(times)[:, np.newaxis] + 1e-6)
