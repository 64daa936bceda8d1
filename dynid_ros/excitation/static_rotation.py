"""The static single-joint rotation experiment for gravity parameters (Ma & Hollerbach 1996, section 4)."""

from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import DOWN, UP, Dwell, Experiment, Plan, require
from dynid_ros.model import GravityModel
from dynid_ros.signals.spectra import longest_run
from dynid_ros.trajectories.limits import MotionLimits, per_joint
from dynid_ros.trajectories.trajectory import Trajectory, minimum_jerk, move

MAX_TRIED_ROTATIONS = 16
"""Rotations of a joint whose whole motion is tried, best first."""
NARROW_RANGE_RAD = np.deg2rad(30.0)
LOW_TILT_RAD = np.deg2rad(30.0)


@dataclass(frozen=True)
class Rotation:
    """One joint turning through a range while the others hold.

    Attributes:
        joint: index of the joint that turns.
        hold: (n,) pose; the entry of the joint itself is the middle of its range.
        lower: start of the range, rad.
        upper: end of the range, rad.
        tilt: angle between the joint's axis and the vertical, 0 to π/2 rad.
        std: standard deviation of the joint's gravity moment, relative to one torque reading at a horizontal axis.
    """

    joint: int
    hold: NDArray
    lower: float
    upper: float
    tilt: float
    std: float

    def poses(self, steps: int) -> NDArray:
        """Return the poses (steps, n) of the dwells on the way up."""
        poses = np.tile(self.hold, (steps, 1))
        poses[:, self.joint] = np.linspace(self.lower, self.upper, steps)
        return poses

    def as_dict(self, names: tuple[str, ...]) -> dict[str, object]:
        """Return plain data for YAML: positions in rad or m, tilt in degrees."""
        held = [(name, value) for i, (name, value) in enumerate(zip(names, self.hold, strict=True)) if i != self.joint]
        return {
            "joint": names[self.joint],
            "lower": round(self.lower, 6),
            "upper": round(self.upper, 6),
            "tilt_degrees": round(float(np.rad2deg(self.tilt)), 2),
            "hold": {name: round(float(value), 6) for name, value in held},
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class StaticRotation(Experiment):
    """Plans a motion in which joint after joint, tip to base, turns in steps, up, then down, while the others hold.

    The holds make the axis of the turning joint as horizontal as possible, to within a few per cent of the smallest
    standard deviation. They differ between rotations, so that the torques of all joints in all poses determine a
    global fit well. Before each dwell every joint moves upwards on the way up and downwards on the way down. The sign
    of Coulomb friction is therefore known for all joints in all poses, and friction cancels between the two
    directions. A joint that turns about the vertical at the base has no gravity torque and stays in the middle of its
    range.

    Attributes:
        steps: dwells per direction.
        dwell: rest at each step, s.
        approach: distance of each joint's approach to its hold, one value or (n,), rad or m.
        sweep: largest range of a rotation, rad.
        poses_per_joint: rotations of each joint, with different holds.
    """

    steps: int = 7
    dwell: float = 0.5
    approach: ArrayLike = 0.05
    sweep: float = 2 * np.pi
    poses_per_joint: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        approach = per_joint(self.approach, self.robot.joint_names, "approach")
        require(
            ("steps", self.steps, self.steps >= 3, "at least 3: sine, cosine and offset are three unknowns"),
            ("dwell", self.dwell, self.dwell > 0, "positive"),
            ("approach", self.approach, np.all(approach > 0), "positive: it gives friction its sign"),
            ("sweep", self.sweep, self.sweep > 0, "positive"),
            ("poses_per_joint", self.poses_per_joint, self.poses_per_joint >= 1, "at least 1"),
        )
        object.__setattr__(self, "approach", approach)

    def plan(self) -> Plan:
        """Choose the rotations and join them to one motion within limits and workspace.

        Raises:
            TrajectoryError: no joint can be rotated; names the reason for each.
        """
        search = RotationSearch(self, self.steps, np.asarray(self.approach), self.sweep)
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
                rotation, parts, rests = self._plan_rotation(search, joint, motion[-1].position[-1] if motion else None)
            except TrajectoryError as error:
                if any(rotation.joint == joint for rotation in rotations):
                    warnings.append(f"'{name}' is rotated less than {self.poses_per_joint} times: {error}")
                else:
                    skipped[name] = str(error)
                continue
            start = sum(part.duration for part in [*motion, *parts[:-1]])
            dwells += [rest.shifted(start) for rest in rests]
            search.add(rotation)
            rotations.append(rotation)
            motion += parts
        if not motion:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
            raise TrajectoryError(f"no joint can be rotated: {reasons}")
        warnings += [*self._warnings(rotations), *self.workspace_and_torque.warnings]
        trajectory = Trajectory.join(motion)
        names = self.robot.joint_names
        lines = [f"{trajectory.duration:.1f} s, {len(dwells)} dwells"]
        for rotation in rotations:
            span, tilt = np.rad2deg([rotation.upper - rotation.lower, rotation.tilt])
            lines.append(f"{names[rotation.joint]}: {span:.0f}° in steps, its axis {tilt:.0f}° from the vertical")
        lines += [f"{name}: not rotated, {reason}" for name, reason in skipped.items()]
        return Plan(
            trajectory=trajectory,
            format="dynid-static-rotation/1",
            facts={"rotations": [rotation.as_dict(names) for rotation in rotations]},
            lines=tuple(lines),
            dwells=tuple(dwells),
            skipped=skipped,
            warnings=tuple(warnings),
        )

    def _plan_rotation(
        self, search: "RotationSearch", joint: int, start: NDArray | None
    ) -> tuple[Rotation, list[Trajectory], list[Dwell]]:
        """Return the best rotation of `joint` that is safe, the way to it from `start` and its motion, and its dwells.

        Raises:
            TrajectoryError: no rotation of the joint is safe.
        """
        reason = None
        for rotation in islice(search.rotations(joint), MAX_TRIED_ROTATIONS):
            stepped, rests = stepped_rotation(
                rotation, self.design_limits, np.asarray(self.approach), self.steps, self.dwell
            )
            try:
                self.check(stepped)
                transit = [] if start is None else [self.transit_planner.connect(start, stepped.position[0])]
            except TrajectoryError as error:
                reason = reason or error
                continue
            return rotation, [*transit, stepped], rests
        raise TrajectoryError(f"no rotation keeps to limits and workspace: {reason}")

    def _warnings(self, rotations: list[Rotation]) -> list[str]:
        warnings = []
        for rotation in rotations:
            name = self.robot.joint_names[rotation.joint]
            span = rotation.upper - rotation.lower
            if span < NARROW_RANGE_RAD:
                warnings.append(f"'{name}' turns through {np.rad2deg(span):.0f}° only: its fit will be ill conditioned")
            if rotation.tilt < LOW_TILT_RAD:
                warnings.append(
                    f"the axis of '{name}' comes within {np.rad2deg(rotation.tilt):.0f}° of the vertical: its gravity "
                    "torque is small"
                )
        return warnings


def stepped_rotation(
    rotation: Rotation, limits: MotionLimits, approach: NDArray, steps: int, dwell: float
) -> tuple[Trajectory, list[Dwell]]:
    """Plan the motion from below the first pose up through all poses and down again.

    Between two poses the holding joints move away and come back, so that all joints arrive from below on the way up,
    and from above on the way down.

    Args:
        rotation: the joint, its range and the hold of the others.
        limits: of the motion.
        approach: (n,) displacement of the holding joints, rad or m.
        steps: number of poses.
        dwell: rest at each pose, s.

    Returns:
        The motion and its 2 · `steps` dwells.
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
            dwells.append(Dwell(time, time + dwell, joint=names[rotation.joint], direction=direction))
            if k + 1 < steps:
                parts.append(_transit(limits, pose, path[k + 1], -direction * aside, step))
            elif direction == UP:
                parts += [move(names, pose, pose + approach, nudge), move(names, pose + approach, pose, nudge)]
            time = sum(part.duration for part in parts)
    return Trajectory.join(parts), dwells


def _transit(limits: MotionLimits, start: NDArray, goal: NDArray, aside: NDArray, duration: float) -> Trajectory:
    """Plan a minimum-jerk move; joints move `aside` (n,) in its first half and come back in the second."""
    time = np.array([0.0, 0.5, 1.0]) * duration
    position, velocity, acceleration = minimum_jerk(start, goal, duration, time)
    position[1] += aside
    return Trajectory(limits.joint_names, time, position, velocity, acceleration)


# The choice of the hold poses.


N_HOLD_POSES = 256
"""Hold poses that are compared per joint, a power of two."""
N_TESTED_ANGLES = 33
"""Angles of the turning joint that are tested against the workspace, for each hold pose."""
SHORTLIST_FACTOR = 1.1
"""Rotations whose own standard deviation is within this factor of the best compete for the global fit."""
MAX_SHORTLIST = 64
MIN_TILT_SINE = 0.02
"""Sine of the tilt below which an axis counts as parallel to gravity."""
PRIOR_INFORMATION = 1e-6
"""Information about each parameter before the first rotation, which keeps determinants finite."""


class RotationSearch:
    """Finds rotations that determine a joint's gravity moment well, and that differ from those chosen before.

    Args:
        experiment: arm, limits, workspace and margin.
        steps: dwells per direction.
        approach: (n,) distance of each joint's approach to its hold, rad or m; kept free on both sides.
        sweep: largest range, rad.
    """

    def __init__(self, experiment: Experiment, steps: int, approach: NDArray, sweep: float) -> None:
        self._robot = experiment.robot
        self._gravity = GravityModel(experiment.robot)
        self._limits = experiment.limits
        self._workspace = experiment.workspace
        self._steps = steps
        self._approach = approach
        self._inset = approach + experiment.margin
        # Equal steps over a full turn: the last must not fall on the first.
        self._sweep = min(sweep, 2 * np.pi * (steps - 1) / steps)
        self._holds = self._limits.poses(N_HOLD_POSES, self._inset)
        # A joint that turns about the vertical at the base changes no torque, so it need not move.
        still = self._gravity.unobservable_axes() & ~self._robot.chain.prismatic
        self._holds[:, still] = ((self._limits.lower + self._limits.upper) / 2)[still]
        self._information = PRIOR_INFORMATION * np.eye(len(self._gravity.names) + self._robot.n_joints)

    def rotations(self, joint: int) -> list[Rotation]:
        """Return rotations of `joint`, the one that adds most to the global fit first.

        Raises:
            TrajectoryError: no rotation is possible or large enough; describes the reason.
        """
        possible = self._possible_rotations(joint)
        best = min(rotation.std for rotation in possible)
        shortlist = [rotation for rotation in possible if rotation.std <= SHORTLIST_FACTOR * best]
        shortlist = sorted(shortlist, key=lambda rotation: rotation.std)[:MAX_SHORTLIST]
        gained = np.linalg.slogdet(self._information + self._rotation_information(shortlist)).logabsdet
        return [shortlist[k] for k in np.argsort(-gained, kind="stable")]

    def add(self, rotation: Rotation) -> None:
        """Add the torques of `rotation` to the global fit."""
        self._information += self._rotation_information([rotation])[0]

    def _rotation_information(self, rotations: list[Rotation]) -> NDArray:
        """Compute the information (R, k + n, k + n) of each rotation on gravity moments and torque offsets."""
        n = self._robot.n_joints
        poses = np.concatenate([rotation.poses(self._steps) for rotation in rotations])
        offsets = np.broadcast_to(np.eye(n), (len(poses), n, n))
        rows = np.concatenate([self._gravity.regressor(poses), offsets], axis=2)
        rows = rows.reshape(len(rotations), self._steps * n, -1)
        return rows.transpose(0, 2, 1) @ rows

    def _possible_rotations(self, joint: int) -> list[Rotation]:
        if self._limits.units[joint] == "m":
            raise TrajectoryError(
                "it slides: its gravity force is the same all along its travel, and shows while other joints turn"
            )
        lower = self._limits.lower[joint] + self._inset[joint]
        upper = self._limits.upper[joint] - self._inset[joint]
        half_range = min(upper - lower, 2 * np.pi) / 2
        angles = (lower + upper) / 2 + np.linspace(-half_range, half_range, N_TESTED_ANGLES)
        axes = self._robot.joint_axes(self._holds)[:, joint]
        tilt_sines = np.linalg.norm(np.cross(axes, self._workspace.up), axis=1)
        if np.max(tilt_sines) < MIN_TILT_SINE:
            raise TrajectoryError("axis parallel to gravity: its gravity torque is zero in every pose")
        usable = tilt_sines >= MIN_TILT_SINE
        holds = self._holds[usable]
        rotations = []
        for hold, sine, allowed in zip(holds, tilt_sines[usable], self._allowed(joint, holds, angles), strict=True):
            first, length = longest_run(allowed)
            if length > 1:
                last = first + length - 1
                hold[joint] = middle = float(angles[first] + angles[last]) / 2
                reach = min(float(angles[last] - angles[first]), self._sweep) / 2
                tilt = float(np.arcsin(min(sine, 1.0)))
                std = _moment_std(2 * reach, self._steps) / float(sine)
                rotations.append(Rotation(joint, hold, middle - reach, middle + reach, tilt, std))
        if not rotations:
            raise TrajectoryError("it cannot turn anywhere without leaving the workspace (floor_height, clearance)")
        return rotations

    def _allowed(self, joint: int, holds: NDArray, angles: NDArray) -> NDArray:
        """Return a mask (H, A) of the angles that the workspace allows, with the approach from both sides."""
        poses = np.repeat(holds[:, np.newaxis], len(angles), axis=1)
        poses[:, :, joint] = angles
        n = poses.shape[-1]
        sides = [self._workspace.allowed((poses + side * self._approach).reshape(-1, n)) for side in (-1, 0, 1)]
        return np.all(sides, axis=0).reshape(len(holds), len(angles))


def _moment_std(span: float, steps: int) -> float:
    """Return the standard deviation of (n_x, n_y) from `steps` torques of unit noise and unknown offset.

    Args:
        span: range of the turning joint, rad.
        steps: number of torques, at equal distances over the range.
    """
    angles = np.linspace(0.0, span, steps)
    columns = np.column_stack([np.sin(angles), np.cos(angles), np.ones(steps)])
    return float(np.sqrt(np.trace(np.linalg.pinv(columns.T @ columns)[:2, :2])))
