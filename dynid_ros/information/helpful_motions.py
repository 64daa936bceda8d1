"""Which simple motions would determine best what a motion does not: found by measuring, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.identifiability import Identifiability
from dynid_ros.information.motion_coverage import MotionCoverage
from dynid_ros.information.torque_information import GRAVITY, TorqueColumns
from dynid_ros.trajectories.limits import MotionLimits

# Motions of one joint or of two neighbours, of which one can say in a sentence what they are.


WIDTHS = (0.4, 0.9)
"""Amplitudes, in parts of half the range."""
SLOW, FAST = 0.2, 0.9
"""Speeds, in parts of what velocity and acceleration limits allow at an amplitude."""
PLACES = (0.15, 0.5, 0.85)
"""Where another joint stands, in parts of its range."""
LONGEST_PERIOD = 20.0  # s
PAIR_RATIO = 1.5
"""Between the frequencies of two joints: both come through each other's positions and speeds in all combinations."""
STEPS = {"rad": np.deg2rad(1.0), "m": 0.001}
"""What angles and lengths are rounded to, so that what is said is what was looked at."""


@dataclass(frozen=True, eq=False)
class ElementaryMotion:
    """Sinusoids of one joint or two, while the others stand.

    Attributes:
        joints: which move, counted from 0.
        amplitudes: of each, rad or m.
        rates: of each, rad/s: angular frequencies.
        pose: (n,) where the others stand, and what the joints move about.
        slow: whether it could be much faster.
        placed: the joint that stands elsewhere than in the pose asked about; None: none does.
    """

    joints: tuple[int, ...]
    amplitudes: tuple[float, ...]
    rates: tuple[float, ...]
    pose: NDArray
    slow: bool = False
    placed: int | None = None

    @property
    def period(self) -> float:
        """After which it repeats, s."""
        return 2 * np.pi / self.rates[0] * (1 if len(self.joints) == 1 else 2)

    @property
    def speeds(self) -> tuple[float, ...]:
        """Highest of each joint that moves."""
        return tuple(a * rate for a, rate in zip(self.amplitudes, self.rates, strict=True))

    @property
    def complexity(self) -> tuple[float, ...]:
        """What makes it harder to say and to do, most important first."""
        return len(self.joints), float(self.placed is not None), max(self.amplitudes), max(self.speeds)

    def at(self, time: NDArray) -> NDArray:
        """Position, velocity and acceleration (3, N, n) at times (N,), s."""
        motion = np.zeros((3, len(time), len(self.pose)))
        motion[0] = self.pose
        for joint, amplitude, rate in zip(self.joints, self.amplitudes, self.rates, strict=True):
            sine, cosine = np.sin(rate * time), np.cos(rate * time)
            motion[0, :, joint] += amplitude * sine
            motion[1:, :, joint] = amplitude * rate * cosine, -amplitude * rate**2 * sine
        return motion

    def one_period(self, samples: int) -> NDArray:
        """(3, samples, n) evenly over a period, none where a joint reverses."""
        return self.at((np.arange(samples) + 0.25) * self.period / samples)


def elementary_motions(limits: MotionLimits, pose: NDArray) -> Iterator[ElementaryMotion]:
    """Motions within limits about `pose` (n,), and fast ones about poses that differ from it in one joint."""
    steps = np.array([STEPS[unit] for unit in limits.units])
    pose = np.clip(pose, limits.lower, limits.upper)
    n = len(pose)
    for joints in [*((j,) for j in range(n)), *((j, j + 1) for j in range(n - 1))]:
        moves = list(_sinusoids(limits, steps, pose, joints))
        yield from moves
        for other in (k for k in range(n) if k not in joints):
            for place in PLACES:
                value = limits.lower[other] + place * (limits.upper[other] - limits.lower[other])
                for move in moves:
                    if move.slow:
                        continue
                    elsewhere = move.pose.copy()
                    elsewhere[other] = _towards_zero(value, steps[other])
                    yield replace(move, pose=elsewhere, placed=other)


def _sinusoids(
    limits: MotionLimits, steps: NDArray, pose: NDArray, joints: tuple[int, ...]
) -> Iterator[ElementaryMotion]:
    """Wide and narrow, fast and, of a joint alone, slow."""
    order = np.array(joints)
    half = (limits.upper - limits.lower)[order] / 2
    for width in WIDTHS:
        amplitudes = np.array([_towards_zero(a, s) for a, s in zip(width * half, steps[order], strict=True)])
        about = pose.copy()
        about[order] = np.clip(pose[order], limits.lower[order] + amplitudes, limits.upper[order] - amplitudes)
        ratios = np.array([1.0, PAIR_RATIO])[: len(joints)]
        fastest = np.minimum(limits.velocity[order] / amplitudes, np.sqrt(limits.acceleration[order] / amplitudes))
        for share in (FAST,) if len(joints) == 2 else (SLOW, FAST):
            rate = max(share * np.min(fastest / ratios), 2 * np.pi * len(joints) / LONGEST_PERIOD)
            if rate <= np.min(fastest / ratios):
                yield ElementaryMotion(
                    joints, tuple(map(float, amplitudes)), tuple(map(float, rate * ratios)), about, share == SLOW
                )


def _towards_zero(value: float, step: float) -> float:
    return float(np.trunc(value / step) * step) or value


# Elementary motions in words, compared with a motion that was made.


MORE = 1.2
"""Times as wide or as fast, from which on it is worth saying."""


def motion_words(motion: ElementaryMotion, judged: MotionCoverage, columns: TorqueColumns) -> str:
    """What moves how, where another joint stands, and how that differs from the judged motion."""
    names, units = judged.limits.joint_names, judged.limits.units
    static = columns.model == GRAVITY
    parts = []
    for joint, amplitude, speed in zip(motion.joints, motion.amplitudes, motion.speeds, strict=True):
        unit = units[joint]
        about = f"±{_size(amplitude, unit)} about {_size(motion.pose[joint], unit)}"
        said = _difference(joint, amplitude, 0.0 if static else speed, judged)
        how = "stopping in poses" if static else "swinging"
        fast = ", reached from both sides" if static else f" at up to {speed:.2g} {unit}/s"
        parts.append(f"{names[joint]} {how} {about}{fast}{said}")
    words = " with ".join(parts)
    if motion.placed is not None:
        k = motion.placed
        elsewhere = not judged.lower[k] <= motion.pose[k] <= judged.upper[k]
        words += f", while {names[k]} stands at {_size(motion.pose[k], units[k])}{', where it was not,' * elsewhere}"
    return words


def _difference(joint: int, amplitude: float, speed: float, judged: MotionCoverage) -> str:
    width = judged.upper[joint] - judged.lower[joint]
    if not width:
        return " (it did not move)"
    more = ["wider"] * bool(amplitude > MORE * width / 2) + ["faster"] * bool(speed > MORE * judged.speed[joint])
    return f" ({' and '.join(more)} than it did)" if more else ""


def _size(value: float, unit: str) -> str:
    return f"{round(float(np.rad2deg(value)))}°" if unit == "rad" else f"{round(1000 * value)} mm"


ADDED = 20.0
"""How long about a motion is added, s: whole periods."""
FEWEST = 8
"""Samples added, so that the motion comes through, where a rate is not known."""
SAMPLES = 32
"""Number of samples of a period that are looked at."""
MOST_NUMBERS = 20_000_000
"""Numbers of the normal equations of all motions that are looked at: 160 MB."""
MOST = 3
"""Motions named."""
EQUAL = 1.1
"""Cost, over the minimum, up to which a plainer motion is taken instead."""
NAMED = 3
"""Parameters named for each."""
UNKNOWN = 1e3
"""What the error of a parameter that is not determined counts for, as it moves torques, in their noise."""
WORTH = 1.5
"""Factor by which a motion must shrink the standard error of a weak parameter to be worth naming."""


@dataclass(frozen=True, eq=False)
class HelpfulMotion:
    """A motion to add, and what that changes for weak parameters, after the motions that were named before it.

    Attributes:
        motion: what to add.
        samples: how many of it were counted; `duration` times the rate where that is known.
        duration: s; None: the rate of the judged motion is not known, as many samples as it has are counted, or 8.
        before: standard errors of weak parameters, by what leads them; infinite: not determined.
        after: of the same.
        text: a sentence.
    """

    motion: ElementaryMotion
    samples: int
    duration: float | None
    before: dict[str, float]
    after: dict[str, float]
    text: str


class MotionSearch:
    """Looks for the motions that help most.

    Args:
        columns: what is asked.
        judged: the motion to better, and the limits.
        noise: (n,) of the torques.
        usual: (k, k) normal equations that would be good.
        allowed: whether the arm may be at positions (N, n), (N,) bool; None: it may be anywhere.
    """

    def __init__(
        self,
        columns: TorqueColumns,
        judged: MotionCoverage,
        noise: NDArray,
        usual: NDArray,
        allowed: Callable[[NDArray], NDArray] | None = None,
    ) -> None:
        self._columns, self._judged, self._noise, self._usual, self._allowed = columns, judged, noise, usual, allowed
        # Errors that move the torques of motions all over the limits by their noise.
        self._unit = np.sqrt(judged.samples / np.diag(usual))

    def best(self, information: NDArray, weak: Sequence[int] | NDArray) -> tuple[HelpfulMotion, ...]:
        """The motions that shrink the standard errors of the `weak` parameters most, each after those before it.

        Args:
            information: (k, k) normal equations of the judged motion.
            weak: whose errors count.
        """
        found: list[HelpfulMotion] = []
        while len(found) < MOST and len(weak):
            index = self._cheapest(information, weak)
            if index is None:
                break
            motion, samples, duration = self._candidates[index]
            added = information + self._gains[index]
            before, after = (Identifiability.of(m, self._usual).standard_errors for m in (information, added))
            with np.errstate(invalid="ignore"):
                factor = np.where(np.isinf(before), np.where(np.isinf(after), 1.0, np.inf), before / after)
            helped = [int(i) for i in weak if factor[i] >= WORTH]
            if not helped:
                break
            helped.sort(key=lambda i: (-factor[i], after[i] / self._unit[i]))
            text = ("Then " if found else "") + self._text(index, helped, before, after)
            names = [self._columns.names[i] for i in helped]
            was, becomes = (dict(zip(names, map(float, x[helped]), strict=True)) for x in (before, after))
            found.append(HelpfulMotion(motion, samples, duration, was, becomes, text))
            information = added
        return tuple(found)

    @cached_property
    def _candidates(self) -> list[tuple[ElementaryMotion, int, float | None]]:
        """Each with the samples and the seconds that are added of it."""
        judged = self._judged
        found: list[tuple[ElementaryMotion, int, float | None]] = []
        motions = list(elementary_motions(judged.limits, judged.middle))
        # Of an arm of many joints the pairs are too many: the plainest motions are kept.
        most = max(1, MOST_NUMBERS // self._columns.size**2)
        if len(motions) > most:
            motions = sorted(motions, key=lambda motion: motion.complexity)[:most]
        if self._allowed is not None and motions:
            poses = np.concatenate([motion.one_period(SAMPLES)[0] for motion in motions])
            clear = np.all(self._allowed(poses).reshape(len(motions), SAMPLES), axis=1)
            motions = [motion for motion, free in zip(motions, clear, strict=True) if free]
        for motion in motions:
            duration = max(1, round(ADDED / motion.period)) * motion.period
            if judged.rate is None:
                found.append((motion, max(judged.samples, FEWEST), None))
            else:
                found.append((motion, round(duration * judged.rate), duration))
        return found

    @cached_property
    def _gains(self) -> NDArray:
        """(C, k, k) normal equations that each candidate adds."""
        if not self._candidates:
            return np.empty((0, self._columns.size, self._columns.size))
        motions = np.array([motion.one_period(SAMPLES) for motion, _, _ in self._candidates])
        gains = np.empty((len(motions), self._columns.size, self._columns.size))
        for k, information in enumerate(self._columns.informations(motions, self._noise)):
            gains[k] = information * self._candidates[k][1]
        return gains

    def _cheapest(self, information: NDArray, weak: Sequence[int] | NDArray) -> int | None:
        """The candidate after which errors of the weak move torques least, in squares; the plainest of equals."""
        if not self._candidates:
            return None
        unit = np.outer(self._unit, self._unit)
        known = information * unit + np.eye(len(unit)) / UNKNOWN**2
        right = np.eye(len(unit))[:, weak]
        costs = np.array(
            [np.einsum("kw,kw->", right, np.linalg.solve(known + gain * unit, right)) for gain in self._gains]
        )
        equals = np.flatnonzero(costs <= EQUAL * costs.min())
        return int(min(equals, key=lambda i: self._candidates[i][0].complexity))

    def _text(self, index: int, helped: Sequence[int], before: NDArray, after: NDArray) -> str:
        motion, samples, duration = self._candidates[index]
        names, units = self._columns.names, self._columns.units
        shown = [f"{names[i]} (± {after[i]:.2g} {units[i]})" for i in helped if np.isinf(before[i])]
        shrunk = [
            f"of {names[i]} {before[i] / after[i]:.1f} times (to {after[i]:.2g} {units[i]})"
            for i in helped
            if np.isfinite(before[i])
        ]
        time = f"for {samples} samples" if duration is None else f"for {duration:.0f} s"
        words = f"{motion_words(motion, self._judged, self._columns)} {time}"
        claims = []
        if shown:
            claims.append(f"show {_listed(shown)}")
        if shrunk:
            claims.append(f"shrink the standard error {_listed(shrunk)}")
        return f"{words} would {' and '.join(claims)}"


def _listed(items: Sequence[str]) -> str:
    named = list(items[:NAMED])
    if len(items) > NAMED:
        named.append(f"{len(items) - NAMED} more")
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
