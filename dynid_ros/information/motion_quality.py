"""Is this motion enough? What it shows, how well, what it does not, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.estimation.identifiability import Identifiability
from dynid_ros.identified.section import as_number, as_numbers
from dynid_ros.information.helpful_motions import HelpfulMotion, MotionSearch
from dynid_ros.information.motion_coverage import MotionCoverage
from dynid_ros.information.torque_information import LINKS, TorqueColumns, checked_noise
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import joint_samples
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.trajectories.limits import MotionLimits

MATTERS = 1.0
"""Error of the torque, in its noise, from which on the error of a parameter makes it weak."""
CONFUSED = 5.0
"""Inflation from which on a parameter is weak for being confused with others."""
LISTED = 10
"""Parameters listed in a summary."""
USUAL_SAMPLES = 1000
"""Samples spread at random over all limits, that a motion is compared with."""


@dataclass(frozen=True)
class WeakParameter:
    """A parameter that the motion determines badly.

    Attributes:
        expression: of the base parameter.
        name: the parameter that leads it.
        standard_error: for the noise of the torques, in `unit`.
        unit: of both.
        effect: by how much such an error moves the torques of motions all over the limits, RMS, in their noise.
        excess: the standard error over that of as many samples spread at random over all limits.
        inflation: the standard error over that with all other parameters known.
        confused_with: what leads the parameter whose error goes most with this one's.
        correlation: of both errors.
    """

    expression: str
    name: str
    standard_error: float
    unit: str
    effect: float
    excess: float
    inflation: float
    confused_with: str
    correlation: float

    def __str__(self) -> str:
        text = f"{self.expression}: ± {self.standard_error:.2g} {self.unit}, {self.effect:.2g} times the noise in "
        text += f"torques all over the limits, {self.excess:.0f} times what such motions leave"
        if self.inflation < CONFUSED:
            return f"{text}; hardly excited"
        other = f"{self.confused_with} passes for it (correlation {self.correlation:+.2f})"
        return f"{text}; {other}, it would be {self.inflation:.0f} times less with all else known"


@dataclass(frozen=True, eq=False)
class MotionQuality:
    """Which base parameters of an arm the torques of a motion determine, how well, and what would help.

    Standard errors are for independent noise in the torques; what the model misses comes on top.

    Attributes:
        columns: the parameters; those that no motion determines are its `hidden`.
        motion: what the motion covers, and the limits.
        noise: (n,) standard deviation of the torques, N m or N.
        of_joints: (n, k, k) normal equations of each torque.
        usual_of_joints: (n, k, k) those of as many samples spread at random over all limits.
        allowed: whether the arm may be at positions (N, n), (N,) bool; None: it may be anywhere.
        assumed_noise: whether nothing is known of the noise, and 1 N m or N was taken for it.
    """

    columns: TorqueColumns
    motion: MotionCoverage
    noise: NDArray
    of_joints: NDArray = field(repr=False)
    usual_of_joints: NDArray = field(repr=False)
    allowed: Callable[[NDArray], NDArray] | None = None
    assumed_noise: bool = False

    @classmethod
    def of(
        cls,
        robot: RobotModel,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        friction: FrictionModel | JointFriction | None = None,
        *,
        noise: ArrayLike | None = None,
        rate: float | None = None,
        model: str = LINKS,
        limits: MotionLimits | None = None,
        allowed: Callable[[NDArray], NDArray] | None = None,
    ) -> MotionQuality:
        """Judge samples (N, n) of a motion.

        Args:
            robot: the arm.
            q: positions, rad or m.
            qd: velocities, per s.
            qdd: accelerations, per s².
            friction: terms of the joints; None: those of `torque_columns.FRICTION`.
            noise: standard deviation of each sample of torque, one or (n,), N m or N; None: 1.
            rate: samples per second; None: not known.
            model: "links", "gravity" or "load", see `TorqueColumns`.
            limits: what the joints might do; None: see `usual_limits`.
            allowed: whether the arm may be at positions (N, n), (N,) bool, as `Workspace.allowed`.

        Raises:
            TrajectoryError: too few samples, values that are not finite, no motion, a setting that makes no sense.
            ModelError: arrays of unlike shapes, or of another number of joints.
        """
        columns = TorqueColumns(robot, friction, model)
        return cls.of_columns(columns, q, qd, qdd, noise=noise, rate=rate, limits=limits, allowed=allowed)

    @classmethod
    def of_columns(
        cls,
        columns: TorqueColumns,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        noise: ArrayLike | None = None,
        rate: float | None = None,
        limits: MotionLimits | None = None,
        allowed: Callable[[NDArray], NDArray] | None = None,
    ) -> MotionQuality:
        """As `of`, of what is asked by `columns`."""
        robot = columns.robot
        position, velocity, acceleration = joint_samples(robot.joint_names, q=q, qd=qd, qdd=qdd)
        motion = MotionCoverage.of(robot, [(position, velocity, acceleration)], len(position), rate, limits)
        known = checked_noise(robot, noise)
        information = columns.information((position, velocity, acceleration))
        return cls.of_information(columns, motion, known, information, allowed, assumed_noise=noise is None)

    @classmethod
    def of_information(
        cls,
        columns: TorqueColumns,
        motion: MotionCoverage,
        noise: NDArray,
        information: NDArray,
        allowed: Callable[[NDArray], NDArray] | None = None,
        *,
        assumed_noise: bool = False,
    ) -> MotionQuality:
        """Judge normal equations (n, k, k) of `columns` that were summed already; the noise is (n,)."""
        limits = motion.limits
        rng = np.random.default_rng(0)
        position, velocity, acceleration = rng.uniform(-1.0, 1.0, (3, USUAL_SAMPLES, len(noise)))
        middle, half = (limits.lower + limits.upper) / 2, (limits.upper - limits.lower) / 2
        spread = (middle + half * position, limits.velocity * velocity, limits.acceleration * acceleration)
        usual = columns.information(spread) * motion.samples / USUAL_SAMPLES
        return cls(columns, motion, noise, information, usual, allowed, assumed_noise)

    @cached_property
    def information(self) -> NDArray:
        """(k, k) normal equations of all torques, weighted by their noise."""
        return np.einsum("jkl,j->kl", self.of_joints, self.noise**-2)

    @cached_property
    def usual(self) -> NDArray:
        """(k, k) those of as many samples spread at random over all limits."""
        return np.einsum("jkl,j->kl", self.usual_of_joints, self.noise**-2)

    @cached_property
    def identifiability(self) -> Identifiability:
        """Which parameters the normal equations determine."""
        return Identifiability.of(self.information, self.usual)

    @property
    def rank(self) -> int:
        """Number of combinations of parameters that the motion determines."""
        return self.identifiability.rank

    @property
    def full_rank(self) -> int:
        """Number of combinations that some motion determines."""
        return self.columns.size

    @property
    def condition_number(self) -> float:
        """Condition number of the weighted regressor with columns of unit norm; infinite where the rank is short."""
        return self.identifiability.condition_number

    @property
    def unscaled(self) -> float:
        """Condition number of the columns as they are, which depends on units."""
        return self.identifiability.unscaled

    @property
    def singular_values(self) -> NDArray:
        """(k,) of the weighted regressor with columns of unit norm, descending."""
        return self.identifiability.singular_values

    @property
    def standard_errors(self) -> NDArray:
        """(k,) of the base parameters in `columns.units`; infinite: not determined."""
        return self.identifiability.standard_errors

    @cached_property
    def effects(self) -> NDArray:
        """(k,) what standard errors do to the torques of motions all over the limits, RMS, in units of their noise."""
        return self.standard_errors * np.sqrt(np.diag(self.usual) / self.motion.samples)

    @cached_property
    def excess(self) -> NDArray:
        """(k,) standard errors over those of as many samples spread at random over all limits."""
        return self.standard_errors / Identifiability.of(self.usual, self.usual).standard_errors

    @property
    def missing(self) -> tuple[str, ...]:
        """Expressions of base parameters that this motion does not determine, though another would."""
        return tuple(
            e for e, known in zip(self.columns.expressions, self.identifiability.identifiable, strict=True) if not known
        )

    @property
    def unmoved(self) -> tuple[str, ...]:
        """Those of them without any effect on the torques of this motion."""
        return tuple(
            e for e, norm in zip(self.columns.expressions, self.identifiability.norms, strict=True) if not norm
        )

    @cached_property
    def together(self) -> tuple[str, ...]:
        """Return the sums that the motion determines, "Iyy4 + Ixx5", each named by the parameter that leads it."""
        return tuple(combination(row, self.columns.names) for row in self.identifiability.combinations())

    @cached_property
    def weak(self) -> tuple[WeakParameter, ...]:
        """Determined parameters whose errors would show in torques, what moves them most first."""
        known, found = self.identifiability, []
        for i in map(int, np.flatnonzero(known.identifiable & (self.effects > MATTERS))):
            other, correlation = known.partner(i)
            found.append(
                WeakParameter(
                    self.columns.expressions[i],
                    self.columns.names[i],
                    float(self.standard_errors[i]),
                    self.columns.units[i],
                    float(self.effects[i]),
                    float(self.excess[i]),
                    float(known.inflation[i]),
                    self.columns.names[other],
                    correlation,
                )
            )
        return tuple(sorted(found, key=lambda parameter: -parameter.effect))

    @cached_property
    def joint_ranks(self) -> NDArray:
        """(n,) number of combinations of parameters that the torque of each joint alone determines."""
        pairs = zip(self.of_joints, self.usual_of_joints, strict=True)
        return np.array([Identifiability.of(own, usual).rank for own, usual in pairs])

    @property
    def prediction(self) -> NDArray:
        """(n,) what all errors together do to the torques of motions all over the limits, RMS, N m or N.

        Infinite where a parameter is missing.
        """
        if self.missing:
            return np.full(len(self.noise), np.inf)
        mean = self.usual_of_joints / self.motion.samples
        return np.sqrt(np.einsum("kl,jkl->j", self.identifiability.covariance, mean))

    @property
    def enough(self) -> bool:
        """Whether the motion determines all parameters, and none so badly that it would show in torques."""
        return not self.missing and not self.weak

    @cached_property
    def helpful(self) -> tuple[HelpfulMotion, ...]:
        """Motions to add, each after those before it; of what is missing and weak, else of the worst tenth."""
        asked = np.flatnonzero(~(self.effects <= MATTERS))
        if not len(asked):
            asked = np.argsort(self.effects)[-max(1, self.full_rank // 10) :]
        search = MotionSearch(self.columns, self.motion, self.noise, self.usual, self.allowed)
        return search.best(self.information, asked)

    @property
    def advice(self) -> list[str]:
        """Sentences, what helps most first."""
        return [motion.text for motion in self.helpful]

    def summary(self) -> str:
        """Verdict, numbers, what is missing and what is weak, what would help, a line each."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        columns, motion = self.columns, self.motion
        yield "enough: no parameter is so uncertain that torques show it" if self.enough else "not enough"
        rate = "" if motion.rate is None else f" ({motion.samples / motion.rate:.1f} s)"
        yield (
            f"rank {self.rank} of {self.full_rank}, condition number {self.condition_number:.3g} "
            f"(unscaled {self.unscaled:.3g}), {motion.samples} samples{rate}"
        )
        noise = ", ".join(f"{value:.3g}" for value in self.noise)
        assumed = "not known, taken as 1" if self.assumed_noise else noise
        yield f"noise of the torques [N m, N]: {assumed}"
        if columns.hidden:
            yield f"no motion of this arm shows {', '.join(columns.hidden)}; that is no fault of this one"
        if not self.missing:
            errors = ", ".join(f"{value:.2g}" for value in self.prediction)
            yield f"errors of the parameters move the torques of motions all over the limits by [N m, N]: {errors}"
        unmoved = set(self.unmoved)
        yield from _list("without any effect in this motion", self.unmoved)
        yield from _list("not distinguished", [e for e in self.missing if e not in unmoved])
        yield from _list("of those only sums are determined, of what leads them", self.together)
        yield from _list("weak", [str(parameter) for parameter in self.weak])
        still = "still " if self.enough else ""
        yield from _list(f"what would {still}help, other joints in the middle of what they did", self.advice)

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML; infinite numbers are None."""
        names = self.motion.limits.joint_names
        rows = zip(self.columns.expressions, self.columns.units, self.standard_errors, self.effects, strict=True)
        return {
            "model": self.columns.model,
            "enough": self.enough,
            "samples": self.motion.samples,
            "rate": self.motion.rate,
            "rank": self.rank,
            "full_rank": self.full_rank,
            "joint_ranks": [int(rank) for rank in self.joint_ranks],
            "condition_number": as_number(self.condition_number),
            "unscaled_condition_number": as_number(self.unscaled),
            "singular_values": [float(value) for value in self.singular_values],
            "noise": None if self.assumed_noise else [float(value) for value in self.noise],
            "prediction": as_numbers(self.prediction),
            "hidden": list(self.columns.hidden),
            "missing": list(self.missing),
            "together": list(self.together),
            "parameters": [
                {"expression": expression, "unit": unit, "std": as_number(error), "effect": as_number(effect)}
                for expression, unit, error, effect in rows
            ],
            "weak": [asdict(parameter) for parameter in self.weak],
            "advice": [_advice(helpful, names) for helpful in self.helpful],
        }


def _advice(helpful: HelpfulMotion, names: Sequence[str]) -> dict[str, object]:
    motion = helpful.motion
    return {
        "text": helpful.text,
        "joints": {
            names[joint]: {"amplitude": amplitude, "speed": speed}
            for joint, amplitude, speed in zip(motion.joints, motion.amplitudes, motion.speeds, strict=True)
        },
        "pose": dict(zip(names, map(float, motion.pose), strict=True)),
        "period": motion.period,
        "duration": helpful.duration,
        "std_before": {name: as_number(value) for name, value in helpful.before.items()},
        "std_after": {name: as_number(value) for name, value in helpful.after.items()},
    }


def combination(shares: NDArray, names: Sequence[str]) -> str:
    """A sum of parameters to read, such as "Iyy5 - 2.1 Izz4"."""
    text = ""
    for i in sorted(map(int, np.flatnonzero(shares)), key=lambda i: shares[i] != 1.0):
        sign = "-" if shares[i] < 0 else "+"
        size = f"{abs(shares[i]):.4g}"
        term = names[i] if size == "1" else f"{size} {names[i]}"
        text = f"{text} {sign} {term}" if text else term
    return text


def _list(head: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"{head} ({len(items)}):"
        yield from (f"  {item}" for item in items[:LISTED])
        if len(items) > LISTED:
            yield f"  and {len(items) - LISTED} more"
