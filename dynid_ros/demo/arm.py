"""The simulated arm as the demo moves and watches it, by services and topics that a robot has as well; its waits."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import rclpy
from lifecycle_msgs.msg import Transition
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.child_process import ServiceCaller
from dynid_ros.nodes.shared.robot_description import JointOrder, robot_model
from dynid_ros.nodes.shared.topics import LATCHED, UNKNOWN_NAME, CommandTopic, node_of
from dynid_ros.recording import Recording

MAX_SPIN_S = 0.1
"""Longest time of one spin, after which conditions are checked."""
START_DISCOVERY_TIMEOUT_S = 5.0
"""Longest wait for the name of a publisher's node, s: the demo starts all its nodes at once."""


def spin_for(node: Node, duration: float) -> None:
    """Process messages for some time, s."""
    end = time.monotonic() + duration
    while True:
        rclpy.spin_once(node, timeout_sec=max(end - time.monotonic(), 0.0))
        if time.monotonic() >= end:
            break


def spin_until(node: Node, reached: Callable[[], bool], timeout: float, failure: str) -> None:
    """Process messages until a condition is true."""
    deadline = time.monotonic() + timeout
    while not reached():
        if time.monotonic() > deadline:
            raise DynidError(failure)
        rclpy.spin_once(node, timeout_sec=MAX_SPIN_S)


def require_simulation(node: Node) -> None:
    """Check that the demo moves nothing but the simulator.

    The middleware may announce a publisher before the name of its node, which is therefore waited for.
    """

    def other_publishers() -> set[str]:
        return {node_of(info) for info in node.get_publishers_info_by_topic("joint_states")} - {"/simulator"}

    deadline = time.monotonic() + START_DISCOVERY_TIMEOUT_S
    drivers = other_publishers()
    while UNKNOWN_NAME in drivers and time.monotonic() < deadline:
        time.sleep(MAX_SPIN_S)
        drivers = other_publishers()
    if drivers:
        raise DynidError(
            f"the demo moves a simulated arm alone, and {' and '.join(sorted(drivers))} publishes joint_states, too; "
            "play it on another ROS domain, as `dynid demo` and demo.launch.py do"
        )


SPEED_FRACTION = 0.6
"""Fraction of the velocity limits that a move from pose to pose uses."""
CUBIC_PEAK = 1.5
"""Largest speed of a cubic between standstills, over its mean speed."""
MIN_MOVE_TIME_S = 1.0
REST_TIME_S = 0.3
REST_SPREAD_RAD = 0.002
"""Duration of rest after a move, and largest range of a joint, rad or m, in that time."""
REST_TIMEOUT_S = 10.0
STATES_TIMEOUT_S = 10.0
RAMP_TIMEOUT_S = 10.0
DISCOVERY_TIME_S = 0.1
COMPENSATION = "/gravity_compensation"
Track = tuple[NDArray, NDArray]
"""Time (T,) in s and positions (T, n)."""


class DemoArm:
    """Moves the arm, lets go of it, and keeps its track.

    Joint states are received only while they are needed: they cost time that the simulator needs.

    Attributes:
        track: stamps, s, and positions since `listening` began.
    """

    def __init__(self, node: Node, call: ServiceCaller, settings: SimpleNamespace) -> None:
        self._node = node
        self._call = call
        self.robot = robot_model(node, settings, timeout=30.0)
        self.track: list[tuple[float, list[float]]] = []
        self._order = JointOrder(self.robot.joint_names)
        self._states: Subscription | None = None
        self._compensation_state = ""
        self._is_compensated = False
        node.create_subscription(String, f"{COMPENSATION}/state", self._on_compensation, LATCHED)
        self._commands = CommandTopic(node, JointTrajectory, settings.command_topic, 10)

    def read(self, bag: str) -> Recording:
        """Read a recording of the arm."""
        return Recording.read(bag, joint_names=self.robot.joint_names)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Keep the track from now on; a block within another one continues its track."""
        if self._states is not None:
            yield
            return
        self.track.clear()
        self._states = self._node.create_subscription(JointState, "joint_states", self._on_joint_state, 100)
        try:
            missing = "no joint_states; is the simulator running?"
            spin_until(self._node, lambda: bool(self.track), STATES_TIMEOUT_S, missing)
            yield
        finally:
            self._node.destroy_subscription(self._states)
            self._states = None

    def wait(self, duration: float) -> None:
        """Let time pass, s."""
        spin_for(self._node, duration)

    def move(self, pose: Sequence[float]) -> None:
        """Move slowly to a pose in position mode, and wait until the arm rests.

        The stamps of joint states count, because a busy computer delays the simulated arm.

        Raises:
            DynidError: the arm does not come to rest.
        """
        with self.listening():
            start = self.track[-1][0]
            duration = self.begin_move(pose)
            missing = "the arm does not come to rest at the end of a move; see the log of the simulator"
            spin_until(self._node, lambda: self._rests_after(start + duration), duration + REST_TIMEOUT_S, missing)

    def begin_move(self, pose: Sequence[float]) -> float:
        """Send a slow move to a pose and return its duration, s; the controller interpolates."""
        with self.listening():
            distance = np.abs(np.subtract(pose, self.track[-1][1]))
        speed = SPEED_FRACTION * self.robot.limits.velocity
        duration = max(MIN_MOVE_TIME_S, float(np.max(CUBIC_PEAK * distance / speed)))
        zeros = [0.0] * self.robot.n_joints
        point = JointTrajectoryPoint(positions=list(pose), velocities=zeros, accelerations=zeros)
        seconds, rest = divmod(duration, 1.0)
        point.time_from_start.sec = int(seconds)
        point.time_from_start.nanosec = int(1e9 * rest)
        self._commands.open()
        missing = "no controller takes the arm's trajectories"
        spin_until(self._node, lambda: self._commands.listeners > 0, STATES_TIMEOUT_S, missing)
        self.wait(DISCOVERY_TIME_S)
        self._commands.publish(JointTrajectory(joint_names=list(self.robot.joint_names), points=[point]))
        if not self._commands.acknowledged(STATES_TIMEOUT_S):
            raise DynidError("the simulator does not take a trajectory; see its log")
        self._commands.close()
        return duration

    @contextmanager
    def let_go(self) -> Iterator[None]:
        """Switch to effort mode for the block, and keep the track."""
        with self.listening():
            # In this order: switched at once, the arm would fall until the next command, or follow a torque of another
            # pose.
            self._call.set("/simulator/activate_effort_controller", True)
            self.wait(DISCOVERY_TIME_S)
            self._call.set("/simulator/activate_trajectory_controller", False)
            yield
            self._call.set("/simulator/activate_trajectory_controller", True)
            if not self._is_compensated:  # compensation ends when its controller is deactivated
                self._call.set("/simulator/activate_effort_controller", False)

    def drop(self, duration: float) -> Track:
        """Let go of the arm for some time, s, and return its track from then on."""
        with self.let_go():
            first = len(self.track) - 1
            self.wait(duration)
            stamps, positions = zip(*self.track[first:], strict=True)
        return np.array(stamps) - stamps[0], np.array(positions)

    @contextmanager
    def compensation(self) -> Iterator[None]:
        """Enable gravity compensation with the identified gravity for the block; it has no effect in position mode."""
        self._call.change_state(COMPENSATION, Transition.TRANSITION_CONFIGURE)
        self._call.change_state(COMPENSATION, Transition.TRANSITION_ACTIVATE)
        self._compensation_state = ""
        self._call.set(f"{COMPENSATION}/enable", True)
        self._is_compensated = True
        yield
        self._is_compensated = False
        if self._compensation_state.startswith("fault"):
            raise DynidError(f"gravity compensation ended early: {self._compensation_state}")
        self._call.set(f"{COMPENSATION}/enable", False)
        self._call.change_state(COMPENSATION, Transition.TRANSITION_DEACTIVATE)
        self._call.set("/simulator/activate_effort_controller", False)
        self._call.change_state(COMPENSATION, Transition.TRANSITION_CLEANUP)

    def wait_for_compensation(self) -> None:
        """Wait until the compensation has ramped in."""
        text = "gravity compensation did not become active; see the log of node gravity_compensation"
        spin_until(self._node, lambda: self._compensation_state == "active", RAMP_TIMEOUT_S, text)

    def began_to_move(self, distance: float) -> float:
        """Return the first stamp, s, with a joint `distance` (rad or m) away from the start of the track."""
        position = np.array([position for _, position in self.track])
        moved = np.flatnonzero(np.abs(position - position[0]).max(axis=1) > distance)
        if not moved.size:
            raise DynidError("the arm has not moved; see the log of node excitation")
        return self.track[moved[0]][0]

    def _rests_after(self, stamp: float) -> bool:
        """Whether the last `REST_TIME_S` of the track are later than `stamp`, s, and at rest."""
        last = self.track[-1][0]
        if last < stamp + REST_TIME_S:
            return False
        recent = [position for time, position in self.track if time >= last - REST_TIME_S]
        return bool(np.ptp(recent, axis=0).max() <= REST_SPREAD_RAD)

    def _on_joint_state(self, message: JointState) -> None:
        stamp = message.header.stamp
        self.track.append((stamp.sec + stamp.nanosec * 1e-9, self._order.pick(message, "position")))

    def _on_compensation(self, message: String) -> None:
        self._compensation_state = message.data
