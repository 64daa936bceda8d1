"""The static single-joint rotation experiment for gravity parameters (Ma & Hollerbach 1996, section 4)."""

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import DOWN, UP, Dwell, GuardedExperiment, TrajectoryPlan, require
from dynid_ros.excitation.rotation_search import Rotation, RotationSearch
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.limits import MotionLimits, per_joint
from dynid_ros.trajectories.trajectory import Trajectory, minimum_jerk, move
from dynid_ros.trajectories.workspace import Workspace

# The motion of one static rotation: steps up, then down, each followed by a rest.


def stepped_rotation(
    rotation: Rotation, limits: MotionLimits, approach: NDArray, steps: int, dwell: float
) -> tuple[Trajectory, list[Dwell]]:
    """Motion from below the first pose up through all `steps` poses and down again, and its 2 · `steps` dwells.

    On the way from pose to pose the holding joints move away by `approach` (n,) and come back, so that all joints
    arrive from below on the way up, and from above on the way down.
    """
    names = limits.joint_names
    poses = rotation.poses(steps)
    aside = np.where(np.arange(len(names)) == rotation.joint, 0.0, approach)
    nudge = limits.shortest_move(approach)
    step = max(2 * nudge, limits.shortest_move(poses[1] - poses[0]))
    parts = [move(names, poses[0] - approach, poses[0], nudge)]
    dwells = []
    time = parts[0].duration
    for direction, path in ((UP, poses), (DOWN, poses[::-1])):
        for k, pose in enumerate(path):
            parts.append(move(names, pose, pose, dwell))
            dwells.append(Dwell(names[rotation.joint], direction, time, time + dwell))
            if k + 1 < steps:
                parts.append(_transit(limits, pose, path[k + 1], -direction * aside, step))
            elif direction == UP:
                parts += [move(names, pose, pose + approach, nudge), move(names, pose + approach, pose, nudge)]
            time = sum(part.duration for part in parts)
    return Trajectory.join(parts), dwells


def _transit(limits: MotionLimits, start: NDArray, goal: NDArray, aside: NDArray, duration: float) -> Trajectory:
    """Minimum-jerk move; the joints that hold move `aside` (n,) in its first half and come back in the second."""
    time = np.array([0.0, 0.5, 1.0]) * duration
    position, velocity, acceleration = minimum_jerk(start, goal, duration, time)
    position[1] += aside
    return Trajectory(limits.joint_names, time, position, velocity, acceleration)


# A planned static-rotation experiment: the motion, its dwells and what it can show.


@dataclass(frozen=True)
class StaticRotationPlan(TrajectoryPlan):
    """What `StaticRotation.plan` returns.

    Attributes:
        trajectory: the whole motion, from the first rotation's first pose; how the arm gets there is not part of it.
        dwells: in order of time.
        rotations: in order of time.
        skipped: reason for each joint that is not rotated.
        warnings: what will weaken the identification.
    """

    trajectory: Trajectory
    dwells: tuple[Dwell, ...]
    rotations: tuple[Rotation, ...]
    skipped: dict[str, str]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML: times in s from the start of the motion, positions in rad or m, tilts in degrees."""
        names = self.trajectory.joint_names
        return {
            "format": "dynid-static-rotation/1",
            "duration": round(self.duration, 4),
            "rotations": [
                {
                    "joint": names[rotation.joint],
                    "lower": round(rotation.lower, 6),
                    "upper": round(rotation.upper, 6),
                    "tilt_degrees": round(float(np.rad2deg(rotation.tilt)), 2),
                    "hold": {
                        name: round(float(value), 6)
                        for i, (name, value) in enumerate(zip(names, rotation.hold, strict=True))
                        if i != rotation.joint
                    },
                }
                for rotation in self.rotations
            ],
            "skipped": dict(self.skipped),
            "warnings": list(self.warnings),
            "dwells": [dwell.as_dict() for dwell in self.dwells],
        }

    def summary(self) -> str:
        """Lines of text: duration, range and tilt of each rotation, joints left out and why, warnings."""
        names = self.trajectory.joint_names
        lines = [f"{self.duration:.1f} s, {len(self.dwells)} dwells"]
        for rotation in self.rotations:
            span, tilt = np.rad2deg([rotation.upper - rotation.lower, rotation.tilt])
            lines.append(f"{names[rotation.joint]}: {span:.0f}° in steps, its axis {tilt:.0f}° from the vertical")
        lines += [f"{name}: not rotated, {reason}" for name, reason in self.skipped.items()]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


TRIES = 16
"""Holds of a joint whose whole motion is tried, best first."""
NARROW_RANGE = np.deg2rad(30.0)
LOW_TILT = np.deg2rad(30.0)


class StaticRotation(GuardedExperiment):
    """Plans a motion in which joint after joint, tip to base, turns in steps, up, then down, while the others hold.

    The holds make the axis of the turning joint as horizontal as it can be, to within a few per cent of the best
    standard deviation, and differ between rotations so that the torques of all joints in all poses make a strong global
    fit. Before each dwell every joint moves upwards on the way up and downwards on the way down: so the sign of Coulomb
    friction is known for all joints in all poses, and friction cancels between the two directions. What turns about the
    vertical at the base has no gravity torque and stays in the middle of its range.

    Args:
        robot: the arm.
        limits: what the joints may do.
        workspace: where the links may be; None: anywhere.
        steps: dwells per direction.
        dwell: rest at each step, s.
        approach: distance from which a joint comes to its hold, one value or (n,), rad or m.
        sweep: largest range of a rotation, rad.
        poses_per_joint: rotations of each joint, with different holds.
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
        steps: int = 7,
        dwell: float = 0.5,
        approach: ArrayLike = 0.05,
        sweep: float = 2 * np.pi,
        poses_per_joint: int = 1,
        **guards: Any,
    ) -> None:
        super().__init__(robot, limits, workspace, **guards)
        self.steps = steps
        self.dwell = dwell
        self.approach = per_joint(approach, robot.joint_names, "approach")
        self.sweep = sweep
        self.poses_per_joint = poses_per_joint
        require(
            ("steps", steps, steps >= 3, "at least 3: sine, cosine and offset are three unknowns"),
            ("dwell", dwell, dwell > 0, "positive"),
            ("approach", approach, np.all(self.approach > 0), "positive: it gives friction its sign"),
            ("sweep", sweep, sweep > 0, "positive"),
            ("poses_per_joint", poses_per_joint, poses_per_joint >= 1, "at least 1"),
        )

    def plan(self) -> StaticRotationPlan:
        """Choose the rotations and join them to one motion within limits and workspace.

        Raises:
            TrajectoryError: no joint can be rotated; says why for each.
        """
        search = RotationSearch(
            self.robot,
            self.limits,
            self.workspace,
            steps=self.steps,
            approach=self.approach,
            margin=self.margin,
            sweep=self.sweep,
        )
        motion: list[Trajectory] = []
        dwells: list[Dwell] = []
        rotations: list[Rotation] = []
        skipped: dict[str, str] = {}
        warnings: list[str] = []
        for joint in [*reversed(range(self.robot.n_joints))] * self.poses_per_joint:
            name = self.robot.joint_names[joint]
            if name in skipped:
                continue
            try:
                end = motion[-1].position[-1] if motion else None
                rotation, parts, rests = self._rotation(search, joint, end)
            except TrajectoryError as error:
                if any(rotation.joint == joint for rotation in rotations):
                    warnings.append(f"'{name}' is rotated less than {self.poses_per_joint} times: {error}")
                else:
                    skipped[name] = str(error)
                continue
            start = sum(part.duration for part in [*motion, *parts[:-1]])
            dwells += [Dwell(name, rest.direction, start + rest.start, start + rest.end) for rest in rests]
            search.choose(rotation)
            rotations.append(rotation)
            motion += parts
        if not motion:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
            raise TrajectoryError(f"no joint can be rotated: {reasons}")
        warnings += [*self._warnings(rotations), *self.torque_warnings()]
        return StaticRotationPlan(Trajectory.join(motion), tuple(dwells), tuple(rotations), skipped, tuple(warnings))

    def _rotation(
        self, search: RotationSearch, joint: int, start: NDArray | None
    ) -> tuple[Rotation, list[Trajectory], list[Dwell]]:
        """The best rotation of `joint` whose motion, and the way to it from `start`, is possible."""
        reason = None
        for rotation in islice(search.rotations(joint), TRIES):
            stepped, rests = stepped_rotation(rotation, self.room, self.approach, self.steps, self.dwell)
            try:
                self.check(stepped)
                travel = [] if start is None else [self.travel.connect(start, stepped.position[0])]
            except TrajectoryError as error:
                reason = reason or error
                continue
            return rotation, [*travel, stepped], rests
        raise TrajectoryError(f"no rotation keeps to limits and workspace: {reason}")

    def _warnings(self, rotations: list[Rotation]) -> list[str]:
        warnings = []
        for rotation in rotations:
            name = self.robot.joint_names[rotation.joint]
            span = rotation.upper - rotation.lower
            if span < NARROW_RANGE:
                warnings.append(f"'{name}' turns through {np.rad2deg(span):.0f}° only: its fit will be ill conditioned")
            if rotation.tilt < LOW_TILT:
                warnings.append(
                    f"the axis of '{name}' comes within {np.rad2deg(rotation.tilt):.0f}° of the vertical: its gravity "
                    "torque is small"
                )
        return warnings
