"""The static single-joint rotation experiment for gravity parameters (Ma & Hollerbach 1996, section 4).

`StaticRotation` plans the motion. `RotationSearch` chooses the rotations: joint, range, and hold of the other joints.
"""

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
"""Largest number of rotations of a joint, best first, whose whole motion is checked; if none is safe, it is skipped."""
NARROW_RANGE_RAD = np.deg2rad(30.0)
"""Range of a rotation below which the plan warns of an ill-conditioned fit."""
LOW_TILT_RAD = np.deg2rad(30.0)
"""Tilt below which the plan warns of a small gravity torque."""
N_HOLD_POSES = 256
"""Number of hold poses that are compared per joint; a power of two, because they are a Sobol sequence."""
N_TESTED_ANGLES = 33
"""Angles of the turning joint that are tested against the workspace, for each hold pose."""
SHORTLIST_FACTOR = 1.1
"""Rotations whose `std` is within this factor of the smallest are ranked by what they add to the global fit."""
MAX_SHORTLIST = 64
"""Largest number of rotations that are ranked; those with the smallest `std`."""
MIN_TILT_SINE = 0.02
"""Sine of the tilt below which an axis counts as parallel to gravity."""
PRIOR_INFORMATION = 1e-6
"""Information about each parameter before the first rotation; without it, determinants would be zero."""


@dataclass(frozen=True)
class Rotation:
    """Motion of one joint through a range while the others hold their positions.

    Attributes:
        joint: index of the joint that turns.
        hold: pose (n,) of the other joints, rad or m; the entry of the turning joint is the middle of its range.
        lower: lower end of the range, rad.
        upper: upper end of the range, rad.
        tilt: angle between the joint's axis and the vertical, 0 to π/2 rad.
        std: standard deviation of the joint's two gravity moments (root of the summed variances), relative to that of
            one torque reading.
    """

    joint: int
    hold: NDArray
    lower: float
    upper: float
    tilt: float
    std: float

    def poses(self, steps: int) -> NDArray:
        """Return the poses (steps, n) of the dwells, in order from `lower` to `upper`."""
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
    """Experiment that turns one joint at a time, from tip to base, in steps up and down while the others hold.

    The arm rests at each step (a dwell), where the torques of all joints are read. One least-squares fit over all
    dwells, the global fit, then estimates the gravity moments and a torque offset per joint. The hold poses serve two
    aims. The axis of the turning joint is nearly horizontal, where gravity loads it most. The holds differ between
    rotations, so that the global fit is well conditioned.

    Before each dwell every joint moves in positive direction on the way up and in negative direction on the way down.
    The sign of Coulomb friction is therefore known for all joints in all poses, and friction cancels between the two
    directions. A joint that turns about the vertical at the base has no gravity torque and stays in the middle of its
    range.

    Attributes:
        steps: number of dwells per direction.
        dwell: duration of each dwell, s.
        approach: distance over which each joint approaches its pose before a dwell, one value or (n,), rad or m.
        sweep: largest range of a rotation, rad.
        poses_per_joint: number of rotations of each joint, with different holds.
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
            TrajectoryError: no joint can be rotated; the message has the reason for each joint.
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
                end = motion[-1].position[-1] if motion else None
                rotation, parts, new_dwells = self._plan_rotation(search, joint, end)
            except TrajectoryError as error:
                if any(rotation.joint == joint for rotation in rotations):
                    warnings.append(f"'{name}' is rotated less than {self.poses_per_joint} times: {error}")
                else:
                    skipped[name] = str(error)
                continue
            start = sum(part.duration for part in [*motion, *parts[:-1]])
            dwells += [dwell.shifted(start) for dwell in new_dwells]
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
        """Return the best safe rotation of `joint`, its motion with the transit from `start` (n,), and its dwells.

        The times of the dwells count from the start of the rotation, after the transit.
        """
        reason = None  # why the best rotation is not safe
        for rotation in islice(search.rotations(joint), MAX_TRIED_ROTATIONS):
            stepped, dwells = stepped_rotation(
                rotation, self.design_limits, np.asarray(self.approach), self.steps, self.dwell
            )
            try:
                self.check(stepped)
                transit = [] if start is None else [self.transit_planner.connect(start, stepped.position[0])]
            except TrajectoryError as error:
                reason = reason or error
                continue
            return rotation, [*transit, stepped], dwells
        raise TrajectoryError(f"no rotation keeps to limits and workspace: {reason}")

    def _warnings(self, rotations: list[Rotation]) -> list[str]:
        """Return a warning for each rotation with a narrow range or a small gravity torque."""
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

    Between two poses the holding joints move away by `approach` and come back. All joints therefore arrive from lower
    positions on the way up and from higher positions on the way down.

    Args:
        rotation: the joint, its range and the hold of the others.
        limits: limits of the motion.
        approach: distance (n,) over which each joint approaches its pose, rad or m.
        steps: number of poses.
        dwell: duration of the rest at each pose, s.

    Returns:
        The motion and its 2 · `steps` dwells.
    """
    names = limits.joint_names
    poses = rotation.poses(steps)
    detour = np.where(np.arange(len(names)) == rotation.joint, 0.0, approach)
    approach_time = limits.shortest_move(approach)
    # A step lasts long enough for the detour of the holding joints, away and back.
    step_time = max(2 * approach_time, limits.shortest_move(poses[1] - poses[0]))
    parts = [move(names, poses[0] - approach, poses[0], approach_time)]
    dwells = []
    time = parts[0].duration
    for direction, path in ((UP, poses), (DOWN, poses[::-1])):
        for k, pose in enumerate(path):
            parts.append(move(names, pose, pose, dwell))
            dwells.append(Dwell(time, time + dwell, joint=names[rotation.joint], direction=direction))
            if k + 1 < steps:
                parts.append(_transit(limits, pose, path[k + 1], -direction * detour, step_time))
            elif direction == UP:
                # At the top all joints move above the pose, to approach it again from there.
                parts.append(move(names, pose, pose + approach, approach_time))
                parts.append(move(names, pose + approach, pose, approach_time))
            time = sum(part.duration for part in parts)
    return Trajectory.join(parts), dwells


def _transit(limits: MotionLimits, start: NDArray, goal: NDArray, detour: NDArray, duration: float) -> Trajectory:
    """Plan a minimum-jerk move that is displaced by `detour` (n,) at half time and returns to the path at the end."""
    time = np.array([0.0, 0.5, 1.0]) * duration
    position, velocity, acceleration = minimum_jerk(start, goal, duration, time)
    position[1] += detour
    return Trajectory(limits.joint_names, time, position, velocity, acceleration)


class RotationSearch:
    """Search for rotations that determine a joint's gravity moments well and complement those chosen before.

    Args:
        experiment: experiment with arm, limits, workspace and margin.
        steps: number of dwells per direction.
        approach: distance (n,) over which each joint approaches its pose, rad or m; it must be free on both sides.
        sweep: largest range of a rotation, rad.
    """

    def __init__(self, experiment: Experiment, steps: int, approach: NDArray, sweep: float) -> None:
        self._robot = experiment.robot
        self._gravity = GravityModel(experiment.robot)
        self._limits = experiment.limits
        self._workspace = experiment.workspace
        self._steps = steps
        self._approach = approach
        self._inset = approach + experiment.margin
        # A full turn is shortened by one step, because its last pose would repeat the first.
        self._sweep = min(sweep, 2 * np.pi * (steps - 1) / steps)
        self._holds = self._limits.poses(N_HOLD_POSES, self._inset)
        # A joint that turns about the vertical at the base changes no gravity torque: hold it at its middle.
        unloaded = self._gravity.unobservable_axes() & ~self._robot.chain.prismatic
        self._holds[:, unloaded] = ((self._limits.lower + self._limits.upper) / 2)[unloaded]
        self._information = PRIOR_INFORMATION * np.eye(len(self._gravity.names) + self._robot.n_joints)

    def rotations(self, joint: int) -> list[Rotation]:
        """Return rotations of `joint`, the one that adds most to the global fit first.

        The measure is the determinant of the information matrix with the rotations chosen before (D-optimality).

        Raises:
            TrajectoryError: no rotation is possible; the message has the reason.
        """
        possible = sorted(self._possible_rotations(joint), key=lambda rotation: rotation.std)
        accurate = [rotation for rotation in possible if rotation.std <= SHORTLIST_FACTOR * possible[0].std]
        shortlist = accurate[:MAX_SHORTLIST]
        log_determinants = np.linalg.slogdet(self._information + self._rotation_information(shortlist)).logabsdet
        return [shortlist[k] for k in np.argsort(-log_determinants, kind="stable")]

    def add(self, rotation: Rotation) -> None:
        """Add the information of a chosen `rotation` to the global fit."""
        self._information += self._rotation_information([rotation])[0]

    def _rotation_information(self, rotations: list[Rotation]) -> NDArray:
        """Return the information (R, k + n, k + n) of each rotation about k gravity moments and n torque offsets."""
        n = self._robot.n_joints
        poses = np.concatenate([rotation.poses(self._steps) for rotation in rotations])
        offsets = np.broadcast_to(np.eye(n), (len(poses), n, n))
        rows = np.concatenate([self._gravity.regressor(poses), offsets], axis=2)
        rows = rows.reshape(len(rotations), self._steps * n, -1)
        return rows.transpose(0, 2, 1) @ rows

    def _possible_rotations(self, joint: int) -> list[Rotation]:
        """Return for each hold the widest rotation of `joint` that the workspace allows.

        Raises:
            TrajectoryError: no rotation is possible; the message has the reason.
        """
        if self._limits.units[joint] == "m":
            raise TrajectoryError(
                "it slides: its gravity force is constant along its travel, and is identified while other joints turn"
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
                half_span = min(float(angles[last] - angles[first]), self._sweep) / 2
                tilt = float(np.arcsin(min(sine, 1.0)))
                # The gravity torque is proportional to the sine of the tilt, so the relative noise is inverse to it.
                std = _moment_std(2 * half_span, self._steps) / float(sine)
                rotations.append(Rotation(joint, hold, middle - half_span, middle + half_span, tilt, std))
        if not rotations:
            raise TrajectoryError("it cannot turn anywhere without leaving the workspace (floor_height, clearance)")
        return rotations

    def _allowed(self, joint: int, holds: NDArray, angles: NDArray) -> NDArray:
        """Return a mask (H, A) of the angles of `joint` that are allowed at each hold, including approaches."""
        poses = np.repeat(holds[:, np.newaxis], len(angles), axis=1)
        poses[:, :, joint] = angles
        n = poses.shape[-1]
        sides = [self._workspace.allowed((poses + side * self._approach).reshape(-1, n)) for side in (-1, 0, 1)]
        return np.all(sides, axis=0).reshape(len(holds), len(angles))


def _moment_std(span: float, steps: int) -> float:
    """Return the root of the summed variances of the gravity moments of a joint with a horizontal axis.

    The torque at angle q is n_x sin(q) + n_y cos(q) + offset + noise of unit variance. It is read at `steps` angles
    over a range of `span` rad. The moments n_x and n_y and the offset are unknown.
    """
    angles = np.linspace(0.0, span, steps)
    columns = np.column_stack([np.sin(angles), np.cos(angles), np.ones(steps)])
    return float(np.sqrt(np.trace(np.linalg.pinv(columns.T @ columns)[:2, :2])))
