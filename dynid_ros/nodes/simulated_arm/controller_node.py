"""What the node of a simulated controller offers besides its commands: parameters, lifecycle, state of its goals."""

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

EACH = "; one value for all joints, or one per joint"
GOAL_PARAMETERS = (
    NodeParameter("goal.path_tolerance", [0.0], f"rad, of the next action goal; 0: the default, -1: none{EACH}", True),
    NodeParameter("goal.goal_tolerance", [0.0], f"rad, likewise, where it ends{EACH}", True),
    NodeParameter("goal.goal_time_tolerance", 0.0, "s, likewise, until it is reached", True),
)
"""Fields of the message on `~/goal`, which stands for an action goal."""
CONTROLLER_PARAMETERS = (
    NodeParameter(
        "controller",
        "effort",
        "effort: a position servo that knows the arm's model, or in effort mode forwarded torques alone; "
        "position_and_effort: a servo without model, forwarded torques added; "
        "trajectory_effort: the same, torques in the trajectories; "
        "ros2_control: none of its own, the servo without model is hardware for ros2_control",
    ),
    NodeParameter("controller_joints", [""], 'joints of the controllers in their order; [""]: those of the model'),
    NodeParameter(
        "trajectory_topic",
        "joint_trajectory_controller/joint_trajectory",
        "trajectories for position mode",
        required=True,
    ),
    NodeParameter(
        "effort_topic",
        "forward_effort_controller/commands",
        "torques, in the controller's joint order",
        required=True,
    ),
    NodeParameter(
        "set_last_command_interface_value_as_state_on_activation",
        True,
        "the trajectory controller goes back to the position commanded last; false: holds the measured one",
    ),
    NodeParameter(
        "interpolate_from_desired_state",
        False,
        "a new trajectory begins where the arm was to be; false: where it is measured",
    ),
    NodeParameter(
        "allow_trajectory_replacement",
        False,
        "a trajectory that replaces an active one begins on its path, as by default since 2026-08-15; false: as before",
    ),
    NodeParameter(
        "cmd_timeout", 0.0, "s after the last point at which it aborts, if > constraints.goal_time; 0: never"
    ),
    NodeParameter("constraints.goal_time", 0.0, "s after the end within which a goal is to be reached; 0: for ever"),
    NodeParameter("constraints.stopped_velocity_tolerance", 0.01, "rad/s at which a goal with effort has come to rest"),
    NodeParameter("constraints.trajectory", [0.0], f"rad at which a trajectory is aborted on its way; 0: never{EACH}"),
    NodeParameter("constraints.goal", [0.0], f"rad to its end at which a goal is reached; 0: anywhere{EACH}"),
    *GOAL_PARAMETERS,
)
CONTROLLERS = ("effort", "position_and_effort", "trajectory_effort", "ros2_control")
FIXED = {"command_interfaces", "interpolate_from_desired_state"}
CHANGEABLE = {
    "allow_trajectory_replacement",
    "set_last_command_interface_value_as_state_on_activation",
    "cmd_timeout",
    "constraints.goal_time",
    "constraints.stopped_velocity_tolerance",
}


def constraint(joint: str, kind: str) -> str:
    """Name of a joint's tolerance, `kind` trajectory or goal."""
    return f"constraints.{joint}.{kind}"


def tolerance_values(settings: Mapping, joints: Sequence[str]) -> dict[str, float]:
    """`constraints.<joint>.trajectory` and `.goal` from the simulator's lists of tolerances."""
    made = TrajectorySettings(trajectory=settings["constraints.trajectory"], goal=settings["constraints.goal"])
    tolerances = made.tolerances(len(joints))
    return {
        constraint(joint, kind): float(value)
        for kind in ("trajectory", "goal")
        for joint, value in zip(joints, getattr(tolerances, kind), strict=True)
    }


def trajectory_settings(values: Mapping, joints: Sequence[str]) -> TrajectorySettings:
    """Return the controller's settings from its node's parameters; tolerances in the order of `joints`.

    Raises:
        DynidError: one that the controller does not take.
    """
    made = TrajectorySettings(
        **{name.removeprefix("constraints."): values[name] for name in (*FIXED, *CHANGEABLE)},
        trajectory=[values[constraint(name, "trajectory")] for name in joints],
        goal=[values[constraint(name, "goal")] for name in joints],
    )
    made.tolerances(len(joints))
    return made


TRANSITIONS = {
    "configure": ("unconfigured", "configuring", "inactive"),
    "cleanup": ("inactive", "cleaningup", "unconfigured"),
    "activate": ("inactive", "activating", "active"),
    "deactivate": ("active", "deactivating", "inactive"),
}
"""States that each leads through."""


def _state(label: str) -> State:
    kind = "PRIMARY" if label in ("unconfigured", "inactive", "active") else "TRANSITION"
    return State(id=getattr(State, f"{kind}_STATE_{label.upper()}"), label=label)


class ControllerNode:
    """Answers and publishes in the name of a controller, as its node would, under the topic `<controller>/...`.

    Controllers have no lifecycle services; they publish transitions, to whom listens then. With rclcpp a request for
    several parameters of which one is not declared has an empty answer.

    Args:
        node: has the services and publishers.
        topic: of the controller's commands; without a controller's name in it there is nothing to ask.
        parameters: values by name.
        changed: called with all values where one of `changeable` is set; what it raises refuses.
        changeable: names of parameters that are not read-only.
        goals: whether it takes action goals, and publishes how they stand.
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
        self._changed, self._changeable = changed, changeable
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

    def tell_active(self, active: bool) -> None:
        """Publish that it was activated or deactivated."""
        self._tell("activate" if active else "deactivate")

    def tell_configured(self) -> None:
        """Publish that it was cleaned up and configured; a new action server knows of no goals."""
        self._tell("cleanup")
        self._tell("configure")
        self._serve_goals()

    def tell_goals(self, goals: list[Goal]) -> None:
        """Publish how the action goals stand, where that has changed."""
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
        # as rcl_action_qos_profile_status_default: the last array reaches who comes later
        self._status = self._node.create_publisher(
            GoalStatusArray, f"{self._name}/follow_joint_trajectory/_action/status", LATCHED
        )
        self._goals = []

    def _tell(self, label: str) -> None:
        if self._transitions is None:
            return
        number = getattr(Transition, f"TRANSITION_{label.upper()}")
        for start, goal in pairwise(map(_state, TRANSITIONS[label])):
            event = TransitionEvent(timestamp=self._node.get_clock().now().nanoseconds)
            event.transition.id, event.transition.label = number, label
            event.start_state, event.goal_state = start, goal
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
        name, value = parameter.name, parameter.value
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
