"""Assessment of a motion: which parameters it determines, and how well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.estimation.rank import Identifiability
from dynid_ros.identified.identified_file import as_number, as_numbers
from dynid_ros.information.motion_coverage import MotionCoverage
from dynid_ros.information.torque_information import LINKS, TorqueColumns, checked_noise
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import joint_samples
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.trajectories.limits import MotionLimits

MAX_EFFECT = 1.0
"""Largest effect of a parameter's error on torques, relative to their noise, of a well-determined parameter."""
MIN_INFLATION = 5.0
"""Inflation of the standard error above which the correlation with another parameter is named as the cause."""
MAX_LISTED = 10
"""Number of entries of a list in the summary."""
N_REFERENCE_SAMPLES = 1000
"""Random samples all over the limits, the reference for a motion."""


@dataclass(frozen=True)
class WeakParameter:
    """A parameter that the motion determines badly.

    Attributes:
        name: name of its leading parameter.
        standard_error: standard error for the noise of the torques, in `unit`.
        effect: RMS effect of the standard error on the torques of motions all over the limits, relative to their noise.
        excess: ratio of the standard error to that of as many random samples all over the limits.
        inflation: ratio of the standard error to that with all other parameters known.
        confused_with: leading parameter of the estimate with the largest correlation.
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
        text = (
            f"{self.expression}: ± {self.standard_error:.2g} {self.unit}, {self.effect:.2g} times the noise in torques "
            f"all over the limits, {self.excess:.0f} times the error after random motions over the limits"
        )
        if self.inflation < MIN_INFLATION:
            return f"{text}; hardly excited"
        return (
            f"{text}; hardly distinguished from {self.confused_with} (correlation {self.correlation:+.2f}), the error "
            f"would be {self.inflation:.0f} times smaller with all other parameters known"
        )


@dataclass(frozen=True, eq=False)
class MotionQuality:
    """Base parameters that the torques of a motion determine, and their standard errors.

    Standard errors assume independent noise in the torques. They contain no errors of the model.

    Attributes:
        columns: parameters; no motion determines its `hidden` ones.
        motion: coverage of the motion, with the limits.
        noise: (n,) standard deviation of the torques, N m or N.
        joint_information: (n, k, k) normal equations of each torque.
        joint_reference: (n, k, k) normal equations of as many random samples all over the limits.
        assumed_noise: whether the noise is unknown, and 1 N m or N was assumed.
    """

    columns: TorqueColumns
    motion: MotionCoverage
    noise: NDArray
    joint_information: NDArray = field(repr=False)
    joint_reference: NDArray = field(repr=False)
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
        columns: TorqueColumns | None = None,
    ) -> MotionQuality:
        """Judge samples (N, n) of a motion.

        Args:
            robot: the arm.
            q: positions, rad or m.
            qd: velocities, per s.
            qdd: accelerations, per s².
            friction: friction terms of the joints; None: `torque_information.FRICTION`.
            noise: standard deviation of each sample of torque, one value or (n,), N m or N; None: 1.
            rate: samples per second; None: unknown.
            model: "links", "gravity" or "load", see `TorqueColumns`.
            limits: limits that a motion might use; None: see `usual_limits`.
            columns: parameters in place of `friction` and `model`; None: those of these two.

        Raises:
            TrajectoryError: too few samples, values that are not finite, no motion, or an invalid setting.
            ModelError: arrays of different shapes, or of another number of joints.
        """
        columns = columns or TorqueColumns(robot, friction, model)
        motion = joint_samples(robot.joint_names, q=q, qd=qd, qdd=qdd)
        coverage = MotionCoverage.from_stretches(robot, [motion], len(motion[0]), rate, limits)
        deviations = checked_noise(robot, noise)
        information = columns.information(motion)
        return cls.from_information(columns, coverage, deviations, information, assumed_noise=noise is None)

    @classmethod
    def from_information(
        cls,
        columns: TorqueColumns,
        motion: MotionCoverage,
        noise: NDArray,
        information: NDArray,
        *,
        assumed_noise: bool = False,
    ) -> MotionQuality:
        """Judge a motion by its normal equations.

        Args:
            columns: parameters.
            motion: coverage of the motion.
            noise: (n,) standard deviation of the torques.
            information: (n, k, k) normal equations of each torque.
            assumed_noise: whether the noise is unknown.
        """
        limits = motion.limits
        rng = np.random.default_rng(0)
        position, velocity, acceleration = rng.uniform(-1.0, 1.0, (3, N_REFERENCE_SAMPLES, len(noise)))
        middle = (limits.lower + limits.upper) / 2
        half_range = (limits.upper - limits.lower) / 2
        samples = (middle + half_range * position, limits.velocity * velocity, limits.acceleration * acceleration)
        reference = columns.information(samples) * motion.samples / N_REFERENCE_SAMPLES
        return cls(columns, motion, noise, information, reference, assumed_noise)

    @cached_property
    def information(self) -> NDArray:
        """Normal equations (k, k) of all torques, weighted by their noise."""
        return np.einsum("jkl,j->kl", self.joint_information, self.noise**-2)

    @cached_property
    def reference(self) -> NDArray:
        """Normal equations (k, k) of as many random samples all over the limits."""
        return np.einsum("jkl,j->kl", self.joint_reference, self.noise**-2)

    @cached_property
    def identifiability(self) -> Identifiability:
        """Identifiability of the parameters by the normal equations."""
        return Identifiability.of(self.information, self.reference)

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
        """Condition number of the weighted regressor with columns of unit norm; infinite if it is rank-deficient."""
        return self.identifiability.condition_number

    @property
    def unscaled(self) -> float:
        """Condition number without scaling of the columns, which depends on units."""
        return self.identifiability.unscaled

    @property
    def singular_values(self) -> NDArray:
        """Singular values (k,) of the weighted regressor with columns of unit norm, descending."""
        return self.identifiability.singular_values

    @property
    def standard_errors(self) -> NDArray:
        """Standard errors (k,) of the base parameters in `columns.units`; infinite: not determined."""
        return self.identifiability.standard_errors

    @cached_property
    def effects(self) -> NDArray:
        """RMS effects (k,) of the standard errors on torques all over the limits, relative to their noise."""
        return self.standard_errors * np.sqrt(np.diag(self.reference) / self.motion.samples)

    @cached_property
    def excess(self) -> NDArray:
        """Ratios (k,) of the standard errors to those of as many random samples all over the limits."""
        return self.standard_errors / Identifiability.of(self.reference, self.reference).standard_errors

    @property
    def missing(self) -> tuple[str, ...]:
        """Expressions of base parameters that this motion does not determine, though another one would."""
        is_determined = self.identifiability.identifiable
        return tuple(e for e, known in zip(self.columns.expressions, is_determined, strict=True) if not known)

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Missing expressions without any effect on the torques of this motion."""
        norms = self.identifiability.norms
        return tuple(e for e, norm in zip(self.columns.expressions, norms, strict=True) if not norm)

    @cached_property
    def determined_sums(self) -> tuple[str, ...]:
        """Sums of missing parameters that the motion determines, such as "Iyy4 + Ixx5", by leading parameters."""
        return tuple(combination(row, self.columns.names) for row in self.identifiability.combinations())

    @cached_property
    def weak(self) -> tuple[WeakParameter, ...]:
        """Determined parameters whose errors exceed the noise of torques, the largest effect first."""
        identifiability = self.identifiability
        weak = []
        for i in map(int, np.flatnonzero(identifiability.identifiable & (self.effects > MAX_EFFECT))):
            other, correlation = identifiability.partner(i)
            weak.append(
                WeakParameter(
                    expression=self.columns.expressions[i],
                    name=self.columns.names[i],
                    standard_error=float(self.standard_errors[i]),
                    unit=self.columns.units[i],
                    effect=float(self.effects[i]),
                    excess=float(self.excess[i]),
                    inflation=float(identifiability.inflation[i]),
                    confused_with=self.columns.names[other],
                    correlation=correlation,
                )
            )
        return tuple(sorted(weak, key=lambda parameter: -parameter.effect))

    @cached_property
    def joint_ranks(self) -> NDArray:
        """Numbers (n,) of combinations of parameters that the torque of each joint alone determines."""
        pairs = zip(self.joint_information, self.joint_reference, strict=True)
        return np.array([Identifiability.of(information, reference).rank for information, reference in pairs])

    @property
    def prediction(self) -> NDArray:
        """RMS errors (n,) of predicted torques all over the limits, N m or N; infinite if a parameter is missing."""
        if self.missing:
            return np.full(len(self.noise), np.inf)
        mean = self.joint_reference / self.motion.samples
        return np.sqrt(np.einsum("kl,jkl->j", self.identifiability.covariance, mean))

    @property
    def enough(self) -> bool:
        """Whether the motion determines all parameters, each to within the noise of torques."""
        return not self.missing and not self.weak

    def summary(self) -> str:
        """Return verdict, numbers, missing and weak parameters, in lines of text."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        columns = self.columns
        motion = self.motion
        yield "enough: no parameter is so uncertain that torques show it" if self.enough else "not enough"
        rate = "" if motion.rate is None else f" ({motion.samples / motion.rate:.1f} s)"
        yield (
            f"rank {self.rank} of {self.full_rank}, condition number {self.condition_number:.3g} "
            f"(unscaled {self.unscaled:.3g}), {motion.samples} samples{rate}"
        )
        noise = ", ".join(f"{value:.3g}" for value in self.noise)
        yield f"noise of the torques [N m, N]: {'not known, taken as 1' if self.assumed_noise else noise}"
        if columns.hidden:
            yield f"no motion of this arm shows {', '.join(columns.hidden)}; that is no fault of this one"
        if not self.missing:
            errors = ", ".join(f"{value:.2g}" for value in self.prediction)
            yield f"errors of the parameters move the torques of motions all over the limits by [N m, N]: {errors}"
        without_effect = set(self.without_effect)
        yield from _list_items("without any effect in this motion", self.without_effect)
        yield from _list_items("not distinguished", [e for e in self.missing if e not in without_effect])
        yield from _list_items("determined sums of these, by leading parameters", self.determined_sums)
        yield from _list_items("weak", [str(parameter) for parameter in self.weak])

    def as_dict(self) -> dict[str, object]:
        """Return plain data for YAML; infinite numbers are None."""
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
            "together": list(self.determined_sums),
            "parameters": [
                {"expression": expression, "unit": unit, "std": as_number(error), "effect": as_number(effect)}
                for expression, unit, error, effect in rows
            ],
            "weak": [asdict(parameter) for parameter in self.weak],
        }


def combination(weights: NDArray, names: Sequence[str]) -> str:
    """Format a linear combination of parameters, such as "Iyy5 - 2.1 Izz4"."""
    text = ""
    for i in sorted(map(int, np.flatnonzero(weights)), key=lambda i: weights[i] != 1.0):
        sign = "-" if weights[i] < 0 else "+"
        size = f"{abs(weights[i]):.4g}"
        term = names[i] if size == "1" else f"{size} {names[i]}"
        text = f"{text} {sign} {term}" if text else term
    return text


def _list_items(head: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"{head} ({len(items)}):"
        yield from (f"  {item}" for item in items[:MAX_LISTED])
        if len(items) > MAX_LISTED:
            yield f"  and {len(items) - MAX_LISTED} more"
