"""Experiments by name, from settings as a user gives them."""

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
from dynid_ros.excitation.joint_by_joint import REVERSALS, STEPS, JointByJoint
from dynid_ros.excitation.payload_motion import PayloadMotion
from dynid_ros.excitation.pose_set import PoseSet
from dynid_ros.excitation.sequences import show_friction
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

# A motion for flexible joints, from what is known of them beforehand: an earlier `identified.yaml`, or arguments.


FLEXIBLE = "flexible"
HARMONICS = 8
MIN_TRAVEL_RAD = 0.1
"""Amplitude of a sine at the base frequency with the largest acceleration: all harmonics together move a fifth."""
MIN_DURATION_S = 10.0
"""Shortest flexible motion. Its period is repeated as often: one period of some tenths of a second shows nothing."""
PRIOR = ("stiffness", "motor_inertia", "motor_viscous", "coulomb", "viscous")
"""Values of `FlexibleJoints` that a file has."""


def flexible_prior(robot: RobotModel, given: Mapping[str, NDArray | None], path: Path | None = None) -> FlexibleJoints:
    """What is known of the joints.

    Args:
        robot: the arm.
        given: (1,) or (n,) values by name, as in `FlexibleJoints`; None: as in the file, or none.
        path: `identified.yaml` of an identification of flexible joints; None: all is given.

    Raises:
        IdentifiedFileError: of another robot, without flexible joints, or with a stiffness that was not determined.
        TrajectoryError: no stiffness or no motor inertia.
    """
    found = {name: value for name, value in given.items() if value is not None}
    if path is not None:
        found = {**joint_parameters(load_identified(path), robot, set(PRIOR) - set(found)), **found}
    missing = [name for name in ("stiffness", "motor_inertia") if name not in found]
    if missing:
        raise TrajectoryError(
            f"{' and '.join(missing)} of the joints {'is' if len(missing) == 1 else 'are'} not known; give values, of "
            "30 % if need be, or an identified.yaml of flexible joints"
        )
    return FlexibleJoints(**found)


def flexible_motion(
    robot: RobotModel,
    limits: MotionLimits,
    workspace: Workspace,
    joints: FlexibleJoints,
    held: NDArray | None = None,
    **settings: Any,
) -> FourierExcitation:
    """Design of a motion of the motors; None among settings: not given.

    Args:
        robot: the arm.
        limits: of the motors.
        workspace: where the links may be.
        joints: what is known of them.
        held: (n,) positions of joints that brakes hold, NaN for those that move; None: all move.
        settings: of `flexible_excitation`; without a `base_frequency` one is taken by which the harmonics lie on both
            sides of the resonances in the middle of the joints' ranges, or as low as the acceleration limits need for
            a motion of `MIN_TRAVEL_RAD`. The period is repeated until the motion lasts `MIN_DURATION_S`.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    harmonics = given.setdefault("harmonics", HARMONICS)
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
        wide = np.sqrt(acceleration / MIN_TRAVEL_RAD) / (2 * np.pi)
        given["base_frequency"] = min(proposed_base_frequency(driven, harmonics), float(wide))
    given["periods"] = max(given.get("periods", 1), int(np.ceil(MIN_DURATION_S * given["base_frequency"])))
    return flexible_excitation(robot, limits, joints, workspace, held=still or None, **given)


# What is recorded already, for a motion that adds to it.


def recorded_information(source: InformationSource, recordings: Sequence[Recording]) -> NDArray:
    """Information (p, p) of the recordings: of the motion as the identification of links sees it, integrated over time.

    Args:
        source: what is asked for.
        recordings: of the arm, with torques.

    Raises:
        IdentificationError: a recording holds no motion or no torque.
        RecordingError: too few samples.
    """
    signals = LinkSignals.choose(recordings)
    segments = [segment for recording in recordings for segment in signals.segments(recording)]
    return np.sum([source.over_time(segment.time, *segment.motion) for segment in segments], axis=0)


# The workspace of an arm, from its URDF and the files of what stands around it.


FLOOR_HEIGHT, CLEARANCE = 0.0, 0.05
"""Defaults, m: the arm stands on something, and is kept away from what it might touch."""


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
    """Where the links, with their shapes, may be.

    Args:
        robot: the arm.
        urdf: its file; meshes with relative paths are looked for in its folder.
        floor_height: lowest height of a moving link, m.
        clearance: smallest distance, m.
        box: lower and then upper corner, six numbers, m; None: no box.
        obstacles: YAML files, see `read_obstacles`.
        mesh_directories: where to look for meshes besides.
        skip_meshes: take a link whose mesh cannot be read for a line.
        srdf: which links may touch, see `allowed_pairs`; None: none says.
        allowed: pairs of links that may touch too, each written as link:link.

    Raises:
        CollisionError: a mesh, an SRDF or a file of obstacles cannot be read.
        TrajectoryError: the arm has no room at all.
    """
    try:
        bodies = Bodies.of(robot, [urdf.parent, *mesh_directories], skip_meshes, srdf=srdf, allowed=allowed)
    except CollisionError as error:
        raise CollisionError(f"{error} (--mesh-directory, --skip-meshes, --srdf, --allowed-pairs)") from error
    around = [obstacle for path in obstacles for obstacle in read_obstacles(path)]
    corners = None if box is None else (box[:3], box[3:])
    return Workspace(robot, floor_height, clearance, bodies, box=corners, obstacles=around)


class Kind(NamedTuple):
    """A kind of experiment.

    Attributes:
        make: its class.
        target: what it shows unless given otherwise.
        targets: what it can show.
        settings: that it takes, by name.
    """

    make: Callable[..., Experiment]
    target: str
    targets: tuple[str, ...]
    settings: tuple[str, ...]


GUARDS = ("position_margin", "speed_fraction", "travel_speed_fraction", "torque_fraction")
SERIES = ("base_frequency", "harmonics", "periods", "criterion", "noise", "known")
SEARCH = ("design_time", "workers", "executor", "seed", "starts")
SINGLE = ("motion", "joints", "pose")
COUNTS = {"workers": 64} | dict.fromkeys(
    ("steps", "poses_per_joint", "cycles", "repeats", "count", "harmonics", "periods"), 1000
)
"""Largest numbers of what takes memory or time each; no experiment needs as many."""
KINDS = {
    "fourier": Kind(FourierExcitation, "links", ("links", "gravity", "load"), (*SERIES, *SEARCH, *GUARDS)),
    "static_rotation": Kind(
        StaticRotation, "gravity", ("gravity",), ("steps", "dwell", "approach", "sweep", "poses_per_joint", *GUARDS)
    ),
    "joint_by_joint": Kind(
        JointByJoint, "links", ("links",), ("steps", "dwell", "frequencies", "cycles", "amplitude", *SINGLE, *GUARDS)
    ),
    "payload": Kind(PayloadMotion, "load", ("load",), ("dwell", "reach", "repeats", "pose", *GUARDS)),
    "poses": Kind(PoseSet, "gravity", ("gravity", "load"), ("count", "dwell", "approach", "seed", "offsets", *GUARDS)),
}


@dataclass(frozen=True)
class MotionSettings:
    """Settings of motions, by the names in `KINDS` and `PRIOR`; who takes none of them has those of each experiment."""

    steps: int = setting(7, "dwells per rotation, or of a joint, in each direction")
    dwell: float = setting(0.5, "dwell at each step or pose", unit="s")
    approach: Sequence[float] = setting((0.05,), "distance from which each joint comes to a dwell, rad (m)")
    sweep: float = setting(6.28, "largest range of a rotation", unit="rad")
    poses_per_joint: int = setting(1, "rotations of each joint, with different poses of the others")
    base_frequency: float | None = setting(
        None,
        "of the first harmonic, Hz; a period takes 1 / base_frequency; default: 0.05, less for slow joints, of "
        "flexible joints by their resonances",
    )
    harmonics: int = setting(10, "number of harmonics of the base frequency, at least 2")
    periods: int = setting(1, "how often the period is repeated")
    criterion: str = setting("determinant", f"what is minimised: {', '.join(CRITERIA)}", choices=CRITERIA)
    noise: Sequence[float] = setting(
        (nan,), "standard deviation of the torques' noise, N m (N); nan: in proportion to their limits"
    )
    design_time: float = setting(30.0, "time for the search, s; 0: the best of a few random motions")
    starts: int = setting(
        0, "searches at most, each from another motion, with which the motion is the same again; 0: as time allows"
    )
    workers: int = setting(0, "processes that search; 0: one per core, up to 4")
    stiffness: Sequence[float] = setting((nan,), "of the springs, N m/rad (N/m); nan: as in flexible_file")
    motor_inertia: Sequence[float] = setting((nan,), "seen from the links, kg m^2 (kg); nan: as in flexible_file")
    motor_viscous: Sequence[float] = setting((nan,), "on the motors' side, N m s/rad (N s/m); nan: as in flexible_file")
    coulomb: Sequence[float] = setting((nan,), "on the links' side, N m (N); nan: as in flexible_file")
    viscous: Sequence[float] = setting(
        (nan,),
        "on the links' side, N m s/rad (N s/m), which, but for Coulomb friction, alone keeps a resonance finite; nan: "
        "as in flexible_file",
    )
    seed: int = setting(0, "of the random numbers; another one gives another motion")
    frequencies: Sequence[float] = setting(
        (0.1, 0.4), "of the sines, Hz; each joint moves at each of them", symbol="HZ"
    )
    cycles: int = setting(3, "of each sine at full amplitude")
    amplitude: float = setting(0.9, "largest part of what is free for a joint that is used, up to 1")
    reach: float = setting(1.57, "largest angle of the tool to either side", unit="rad")
    repeats: int = setting(2, "how often the tool turns about each of its axes")
    count: int = setting(15, "how many poses are visited")
    offsets: bool = setting(
        True,
        "whether torque offsets must be distinguished from gravity",
        off="take the torque sensors as zeroed: poses need not distinguish offsets from gravity",
    )
    position_margin: Sequence[float] = setting(
        (nan,), "distance kept from position limits, rad (m); nan: 0.05, or a tenth of the range where that is less"
    )
    speed_fraction: float = setting(0.5, "part of the velocity limits used in the motion")
    travel_speed_fraction: float = setting(
        0.25, "part of the velocity limits used on the way to it and between its parts"
    )
    torque_fraction: float = setting(0.8, "part of the torque limits that the nominal model may use")


def owners_of(name: str) -> tuple[str, ...]:
    """Return the kinds of motion that have a setting; none: all."""
    owners = [kind for kind, described in KINDS.items() if name in described.settings]
    if name in PRIOR or name in (*SERIES, *SEARCH):
        owners.insert(1 if owners else 0, FLEXIBLE)
    return () if name in GUARDS else tuple(owners)


def make_experiment(
    kind: str,
    robot: RobotModel,
    limits: MotionLimits,
    workspace: Workspace,
    target: str | None = None,
    **settings: Any,
) -> Experiment:
    """An experiment with the settings that are given, and its own defaults for the others.

    Args:
        kind: key of `KINDS`.
        robot: the arm.
        limits: what the joints may do.
        workspace: where the links may be.
        target: what it is to show; None: what that kind usually shows.
        settings: by name; None: not given. Joints move one by one in steps where `steps` or `dwell` are given and no
            `motion`; `known` goes to a Fourier motion.

    Raises:
        TrajectoryError: a setting or target that this kind does not have, or that makes no sense.
    """
    if kind not in KINDS:
        raise TrajectoryError(f"motion is '{kind}'; expected {', '.join(KINDS)}")
    chosen = KINDS[kind]
    if target not in (None, *chosen.targets):
        raise TrajectoryError(f"target is '{target}'; motion {kind} shows {' or '.join(chosen.targets)}")
    given = {name: value for name, value in settings.items() if value is not None}
    for name, value in given.items():
        if name not in chosen.settings:
            others = ", ".join(other for other, owner in KINDS.items() if name in owner.settings)
            raise TrajectoryError(f"motion {kind} has no setting {name}, which is one of {others or 'no motion'}")
        if name in COUNTS and value > COUNTS[name]:
            raise TrajectoryError(f"{name} is {value}; expected at most {COUNTS[name]}")
    if len(chosen.targets) > 1:
        given["target"] = target or chosen.target
    if chosen.make is JointByJoint and {"steps", "dwell"} & set(given):
        given.setdefault("motion", STEPS)
    if chosen.make is FourierExcitation and "base_frequency" not in given:
        given["base_frequency"] = usual_base_frequency(
            limits, given.get("speed_fraction", MotionSettings.speed_fraction)
        )
    return chosen.make(robot, limits, workspace, **given)


USUAL, SLOWEST = 0.05, 0.01
"""Hz, of the first harmonic of a motion of all joints, and as low as slow joints make it."""
TRAVELLED = 0.5
"""Part of its range, or of a turn, that each joint must be able to go by the first harmonic alone."""


def usual_base_frequency(limits: MotionLimits, speed_fraction: float) -> float:
    """Hz, at which no joint is too slow to get about: else a period only shows its friction.

    Args:
        limits: what the joints may do.
        speed_fraction: part of their velocity that is used.
    """
    turn = np.array([2 * np.pi if unit == "rad" else np.inf for unit in limits.units])
    way = TRAVELLED * np.minimum(limits.upper - limits.lower, turn)
    # A sine of speed v and frequency f goes v / (pi f) from end to end.
    slowest = float(np.min(speed_fraction * limits.velocity / (np.pi * way)))
    return USUAL if slowest >= USUAL else max(float(f"{slowest:.2g}"), SLOWEST)


NARROW = 0.25
"""Part of what is free for a joint that shows friction which depends on no angle."""


def with_friction(
    plan: Plan, experiment: Experiment, robot: RobotModel, friction: JointFriction, **settings: Any
) -> Plan:
    """A plan, and after it what shows the terms of friction; see `show_friction`.

    Args:
        plan: of the experiment.
        experiment: gives limits and workspace.
        robot: the arm.
        friction: terms of all joints.
        settings: those of the experiment, of which margins and fractions hold.

    Raises:
        TrajectoryError: a term cannot be shown within the limits.
    """
    guards = {name: value for name, value in settings.items() if name in GUARDS and value is not None}
    amplitude = 1.0 if friction.harmonics or friction.spring else NARROW
    reversals = JointByJoint(
        robot, experiment.limits, experiment.workspace, motion=REVERSALS, amplitude=amplitude, **guards
    )
    return show_friction(plan, experiment, reversals, friction)
