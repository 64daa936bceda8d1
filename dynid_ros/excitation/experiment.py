"""What every planned experiment has in common."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.connection import Connection
from dynid_ros.trajectories.limits import MotionLimits, check_limits, per_joint, weight_sentences
from dynid_ros.trajectories.trajectory import LONGEST, Trajectory, move
from dynid_ros.trajectories.workspace import TorqueRoom, Workspace, allowing

UP, DOWN = 1, -1


@dataclass(frozen=True)
class Dwell:
    """A dwell of the whole arm in a pose at which every joint arrived in the same direction.

    Attributes:
        joint: name of the joint that turns.
        direction: 1 where all joints arrived moving upwards, -1 downwards.
        start: time of arrival, s.
        end: time of departure, s.
    """

    joint: str
    direction: int
    start: float
    end: float

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML."""
        times = {"start": round(self.start, 4), "end": round(self.end, 4)}
        return {"joint": self.joint, "direction": self.direction, **times}


def _length(value: float, unit: str) -> str:
    return f"{np.rad2deg(value):.0f}°" if unit == "rad" else f"{value:.3f} m"


class Plan(Protocol):
    """A motion that was planned, and what there is to say about it."""

    @property
    def trajectory(self) -> Trajectory:
        """The whole motion; how the arm gets to its start is not part of it."""

    @property
    def duration(self) -> float:
        """Duration of the motion, s."""

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML."""

    def summary(self) -> str:
        """Lines of text."""


class TrajectoryPlan:
    """What plans have in common that hold their whole motion."""

    trajectory: Trajectory

    @property
    def duration(self) -> float:
        """Duration of the motion, s."""
        return self.trajectory.duration


class Experiment(Protocol):
    """Plans a motion within limits and workspace."""

    limits: MotionLimits
    workspace: Workspace

    def plan(self) -> Plan:
        """Plan the motion."""

    def approach_motion(self, measured: ArrayLike, plan: Plan) -> Trajectory:
        """Slow motion from where the arm is, `measured` (n,), to where `plan` starts."""

    def hints(self) -> list[str]:
        """Say what keeps the arm from moving far."""


# What experiments share that keep to limits, workspace and torque.


ACCELERATION_FRACTION = 0.8
"""Part of the limits of acceleration and jerk that a plan uses; the rest is there to stop it."""
MARGIN, NARROW = 0.05, 0.1
"""Distance kept from position limits, rad or m, and the largest part of a joint's range that it takes."""
STEP_OF_RANGE = 0.1
LONGEST_STEP_S = 3600.0
"""A joint that takes longer for a tenth of its range has limits in another unit, or by mistake."""
POSES = 1024
"""Poses looked at (a power of two)."""
MOST_PAIRS = 8


class GuardedExperiment:
    """An arm, what it may do, and safe ways between its poses.

    Args:
        robot: the arm.
        limits: what the joints may do; 80 % of acceleration and jerk is used.
        workspace: where the links may be; None: anywhere.
        position_margin: distance kept from position limits, one value or (n,), rad or m; NaN: 0.05, or a tenth of the
            joint's range where that is less, as of a gripper's fingers.
        speed_fraction: part of the velocity limits used in the motion.
        travel_speed_fraction: part of the velocity limits used on the way from pose to pose.
        torque_fraction: part of the torque limits that the nominal model may use; the rest is left to friction and to
            what the description gets wrong.

    Attributes:
        robot, limits, workspace: as given.
        margin: (n,) distance kept from position limits, rad or m.
        room: limits less the margins and fractions.
        slow: limits on the way from pose to pose.
        space: workspace and torque limits.
        travel: finds safe ways.

    Raises:
        TrajectoryError: a setting makes no sense, or the margin leaves a joint no room.
    """

    def __init__(
        self,
        robot: RobotModel,
        limits: MotionLimits,
        workspace: Workspace | None = None,
        *,
        position_margin: ArrayLike = np.nan,
        speed_fraction: float = 0.5,
        travel_speed_fraction: float = 0.25,
        torque_fraction: float = 0.8,
    ) -> None:
        self.robot = robot
        self.limits = limits
        self.workspace = workspace or Workspace(robot)
        margin = per_joint(position_margin, robot.joint_names, "position_margin")
        usual = np.minimum(MARGIN, NARROW * (limits.upper - limits.lower))
        margin = self.margin = np.where(np.isnan(margin), usual, margin)
        require(
            ("position_margin", position_margin, np.all(margin >= 0), "zero or more"),
            ("speed_fraction", speed_fraction, 0 < speed_fraction <= 1, "above 0 and at most 1"),
            ("travel_speed_fraction", travel_speed_fraction, 0 < travel_speed_fraction <= 1, "above 0 and at most 1"),
            ("torque_fraction", torque_fraction, 0 < torque_fraction <= 1, "above 0 and at most 1"),
        )
        for name, lower, upper in zip(limits.joint_names, limits.lower + margin, limits.upper - margin, strict=True):
            if not lower < upper:
                raise TrajectoryError(f"joint '{name}' has no room left between its limits, less position_margin")
        for i, name in enumerate(limits.joint_names):
            step = STEP_OF_RANGE * (limits.upper - limits.lower) * (np.arange(robot.n_joints) == i)
            seconds = limits.shortest_move(step)
            if seconds > LONGEST_STEP_S:
                raise TrajectoryError(
                    f"joint '{name}' takes {seconds:.3g} s for a tenth of its range, with the velocity limit "
                    f"{limits.velocity[i]:g}, the acceleration limit {limits.acceleration[i]:g} and the jerk limit "
                    f"{limits.jerk[i]:g}; give limits by which it takes at most {LONGEST_STEP_S:g} s"
                )
        self.room = replace(
            limits.scaled(speed_fraction, ACCELERATION_FRACTION, ACCELERATION_FRACTION),
            lower=limits.lower + margin,
            upper=limits.upper - margin,
            torque=torque_fraction * limits.torque,
        )
        self.slow = limits.scaled(travel_speed_fraction, ACCELERATION_FRACTION, ACCELERATION_FRACTION)
        self.space = TorqueRoom(self.workspace, limits, robot, 1.0 - torque_fraction)
        self.travel = Connection(self.slow, self.space)

    def approach_motion(self, measured: ArrayLike, plan: Plan) -> Trajectory:
        """Slow motion from where the arm is, `measured` (n,), to where `plan` starts.

        Raises:
            TrajectoryError: the arm is outside its limits or the workspace, or there is no safe way.
        """
        return self.travel.connect(measured, plan.trajectory.position[0])

    def check(self, trajectory: Trajectory) -> None:
        """The motion keeps to limits, workspace and, where the description has masses, torque.

        Raises:
            TrajectoryError: says where it does not.
        """
        check_limits(trajectory, self.limits)
        self.space.check(trajectory)

    def check_pose(self, pose: NDArray) -> None:
        """The arm may rest at `pose` (n,).

        Raises:
            TrajectoryError: says why not.
        """
        self.check(move(self.limits.joint_names, pose, pose, 1.0))

    def allowed_poses(self, aside: ArrayLike = 0.0) -> NDArray:
        """Poses (P, n) spread over the limits, less the margin, where workspace and torque allow `aside` (n,) around.

        Raises:
            TrajectoryError: there is none; says what is wrong with one.
        """
        poses = self.limits.poses(POSES, self.margin + np.asarray(aside))
        sides = (0,) if not np.any(aside) else (-1, 0, 1)
        allowed = np.all([self.space.allowed(poses + side * np.asarray(aside)) for side in sides], axis=0)
        if not allowed.any():
            try:
                self.space.check(move(self.limits.joint_names, poses[0], poses[0], 1.0))
            except TrajectoryError as error:
                raise TrajectoryError(
                    "; ".join(
                        [
                            f"none of {POSES} poses keeps to workspace and torque limits: in one of them, {error}",
                            *self.hints(),
                        ]
                    )
                ) from error
            raise TrajectoryError(f"none of {POSES} poses has room for the approach around it, or torque to spare")
        return poses[allowed]

    def hints(self) -> list[str]:
        """Say which torque limits and pairs of links keep the arm from moving far, and how there is more room."""
        hints = weight_sentences(self.robot, self.limits)
        close = sorted(self.workspace.close_pairs.items(), key=lambda item: -item[1])[:MOST_PAIRS]
        if close and self.workspace.bodies.radius.any():
            named = ", ".join(f"'{a}' and '{b}' ({100 * share:.0f} %)" for (a, b), share in close)
            pairs = [pair for pair, _ in close]
            hints.append(
                f"too near by the shapes of the URDF in part of all poses: {named}; if the real links never "
                f"touch, allow them {allowing(pairs)}"
            )
        return hints

    def torque_warnings(self) -> list[str]:
        """What is to be said of torques that cannot be checked."""
        return list(self.space.warnings)


def require(*settings: tuple[str, object, object, str]) -> None:
    """Raise for the first setting (name, value, whether it is valid, what it must be) that is not valid.

    Raises:
        TrajectoryError: names it.
    """
    for what, value, valid, expected in settings:
        if not valid:
            raise TrajectoryError(f"{what} is {value!r}; it must be {expected}")


# A motion that is made several times, so that repetitions can be compared and averaged.


SAME = 1e-9
"""Distance below which a motion ends where it starts, rad or m."""


@dataclass(frozen=True, eq=False)
class RepeatedPlan(TrajectoryPlan):
    """A plan, several times.

    Attributes:
        plan: what is repeated.
        trajectory: all repetitions, with the ways back between them.
        starts: when each repetition begins, s.
    """

    plan: Plan
    trajectory: Trajectory
    starts: tuple[float, ...]

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML: that of the plan, whose times are from the start of each repetition in `starts` (s)."""
        return {
            **self.plan.as_dict(),
            "duration": round(self.duration, 4),
            "repeat_duration": round(self.plan.duration, 4),
            "starts": [round(start, 4) for start in self.starts],
        }

    def summary(self) -> str:
        """Lines of text."""
        return f"{self.duration:.1f} s, {len(self.starts)} times the motion of {self.plan.summary()}"


def repeated(plan: Plan, experiment: Experiment, times: int) -> Plan:
    """`plan` so many times; where it does not end as it starts, with the safe way back of `experiment` in between.

    Raises:
        TrajectoryError: fewer than one time, more than a working day, or there is no safe way back.
    """
    if times < 1:
        raise TrajectoryError(f"repeats is {times}; it must be at least 1")
    if times == 1:
        return plan
    once = plan.trajectory
    back: list[Trajectory] = []
    if np.abs(once.position[-1] - once.position[0]).max() > SAME:
        try:
            back = [experiment.approach_motion(once.position[-1], plan)]
        except TrajectoryError as error:
            raise TrajectoryError(f"the motion cannot be repeated: back to its start, {error}") from error
    step = once.duration + sum(part.duration for part in back)
    if times * step > LONGEST:
        raise TrajectoryError(
            f"repeats is {times}: motions of {step:.1f} s each take more than {LONGEST / 3600:g} h; give fewer"
        )
    trajectory = Trajectory.join([once, *[*back, once] * (times - 1)])
    return RepeatedPlan(plan, trajectory, tuple(k * step for k in range(times)))
