"""Parameters of the simulated controllers: the simulator's own, and which of them the controllers' nodes answer."""

from collections.abc import Mapping, Sequence

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.simulation import TrajectorySettings

EACH = "; one value for all joints, or one per joint"
GOAL_PARAMETERS = (
    NodeParameter("goal.path_tolerance", [0.0], f"rad, of the next action goal; 0: the default, -1: none{EACH}", True),
    NodeParameter("goal.goal_tolerance", [0.0], f"rad, likewise, where it ends{EACH}", True),
    NodeParameter("goal.goal_time_tolerance", 0.0, "s, likewise, until it is reached", True),
)
"""Of the message on `~/goal`, which stands for an action goal."""
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
        "cmd_timeout", 0.0, "s after the last point at which it aborts, if > constraints.goal_time; 0: never"
    ),
    NodeParameter("constraints.goal_time", 0.0, "s after the end within which a goal is to be reached; 0: for ever"),
    NodeParameter("constraints.stopped_velocity_tolerance", 0.01, "rad/s at which a goal with effort has come to rest"),
    NodeParameter("constraints.trajectory", [0.0], f"rad at which a trajectory is aborted on its way; 0: never{EACH}"),
    NodeParameter("constraints.goal", [0.0], f"rad to its end at which a goal is reached; 0: anywhere{EACH}"),
    *GOAL_PARAMETERS,
)
CONTROLLERS = ("effort", "position_and_effort", "trajectory_effort", "ros2_control")
CHANGEABLE = {
    "set_last_command_interface_value_as_state_on_activation",
    "cmd_timeout",
    "constraints.goal_time",
    "constraints.stopped_velocity_tolerance",
}


def checked_controller(name: str) -> str:
    """One of `CONTROLLERS`.

    Raises:
        DynidError: another name.

    """
    if name not in CONTROLLERS:
        raise DynidError(f"Parameter 'controller' is '{name}'; expected {', '.join(CONTROLLERS)}")
    return name


def constraint(joint: str, kind: str) -> str:
    """Name of a joint's tolerance, `kind` trajectory or goal."""
    return f"constraints.{joint}.{kind}"


def tolerance_values(settings: Mapping, joints: Sequence[str]) -> dict[str, float]:
    """`constraints.<joint>.trajectory` and `.goal` from the simulator's lists of tolerances."""
    made = TrajectorySettings(trajectory=settings["constraints.trajectory"], goal=settings["constraints.goal"])
    tolerances = made.tolerances(len(joints))
    return {
        constraint(joint, kind): float(value)
        for kind, values in (("trajectory", tolerances.trajectory), ("goal", tolerances.goal))
        for joint, value in zip(joints, values, strict=True)
    }


def trajectory_settings(values: Mapping, joints: Sequence[str]) -> TrajectorySettings:
    """Of the controller, from the values of its node's parameters; tolerances in the order of `joints`.

    Raises:
        DynidError: one that the controller does not take.

    """
    restores = "set_last_command_interface_value_as_state_on_activation"
    made = TrajectorySettings(
        command_interfaces=values["command_interfaces"],
        interpolate_from_desired_state=values["interpolate_from_desired_state"],
        set_last_command_interface_value_as_state_on_activation=values[restores],
        cmd_timeout=values["cmd_timeout"],
        goal_time=values["constraints.goal_time"],
        stopped_velocity_tolerance=values["constraints.stopped_velocity_tolerance"],
        trajectory=[values[constraint(name, "trajectory")] for name in joints],
        goal=[values[constraint(name, "goal")] for name in joints],
    )
    made.tolerances(len(joints))
    return made
