"""Parameters of the excitation node: limits and workspace, and the experiments that they describe."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.collision import Bodies, read_obstacles
from dynid_ros.collision.obstacles import allowed_pairs
from dynid_ros.errors import CollisionError, DynidError, TrajectoryError
from dynid_ros.excitation import Experiment, FourierExcitation, Plan
from dynid_ros.excitation.joint_by_joint import SINUSOID, STEPS, GivenMotion, repeat_plan
from dynid_ros.excitation.parallel_search import Progress
from dynid_ros.jobs.experiments import (
    CLEARANCE,
    EXPERIMENT_KINDS,
    FLEXIBLE,
    FLOOR_HEIGHT,
    LIMIT_DEFAULTS,
    LIMIT_FRACTIONS,
    PRIOR,
    MotionSettings,
    flexible_motion,
    flexible_prior,
    make_experiment,
    owners_of,
    recorded_information,
    usual_base_frequency,
)
from dynid_ros.jobs.inputs import checked
from dynid_ros.model import RobotModel
from dynid_ros.nodes.experiment.trajectory_action import AUTO_INTERFACE, COMMAND_INTERFACES
from dynid_ros.nodes.shared.parameters import NodeParameter, parameters_of
from dynid_ros.nodes.shared.robot_description import CARRIED, ROBOT_PARAMETERS
from dynid_ros.recording import Recording
from dynid_ros.settings import Setting, settings_of
from dynid_ros.trajectories import MotionLimits, Trajectory, Workspace, check_limits, move
from dynid_ros.trajectories.limits import per_joint
from dynid_ros.trajectories.workspace import WorkspaceAndTorque

AVAILABLE = "available"
SHAPES_REQUIRED = "required"
NO_SHAPES = "none"
LINK_SHAPES = (AVAILABLE, SHAPES_REQUIRED, NO_SHAPES)

TRAJECTORY_TOPIC = "joint_trajectory_controller/joint_trajectory"
FOURIER = "fourier"
JOINT_BY_JOINT = "joint_by_joint"
PAYLOAD = "payload"
FILE = "file"
OFFERED_MOTIONS = (*EXPERIMENT_KINDS, FLEXIBLE, FILE)
PER_JOINT = "; one value for all joints, or one per joint in the model's order"
POINTS_PER_CYCLE = 10
"""Smallest number of trajectory points per cycle of the fastest harmonic that a controller can follow."""


class Safety:
    """Limits and workspace from the parameters of the node at its start.

    Attributes:
        limits: joint limits of all motions.
        workspace: box, obstacles and bodies that restrict the links.
        warnings: descriptions of checks that are missing or coarse.

    Raises:
        DynidError: a limit is neither in the URDF nor given, or a parameter is invalid.
    """

    def __init__(self, robot: RobotModel, settings: SimpleNamespace) -> None:
        self.limits = MotionLimits.of(
            robot, joint_limits=settings.joint_limits_file, **{name: getattr(settings, name) for name in LIMIT_DEFAULTS}
        )
        bodies, self.warnings = _bodies(robot, settings)
        box = (np.array(settings.box_lower), np.array(settings.box_upper))
        self.workspace = Workspace(
            robot,
            settings.floor_height,
            settings.clearance,
            bodies,
            box=box if any(np.isfinite(corner).any() for corner in box) else None,
            obstacles=read_obstacles(settings.obstacles_file) if settings.obstacles_file else (),
        )
        self.warnings += self.workspace.crowded
        self._torque_check = WorkspaceAndTorque(self.workspace, self.limits, robot, 0.0)
        self.warnings += self._torque_check.warnings

    def check(self, motion: Trajectory) -> None:
        """Check a motion against limits, workspace and, if the URDF has masses, torque limits."""
        check_limits(motion, self.limits)
        self._torque_check.check(motion)

    def check_start(self, measured: NDArray) -> None:
        """Check that the arm may rest at the measured positions (n,), rad (m)."""
        try:
            self.check(move(self.limits.joint_names, measured, measured, 1.0))
        except TrajectoryError as error:
            raise TrajectoryError(f"the arm cannot start from where it is: {error}; move it away by hand") from error


def _bodies(robot: RobotModel, settings: SimpleNamespace) -> tuple[Bodies | None, tuple[str, ...]]:
    """Return the bodies of the links, or None if all links count as lines, and warnings about them."""
    if settings.link_shapes == NO_SHAPES:
        return None, ("link_shapes is none: links are lines; leave room for their thickness",)
    directories = [directory for directory in settings.mesh_directories if directory]
    if settings.robot_description and not settings.robot_description.lstrip().startswith("<"):
        directories.append(str(Path(settings.robot_description).parent))
    warnings = []
    srdf = settings.srdf_file or None
    allowed = [pair for pair in settings.allowed_pairs if pair]
    if srdf:
        allowed_pairs(srdf, robot.tree)
    try:
        bodies = Bodies.of(robot, directories, srdf=srdf, allowed=allowed)
    except CollisionError as error:
        if settings.link_shapes == SHAPES_REQUIRED:
            raise DynidError(f"{error} (parameters mesh_directories, link_shapes)") from error
        warnings.append(f"{error}")
        bodies = Bodies.of(robot, directories, skip_unreadable=True, srdf=srdf, allowed=allowed)
    if bodies.left_out:
        warnings.append(f"it is not known where {', '.join(bodies.left_out)} are: nothing is kept clear of them")
    if len(bodies.without_shape) > robot.n_joints:
        return None, (*warnings, "no link has a shape that is known: links are lines; leave room for their thickness")
    if bodies.without_shape:
        warnings.append(
            f"no shape is known of {', '.join(bodies.without_shape)}: these are lines; leave room for their thickness"
        )
    return bodies, tuple(warnings)


def _settings(*names: str) -> tuple[NodeParameter, ...]:
    """Return the parameters of these settings of motions."""
    settings = {setting.name: setting for setting in settings_of(MotionSettings)}
    return tuple(_parameter(settings[name]) for name in names)


def _parameter(setting: Setting) -> NodeParameter:
    """Return the parameter of a setting, described with the motions that have it."""
    (parameter,) = parameters_of([setting])
    owners = owners_of(setting.name)
    per_joint_note = PER_JOINT if setting.is_numbers and setting.name != "frequencies" else ""
    prefix = f"{', '.join(owners)}: " if owners else ""
    return replace(parameter, description=f"{prefix}{parameter.description}{per_joint_note}")


def _limit_noun(name: str) -> str:
    """Return the words for a key of `LIMIT_DEFAULTS`, such as "velocity limits" or "lower position limits"."""
    quantity, _, side = name.partition("_")
    return f"{side} {quantity} limits" if side in ("lower", "upper") else f"{quantity} limits"


MOTION_PARAMETERS = tuple(
    replace(parameter, adjustable=True)
    for parameter in (
        NodeParameter(
            "motion",
            "static_rotation",
            "kind of motion; static_rotation or poses: for gravity; fourier: for links; joint_by_joint: for friction; "
            "payload: for a load; flexible: for flexible joints; file: a motion designed before",
            choices=OFFERED_MOTIONS,
        ),
        NodeParameter(
            "motion_file",
            "",
            "file of motion file: dynid-trajectory/1 as in trajectory_file, or dynid-fourier/1 as on ~/plan",
        ),
        NodeParameter("repeats", 1, "number of repetitions of the whole motion, with a safe way back between", least=1),
        NodeParameter(
            "target", "", "parameters to estimate by fourier or poses: links, gravity or load; empty: links, gravity"
        ),
        *_settings("steps", "dwell", "approach", "sweep", "poses_per_joint", "base_frequency", "harmonics", "periods"),
        *_settings("criterion", "noise", "design_time", "starts", "workers"),
        NodeParameter(
            "recordings", [""], "recordings of the arm to which a fourier motion adds information; empty: none"
        ),
        NodeParameter(
            "flexible_file", "", "identified.yaml with known parameters of the joints, for flexible; empty: none"
        ),
        *_settings(*PRIOR),
        NodeParameter(
            "held", [math.nan], "positions at which brakes hold joints, for flexible, rad, one per joint; nan: not held"
        ),
        *(replace(parameter, least=0) for parameter in _settings("seed")),
        NodeParameter("joint_motion", SINUSOID, "motion of each joint in joint_by_joint", choices=(SINUSOID, STEPS)),
        NodeParameter(
            "joints", [""], "joints that joint_by_joint moves, in this order; empty: all, from the tip to the base"
        ),
        *_settings("frequencies", "cycles", "amplitude"),
        NodeParameter(
            "pose",
            [math.nan],
            "positions of the other joints, for joint_by_joint and payload, rad (m), one per joint; nan: chosen",
        ),
        *_settings("reach"),
        *(replace(parameter, name="turns", least=1) for parameter in _settings("repeats")),
        *_settings("count", "offsets", *LIMIT_FRACTIONS),
        NodeParameter("trajectory_file", "", "YAML file to which ~/design writes the motion; empty: none"),
    )
)
"""Parameters that ~/design reads again."""
WORKSPACE = (
    NodeParameter("floor_height", FLOOR_HEIGHT, "lowest height of moving links above the base link's origin, m"),
    NodeParameter("clearance", CLEARANCE, "smallest distance between links, and to obstacles, m"),
    NodeParameter("box_lower", [-math.inf] * 3, "lower corner of the box that contains the links, base frame, m"),
    NodeParameter("box_upper", [math.inf] * 3, "upper corner of that box, base frame, m"),
    NodeParameter("obstacles_file", "", "YAML list of boxes that the links avoid; empty: none"),
    NodeParameter("allowed_pairs", [""], "pairs of links that may touch, each written as link:link; empty: none"),
    NodeParameter(
        "link_shapes",
        AVAILABLE,
        "shapes of the links; available: those of the URDF, lines where one cannot be read; required: an error where "
        "one cannot be read; none: all links are lines",
        choices=LINK_SHAPES,
    ),
    NodeParameter("mesh_directories", [""], "folders of meshes; empty: that of the URDF, and ROS packages"),
)
LIMITS = (
    *(
        NodeParameter(name, [math.nan], f"{_limit_noun(name)}, {unit}; nan: {default}{PER_JOINT}")
        for name, (unit, default) in LIMIT_DEFAULTS.items()
    ),
    NodeParameter("joint_limits_file", "", "joint_limits.yaml (MoveIt) for limits that are nan; empty: none"),
)
THRESHOLDS = tuple(
    replace(parameter, adjustable=True)
    for parameter in (
        NodeParameter(
            "tracking_error_limit",
            [0.2],
            f"distance from the motion at which it is stopped, rad (m){PER_JOINT}",
            above=0.0,
        ),
        NodeParameter(
            "effort_limit",
            [math.nan],
            f"effort in joint_states at which the motion is stopped, in the driver's unit; nan: torque_limits; inf: "
            f"none{PER_JOINT}",
            above=0.0,
        ),
        NodeParameter("effort_grace", 0.1, "time for which an effort may exceed effort_limit, s", least=0.0),
        NodeParameter(
            "stale_after", 0.25, "age of the last joint state at which the motion is stopped, s", least=0.02, most=5.0
        ),
    )
)
"""Thresholds at which a motion is stopped, also one that is running when they are set."""
PARAMETERS = (
    *ROBOT_PARAMETERS,
    CARRIED,
    *MOTION_PARAMETERS,
    *LIMITS,
    *WORKSPACE,
    NodeParameter(
        "command_topic", TRAJECTORY_TOPIC, "topic of the controller, trajectory_msgs/JointTrajectory", required=True
    ),
    NodeParameter(
        "answer_at_once", False, "whether ~/design answers at once; ~/state then reports its end", adjustable=True
    ),
    NodeParameter(
        "command_interface",
        AUTO_INTERFACE,
        "interface of the controller; action: FollowJointTrajectory goals (needs control_msgs); topic: command_topic; "
        "auto: the action if it is served",
        choices=COMMAND_INTERFACES,
    ),
    NodeParameter(
        "action_name", "", "name of the action; empty: follow_joint_trajectory of command_topic's controller"
    ),
    NodeParameter(
        "accept_jerk",
        False,
        "whether to move although the controller begins each trajectory at the measured pose "
        "(interpolate_from_desired_state false)",
    ),
    NodeParameter("controller_joints", [""], "joints in the controller's order; empty: the model's order"),
    NodeParameter("point_rate", 50.0, "points per second of a trajectory", least=10.0, most=1000.0),
    *THRESHOLDS,
)


@dataclass(frozen=True)
class Design:
    """Experiment that is to be planned.

    Attributes:
        robot: the arm.
        safety: limits and workspace.
        settings: values of `MOTION_PARAMETERS`.
        point_rate: points per second of the trajectory, Hz.
    """

    robot: RobotModel
    safety: Safety
    settings: SimpleNamespace
    point_rate: float

    def plan(self, progress: Progress) -> tuple[Experiment, Plan]:
        """Return the experiment and its plan, whose samples have been checked.

        Raises:
            DynidError: there is no safe motion.
        """
        experiment = self.experiment()
        if isinstance(experiment, FourierExcitation):
            paths = _nonempty(self.settings.recordings)
            if paths:
                recordings = [Recording.read(path, joint_names=self.robot.joint_names) for path in paths]
                checked(recordings, self.robot, motion=True)
                experiment = self.experiment(known=recorded_information(experiment.information, recordings))
            assert isinstance(experiment, FourierExcitation)
            plan: Plan = experiment.plan(progress)
        else:
            plan = experiment.plan()
        plan = repeat_plan(plan, experiment, self.settings.repeats)
        self.safety.check(plan.trajectory.sample(self.point_rate))
        return experiment, plan

    def experiment(self, **more: Any) -> Experiment:
        """Return the experiment; settings in `more` replace those of the parameters.

        Raises:
            DynidError: a setting is invalid; the message names the parameter.
        """
        settings = self.settings
        kind = settings.motion
        if not 0 < settings.torque_fraction <= 1:
            raise DynidError(
                f"Parameter torque_fraction is {settings.torque_fraction:g}; it must be above 0 and at most 1"
            )
        if kind != FOURIER and _nonempty(settings.recordings):
            raise DynidError(f"Parameter recordings is for motion {FOURIER}, not {kind}; leave it empty")
        arm = (self.robot, self.safety.limits, self.safety.workspace)
        if kind == FILE:
            return self._motion_of_file(arm)
        if kind == FLEXIBLE:
            return self._flexible_motion()
        named = {name: getattr(settings, name) for name in EXPERIMENT_KINDS[kind].settings if hasattr(settings, name)}
        return make_experiment(kind, *arm, settings.target or None, **(named | self._translated() | more))

    def _translated(self) -> dict[str, Any]:
        """Return the settings whose names or values differ from those of the parameters."""
        settings = self.settings
        pose = _unless_nan(settings.pose)
        if settings.motion == FOURIER:
            return self._series_settings(usual_base_frequency(self.safety.limits, settings.speed_fraction))
        if settings.motion == JOINT_BY_JOINT:
            if settings.joint_motion == SINUSOID:
                self._check_rate(max(settings.frequencies), "the fastest of frequencies")
            return {"motion": settings.joint_motion, "joints": tuple(_nonempty(settings.joints)) or None, "pose": pose}
        return {"repeats": settings.turns, "pose": pose} if settings.motion == PAYLOAD else {}

    def _series_settings(self, default: float | None) -> dict[str, Any]:
        """Return settings of a Fourier series; `default` is the base frequency without a parameter, Hz."""
        settings = self.settings
        base = default if math.isnan(settings.base_frequency) else settings.base_frequency
        if base is not None:
            self._check_rate(settings.harmonics * base, f"the fastest of {settings.harmonics} harmonics")
        return {"base_frequency": base, "starts": settings.starts or None, "noise": _unless_nan(settings.noise)}

    def _flexible_motion(self) -> Experiment:
        """Return the experiment for flexible joints, a Fourier series with prior values of the joints."""
        settings = self.settings
        if settings.target:
            raise DynidError(f"Parameter target is '{settings.target}'; motion {FLEXIBLE} has none, leave it empty")
        prior = {name: _unless_nan(getattr(settings, name)) for name in PRIOR}
        path = Path(settings.flexible_file) if settings.flexible_file else None
        joints = flexible_prior(self.robot, {k: None if v is None else np.array(v) for k, v in prior.items()}, path)
        held = None if _unless_nan(settings.held) is None else per_joint(settings.held, self.robot.joint_names, "held")
        names = [name for name in EXPERIMENT_KINDS[FOURIER].settings if hasattr(settings, name)]
        series = {name: getattr(settings, name) for name in names} | self._series_settings(None)
        experiment = flexible_motion(self.robot, self.safety.limits, self.safety.workspace, joints, held, **series)
        self._check_rate(experiment.highest_frequency, f"the fastest of {settings.harmonics} harmonics")
        return experiment

    def _motion_of_file(self, arm: tuple) -> Experiment:
        """Return the experiment with the motion of `motion_file`; `arm` is robot, limits and workspace."""
        settings = self.settings
        if not settings.motion_file:
            raise DynidError("Parameter motion_file is empty; name the file of the motion, or choose another motion")
        return GivenMotion(
            *arm,
            path=settings.motion_file,
            periods=settings.periods or 1,
            travel_speed_fraction=settings.travel_speed_fraction,
            torque_fraction=settings.torque_fraction,
        )

    def _check_rate(self, fastest: float, what: str) -> None:
        """Check that the points of the trajectory are dense enough for a frequency, Hz, that `what` describes."""
        highest = self.point_rate / POINTS_PER_CYCLE
        if fastest > highest:
            raise DynidError(
                f"{what} is {fastest:g} Hz; with point_rate {self.point_rate:g} it may be {highest:g} Hz at most"
            )


def controller_joints(settings: SimpleNamespace, joint_names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the joints in the order of the controller."""
    joints = tuple(_nonempty(settings.controller_joints))
    if not joints:
        return joint_names
    if sorted(joints) != sorted(joint_names):
        raise DynidError(
            f"Parameter controller_joints is {', '.join(joints)}; expected {', '.join(joint_names)} in any order"
        )
    return joints


def _unless_nan(values: list[float]) -> list[float] | None:
    """Return the numbers of a parameter; None if all of them are NaN."""
    return None if all(map(math.isnan, values)) else values


def _nonempty(values: list[str]) -> list[str]:
    """Return the texts of a parameter without the empty ones; ROS needs one empty text for an empty list."""
    return [value for value in values if value]
