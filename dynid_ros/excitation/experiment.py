"""Base class of the experiments, with the limits and the workspace that they keep to, and the plans that they make."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.connection import Connection
from dynid_ros.trajectories.limits import MotionLimits, check_limits, describe_weak_joints, per_joint
from dynid_ros.trajectories.trajectory import Trajectory, move
from dynid_ros.trajectories.workspace import Workspace, WorkspaceAndTorque, allowed_pairs_hint

UP = 1
DOWN = -1
ACCELERATION_FRACTION = 0.8
"""Fraction of the limits of acceleration and jerk that a plan uses; the rest is needed to stop the motion."""
DEFAULT_MARGIN = 0.05
"""Default distance from position limits, rad or m."""
DEFAULT_MARGIN_OF_RANGE = 0.1
"""Largest default distance from position limits over the joint's range; it applies to the fingers of a gripper."""
TEST_STEP_OF_RANGE = 0.1
MAX_TEST_STEP_S = 3600.0
"""Longest time, s, of a move over a tenth of a joint's range; a longer time shows limits that are wrong."""
N_SAMPLED_POSES = 1024
"""Number of poses that are tested against workspace and torque limits; a power of two, for a Sobol sequence."""
MAX_PAIRS_IN_HINT = 8


@dataclass(frozen=True)
class Dwell:
    """Rest of the whole arm during a planned motion.

    Attributes:
        start: time of arrival, s.
        end: time of departure, s.
        joint: name of the joint that this part of the motion turns; None: no single joint.
        pose: number of the pose, in the order of the visits; None: the motion does not visit poses.
        direction: 1 if all joints arrived with positive velocity, -1 with negative velocity, 0 with different signs;
            None: not defined.
    """

    start: float
    end: float
    joint: str | None = None
    pose: int | None = None
    direction: int | None = None

    def shifted(self, seconds: float) -> "Dwell":
        """Return the dwell, later by `seconds`."""
        return replace(self, start=self.start + seconds, end=self.end + seconds)

    def as_dict(self) -> dict[str, object]:
        """Return plain data for YAML."""
        labels = {"joint": self.joint, "pose": self.pose, "direction": self.direction}
        defined = {name: value for name, value in labels.items() if value is not None}
        return {**defined, "start": round(self.start, 4), "end": round(self.end, 4)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """A planned motion with its description.

    Attributes:
        trajectory: the whole motion, without the approach from the arm's present pose (`Experiment.approach_motion`).
        format: name and version of the layout of the YAML description.
        facts: entries of the YAML description that only this kind of motion has.
        lines: lines of the summary, without warnings.
        dwells: rests, in order of time; None: this kind of motion has no dwells.
        skipped: reason for each joint or axis that does not move; None: this kind of motion skips nothing.
        warnings: sentences about weaknesses of the motion; None: this kind of motion has no warnings.
    """

    trajectory: Trajectory
    format: str
    facts: Mapping[str, object]
    lines: tuple[str, ...]
    dwells: tuple[Dwell, ...] | None = None
    skipped: Mapping[str, str] | None = None
    warnings: tuple[str, ...] | None = None

    @property
    def duration(self) -> float:
        """Duration of the motion, s."""
        return self.trajectory.duration

    def as_dict(self) -> dict[str, object]:
        """Return plain data for YAML: times in s from the start of the motion, positions in rad or m."""
        content: dict[str, object] = {"format": self.format, "duration": round(self.duration, 4), **self.facts}
        if self.dwells is not None:
            content["dwells"] = [dwell.as_dict() for dwell in self.dwells]
        if self.skipped is not None:
            content["skipped"] = dict(self.skipped)
        if self.warnings is not None:
            content["warnings"] = list(self.warnings)
        return content

    def summary(self) -> str:
        """Return the description in lines of text, warnings last."""
        return "\n".join([*self.lines, *(f"warning: {warning}" for warning in self.warnings or ())])


@dataclass(frozen=True, eq=False)
class Experiment:
    """An arm, its limits and its workspace, and the fractions of the limits that a motion may use.

    Subclasses add their settings and plan a motion of one kind.

    Attributes:
        limits: limits of the joints; a plan uses 80 % of acceleration and jerk.
        workspace: bounds of the links; None: links are lines without floor, box or obstacles.
        position_margin: distance from position limits, one value or (n,), rad or m; NaN: 0.05 rad or m, but at most a
            tenth of the joint's range.
        speed_fraction: fraction of the velocity limits used in the motion.
        travel_speed_fraction: fraction of the velocity limits used between the parts of the motion.
        torque_fraction: fraction of the torque limits that the nominal model may use; the rest is for friction and
            errors of the URDF.

    Raises:
        TrajectoryError: a setting makes no sense, or the margin leaves a joint no range.
    """

    robot: RobotModel
    limits: MotionLimits
    workspace: Workspace = field(default=None)  # type: ignore[assignment]  # replaced when the object is made
    _: KW_ONLY
    position_margin: ArrayLike = np.nan
    speed_fraction: float = 0.5
    travel_speed_fraction: float = 0.25
    torque_fraction: float = 0.8

    def __post_init__(self) -> None:
        object.__setattr__(self, "workspace", self.workspace or Workspace(self.robot))
        fractions = ("speed_fraction", "travel_speed_fraction", "torque_fraction")
        require(
            ("position_margin", self.position_margin, np.all(self.margin >= 0), "zero or more"),
            *((name, getattr(self, name), 0 < getattr(self, name) <= 1, "above 0 and at most 1") for name in fractions),
        )
        limits = self.limits
        span = limits.upper - limits.lower
        for i, name in enumerate(limits.joint_names):
            if not 2 * self.margin[i] < span[i]:
                raise TrajectoryError(f"joint '{name}' has no room left between its limits, less position_margin")
            seconds = limits.shortest_move(TEST_STEP_OF_RANGE * span * (np.arange(len(span)) == i))
            if seconds > MAX_TEST_STEP_S:
                raise TrajectoryError(
                    f"joint '{name}' takes {seconds:.3g} s for a tenth of its range, with the velocity limit "
                    f"{limits.velocity[i]:g}, the acceleration limit {limits.acceleration[i]:g} and the jerk limit "
                    f"{limits.jerk[i]:g}; give limits by which it takes at most {MAX_TEST_STEP_S:g} s"
                )

    @cached_property
    def margin(self) -> NDArray:
        """Distance (n,) from position limits, rad or m."""
        margin = per_joint(self.position_margin, self.robot.joint_names, "position_margin")
        default = np.minimum(DEFAULT_MARGIN, DEFAULT_MARGIN_OF_RANGE * (self.limits.upper - self.limits.lower))
        return np.where(np.isnan(margin), default, margin)

    @cached_property
    def design_limits(self) -> MotionLimits:
        """Limits of the motion: the joints' limits less the margin, times the fractions."""
        return replace(
            self.limits.scaled(self.speed_fraction, ACCELERATION_FRACTION, ACCELERATION_FRACTION),
            lower=self.limits.lower + self.margin,
            upper=self.limits.upper - self.margin,
            torque=self.torque_fraction * self.limits.torque,
        )

    @cached_property
    def transit_limits(self) -> MotionLimits:
        """Limits between the parts of the motion."""
        return self.limits.scaled(self.travel_speed_fraction, ACCELERATION_FRACTION, ACCELERATION_FRACTION)

    @cached_property
    def workspace_and_torque(self) -> WorkspaceAndTorque:
        """Bounds of the links, and torque limits for the nominal model."""
        return WorkspaceAndTorque(self.workspace, self.limits, self.robot, 1.0 - self.torque_fraction)

    @cached_property
    def transit_planner(self) -> Connection:
        """Planner of safe moves between poses."""
        return Connection(self.transit_limits, self.workspace_and_torque)

    def plan(self) -> Plan:
        """Plan the motion; implemented by each kind of experiment."""
        raise NotImplementedError

    def approach_motion(self, measured: ArrayLike, plan: Plan) -> Trajectory:
        """Plan a slow motion from the arm's present pose `measured` (n,) to the start of `plan`.

        Raises:
            TrajectoryError: the arm is outside its limits or the workspace, or there is no safe motion.
        """
        return self.transit_planner.connect(measured, plan.trajectory.position[0])

    def check(self, trajectory: Trajectory) -> None:
        """Check that a motion keeps to joint limits, workspace and, if the URDF has masses, torque limits.

        Raises:
            TrajectoryError: the motion violates a bound; the message names joint or link, time and bound.
        """
        check_limits(trajectory, self.limits)
        self.workspace_and_torque.check(trajectory)

    def check_pose(self, pose: NDArray) -> None:
        """Check that the arm may rest at `pose` (n,).

        Raises:
            TrajectoryError: the pose violates a bound; the message names joint or link and bound.
        """
        self.check(move(self.limits.joint_names, pose, pose, 1.0))

    def allowed_poses(self, approach: ArrayLike = 0.0) -> NDArray:
        """Return sampled poses (P, n) within the limits that workspace and torque limits allow.

        Args:
            approach: offset (n,), rad or m; each pose minus and plus this offset must be allowed as well.

        Raises:
            TrajectoryError: no pose is allowed; the message describes the violation in one pose.
        """
        approach = np.asarray(approach)
        poses = self.limits.poses(N_SAMPLED_POSES, self.margin + approach)
        sides = (-1, 0, 1) if np.any(approach) else (0,)
        allowed = np.all([self.workspace_and_torque.allowed(poses + side * approach) for side in sides], axis=0)
        if allowed.any():
            return poses[allowed]
        try:
            self.workspace_and_torque.check(move(self.limits.joint_names, poses[0], poses[0], 1.0))
        except TrajectoryError as error:
            reason = f"none of {N_SAMPLED_POSES} poses keeps to workspace and torque limits: in one of them, {error}"
            raise TrajectoryError("; ".join([reason, *self.hints()])) from error
        raise TrajectoryError(
            f"none of {N_SAMPLED_POSES} poses leaves space for the approach around it, or torque to spare"
        )

    def hints(self) -> list[str]:
        """Describe torque limits and pairs of links that restrict the arm's motion, and the remedies."""
        hints = describe_weak_joints(self.robot, self.limits)
        close = list(self.workspace.close_pairs.items())
        if close and self.workspace.bodies.radius.any():
            named = ", ".join(f"'{a}' and '{b}' ({100 * share:.0f} %)" for (a, b), share in close[:MAX_PAIRS_IN_HINT])
            more = f" and {len(close) - MAX_PAIRS_IN_HINT} more" if len(close) > MAX_PAIRS_IN_HINT else ""
            hints.append(
                f"too near by the shapes of the URDF in part of all poses: {named}{more}; if the real links never "
                f"touch, allow them {allowed_pairs_hint([pair for pair, _ in close])}"
            )
        return hints


def format_range(low: float, high: float, unit: str) -> str:
    """Format a range of positions in degrees or m."""
    return " to ".join(f"{np.rad2deg(end):.0f}°" if unit == "rad" else f"{end:.3f} m" for end in (low, high))


def require(*settings: tuple[str, object, object, str]) -> None:
    """Raise a `TrajectoryError` for the first invalid setting.

    Args:
        settings: tuples of name, value, whether the value is valid, and a description of valid values.
    """
    for name, value, is_valid, expected in settings:
        if not is_valid:
            raise TrajectoryError(f"{name} is {value!r}; it must be {expected}")
