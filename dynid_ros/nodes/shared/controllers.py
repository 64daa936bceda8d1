"""What a running controller of ros2_control says of itself through its parameter service."""

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
from dynid_ros.nodes.shared.steady_thread import steady_timer
from dynid_ros.nodes.shared.topics import LATCHED

# Whether a controller of ros2_control is active, and whether somebody commands it by its action.


UNKNOWN, INACTIVE, ACTIVE = "unknown", "inactive", "active"
SERVER_PERIOD = 0.25
"""s between two looks at who serves the action."""
ACTIVATED, DEACTIVATED, GOAL, NOTHING = "was activated", "was deactivated", "accepted an action goal", ""
"""What may happen."""


OURS = b"dynid"
"""What the ids of goals begin with that leave neither tolerances nor effort behind."""
UNDER_WAY = (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING, GoalStatus.STATUS_CANCELING)
EVENTS = 100
"""Transitions that may wait in the queue of a busy node: loading a controller anew takes ten."""


class ControllerWatch:
    """Follows the lifecycle of one controller, and the goals of its action.

    Controllers have no lifecycle services. They publish each transition on `<controller>/transition_event`, to those
    who listen at that moment (ros2_control 4.46.0, controller_interface_base.cpp, `init`). What was before is known by
    `controller_manager/activity` alone (since 4.28.0; controller_manager.cpp, `publish_activity`), for which
    `controller_manager_msgs` must be installed. Until either has come, the state is unknown.

    An accepted goal leaves its tolerances, and one that succeeded its last effort, with the controller for all that
    comes after it, until it is configured anew (ros2_controllers 4.42.1, joint_trajectory_controller.cpp,
    `goal_accepted_callback`, `on_configure`).

    Args:
        node: listens.
        controller: name of the controller's node.
        report: called with what happened, see below; nothing where it is only known now what the state is.

    Attributes:
        controller: as given.
        state: `unknown`, `inactive` or `active`.
        activated: when it was seen to be activated, s of the monotonic clock; None: not yet.
        transitioned: likewise when it was activated or deactivated.
        had_goal: whether its action has accepted a goal since it was configured, as far as the middleware says, which
            is none of ours: they erase the tolerances.
        busy: whether a goal is under way.
    """

    def __init__(
        self,
        node: Node,
        controller: str,
        report: Callable[[str], None],
    ) -> None:
        self.controller = controller
        self.state = UNKNOWN
        self.activated: float | None = None
        self.transitioned: float | None = None
        self.had_goal = self.busy = False
        self._node, self._report = node, report
        self._name = controller.rpartition("/")[2]
        self._goals: set[bytes] = set()
        self._servers: set[bytes] = set()
        self._status_topic = node.resolve_topic_name(f"{controller}/follow_joint_trajectory/_action/status")
        node.create_subscription(TransitionEvent, f"{controller}/transition_event", self._on_transition, EVENTS)
        node.create_subscription(GoalStatusArray, self._status_topic, self._on_goals, LATCHED)
        if (activity := message_type("controller_manager_msgs", "ControllerManagerActivity")) is not None:
            manager = f"{controller.removesuffix(self._name)}controller_manager"
            node.create_subscription(activity, f"{manager}/activity", self.on_activity, LATCHED)
        steady_timer(node, SERVER_PERIOD, self._look_for_server)

    def on_activity(self, message: Any) -> None:
        """Take `controller_manager_msgs/ControllerManagerActivity`."""
        for each in message.controllers:
            if each.name == self._name:
                self._enter(each.state.id, happened=self.state != UNKNOWN)

    def _on_transition(self, message: TransitionEvent) -> None:
        if message.goal_state.id in (State.PRIMARY_STATE_UNCONFIGURED, State.TRANSITION_STATE_CONFIGURING):
            self._forget_goals()
        self._enter(message.goal_state.id, happened=True)

    def _enter(self, number: int, *, happened: bool) -> None:
        """Take a state of the lifecycle, which has come about now or had before."""
        state = ACTIVE if number == State.PRIMARY_STATE_ACTIVE else INACTIVE
        if state == self.state or number == State.TRANSITION_STATE_ACTIVATING:
            return
        self.state = state
        if happened:
            self.transitioned = time.monotonic()
            self.activated = self.transitioned if state == ACTIVE else self.activated
        self._report((ACTIVATED if state == ACTIVE else DEACTIVATED) if happened else NOTHING)

    def _on_goals(self, message: GoalStatusArray) -> None:
        statuses = goal_statuses(message)
        self.busy = any(status in UNDER_WAY for status in statuses.values())
        new, self._goals = statuses.keys() - self._goals, set(statuses)
        self._servers |= self._serving()
        if new:
            self.had_goal = self.had_goal or not all(goal.startswith(OURS) for goal in new)
            self._report(GOAL)

    def _look_for_server(self) -> None:
        """A server that is configured anew is another publisher, which has reported no goal."""
        if self._servers and self._servers.isdisjoint(self._serving()):
            self._forget_goals()

    def _forget_goals(self) -> None:
        self.had_goal = self.busy = False
        self._goals, self._servers = set(), set()

    def _serving(self) -> set[bytes]:
        return {bytes(info.endpoint_gid) for info in self._node.get_publishers_info_by_topic(self._status_topic)}


def goal_statuses(message: GoalStatusArray) -> dict[bytes, int]:
    """Return the status of each goal by its id."""
    return {bytes(bytearray(each.goal_info.goal_id.uuid)): each.status for each in message.status_list}


def message_type(package: str, name: str) -> Any:
    """A message type of a package that need not be installed; None: it is not."""
    try:
        return getattr(import_module(f"{package}.msg"), name)
    except (ImportError, AttributeError):
        return None


ASK_PERIOD = 0.25
ANSWER_TIMEOUT = 2.0
RESTORES = "set_last_command_interface_value_as_state_on_activation"
INTERPOLATES = ("interpolate_from_desired_state", "open_loop_control")
"""Parameters of `joint_trajectory_controller` that say so, since 4.22 and before."""
GOAL_TIME = "constraints.goal_time"
REPLACES = "allow_trajectory_replacement"
"""Parameter by which it blends a trajectory into the active one (ros2_controllers since 2026-08-15)."""
ASKED = ("joints", "interface_name", "command_interfaces", "cmd_timeout", GOAL_TIME, RESTORES, *INTERPOLATES, REPLACES)


@dataclass(frozen=True)
class ControllerAnswer:
    """What a controller is.

    Attributes:
        name: of its node.
        joints: in its order.
        interfaces: that it commands.
        follows_trajectories: as `joint_trajectory_controller` does; false: forwards commands.
        tolerant: it gives up no trajectory on its way, however far the arm is.
        command_timeout: s after which it drops a command that is not repeated; 0: never. `cmd_timeout` counts only
            where it exceeds `constraints.goal_time` (ros2_controllers 4.42.1, joint_trajectory_controller.cpp,
            `on_activate`).
        interpolates_from_desired: a new trajectory begins at the last command, not at the measured pose.
        replaces_from_desired: a trajectory that replaces an active one begins on the path of that one.
        restores_last_command: once activated it goes to the position that was commanded last, not to the measured one.
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
    def of(cls, name: str, values: Mapping[str, Any]) -> "ControllerAnswer":
        """What the values of its parameters say, None where it has no such parameter."""
        joints, several = tuple(values["joints"]), tuple(values["command_interfaces"] or ())
        timeout = values["cmd_timeout"] or 0.0
        return cls(
            name,
            joints,
            several or tuple(filter(None, [values["interface_name"]])),
            follows_trajectories=bool(several),
            tolerant=not any(values[_tolerance(joint)] for joint in joints),
            command_timeout=timeout if timeout > (values[GOAL_TIME] or 0.0) else 0.0,
            interpolates_from_desired=any(values[each] for each in INTERPOLATES),
            replaces_from_desired=bool(values[REPLACES]),
            restores_last_command=bool(values[RESTORES]),
        )

    @property
    def claims(self) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
        """What it cannot change but by being loaded anew: joints, interfaces, and whether it follows trajectories."""
        return self.joints, self.interfaces, self.follows_trajectories

    @property
    def commands(self) -> str:
        """Its interfaces in words."""
        return " and ".join(self.interfaces) or "nothing"


class ControllerQuery:
    """Asks a controller for its joints and interfaces, and goes on asking, for it may be loaded anew with others.

    Nothing waits: what asks is a timer, and `answer` gives the last answer; `changed` is called after one that
    differs from the one before.
    """

    def __init__(self, node: Node, controller: str, changed: Callable[[ControllerAnswer], None]) -> None:
        self.controller = controller
        self._changed = changed
        self._service = f"{controller}/get_parameters"
        self._client = node.create_client(GetParameters, self._service)
        self._answer: ControllerAnswer | None = None
        self._problem = f"controller '{controller}' has not answered yet"
        self._asked = self._answered = time.monotonic()
        self._pending: Future | None = None
        self._values: dict[str, Any] = {}
        steady_timer(node, ASK_PERIOD, self._ask)

    @property
    def problem(self) -> str:
        """Why there is no answer; empty if there is."""
        return self._problem

    @property
    def latest(self) -> ControllerAnswer | None:
        """What the controller said last, though it may be gone; None: nothing yet."""
        return self._answer

    @property
    def is_served(self) -> bool:
        """Whether there is a service that answers."""
        return self._client.service_is_ready()

    def answer(self) -> ControllerAnswer:
        """What the controller says.

        Raises:
            ControlError: it is not there, does not answer, or is a controller of another kind.
        """
        if self._answer is None or self._problem:
            raise ControlError(f"{self._problem}; start it (ros2 control list_controllers), then configure again")
        return self._answer

    def _ask(self) -> None:
        """Begin another round, unless one is under way."""
        now = time.monotonic()
        if self._pending is not None:
            if now - self._asked < ANSWER_TIMEOUT:
                return
            self._client.remove_pending_request(self._pending)
            self._pending = None
        if not self._client.service_is_ready():
            self._problem = f"there is no controller '{self.controller}' (no service {self._service})"
            return
        if now - self._answered > ANSWER_TIMEOUT:
            self._problem = f"controller '{self.controller}' does not answer on {self._service}"
        self._values = {}
        self._ask_for(ASKED[0])

    def _ask_for(self, name: str) -> None:
        # One by one: rclcpp answers nothing at all where one of several names is not declared; and one after the other:
        # the queue of a service holds ten requests.
        self._asked = time.monotonic()
        self._pending = self._client.call_async(GetParameters.Request(names=[name]))
        self._pending.add_done_callback(lambda future: self._on_answer(future, name))

    def _on_answer(self, future: Future, name: str) -> None:
        if future is not self._pending:
            return
        self._pending = None
        self._values[name] = _value(future.result())
        joints = tuple(self._values["joints"] or ())
        if not joints:
            self._answered = time.monotonic()
            self._problem = f"'{self.controller}' has no parameter joints, so it is no controller that can be used here"
            return
        remaining = (each for each in (*ASKED, *map(_tolerance, joints)) if each not in self._values)
        if (following := next(remaining, None)) is not None:
            self._ask_for(following)
            return
        self._answered = time.monotonic()
        answer, before = ControllerAnswer.of(self.controller, self._values), self._answer
        self._problem, self._answer = "", answer
        if answer != before:
            self._changed(answer)


def _tolerance(joint: str) -> str:
    return f"constraints.{joint}.trajectory"


def _value(response: GetParameters.Response | None) -> Any:
    """Return the value of the one parameter asked for; None if it is not declared or not set."""
    return parameter_value_to_python(response.values[0]) if response is not None and response.values else None
