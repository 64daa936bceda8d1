"""Which simple motions would tell best what a motion does not: found by measuring, one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.identifiability import Determinacy
from dynid_ros.information.elementary_motions import ElementaryMotion, elementary_motions
from dynid_ros.information.judged_motion import JudgedMotion
from dynid_ros.information.motion_words import motion_words
from dynid_ros.information.torque_columns import TorqueColumns

ADDED = 20.0
"""How long about a motion is added, s: whole periods."""
FEWEST = 8
"""Samples added, so that the motion comes through, where a rate is not known."""
SAMPLES = 32
"""Of a period that are looked at."""
MOST = 3
"""Motions named."""
EQUAL = 1.1
"""Cost, over the least, up to which a plainer motion is taken instead."""
NAMED = 3
"""Parameters named for each."""
UNKNOWN = 1e3
"""What the error of a parameter that is not shown counts for, as it moves torques, in their noise."""
WORTH = 1.5
"""Factor by which a motion must shrink the standard error of a weak parameter to be worth naming."""


@dataclass(frozen=True, eq=False)
class HelpfulMotion:
    """A motion to add, and what that changes for weak parameters, after the motions that were named before it.

    Attributes:
        motion: what to add.
        samples: how many of it were counted; `duration` times the rate where that is known.
        duration: s; None: the rate of the judged motion is not known, as many samples as it has are counted, or 8.
        before: standard errors of weak parameters, by what leads them; infinite: not shown.
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
        allowed: tells of positions (N, n) whether the arm may be there, (N,) bool; None: it may be anywhere.

    """

    def __init__(
        self,
        columns: TorqueColumns,
        judged: JudgedMotion,
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
            before, after = (Determinacy.of(m, self._usual).standard_errors for m in (information, added))
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
        if self._allowed is not None:
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
        motions = np.array([motion.one_period(SAMPLES) for motion, _, _ in self._candidates])
        gains = np.array(list(self._columns.informations(motions, self._noise)))
        return gains * np.array([samples for _, samples, _ in self._candidates])[:, None, None]

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
