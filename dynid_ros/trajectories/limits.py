"""What the joints may do, and checks of a motion before any of it is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel, arrays
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.urdf import parse_urdf
from dynid_ros.trajectories.joint_limits_file import read_joint_limits
from dynid_ros.trajectories.trajectory import Trajectory, shortest_duration

per_joint = partial(arrays.per_joint, error=TrajectoryError)
"""Values (n,) of one for all joints or one for each."""

LARGEST = 1e9
"""Beyond all robots, in any unit: products of larger numbers are none."""


@dataclass(frozen=True)
class MotionLimits:
    """Limits of n joints, each (n,); one value stands for all joints.

    Attributes:
        joint_names: n names.
        units: "rad" or "m" for each.
        lower: lowest position.
        upper: highest position.
        velocity: highest speed, per s.
        acceleration: highest acceleration, per s².
        jerk: highest jerk, per s³; infinite: not limited.
        torque: highest torque, N m, of a sliding joint force, N; infinite: not limited.

    Raises:
        TrajectoryError: limits that contradict each other or are not numbers; names the joint.
    """

    joint_names: tuple[str, ...]
    units: tuple[str, ...]
    lower: NDArray
    upper: NDArray
    velocity: NDArray
    acceleration: NDArray
    jerk: NDArray = field(default_factory=lambda: np.array(np.inf))
    torque: NDArray = field(default_factory=lambda: np.array(np.inf))

    def __post_init__(self) -> None:
        for what in ("lower", "upper", "velocity", "acceleration", "jerk", "torque"):
            object.__setattr__(self, what, per_joint(getattr(self, what), self.joint_names, f"{what} limits"))
        for name, unit, lower, upper in zip(self.joint_names, self.units, self.lower, self.upper, strict=True):
            if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
                raise TrajectoryError(
                    f"the position limits of joint '{name}', {lower:g} to {upper:g} {unit}, leave it no room; give "
                    "position_lower below position_upper, both finite"
                )
        for what, largest in (("velocity", "finite"), ("acceleration", "finite"), ("jerk", ""), ("torque", "")):
            for name, value in zip(self.joint_names, getattr(self, what), strict=True):
                if not (value > 0 and (value <= LARGEST or (value == np.inf and not largest))):
                    raise TrajectoryError(
                        f"the {what} limit of joint '{name}' is {value:g}; it must be positive"
                        f"{' and finite' * bool(largest)}, at most {LARGEST:g}; give {what}_limits that are"
                    )

    @staticmethod
    def of(
        robot: RobotModel,
        acceleration_limits: ArrayLike = np.nan,
        *,
        position_lower: ArrayLike = np.nan,
        position_upper: ArrayLike = np.nan,
        velocity_limits: ArrayLike = np.nan,
        jerk_limits: ArrayLike = np.nan,
        torque_limits: ArrayLike = np.nan,
        joint_limits: str | Path | None = None,
    ) -> "MotionLimits":
        """Limits of `robot`, narrowed or filled in by the caller.

        Each argument is one value for all joints or (n,); NaN stands for the limit of the file `joint_limits`, and
        where that has none for the URDF's.

        Args:
            robot: its URDF's limits are used; a continuous joint may turn from −π to π unless given otherwise.
            acceleration_limits: per s²; URDFs hold them since version 1.2.
            position_lower: rad or m.
            position_upper: rad or m.
            velocity_limits: per s.
            jerk_limits: per s³; not limited where neither they nor the URDF say so.
            torque_limits: N m or N; not limited where neither they nor the URDF say so. They may be wider than the
                URDF's where these are placeholders, by which the arm cannot hold its own weight.
            joint_limits: `joint_limits.yaml` of MoveIt, see `read_joint_limits`; None or empty: there is none. Where
                the URDF's limit of position, velocity, acceleration or jerk is narrower, that one holds.

        Raises:
            TrajectoryError: the file is refused; or a limit is neither in the URDF nor given, wider than there, or
                leaves no room.
        """
        names = tuple(robot.joint_names)
        units = tuple("m" if kind == "prismatic" else "rad" for kind in robot.joint_types)
        urdf = robot.limits
        # Exporters write zeros where nobody entered a limit.
        fixed = np.where(urdf.lower < urdf.upper, 1.0, np.nan)
        velocity, effort = (np.where(values > 0, values, np.nan) for values in (urdf.velocity, urdf.effort))
        described = {
            "position_lower": urdf.lower * fixed,
            "position_upper": urdf.upper * fixed,
            "velocity_limits": velocity,
            "acceleration_limits": urdf.acceleration,
            "jerk_limits": urdf.jerk,
        }
        given: dict[str, NDArray] = {
            what: per_joint(values, names, what)
            for what, values in (
                ("position_lower", position_lower),
                ("position_upper", position_upper),
                ("velocity_limits", velocity_limits),
                ("acceleration_limits", acceleration_limits),
                ("jerk_limits", jerk_limits),
                ("torque_limits", torque_limits),
            )
        }
        if joint_limits:
            given = _completed(given, read_joint_limits(joint_limits, robot), described)
        for name, unit, lower, upper, *bounds in zip(
            names, units, urdf.lower, urdf.upper, given["position_lower"], given["position_upper"], strict=True
        ):
            if lower >= upper and (lower or upper) and not np.all(np.isfinite(bounds)):
                raise TrajectoryError(
                    f"the URDF's position limits of joint '{name}', {lower:g} to {upper:g} {unit}, leave it no room; "
                    "correct them, or give both position_lower and position_upper"
                )
        turn = np.where(_continuous(robot), np.pi, np.nan)
        lowest = _bounds(names, "position_lower", given, described["position_lower"], -turn, wider=np.less)
        highest = _bounds(names, "position_upper", given, described["position_upper"], turn)
        torque = given["torque_limits"]
        if np.any(torque > effort) and np.any(holding_torque(robot, lowest, highest) > effort):
            effort = np.where(np.isfinite(torque), np.nan, effort)
        return MotionLimits(
            names,
            units,
            lowest,
            highest,
            _bounds(names, "velocity_limits", given, velocity),
            _bounds(names, "acceleration_limits", given, urdf.acceleration),
            _bounds(names, "jerk_limits", given, urdf.jerk, np.inf),
            _bounds(names, "torque_limits", given, effort, np.inf),
        )

    def poses(self, count: int, inset: ArrayLike = 0.0) -> NDArray:
        """Poses (count, n) spread evenly over the limits less `inset`; over one turn, the nearest to zero, of more.

        Raises:
            TrajectoryError: a joint has no room left.
        """
        margin = np.asarray(inset, dtype=float)
        lower, upper = self.lower + margin, self.upper - margin
        further = (np.array(self.units) == "rad") & (upper - lower > 2 * np.pi)
        lower = np.where(further, np.clip(-np.pi, lower, upper - 2 * np.pi), lower)
        upper = np.where(further, lower + 2 * np.pi, upper)
        for name, low, high in zip(self.joint_names, lower, upper, strict=True):
            if not low < high:
                raise TrajectoryError(f"joint '{name}' has no room left between its limits, less margin and approach")
        return lower + sobol_points(count, len(lower)) * (upper - lower)

    def shortest_move(self, displacement: ArrayLike) -> float:
        """Shortest time (s) of a minimum-jerk move by `displacement` (n,) from rest to rest."""
        return shortest_duration(displacement, self.velocity, self.acceleration, self.jerk)

    def scaled(self, speed: float, acceleration: float = 1.0, jerk: float = 1.0) -> "MotionLimits":
        """The same positions and torques at a fraction of the velocity, of the acceleration and of the jerk."""
        return replace(
            self,
            velocity=speed * self.velocity,
            acceleration=acceleration * self.acceleration,
            jerk=jerk * self.jerk,
        )


def _completed(
    given: Mapping[str, NDArray], file: Mapping[str, NDArray], described: Mapping[str, NDArray]
) -> dict[str, NDArray]:
    """Return the limits (n,) that are given, and where none is those of a file, no wider than the URDF's."""
    completed = {}
    for what, limits in given.items():
        narrower = np.fmax if what == "position_lower" else np.fmin
        others = narrower(file[what], described[what]) if what in described else file[what]
        completed[what] = np.where(np.isfinite(limits), limits, others)
    return completed


def _bounds(
    names: Sequence[str],
    what: str,
    limits: Mapping[str, NDArray],
    urdf: NDArray,
    otherwise: ArrayLike = np.nan,
    *,
    wider: np.ufunc = np.greater,
) -> NDArray:
    """Bounds (n,): those given, else those of the URDF, else `otherwise`; NaN and infinite stand for none there."""
    given = limits[what]
    bounds = np.where(np.isfinite(urdf), urdf, otherwise)
    bounds = np.where(np.isfinite(given), given, bounds)
    for name, bound, limit in zip(names, bounds, urdf, strict=True):
        if np.isnan(bound):
            raise TrajectoryError(f"{what} of joint '{name}' is not in the robot's description; give it")
        if np.isfinite(limit) and wider(bound, limit):
            raise TrajectoryError(f"{what} of joint '{name}' is {bound:g}, wider than the URDF's {limit:g}")
    return bounds


def sobol_points(count: int, dimensions: int) -> NDArray:
    """Return the first points (count, dimensions) of Sobol's sequence in the unit cube; `count` is a power of two."""
    from scipy.stats import qmc  # noqa: PLC0415  # scipy.stats takes half a second to load, and few programs need it

    return qmc.Sobol(dimensions, scramble=False).random(count)


HOLDING_POSES = 256
HOLDING_STEPS = 33
HOLDING_SWEEPS = 2


def holding_torque(robot: RobotModel, lower: NDArray, upper: NDArray) -> NDArray:
    """Return the largest torque (n,) of each joint that holds the arm's own weight, within positions (n,), N m or N.

    The worst of spread poses is improved joint by joint: this is a lower bound of the largest torque, and a close one.
    """
    if not (np.all(np.isfinite(lower) & np.isfinite(upper)) and np.any(robot.parameters)):
        return np.zeros(robot.n_joints)
    poses = lower + sobol_points(HOLDING_POSES, robot.n_joints) * (upper - lower)
    torque = np.abs(robot.gravity_torque(poses))
    largest = torque.max(axis=0)
    steps = np.linspace(0.0, 1.0, HOLDING_STEPS)
    for joint in range(robot.n_joints):
        pose = poses[torque[:, joint].argmax()]
        for moved in [*range(robot.n_joints)] * HOLDING_SWEEPS:
            tried = np.repeat(pose[None], HOLDING_STEPS, axis=0)
            tried[:, moved] = lower[moved] + steps * (upper[moved] - lower[moved])
            needed = np.abs(robot.gravity_torque(tried)[:, joint])
            if needed.max() > largest[joint]:
                largest[joint] = needed.max()
                pose = tried[needed.argmax()]
    return largest


def weight_sentences(robot: RobotModel, limits: MotionLimits) -> list[str]:
    """Say, in one sentence or none, of which joints the torque limit is below what the arm's own weight needs."""
    needed = holding_torque(robot, limits.lower, limits.upper)
    short = np.flatnonzero(needed > limits.torque)
    if not len(short):
        return []
    worst = int(short[np.argmax(needed[short] / limits.torque[short])])
    name = limits.joint_names[worst]
    unit = "N m" if limits.units[worst] == "rad" else "N"
    is_described = limits.torque[worst] == robot.limits.effort[worst]
    source = "URDF" if is_described else "torque"
    question = ": a placeholder?" if is_described else "."
    others = [f"{limits.joint_names[i]} {needed[i]:.2g} of {limits.torque[i]:.4g}" for i in short if i != worst]
    also = f" (also {', '.join(others)})" if others else ""
    return [
        f"joint '{name}' needs up to {needed[worst]:.2g} {unit} for its own weight, its {source} limit is "
        f"{limits.torque[worst]:.4g}{also}{question} Give the true limit (--torque-limits {name}=…, torque_limits), or "
        "correct effort in the URDF"
    ]


def _continuous(robot: RobotModel) -> NDArray:
    """(n,) bool: joints that the URDF lets turn without end."""
    if robot.urdf is None:
        return np.zeros(robot.n_joints, dtype=bool)
    types = {joint.name: joint.type for joint in parse_urdf(robot.urdf, robot.name).joints}
    return np.array([types[name] == "continuous" for name in robot.joint_names])


CHECK_STEP = 0.005
"""The motion between two samples is looked at this often, s, and at least at `CHECKS_BETWEEN` points."""
CHECKS_BETWEEN = 4
ROUNDING = 1e-6
"""Excess, as a part of a limit, that is taken for rounding."""
JERK_ROUNDING = 1e-4
"""The same for jerk, a third derivative of what is written in a file."""


def check_limits(trajectory: Trajectory, limits: MotionLimits) -> None:
    """Every value finite, and position, velocity, acceleration and jerk within limits at the samples and between them.

    A jump in position or velocity between two samples shows as the velocity or acceleration that it would take.

    Raises:
        TrajectoryError: names joint, time, value and bound of the worst violation of its kind.
    """
    if trajectory.joint_names != limits.joint_names:
        raise TrajectoryError(f"the motion is of joints {trajectory.joint_names}, the limits of {limits.joint_names}")
    for quantity in ("position", "velocity", "acceleration"):
        values = getattr(trajectory, quantity)
        if not np.all(np.isfinite(values)):
            k, i = np.argwhere(~np.isfinite(values))[0]
            raise TrajectoryError(
                f"{quantity} of joint '{limits.joint_names[i]}' is {values[k, i]} at {trajectory.time[k]:.3f} s"
            )
    time = check_times(trajectory)
    position, velocity, acceleration = trajectory.at(time)
    _check_bound("position", time, position, limits.upper, limits)
    _check_bound("position", time, position, limits.lower, limits, sign=-1)
    _check_bound("speed", time, np.abs(velocity), limits.velocity, limits, per="/s")
    _check_bound("acceleration", time, np.abs(acceleration), limits.acceleration, limits, per="/s²")
    if np.isfinite(limits.jerk).any():
        time, jerk = trajectory.jerk_peaks()
        _check_bound("jerk", time, np.abs(jerk), limits.jerk, limits, per="/s³", rounding=JERK_ROUNDING)


def check_torque(trajectory: Trajectory, limits: MotionLimits, robot: RobotModel, margin: float = 0.0) -> None:
    """The torque of the motion by the robot's own parameters stays within (1 − `margin`) of the limits.

    Friction and rotors are not in it, nor what the description gets wrong: the margin is for them.

    Raises:
        TrajectoryError: names joint, time, torque and bound; or the joints whose torque is not known because the
            robot's description has no mass there; or a margin outside 0 … 1.
    """
    if not 0 <= margin < 1:
        raise TrajectoryError(f"the torque margin is {margin:g}; it must be 0 or more and below 1")
    unknown = unknown_torques(limits, robot)
    if unknown:
        raise TrajectoryError(
            f"the torque of joints {', '.join(unknown)} cannot be checked: the robot's description has no mass there; "
            "give masses, or infinite torque_limits for them"
        )
    time = check_times(trajectory)
    torque = robot.inverse_dynamics(*trajectory.at(time))
    bound = (1 - margin) * limits.torque
    for i, name in enumerate(limits.joint_names):
        k = int(np.argmax(np.abs(torque[:, i])))
        if not abs(torque[k, i]) <= bound[i]:
            unit = "N m" if limits.units[i] == "rad" else "N"
            raise TrajectoryError(
                f"joint '{name}' would need {torque[k, i]:.4g} {unit} at {time[k]:.3f} s; allowed are {bound[i]:.4g} "
                f"{unit}, its limit of {limits.torque[i]:.4g} {unit} less a margin of {100 * margin:g} %"
            )


def unknown_torques(limits: MotionLimits, robot: RobotModel) -> list[str]:
    """Joints with a torque limit for which the robot's description has no mass from there to the tip."""
    mass = robot.parameters[::PARAMETERS_PER_LINK]
    carried = robot.chain.moved @ mass
    return [
        name
        for name, moved, limit in zip(limits.joint_names, carried, limits.torque, strict=True)
        if np.isfinite(limit) and not moved > 0
    ]


def check_times(trajectory: Trajectory) -> NDArray:
    """Times at the samples and closely between them."""
    intervals = np.diff(trajectory.time)
    counts = np.maximum(np.ceil(intervals / CHECK_STEP).astype(int), CHECKS_BETWEEN)
    starts = np.repeat(trajectory.time[:-1], counts)
    fractions = np.concatenate([np.arange(count) / count for count in counts])
    return np.append(starts + fractions * np.repeat(intervals, counts), trajectory.duration)


def check_start(trajectory: Trajectory, measured: ArrayLike, tolerance: ArrayLike = 0.01) -> None:
    """The motion starts at rest, where the arm is: `measured` (n,) within `tolerance` (rad or m).

    Raises:
        TrajectoryError: names the joint and both positions.
    """
    distance = np.abs(trajectory.position[0] - np.asarray(measured, dtype=float))
    tolerance = per_joint(tolerance, trajectory.joint_names, "start tolerance")
    for i, name in enumerate(trajectory.joint_names):
        if not distance[i] <= tolerance[i]:
            raise TrajectoryError(
                f"the motion starts at {trajectory.position[0, i]:.4g} of joint '{name}', which is at "
                f"{np.asarray(measured)[i]:.4g}; allowed is a difference of {tolerance[i]:g}"
            )
        if trajectory.velocity[0, i] != 0.0:
            raise TrajectoryError(
                f"the motion starts with velocity {trajectory.velocity[0, i]:.4g} of joint '{name}', not at rest"
            )


def _check_bound(
    what: str,
    time: NDArray,
    values: NDArray,
    bound: NDArray,
    limits: MotionLimits,
    *,
    sign: int = 1,
    per: str = "",
    rounding: float = ROUNDING,
) -> None:
    """Raise where `values` (M, n) at times (M,) or (M, n) pass `bound` (n,) most."""
    with np.errstate(invalid="ignore"):
        excess = np.where(np.isfinite(bound), sign * (values - bound) - rounding * np.abs(bound), -np.inf)
    k, i = np.unravel_index(np.argmax(excess), excess.shape)
    if excess[k, i] > 0:
        unit = limits.units[i] + per
        raise TrajectoryError(
            f"joint '{limits.joint_names[i]}' would reach {what} {values[k, i]:.4g} {unit} at "
            f"{np.broadcast_to(time.T, excess.T.shape).T[k, i]:.3f} s; its limit is {bound[i]:.4g} {unit}"
        )
