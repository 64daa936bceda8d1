"""Whether a controller of ros2_control is active, and whether somebody commands it by its action."""

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from action_msgs.msg import GoalStatusArray
from lifecycle_msgs.msg import State, TransitionEvent
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from dynid_ros.nodes.shared.robot_description import LATCHED

UNKNOWN, INACTIVE, ACTIVE = "unknown", "inactive", "active"
SERVER_PERIOD = 0.25
"""s between two looks at who serves the action."""
ACTIVATED, DEACTIVATED, GOAL, NOTHING = "was activated", "was deactivated", "accepted an action goal", ""
"""What may happen."""


class ControllerWatch:
    """Follows the lifecycle of one controller, and the goals of its action.

    Controllers have no lifecycle services. They publish each transition on `<controller>/transition_event`, to those
    who listen at that moment (ros2_control 4.46.0, controller_interface_base.cpp, `init`). What was before is told by
    `controller_manager/activity` alone (since 4.28.0; controller_manager.cpp, `publish_activity`), for which
    `controller_manager_msgs` must be installed. Until either has told, the state is unknown.

    An accepted goal leaves its tolerances, and one that succeeded its last effort, with the controller for all that
    comes after it, until it is configured anew (ros2_controllers 4.42.1, joint_trajectory_controller.cpp,
    `goal_accepted_callback`, `on_configure`).

    Args:
        node: listens.
        controller: name of the controller's node.
        told: called with what happened, see below; nothing where it is only known now what the state is.

    Attributes:
        controller: as given.
        state: `unknown`, `inactive` or `active`.
        activated: when it was seen to be activated, s of the monotonic clock; None: not yet.
        transitioned: likewise when it was activated or deactivated.
        had_goal: whether its action has accepted a goal since it was configured, as far as the middleware tells.

    """

    def __init__(
        self,
        node: Node,
        controller: str,
        told: Callable[[str], None],
    ) -> None:
        self.controller = controller
        self.state = UNKNOWN
        self.activated: float | None = None
        self.transitioned: float | None = None
        self.had_goal = False
        self._node, self._told = node, told
        self._name = controller.rpartition("/")[2]
        self._goals: set[bytes] = set()
        self._servers: set[bytes] = set()
        self._status_topic = node.resolve_topic_name(f"{controller}/follow_joint_trajectory/_action/status")
        node.create_subscription(TransitionEvent, f"{controller}/transition_event", self._on_transition, 10)
        node.create_subscription(GoalStatusArray, self._status_topic, self._on_goals, LATCHED)
        if (activity := message_type("controller_manager_msgs", "ControllerManagerActivity")) is not None:
            manager = f"{controller.removesuffix(self._name)}controller_manager"
            node.create_subscription(activity, f"{manager}/activity", self.on_activity, LATCHED)
        # simulated time may stand still
        node.create_timer(SERVER_PERIOD, self._look_for_server, clock=Clock(clock_type=ClockType.STEADY_TIME))

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
        self._told((ACTIVATED if state == ACTIVE else DEACTIVATED) if happened else NOTHING)

    def _on_goals(self, message: GoalStatusArray) -> None:
        goals = {bytes(bytearray(status.goal_info.goal_id.uuid)) for status in message.status_list}
        new, self._goals = goals - self._goals, goals
        self._servers |= self._serving()
        if new:
            self.had_goal = True
            self._told(GOAL)

    def _look_for_server(self) -> None:
        """A server that is configured anew is another publisher, which has told of no goal."""
        if self._servers and self._servers.isdisjoint(self._serving()):
            self._forget_goals()

    def _forget_goals(self) -> None:
        self.had_goal = False
        self._goals, self._servers = set(), set()

    def _serving(self) -> set[bytes]:
        return {bytes(info.endpoint_gid) for info in self._node.get_publishers_info_by_topic(self._status_topic)}


def message_type(package: str, name: str) -> Any:
    """A message type of a package that need not be installed; None: it is not."""
    try:
        return getattr(import_module(f"{package}.msg"), name)
    except (ImportError, AttributeError):
        return None
