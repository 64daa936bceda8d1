"""Is this motion enough? What it shows, how well, what it does not, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.estimation.identifiability import Identifiability
from dynid_ros.identified.identified_file import as_number, as_numbers
from dynid_ros.information.helpful_motions import HelpfulMotion, MotionSearch
from dynid_ros.information.motion_coverage import MotionCoverage
from dynid_ros.information.torque_information import LINKS, TorqueColumns
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import joint_samples
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.trajectories.limits import MotionLimits, per_joint

# What the torques of a motion tell of base parameters, in numbers.


MATTERS = 1.0
"""Error of the torque, in its noise, from which on the error of a parameter makes it weak."""


# What a motion excites, in words and as plain data.


@dataclass(frozen=True)
class WeakParameter:
    """A parameter that the motion shows badly.

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
        told = f"{self.expression}: ± {self.standard_error:.2g} {self.unit}, {self.effect:.2g} times the noise in "
        told += f"torques all over the limits, {self.excess:.0f} times what such motions leave"
        if self.inflation < CONFUSED:
            return f"{told}; hardly excited"
        other = f"{self.confused_with} passes for it (correlation {self.correlation:+.2f})"
        return f"{told}; {other}, it would be {self.inflation:.0f} times less with all else known"


@dataclass(frozen=True, eq=False)
class EstimableParameters:
    """What the torques of a motion tell of the base parameters of an arm.

    Standard errors are for independent noise in the torques; what the model misses comes on top.

    Attributes:
        columns: what is asked; those parameters that no motion shows are its `hidden`.
        motion: what the motion covers, and the limits.
        noise: (n,) standard deviation of the torques, N m or N.
        of_joints: (n, k, k) normal equations of each torque.
        usual_of_joints: (n, k, k) those of as many samples spread at random over all limits.

    """

    columns: TorqueColumns
    motion: MotionCoverage
    noise: NDArray
    of_joints: NDArray = field(repr=False)
    usual_of_joints: NDArray = field(repr=False)

    @cached_property
    def information(self) -> NDArray:
        """(k, k) normal equations of all torques, weighted by their noise."""
        return self._weighted(self.of_joints)

    @cached_property
    def usual(self) -> NDArray:
        """(k, k) those of as many samples spread at random over all limits."""
        return self._weighted(self.usual_of_joints)

    def _weighted(self, of_joints: NDArray) -> NDArray:
        return np.einsum("jkl,j->kl", of_joints, self.noise**-2)

    @cached_property
    def determinacy(self) -> Identifiability:
        """What the normal equations decide."""
        return Identifiability.of(self.information, self.usual)

    @property
    def rank(self) -> int:
        """Combinations of parameters that the motion shows."""
        return self.determinacy.rank

    @property
    def full_rank(self) -> int:
        """Combinations that some motion shows."""
        return self.columns.size

    @property
    def condition_number(self) -> float:
        """Condition number of the weighted regressor with columns of unit norm; infinite where the rank is short."""
        return self.determinacy.condition_number

    @property
    def unscaled(self) -> float:
        """Condition number of the columns as they are, which depends on units."""
        return self.determinacy.unscaled

    @property
    def singular_values(self) -> NDArray:
        """(k,) of the weighted regressor with columns of unit norm, descending."""
        return self.determinacy.singular_values

    @property
    def standard_errors(self) -> NDArray:
        """(k,) of the base parameters in `columns.units`; infinite: not shown."""
        return self.determinacy.standard_errors

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
        """Expressions of base parameters that this motion does not decide, though another would."""
        return tuple(
            e for e, known in zip(self.columns.expressions, self.determinacy.decided, strict=True) if not known
        )

    @property
    def unmoved(self) -> tuple[str, ...]:
        """Those of them without any effect on the torques of this motion."""
        return tuple(e for e, norm in zip(self.columns.expressions, self.determinacy.norms, strict=True) if not norm)

    @cached_property
    def together(self) -> tuple[str, ...]:
        """Return the sums that the motion determines, "Iyy4 + Ixx5", each named by the parameter that leads it."""
        return tuple(combination(row, self.columns.names) for row in self.determinacy.combinations())

    @cached_property
    def weak(self) -> tuple[WeakParameter, ...]:
        """Decided parameters whose errors would show in torques, what moves them most first."""
        known, found = self.determinacy, []
        for i in map(int, np.flatnonzero(known.decided & (self.effects > MATTERS))):
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
        """(n,) combinations of parameters that the torque of each joint alone shows."""
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
        return np.sqrt(np.einsum("kl,jkl->j", self.determinacy.covariance, mean))


USUAL_SAMPLES = 1000


@dataclass(frozen=True, eq=False)
class MotionQuality(EstimableParameters):
    """Whether a motion is enough, and what would help.

    Attributes:
        allowed: tells of positions (N, n) whether the arm may be there; None: it may be anywhere.
        assumed_noise: whether nothing is known of the noise, and 1 N m or N was taken for it.

    """

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
        """Judge samples of a motion, (N, n) each.

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
            allowed: tells of positions (N, n) whether the arm may be there, (N,) bool, as `Workspace.allowed` does.

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

    @property
    def enough(self) -> bool:
        """Whether the motion determines all parameters, and none so badly that it would show in torques."""
        return not self.missing and not self.weak

    @cached_property
    def helpful(self) -> tuple[HelpfulMotion, ...]:
        """Motions to add, each after those before it; of what is missing and weak, else of the worst tenth."""
        open_ = np.flatnonzero(~(self.effects <= MATTERS))
        if not len(open_):
            open_ = np.argsort(self.effects)[-max(1, self.full_rank // 10) :]
        search = MotionSearch(self.columns, self.motion, self.noise, self.usual, self.allowed)
        return search.best(self.information, open_)

    @property
    def advice(self) -> list[str]:
        """Sentences, what helps most first."""
        return [motion.text for motion in self.helpful]

    def summary(self) -> str:
        """Lines of text."""
        return "\n".join(summary_lines(self))

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML; infinite numbers are None."""
        return quality_dict(self)


def checked_noise(robot: RobotModel, noise: ArrayLike | None) -> NDArray:
    """(n,) standard deviations of the torques; 1 where nothing is known.

    Raises:
        TrajectoryError: another number of them, or one that is not positive and finite; names the joint.

    """
    known = per_joint(1.0 if noise is None else noise, robot.joint_names, "noise")
    for name, value in zip(robot.joint_names, known, strict=True):
        if not (np.isfinite(value) and value > 0):
            raise TrajectoryError(
                f"the noise of {name} is {value:g}; it must be positive and finite, the standard deviation of its "
                "torque in N m or N"
            )
    return known


CONFUSED = 5.0
"""Inflation from which on a parameter is weak for being confused with others."""
LISTED = 10
"""Parameters listed in a summary."""


def summary_lines(quality: MotionQuality) -> Iterator[str]:
    """Verdict, numbers, what is missing and what is weak, what would help."""
    columns, motion = quality.columns, quality.motion
    yield "enough: no parameter is so uncertain that torques show it" if quality.enough else "not enough"
    rate = "" if motion.rate is None else f" ({motion.samples / motion.rate:.1f} s)"
    yield (
        f"rank {quality.rank} of {quality.full_rank}, condition number {quality.condition_number:.3g} "
        f"(unscaled {quality.unscaled:.3g}), {motion.samples} samples{rate}"
    )
    noise = ", ".join(f"{value:.3g}" for value in quality.noise)
    assumed = "not known, taken as 1" if quality.assumed_noise else noise
    yield f"noise of the torques [N m, N]: {assumed}"
    if columns.hidden:
        yield f"no motion of this arm shows {', '.join(columns.hidden)}; that is no fault of this one"
    if not quality.missing:
        errors = ", ".join(f"{value:.2g}" for value in quality.prediction)
        yield f"errors of the parameters move the torques of motions all over the limits by [N m, N]: {errors}"
    unmoved = set(quality.unmoved)
    yield from _list("without any effect in this motion", quality.unmoved)
    yield from _list("not distinguished", [e for e in quality.missing if e not in unmoved])
    yield from _list("of those only sums are shown, of what leads them", quality.together)
    yield from _list("weak", [str(parameter) for parameter in quality.weak])
    still = "still " if quality.enough else ""
    yield from _list(f"what would {still}help, other joints in the middle of what they did", quality.advice)


def quality_dict(quality: MotionQuality) -> dict[str, object]:
    """Plain data for YAML; infinite numbers are None."""
    names = quality.motion.limits.joint_names
    rows = zip(
        quality.columns.expressions, quality.columns.units, quality.standard_errors, quality.effects, strict=True
    )
    return {
        "model": quality.columns.model,
        "enough": quality.enough,
        "samples": quality.motion.samples,
        "rate": quality.motion.rate,
        "rank": quality.rank,
        "full_rank": quality.full_rank,
        "joint_ranks": [int(rank) for rank in quality.joint_ranks],
        "condition_number": as_number(quality.condition_number),
        "unscaled_condition_number": as_number(quality.unscaled),
        "singular_values": [float(value) for value in quality.singular_values],
        "noise": None if quality.assumed_noise else [float(value) for value in quality.noise],
        "prediction": as_numbers(quality.prediction),
        "hidden": list(quality.columns.hidden),
        "missing": list(quality.missing),
        "together": list(quality.together),
        "parameters": [
            {"expression": expression, "unit": unit, "std": as_number(error), "effect": as_number(effect)}
            for expression, unit, error, effect in rows
        ],
        "weak": [asdict(parameter) for parameter in quality.weak],
        "advice": [_advice(helpful, names) for helpful in quality.helpful],
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
