"""Joint after joint moves by sines or steps, while the others hold: for friction, rotors and drives one at a time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import DOWN, UP, Dwell, GuardedExperiment, TrajectoryPlan, require
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.connection import Connection
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.sinusoids import sinusoid, widest_swing
from dynid_ros.trajectories.trajectory import PEAK_VELOCITY, Trajectory
from dynid_ros.trajectories.workspace import Workspace

# A planned motion of one joint after the other.


@dataclass(frozen=True)
class JointMove:
    """One joint moving while the others hold.

    Attributes:
        joint: its name.
        motion: "sinusoid", "steps" or "reversals".
        frequency: of the sine, Hz; None for the others.
        centre: middle of its range, rad or m.
        amplitude: to either side of it, rad or m.
        start: time in the motion, s.
        end: time in the motion, s.
    """

    joint: str
    motion: str
    frequency: float | None
    centre: float
    amplitude: float
    start: float
    end: float


@dataclass(frozen=True)
class JointByJointPlan(TrajectoryPlan):
    """What `JointByJoint.plan` returns.

    Attributes:
        trajectory: the whole motion; how the arm gets to its start is not part of it.
        moves: in order of time.
        dwells: rests of the steps, each with the direction that its joint came from.
        units: "rad" or "m" for each joint.
        skipped: reason for each joint that does not move, or not at every frequency.
        warnings: what is not known.
    """

    trajectory: Trajectory
    moves: tuple[JointMove, ...]
    dwells: tuple[Dwell, ...]
    units: tuple[str, ...]
    skipped: dict[str, str]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML: times in s from the start of the motion, positions in rad or m, frequencies in Hz."""
        return {
            "format": "dynid-joint-by-joint/1",
            "duration": round(self.duration, 4),
            "moves": [
                {
                    "joint": m.joint,
                    "motion": m.motion,
                    "frequency": m.frequency if m.frequency is None else float(m.frequency),
                    "centre": round(m.centre, 6),
                    "amplitude": round(m.amplitude, 6),
                    "start": round(m.start, 4),
                    "end": round(m.end, 4),
                }
                for m in self.moves
            ],
            "dwells": [dwell.as_dict() for dwell in self.dwells],
            "skipped": dict(self.skipped),
            "warnings": list(self.warnings),
        }

    def summary(self) -> str:
        """Lines of text: duration, range of each move, joints left out and why, warnings."""
        lines = [f"{self.duration:.1f} s, {len(self.moves)} moves, {len(self.dwells)} dwells"]
        units = dict(zip(self.trajectory.joint_names, self.units, strict=True))
        for m in self.moves:
            ends = np.array([m.centre - m.amplitude, m.centre + m.amplitude])
            low, high = (f"{np.rad2deg(end):.0f}°" if units[m.joint] == "rad" else f"{end:.3f} m" for end in ends)
            how = _HOW.get(m.motion) or f"at {m.frequency:g} Hz"
            lines.append(f"{m.joint}: {low} to {high} {how}")
        lines += [f"{name}: left out, {reason}" for name, reason in self.skipped.items()]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


SINUSOID, STEPS, REVERSALS = "sinusoid", "steps", "reversals"
_HOW = {STEPS: "in steps", REVERSALS: "there and back, slowly to fast"}
SPEEDS = (0.05, 0.25, 1.0)
"""Parts of the speed that is allowed, at which a joint goes there and back."""
SLOW = 3.0
"""Longest move of these but for the fastest, s: slow ones go a shorter way."""
POINTS = 129
"""Positions of a joint that are looked at in the workspace."""
SHRINK = 0.8
SHRINKS = 12
"""How often a motion that leaves workspace or torque limits is made smaller, down to a twelfth."""
LEAST = 1e-3
"""Smallest swing that is planned, rad or m."""


class JointByJoint(GuardedExperiment):
    """Plans a motion in which joint after joint moves alone, as far as limits and workspace allow.

    A joint swings as a sine at each frequency in turn, as widely as its limits allow; or goes up and down in steps with
    a rest at each; or goes there and back at several speeds, with a rest wherever it reverses. The others hold at
    `pose`; each joint moves in the middle of what is free for it there. What moves alone shows its own friction, drive
    and inertia with a gravity torque that depends on one angle.

    Args:
        robot: the arm.
        limits: what the joints may do; 80 % of the acceleration is used.
        workspace: where the links may be; None: anywhere.
        motion: "sinusoid", "steps" or "reversals".
        joints: names, in order; None: all, from tip to base.
        pose: (n,) where the others hold, rad or m; None: the allowed pose nearest to the middle of the ranges.
        frequencies: of the sines, Hz; each joint moves at each of them.
        cycles: of a sine at full amplitude.
        steps: rests in each direction.
        dwell: rest at each step or reversal, s.
        amplitude: largest part of what is free for a joint that is used.
        guards: `position_margin`, `speed_fraction`, `travel_speed_fraction`, `torque_fraction` of `GuardedExperiment`.

    Raises:
        TrajectoryError: a setting makes no sense.
    """

    def __init__(
        self,
        robot: RobotModel,
        limits: MotionLimits,
        workspace: Workspace | None = None,
        *,
        motion: str = SINUSOID,
        joints: tuple[str, ...] | None = None,
        pose: ArrayLike | None = None,
        frequencies: ArrayLike = (0.1, 0.4),
        cycles: int = 3,
        steps: int = 7,
        dwell: float = 0.5,
        amplitude: float = 0.9,
        **guards: float,
    ) -> None:
        super().__init__(robot, limits, workspace, **guards)
        self.motion = motion
        self.joints = tuple(reversed(robot.joint_names)) if joints is None else tuple(joints)
        self.pose = None if pose is None else np.asarray(pose, dtype=float)
        self.frequencies = np.atleast_1d(np.asarray(frequencies, dtype=float))
        self.cycles, self.steps, self.dwell, self.amplitude = cycles, steps, dwell, amplitude
        unknown = [name for name in self.joints if name not in robot.joint_names]
        known = ", ".join(robot.joint_names)
        right = self.pose is None or (self.pose.shape == (robot.n_joints,) and np.isfinite(self.pose).all())
        positive = np.isfinite(self.frequencies).all() and (self.frequencies > 0).all() and self.frequencies.size
        require(
            ("motion", motion, motion in (SINUSOID, *_HOW), f"one of {', '.join((SINUSOID, *_HOW))}"),
            ("joints", joints, self.joints and not unknown, f"among {known}"),
            ("pose", pose, right, f"a finite position for each of {known}"),
            ("frequencies", frequencies, positive, "positive"),
            ("cycles", cycles, cycles >= 1, "at least 1"),
            ("steps", steps, steps >= 2, "at least 2"),
            ("dwell", dwell, dwell > 0, "positive"),
            ("amplitude", amplitude, 0 < amplitude <= 1, "above 0 and at most 1"),
        )
        self._stepping = Connection(self.room, self.space)

    def plan(self) -> JointByJointPlan:
        """Plan the moves of all joints and the ways between them.

        Raises:
            TrajectoryError: the arm may not hold at the pose, or no joint can move; says why for each.
        """
        hold = self._hold()
        motion: list[Trajectory] = []
        moves: list[JointMove] = []
        dwells: list[Dwell] = []
        skipped: dict[str, str] = {}
        for joint in self.joints:
            for frequency in self.frequencies if self.motion == SINUSOID else (0.0,):
                try:
                    part, centre, amplitude, rests = self._move(joint, hold, float(frequency))
                    travel = [self.travel.connect(motion[-1].position[-1], part.position[0])] if motion else []
                except TrajectoryError as error:
                    skipped.setdefault(joint, str(error))
                    continue
                start = sum(before.duration for before in [*motion, *travel])
                end = start + part.duration
                moves.append(JointMove(joint, self.motion, frequency or None, centre, amplitude, start, end))
                dwells += [Dwell(joint, rest.direction, start + rest.start, start + rest.end) for rest in rests]
                motion += [*travel, part]
        if not motion:
            raise TrajectoryError(
                "no joint can move: " + "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
            )
        trajectory = Trajectory.join(motion)
        self.check(trajectory)
        return JointByJointPlan(
            trajectory, tuple(moves), tuple(dwells), self.limits.units, skipped, tuple(self.torque_warnings())
        )

    def _hold(self) -> NDArray:
        """The pose (n,) given, or the allowed one nearest to the middle of the ranges, that the arm may rest at."""
        if self.pose is not None:
            try:
                self.check_pose(self.pose)
            except TrajectoryError as error:
                raise TrajectoryError(f"the arm may not hold at the pose given: {error}") from error
            return self.pose
        lower, upper = self.room.lower, self.room.upper
        poses = np.concatenate([[(lower + upper) / 2], self.allowed_poses()])
        distance = np.abs((poses - poses[0]) / (upper - lower)).max(axis=1)
        reason: TrajectoryError | None = None
        for pose in poses[np.argsort(distance, kind="stable")]:
            try:
                self.check_pose(pose)
            except TrajectoryError as error:
                reason = error
                continue
            return pose
        raise TrajectoryError(f"there is no pose to hold at: {reason}")

    def _move(self, joint: str, hold: NDArray, frequency: float) -> tuple[Trajectory, float, float, list[Dwell]]:
        """The widest motion of `joint` that is possible, its centre and amplitude, and its dwells."""
        i = self.limits.joint_names.index(joint)
        low, high = self._free(i, hold)
        pose = hold.copy()
        pose[i] = centre = (low + high) / 2
        half = self.amplitude * (high - low) / 2
        if frequency:
            half = min(half, widest_swing(self.room, joint, centre, frequency, self.cycles))
        reason: TrajectoryError | None = None
        for _ in range(SHRINKS):
            if half < LEAST:
                break
            try:
                if frequency:
                    motion = sinusoid(self.room, joint, pose, frequency, amplitude=half, cycles=self.cycles)
                    rests: list[Dwell] = []
                else:
                    make = self._stepped if self.motion == STEPS else self._reversing
                    motion, rests = make(i, pose, half)
                self.check(motion)
            except TrajectoryError as error:
                reason, half = error, SHRINK * half
                continue
            return motion, float(centre), float(half), rests
        raise TrajectoryError(f"it has no room to move in: {reason or 'its free range is too small'}")

    def _free(self, joint: int, hold: NDArray) -> tuple[float, float]:
        """Ends of the range that is free for `joint` about where it holds."""
        values = np.linspace(self.room.lower[joint], self.room.upper[joint], POINTS)
        poses = np.tile(hold, (POINTS, 1))
        poses[:, joint] = values
        blocked = np.flatnonzero(~self.workspace.allowed(poses))
        at = int(np.argmin(np.abs(values - hold[joint])))
        below, above = blocked[blocked <= at], blocked[blocked >= at]
        first = below[-1] + 1 if len(below) else 0
        last = above[0] - 1 if len(above) else POINTS - 1
        if last <= first:
            raise TrajectoryError("it cannot move from where it holds without leaving the workspace")
        return float(values[first]), float(values[last])

    def _stepped(self, joint: int, pose: NDArray, half: float) -> tuple[Trajectory, list[Dwell]]:
        """Steps up and down; each rest is reached in the direction that it is named after, the first one too."""
        levels = pose[joint] + half * np.linspace(-1.0, 1.0, self.steps + 1)
        values = np.concatenate([levels, levels[-2::-1]])
        poses = np.tile(pose, (len(values), 1))
        poses[:, joint] = values
        motion, rests = self._stepping.visit(poses, self.dwell)
        name = self.limits.joint_names[joint]
        directions = np.sign(np.diff(values)).astype(int)
        return motion, [
            Dwell(name, UP if direction > 0 else DOWN, float(start), float(end))
            for direction, (start, end) in zip(directions, rests[1:], strict=True)
        ]

    def _reversing(self, joint: int, pose: NDArray, half: float) -> tuple[Trajectory, list[Dwell]]:
        """There and back at each speed, the fastest over the whole range, with a rest at each end."""
        parts: list[Trajectory] = []
        rests: list[Dwell] = []
        name = self.limits.joint_names[joint]
        for share in SPEEDS:
            way = half
            if share < 1.0:
                way = min(half, SLOW * share * self.room.velocity[joint] / PEAK_VELOCITY / 2)
            poses = np.tile(pose, (3, 1))
            poses[:, joint] += [-way, way, -way]
            if parts:
                parts.append(self._stepping.connect(parts[-1].position[-1], poses[0]))
            start = sum(part.duration for part in parts)
            part, at = Connection(self.room.scaled(share, 1.0, 1.0), self.space).visit(poses, self.dwell)
            parts.append(part)
            rests += [
                Dwell(name, direction, start + float(first), start + float(last))
                for direction, (first, last) in zip((UP, DOWN), at[1:], strict=True)
            ]
        return Trajectory.join(parts), rests
