"""Motions as goals of `control_msgs/action/FollowJointTrajectory`, if a controller serves that action."""

import math
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
from dynid_ros.nodes.shared.controllers import OWN_GOAL_PREFIX, RUNNING_GOAL, goal_statuses, message_type
from dynid_ros.nodes.shared.topics import LATCHED, CommandTopic, UnservedGroup, waiting_messages

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


class TrajectoryAction(CommandTopic):
    """Action client that sends each trajectory as a goal and follows the state of the goal.

    It is also a silent publisher of the topic, so that other nodes see that the controller is commanded. A goal erases
    the tolerances and has no effort, so it leaves nothing behind for later messages on the topic. The status of goals
    is read in `look` by the thread that watches the arm, even while the executor waits. The reason of an abort arrives
    with the result of the goal.

    Attributes:
        action: name of the action.
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
        self._running: ClientGoalHandle | None = None
        self._replaced: ClientGoalHandle | None = None
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
        """Reason why the last goal is not carried out; empty if it is, was, or may still be."""
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
        what = "cancelled" if status == GoalStatus.STATUS_CANCELED else "aborted"
        return f"{self.action} {what} the goal{self._abort_reasons.get(self._goal, '')}"

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
        """Let the previous goal run until the last one is accepted, because it is a piece that ends at rest."""
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
