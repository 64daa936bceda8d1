"""The simulated arm as the demo moves and watches it, by services and topics that a robot has as well."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
from lifecycle_msgs.msg import Transition
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.errors import DynidError
from dynid_ros.nodes.demonstration.waiting import spin_for, spin_until
from dynid_ros.nodes.shared.command_topic import CommandTopic
from dynid_ros.nodes.shared.robot_description import robot_model
from dynid_ros.nodes.shared.service_calls import ServiceCaller
from dynid_ros.nodes.shared.topics import LATCHED, JointOrder
from dynid_ros.recording import Recording

MOVE_SPEED = 0.6
"""Part of the velocity limits that a move from pose to pose uses."""
PEAK = 1.5
"""Of a cubic from rest to rest, over its mean speed."""
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
