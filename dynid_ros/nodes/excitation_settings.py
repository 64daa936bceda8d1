"""Parameters of the excitation node, and the experiment that they describe."""

import math
from dataclasses import replace
from types import SimpleNamespace

from dynid_ros.errors import DynidError
from dynid_ros.excitation import Experiment, FourierExcitation, StaticRotation
from dynid_ros.model import RobotModel
from dynid_ros.nodes.parameters import NodeParameter
from dynid_ros.nodes.robot_description import ROBOT_PARAMETERS
from dynid_ros.trajectories import MotionLimits, Workspace

TRAJECTORY_TOPIC = "/joint_trajectory_controller/joint_trajectory"
POINTS_PER_CYCLE = 10
"""Of the fastest harmonic: what a controller needs to follow it."""

EACH = "; one value for all joints, or one per joint in the model's order"
STATIC = (
    NodeParameter("steps", 7, "static_rotation: dwells per rotation and direction, at least 3"),
    NodeParameter("dwell", 0.5, "static_rotation: rest at each step, s"),
    NodeParameter(
        "approach", [0.05], f"static_rotation: distance from which each joint comes to a dwell, rad (m){EACH}"
    ),
    NodeParameter("sweep", 6.28, "static_rotation: largest range of a rotation, rad"),
    NodeParameter("poses_per_joint", 1, "static_rotation: rotations of each joint, with different poses of the others"),
)
FOURIER = (
    NodeParameter("base_frequency", 0.05, "fourier: of the first harmonic, Hz; a period takes 1 / base_frequency"),
    NodeParameter("harmonics", 10, "fourier: number of harmonics, at least 2"),
    NodeParameter("periods", 1, "fourier: how often the period is repeated"),
    NodeParameter("amplitude", 0.9, "fourier: largest part of each joint's range that is used, up to 1"),
    NodeParameter("candidates", 40, "fourier: motions drawn, of which the best conditioned is taken"),
    NodeParameter("seed", 0, "fourier: of the random numbers; another one gives another motion"),
)
SHARED = (
    NodeParameter("position_margin", [0.05], f"distance kept from position limits, rad (m){EACH}"),
    NodeParameter("speed_fraction", 0.5, "part of the velocity limits used in the motion"),
    NodeParameter("travel_speed_fraction", 0.25, "part of the velocity limits used on the way to it"),
)
MOTION_PARAMETERS = tuple(
    replace(parameter, adjustable=True)
    for parameter in (
        NodeParameter("motion", "static_rotation", "static_rotation, for gravity, or fourier, for links"),
        *STATIC,
        *FOURIER,
        *SHARED,
        NodeParameter("trajectory_file", "", "YAML file to which ~/design writes the motion; empty: none"),
    )
)
"""Those that ~/design reads anew."""
PARAMETERS = (
    *ROBOT_PARAMETERS,
    *MOTION_PARAMETERS,
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
)


class ExperimentMaker:
    """Makes experiments of one robot, within limits and workspace that stay as they are.

    Raises:
        DynidError: a setting that does not fit the robot; named as the parameter is.

    """

    def __init__(self, robot: RobotModel, settings: SimpleNamespace) -> None:
        for name, lowest, highest in (("point_rate", 10.0, 1000.0), ("stale_after", 0.02, 5.0)):
            if not lowest <= getattr(settings, name) <= highest:
                raise DynidError(f"Parameter {name} is {getattr(settings, name):g}; expected {lowest:g} to {highest:g}")
        self._robot = robot
        self._point_rate = settings.point_rate
        self.limits = MotionLimits.of(
            robot,
            settings.acceleration_limits,
            position_lower=settings.position_lower,
            position_upper=settings.position_upper,
            velocity_limits=settings.velocity_limits,
        )
        self._workspace = Workspace(robot, settings.floor_height, settings.clearance)

    def make(self, settings: SimpleNamespace) -> Experiment:
        """The experiment that the values of `MOTION_PARAMETERS` describe.

        Raises:
            DynidError: a setting makes no sense; named as the parameter is.

        """
        kinds = {"static_rotation": self._static_rotation, "fourier": self._fourier}
        if settings.motion not in kinds:
            raise DynidError(f"Parameter motion is '{settings.motion}'; expected {' or '.join(kinds)}")
        return kinds[settings.motion](settings)

    def _static_rotation(self, settings: SimpleNamespace) -> Experiment:
        return StaticRotation(self._robot, self.limits, self._workspace, **_values(settings, *STATIC, *SHARED))

    def _fourier(self, settings: SimpleNamespace) -> Experiment:
        fastest, highest = settings.harmonics * settings.base_frequency, self._point_rate / POINTS_PER_CYCLE
        if fastest > highest:
            raise DynidError(
                f"The fastest of {settings.harmonics} harmonics of {settings.base_frequency:g} Hz is {fastest:g} Hz; "
                f"with point_rate {self._point_rate:g} it may be {highest:g} Hz at most"
            )
        return FourierExcitation(self._robot, self.limits, self._workspace, **_values(settings, *FOURIER, *SHARED))


def _values(settings: SimpleNamespace, *parameters: NodeParameter) -> dict:
    return {parameter.name: getattr(settings, parameter.name) for parameter in parameters}


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
