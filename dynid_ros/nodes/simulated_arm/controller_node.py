"""Node interfaces of a simulated controller: parameters, lifecycle transitions and status of action goals."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from uuid import uuid4

from action_msgs.msg import GoalStatus, GoalStatusArray
from lifecycle_msgs.msg import State, Transition, TransitionEvent
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.controllers import EVENT_QUEUE_DEPTH
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.topics import LATCHED
from dynid_ros.simulation import TrajectorySettings
from dynid_ros.simulation.trajectory_controller import Goal

PER_JOINT = "; one value for all joints, or one per joint"
GOAL_PARAMETERS = (
    NodeParameter(
        "goal.path_tolerance",
        [0.0],
        f"path tolerance of the next action goal, rad; 0: the default, -1: none{PER_JOINT}",
        True,
    ),
    NodeParameter(
        "goal.goal_tolerance",
        [0.0],
        f"goal tolerance of the next action goal, rad; 0: the default, -1: none{PER_JOINT}",
        True,
    ),
    NodeParameter(
        "goal.goal_time_tolerance", 0.0, "time tolerance of the next action goal, s; 0: the default, -1: none", True
    ),
)
"""Fields of an action goal that a message on `~/goal` lacks."""
CONTROLLER_PARAMETERS = (
    NodeParameter(
        "controller",
        "effort",
        "controllers; effort: a position servo with the arm's model, or in effort mode forwarded torques alone; "
        "position_and_effort: a servo without model, to which forwarded torques are added; "
        "trajectory_effort: the same with torques in the trajectories; "
        "ros2_control: none, the servo without model is hardware for ros2_control",
        choices=("effort", "position_and_effort", "trajectory_effort", "ros2_control"),
    ),
    NodeParameter("controller_joints", [""], 'joints in the order of the controllers; [""]: the model\'s order'),
    NodeParameter(
        "trajectory_topic",
        "joint_trajectory_controller/joint_trajectory",
        "trajectories for position mode",
        required=True,
    ),
    NodeParameter(
        "effort_topic", "forward_effort_controller/commands", "torques, in the controller's joint order", required=True
    ),
    NodeParameter(
        "set_last_command_interface_value_as_state_on_activation",
        True,
        "when activated, the trajectory controller moves to the last commanded position; false: holds the measured one",
    ),
    NodeParameter(
        "interpolate_from_desired_state",
        False,
        "a new trajectory begins at the desired position; false: at the measured one",
    ),
    NodeParameter(
        "allow_trajectory_replacement",
        False,
        "a trajectory that replaces an active one begins on its path, the default since 2026-08-15; false: as before",
    ),
    NodeParameter(
        "cmd_timeout", 0.0, "time after the last point until it aborts, s, if above constraints.goal_time; 0: never"
    ),
    NodeParameter("constraints.goal_time", 0.0, "time after the end in which a goal must be reached, s; 0: any"),
    NodeParameter(
        "constraints.stopped_velocity_tolerance", 0.01, "speed at which a goal with effort counts as at rest, rad/s"
    ),
    NodeParameter(
        "constraints.trajectory", [0.0], f"deviation at which a trajectory is aborted, rad; 0: never{PER_JOINT}"
    ),
    NodeParameter(
        "constraints.goal", [0.0], f"distance from its end at which a goal is reached, rad; 0: any{PER_JOINT}"
    ),
    *GOAL_PARAMETERS,
)
FIXED_SETTINGS = {"command_interfaces", "interpolate_from_desired_state"}
CHANGEABLE_SETTINGS = {
    "allow_trajectory_replacement",
    "set_last_command_interface_value_as_state_on_activation",
    "cmd_timeout",
    "constraints.goal_time",
    "constraints.stopped_velocity_tolerance",
}


def constraint_name(joint: str, kind: str) -> str:
    """Return the parameter of a joint's tolerance; `kind` is trajectory or goal."""
    return f"constraints.{joint}.{kind}"


def tolerance_values(settings: Mapping, joints: Sequence[str]) -> dict[str, float]:
    """Return `constraints.<joint>.trajectory` and `.goal` from the simulator's lists of tolerances."""
    lists = TrajectorySettings(trajectory=settings["constraints.trajectory"], goal=settings["constraints.goal"])
    tolerances = lists.tolerances(len(joints))
    return {
        constraint_name(joint, kind): float(value)
        for kind in ("trajectory", "goal")
        for joint, value in zip(joints, getattr(tolerances, kind), strict=True)
    }


def trajectory_settings(values: Mapping, joints: Sequence[str]) -> TrajectorySettings:
    """Return the controller's settings from its node's parameters, with tolerances in the order of `joints`.

    Raises:
        DynidError: a setting is invalid.
    """
    settings = TrajectorySettings(
        **{name.removeprefix("constraints."): values[name] for name in (*FIXED_SETTINGS, *CHANGEABLE_SETTINGS)},
        trajectory=[values[constraint_name(name, "trajectory")] for name in joints],
        goal=[values[constraint_name(name, "goal")] for name in joints],
    )
    settings.tolerances(len(joints))  # checks them
    return settings


TRANSITIONS = {
    "configure": ("unconfigured", "configuring", "inactive"),
    "cleanup": ("inactive", "cleaningup", "unconfigured"),
    "activate": ("inactive", "activating", "active"),
    "deactivate": ("active", "deactivating", "inactive"),
}
"""States before, during and after each transition."""


def _state(label: str) -> State:
    kind = "PRIMARY" if label in ("unconfigured", "inactive", "active") else "TRANSITION"
    return State(id=getattr(State, f"{kind}_STATE_{label.upper()}"), label=label)


class ControllerNode:
    """Services and topics of a controller's node, named `<controller>/...`.

    Controllers have no lifecycle services; they publish transitions for present subscribers. With rclcpp, a request for
    several parameters, one of which is not declared, has an empty answer.

    Args:
        topic: topic of the controller's commands; without the name of a controller, nothing is offered.
        parameters: values by name.
        changed: called with all values before a change; an exception refuses the change.
        changeable: names of parameters that are not read-only.
        goals: whether the controller accepts action goals and publishes their status.
    """

    def __init__(
        self,
        node: Node,
        topic: str,
        parameters: Mapping[str, object],
        *,
        changed: Callable[[Mapping[str, object]], None] = lambda _values: None,
        changeable: frozenset[str] = frozenset(),
        goals: bool = False,
    ) -> None:
        self._node = node
        self._name = topic.rpartition("/")[0]
        self._values = dict(parameters)
        self._changed = changed
        self._changeable = changeable
        self._with_goals = goals
        self._goals: list[tuple[GoalStatus, Goal]] = []
        self._status: Publisher | None = None
        self._transitions: Publisher | None = None
        if not self._name:
            return
        node.create_service(GetParameters, f"{self._name}/get_parameters", self._on_get)
        node.create_service(SetParameters, f"{self._name}/set_parameters", self._on_set)
        self._transitions = node.create_publisher(TransitionEvent, f"{self._name}/transition_event", EVENT_QUEUE_DEPTH)
        self._serve_goals()

    def publish_active(self, active: bool) -> None:
        """Publish that the controller was activated or deactivated."""
        self._publish_transition("activate" if active else "deactivate")

    def publish_configured(self) -> None:
        """Publish that the controller was cleaned up and configured; its new action server has no goals."""
        self._publish_transition("cleanup")
        self._publish_transition("configure")
        self._serve_goals()

    def publish_goals(self, goals: list[Goal]) -> None:
        """Publish the status of the action goals, if it has changed."""
        if [state for _, state in self._goals] == goals or self._status is None:
            return
        for _ in goals[len(self._goals) :]:
            status = GoalStatus()
            status.goal_info.goal_id.uuid = list(uuid4().bytes)
            status.goal_info.stamp = self._node.get_clock().now().to_msg()
            self._goals.append((status, Goal.EXECUTING))
        self._goals = [(status, state) for (status, _), state in zip(self._goals, goals, strict=True)]
        for status, state in self._goals:
            status.status = getattr(GoalStatus, f"STATUS_{state.name}")
        self._status.publish(GoalStatusArray(status_list=[status for status, _ in self._goals]))

    def _serve_goals(self) -> None:
        if not self._with_goals:
            return
        if self._status is not None:
            self._node.destroy_publisher(self._status)
        # rcl_action_qos_profile_status_default: later subscribers receive the last array
        self._status = self._node.create_publisher(
            GoalStatusArray, f"{self._name}/follow_joint_trajectory/_action/status", LATCHED
        )
        self._goals = []

    def _publish_transition(self, label: str) -> None:
        if self._transitions is None:
            return
        number = getattr(Transition, f"TRANSITION_{label.upper()}")
        for start, goal in pairwise(map(_state, TRANSITIONS[label])):
            event = TransitionEvent(timestamp=self._node.get_clock().now().nanoseconds)
            event.transition.id = number
            event.transition.label = label
            event.start_state = start
            event.goal_state = goal
            self._transitions.publish(event)

    def _on_get(self, request: GetParameters.Request, response: GetParameters.Response) -> GetParameters.Response:
        if all(name in self._values for name in request.names):
            named = [Parameter(name, value=self._values[name]) for name in request.names]
            response.values = [parameter.to_parameter_msg().value for parameter in named]
        return response

    def _on_set(self, request: SetParameters.Request, response: SetParameters.Response) -> SetParameters.Response:
        response.results = [self._set(Parameter.from_parameter_msg(message)) for message in request.parameters]
        return response

    def _set(self, parameter: Parameter) -> SetParametersResult:
        name = parameter.name
        value = parameter.value
        if name not in self._changeable:
            what = "is read-only" if name in self._values else "was not declared"
            return SetParametersResult(successful=False, reason=f"parameter '{name}' {what}")
        if type(value) is not type(self._values[name]):
            return SetParametersResult(successful=False, reason=f"parameter '{name}' has another type")
        try:
            self._changed(self._values | {name: value})
        except DynidError as error:
            return SetParametersResult(successful=False, reason=str(error))
        self._values[name] = value
        return SetParametersResult(successful=True)
