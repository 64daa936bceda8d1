"""The simulated arm as the demo moves and watches it, by services and topics that a robot has as well."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
from geometry_msgs.msg import WrenchStamped
from lifecycle_msgs.msg import Transition
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.demo.calls import ServiceCaller, spin_for, spin_until
from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel
from dynid_ros.nodes.shared.command_topic import CommandTopic
from dynid_ros.nodes.shared.joint_states import JointOrder
from dynid_ros.nodes.shared.robot_description import robot_model
from dynid_ros.nodes.shared.topics import LATCHED
from dynid_ros.recording import Recording


def place_of(robot: RobotModel, link: str, position: NDArray) -> NDArray:
    """Where a link's origin is in the base frame, (T, 3) in m, for positions (T, n)."""
    return robot.forward_kinematics(position)[:, robot.link_names.index(link), :3, 3]


MOVE_SPEED = 0.6
"""Part of the velocity limits that a move from pose to pose uses."""
PEAK = 1.5
"""Largest speed of a cubic between standstills, over its mean speed."""
SHORTEST_MOVE, COMING_TO_REST = 1.0, 0.3
"""s."""
STATES_TIMEOUT, RAMP_TIMEOUT, DISCOVERY = 10.0, 10.0, 0.1
"""s."""
COMPENSATION = "/gravity_compensation"
Track = tuple[NDArray, NDArray]
"""Time (T,) in s and positions (T, n)."""


class DemoArm:
    """Moves the arm, lets go of it, and keeps where it was.

    Joint states are listened to only while somebody wants to know: they cost time that the simulator needs.

    Args:
        node: of the coordinator.
        call: its services.
        settings: values of its parameters.
    """

    def __init__(self, node: Node, call: ServiceCaller, settings: SimpleNamespace) -> None:
        self._node, self._call = node, call
        self.robot = robot_model(node, settings, timeout=30.0)
        self.track: list[tuple[float, list[float]]] = []
        self._order = JointOrder(self.robot.joint_names)
        self._states: Subscription | None = None
        self._compensation_state = ""
        self._compensated = False
        node.create_subscription(String, f"{COMPENSATION}/state", self._on_compensation, LATCHED)
        self._commands = CommandTopic(node, JointTrajectory, settings.command_topic, 10)

    def read(self, bag: str) -> Recording:
        """A recording of the arm."""
        return Recording.read(bag, joint_names=self.robot.joint_names)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Keep `track`, stamps in s and positions, from now on; a block within another one goes on with it."""
        if self._states is not None:
            yield
            return
        self.track.clear()
        self._states = self._node.create_subscription(JointState, "joint_states", self._on_joint_state, 100)
        try:
            missing = "no joint_states; is the simulator running?"
            spin_until(self._node, lambda: bool(self.track), STATES_TIMEOUT, missing)
            yield
        finally:
            self._node.destroy_subscription(self._states)
            self._states = None

    def watch(self, duration: float) -> Track:
        """Time (T,) and positions (T, n) of the arm from now on."""
        with self.listening():
            first = len(self.track) - 1
            self.wait(duration)
            stamps, positions = zip(*self.track[first:], strict=True)
        return np.array(stamps) - stamps[0], np.array(positions)

    def wait(self, duration: float) -> None:
        """Let time pass, s."""
        spin_for(self._node, duration)

    def move(self, pose: Sequence[float]) -> None:
        """Slow move in position mode; the controller interpolates from where the arm is."""
        self.wait(self.begin_move(pose) + COMING_TO_REST)

    def begin_move(self, pose: Sequence[float]) -> float:
        """The same without waiting for its end; its duration, s."""
        with self.listening():
            far = np.abs(np.subtract(pose, self.track[-1][1]))
        duration = max(SHORTEST_MOVE, float(np.max(PEAK * far / (MOVE_SPEED * self.robot.limits.velocity))))
        message = JointTrajectory(joint_names=list(self.robot.joint_names))
        zeros = [0.0] * self.robot.n_joints
        point = JointTrajectoryPoint(positions=list(pose), velocities=zeros, accelerations=zeros)
        seconds, rest = divmod(duration, 1.0)
        point.time_from_start.sec, point.time_from_start.nanosec = int(seconds), int(1e9 * rest)
        message.points = [point]
        self._commands.open()
        spin_until(
            self._node, lambda: self._commands.listeners > 0, STATES_TIMEOUT, "nobody takes the arm's trajectories"
        )
        self.wait(DISCOVERY)
        self._commands.publish(message)
        if not self._commands.acknowledged(STATES_TIMEOUT):
            raise DynidError("the simulator does not take a trajectory; see its log")
        self._commands.close()
        return duration

    @contextmanager
    def let_go(self) -> Iterator[None]:
        """Effort mode for a while; the arm is listened to."""
        with self.listening():
            # in this order: switched at once the arm would fall until the next command, or by a torque of another pose
            self._call.set("/simulator/activate_effort_controller", True)
            self.wait(DISCOVERY)
            self._call.set("/simulator/activate_trajectory_controller", False)
            yield
            self._call.set("/simulator/activate_trajectory_controller", True)
            if not self._compensated:  # which a deactivation of its controller would end
                self._call.set("/simulator/activate_effort_controller", False)

    def drop(self, duration: float) -> Track:
        """Let go of the arm for a while; where it was from then on."""
        with self.let_go():
            return self.watch(duration)

    @contextmanager
    def compensation(self) -> Iterator[None]:
        """Gravity compensation ramps in, with the gravity that was identified; in position mode it has no effect.

        Raises:
            DynidError: it ended by itself.
        """
        self._call.change_state(COMPENSATION, Transition.TRANSITION_CONFIGURE)
        self._call.change_state(COMPENSATION, Transition.TRANSITION_ACTIVATE)
        self._compensation_state = ""
        self._call.set(f"{COMPENSATION}/enable", True)
        self._compensated = True
        yield
        self._compensated = False
        if self._compensation_state.startswith("fault"):
            raise DynidError(f"gravity compensation ended early: {self._compensation_state}")
        self._call.set(f"{COMPENSATION}/enable", False)
        self._call.change_state(COMPENSATION, Transition.TRANSITION_DEACTIVATE)
        self._call.set("/simulator/activate_effort_controller", False)
        self._call.change_state(COMPENSATION, Transition.TRANSITION_CLEANUP)

    def compensated(self) -> None:
        """Wait until the compensation is all there."""
        text = "gravity compensation did not become active; see the log of node gravity_compensation"
        spin_until(self._node, lambda: self._compensation_state == "active", RAMP_TIMEOUT, text)

    def began_to_move(self, distance: float) -> float:
        """Stamp, s, at which a joint had come that far (rad or m) from where it was when `track` began.

        Raises:
            DynidError: none has.
        """
        position = np.array([position for _, position in self.track])
        moved = np.flatnonzero(np.abs(position - position[0]).max(axis=1) > distance)
        if not moved.size:
            raise DynidError("the arm has not moved; see the log of node excitation")
        return self.track[moved[0]][0]

    def _on_joint_state(self, message: JointState) -> None:
        stamp = message.header.stamp
        self.track.append((stamp.sec + stamp.nanosec * 1e-9, self._order.pick(message, "position")))

    def _on_compensation(self, message: String) -> None:
        self._compensation_state = message.data


# A hand that leads the demo's arm: a spring between both.


PUSH_TOPIC = "/simulator/push"
RATE = 50.0
"""Of the pushes, Hz."""
SPEED = 0.2
"""Of the hand, m/s."""
STIFFNESS, DAMPING, LARGEST_FORCE = 600.0, 80.0, 60.0
"""Of the spring, N/m and N s/m, and N."""
HOLD = 0.6
"""For which the hand holds the arm at the end of the way, s."""
STALE, TIMEOUT = 0.1, 120.0
"""s. A hand feels at once where the arm is: it pulls by fresh joint states only, and waits for them so long."""


class Hand:
    """Pulls a link along; the nodes notice it as they would a human's, by nothing but the arm's motion.

    Args:
        node: of the coordinator.
        arm: is listened to while it is led.
        link: that is held, at the origin of its frame; the simulator has it by its parameter `push_link`.

    Attributes:
        forces: stamps, s, and sizes, N.
        led: stamps of begin and end of each lead, s.
    """

    def __init__(self, node: Node, arm: DemoArm, link: str) -> None:
        self._node, self._arm, self._link = node, arm, link
        self._push = node.create_publisher(WrenchStamped, PUSH_TOPIC, 10)
        self.forces: list[tuple[float, float]] = []
        self.led: list[tuple[float, float]] = []

    def lead(self, way: Sequence[float]) -> None:
        """Take the link by `way` (3,), in the base frame, m; then let go.

        Raises:
            DynidError: joint states come too late, all the time.
        """
        start, far = self._place(), np.asarray(way, float)
        duration, past = float(np.linalg.norm(far)) / SPEED, 0.0
        first, place, before = self._arm.track[-1][0], start, time.monotonic()
        deadline = before + TIMEOUT
        while past < duration + HOLD:
            self._arm.wait(before + 1.0 / RATE - time.monotonic())
            now, last, place = time.monotonic(), place, self._place()
            step, before = now - before, now
            if self._age() > STALE:
                self._pull(np.zeros(3))
                if now > deadline:
                    raise DynidError("joint states come too late for a hand to lead the arm; the machine is too busy")
                continue
            past += min(step, STALE)
            hand = start + far * min(past / duration, 1.0)
            force = STIFFNESS * (hand - place) - DAMPING * (place - last) / step
            self._pull(force * min(1.0, LARGEST_FORCE / max(float(np.linalg.norm(force)), 1e-9)))
        self._pull(np.zeros(3))
        self.led.append((first, self._arm.track[-1][0]))

    def _age(self) -> float:
        """Of the last joint state, s."""
        return self._node.get_clock().now().nanoseconds * 1e-9 - self._arm.track[-1][0]

    def _place(self) -> NDArray:
        return place_of(self._arm.robot, self._link, np.array([self._arm.track[-1][1]]))[0]

    def _pull(self, force: NDArray) -> None:
        message = WrenchStamped()
        message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = force.tolist()
        self._push.publish(message)
        self.forces.append((self._arm.track[-1][0], float(np.linalg.norm(force))))
