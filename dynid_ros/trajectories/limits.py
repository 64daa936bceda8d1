"""What the joints may do."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import qmc

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.model.urdf_document import parse_urdf


@dataclass(frozen=True)
class MotionLimits:
    """Limits of n joints, each (n,) and finite.

    Attributes:
        joint_names: n names.
        units: "rad" or "m" for each.
        lower: lowest position.
        upper: highest position.
        velocity: highest speed, per s.
        acceleration: highest acceleration, per s².

    """

    joint_names: tuple[str, ...]
    units: tuple[str, ...]
    lower: NDArray
    upper: NDArray
    velocity: NDArray
    acceleration: NDArray

    @staticmethod
    def of(
        robot: RobotModel,
        acceleration_limits: ArrayLike,
        *,
        position_lower: ArrayLike = np.nan,
        position_upper: ArrayLike = np.nan,
        velocity_limits: ArrayLike = np.nan,
    ) -> "MotionLimits":
        """Limits of `robot`, narrowed or filled in by the caller.

        Each argument is one value for all joints or (n,); NaN stands for the URDF's limit.

        Args:
            robot: its URDF's limits are used; a continuous joint may turn from −π to π unless told otherwise.
            acceleration_limits: per s²; no URDF holds them.
            position_lower: rad or m.
            position_upper: rad or m.
            velocity_limits: per s.

        Raises:
            TrajectoryError: a limit is neither in the URDF nor given, wider than in the URDF, or leaves no room.

        """
        names = tuple(robot.joint_names)
        urdf = robot.limits
        # Exporters write zeros where nobody entered a limit.
        fixed = np.where(urdf.lower < urdf.upper, 1.0, np.nan)
        velocity = np.where(urdf.velocity > 0, urdf.velocity, np.nan)
        turn = np.where(_continuous(robot), np.pi, np.nan)
        limits = MotionLimits(
            names,
            tuple("m" if kind == "prismatic" else "rad" for kind in robot.joint_types),
            _bounds(names, "position_lower", position_lower, urdf.lower * fixed, -turn, wider=np.less),
            _bounds(names, "position_upper", position_upper, urdf.upper * fixed, turn),
            _bounds(names, "velocity_limits", velocity_limits, velocity),
            _bounds(names, "acceleration_limits", acceleration_limits, np.full(len(names), np.nan)),
        )
        limits._check_room()
        return limits

    def _check_room(self) -> None:
        for name, unit, lower, upper in zip(self.joint_names, self.units, self.lower, self.upper, strict=True):
            if not lower < upper:
                raise TrajectoryError(
                    f"the position limits of joint '{name}', {lower:g} to {upper:g} {unit}, leave it no room"
                )
        for what, values in (("velocity", self.velocity), ("acceleration", self.acceleration)):
            for name, value in zip(self.joint_names, values, strict=True):
                if not value > 0:
                    raise TrajectoryError(f"the {what} limit of joint '{name}' is {value:g}; it must be positive")

    def poses(self, count: int, inset: ArrayLike = 0.0) -> NDArray:
        """Poses (count, n) spread evenly over the limits less `inset`, and over −π to π where a joint turns further.

        Raises:
            TrajectoryError: a joint has no room left.

        """
        turn = np.where(np.array(self.units) == "rad", np.pi, np.inf)
        lower, upper = np.maximum(self.lower + inset, -turn), np.minimum(self.upper - inset, turn)
        for name, low, high in zip(self.joint_names, lower, upper, strict=True):
            if not low < high:
                raise TrajectoryError(f"joint '{name}' has no room left between its limits, less margin and approach")
        return lower + qmc.Sobol(len(lower), scramble=False).random(count) * (upper - lower)

    def scaled(self, speed: float, acceleration: float = 1.0) -> "MotionLimits":
        """The same positions at a fraction of the velocity and of the acceleration."""
        return replace(self, velocity=speed * self.velocity, acceleration=acceleration * self.acceleration)


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
    """Bounds (n,): those given, else those of the URDF, else `otherwise`; NaN and infinite stand for none."""
    given = per_joint(given, names, what)
    bounds = np.where(np.isfinite(urdf), urdf, otherwise)
    bounds = np.where(np.isfinite(given), given, bounds)
    for name, bound, limit in zip(names, bounds, urdf, strict=True):
        if not np.isfinite(bound):
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
