"""Experiments by name, built from the settings of commands and nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.collision import Bodies, read_obstacles
from dynid_ros.errors import CollisionError, TrajectoryError
from dynid_ros.excitation import Experiment, FourierExcitation, Plan, StaticRotation
from dynid_ros.excitation.fourier_excitation import flexible_excitation
from dynid_ros.excitation.joint_by_joint import REVERSALS, STEPS, JointByJoint, show_friction
from dynid_ros.excitation.payload_motion import PayloadMotion
from dynid_ros.excitation.pose_set import PoseSet
from dynid_ros.identified.flexible_joints import joint_parameters
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.information.criteria import CRITERIA
from dynid_ros.information.steady_state import FlexibleJoints, proposed_base_frequency, resonance
from dynid_ros.information.torque_information import InformationSource
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.settings import setting
from dynid_ros.trajectories import MotionLimits, Workspace

# Motions for flexible joints, designed with prior values from an `identified.yaml` or from arguments.

FLEXIBLE = "flexible"
FLEXIBLE_HARMONICS = 8
MIN_TRAVEL_RAD = 0.1
"""Smallest amplitude, rad, that a sine at the base frequency reaches with the largest acceleration; a motion with all
harmonics reaches about a fifth of it."""
MIN_DURATION_S = 10.0
"""Shortest flexible motion, s: short periods of some tenths of a second are repeated until they fill this time."""
PRIOR = ("stiffness", "motor_inertia", "motor_viscous", "coulomb", "viscous")
"""Values of `FlexibleJoints` that a file may contain."""


def flexible_prior(robot: RobotModel, given: Mapping[str, NDArray | None], path: Path | None = None) -> FlexibleJoints:
    """Return prior values of flexible joints.

    Args:
        robot: the arm.
        given: values (1,) or (n,) by name, as in `FlexibleJoints`; None: the value of the file, if it has one.
        path: `identified.yaml` of an identification of flexible joints; None: there is no file.

    Raises:
        IdentifiedFileError: the file is of another robot, has no flexible joints, or an undetermined stiffness.
        TrajectoryError: neither values nor file give stiffness and motor inertia.
    """
    values = {name: value for name, value in given.items() if value is not None}
    if path is not None:
        values = {**joint_parameters(load_identified(path), robot, set(PRIOR) - set(values)), **values}
    missing = [name for name in ("stiffness", "motor_inertia") if name not in values]
    if missing:
        raise TrajectoryError(
            f"{' and '.join(missing)} of the joints {'is' if len(missing) == 1 else 'are'} not known; give values, of "
            "30 % accuracy if need be, or an identified.yaml of flexible joints"
        )
    return FlexibleJoints(**values)


def flexible_motion(
    robot: RobotModel,
    limits: MotionLimits,
    workspace: Workspace,
    joints: FlexibleJoints,
    held: NDArray | None = None,
    **settings: Any,
) -> FourierExcitation:
    """Return the experiment for flexible joints, a Fourier motion of the motors.

    The default base frequency puts harmonics on both sides of the resonances in the middle of the joints' ranges. It is
    low enough for a motion of `MIN_TRAVEL_RAD` within the acceleration limits. The period is repeated until the motion
    lasts `MIN_DURATION_S`.

    Args:
        robot: the arm.
        limits: limits of the motors.
        workspace: allowed space of the links.
        joints: prior values of the joints.
        held: positions (n,) of joints that brakes hold, NaN for joints that move; None: all move.
        settings: settings of `flexible_excitation`; a value of None means its default.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    harmonics = given.setdefault("harmonics", FLEXIBLE_HARMONICS)
    names = robot.joint_names
    still = {} if held is None else {n: float(v) for n, v in zip(names, held, strict=True) if np.isfinite(v)}
    if "base_frequency" not in given:
        stiffness, motor_inertia, *_ = joints.of(robot)
        middle = (limits.lower + limits.upper) / 2
        pose = np.where(np.isfinite(middle), middle, 0.0)
        pose = np.array([still.get(name, place) for name, place in zip(names, pose, strict=True)])
        driven = resonance(robot, stiffness, motor_inertia, pose, [name for name in names if name not in still]).driven
        moving = np.array([name not in still for name in names])
        acceleration = float(limits.acceleration[moving].min(initial=np.inf))
        # A sine of amplitude A and acceleration a has the frequency sqrt(a / A) / (2 pi).
        fastest = np.sqrt(acceleration / MIN_TRAVEL_RAD) / (2 * np.pi)
        given["base_frequency"] = min(proposed_base_frequency(driven, harmonics), float(fastest))
    given["periods"] = max(given.get("periods", 1), int(np.ceil(MIN_DURATION_S * given["base_frequency"])))
    return flexible_excitation(robot, limits, joints, workspace, held=still or None, **given)


def recorded_information(source: InformationSource, recordings: Sequence[Recording]) -> NDArray:
    """Return the information (p, p) of recordings integrated over time, with the filters of the link identification.

    Raises:
        IdentificationError: a recording contains no motion or no torque.
        RecordingError: a recording has too few samples.
    """
    signals = LinkSignals.choose(recordings)
    segments = [segment for recording in recordings for segment in signals.segments(recording)]
    return np.sum([source.over_time(segment.time, *segment.motion) for segment in segments], axis=0)


LIMIT_DEFAULTS = {
    "acceleration_limits": ("rad/s^2 (m/s^2)", "the URDF's (URDF 1.2), otherwise required; 2 suits most"),
    "velocity_limits": ("rad/s (m/s)", "the URDF's"),
    "position_lower": ("rad (m)", "the URDF's, and -pi for a continuous joint"),
    "position_upper": ("rad (m)", "the URDF's, and pi for a continuous joint"),
    "jerk_limits": ("rad/s^3 (m/s^3)", "none"),
    "torque_limits": ("N m (N)", "the URDF's"),
}
"""Unit and default of each limit of `MotionLimits`."""

# The workspace of an arm, from its URDF and from files of obstacles.

FLOOR_HEIGHT = 0.0
"""Default height of the floor in the base frame, m: that of the mounting surface of the arm."""
CLEARANCE = 0.05
"""Default of the smallest distance between links, and to obstacles, m."""


def surroundings(
    robot: RobotModel,
    urdf: Path,
    *,
    floor_height: float = FLOOR_HEIGHT,
    clearance: float = CLEARANCE,
    box: Sequence[float] | None = None,
    obstacles: Sequence[Path] = (),
    mesh_directories: Sequence[Path] = (),
    skip_meshes: bool = False,
    srdf: Path | None = None,
    allowed: Sequence[str] = (),
) -> Workspace:
    """Return the workspace of the links, with their shapes.

    Args:
        robot: the arm.
        urdf: URDF file of the arm; relative paths of meshes start in its folder.
        floor_height: lowest allowed height of a moving link, m.
        clearance: smallest allowed distance between links, and to obstacles, m.
        box: lower and upper corner of a box that contains the links, six numbers, m; None: no box.
        obstacles: YAML files of obstacles, see `read_obstacles`.
        mesh_directories: further folders of meshes.
        skip_meshes: whether a link whose mesh cannot be read is represented by a line.
        srdf: file with the links that may touch, see `allowed_pairs`; None: there is no such file.
        allowed: further pairs of links that may touch, each written as link:link.

    Raises:
        CollisionError: a mesh, an SRDF or a file of obstacles cannot be read.
        TrajectoryError: no pose of the arm is allowed.
    """
    try:
        bodies = Bodies.of(robot, [urdf.parent, *mesh_directories], skip_meshes, srdf=srdf, allowed=allowed)
    except CollisionError as error:
        raise CollisionError(f"{error} (--mesh-directory, --skip-meshes, --srdf, --allowed-pairs)") from error
    around = [obstacle for path in obstacles for obstacle in read_obstacles(path)]
    corners = None if box is None else (box[:3], box[3:])
    return Workspace(robot, floor_height, clearance, bodies, box=corners, obstacles=around)


class Kind(NamedTuple):
    """Kind of experiment.

    Attributes:
        make: class of the experiment.
        target: default target, the parameters to determine.
        targets: targets that this kind of motion can determine.
        settings: names of the settings of the experiment.
    """

    make: Callable[..., Experiment]
    target: str
    targets: tuple[str, ...]
    settings: tuple[str, ...]


LIMIT_FRACTIONS = ("position_margin", "speed_fraction", "travel_speed_fraction", "torque_fraction")
SERIES = ("base_frequency", "harmonics", "periods", "criterion", "noise", "known")
SEARCH = ("design_time", "workers", "executor", "seed", "starts")
SINGLE = ("motion", "joints", "pose")
MAX_COUNTS = {"workers": 64} | dict.fromkeys(
    ("steps", "poses_per_joint", "cycles", "repeats", "count", "harmonics", "periods"), 1000
)
"""Upper bounds of counts that take memory or time, far above what experiments need."""
EXPERIMENT_KINDS = {
    "fourier": Kind(FourierExcitation, "links", ("links", "gravity", "load"), (*SERIES, *SEARCH, *LIMIT_FRACTIONS)),
    "static_rotation": Kind(
        StaticRotation,
        "gravity",
        ("gravity",),
        ("steps", "dwell", "approach", "sweep", "poses_per_joint", *LIMIT_FRACTIONS),
    ),
    "joint_by_joint": Kind(
        JointByJoint,
        "links",
        ("links",),
        ("steps", "dwell", "frequencies", "cycles", "amplitude", *SINGLE, *LIMIT_FRACTIONS),
    ),
    "payload": Kind(PayloadMotion, "load", ("load",), ("dwell", "reach", "repeats", "pose", *LIMIT_FRACTIONS)),
    "poses": Kind(
        PoseSet, "gravity", ("gravity", "load"), ("count", "dwell", "approach", "seed", "offsets", *LIMIT_FRACTIONS)
    ),
}


@dataclass(frozen=True)
class MotionSettings:
    """Settings of motions, by the names in `EXPERIMENT_KINDS` and `PRIOR`."""

    steps: int = setting(7, "number of dwells per rotation, or of a joint, in each direction")
    dwell: float = setting(0.5, "dwell at each step or pose", unit="s")
    approach: Sequence[float] = setting((0.05,), "distance from which each joint approaches a dwell, rad (m)")
    sweep: float = setting(6.28, "range of a rotation", unit="rad")
    poses_per_joint: int = setting(1, "number of rotations of each joint, with different poses of the others")
    base_frequency: float | None = setting(
        None,
        "frequency of the first harmonic, Hz; a period takes 1 / base_frequency; default: 0.05, less for slow joints, "
        "by the resonances for flexible joints",
    )
    harmonics: int = setting(10, "number of harmonics of the base frequency, at least 2; 8 suit flexible joints")
    periods: int = setting(
        0, "number of periods; a second one shows how exactly the robot repeats; 0: two within a minute, else one"
    )
    criterion: str = setting("determinant", f"criterion that is minimised: {', '.join(CRITERIA)}", choices=CRITERIA)
    noise: Sequence[float] = setting(
        (nan,), "standard deviation of the torques' noise, N m (N); nan: in proportion to their limits"
    )
    design_time: float = setting(30.0, "duration of the search, s; 0: the best of a few random motions")
    starts: int = setting(
        0, "number of searches, each from another motion, which makes the result reproducible; 0: as time allows"
    )
    workers: int = setting(0, "number of processes that search; 0: one per core, up to 4")
    stiffness: Sequence[float] = setting((nan,), "stiffness of the springs, N m/rad (N/m); nan: as in flexible_file")
    motor_inertia: Sequence[float] = setting(
        (nan,), "inertia of the motors, seen from the links, kg m^2 (kg); nan: as in flexible_file"
    )
    motor_viscous: Sequence[float] = setting(
        (nan,), "viscous friction of the motors, N m s/rad (N s/m); nan: as in flexible_file"
    )
    coulomb: Sequence[float] = setting((nan,), "Coulomb friction of the links, N m (N); nan: as in flexible_file")
    viscous: Sequence[float] = setting(
        (nan,),
        "viscous friction of the links, N m s/rad (N s/m), which keeps resonances finite; nan: as in flexible_file",
    )
    seed: int = setting(0, "seed of the random search; another one gives another motion")
    frequencies: Sequence[float] = setting(
        (0.1, 0.4), "frequencies of the sines, Hz; each joint moves at each of them", symbol="HZ"
    )
    cycles: int = setting(3, "number of cycles of each sine at full amplitude")
    amplitude: float = setting(0.9, "fraction of the free range of a joint that is used, up to 1")
    reach: float = setting(1.57, "angle of the tool to either side", unit="rad")
    repeats: int = setting(2, "number of turns of the tool about each of its axes")
    count: int = setting(15, "number of poses")
    offsets: bool = setting(
        True,
        "distinguish torque offsets from gravity",
        off="do not distinguish torque offsets from gravity; assume that the sensors were zeroed",
    )
    position_margin: Sequence[float] = setting(
        (nan,), "distance kept from position limits, rad (m); nan: 0.05, or a tenth of the range where that is less"
    )
    speed_fraction: float = setting(0.5, "fraction of the velocity limits used in the motion")
    travel_speed_fraction: float = setting(
        0.25, "fraction of the velocity limits used on the way to it and between its parts"
    )
    torque_fraction: float = setting(0.8, "fraction of the torque limits that the nominal model may use")


def owners_of(name: str) -> tuple[str, ...]:
    """Return the kinds of motion that have a setting; an empty result means all kinds."""
    owners = [kind for kind, described in EXPERIMENT_KINDS.items() if name in described.settings]
    if name in PRIOR or name in (*SERIES, *SEARCH):
        owners.insert(1 if owners else 0, FLEXIBLE)
    return () if name in LIMIT_FRACTIONS else tuple(owners)


def make_experiment(
    kind: str, robot: RobotModel, limits: MotionLimits, workspace: Workspace, target: str | None = None, **settings: Any
) -> Experiment:
    """Return an experiment with the given settings, and defaults for the others.

    Args:
        kind: key of `EXPERIMENT_KINDS`.
        robot: the arm.
        limits: limits of the joints.
        workspace: allowed space of the links.
        target: parameters to determine; None: the default of the kind.
        settings: values by name; None: the default. The motion "joint_by_joint" consists of steps if `steps` or `dwell`
            is given and `motion` is not. `known` is the information that a Fourier motion complements.

    Raises:
        TrajectoryError: this kind does not have a setting or target, or a value is invalid.
    """
    if kind not in EXPERIMENT_KINDS:
        raise TrajectoryError(f"motion is '{kind}'; expected {', '.join(EXPERIMENT_KINDS)}")
    chosen = EXPERIMENT_KINDS[kind]
    if target not in (None, *chosen.targets):
        raise TrajectoryError(f"target is '{target}'; motion {kind} shows {' or '.join(chosen.targets)}")
    given = {name: value for name, value in settings.items() if value is not None}
    for name, value in given.items():
        if name not in chosen.settings:
            others = ", ".join(other for other, owner in EXPERIMENT_KINDS.items() if name in owner.settings)
            raise TrajectoryError(f"motion {kind} has no setting {name}, which is one of {others or 'no motion'}")
        if name in MAX_COUNTS and value > MAX_COUNTS[name]:
            raise TrajectoryError(f"{name} is {value}; expected at most {MAX_COUNTS[name]}")
    if len(chosen.targets) > 1:
        given["target"] = target or chosen.target
    if chosen.make is JointByJoint and {"steps", "dwell"} & set(given):
        given.setdefault("motion", STEPS)
    if chosen.make is FourierExcitation and "base_frequency" not in given:
        given["base_frequency"] = usual_base_frequency(
            limits, given.get("speed_fraction", MotionSettings.speed_fraction)
        )
    if chosen.make is FourierExcitation and not given.get("periods"):
        given["periods"] = 2 if 2 / given["base_frequency"] <= MAX_REPEATED_DURATION_S else 1
    return chosen.make(robot, limits, workspace, **given)


MAX_REPEATED_DURATION_S = 60.0
"""Longest motion with two periods by default, s; the second period reveals the repeatability of the torques."""
DEFAULT_BASE_FREQUENCY_HZ = 0.05
MIN_BASE_FREQUENCY_HZ = 0.01
MIN_TRAVEL_OF_RANGE = 0.5
"""Fraction of its range, or of a full turn, by which the first harmonic alone must be able to move each joint."""


def usual_base_frequency(limits: MotionLimits, speed_fraction: float) -> float:
    """Return the base frequency, Hz, which is low enough for each joint to travel far within its velocity limit.

    With short travel, the torque of a slow joint is mostly friction.

    Args:
        limits: limits of the joints.
        speed_fraction: fraction of the velocity limits that the motion uses.
    """
    turn = np.array([2 * np.pi if unit == "rad" else np.inf for unit in limits.units])
    travel = MIN_TRAVEL_OF_RANGE * np.minimum(limits.upper - limits.lower, turn)
    # A sine with peak velocity v and frequency f travels v / (pi f) from end to end.
    slowest = float(np.min(speed_fraction * limits.velocity / (np.pi * travel)))
    if slowest >= DEFAULT_BASE_FREQUENCY_HZ:
        return DEFAULT_BASE_FREQUENCY_HZ
    return max(float(f"{slowest:.2g}"), MIN_BASE_FREQUENCY_HZ)


REVERSAL_AMPLITUDE = 0.25
"""Fraction of the free range that reversals use if no friction term depends on the angle."""


def with_friction(
    plan: Plan, experiment: Experiment, robot: RobotModel, friction: JointFriction, **settings: Any
) -> Plan:
    """Return a plan with a second part that excites friction terms, see `show_friction`.

    Args:
        plan: plan of the experiment.
        experiment: experiment with limits and workspace.
        robot: the arm.
        friction: friction terms of all joints.
        settings: settings of the experiment, whose margins and fractions are used.

    Raises:
        TrajectoryError: a term cannot be excited within the limits.
    """
    guards = {name: value for name, value in settings.items() if name in LIMIT_FRACTIONS and value is not None}
    amplitude = 1.0 if friction.harmonics or friction.spring else REVERSAL_AMPLITUDE
    reversals = JointByJoint(
        robot, experiment.limits, experiment.workspace, motion=REVERSALS, amplitude=amplitude, **guards
    )
    return show_friction(plan, experiment, reversals, friction)
