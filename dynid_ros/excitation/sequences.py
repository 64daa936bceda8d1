"""Motions made of others: one from a file, repetitions of a plan, and a plan with a part that shows friction."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import Experiment, Plan, format_range, require
from dynid_ros.excitation.joint_by_joint import JointByJoint
from dynid_ros.files import read_text
from dynid_ros.information.friction_needs import describe_unseen_terms, unseen_terms
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.trajectories import fourier
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.trajectory import MAX_DURATION_S, MAX_FILE_BYTES, Trajectory

REST_TOLERANCE = 1e-6
"""Largest velocity or acceleration at the ends that counts as rest, as a fraction of the limit."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GivenMotion(Experiment):
    """Motion that was designed before, or elsewhere; refused where it violates limits or workspace.

    Joints are matched by name. The file must hold all of them and no others. The whole of the limits may be used.

    Attributes:
        path: YAML of `format: dynid-trajectory/1` or `dynid-fourier/1`.
        periods: repetitions of the period of a Fourier motion.
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
            TrajectoryError: the file cannot be read, holds no such motion or one of other joints; the motion violates
                limits, workspace or torque; or it does not start and end at rest.
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
    """Read a motion of either format."""
    try:
        text = read_text(path, MAX_FILE_BYTES)
    except OSError as error:
        raise TrajectoryError(
            f"cannot read trajectory '{path}' ({error.strerror}); name a file in motion_file"
        ) from error
    if re.search(rf"""^format:\s*["']?{re.escape(fourier.FOURIER_FORMAT)}""", text, re.MULTILINE):
        return FourierSeries.read(path).trajectory(periods)
    return Trajectory.read(path)


CLOSED_MOTION_TOLERANCE = 1e-9
"""Largest distance between start and end of a motion that ends where it starts, rad or m."""
FRICTION_CHECK_RATE_HZ = 100.0
"""Sampling rate for the check that all friction terms show."""


def repeat_plan(plan: Plan, experiment: Experiment, times: int) -> Plan:
    """Repeat a plan, so that repetitions can be compared and averaged.

    Args:
        plan: the motion to repeat.
        experiment: plans the safe motion back to the start where the motion does not end there.
        times: number of repetitions.

    Returns:
        The whole motion. Times in its description count from the start of each repetition, listed in `starts` (s).
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
    """Append a motion of single joints that shows all terms of friction.

    Args:
        plan: the first part.
        experiment: plans the safe motion from the end of the first part.
        reversals: experiment with reversals of all joints, the second part.
        friction: terms of all joints.

    Returns:
        Both parts. Times in their descriptions count from the start of each part, listed in `starts` (s).

    Raises:
        TrajectoryError: there is no safe motion between the parts, or a term is not shown within the limits; names
            the joint and the reason.
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
