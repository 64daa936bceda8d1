"""Parameters of the excitation node, and the experiment that they describe."""

import math
from types import SimpleNamespace

from rclpy.node import Node

from dynid_ros.errors import DynidError
from dynid_ros.nodes.parameters import NodeParameter
from dynid_ros.nodes.robot_description import ROBOT_PARAMETERS, robot_model
from dynid_ros.trajectories import MotionLimits, StaticRotation, Workspace

TRAJECTORY_TOPIC = "/joint_trajectory_controller/joint_trajectory"

EACH = "; one value for all joints, or one per joint in the model's order"
PARAMETERS = (
    *ROBOT_PARAMETERS,
    NodeParameter("steps", 7, "dwells per rotation and direction, at least 3"),
    NodeParameter("dwell", 0.5, "rest at each step, s"),
    NodeParameter("approach", [0.05], f"distance from which each joint comes to a dwell, rad (m){EACH}"),
    NodeParameter("position_margin", [0.05], f"distance kept from position limits, rad (m){EACH}"),
    NodeParameter("sweep", 6.28, "largest range of a rotation, rad"),
    NodeParameter("poses_per_joint", 1, "rotations of each joint, with different poses of the others"),
    NodeParameter("speed_fraction", 0.5, "part of the velocity limits used from step to step"),
    NodeParameter("travel_speed_fraction", 0.25, "part of the velocity limits used on the way to a rotation"),
    NodeParameter("acceleration_limits", [math.nan], f"rad/s^2 (m/s^2), required: no URDF holds them{EACH}"),
    NodeParameter("velocity_limits", [math.nan], f"rad/s (m/s); nan: the URDF's{EACH}"),
    NodeParameter("position_lower", [math.nan], f"rad (m); nan: the URDF's, and -pi for a continuous joint{EACH}"),
    NodeParameter("position_upper", [math.nan], f"rad (m); nan: the URDF's, and pi for a continuous joint{EACH}"),
    NodeParameter("floor_height", 0.1, "lowest height of link origins and tip above the base link's origin, m"),
    NodeParameter("clearance", 0.1, "smallest distance between links seen as lines, m; 0: not checked"),
    NodeParameter("command_topic", TRAJECTORY_TOPIC, "trajectory_msgs/JointTrajectory for the controller"),
    NodeParameter("controller_joints", [""], "the controller's joint order; empty: the model's"),
    NodeParameter("point_rate", 50.0, "points per second in a trajectory, 10 to 1000"),
    NodeParameter("tracking_error_limit", [0.2], f"distance from the motion at which it is stopped, rad (m){EACH}"),
    NodeParameter("stale_after", 0.25, "age of the last joint state at which the motion is stopped, 0.02 to 5 s"),
    NodeParameter("trajectory_file", "", "YAML file to which ~/design writes the motion; empty: none"),
)


def make_experiment(node: Node, settings: SimpleNamespace) -> StaticRotation:
    """Experiment of the robot that the settings or the topic robot_description describe.

    Raises:
        DynidError: no robot, or a setting that does not fit it; named as the parameter is.

    """
    for name, lowest, highest in (("point_rate", 10.0, 1000.0), ("stale_after", 0.02, 5.0)):
        if not lowest <= getattr(settings, name) <= highest:
            raise DynidError(f"Parameter {name} is {getattr(settings, name):g}; expected {lowest:g} to {highest:g}")
    robot = robot_model(node, settings)
    limits = MotionLimits.of(
        robot,
        settings.acceleration_limits,
        position_lower=settings.position_lower,
        position_upper=settings.position_upper,
        velocity_limits=settings.velocity_limits,
    )
    return StaticRotation(
        robot,
        limits,
        Workspace(robot, settings.floor_height, settings.clearance),
        steps=settings.steps,
        dwell=settings.dwell,
        approach=settings.approach,
        position_margin=settings.position_margin,
        sweep=settings.sweep,
        poses_per_joint=settings.poses_per_joint,
        speed_fraction=settings.speed_fraction,
        travel_speed_fraction=settings.travel_speed_fraction,
    )


def controller_joints(settings: SimpleNamespace, joint_names: tuple[str, ...]) -> tuple[str, ...]:
    """The controller's joint order.

    Raises:
        DynidError: other joints than the model's.

    """
    given = tuple(settings.controller_joints)
    if given == ("",):
        return joint_names
    if sorted(given) != sorted(joint_names):
        raise DynidError(
            f"Parameter controller_joints is {', '.join(given)}; expected {', '.join(joint_names)} in any order"
        )
    return given
