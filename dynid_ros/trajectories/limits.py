"""Limits of the joints, and checks that a motion keeps to them before it is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel, arrays
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.trajectories.joint_limits_file import read_joint_limits
from dynid_ros.trajectories.trajectory import Trajectory, shortest_duration

per_joint = partial(arrays.per_joint, error=TrajectoryError)
"""Return values (n,) from one value for all joints or one per joint; invalid values raise `TrajectoryError`."""

MAX_LIMIT = 1e9
"""Largest limit, in any unit; products of larger numbers overflow."""
N_HOLDING_POSES = 256
N_HOLDING_POSITIONS = 33
HOLDING_SWEEPS = 2
"""Sampled poses, positions of each joint, and sweeps over all joints in the search for the largest holding torque."""
MAX_CHECK_STEP_S = 0.005
"""Longest interval between two checked instants of a motion, s."""
MIN_CHECKS_PER_INTERVAL = 4
RELATIVE_TOLERANCE = 1e-6
"""Largest excess over a limit, relative to the limit, that rounding may cause."""
RELATIVE_JERK_TOLERANCE = 1e-4
"""The same for jerk, which is a third derivative of the rounded numbers in a file."""


@dataclass(frozen=True)
class MotionLimits:
    """Limits of n joints, each (n,); one value applies to all joints.

    Attributes:
        joint_names: n names.
        units: "rad" or "m" for each joint.
        lower: lowest position, rad or m.
        upper: highest position, rad or m.
        velocity: highest speed, per s.
        acceleration: highest absolute acceleration, per s².
        jerk: highest absolute jerk, per s³; infinite: not limited.
        torque: highest absolute torque, N m, or force of a prismatic joint, N; infinite: not limited.

    Raises:
        TrajectoryError: limits contradict each other or are not numbers; the message names the joint.
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
        for name in ("lower", "upper", "velocity", "acceleration", "jerk", "torque"):
            object.__setattr__(self, name, per_joint(getattr(self, name), self.joint_names, f"{name} limits"))
        for joint, unit, lower, upper in zip(self.joint_names, self.units, self.lower, self.upper, strict=True):
            if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
                raise TrajectoryError(
                    f"the position limits of joint '{joint}', {lower:g} to {upper:g} {unit}, leave it no room; give "
                    "position_lower below position_upper, both finite"
                )
        for name, expected in (
            ("velocity", "positive and finite"),
            ("acceleration", "positive and finite"),
            ("jerk", "positive"),
            ("torque", "positive"),
        ):
            for joint, value in zip(self.joint_names, getattr(self, name), strict=True):
                if not 0 < value <= MAX_LIMIT and not (value == np.inf and expected == "positive"):
                    raise TrajectoryError(
                        f"the {name} limit of joint '{joint}' is {value:g}; it must be {expected}, at most "
                        f"{MAX_LIMIT:g}; give {name}_limits that are"
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
        """Return the limits of `robot`, with narrower or missing limits from the arguments.

        Each limit is one value for all joints or (n,). NaN is replaced by the limit in the file `joint_limits`, or else
        by the limit in the URDF.

        Args:
            robot: the arm with the limits of its URDF; the default range of a continuous joint is −π to π.
            acceleration_limits: per s²; in URDFs since version 1.2.
            position_lower: rad or m.
            position_upper: rad or m.
            velocity_limits: per s.
            jerk_limits: per s³; not limited if neither the arguments nor the URDF have a limit.
            torque_limits: N m or N; not limited if neither the arguments nor the URDF have a limit. They may exceed the
                limits in the URDF if these are placeholders, too low to hold the arm's own weight.
            joint_limits: path of a `joint_limits.yaml` of MoveIt, see `read_joint_limits`; None or empty: no file. A
                narrower limit of position, velocity, acceleration or jerk in the URDF takes precedence over the file.

        Raises:
            TrajectoryError: the file is not valid; a limit is missing, exceeds that of the URDF, or leaves no range.
        """
        names = tuple(robot.joint_names)
        units = tuple("m" if kind == "prismatic" else "rad" for kind in robot.joint_types)
        arguments = {
            "position_lower": position_lower,
            "position_upper": position_upper,
            "velocity_limits": velocity_limits,
            "acceleration_limits": acceleration_limits,
            "jerk_limits": jerk_limits,
            "torque_limits": torque_limits,
        }
        given = {name: per_joint(values, names, name) for name, values in arguments.items()}
        described = _described_limits(robot)
        if joint_limits:
            given = _complete(given, read_joint_limits(joint_limits, robot), described)
        _check_described_positions(robot, units, given)
        continuous = [robot.urdf is not None and robot.tree.joints[name].type == "continuous" for name in names]
        turn = np.where(continuous, np.pi, np.nan)
        defaults: dict[str, ArrayLike] = {
            "position_lower": -turn,
            "position_upper": turn,
            "jerk_limits": np.inf,
            "torque_limits": np.inf,
        }
        torque = given["torque_limits"]
        if np.any(torque > described["torque_limits"]):
            lower, upper = (
                _choose(names, name, given[name], described[name], defaults[name])
                for name in ("position_lower", "position_upper")
            )
            if np.any(holding_torque(robot, lower, upper) > described["torque_limits"]):
                # A given torque limit replaces the placeholder of the URDF.
                described["torque_limits"] = np.where(np.isfinite(torque), np.nan, described["torque_limits"])
        chosen = [_choose(names, name, given[name], described[name], defaults.get(name, np.nan)) for name in arguments]
        return MotionLimits(names, units, *chosen)

    def poses(self, count: int, inset: ArrayLike = 0.0) -> NDArray:
        """Return poses (count, n) that a Sobol sequence spreads evenly over the position limits.

        If the range of a revolute joint exceeds one turn, the turn nearest to zero is used.

        Args:
            count: number of poses, a power of two.
            inset: distance from the limits, one value or (n,), rad or m.

        Raises:
            TrajectoryError: the range of a joint is empty.
        """
        margin = np.asarray(inset, dtype=float)
        lower = self.lower + margin
        upper = self.upper - margin
        exceeds_turn = (np.array(self.units) == "rad") & (upper - lower > 2 * np.pi)
        lower = np.where(exceeds_turn, np.clip(-np.pi, lower, upper - 2 * np.pi), lower)
        upper = np.where(exceeds_turn, lower + 2 * np.pi, upper)
        for name, low, high in zip(self.joint_names, lower, upper, strict=True):
            if not low < high:
                raise TrajectoryError(f"joint '{name}' has no room left between its limits, less margin and approach")
        return lower + sobol_points(count, len(lower)) * (upper - lower)

    def shortest_move(self, displacement: ArrayLike) -> float:
        """Return the shortest duration (s) of a minimum-jerk move by `displacement` (n,) from rest to rest."""
        return shortest_duration(displacement, self.velocity, self.acceleration, self.jerk)

    def scaled(self, speed: float, acceleration: float = 1.0, jerk: float = 1.0) -> "MotionLimits":
        """Return limits with velocity, acceleration and jerk multiplied by factors, and equal position and torque."""
        return replace(
            self, velocity=speed * self.velocity, acceleration=acceleration * self.acceleration, jerk=jerk * self.jerk
        )


def _described_limits(robot: RobotModel) -> dict[str, NDArray]:
    """Return the limits (n,) of the URDF by argument of `MotionLimits.of`; NaN: the URDF has no such limit."""
    urdf = robot.limits
    # Programs that export URDFs write zeros for missing limits.
    is_range = np.where(urdf.lower < urdf.upper, 1.0, np.nan)
    return {
        "position_lower": urdf.lower * is_range,
        "position_upper": urdf.upper * is_range,
        "velocity_limits": np.where(urdf.velocity > 0, urdf.velocity, np.nan),
        "acceleration_limits": urdf.acceleration,
        "jerk_limits": urdf.jerk,
        "torque_limits": np.where(urdf.effort > 0, urdf.effort, np.nan),
    }


def _complete(
    given: Mapping[str, NDArray], file: Mapping[str, NDArray], described: Mapping[str, NDArray]
) -> dict[str, NDArray]:
    """Replace NaN in the limits (n,) by those of a file, or by narrower limits of the URDF except for torque."""
    completed = {}
    for name, limits in given.items():
        narrower = np.fmax if name == "position_lower" else np.fmin
        from_file = file[name] if name == "torque_limits" else narrower(file[name], described[name])
        completed[name] = np.where(np.isfinite(limits), limits, from_file)
    return completed


def _check_described_positions(robot: RobotModel, units: Sequence[str], given: Mapping[str, NDArray]) -> None:
    """Check that no range in the URDF is reversed, unless both limits are given; two zeros mean missing limits."""
    for name, unit, lower, upper, *ends in zip(
        robot.joint_names,
        units,
        robot.limits.lower,
        robot.limits.upper,
        given["position_lower"],
        given["position_upper"],
        strict=True,
    ):
        if lower >= upper and (lower or upper) and not np.all(np.isfinite(ends)):
            raise TrajectoryError(
                f"the URDF's position limits of joint '{name}', {lower:g} to {upper:g} {unit}, leave it no room; "
                "correct them, or give both position_lower and position_upper"
            )


def _choose(
    joint_names: Sequence[str], argument: str, given: NDArray, described: NDArray, default: ArrayLike
) -> NDArray:
    """Return the given limits (n,), or else those of the URDF, or else the default.

    Raises:
        TrajectoryError: a limit is missing, or wider than that of the URDF.
    """
    limits = np.where(np.isfinite(described), described, default)
    limits = np.where(np.isfinite(given), given, limits)
    is_wider = limits < described if argument == "position_lower" else limits > described
    for name, limit, bound, wider in zip(joint_names, limits, described, is_wider, strict=True):
        if np.isnan(limit):
            option = f"--{argument.replace('_', '-')}"
            raise TrajectoryError(
                f"{argument} of joint '{name}' is not in the robot's description; give it ({option}, {argument})"
            )
        if np.isfinite(bound) and wider:
            raise TrajectoryError(f"{argument} of joint '{name}' is {limit:g}, wider than the URDF's {bound:g}")
    return limits


def sobol_points(count: int, dimensions: int) -> NDArray:
    """Return the first points (count, dimensions) of Sobol's sequence in the unit cube; `count` is a power of two."""
    from scipy.stats import qmc  # noqa: PLC0415  # scipy.stats takes half a second to load, and few programs need it

    return qmc.Sobol(dimensions, scramble=False).random(count)


def holding_torque(robot: RobotModel, lower: NDArray, upper: NDArray) -> NDArray:
    """Estimate the largest torque (n,), N m or N, that holds the arm's own weight in poses between `lower` and `upper`.

    A coordinate search starts from the sampled pose with the largest torque. The result is at most the true maximum,
    and close to it.
    """
    if not (np.all(np.isfinite(lower) & np.isfinite(upper)) and np.any(robot.parameters)):
        return np.zeros(robot.n_joints)
    poses = lower + sobol_points(N_HOLDING_POSES, robot.n_joints) * (upper - lower)
    torque = np.abs(robot.gravity_torque(poses))
    largest = torque.max(axis=0)
    fractions = np.linspace(0.0, 1.0, N_HOLDING_POSITIONS)
    for joint in range(robot.n_joints):
        pose = poses[torque[:, joint].argmax()]
        for moved in [*range(robot.n_joints)] * HOLDING_SWEEPS:
            varied = np.repeat(pose[None], N_HOLDING_POSITIONS, axis=0)
            varied[:, moved] = lower[moved] + fractions * (upper[moved] - lower[moved])
            needed = np.abs(robot.gravity_torque(varied)[:, joint])
            if needed.max() > largest[joint]:
                largest[joint] = needed.max()
                pose = varied[needed.argmax()]
    return largest


def describe_weak_joints(robot: RobotModel, limits: MotionLimits) -> list[str]:
    """Describe, in at most one sentence, the joints whose torque limit is too low to hold the arm's own weight."""
    needed = holding_torque(robot, limits.lower, limits.upper)
    weak = np.flatnonzero(needed > limits.torque)
    if not len(weak):
        return []
    worst = int(weak[np.argmax(needed[weak] / limits.torque[weak])])
    name = limits.joint_names[worst]
    unit = "N m" if limits.units[worst] == "rad" else "N"
    is_described = limits.torque[worst] == robot.limits.effort[worst]
    source = "URDF" if is_described else "torque"
    question = ": a placeholder?" if is_described else "."
    others = [f"{limits.joint_names[i]} {needed[i]:.2g} of {limits.torque[i]:.4g}" for i in weak if i != worst]
    also = f" (also {', '.join(others)})" if others else ""
    return [
        f"joint '{name}' needs up to {needed[worst]:.2g} {unit} for its own weight, its {source} limit is "
        f"{limits.torque[worst]:.4g}{also}{question} Give the true limit (--torque-limits {name}=…, torque_limits), or "
        "correct effort in the URDF"
    ]


def check_limits(trajectory: Trajectory, limits: MotionLimits) -> None:
    """Check that a motion is finite and keeps to position, velocity, acceleration and jerk limits.

    The motion is checked at and between its samples. A jump between two samples appears as the velocity or acceleration
    that the interpolation would need.

    Raises:
        TrajectoryError: the motion violates a limit; the message has joint, time, value and limit of the worst
            violation.
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
        _check_bound("jerk", time, np.abs(jerk), limits.jerk, limits, per="/s³", tolerance=RELATIVE_JERK_TOLERANCE)


def check_torque(trajectory: Trajectory, limits: MotionLimits, robot: RobotModel, margin: float = 0.0) -> None:
    """Check that the nominal torque of a motion stays within (1 − `margin`) of the limits.

    The nominal torque contains neither friction nor rotor inertia nor errors of the URDF. The margin is for these.

    Raises:
        TrajectoryError: a torque is too large, and the message has joint, time, torque and limit; the torque of a joint
            is unknown because the URDF has no mass beyond the joint; or the margin is not between 0 and 1.
    """
    if not 0 <= margin < 1:
        raise TrajectoryError(f"the torque margin is {margin:g}; it must be 0 or more and below 1")
    unknown = joints_with_unknown_torque(limits, robot)
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


def joints_with_unknown_torque(limits: MotionLimits, robot: RobotModel) -> list[str]:
    """Return the joints with a torque limit for which the URDF has no mass between joint and tip."""
    mass = robot.parameters[::PARAMETERS_PER_LINK]
    carried = robot.chain.moved @ mass
    return [
        name
        for name, moved, limit in zip(limits.joint_names, carried, limits.torque, strict=True)
        if np.isfinite(limit) and not moved > 0
    ]


def check_times(trajectory: Trajectory) -> NDArray:
    """Return the instants (M,), s, at which a motion is checked: its samples, and instants between them."""
    intervals = np.diff(trajectory.time)
    counts = np.maximum(np.ceil(intervals / MAX_CHECK_STEP_S).astype(int), MIN_CHECKS_PER_INTERVAL)
    starts = np.repeat(trajectory.time[:-1], counts)
    fractions = np.concatenate([np.arange(count) / count for count in counts])
    return np.append(starts + fractions * np.repeat(intervals, counts), trajectory.duration)


def check_start(trajectory: Trajectory, measured: ArrayLike, tolerance: ArrayLike = 0.01) -> None:
    """Check that a motion starts at rest, at the measured pose of the arm.

    Args:
        trajectory: the motion.
        measured: (n,) measured position, rad or m.
        tolerance: largest distance, one value or (n,), rad or m.

    Raises:
        TrajectoryError: the motion starts elsewhere or not at rest; the message names the joint.
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
    quantity: str,
    time: NDArray,
    values: NDArray,
    bound: NDArray,
    limits: MotionLimits,
    *,
    sign: int = 1,
    per: str = "",
    tolerance: float = RELATIVE_TOLERANCE,
) -> None:
    """Raise a `TrajectoryError` if a value (M, n) at times (M,) or (M, n), s, exceeds its bound (n,).

    The sign is 1 for an upper bound, -1 for a lower one. The suffix `per` follows the unit of the joint, and
    `tolerance` is the largest relative excess that is allowed.
    """
    with np.errstate(invalid="ignore"):
        excess = np.where(np.isfinite(bound), sign * (values - bound) - tolerance * np.abs(bound), -np.inf)
    k, i = np.unravel_index(np.argmax(excess), excess.shape)
    if excess[k, i] > 0:
        unit = limits.units[i] + per
        raise TrajectoryError(
            f"joint '{limits.joint_names[i]}' would reach {quantity} {values[k, i]:.4g} {unit} at "
            f"{np.broadcast_to(time.T, excess.T.shape).T[k, i]:.3f} s; its limit is {bound[i]:.4g} {unit}"
        )
