"""What the joints may do."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import qmc

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.model.urdf import parse_urdf
from dynid_ros.trajectories.minimum_jerk import shortest_duration

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
        acceleration_limits: ArrayLike,
        *,
        position_lower: ArrayLike = np.nan,
        position_upper: ArrayLike = np.nan,
        velocity_limits: ArrayLike = np.nan,
        jerk_limits: ArrayLike = np.nan,
        torque_limits: ArrayLike = np.nan,
    ) -> "MotionLimits":
        """Limits of `robot`, narrowed or filled in by the caller.

        Each argument is one value for all joints or (n,); NaN stands for the URDF's limit.

        Args:
            robot: its URDF's limits are used; a continuous joint may turn from −π to π unless told otherwise.
            acceleration_limits: per s²; no URDF holds them.
            position_lower: rad or m.
            position_upper: rad or m.
            velocity_limits: per s.
            jerk_limits: per s³; no URDF holds them, NaN: not limited.
            torque_limits: N m or N; not limited where neither they nor the URDF say so.

        Raises:
            TrajectoryError: a limit is neither in the URDF nor given, wider than in the URDF, or leaves no room.

        """
        names = tuple(robot.joint_names)
        units = tuple("m" if kind == "prismatic" else "rad" for kind in robot.joint_types)
        urdf, nothing = robot.limits, np.full(robot.n_joints, np.nan)
        for name, unit, lower, upper, *given in zip(
            names,
            units,
            urdf.lower,
            urdf.upper,
            per_joint(position_lower, names, "position_lower"),
            per_joint(position_upper, names, "position_upper"),
            strict=True,
        ):
            if lower >= upper and (lower or upper) and not np.all(np.isfinite(given)):
                raise TrajectoryError(
                    f"the URDF's position limits of joint '{name}', {lower:g} to {upper:g} {unit}, leave it no room; "
                    "correct them, or give both position_lower and position_upper"
                )
        # Exporters write zeros where nobody entered a limit.
        fixed = np.where(urdf.lower < urdf.upper, 1.0, np.nan)
        velocity, effort = (np.where(values > 0, values, np.nan) for values in (urdf.velocity, urdf.effort))
        turn = np.where(_continuous(robot), np.pi, np.nan)
        return MotionLimits(
            names,
            units,
            _bounds(names, "position_lower", position_lower, urdf.lower * fixed, -turn, wider=np.less),
            _bounds(names, "position_upper", position_upper, urdf.upper * fixed, turn),
            _bounds(names, "velocity_limits", velocity_limits, velocity),
            _bounds(names, "acceleration_limits", acceleration_limits, nothing),
            _bounds(names, "jerk_limits", jerk_limits, nothing, np.inf),
            _bounds(names, "torque_limits", torque_limits, effort, np.inf),
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
        return lower + qmc.Sobol(len(lower), scramble=False).random(count) * (upper - lower)

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


def per_joint(value: ArrayLike, joint_names: Sequence[str], what: str) -> NDArray:
    """`value`, one for all joints or one for each, as (n,).

    Raises:
        TrajectoryError: another number of values.

    """
    values = np.atleast_1d(np.asarray(value, dtype=float))
    if values.shape not in ((1,), (len(joint_names),)):
        raise TrajectoryError(
            f"{what}: {values.size} values; give one for all joints or one for each of {', '.join(joint_names)}"
        )
    return np.broadcast_to(values, len(joint_names)).copy()


def _bounds(
    names: Sequence[str],
    what: str,
    given: ArrayLike,
    urdf: NDArray,
    otherwise: ArrayLike = np.nan,
    *,
    wider: np.ufunc = np.greater,
) -> NDArray:
    """Bounds (n,): those given, else those of the URDF, else `otherwise`; NaN and infinite stand for none there."""
    given = per_joint(given, names, what)
    bounds = np.where(np.isfinite(urdf), urdf, otherwise)
    bounds = np.where(np.isfinite(given), given, bounds)
    for name, bound, limit in zip(names, bounds, urdf, strict=True):
        if np.isnan(bound):
            raise TrajectoryError(f"{what} of joint '{name}' is not in the robot's description; give it")
        if np.isfinite(limit) and wider(bound, limit):
            raise TrajectoryError(f"{what} of joint '{name}' is {bound:g}, wider than the URDF's {limit:g}")
    return bounds


def _continuous(robot: RobotModel) -> NDArray:
    """(n,) bool: joints that the URDF lets turn without end."""
    if robot.urdf is None:
        return np.zeros(robot.n_joints, dtype=bool)
    joints = parse_urdf(robot.urdf, robot.name).joint_map
    return np.array([joints[name].type == "continuous" for name in robot.joint_names])
