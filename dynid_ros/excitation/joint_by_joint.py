"""Motion of one joint after the other, which excites friction, rotors and drives; repeated and combined motions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import DOWN, UP, Dwell, Experiment, Plan, format_range, require
from dynid_ros.files import read_text
from dynid_ros.information.friction_needs import describe_unseen_terms, unseen_terms
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.trajectories import fourier
from dynid_ros.trajectories.connection import Connection, sinusoid, widest_swing
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.trajectory import MAX_DURATION_S, MAX_FILE_BYTES, PEAK_VELOCITY, Trajectory

SINUSOID = "sinusoid"
STEPS = "steps"
REVERSALS = "reversals"
DESCRIPTIONS = {STEPS: "in steps", REVERSALS: "there and back, slowly to fast"}
REVERSAL_SPEEDS = (0.05, 0.25, 1.0)
"""Speeds of the moves back and forth, as fractions of the allowed speed."""
MAX_SLOW_MOVE_S = 3.0
"""Longest duration of a slow move; slow moves therefore cover a shorter distance than the fastest one."""
N_TESTED_POSITIONS = 129
"""Number of positions of a joint that are tested against the workspace."""
SHRINK_FACTOR = 0.8
"""Factor on the amplitude of a motion that workspace or torque limits do not allow."""
MAX_SHRINKS = 12
"""Largest number of times that the amplitude is reduced, down to a twelfth."""
MIN_AMPLITUDE = 1e-3
"""Smallest amplitude that is planned, rad or m."""
REST_TOLERANCE = 1e-6
"""Largest velocity or acceleration at the ends that counts as rest, as a fraction of the limit."""
CLOSED_MOTION_TOLERANCE = 1e-9
"""Largest distance between start and end of a motion that ends where it starts, rad or m."""
FRICTION_CHECK_RATE_HZ = 100.0
"""Sampling rate of the motion in the check that it excites all friction terms."""


@dataclass(frozen=True, eq=False, kw_only=True)
class JointByJoint(Experiment):
    """Plans a motion in which joint after joint moves alone, as far as limits and workspace allow.

    A joint moves in one of three ways: as a sine at each of the frequencies, as widely as its limits allow; up and down
    in steps, with a rest at each step; or back and forth at several speeds, with a rest at each reversal. The other
    joints hold at `pose`, and the joint moves about the middle of its free range there. Such a motion shows friction,
    drive and inertia of this joint alone, and a gravity torque that depends on one angle.

    Attributes:
        motion: "sinusoid", "steps" or "reversals".
        joints: names of the moved joints, in order; None: all, from tip to base.
        pose: (n,) pose of the other joints, rad or m; None: the allowed pose nearest to the middle of the ranges.
        frequencies: frequencies of the sines, Hz; each joint moves at each of them.
        cycles: number of cycles of a sine at full amplitude.
        steps: number of rests in each direction.
        dwell: duration of the rest at each step or reversal, s.
        amplitude: largest fraction of a joint's free range that is used.
    """

    motion: str = SINUSOID
    joints: Sequence[str] | None = None
    pose: ArrayLike | None = None
    frequencies: ArrayLike = (0.1, 0.4)
    cycles: int = 3
    steps: int = 7
    dwell: float = 0.5
    amplitude: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        names = self.robot.joint_names
        joints = names[::-1] if self.joints is None else self.joints
        frequencies = np.atleast_1d(np.asarray(self.frequencies, dtype=float))
        is_valid_pose = self.pose is None or (np.shape(self.pose) == (len(names),) and np.isfinite(self.pose).all())
        motions = (SINUSOID, *DESCRIPTIONS)
        require(
            ("motion", self.motion, self.motion in motions, f"one of {', '.join(motions)}"),
            ("joints", self.joints, joints and set(joints) <= set(names), f"among {', '.join(names)}"),
            ("pose", self.pose, is_valid_pose, f"a finite position for each of {', '.join(names)}"),
            (
                "frequencies",
                self.frequencies,
                frequencies.size and np.isfinite(frequencies).all() and (frequencies > 0).all(),
                "positive",
            ),
            ("cycles", self.cycles, self.cycles >= 1, "at least 1"),
            ("steps", self.steps, self.steps >= 2, "at least 2"),
            ("dwell", self.dwell, self.dwell > 0, "positive"),
            ("amplitude", self.amplitude, 0 < self.amplitude <= 1, "above 0 and at most 1"),
        )
        object.__setattr__(self, "joints", tuple(joints))
        object.__setattr__(self, "frequencies", frequencies)

    @cached_property
    def _step_planner(self) -> Connection:
        return Connection(self.design_limits, self.workspace_and_torque)

    def plan(self) -> Plan:
        """Plan the moves of all joints and the moves between them.

        Raises:
            TrajectoryError: the arm may not hold at the pose, or no joint can move; the message has the reasons.
        """
        hold = self._hold_pose()
        motion: list[Trajectory] = []
        moves: list[dict[str, object]] = []
        lines: list[str] = []
        dwells: list[Dwell] = []
        skipped: dict[str, str] = {}
        frequencies = np.asarray(self.frequencies).tolist() if self.motion == SINUSOID else [None]
        for joint in self.joints or ():
            for frequency in frequencies:
                try:
                    part, centre, amplitude, rests = self._plan_joint(joint, hold, frequency)
                    start_pose = part.position[0]
                    transit = [self.transit_planner.connect(motion[-1].position[-1], start_pose)] if motion else []
                except TrajectoryError as error:
                    skipped.setdefault(joint, str(error))
                    continue
                start = sum(before.duration for before in [*motion, *transit])
                moves.append(
                    {
                        "joint": joint,
                        "motion": self.motion,
                        "frequency": frequency,
                        "centre": round(centre, 6),
                        "amplitude": round(amplitude, 6),
                        "start": round(start, 4),
                        "end": round(start + part.duration, 4),
                    }
                )
                lines.append(self._describe_move(joint, frequency, centre, amplitude))
                dwells += [rest.shifted(start) for rest in rests]
                motion += [*transit, part]
        if not motion:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
            raise TrajectoryError(f"no joint can move: {reasons}")
        trajectory = Trajectory.join(motion)
        self.check(trajectory)
        return Plan(
            trajectory=trajectory,
            format="dynid-joint-by-joint/1",
            facts={"moves": moves},
            lines=(
                f"{trajectory.duration:.1f} s, {len(moves)} moves, {len(dwells)} dwells",
                *lines,
                *(f"{name}: left out, {reason}" for name, reason in skipped.items()),
            ),
            dwells=tuple(dwells),
            skipped=skipped,
            warnings=self.workspace_and_torque.warnings,
        )

    def _describe_move(self, joint: str, frequency: float | None, centre: float, amplitude: float) -> str:
        """Return a line with the range and the kind of a joint's motion."""
        unit = self.limits.units[self.limits.joint_names.index(joint)]
        span = format_range(centre - amplitude, centre + amplitude, unit)
        return f"{joint}: {span} {DESCRIPTIONS.get(self.motion) or f'at {frequency:g} Hz'}"

    def _hold_pose(self) -> NDArray:
        """Return `pose` if it is set, otherwise the allowed pose (n,) nearest to the middle of the ranges."""
        if self.pose is not None:
            pose = np.asarray(self.pose, dtype=float)
            try:
                self.check_pose(pose)
            except TrajectoryError as error:
                raise TrajectoryError(f"the arm may not hold at the pose given: {error}") from error
            return pose
        lower = self.design_limits.lower
        upper = self.design_limits.upper
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

    def _plan_joint(
        self, joint: str, hold: NDArray, frequency: float | None
    ) -> tuple[Trajectory, float, float, list[Dwell]]:
        """Return the widest safe motion of `joint`, its centre and amplitude, and its dwells."""
        i = self.limits.joint_names.index(joint)
        low, high = self._free_range(i, hold)
        pose = hold.copy()
        pose[i] = centre = (low + high) / 2
        amplitude = self.amplitude * (high - low) / 2
        if frequency:
            amplitude = min(amplitude, widest_swing(self.design_limits, i, centre, frequency, self.cycles))
        reason: TrajectoryError | None = None
        for _ in range(MAX_SHRINKS):
            if amplitude < MIN_AMPLITUDE:
                break
            try:
                rests: list[Dwell] = []
                if frequency:
                    motion = sinusoid(self.design_limits, i, pose, frequency, amplitude=amplitude, cycles=self.cycles)
                elif self.motion == STEPS:
                    motion, rests = self._plan_steps(i, pose, amplitude)
                else:
                    motion, rests = self._plan_reversals(i, pose, amplitude)
                self.check(motion)
            except TrajectoryError as error:
                reason = error
                amplitude *= SHRINK_FACTOR
                continue
            return motion, float(centre), float(amplitude), rests
        raise TrajectoryError(f"it has no room to move in: {reason or 'its free range is too small'}")

    def _free_range(self, joint: int, hold: NDArray) -> tuple[float, float]:
        """Return the ends of a joint's range about its position in `hold` (n,) that the workspace allows, rad or m."""
        limits = self.design_limits
        values = np.linspace(limits.lower[joint], limits.upper[joint], N_TESTED_POSITIONS)
        poses = np.tile(hold, (N_TESTED_POSITIONS, 1))
        poses[:, joint] = values
        blocked = np.flatnonzero(~self.workspace.allowed(poses))
        nearest = int(np.argmin(np.abs(values - hold[joint])))
        below = blocked[blocked <= nearest]
        above = blocked[blocked >= nearest]
        first = below[-1] + 1 if len(below) else 0
        last = above[0] - 1 if len(above) else N_TESTED_POSITIONS - 1
        if last <= first:
            raise TrajectoryError("it cannot move from where it holds without leaving the workspace")
        return float(values[first]), float(values[last])

    def _plan_steps(self, joint: int, pose: NDArray, amplitude: float) -> tuple[Trajectory, list[Dwell]]:
        """Plan steps up and down; each rest, even the first, follows a move in its direction."""
        levels = pose[joint] + amplitude * np.linspace(-1.0, 1.0, self.steps + 1)
        values = np.concatenate([levels, levels[-2::-1]])
        poses = np.tile(pose, (len(values), 1))
        poses[:, joint] = values
        motion, rests = self._step_planner.visit(poses, self.dwell)
        name = self.limits.joint_names[joint]
        return motion, [
            Dwell(float(start), float(end), joint=name, direction=UP if step > 0 else DOWN)
            for step, (start, end) in zip(np.diff(values), rests[1:], strict=True)
        ]

    def _plan_reversals(self, joint: int, pose: NDArray, amplitude: float) -> tuple[Trajectory, list[Dwell]]:
        """Plan moves back and forth at each speed, the fastest over the whole range, with a rest at each end."""
        limits = self.design_limits
        parts: list[Trajectory] = []
        rests: list[Dwell] = []
        for fraction in REVERSAL_SPEEDS:
            half = amplitude
            if fraction < 1.0:
                half = min(amplitude, MAX_SLOW_MOVE_S * fraction * limits.velocity[joint] / PEAK_VELOCITY / 2)
            poses = np.tile(pose, (3, 1))
            poses[:, joint] += [-half, half, -half]
            if parts:
                parts.append(self._step_planner.connect(parts[-1].position[-1], poses[0]))
            start = sum(part.duration for part in parts)
            planner = Connection(limits.scaled(fraction), self.workspace_and_torque)
            part, times = planner.visit(poses, self.dwell)
            parts.append(part)
            rests += [
                Dwell(start + float(begin), start + float(end), joint=limits.joint_names[joint], direction=direction)
                for direction, (begin, end) in zip((UP, DOWN), times[1:], strict=True)
            ]
        return Trajectory.join(parts), rests


@dataclass(frozen=True, eq=False, kw_only=True)
class GivenMotion(Experiment):
    """Motion from a file, which is refused if it violates limits or workspace.

    Joints are matched by name. The file must contain all joints of the arm and no others. By default the motion may use
    the whole limits: `position_margin` is 0 and `speed_fraction` 1.

    Attributes:
        path: YAML of `format: dynid-trajectory/1` or `dynid-fourier/1`.
        periods: number of periods of a Fourier motion.
    """

    position_margin: ArrayLike = 0.0
    speed_fraction: float = 1.0
    path: str | Path
    periods: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(("periods", self.periods, self.periods >= 1, "at least 1"))

    def plan(self) -> Plan:
        """Read and check the motion.

        Raises:
            TrajectoryError: the file cannot be read, or contains no motion of these joints; the motion violates limits,
                workspace or torque limits; or it does not start and end at rest.
        """
        motion = read_motion(Path(self.path), self.periods)
        names = self.robot.joint_names
        if sorted(motion.joint_names) != sorted(names):
            raise TrajectoryError(
                f"'{self.path}' moves joints {', '.join(motion.joint_names)}; expected {', '.join(names)} in any order"
            )
        motion = motion.select(names)
        try:
            self._check_rest(motion)
            self.check(motion)
        except TrajectoryError as error:
            raise TrajectoryError(f"the motion in '{self.path}' is not safe: {error}") from error
        ranges = zip(names, motion.position.min(axis=0), motion.position.max(axis=0), self.limits.units, strict=True)
        return Plan(
            trajectory=motion,
            format="dynid-given-motion/1",
            facts={"source": str(self.path)},
            lines=(
                f"{motion.duration:.1f} s, from {self.path}",
                *(f"{name}: {format_range(low, high, unit)}" for name, low, high, unit in ranges),
            ),
            warnings=self.workspace_and_torque.warnings,
        )

    def _check_rest(self, motion: Trajectory) -> None:
        """Check that the motion starts and ends at rest."""
        limits = self.limits
        for quantity, values, bounds in (
            ("velocity", motion.velocity, limits.velocity),
            ("acceleration", motion.acceleration, limits.acceleration),
        ):
            for verb, sample in (("starts", 0), ("ends", -1)):
                i = int(np.argmax(np.abs(values[sample]) / bounds))
                if not abs(values[sample, i]) <= REST_TOLERANCE * bounds[i]:
                    raise TrajectoryError(
                        f"it {verb} with {quantity} {values[sample, i]:.4g} of joint '{limits.joint_names[i]}', not at "
                        "rest"
                    )


def read_motion(path: Path, periods: int) -> Trajectory:
    """Return the motion in a file of either format; `periods` applies to a Fourier motion."""
    try:
        text = read_text(path, MAX_FILE_BYTES)
    except OSError as error:
        raise TrajectoryError(
            f"cannot read trajectory '{path}' ({error.strerror}); name a file in motion_file"
        ) from error
    if re.search(rf"""^format:\s*["']?{re.escape(fourier.FOURIER_FORMAT)}""", text, re.MULTILINE):
        return FourierSeries.read(path).trajectory(periods)
    return Trajectory.read(path)


def repeat_plan(plan: Plan, experiment: Experiment, times: int) -> Plan:
    """Return a plan that repeats a motion, so that repetitions can be compared and averaged.

    Args:
        plan: the motion to repeat.
        experiment: experiment that plans the safe motion back to the start, if the motion ends elsewhere.
        times: number of repetitions.

    Returns:
        The whole motion. Times in its description count from the start of each repetition; `starts` lists these, s.
    """
    if times < 1:
        raise TrajectoryError(f"repeats is {times}; it must be at least 1")
    if times == 1:
        return plan
    once = plan.trajectory
    back: list[Trajectory] = []
    if np.abs(once.position[-1] - once.position[0]).max() > CLOSED_MOTION_TOLERANCE:
        try:
            back = [experiment.approach_motion(once.position[-1], plan)]
        except TrajectoryError as error:
            raise TrajectoryError(f"the motion cannot be repeated: back to its start, {error}") from error
    period = once.duration + sum(part.duration for part in back)
    if times * period > MAX_DURATION_S:
        raise TrajectoryError(
            f"repeats is {times}: motions of {period:.1f} s each take more than {MAX_DURATION_S / 3600:g} h; give fewer"
        )
    trajectory = Trajectory.join([once, *[*back, once] * (times - 1)])
    starts = [round(repetition * period, 4) for repetition in range(times)]
    first_line = f"{trajectory.duration:.1f} s, {times} times the motion of {plan.lines[0]}"
    return Plan(
        trajectory=trajectory,
        format=plan.format,
        facts={**plan.facts, "repeat_duration": round(plan.duration, 4), "starts": starts},
        lines=(first_line, *plan.lines[1:]),
        dwells=plan.dwells,
        skipped=plan.skipped,
        warnings=plan.warnings,
    )


def show_friction(plan: Plan, experiment: Experiment, reversals: JointByJoint, friction: JointFriction) -> Plan:
    """Return a plan with a second part, a motion of single joints that excites all friction terms.

    Args:
        plan: the first part.
        experiment: experiment that plans the safe motion from the end of the first part.
        reversals: experiment with reversals of all joints, the second part.
        friction: friction terms of all joints.

    Returns:
        Both parts. Times in their descriptions count from the start of each part; `starts` lists these, s.

    Raises:
        TrajectoryError: there is no safe motion between the parts, or no motion within the limits excites a term; the
            message names the joint and the reason.
    """
    second = reversals.plan()
    transit = experiment.approach_motion(plan.trajectory.position[-1], second)
    start = plan.duration + transit.duration
    trajectory = Trajectory.join([plan.trajectory, transit, second.trajectory])
    robot = reversals.robot
    motion = trajectory.select(robot.joint_names).sample(FRICTION_CHECK_RATE_HZ)
    model = FrictionModel(friction, (), robot.parameters)
    unseen = unseen_terms(robot, model, [(motion.position, motion.velocity, motion.acceleration)])
    if unseen:
        raise TrajectoryError(f"no motion within limits and workspace shows it: {describe_unseen_terms(unseen)[0]}")
    first_line = f"{trajectory.duration:.1f} s in two parts; from {start:.1f} s on friction, joint by joint"
    return Plan(
        trajectory=trajectory,
        format="dynid-sequence/1",
        facts={"starts": [0.0, round(start, 4)], "parts": [plan.as_dict(), second.as_dict()]},
        lines=(first_line, *plan.summary().splitlines(), *second.summary().splitlines()),
    )
