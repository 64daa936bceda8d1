"""Quality of a motion: the parameters that it determines, and how accurately; and a test for changes of the load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.checks.all_checks import check
from dynid_ros.checks.finding import DRIFT, LOAD_CHANGE, Finding
from dynid_ros.display import text_table
from dynid_ros.errors import DynidError, IdentificationError, RecordingError
from dynid_ros.estimation.least_squares import solve_grouped
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification import GravityIdentification, LinkIdentification
from dynid_ros.identification.equations import LinkEquations
from dynid_ros.identification.links.friction_choice import friction_menus
from dynid_ros.identification.links.load_step import LOAD_STEP_REMEDY, LoadChangeError
from dynid_ros.identification.static_samples import SampleRules, Samples
from dynid_ros.information.friction_needs import UnseenTerm, describe_unseen_terms, unseen_terms
from dynid_ros.information.motion_coverage import MotionCoverage
from dynid_ros.information.motion_quality import MotionQuality
from dynid_ros.information.torque_information import GRAVITY, LINKS, LOAD, TorqueColumns, checked_noise
from dynid_ros.jobs.screen import Screen
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.trajectories import Trajectory
from dynid_ros.trajectories.limits import MotionLimits

REMEDIES = {
    LINKS: "record a second motion, which `dynid excite --recorded` designs for these parameters",
    GRAVITY: "record dwells in further poses, which `dynid excite --motion poses` designs",
    LOAD: "turn the tool about each of its axes, as `dynid excite --motion payload` does",
}
"""Advice on motions that determine missing and weak parameters, by the model."""
PLANNED_RATE_HZ = 100.0
"""Sample rate that a recording of a planned trajectory is assumed to have."""


def judge(
    robot: RobotModel,
    source: Recording | Sequence[Recording] | Trajectory | str | Path,
    model: str = LINKS,
    *,
    friction: FrictionModel | JointFriction | None = None,
    noise: ArrayLike | None = None,
    rate: float = PLANNED_RATE_HZ,
    limits: MotionLimits | None = None,
) -> MotionQuality:
    """Return how accurately the torques of a motion determine the parameters.

    Recordings pass the filters and the selection of samples of the identification of `model`. The noise of their
    torques is estimated from its residuals, and assumed to be white before the low-pass.

    Args:
        robot: the arm.
        source: recordings, a planned trajectory, or the file of a trajectory.
        model: parameters to identify: "links", "gravity" or "load".
        friction: friction terms of the joints; None: see `torque_columns.FRICTION`.
        noise: standard deviation of one equation, one number or (n,), N m or N; None: that of the residuals, or 1 for
            a trajectory.
        rate: sample rate at which a trajectory will be recorded, Hz.
        limits: limits of the joints; None: see `usual_limits`.

    Raises:
        TrajectoryError: the file is not a trajectory, lacks a joint or does not move; or a setting is invalid.
        RecordingError: there is no recording, or a recording lacks a joint.
        IdentificationError: the recordings contain no motion, no torque, or too few samples.
    """
    judgement = _Judgement(TorqueColumns(robot, friction, model), noise, limits)
    if isinstance(source, str | Path):
        source = Trajectory.read(source)
    if isinstance(source, Trajectory):
        return judgement.trajectory(source.select(robot.joint_names), rate)
    recordings = [source] if isinstance(source, Recording) else list(source)
    if not recordings:
        raise RecordingError("no recording to judge; give at least one")
    chosen = [recording.select(robot.joint_names) for recording in recordings]
    if model == GRAVITY:
        return judgement.dwells(GravityIdentification(robot).extract(*chosen))
    return judgement.motion(chosen)


def unseen_friction(
    robot: RobotModel,
    source: Sequence[Recording] | Trajectory | Path,
    friction: JointFriction | Literal["auto"] = "auto",
) -> list[str]:
    """Return sentences on friction terms that a motion does not excite, and on motions that would excite them.

    Args:
        robot: the arm.
        source: recordings, a planned trajectory, or the file of a trajectory.
        friction: friction terms of all joints; "auto": all terms that the automatic choice of friction tries.

    Raises:
        TrajectoryError: the file is not a trajectory, or it lacks a joint.
        RecordingError: a recording lacks a joint.
        IdentificationError: a recording contains no motion or no torque.
    """
    if isinstance(source, Path):
        source = Trajectory.read(source)
    if isinstance(source, Trajectory):
        plan = source.select(robot.joint_names).sample(PLANNED_RATE_HZ)
        stretches: list[Sequence[NDArray]] = [(plan.position, plan.velocity, plan.acceleration)]
    else:
        chosen = [recording.select(robot.joint_names) for recording in source]
        signals = LinkSignals.choose(chosen)
        stretches = [segment.motion for recording in chosen for segment in signals.segments(recording)]
    if friction != "auto":
        return describe_unseen_terms(unseen_terms(robot, FrictionModel(friction, (), robot.parameters), stretches))
    speeds = np.concatenate([velocity for _, velocity, _ in stretches])
    menus = friction_menus(robot, np.sqrt(np.mean(speeds**2, axis=0)))
    unseen: list[UnseenTerm] = []
    for step in range(max(len(menu.steps) for menu in menus)):
        joints = [
            replace(menu.first, **menu.steps[step][-1]) if step < len(menu.steps) else menu.first for menu in menus
        ]
        unseen += unseen_terms(robot, FrictionModel(joints, (), robot.parameters), stretches)
    return describe_unseen_terms(unseen)


def quality_screen(quality: MotionQuality, unseen: Sequence[str] = ()) -> Screen:
    """Return the verdict on a motion, noise and prediction error by joint, and missing and weak parameters."""
    motion = quality.motion
    duration = "" if motion.rate is None else f", {motion.samples / motion.rate:.0f} s"
    verdict = quality.summary().splitlines()[0]
    numbers = (
        f"The motion determines {quality.rank} of {quality.full_rank} combinations of parameters; condition number "
        f"{quality.condition_number:.3g} ({motion.samples} samples{duration})."
    )
    noise = ["not known" if quality.assumed_noise else f"{value:.3g}" for value in quality.noise]
    errors = [f"{value:.2g}" if np.isfinite(value) else "not determined" for value in quality.prediction]
    ranks = [str(rank) for rank in quality.joint_ranks]
    rows = list(zip(motion.limits.joint_names, noise, errors, ranks, strict=True))
    heads = ("joint", "torque noise [N m, N]", "error of predicted torque", "combinations")
    lists = {"missing": quality.missing, "weak": [str(parameter) for parameter in quality.weak]}
    remarks = [f"{len(some)} {name}: {'; '.join(some)}" for name, some in lists.items() if some]
    remarks += unseen
    if remarks:
        remarks.append(f"what would help: {REMEDIES[quality.columns.model]}")
    if quality.columns.hidden:
        remarks.append(f"no motion of this arm shows {', '.join(quality.columns.hidden)}")
    return Screen([verdict, numbers], text_table(heads, rows), remarks)


@dataclass(frozen=True)
class _Judgement:
    """Judgement of motions with the settings of `judge`.

    Attributes:
        columns: columns of the parameters to identify.
        noise, limits: as the arguments of `judge`.
    """

    columns: TorqueColumns
    noise: ArrayLike | None
    limits: MotionLimits | None

    def trajectory(self, trajectory: Trajectory, rate: float) -> MotionQuality:
        """Return the quality of a planned trajectory that is recorded at a `rate`, Hz."""
        motion = trajectory.sample(rate)
        samples = (motion.position, motion.velocity, motion.acceleration)
        if self.columns.model == GRAVITY:
            # Extract dwells as from a recording, with torques of zero in place of the unknown ones.
            ideal = Recording(motion.joint_names, motion.time, *samples[:2], np.zeros_like(motion.position))
            settings = self if self.noise is not None else replace(self, noise=np.ones(len(motion.joint_names)))
            quality = settings.dwells(GravityIdentification(self.columns.robot).extract(ideal))
            return replace(quality, assumed_noise=self.noise is None)
        return self._samples(samples, noise=self.noise, rate=rate)

    def _samples(
        self, motion: tuple[NDArray, NDArray, NDArray], *, noise: ArrayLike | None, rate: float | None = None
    ) -> MotionQuality:
        """Return the quality of positions, velocities and accelerations (N, n)."""
        robot = self.columns.robot
        options: dict[str, Any] = {"limits": self.limits, "columns": self.columns}
        return MotionQuality.of(robot, *motion, noise=noise, rate=rate, **options)

    def dwells(self, samples: Samples) -> MotionQuality:
        """Return the quality of dwells; the direction of the approach replaces the velocity, as friction needs it."""
        if not len(samples):
            raise IdentificationError(
                f"no dwells: gravity needs rests of all joints for {SampleRules().minimum_dwell:g} s; record dwells in "
                "varied poses"
            )
        motion = samples.position, samples.direction, np.zeros_like(samples.position)
        noise = self.noise
        if noise is None:
            rows = self.columns.rows(*motion)
            joint = np.repeat(np.arange(len(rows)), len(samples))
            matrix = rows.transpose(0, 2, 1).reshape(-1, self.columns.size)
            _, noise = solve_grouped(matrix[:, matrix.any(axis=0)], samples.torque.T.ravel(), joint)
        return self._samples(motion, noise=noise)

    def motion(self, recordings: Sequence[Recording]) -> MotionQuality:
        """Return the quality of recordings, with the filters of the link identification."""
        columns = self.columns
        robot = columns.robot
        equations: LinkEquations[LinkColumns] = LinkEquations(LinkSignals.choose(recordings), recordings)
        stretches = [segment.motion for segment in equations.segments]
        seconds = sum(len(segment.time) / segment.rate for segment in equations.segments)
        size = equations.n_samples
        motion = MotionCoverage.from_stretches(robot, stretches, size, size / seconds, self.limits)
        noise = checked_noise(robot, self.noise)
        if columns.model == LOAD:
            # The recorded torque includes that of the arm, so its residuals do not give the noise.
            count = sum(len(segment.time) for segment in equations.segments)
            information = np.sum([columns.information(stretch) for stretch in stretches], axis=0) * size / count
            assumed = self.noise is None
            return MotionQuality.from_information(columns, motion, noise, information, assumed_noise=assumed)
        terms = columns.friction
        whole = LinkColumns.of(robot, terms)
        chosen = whole.chosen(whole.first)
        problem = WeightedProblem(equations.factors(whole), chosen)
        if self.noise is None:
            noise = problem.weighted()[1] * equations.noise_factor
        # Links and joints share columns, such as those of rotor inertias: keep one of each.
        drives = robot.parameters.size + np.arange(len(chosen) - whole.n_inertial)
        kept = np.searchsorted([*whole.base.columns, *drives], columns.base.columns)
        matrices = (problem.joint(j)[0][:, kept] for j in range(robot.n_joints))
        information = np.array([matrix.T @ matrix for matrix in matrices])
        return MotionQuality.from_information(columns, motion, noise, information)


def check_with_load(
    recordings: Sequence[Recording], robot: RobotModel, motion: bool = False, undecided: list[str] | None = None
) -> list[Finding]:
    """Return the findings of all checks; the finding of a changed load replaces that of a drift, which looks similar.

    Args:
        recordings: recordings that are to be fitted together.
        robot: the arm, with the direction of gravity.
        motion: whether the fit needs motion.
        undecided: list to which the names of faults are added that these recordings would not reveal.
    """
    findings = check(recordings, robot, motion, undecided)
    if any(finding.severity == "error" for finding in findings):
        return findings
    change = load_change(recordings, robot)
    if change is None:
        return findings
    return [*(finding for finding in findings if finding.kind != DRIFT), change]


def load_change(recordings: Sequence[Recording], robot: RobotModel) -> Finding | None:
    """Return an error if no constant load explains the torques, or None.

    Recordings from which links cannot be identified, such as poses at rest, are not tested.
    """
    try:
        # White standard errors suffice, as the test of the load computes its own.
        LinkIdentification(robot, estimator="weighted", errors="white").require_one_load(*recordings)
    except LoadChangeError as error:
        return Finding("error", error.where, error.change, LOAD_STEP_REMEDY, LOAD_CHANGE)
    except DynidError:
        pass
    return None
