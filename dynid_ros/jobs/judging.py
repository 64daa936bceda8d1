"""Is a motion enough? Recordings or a planned trajectory in, an answer out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.estimation.least_squares import solve_grouped
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification import GravityIdentification
from dynid_ros.identification.equations import LinkEquations
from dynid_ros.identification.links.friction_choice import friction_menus
from dynid_ros.identification.static_samples import SampleRules, Samples
from dynid_ros.information.friction_needs import UnseenTerm, describe_unseen_terms, unseen_terms
from dynid_ros.information.motion_coverage import MotionCoverage
from dynid_ros.information.motion_quality import MotionQuality
from dynid_ros.information.torque_information import GRAVITY, LINKS, LOAD, TorqueColumns, checked_noise
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.trajectories import Trajectory
from dynid_ros.trajectories.limits import MotionLimits

RATE = 100.0
"""Samples per second that a recording of a planned trajectory is taken to have."""


def judge(
    robot: RobotModel,
    source: Recording | Sequence[Recording] | Trajectory | str | Path,
    model: str = LINKS,
    *,
    friction: FrictionModel | JointFriction | None = None,
    noise: ArrayLike | None = None,
    rate: float = RATE,
    limits: MotionLimits | None = None,
    allowed: Callable[[NDArray], NDArray] | None = None,
) -> MotionQuality:
    """What torques recorded during a motion determine, or would.

    Recordings go through the filters and the selection of samples of the identification that they are for, and the
    noise of their torques is that of its residuals, as if it were white before the low-pass.

    Args:
        robot: the arm.
        source: recordings, or a planned trajectory, or a file of one.
        model: what is to be identified: "links", "gravity" or "load".
        friction: terms of the joints; None: see `torque_columns.FRICTION`.
        noise: standard deviation of an equation, independent of others, one or (n,), N m or N; None: of the residuals,
            and 1 for a trajectory.
        rate: samples per second of what will be recorded of a trajectory.
        limits: what the joints might do; None: see `usual_limits`.
        allowed: returns of positions (N, n) whether the arm may be there, (N,) bool.

    Raises:
        TrajectoryError: the file is not a trajectory, lacks a joint or does not move; a setting makes no sense.
        RecordingError: no recording, or one that lacks a joint.
        IdentificationError: the recordings hold no motion, no torque, or too few samples.
    """
    judgement = _Judgement(TorqueColumns(robot, friction, model), noise, limits, allowed)
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
    """Friction terms that a motion cannot show: of those given, or of each that is tried where they are chosen.

    Args:
        robot: the arm.
        source: recordings, as the identification of links sees them, or a planned trajectory, or a file of one.
        friction: of all joints.

    Returns:
        Sentences, each with the motion that would show the term.

    Raises:
        TrajectoryError: the file is not a trajectory, or it lacks a joint.
        RecordingError: a recording lacks a joint.
        IdentificationError: a recording holds no motion or no torque.
    """
    if isinstance(source, Path):
        source = Trajectory.read(source)
    if isinstance(source, Trajectory):
        plan = source.select(robot.joint_names).sample(RATE)
        stretches: list[Sequence[NDArray]] = [(plan.position, plan.velocity, plan.acceleration)]
    else:
        chosen = [recording.select(robot.joint_names) for recording in source]
        signals = LinkSignals.choose(chosen)
        stretches = [segment.motion for recording in chosen for segment in signals.segments(recording)]
    if friction != "auto":
        return describe_unseen_terms(unseen_terms(robot, FrictionModel(friction, (), robot.parameters), stretches))
    speeds = np.concatenate([velocity for _, velocity, _ in stretches])
    menus = friction_menus(robot, np.sqrt(np.mean(speeds**2, axis=0)))
    found: list[UnseenTerm] = []
    for step in range(max(len(menu.steps) for menu in menus)):
        joints = [
            replace(menu.first, **menu.steps[step][-1]) if step < len(menu.steps) else menu.first for menu in menus
        ]
        found += unseen_terms(robot, FrictionModel(joints, (), robot.parameters), stretches)
    return describe_unseen_terms(found)


@dataclass(frozen=True)
class _Judgement:
    """Settings as those of `judge`."""

    columns: TorqueColumns
    noise: ArrayLike | None
    limits: MotionLimits | None
    allowed: Callable[[NDArray], NDArray] | None

    def trajectory(self, trajectory: Trajectory, rate: float) -> MotionQuality:
        """Of the samples of a plan."""
        motion = trajectory.sample(rate)
        samples = (motion.position, motion.velocity, motion.acceleration)
        if self.columns.model == GRAVITY:
            # Its dwells, as a recording of it would be cut; torques are not known.
            ideal = Recording(motion.joint_names, motion.time, *samples[:2], np.zeros_like(motion.position))
            settings = self if self.noise is not None else replace(self, noise=np.ones(len(motion.joint_names)))
            quality = settings.dwells(GravityIdentification(self.columns.robot).extract(ideal))
            return replace(quality, assumed_noise=self.noise is None)
        return MotionQuality.from_columns(
            self.columns, *samples, noise=self.noise, rate=rate, limits=self.limits, allowed=self.allowed
        )

    def dwells(self, samples: Samples) -> MotionQuality:
        """Of dwells; the direction that one was reached from stands for a velocity."""
        if not len(samples):
            raise IdentificationError(
                f"no dwells: the joints never rest for {SampleRules().minimum_dwell:g} s all at once, as gravity needs "
                "it; record dwells in varied poses"
            )
        motion = samples.position, samples.direction, np.zeros_like(samples.position)
        noise = self.noise
        if noise is None:
            rows = self.columns.rows(*motion)
            joint = np.repeat(np.arange(len(rows)), len(samples))
            matrix = rows.transpose(0, 2, 1).reshape(-1, self.columns.size)
            _, noise = solve_grouped(matrix[:, matrix.any(axis=0)], samples.torque.T.ravel(), joint)
        return MotionQuality.from_columns(self.columns, *motion, noise=noise, limits=self.limits, allowed=self.allowed)

    def motion(self, recordings: Sequence[Recording]) -> MotionQuality:
        """Through the filters of the identification of links."""
        columns, robot = self.columns, self.columns.robot
        equations: LinkEquations[LinkColumns] = LinkEquations(LinkSignals.choose(recordings), recordings)
        stretches = [segment.motion for segment in equations.segments]
        seconds = sum(len(segment.time) / segment.rate for segment in equations.segments)
        size = equations.n_samples
        motion = MotionCoverage.from_stretches(robot, stretches, size, size / seconds, self.limits)
        noise = checked_noise(robot, self.noise)
        if columns.model == LOAD:
            # Torque as recorded holds the arm too: nothing is fitted, and its noise is not known.
            every = sum(len(segment.time) for segment in equations.segments)
            information = np.sum([columns.information(stretch) for stretch in stretches], axis=0) * size / every
            assumed = self.noise is None
            return MotionQuality.from_information(
                columns, motion, noise, information, self.allowed, assumed_noise=assumed
            )
        terms = columns.friction
        whole = LinkColumns.of(robot, terms)
        chosen = whole.chosen(whole.first)
        problem = WeightedProblem(equations.factors(whole), chosen)
        if self.noise is None:
            noise = problem.weighted()[1] * equations.noise_factor
        # Of columns that links and joints share, one is kept.
        drives = robot.parameters.size + np.arange(len(chosen) - whole.n_inertial)
        kept = np.searchsorted([*whole.base.columns, *drives], columns.base.columns)
        matrices = (problem.joint(j)[0][:, kept] for j in range(robot.n_joints))
        information = np.array([matrix.T @ matrix for matrix in matrices])
        return MotionQuality.from_information(columns, motion, noise, information, self.allowed)
