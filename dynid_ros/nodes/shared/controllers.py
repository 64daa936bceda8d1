"""View of a running controller of ros2_control: its parameters, its lifecycle and its action goals."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from action_msgs.msg import GoalStatus, GoalStatusArray
from lifecycle_msgs.msg import State, TransitionEvent
from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.task import Future

from dynid_ros.errors import ControlError
from dynid_ros.nodes.shared.process import steady_timer
from dynid_ros.nodes.shared.topics import LATCHED

UNKNOWN = "unknown"
INACTIVE = "inactive"
ACTIVE = "active"
ACTIVATED = "was activated"
DEACTIVATED = "was deactivated"
ACCEPTED_GOAL = "accepted an action goal"
STATE_LEARNT = ""
"""Event without a change: the present state has become known."""
OWN_GOAL_PREFIX = b"dynid"
"""Beginning of the ids of goals that leave neither tolerances nor effort behind."""
RUNNING_GOAL = (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING, GoalStatus.STATUS_CANCELING)
EVENT_QUEUE_DEPTH = 100
"""Transitions that may wait while a node is busy; reloading a controller takes ten."""
POLL_PERIOD_S = 0.25
"""Time between two queries of the parameters, and between two looks at the action server."""
ANSWER_TIMEOUT_S = 2.0
RESTORES = "set_last_command_interface_value_as_state_on_activation"
INTERPOLATES = ("interpolate_from_desired_state", "open_loop_control")
"""Parameters of `joint_trajectory_controller` with the same meaning, since 4.22 and before."""
GOAL_TIME = "constraints.goal_time"
REPLACES = "allow_trajectory_replacement"
"""Parameter that blends a new trajectory into the active one (ros2_controllers since 2026-08-15)."""
QUERIED = (
    "joints",
    "interface_name",
    "command_interfaces",
    "cmd_timeout",
    GOAL_TIME,
    RESTORES,
    *INTERPOLATES,
    REPLACES,
)


@dataclass(frozen=True)
class ControllerAnswer:
    """Properties of a controller, from its parameters.

    Attributes:
        joints: its joints, in its order.
        follows_trajectories: whether it follows trajectories, as `joint_trajectory_controller`, or forwards commands.
        tolerant: whether it continues a trajectory however far the arm deviates.
        command_timeout: time after which it drops a command that is not repeated, s; 0: never. `cmd_timeout` counts
            only if it exceeds `constraints.goal_time` (ros2_controllers 4.42.1, joint_trajectory_controller.cpp,
            `on_activate`).
        interpolates_from_desired: whether a new trajectory begins at the last command, not at the measured pose.
        replaces_from_desired: whether a trajectory that replaces an active one begins on the path of that one.
        restores_last_command: whether it moves to the last commanded position when activated, not to the measured one.
    """

    name: str
    joints: tuple[str, ...]
    interfaces: tuple[str, ...]
    follows_trajectories: bool
    tolerant: bool = True
    command_timeout: float = 0.0
    interpolates_from_desired: bool = False
    replaces_from_desired: bool = False
    restores_last_command: bool = False

    @classmethod
    def from_parameters(cls, name: str, values: Mapping[str, Any]) -> "ControllerAnswer":
        """Read the values of the parameters; None stands for a parameter that the controller does not have."""
        joints = tuple(values["joints"])
        several = tuple(values["command_interfaces"] or ())
        timeout = values["cmd_timeout"] or 0.0
        return cls(
            name,
            joints,
            several or tuple(filter(None, [values["interface_name"]])),
            follows_trajectories=bool(several),
            tolerant=not any(values[_tolerance(joint)] for joint in joints),
            command_timeout=timeout if timeout > (values[GOAL_TIME] or 0.0) else 0.0,
            interpolates_from_desired=any(values[parameter] for parameter in INTERPOLATES),
            replaces_from_desired=bool(values[REPLACES]),
            restores_last_command=bool(values[RESTORES]),
        )

    @property
    def claims(self) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
        """Properties that change only when the controller is loaded again: joints, interfaces, kind of commands."""
        return self.joints, self.interfaces, self.follows_trajectories

    @property
    def commands(self) -> str:
        """Command interfaces, for display."""
        return " and ".join(self.interfaces) or "nothing"


class ControllerView:
    """View of one controller, kept up to date by its parameter service, its transitions and the status of its action.

    The parameters are queried again and again, because the controller may be loaded again with others. No call waits.

    Controllers have no lifecycle services. They publish each transition on `<controller>/transition_event` for
    subscribers of that moment (ros2_control 4.46.0, controller_interface_base.cpp, `init`). Earlier states are known
    only from `controller_manager/activity` (since 4.28.0; controller_manager.cpp, `publish_activity`), which requires
    `controller_manager_msgs`. Before either message the state is unknown.

    An accepted goal leaves its tolerances, and a succeeded one its last effort, with the controller for all later
    commands, until it is configured again (ros2_controllers 4.42.1, joint_trajectory_controller.cpp,
    `goal_accepted_callback`, `on_configure`).

    Args:
        node: node of the client and the subscriptions.
        name: name of the controller's node; empty: no controller is known, and nothing ever changes.
        on_event: called with `ACTIVATED`, `DEACTIVATED`, `ACCEPTED_GOAL` or `STATE_LEARNT`.
        on_answer: called with an answer that differs from the one before; None: the parameters are not queried.

    Attributes:
        answer: last answer of the controller, which may have ended since; None before the first.
        problem: reason why the controller does not answer now; empty if it does.
        state: `UNKNOWN`, `INACTIVE` or `ACTIVE`.
        activated: time of the last observed activation, s of the monotonic clock; None without one.
        transitioned: time of the last observed activation or deactivation.
        had_goal: whether the action has accepted a goal since the controller was configured, except for goals of this
            package, which erase the tolerances.
    """

    def __init__(
        self,
        node: Node,
        name: str,
        *,
        on_event: Callable[[str], None] = lambda _: None,
        on_answer: Callable[[ControllerAnswer], None] | None = None,
    ) -> None:
        self.name = name
        self.answer: ControllerAnswer | None = None
        self.problem = f"controller '{name}' has not answered yet"
        self.state = UNKNOWN
        self.activated: float | None = None
        self.transitioned: float | None = None
        self.had_goal = False
        self.busy = False
        self._node = node
        self._on_event = on_event
        if not name:
            return
        self._goals: set[bytes] = set()
        self._servers: set[bytes] = set()
        self._status_topic = node.resolve_topic_name(f"{name}/follow_joint_trajectory/_action/status")
        node.create_subscription(TransitionEvent, f"{name}/transition_event", self._on_transition, EVENT_QUEUE_DEPTH)
        node.create_subscription(GoalStatusArray, self._status_topic, self._on_goals, LATCHED)
        if (activity := message_type("controller_manager_msgs", "ControllerManagerActivity")) is not None:
            manager = f"{name.removesuffix(self._base_name)}controller_manager"
            node.create_subscription(activity, f"{manager}/activity", self.on_activity, LATCHED)
        steady_timer(node, POLL_PERIOD_S, self._look_for_server)
        if on_answer is None:
            return
        self._on_answer = on_answer
        self._service = f"{name}/get_parameters"
        self._client = node.create_client(GetParameters, self._service)
        self._asked = time.monotonic()
        self._answered = time.monotonic()
        self._pending: Future | None = None
        self._values: dict[str, Any] = {}
        steady_timer(node, POLL_PERIOD_S, self._query)

    @property
    def is_active(self) -> bool:
        """Whether the controller is active for certain."""
        return self.state == ACTIVE

    @property
    def is_inactive(self) -> bool:
        """Whether the controller is inactive for certain."""
        return self.state == INACTIVE

    @property
    def is_answering(self) -> bool:
        """Whether the first answer can be expected soon."""
        return bool(self.name) and self.answer is None and self._client.service_is_ready()

    def require_answer(self) -> ControllerAnswer:
        """Return the answer of the controller."""
        if self.answer is None or self.problem:
            raise ControlError(f"{self.problem}; start it (ros2 control list_controllers), then configure again")
        return self.answer

    @property
    def _base_name(self) -> str:
        return self.name.rpartition("/")[2]

    def on_activity(self, message: Any) -> None:
        """Process a message `controller_manager_msgs/ControllerManagerActivity`."""
        for controller in message.controllers:
            if controller.name == self._base_name:
                self._enter(controller.state.id, happened=self.state != UNKNOWN)

    def _on_transition(self, message: TransitionEvent) -> None:
        if message.goal_state.id in (State.PRIMARY_STATE_UNCONFIGURED, State.TRANSITION_STATE_CONFIGURING):
            self._forget_goals()
        self._enter(message.goal_state.id, happened=True)

    def _enter(self, number: int, *, happened: bool) -> None:
        """Store a lifecycle state, which has changed just now if it `happened`."""
        state = ACTIVE if number == State.PRIMARY_STATE_ACTIVE else INACTIVE
        if state == self.state or number == State.TRANSITION_STATE_ACTIVATING:
            return
        self.state = state
        if happened:
            self.transitioned = time.monotonic()
            self.activated = self.transitioned if state == ACTIVE else self.activated
        self._on_event((ACTIVATED if state == ACTIVE else DEACTIVATED) if happened else STATE_LEARNT)

    def _on_goals(self, message: GoalStatusArray) -> None:
        statuses = goal_statuses(message)
        self.busy = any(status in RUNNING_GOAL for status in statuses.values())
        new = statuses.keys() - self._goals
        self._goals = set(statuses)
        self._servers |= self._serving()
        if new:
            self.had_goal = self.had_goal or not all(goal.startswith(OWN_GOAL_PREFIX) for goal in new)
            self._on_event(ACCEPTED_GOAL)

    def _look_for_server(self) -> None:
        """Forget the goals of a server that has ended; a controller that is configured again starts another server."""
        if self._servers and self._servers.isdisjoint(self._serving()):
            self._forget_goals()

    def _forget_goals(self) -> None:
        self.had_goal = False
        self.busy = False
        self._goals = set()
        self._servers = set()

    def _serving(self) -> set[bytes]:
        return {bytes(info.endpoint_gid) for info in self._node.get_publishers_info_by_topic(self._status_topic)}

    def _query(self) -> None:
        """Begin a round of queries, unless one is running."""
        now = time.monotonic()
        if self._pending is not None:
            if now - self._asked < ANSWER_TIMEOUT_S:
                return
            self._client.remove_pending_request(self._pending)
            self._pending = None
        if not self._client.service_is_ready():
            self.problem = f"there is no controller '{self.name}' (no service {self._service})"
            return
        if now - self._answered > ANSWER_TIMEOUT_S:
            self.problem = f"controller '{self.name}' does not answer on {self._service}"
        self._values = {}
        self._query_parameter(QUERIED[0])

    def _query_parameter(self, parameter: str) -> None:
        # One parameter per request: rclcpp sends an empty answer if one of several is not declared. One request at a
        # time: the queue of a service holds ten.
        self._asked = time.monotonic()
        self._pending = self._client.call_async(GetParameters.Request(names=[parameter]))
        self._pending.add_done_callback(lambda future: self._on_value(future, parameter))

    def _on_value(self, future: Future, parameter: str) -> None:
        if future is not self._pending:
            return
        self._pending = None
        self._values[parameter] = _value(future.result())
        joints = tuple(self._values["joints"] or ())
        if not joints:
            self._answered = time.monotonic()
            self.problem = f"'{self.name}' has no parameter joints, so it is no controller that can be used here"
            return
        remaining = (name for name in (*QUERIED, *map(_tolerance, joints)) if name not in self._values)
        if (following := next(remaining, None)) is not None:
            self._query_parameter(following)
            return
        self._answered = time.monotonic()
        before = self.answer
        self.problem = ""
        self.answer = ControllerAnswer.from_parameters(self.name, self._values)
        if self.answer != before:
            self._on_answer(self.answer)


def goal_statuses(message: GoalStatusArray) -> dict[bytes, int]:
    """Return the status of each goal by its id."""
    return {bytes(bytearray(status.goal_info.goal_id.uuid)): status.status for status in message.status_list}


def message_type(package: str, name: str) -> Any:
    """Return a message type of a package that need not be installed; None if it is not."""
    try:
        return getattr(import_module(f"{package}.msg"), name)
    except (ImportError, AttributeError):
        return None


def _tolerance(joint: str) -> str:
    return f"constraints.{joint}.trajectory"


def _value(response: GetParameters.Response | None) -> Any:
    """Return the value of the only parameter of a response; None if it is not declared or not set."""
    return parameter_value_to_python(response.values[0]) if response is not None and response.values else None
