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
from dynid_ros.excitation.experiment import GuardedExperiment, require
from dynid_ros.excitation.fourier_search import MotionSearch
from dynid_ros.excitation.parallel_search import Outcome, Progress, best_motion
from dynid_ros.information.criteria import CRITERIA, Condition
from dynid_ros.information.flexible_information import FlexibleInformation
from dynid_ros.information.steady_state import FlexibleJoints
from dynid_ros.information.torque_information import LINKS, InformationSource, TorqueInformation
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.limits import MotionLimits, check_limits
from dynid_ros.trajectories.trajectory import LONGEST, Trajectory
from dynid_ros.trajectories.workspace import Workspace

# A planned Fourier motion: the series, its repetitions and how well it is conditioned.


WEAK = 100.0
"""Condition number above which the parameters are hard to distinguish (Schröer, Uhl, Albright and Huttenhofer 1992)."""


@dataclass(frozen=True, eq=False)
class FourierPlan:
    """What `FourierExcitation.plan` returns.

    Attributes:
        series: one period.
        periods: how often it is repeated.
        units: "rad" or "m" for each joint.
        condition_number: of the regressor, its columns brought to unit norm (see `Condition`), with what was known.
        singular_values: of that regressor, largest first.
        n_parameters: parameters that it counts, with friction and drives.
        criterion: what the search made small.
        value: what it reached.
        starts: searches made.
        history: time (s) and value of each better motion that was found.
        seed: of the random motions.
        hints: what keeps the arm from moving far, and how there is more room.
    """

    series: FourierSeries
    periods: int
    units: tuple[str, ...]
    condition_number: float
    singular_values: tuple[float, ...]
    n_parameters: int
    criterion: str
    value: float
    starts: int
    history: tuple[tuple[float, float], ...]
    seed: int
    hints: tuple[str, ...] = ()

    @cached_property
    def trajectory(self) -> Trajectory:
        """All periods, from rest to rest."""
        return self.series.trajectory(self.periods)

    @property
    def duration(self) -> float:
        """Duration of the motion, s."""
        return self.periods * self.series.period

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML; the coefficients are those of `FourierSeries`."""
        series = self.series
        return {
            "format": "dynid-fourier/1",
            "duration": round(self.duration, 4),
            "base_frequency": series.base_frequency,
            "harmonics": series.n_harmonics,
            "periods": self.periods,
            "seed": self.seed,
            "criterion": self.criterion,
            "starts": self.starts,
            "condition_number": round(self.condition_number, 3),
            "base_parameters": self.n_parameters,
            "joints": {
                name: {"offset": _plain(offset), "sine": _plain(sine), "cosine": _plain(cosine)}
                for name, offset, sine, cosine in zip(
                    series.joint_names, series.offset, series.sine, series.cosine, strict=True
                )
            },
        }

    def summary(self) -> str:
        """Lines of text: duration, spectrum, condition number, range and speed of each joint."""
        series = self.series
        counted = "1 period" if self.periods == 1 else f"{self.periods} periods"
        lines = [
            f"{self.duration:.1f} s, {counted} of frequencies from {series.base_frequency:g} to "
            f"{series.n_harmonics * series.base_frequency:g} Hz, condition number {self.condition_number:.3g} of "
            f"{self.n_parameters} base parameters"
        ]
        for name, unit, low, high, speed, most in zip(series.joint_names, self.units, *series.largest(), strict=True):
            ends = [f"{np.rad2deg(end):.0f}°" if unit == "rad" else f"{end:.3f} m" for end in (low, high)]
            lines.append(f"{name}: {' to '.join(ends)}, up to {speed:.2f} {unit}/s and {most:.2f} {unit}/s²")
        if not self.condition_number <= WEAK:
            usual = "let joints move further (limits, base_frequency), or give more design_time"
            lines.append(f"warning: condition number above {WEAK:g}; {'; '.join(self.hints) or usual}")
        return "\n".join(lines)


def _plain(values: NDArray) -> object:
    return np.round(values, 9).tolist()


MOST_WORKERS = 4
NOISE = 0.01
"""Noise in parts of a torque limit, where nothing else is known of it; only its proportions matter to a design."""


class FourierExcitation(GuardedExperiment):
    """Plans a periodic motion of all joints by optimisation.

    Random motions are improved one after the other, until time is up: each is made as informative as its limits allow.
    The nominal model serves for torques and, with what it weighs, for nothing else: which motion excites most depends
    on lengths and axes alone.

    Args:
        robot: the arm.
        limits: what the joints may do.
        workspace: where the links may be; None: anywhere.
        base_frequency: Hz; a period takes 1 / base_frequency.
        harmonics: of the base frequency, at least 2.
        periods: how often the period is repeated.
        target: what is asked for: "links", "gravity" or "load" (see `TorqueInformation`).
        drive: terms of each joint that are asked for besides the links; None: those of the target.
        criterion: what is made as small as can be: "determinant", "condition" or "condition_unscaled". Only the first
            rewards a motion for being large.
        noise: standard deviation of the torques, one value or (n,), N m or N; None: in proportion to the torque limits,
            or the same in all joints where these are not known.
        columns: parameters that stand for the base parameters; None: our own choice.
        source: what a motion excites, in place of target, drive, noise and columns.
        held: positions of joints that stand still, rad or m; those of the others are sought.
        known: (p, p) information there is already (`TorqueInformation.over_time`), which the motion is to add to.
        design_time: s, for the search; 0: the best of the random motions.
        candidates: random motions drawn to start with.
        starts: most searches; None: as many as there is time for. With it the motion is the same again.
        workers: processes that search, or searches side by side in `executor`; 0: one per core, up to 4.
        executor: makes the slices of the search; None: processes of this machine.
        seed: of the random motions.
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
        base_frequency: float = 0.05,
        harmonics: int = 10,
        periods: int = 1,
        target: str = LINKS,
        drive: JointFriction | None = None,
        criterion: str = "determinant",
        noise: ArrayLike | None = None,
        columns: ArrayLike | None = None,
        source: InformationSource | None = None,
        held: Mapping[str, float] | None = None,
        known: NDArray | None = None,
        design_time: float = 30.0,
        candidates: int = 10,
        starts: int | None = None,
        workers: int = 0,
        executor: Executor | None = None,
        seed: int = 0,
        **guards: Any,
    ) -> None:
        super().__init__(robot, limits, workspace, **guards)
        self.periods, self.design_time, self.candidates, self.starts = periods, design_time, candidates, starts
        self.fastest = harmonics * base_frequency
        self.executor, self.workers = executor, workers or min(len(os.sched_getaffinity(0)), MOST_WORKERS)
        require(
            (
                "base_frequency",
                base_frequency,
                1 / LONGEST <= base_frequency < np.inf,
                f"positive, and a period of at most {LONGEST / 3600:g} h",
            ),
            ("harmonics", harmonics, harmonics >= 2, "at least 2: fewer cannot start and end at rest"),
            ("periods", periods, periods >= 1, "at least 1"),
            ("criterion", criterion, criterion in CRITERIA, " or ".join(CRITERIA)),
            ("design_time", design_time, 0 <= design_time < np.inf, "zero or more, s"),
            ("candidates", candidates, candidates >= 1, "at least 1"),
            ("starts", starts, starts is None or starts >= 0, "zero or more"),
            ("workers", workers, workers >= 0, "zero or more"),
            ("seed", seed, seed >= 0, "zero or more"),
        )
        noise = _usual_noise(limits) if noise is None else noise
        self.information: InformationSource = source or TorqueInformation(
            robot, self.room.velocity, target=target, drive=drive, noise=noise, columns=columns
        )
        self._search = MotionSearch(
            robot,
            self.room,
            self.workspace,
            self.information,
            CRITERIA[criterion],
            base_frequency,
            harmonics,
            None if known is None else known * base_frequency / periods,
            seed,
            _positions(held, self.room) if held else None,
        )

    def plan(self, progress: Progress | None = None) -> FourierPlan:
        """Search for the motion.

        Args:
            progress: gets the part of the time that is past and the best motion so far, a few times a second; what it
                raises ends the search.

        Raises:
            TrajectoryError: no pose, or none of the motions, keeps to limits and workspace; says what is in the way.
            WorkerError: workers are lost, again and again.
        """
        try:
            outcome = best_motion(
                self._search,
                seconds=self.design_time,
                candidates=self.candidates,
                starts=self.starts,
                workers=self.workers,
                executor=self.executor,
                progress=progress,
            )
        except TrajectoryError as error:
            raise TrajectoryError("; ".join([str(error), *self.hints()])) from error
        best = outcome.best
        if best.excess == np.inf:
            raise TrajectoryError(f"no motion is found: {best.obstacle}")
        if not best.feasible:
            raise TrajectoryError(
                f"none of {self.candidates} random motions and {outcome.starts} searches keeps to limits and "
                f"workspace; the nearest one exceeds {best.obstacle} by {100 * best.excess:.0f} % (of 0.1 m, if it is "
                f"a distance): {'; '.join(self.hints()) or 'give it more room, or more design_time'}"
            )
        plan = self._described(best.series, outcome)
        check_limits(plan.trajectory, self.limits)
        # The search has checked the torques that another source foresees.
        space = self.space if isinstance(self.information, TorqueInformation) else self.workspace
        space.check(plan.trajectory)
        return plan

    def _described(self, series: FourierSeries, outcome: Outcome) -> FourierPlan:
        information = self._search.information(series)
        norms = np.sqrt(np.diag(information))
        condition_number = Condition().value(information)
        return FourierPlan(
            series=series,
            periods=self.periods,
            units=self.limits.units,
            condition_number=condition_number,
            singular_values=tuple(
                np.sqrt(np.maximum(np.linalg.eigvalsh(information / np.outer(norms, norms))[::-1], 0))
            ),
            n_parameters=len(self.information.names),
            criterion=self._search.criterion.name,
            value=outcome.best.value,
            starts=outcome.starts,
            history=tuple(outcome.history),
            seed=self._search.seed,
            hints=() if condition_number <= WEAK else tuple(self.hints()),
        )


def _positions(held: Mapping[str, float], limits: MotionLimits) -> NDArray:
    """(n,) positions of joints that stand still, NaN for the others."""
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


def _usual_noise(limits: MotionLimits) -> NDArray:
    """(n,) N m or N."""
    return NOISE * limits.torque if np.isfinite(limits.torque).all() else np.ones(len(limits.joint_names))


# Motions of motors that are most informative on an arm with flexible joints (Lightcap and Banks 2007, section II.B).


def flexible_excitation(
    robot: RobotModel,
    limits: MotionLimits,
    joints: FlexibleJoints,
    workspace: Workspace | None = None,
    *,
    base_frequency: float,
    harmonics: int = 8,
    criterion: str = "determinant",
    held: dict[str, float] | None = None,
    stiffness: bool = False,
    noise: ArrayLike = 1.0,
    speed_fraction: float = 0.5,
    **settings: Any,
) -> FourierExcitation:
    """Design of a periodic motion of the motors, whose links follow behind springs.

    Limits are those of the motors, seen from the links. Torque limits keep the springs from winding up: without them a
    design goes near a resonance as far as the prediction lets it.

    Args:
        robot: the arm; its nominal parameters are the prior of the links.
        limits: of the motors.
        joints: prior of springs, motors and friction.
        workspace: where the links may be; it is checked without deflections, so leave room for them.
        base_frequency: Hz, see `proposed_base_frequency`.
        harmonics: of the base frequency.
        criterion: "determinant", or a condition number as in the paper, which does not care how large a motion is.
        held: positions of the motors that brakes hold, by joint; the paper moves one joint at a time.
        stiffness: ask for the stiffness too (eq. 3); without, for what is in eq. 6.
        noise: standard deviation of the torques, one value or (n,), N m or N.
        speed_fraction: part of the velocity limits used.
        settings: others of `FourierExcitation`.

    Raises:
        TrajectoryError: a setting makes no sense.
    """
    source = FlexibleInformation(
        robot,
        joints,
        speed_fraction * limits.velocity,
        base_frequency=base_frequency,
        harmonics=harmonics,
        held=held,
        stiffness=stiffness,
        noise=noise,
    )
    return FourierExcitation(
        robot,
        limits,
        workspace,
        base_frequency=base_frequency,
        harmonics=harmonics,
        criterion=criterion,
        source=source,
        held=held,
        speed_fraction=speed_fraction,
        **settings,
    )
