"""Periodic motion of all joints that estimates the parameters best, within limits and workspace."""

import os
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import Experiment, Plan, format_range, require
from dynid_ros.excitation.fourier_search import MotionSearch
from dynid_ros.excitation.parallel_search import Progress, SearchResult, find_best_motion
from dynid_ros.information.criteria import CRITERIA, Condition
from dynid_ros.information.flexible_information import FlexibleInformation
from dynid_ros.information.steady_state import FlexibleJoints
from dynid_ros.information.torque_information import LINKS, InformationSource, TorqueInformation
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.trajectories import fourier
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.limits import MotionLimits, check_limits
from dynid_ros.trajectories.trajectory import MAX_DURATION_S
from dynid_ros.trajectories.workspace import Workspace

MAX_CONDITION_NUMBER = 100.0
"""Condition number above which parameters are hard to distinguish (Schröer, Uhl, Albright and Huttenhofer 1992)."""
MAX_DEFAULT_WORKERS = 4
NOISE_OF_TORQUE_LIMIT = 0.01
"""Assumed standard deviation of torque over the torque limit; only the ratios between joints affect a design."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FourierPlan(Plan):
    """A planned Fourier motion.

    Attributes:
        series: one period of the motion.
        condition_number: condition number of the regressor with columns of unit norm (see `Condition`), including the
            information that was known before.
        singular_values: singular values of that regressor, descending.
        criterion: name of the criterion that the search minimized.
        value: value of the criterion.
        starts: number of starts that were searched from.
        history: time (s) and value of each better motion during the search.
    """

    series: FourierSeries
    condition_number: float
    singular_values: tuple[float, ...]
    criterion: str
    value: float
    starts: int
    history: tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class FourierExcitation(Experiment):
    """Experiment that plans a periodic motion of all joints by optimization.

    A local optimization starts from one random motion after another until time is up, and maximizes the information
    within the limits. The regressor depends on the kinematics alone. Nominal masses only serve to keep torque limits.

    Attributes:
        base_frequency: frequency of the first harmonic, Hz; a period takes 1 / base_frequency.
        harmonics: number of harmonics, at least 2.
        periods: repetitions of the period.
        target: parameters to estimate: "links", "gravity" or "load" (see `TorqueColumns`).
        drive: friction terms of each joint, estimated together with the links; None: the terms of the target.
        criterion: criterion to minimize: "determinant", "condition" or "condition_unscaled". Only "determinant" favours
            a large motion.
        noise: standard deviation of the torques, one value or (n,), N m or N; None: in proportion to the torque limits,
            or equal in all joints if a limit is unknown.
        columns: columns of the regressor that represent the base parameters; None: the choice of `BaseParameters`.
        source: computation of the information of a motion, in place of target, drive, noise and columns.
        held: positions of joints that do not move, by name, rad or m; None: all joints move.
        known: (p, p) information from earlier motions (`TorqueInformation.over_time`), to which this motion adds.
        design_time: time for the search, s; 0: the best of the random motions.
        candidates: number of random motions drawn to start with.
        starts: largest number of searches, which makes the result reproducible; None: as many as time allows.
        workers: number of searches that run in parallel; 0: one per core, up to 4.
        executor: executor that runs the searches; None: processes of this machine.
        seed: seed of the random motions.
    """

    base_frequency: float = 0.05
    harmonics: int = 10
    periods: int = 1
    target: str = LINKS
    drive: JointFriction | None = None
    criterion: str = "determinant"
    noise: ArrayLike | None = None
    columns: ArrayLike | None = None
    source: InformationSource | None = None
    held: Mapping[str, float] | None = None
    known: NDArray | None = None
    design_time: float = 30.0
    candidates: int = 10
    starts: int | None = None
    workers: int = 0
    executor: Executor | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            (
                "base_frequency",
                self.base_frequency,
                1 / MAX_DURATION_S <= self.base_frequency < np.inf,
                f"positive, and a period of at most {MAX_DURATION_S / 3600:g} h",
            ),
            ("harmonics", self.harmonics, self.harmonics >= 2, "at least 2: fewer cannot start and end at rest"),
            ("periods", self.periods, self.periods >= 1, "at least 1"),
            ("criterion", self.criterion, self.criterion in CRITERIA, " or ".join(CRITERIA)),
            ("design_time", self.design_time, 0 <= self.design_time < np.inf, "zero or more, s"),
            ("candidates", self.candidates, self.candidates >= 1, "at least 1"),
            ("starts", self.starts, self.starts is None or self.starts >= 0, "zero or more"),
            ("workers", self.workers, self.workers >= 0, "zero or more"),
            ("seed", self.seed, self.seed >= 0, "zero or more"),
        )
        self._search  # noqa: B018  # raises for invalid settings of the information

    @property
    def highest_frequency(self) -> float:
        """Frequency of the highest harmonic, Hz."""
        return self.harmonics * self.base_frequency

    @cached_property
    def information(self) -> InformationSource:
        """Computation of the information matrix of a motion."""
        if self.source is not None:
            return self.source
        torque = self.limits.torque
        default_noise = NOISE_OF_TORQUE_LIMIT * torque if np.isfinite(torque).all() else np.ones(len(torque))
        return TorqueInformation(
            self.robot,
            self.design_limits.velocity,
            target=self.target,
            drive=self.drive,
            noise=default_noise if self.noise is None else self.noise,
            columns=self.columns,
        )

    @cached_property
    def _search(self) -> MotionSearch:
        return MotionSearch(
            self.robot,
            self.design_limits,
            self.workspace,
            self.information,
            CRITERIA[self.criterion],
            self.base_frequency,
            self.harmonics,
            # The search uses the mean over the samples: divide the time integral by the duration of this motion.
            None if self.known is None else self.known * self.base_frequency / self.periods,
            self.seed,
            _held_positions(self.held, self.design_limits) if self.held else None,
        )

    def plan(self, progress: Progress | None = None) -> FourierPlan:
        """Search for the motion.

        Args:
            progress: callback with the elapsed fraction of the time and the best motion so far, a few times a second;
                an exception that it raises ends the search.

        Raises:
            TrajectoryError: no pose, or no motion, keeps to limits and workspace; the message names the obstacle.
            WorkerError: workers are lost repeatedly.
        """
        try:
            result = find_best_motion(
                self._search,
                seconds=self.design_time,
                candidates=self.candidates,
                starts=self.starts,
                workers=self.workers or min(len(os.sched_getaffinity(0)), MAX_DEFAULT_WORKERS),
                executor=self.executor,
                progress=progress,
            )
        except TrajectoryError as error:
            raise TrajectoryError("; ".join([str(error), *self.hints()])) from error
        best = result.best
        if best.excess == np.inf:
            raise TrajectoryError(f"no motion is found: {best.obstacle}")
        if not best.is_feasible:
            excess = f"{100 * best.excess:.2g} %" if best.excess > 0 else "less than the margin of a plan"
            raise TrajectoryError(
                f"none of {self.candidates} random motions and {result.starts} searches keeps to limits and "
                f"workspace; the nearest one violates the bound of {best.obstacle} by {excess} (of 0.1 m for a "
                f"distance): {'; '.join(self.hints()) or 'give it more room, or more design_time'}"
            )
        plan = self._describe(best.series, result)
        check_limits(plan.trajectory, self.limits)
        # Another source has its own torque model, with which the search has checked the torque limits already.
        is_rigid = isinstance(self.information, TorqueInformation)
        (self.workspace_and_torque if is_rigid else self.workspace).check(plan.trajectory)
        return plan

    def _describe(self, series: FourierSeries, result: SearchResult) -> FourierPlan:
        information = self._search.information(series)
        norms = np.sqrt(np.diag(information))
        norms[norms == 0.0] = 1.0  # a parameter that the motion does not excite has singular value zero
        eigenvalues = np.linalg.eigvalsh(information / np.outer(norms, norms))[::-1]
        condition_number = Condition().value(information)
        n_parameters = len(self.information.names)
        trajectory = series.trajectory(self.periods)
        periods = "1 period" if self.periods == 1 else f"{self.periods} periods"
        lines = [
            f"{trajectory.duration:.1f} s, {periods} of frequencies from {series.base_frequency:g} to "
            f"{series.n_harmonics * series.base_frequency:g} Hz, condition number {condition_number:.3g} of "
            f"{n_parameters} base parameters"
        ]
        peaks = zip(series.joint_names, self.limits.units, *series.peaks(), strict=True)
        for name, unit, low, high, speed, acceleration in peaks:
            span = format_range(low, high, unit)
            lines.append(f"{name}: {span}, up to {speed:.2f} {unit}/s and {acceleration:.2f} {unit}/s²")
        if not condition_number <= MAX_CONDITION_NUMBER:
            remedy = "let joints move further (limits, base_frequency), or give more design_time"
            hint = "; ".join(self.hints()) or remedy
            lines.append(f"warning: condition number above {MAX_CONDITION_NUMBER:g}; {hint}")
        rounded = [np.round(values, 9).tolist() for values in (series.offset, series.sine, series.cosine)]
        return FourierPlan(
            trajectory=trajectory,
            format=fourier.FOURIER_FORMAT,
            facts={
                "base_frequency": series.base_frequency,
                "harmonics": series.n_harmonics,
                "periods": self.periods,
                "seed": self.seed,
                "criterion": self.criterion,
                "starts": result.starts,
                "condition_number": round(condition_number, 3),
                "base_parameters": n_parameters,
                "joints": {
                    name: {"offset": offset, "sine": sine, "cosine": cosine}
                    for name, offset, sine, cosine in zip(series.joint_names, *rounded, strict=True)
                },
            },
            lines=tuple(lines),
            series=series,
            condition_number=condition_number,
            singular_values=tuple(np.sqrt(np.maximum(eigenvalues, 0))),
            criterion=self.criterion,
            value=result.best.value,
            starts=result.starts,
            history=tuple(result.history),
        )


def _held_positions(held: Mapping[str, float], limits: MotionLimits) -> NDArray:
    """Return the positions (n,) of joints that do not move, NaN for the others."""
    names = limits.joint_names
    unknown = sorted(set(held) - set(names))
    if unknown:
        raise TrajectoryError(f"held: no joint {', '.join(unknown)}; the joints: {', '.join(names)}")
    if len(held) == len(names):
        raise TrajectoryError("held: all joints are; one at least must move")
    positions = np.array([held.get(name, np.nan) for name in names])
    for name, position, low, high in zip(names, positions, limits.lower, limits.upper, strict=True):
        if not (np.isnan(position) or low <= position <= high):
            raise TrajectoryError(f"held: joint '{name}' at {position:g} is not within {low:g} to {high:g}")
    return positions


def flexible_excitation(
    robot: RobotModel,
    limits: MotionLimits,
    joints: FlexibleJoints,
    workspace: Workspace | None = None,
    *,
    base_frequency: float,
    harmonics: int = 8,
    held: Mapping[str, float] | None = None,
    stiffness: bool = False,
    noise: ArrayLike = 1.0,
    speed_fraction: float = 0.5,
    **settings: Any,
) -> FourierExcitation:
    """Return an experiment with motor motions for an arm with flexible joints (Lightcap and Banks 2007, section II.B).

    Torque limits bound the deflection of the springs. Without them, the motion approaches a resonance until the
    prediction of the deflections diverges.

    Args:
        robot: the arm; its nominal parameters are the prior of the links.
        limits: limits of the motors, at the link side.
        joints: prior of springs, motors and friction.
        workspace: bounds of the links; deflections are not included, so leave space for them.
        base_frequency: frequency of the first harmonic, Hz, see `proposed_base_frequency`.
        harmonics: number of harmonics.
        held: positions of motors that brakes hold, by joint; the paper moves one joint at a time.
        stiffness: estimate the stiffness too (eq. 3); without, the parameters of eq. 6.
        noise: standard deviation of the torques, one value or (n,), N m or N; only the ratios between joints matter.
        speed_fraction: fraction of the velocity limits used.
        settings: other settings of `FourierExcitation`.

    Raises:
        TrajectoryError: a setting makes no sense.
    """
    motion = {"base_frequency": base_frequency, "harmonics": harmonics, "held": held}
    speeds = speed_fraction * limits.velocity
    source = FlexibleInformation(robot, joints, speeds, stiffness=stiffness, noise=noise, **motion)  # type: ignore[arg-type]
    return FourierExcitation(
        robot,
        limits,
        workspace,  # type: ignore[arg-type]
        source=source,
        speed_fraction=speed_fraction,
        **motion,  # type: ignore[arg-type]
        **settings,
    )
