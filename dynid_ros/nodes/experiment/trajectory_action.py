"""Motions as goals of `control_msgs/action/FollowJointTrajectory`, where a controller serves that action."""

import time
from functools import partial
from importlib import import_module
from os import urandom
from typing import Any

from action_msgs.msg import GoalInfo, GoalStatus, GoalStatusArray
from action_msgs.srv import CancelGoal
from rclpy.action import ActionClient
from rclpy.action.client import ClientGoalHandle
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.command_topic import CommandTopic
from dynid_ros.nodes.shared.controllers import OWN_GOAL_PREFIX, RUNNING_GOAL, goal_statuses, message_type
from dynid_ros.nodes.shared.topics import LATCHED, UnservedGroup, waiting_messages

ACTION, TOPIC, AUTO = "action", "topic", "auto"
ANSWER = 1.0
"""s within which a server accepts or rejects a goal."""
TAKEN_OVER = 0.2
"""s after which a goal that was to be replaced is cancelled, where the server has not taken the new one."""
RESULT = 0.1
"""s for which the reason of an abort is waited for."""
STATUSES = 10
ERASED = -1.0
POLL = 0.01


class TrajectoryAction(CommandTopic):
    """Sends each trajectory as a goal, and knows what becomes of it.

    It also is a silent publisher of the topic, by which others see that somebody commands the controller. A goal erases
    the tolerances (-1) and has no effort, so that it leaves nothing behind for messages that come after it, as those of
    route trajectory; its id begins with `OWN_GOAL_PREFIX`. What is under way
    is read from the action's status by whoever calls
    `look`, the thread that watches the arm, whatever the executor waits for; why a goal was aborted comes with its
    result.

    Attributes:
        action: name of the action.
        error: largest deviation from the motion that the server reports, rad (m); NaN: none yet.

    Raises:
        DynidError: `control_msgs` is not installed.
    """

    def __init__(self, node: Node, topic: str, action: str) -> None:
        super().__init__(node, JointTrajectory, topic, 10)
        self._type = _action_type()
        self.action, self.error = node.resolve_service_name(action), float("nan")
        self._client = ActionClient(node, self._type, action)
        self._cancel = node.create_client(CancelGoal, f"{action}/_action/cancel_goal")
        self._group = UnservedGroup()
        self._status_topic = node.create_subscription(
            GoalStatusArray, f"{action}/_action/status", lambda _: None, LATCHED, callback_group=self._group, raw=True
        )
        self._statuses: dict[bytes, int] = {}
        self._goal, self._sent = b"", 0.0
        self._answer: Future | None = None
        self._running: ClientGoalHandle | None = None
        self._replaced: ClientGoalHandle | None = None
        self._why: dict[bytes, str] = {}
        self._over: float | None = None

    @property
    def listeners(self) -> int:
        """How many servers there are, 0 or 1."""
        return int(self._client.server_is_ready())

    @property
    def others(self) -> str:
        """Who else publishes on the topic, or that another client's goal is under way; empty: nobody."""
        goal = f"a goal of another client is under way on {self.action}; cancel it, or wait for its end"
        return super().others or goal * self._is_taken_over

    @property
    def _is_taken_over(self) -> bool:
        return any(
            status in RUNNING_GOAL and not goal.startswith(OWN_GOAL_PREFIX) for goal, status in self._statuses.items()
        )

    @property
    def failure(self) -> str:
        """Why the last goal is not carried out; empty: it is, was, or may yet be."""
        if self._is_taken_over:
            return f"another client's goal took the place of ours on {self.action}, and commands the arm now"
        status, answer = self._statuses.get(self._goal), self._answered
        if status is None and answer is not None and not answer.accepted:
            return f"{self.action} rejected the goal; see the controller's log"
        if not self._goal or status in (GoalStatus.STATUS_SUCCEEDED, *RUNNING_GOAL):
            return ""
        if status is None:
            late = answer is None and time.monotonic() - self._sent > ANSWER
            return f"{self.action} does not answer" * late
        self._over = self._over or time.monotonic()
        if self._goal not in self._why and time.monotonic() - self._over < RESULT:
            return ""
        what = "cancelled" if status == GoalStatus.STATUS_CANCELED else "aborted"
        return f"{self.action} {what} the goal{self._why.get(self._goal, '')}"

    def publish(self, message: JointTrajectory) -> None:
        """Send a goal, which replaces the one that is under way."""
        goal = self._type.Goal(trajectory=message, goal_time_tolerance=Duration(seconds=ERASED).to_msg())
        tolerance = message_type("control_msgs", "JointTolerance")
        for field in ("path_tolerance", "goal_tolerance"):
            erased = [
                tolerance(name=name, position=ERASED, velocity=ERASED, acceleration=ERASED)
                for name in message.joint_names
            ]
            setattr(goal, field, erased)
        self._goal, self._sent = OWN_GOAL_PREFIX + urandom(16 - len(OWN_GOAL_PREFIX)), time.monotonic()
        self._replaced, self._running, self._over = self._running, None, None
        named = GoalInfo().goal_id
        named.uuid = list(self._goal)
        self._answer = self._client.send_goal_async(goal, self._on_feedback, named)
        self._answer.add_done_callback(partial(self._on_answer, self._goal))

    def keep_replaced(self) -> None:
        """Leave the goal before the last one under way until that is taken: it is a piece, which ends at rest."""
        self._running, self._replaced = self._replaced, None

    def cancel_all(self) -> None:
        """Cancel all goals of the server, whoever sent them."""
        self._cancel.call_async(CancelGoal.Request())

    def look(self) -> None:
        """Take the statuses that have come; cancel a goal that was to be replaced and is not."""
        for data, _ in waiting_messages(self._status_topic, STATUSES):
            self._statuses = goal_statuses(deserialize_message(data, GoalStatusArray))
        if self._replaced is None:
            return
        if self._is_accepted:
            self._replaced = None
        elif self.failure or time.monotonic() - self._sent > TAKEN_OVER:
            self._replaced.cancel_goal_async()
            self._replaced = None

    def acknowledged(self, seconds: float = 0.0) -> bool:
        """Whether the last goal was accepted, or another is cancelled instead; waits for that at most so long."""
        deadline = time.monotonic() + seconds
        while not self._is_accepted and time.monotonic() < deadline:
            time.sleep(POLL)
            self.look()
        return self._is_accepted

    @property
    def _answered(self) -> ClientGoalHandle | None:
        return self._answer.result() if self._answer is not None and self._answer.done() else None

    @property
    def _is_accepted(self) -> bool:
        return self._goal in self._statuses or (self._answered is not None and self._answered.accepted)

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
        names = [each for each in dir(self._type.Result) if each.isupper()]
        code = [each for each in names if result.error_code and getattr(self._type.Result, each) == result.error_code]
        self._why[goal] = "".join(f": {word}" for word in (*code, result.error_string) if word)

    def _on_feedback(self, message: Any) -> None:
        errors = [abs(value) for value in message.feedback.error.positions]
        self.error = max(errors, default=self.error)


def _action_type() -> Any:
    """Return the action; raises `DynidError` where it is not installed."""
    try:
        return import_module("control_msgs.action").FollowJointTrajectory
    except ImportError as error:
        raise DynidError(
            "Parameter command_interface is action, for which control_msgs is not installed (apt: "
            "ros-$ROS_DISTRO-control-msgs); install it, or set command_interface to topic"
        ) from error


def interface(node: Node, topic: str, choice: str, action: str) -> tuple[CommandTopic, TrajectoryAction | None]:
    """Return the ways to command a controller: its topic, and its action where that may be used.

    Args:
        node: that commands.
        topic: of `trajectory_msgs/JointTrajectory`.
        choice: auto, action or topic.
        action: name of the action; empty: by the topic's controller.

    Raises:
        DynidError: there is no such choice, or the action cannot be had.
    """
    if choice not in (AUTO, ACTION, TOPIC):
        raise DynidError(f"Parameter command_interface is '{choice}'; expected {AUTO}, {ACTION} or {TOPIC}")
    by_topic = CommandTopic(node, JointTrajectory, topic, 10)
    controller = topic.rpartition("/")[0]
    name = action or (f"{controller}/follow_joint_trajectory" if controller.strip("~") else "")
    if choice == ACTION and not name:
        raise DynidError(
            f"Parameter action_name is empty, and command_topic '{topic}' names no controller to tell it by"
        )
    if choice == TOPIC or not name:
        return by_topic, None
    try:
        return by_topic, TrajectoryAction(node, topic, name)
    except DynidError:
        if choice == ACTION:
            raise
        return by_topic, None
