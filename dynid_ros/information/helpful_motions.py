"""Coverage of a motion, and simple motions that would determine its weakly determined parameters best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.estimation.rank import Identifiability
from dynid_ros.information.torque_information import GRAVITY, TorqueColumns
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import require_finite
from dynid_ros.trajectories.limits import MotionLimits

# Motions of one joint or of two neighbours, which a sentence describes completely.


AMPLITUDES_OF_RANGE = (0.4, 0.9)
"""Amplitudes, relative to half the range."""
SLOW_SPEED_FRACTION = 0.2
FAST_SPEED_FRACTION = 0.9
"""Speeds, relative to the highest speed that velocity and acceleration limits allow at an amplitude."""
PLACES_OF_RANGE = (0.15, 0.5, 0.85)
"""Positions of another joint, relative to its range."""
MAX_PERIOD_S = 20.0
PAIR_FREQUENCY_RATIO = 1.5
"""Ratio of the frequencies of two joints, which combines all of their positions and speeds."""
ROUNDING_STEPS = {"rad": np.deg2rad(1.0), "m": 0.001}
"""Steps of amplitudes and positions, so that the sentence describes exactly the motion that was rated."""


@dataclass(frozen=True, eq=False)
class ElementaryMotion:
    """Sinusoids of one joint or two, while the other joints hold.

    Attributes:
        joints: indices of the moving joints.
        amplitudes: amplitude of each, rad or m.
        rates: angular frequency of each, rad/s.
        pose: (n,) hold of the other joints, and centre of the moving ones.
        is_slow: whether the motion uses a small part of the speed limits.
        placed: index of a joint that holds at another position than in the judged motion; None: no joint.
    """

    joints: tuple[int, ...]
    amplitudes: tuple[float, ...]
    rates: tuple[float, ...]
    pose: NDArray
    is_slow: bool = False
    placed: int | None = None

    @property
    def period(self) -> float:
        """Period of the whole motion, s."""
        return 2 * np.pi / self.rates[0] * (1 if len(self.joints) == 1 else 2)

    @property
    def speeds(self) -> tuple[float, ...]:
        """Highest speed of each moving joint."""
        return tuple(a * rate for a, rate in zip(self.amplitudes, self.rates, strict=True))

    @property
    def complexity(self) -> tuple[float, ...]:
        """Key for sorting by simplicity, simplest first."""
        return len(self.joints), float(self.placed is not None), max(self.amplitudes), max(self.speeds)

    def at(self, time: NDArray) -> NDArray:
        """Return position, velocity and acceleration (3, N, n) at times (N,), s."""
        motion = np.zeros((3, len(time), len(self.pose)))
        motion[0] = self.pose
        for joint, amplitude, rate in zip(self.joints, self.amplitudes, self.rates, strict=True):
            motion[0, :, joint] += amplitude * np.sin(rate * time)
            motion[1, :, joint] = amplitude * rate * np.cos(rate * time)
            motion[2, :, joint] = -amplitude * rate**2 * np.sin(rate * time)
        return motion

    def one_period(self, samples: int) -> NDArray:
        """Return (3, samples, n) evenly over a period, without the instants of reversals."""
        return self.at((np.arange(samples) + 0.25) * self.period / samples)


def elementary_motions(limits: MotionLimits, pose: NDArray) -> Iterator[ElementaryMotion]:
    """Yield motions within limits about `pose` (n,), and fast ones about poses that differ in one joint."""
    steps = np.array([ROUNDING_STEPS[unit] for unit in limits.units])
    pose = np.clip(pose, limits.lower, limits.upper)
    n = len(pose)
    for joints in [*((j,) for j in range(n)), *((j, j + 1) for j in range(n - 1))]:
        motions = list(_sinusoids(limits, steps, pose, joints))
        yield from motions
        for other in (k for k in range(n) if k not in joints):
            for place in PLACES_OF_RANGE:
                value = limits.lower[other] + place * (limits.upper[other] - limits.lower[other])
                for motion in motions:
                    if not motion.is_slow:
                        moved_pose = motion.pose.copy()
                        moved_pose[other] = _round_towards_zero(value, steps[other])
                        yield replace(motion, pose=moved_pose, placed=other)


def _sinusoids(
    limits: MotionLimits, steps: NDArray, pose: NDArray, joints: tuple[int, ...]
) -> Iterator[ElementaryMotion]:
    """Yield wide and narrow motions, fast and, with a single joint, slow."""
    order = np.array(joints)
    half_range = (limits.upper - limits.lower)[order] / 2
    for width in AMPLITUDES_OF_RANGE:
        rounded = [_round_towards_zero(a, s) for a, s in zip(width * half_range, steps[order], strict=True)]
        amplitudes = np.array(rounded)
        centre = pose.copy()
        centre[order] = np.clip(pose[order], limits.lower[order] + amplitudes, limits.upper[order] - amplitudes)
        ratios = np.array([1.0, PAIR_FREQUENCY_RATIO])[: len(joints)]
        fastest = np.minimum(limits.velocity[order] / amplitudes, np.sqrt(limits.acceleration[order] / amplitudes))
        for fraction in (FAST_SPEED_FRACTION,) if len(joints) == 2 else (SLOW_SPEED_FRACTION, FAST_SPEED_FRACTION):
            rate = max(fraction * np.min(fastest / ratios), 2 * np.pi * len(joints) / MAX_PERIOD_S)
            if rate <= np.min(fastest / ratios):
                yield ElementaryMotion(
                    joints,
                    tuple(map(float, amplitudes)),
                    tuple(map(float, rate * ratios)),
                    centre,
                    is_slow=fraction == SLOW_SPEED_FRACTION,
                )


def _round_towards_zero(value: float, step: float) -> float:
    return float(np.trunc(value / step) * step) or value


MIN_MENTIONED_RATIO = 1.2
"""Ratio of amplitude or speed to the judged motion that the sentence mentions."""


def describe_motion(motion: ElementaryMotion, judged: MotionCoverage, columns: TorqueColumns) -> str:
    """Describe an elementary motion and its difference from the judged motion."""
    names = judged.limits.joint_names
    units = judged.limits.units
    is_static = columns.model == GRAVITY
    parts = []
    for joint, amplitude, speed in zip(motion.joints, motion.amplitudes, motion.speeds, strict=True):
        unit = units[joint]
        about = f"±{_format_size(amplitude, unit)} about {_format_size(motion.pose[joint], unit)}"
        difference = _describe_difference(joint, amplitude, 0.0 if is_static else speed, judged)
        if is_static:
            parts.append(f"{names[joint]} stopping in poses {about}, reached from both sides{difference}")
        else:
            parts.append(f"{names[joint]} swinging {about} at up to {speed:.2g} {unit}/s{difference}")
    text = " with ".join(parts)
    if motion.placed is None:
        return text
    position = motion.pose[motion.placed]
    is_new = not judged.lower[motion.placed] <= position <= judged.upper[motion.placed]
    remark = ", where it was not," if is_new else ""
    return f"{text}, while {names[motion.placed]} stands at {_format_size(position, units[motion.placed])}{remark}"


def _describe_difference(joint: int, amplitude: float, speed: float, judged: MotionCoverage) -> str:
    width = judged.upper[joint] - judged.lower[joint]
    if not width:
        return " (it did not move)"
    differences = []
    if amplitude > MIN_MENTIONED_RATIO * width / 2:
        differences.append("wider")
    if speed > MIN_MENTIONED_RATIO * judged.speed[joint]:
        differences.append("faster")
    return f" ({' and '.join(differences)} than it did)" if differences else ""


def _format_size(value: float, unit: str) -> str:
    return f"{round(float(np.rad2deg(value)))}°" if unit == "rad" else f"{round(1000 * value)} mm"


# The choice of motions to add.


ADDED_DURATION_S = 20.0
"""Approximate duration of an added motion, rounded to whole periods."""
MIN_ADDED_SAMPLES = 8
"""Smallest number of added samples where the rate is unknown."""
SAMPLES_PER_PERIOD = 32
MAX_STORED_NUMBERS = 20_000_000
"""Largest size of the normal equations of all candidate motions, 160 MB."""
MAX_MOTIONS = 3
MAX_RELATIVE_COST = 1.1
"""Cost, relative to the minimum, up to which a simpler motion is preferred."""
MAX_NAMED_PARAMETERS = 3
UNDETERMINED_ERROR = 1e3
"""Assumed error of an undetermined parameter, as its effect on torques relative to their noise."""
MIN_IMPROVEMENT = 1.5
"""Smallest reduction of the standard error of a weak parameter for which a motion is proposed."""


@dataclass(frozen=True, eq=False)
class HelpfulMotion:
    """A motion to add, with its effect on weak parameters after the motions proposed before it.

    Attributes:
        duration: duration, s; None: the rate of the judged motion is unknown.
        before: standard errors of weak parameters before, by name; infinite: not determined.
        after: standard errors of the same parameters after the motion.
        text: description of the motion and its effect.
    """

    motion: ElementaryMotion
    samples: int
    duration: float | None
    before: dict[str, float]
    after: dict[str, float]
    text: str


class HelpfulMotionSearch:
    """Search for the motions that reduce the standard errors of weak parameters most.

    Args:
        columns: parameters.
        judged: coverage of the motion to improve, with the limits.
        noise: (n,) standard deviation of the torques.
        reference: (k, k) normal equations of a good motion.
        allowed: function that returns a mask (N,) of the allowed positions (N, n); None: all are allowed.
    """

    def __init__(
        self,
        columns: TorqueColumns,
        judged: MotionCoverage,
        noise: NDArray,
        reference: NDArray,
        allowed: Callable[[NDArray], NDArray] | None = None,
    ) -> None:
        self._columns = columns
        self._judged = judged
        self._noise = noise
        self._reference = reference
        self._allowed = allowed
        # Errors whose effect on the torques of motions all over the limits equals the noise.
        self._unit = np.sqrt(judged.samples / np.diag(reference))

    def best(self, information: NDArray, weak: Sequence[int] | NDArray) -> tuple[HelpfulMotion, ...]:
        """Choose motions one after the other, each as an addition to those before it.

        Args:
            information: (k, k) normal equations of the judged motion.
            weak: indices of the parameters to improve.
        """
        chosen: list[HelpfulMotion] = []
        while len(chosen) < MAX_MOTIONS and len(weak):
            index = self._cheapest(information, weak)
            if index is None:
                break
            motion, samples, duration = self._candidates[index]
            total = information + self._gains[index]
            before, after = (Identifiability.of(m, self._reference).standard_errors for m in (information, total))
            with np.errstate(invalid="ignore"):
                factor = np.where(np.isinf(before), np.where(np.isinf(after), 1.0, np.inf), before / after)
            improved = [int(i) for i in weak if factor[i] >= MIN_IMPROVEMENT]
            if not improved:
                break
            improved.sort(key=lambda i: (-factor[i], after[i] / self._unit[i]))
            text = ("Then " if chosen else "") + self._describe(index, improved, before, after)
            names = [self._columns.names[i] for i in improved]
            was, becomes = (dict(zip(names, map(float, errors[improved]), strict=True)) for errors in (before, after))
            chosen.append(HelpfulMotion(motion, samples, duration, was, becomes, text))
            information = total
        return tuple(chosen)

    @cached_property
    def _candidates(self) -> list[tuple[ElementaryMotion, int, float | None]]:
        """Motions with their numbers of samples and durations (s)."""
        judged = self._judged
        motions = list(elementary_motions(judged.limits, judged.middle))
        # An arm with many joints has too many pairs of joints: the simplest motions are kept.
        count = max(1, MAX_STORED_NUMBERS // self._columns.size**2)
        if len(motions) > count:
            motions = sorted(motions, key=lambda motion: motion.complexity)[:count]
        if self._allowed is not None and motions:
            poses = np.concatenate([motion.one_period(SAMPLES_PER_PERIOD)[0] for motion in motions])
            allowed = np.all(self._allowed(poses).reshape(len(motions), SAMPLES_PER_PERIOD), axis=1)
            motions = [motion for motion, is_allowed in zip(motions, allowed, strict=True) if is_allowed]
        if judged.rate is None:
            return [(motion, max(judged.samples, MIN_ADDED_SAMPLES), None) for motion in motions]
        durations = [max(1, round(ADDED_DURATION_S / motion.period)) * motion.period for motion in motions]
        return [(m, round(duration * judged.rate), duration) for m, duration in zip(motions, durations, strict=True)]

    @cached_property
    def _gains(self) -> NDArray:
        """Normal equations (C, k, k) that each candidate adds."""
        gains = np.empty((len(self._candidates), self._columns.size, self._columns.size))
        if self._candidates:
            motions = np.array([motion.one_period(SAMPLES_PER_PERIOD) for motion, _, _ in self._candidates])
            for k, information in enumerate(self._columns.mean_information(motions, self._noise)):
                gains[k] = information * self._candidates[k][1]
        return gains

    def _cheapest(self, information: NDArray, weak: Sequence[int] | NDArray) -> int | None:
        """Return the candidate with the smallest mean square effect of the remaining errors, the simplest of equals."""
        if not self._candidates:
            return None
        unit = np.outer(self._unit, self._unit)
        scaled = information * unit + np.eye(len(unit)) / UNDETERMINED_ERROR**2
        right = np.eye(len(unit))[:, weak]
        costs = np.array(
            [np.einsum("kw,kw->", right, np.linalg.solve(scaled + gain * unit, right)) for gain in self._gains]
        )
        equals = np.flatnonzero(costs <= MAX_RELATIVE_COST * costs.min())
        return int(min(equals, key=lambda i: self._candidates[i][0].complexity))

    def _describe(self, index: int, improved: Sequence[int], before: NDArray, after: NDArray) -> str:
        motion, samples, duration = self._candidates[index]
        names = self._columns.names
        units = self._columns.units
        shown = [f"{names[i]} (± {after[i]:.2g} {units[i]})" for i in improved if np.isinf(before[i])]
        shrunk = [
            f"of {names[i]} {before[i] / after[i]:.1f} times (to {after[i]:.2g} {units[i]})"
            for i in improved
            if np.isfinite(before[i])
        ]
        effects = [f"show {_list_names(shown)}"] if shown else []
        if shrunk:
            effects.append(f"shrink the standard error {_list_names(shrunk)}")
        time = f"for {samples} samples" if duration is None else f"for {duration:.0f} s"
        return f"{describe_motion(motion, self._judged, self._columns)} {time} would {' and '.join(effects)}"


def _list_names(items: Sequence[str]) -> str:
    named = list(items[:MAX_NAMED_PARAMETERS])
    if len(items) > MAX_NAMED_PARAMETERS:
        named.append(f"{len(items) - MAX_NAMED_PARAMETERS} more")
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


# Range of positions, speeds and accelerations that a motion covers, and limits that it might use.


MIN_SAMPLES = 3
USED_SPEED_FRACTION = 0.5
"""Fraction of the described velocity limits that planned motions use by default."""
MAX_USUAL_SPEED = 3.0
"""Highest usual speed, per s; some descriptions contain velocity limits of 1000 where the limit is unknown."""
MIN_USUAL_SPEED = 1.0
"""Usual speed of a joint without velocity limit, per s."""
MIN_USUAL_ACCELERATION = 2.0
"""Usual acceleration of a slow motion, per s²."""
HALF_RANGE_RAD = np.pi
"""Largest range of a revolute joint to either side."""
HALF_RANGE_M = 0.5
"""Range of a sliding joint without limits to either side."""


@dataclass(frozen=True, eq=False)
class MotionCoverage:
    """Range of positions and speeds that a motion covers, for n joints.

    Attributes:
        rate: equations per second; None: unknown.
        lower: (n,) lowest position, rad or m.
        upper: (n,) highest position, rad or m.
        speed: (n,) highest speed.
        limits: limits that a motion of the arm might use.
    """

    samples: int
    rate: float | None
    lower: NDArray
    upper: NDArray
    speed: NDArray
    limits: MotionLimits

    @property
    def middle(self) -> NDArray:
        """Middle (n,) of the range of positions."""
        return (self.lower + self.upper) / 2

    @staticmethod
    def from_stretches(
        robot: RobotModel,
        stretches: Sequence[Sequence[NDArray]],
        samples: int,
        rate: float | None = None,
        limits: MotionLimits | None = None,
    ) -> MotionCoverage:
        """Determine the coverage of stretches of position, velocity and acceleration, (M, n) each.

        Args:
            robot: the arm.
            stretches: consecutive samples of the motion.
            samples: number of equations of each joint.
            rate: equations per second; None: unknown.
            limits: limits that a motion might use; None: see `usual_limits`.
        """
        if samples < MIN_SAMPLES:
            raise TrajectoryError(f"the motion has {samples} samples; at least {MIN_SAMPLES} are needed to judge it")
        if rate is not None and not (np.isfinite(rate) and rate > 0):
            raise TrajectoryError(f"rate is {rate:g}; expected samples per second, above 0")
        for stretch in stretches:
            named = dict(zip(("q", "qd", "qdd"), stretch, strict=True))
            require_finite(robot.joint_names, TrajectoryError, **named)
        lower = np.min([q.min(axis=0) for q, _, _ in stretches], axis=0)
        upper = np.max([q.max(axis=0) for q, _, _ in stretches], axis=0)
        speed = np.max([np.abs(qd).max(axis=0) for _, qd, _ in stretches], axis=0)
        acceleration = np.max([np.abs(qdd).max(axis=0) for _, _, qdd in stretches], axis=0)
        if not (np.any(upper > lower) or np.any(speed) or np.any(acceleration)):
            raise TrajectoryError("no joint moves: all samples are of one pose at rest; judge a motion")
        limits = limits or usual_limits(robot, lower, upper, speed, acceleration)
        if limits.joint_names != robot.joint_names:
            raise TrajectoryError(
                f"the limits are of {', '.join(limits.joint_names)}; expected {', '.join(robot.joint_names)}"
            )
        return MotionCoverage(samples, rate, lower, upper, speed, limits)


def usual_limits(
    robot: RobotModel, lower: NDArray, upper: NDArray, speed: NDArray, acceleration: NDArray
) -> MotionLimits:
    """Return the limits of the robot's description at half its speed, widened to the values of a motion.

    Args:
        robot: the arm.
        lower: (n,) lowest position of the motion.
        upper: (n,) highest position.
        speed: (n,) highest speed.
        acceleration: (n,) highest acceleration.
    """
    described = robot.limits
    slides = robot.chain.prismatic
    half_range = np.where(slides, HALF_RANGE_M, HALF_RANGE_RAD)
    # Exporters write zeros where nothing was entered.
    limited = (described.lower < described.upper) & np.isfinite(described.lower) & np.isfinite(described.upper)
    low = np.where(limited, described.lower, np.minimum(lower, -half_range))
    high = np.where(limited, described.upper, np.maximum(upper, half_range))
    middle = np.clip(0.0, low, high)
    largest_half_range = np.where(slides, np.inf, HALF_RANGE_RAD)
    has_speed = np.isfinite(described.velocity) & (described.velocity > 0)
    described_speed = np.minimum(USED_SPEED_FRACTION * described.velocity, MAX_USUAL_SPEED)
    return MotionLimits(
        tuple(robot.joint_names),
        tuple("m" if slide else "rad" for slide in slides),
        np.maximum(low, middle - largest_half_range),
        np.minimum(high, middle + largest_half_range),
        np.maximum(speed, np.where(has_speed, described_speed, MIN_USUAL_SPEED)),
        np.maximum(acceleration, MIN_USUAL_ACCELERATION),
    )
