"""Motions as messages and as goals of `control_msgs/action/FollowJointTrajectory`, if a controller serves it."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from os import urandom
from typing import Any

import numpy as np
from action_msgs.msg import GoalInfo, GoalStatus, GoalStatusArray
from action_msgs.srv import CancelGoal
from numpy.typing import NDArray
from rclpy.action import ActionClient
from rclpy.action.client import ClientGoalHandle
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from rclpy.task import Future
from rclpy.time import Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.controllers import OWN_GOAL_PREFIX, RUNNING_GOAL, goal_statuses, message_type
from dynid_ros.nodes.shared.topics import LATCHED, CommandTopic, UnservedGroup, waiting_messages
from dynid_ros.trajectories import MotionLimits, Trajectory
from dynid_ros.trajectories.execution import MIN_STOP_S, cut_piece

LEAD_S = MIN_STOP_S
"""Time from the arrival of a message to its first point, for a smooth transition of the controller.

The controller begins at its own reference or at the measured pose, see `MotionController`. Meanwhile the motion has
advanced by the transport time of the message. The controller cannot make up for that in less time without a jerk.
"""
MIN_POINT_DISTANCE_S = 1e-6
"""Smallest time between two points."""
PIECE_LENGTH_S = 1.4
"""Duration of the motion in one piece, which then comes to rest; with its stop a piece lasts some 1.6 to 2 s."""
PIECE_PERIOD_S = 0.4
"""Time between two pieces; each arrives one second before the previous piece begins to stop."""
MIN_CLOCK_JUMP_NS = 20_000_000
"""Smallest change of the difference between two clocks that shows that one of them was set."""
LAST_CALL_S = 0.1
"""Smallest time between sending a piece and the stop of the previous one; a later piece would make the arm jump."""

ACTION = "action"
TOPIC = "topic"
AUTO_INTERFACE = "auto"
COMMAND_INTERFACES = (AUTO_INTERFACE, ACTION, TOPIC)
ACCEPTANCE_TIMEOUT_S = 1.0
"""Longest time in which a server accepts or rejects a goal."""
REPLACEMENT_TIMEOUT_S = 0.2
"""Longest time in which a server replaces a goal, before that goal is cancelled."""
RESULT_TIMEOUT_S = 0.1
"""Longest wait for the reason of an abort."""
POLL_PERIOD_S = 0.01
MAX_STATUSES = 10
NO_TOLERANCE = -1.0
"""Value that erases a tolerance of the controller."""


def trajectory_message(
    trajectory: Trajectory, joint_names: Sequence[str], delay: float, lead: float = LEAD_S
) -> JointTrajectory:
    """Return a message with the state of `trajectory` at `lead` after its arrival, and the samples after that.

    Args:
        trajectory: motion that ends at rest.
        joint_names: names in the order of the controller.
        delay: time from the arrival of the message to the first sample, s; negative for a past sample.
        lead: time from the arrival to the first point, s; 0: the controller jumps to the present state of the motion.
    """
    ordered = trajectory.select(joint_names)
    first = min(max(lead - delay, 0.0), ordered.duration)
    sample_times: NDArray = np.concatenate([[first], ordered.time[ordered.time > first + MIN_POINT_DISTANCE_S]])
    message = JointTrajectory(joint_names=list(joint_names))
    rows = (np.maximum(sample_times + delay, lead), *ordered.at(sample_times))
    for instant, position, velocity, acceleration in zip(*(row.tolist() for row in rows), strict=True):
        point = JointTrajectoryPoint(positions=position, velocities=velocity, accelerations=acceleration)
        point.time_from_start = Duration(seconds=instant).to_msg()
        message.points.append(point)
    return message


@dataclass(frozen=True)
class Handover:
    """Transition of a controller from one piece of a motion to the next.

    Attributes:
        is_stamped: whether the piece begins at its stamp; otherwise on arrival.
        ahead: time from sending the piece to its begin, s.
        lead: time from its begin to its first point, s, in which the controller passes from the previous piece to it.
    """

    is_stamped: bool
    ahead: float
    lead: float


PASSED_OVER = Handover(is_stamped=True, ahead=0.0, lead=0.0)
"""The first point is in the past when the piece arrives: the controller continues on the new piece at once."""
BLENDED = Handover(is_stamped=True, ahead=0.3, lead=0.1)
"""The controller follows the previous piece until the new piece begins, and then blends into it."""
BLENDED_ON_ARRIVAL = Handover(is_stamped=False, ahead=0.0, lead=0.2)
"""The controller blends into the new piece on arrival; one in the future it would begin at the measured pose."""


class MotionPieces:
    """Sequence of pieces of a motion, each of which ends at rest and replaces the previous one before its stop.

    Args:
        sampled: samples of the motion, which ends at rest.
        joint_names: names in the order of the controller.
        limits: limits of the stop at the end of each piece.
        handover: transition from one piece to the next.
        pause: time from sending the first piece to the begin of the motion, s.

    Attributes:
        first: message of the first piece.
    """

    def __init__(
        self, sampled: Trajectory, joint_names: Sequence[str], limits: MotionLimits, handover: Handover, pause: float
    ) -> None:
        self._sampled = sampled
        self._joint_names = joint_names
        self._limits = limits
        self._handover = handover
        self._begin = 0.0  # begin of the last piece, s of the motion
        self._due = PIECE_PERIOD_S  # time at which the next piece is to be sent, s of the motion
        self._pause = round(pause * 1e9)  # ns
        self._origin = 0  # begin of the motion by the clock of the messages, ns
        self._piece, self._stop_time = cut_piece(sampled, 0.0, PIECE_LENGTH_S, limits)
        self.first = trajectory_message(self._piece, joint_names, pause)

    def stamp_first(self, now: Time) -> None:
        """Stamp the first piece, which is sent at `now`; the stamps of all others follow from this one."""
        self.first.header.stamp = now.to_msg()
        self._origin = now.nanoseconds + self._pause

    def is_due(self, elapsed: float) -> bool:
        """Return whether the next piece is to be sent at `elapsed`, s of the motion."""
        return elapsed >= self._due and self._stop_time < self._sampled.duration

    def lateness(self, elapsed: float) -> float:
        """Return the delay of the next piece, s, if it is too late to be sent; otherwise 0."""
        return elapsed - self._due if self.is_due(elapsed) and elapsed > self._stop_time - LAST_CALL_S else 0.0

    def next_piece(self, elapsed: float, now: Time) -> JointTrajectory:
        """Return the piece to be sent.

        Stamps follow the time of the motion, because the two clocks cannot be read at the same instant. Only if the
        clock of the messages was set, the stamps follow that clock.

        Args:
            elapsed: time of the motion, s.
            now: time by the clock of the messages.
        """
        difference = now.nanoseconds - self._origin - round(elapsed * 1e9)
        if abs(difference) > MIN_CLOCK_JUMP_NS:
            self._origin += difference
        ahead = self._handover.ahead
        self._begin = elapsed + ahead
        self._due = elapsed + PIECE_PERIOD_S
        self._piece, self._stop_time = cut_piece(self._sampled, self._begin, elapsed + PIECE_LENGTH_S, self._limits)
        message = trajectory_message(self._piece, self._joint_names, 0.0, self._handover.lead)
        if self._handover.is_stamped:
            message.header.stamp = Time(nanoseconds=self._origin + round(self._begin * 1e9)).to_msg()
        return message

    def stopping_piece(self, elapsed: float) -> tuple[Trajectory, float] | None:
        """Return the last piece and its begin, s of the motion, if its stop has begun; otherwise None."""
        is_stopping = self._stop_time < min(elapsed, self._sampled.duration)
        return (self._piece, self._begin) if is_stopping else None


@dataclass(frozen=True)
class Load:
    """Motion that is prepared for sending.

    Attributes:
        motion: motion to supervise.
        message: the whole motion, serialised for a topic; or its first piece.
        pieces: later pieces; None if the motion is sent as a whole.
    """

    motion: Trajectory
    message: JointTrajectory | bytes
    pieces: MotionPieces | None


class TrajectoryAction(CommandTopic):
    """Action client that sends each trajectory as a goal and follows the state of the goal.

    It is also a silent publisher of the topic, so that other nodes see that the controller is commanded. A goal erases
    the tolerances and has no effort, so it leaves nothing behind for later messages on the topic. The status of goals
    is read in `look` by the thread that watches the arm, even while the executor waits. The reason of an abort arrives
    with the result of the goal.

    Attributes:
        action: full name of the action.
        error: largest deviation from the motion that the server reports, rad (m); NaN before the first report.

    Raises:
        DynidError: `control_msgs` is not installed.
    """

    def __init__(self, node: Node, topic: str, action: str) -> None:
        super().__init__(node, JointTrajectory, topic, 10)
        self._type = _action_type()
        self.action = node.resolve_service_name(action)
        self.error = math.nan
        self._client = ActionClient(node, self._type, action)
        self._cancel = node.create_client(CancelGoal, f"{action}/_action/cancel_goal")
        self._status_topic = node.create_subscription(
            GoalStatusArray,
            f"{action}/_action/status",
            lambda _: None,
            LATCHED,
            callback_group=UnservedGroup(),
            raw=True,
        )
        self._statuses: dict[bytes, int] = {}
        self._goal = b""
        self._sent = 0.0
        self._answer: Future | None = None
        self._running: ClientGoalHandle | None = None  # last goal, once it is accepted
        self._replaced: ClientGoalHandle | None = None  # previous goal, which is cancelled unless it is replaced
        self._abort_reasons: dict[bytes, str] = {}
        self._ended: float | None = None

    @property
    def listeners(self) -> int:
        """Number of servers, 0 or 1."""
        return int(self._client.server_is_ready())

    @property
    def others(self) -> str:
        """Message that another node commands the controller, by the topic or by a goal; empty without one."""
        goal = f"a goal of another client is running on {self.action}; cancel it, or wait for its end"
        return super().others or (goal if self._is_taken_over else "")

    @property
    def _is_taken_over(self) -> bool:
        return any(
            status in RUNNING_GOAL and not goal.startswith(OWN_GOAL_PREFIX) for goal, status in self._statuses.items()
        )

    @property
    def failure(self) -> str:
        """Reason why the last goal failed; empty if it runs, has succeeded, or may still be accepted."""
        if self._is_taken_over:
            return f"another client's goal replaced that of this node on {self.action}, and commands the arm now"
        status = self._statuses.get(self._goal)
        answer = self._received_answer
        if status is None and answer is not None and not answer.accepted:
            return f"{self.action} rejected the goal; see the controller's log"
        if not self._goal or status in (GoalStatus.STATUS_SUCCEEDED, *RUNNING_GOAL):
            return ""
        if status is None:
            late = answer is None and time.monotonic() - self._sent > ACCEPTANCE_TIMEOUT_S
            return f"{self.action} does not answer" if late else ""
        self._ended = self._ended or time.monotonic()
        if self._goal not in self._abort_reasons and time.monotonic() - self._ended < RESULT_TIMEOUT_S:
            return ""
        outcome = "cancelled" if status == GoalStatus.STATUS_CANCELED else "aborted"
        return f"{self.action} {outcome} the goal{self._abort_reasons.get(self._goal, '')}"

    def publish(self, message: JointTrajectory) -> None:
        """Send a goal, which replaces the running one."""
        goal = self._type.Goal(trajectory=message, goal_time_tolerance=Duration(seconds=NO_TOLERANCE).to_msg())
        tolerance = message_type("control_msgs", "JointTolerance")
        for field in ("path_tolerance", "goal_tolerance"):
            erased = [
                tolerance(name=name, position=NO_TOLERANCE, velocity=NO_TOLERANCE, acceleration=NO_TOLERANCE)
                for name in message.joint_names
            ]
            setattr(goal, field, erased)
        self._goal = OWN_GOAL_PREFIX + urandom(16 - len(OWN_GOAL_PREFIX))
        self._sent = time.monotonic()
        self._replaced = self._running
        self._running = None
        self._ended = None
        goal_id = GoalInfo().goal_id
        goal_id.uuid = list(self._goal)
        self._answer = self._client.send_goal_async(goal, self._on_feedback, goal_id)
        self._answer.add_done_callback(partial(self._on_answer, self._goal))

    def keep_replaced(self) -> None:
        """Let the previous goal run until the last one is accepted: it is a piece, which ends at rest by itself."""
        self._running = self._replaced
        self._replaced = None

    def cancel_all(self) -> None:
        """Cancel all goals of the server, including those of other clients."""
        self._cancel.call_async(CancelGoal.Request())

    def look(self) -> None:
        """Process the statuses that have arrived, and cancel a goal that should have been replaced."""
        for data, _ in waiting_messages(self._status_topic, MAX_STATUSES):
            self._statuses = goal_statuses(deserialize_message(data, GoalStatusArray))
        if self._replaced is None:
            return
        if self._is_accepted:
            self._replaced = None
        elif self.failure or time.monotonic() - self._sent > REPLACEMENT_TIMEOUT_S:
            self._replaced.cancel_goal_async()
            self._replaced = None

    def acknowledged(self, seconds: float = 0.0) -> bool:
        """Wait for at most `seconds` and return whether the last goal was accepted."""
        deadline = time.monotonic() + seconds
        while not self._is_accepted and time.monotonic() < deadline:
            time.sleep(POLL_PERIOD_S)
            self.look()
        return self._is_accepted

    @property
    def _received_answer(self) -> ClientGoalHandle | None:
        return self._answer.result() if self._answer is not None and self._answer.done() else None

    @property
    def _is_accepted(self) -> bool:
        answer = self._received_answer
        return self._goal in self._statuses or (answer is not None and answer.accepted)

    def _on_answer(self, goal: bytes, future: Future) -> None:
        handle = future.result()
        if handle is None or not handle.accepted:
            return
        if goal == self._goal:
            self._running = handle
        handle.get_result_async().add_done_callback(partial(self._on_result, goal))

    def _on_result(self, goal: bytes, future: Future) -> None:
        answer = future.result()
        if answer is None or answer.status != GoalStatus.STATUS_ABORTED:
            return
        result = answer.result
        names = [name for name in dir(self._type.Result) if name.isupper()]
        code = [name for name in names if result.error_code and getattr(self._type.Result, name) == result.error_code]
        self._abort_reasons[goal] = "".join(f": {word}" for word in (*code, result.error_string) if word)

    def _on_feedback(self, message: Any) -> None:
        errors = [abs(value) for value in message.feedback.error.positions]
        self.error = max(errors, default=self.error)


def _action_type() -> Any:
    """Return the type of the action; raise a `DynidError` if it is not installed."""
    try:
        return import_module("control_msgs.action").FollowJointTrajectory
    except ImportError as error:
        raise DynidError(
            "Parameter command_interface is action, for which control_msgs is not installed (apt: "
            "ros-$ROS_DISTRO-control-msgs); install it, or set command_interface to topic"
        ) from error


def interface(node: Node, topic: str, choice: str, action: str) -> tuple[CommandTopic, TrajectoryAction | None]:
    """Return the topic of a controller, and its action if that may be used.

    Args:
        node: node that commands.
        topic: topic of `trajectory_msgs/JointTrajectory`.
        choice: auto, action or topic.
        action: name of the action; empty: from the topic's controller.
    """
    by_topic = CommandTopic(node, JointTrajectory, topic, 10)
    controller = topic.rpartition("/")[0]
    name = action or (f"{controller}/follow_joint_trajectory" if controller.strip("~") else "")
    if choice == ACTION and not name:
        raise DynidError(
            f"Parameter action_name is empty, and command_topic '{topic}' does not name a controller whose action it "
            "could be"
        )
    if choice == TOPIC or not name:
        return by_topic, None
    try:
        return by_topic, TrajectoryAction(node, topic, name)
    except DynidError:
        if choice == ACTION:
            raise
        return by_topic, None
