"""Notices that a load was picked up or dropped.

What a change of the load's mass and mass moment would add to the torques is known: A δ, with the columns A of these
four. Over the last rows it explains of the innovations e as much as the generalised likelihood ratio says (Willsky and
Jones 1976; Lai 1995 for windows): with Σ the covariance of the innovations,

    N = Σ Aᵀ Σ⁻¹ A + Π,   y = Σ Aᵀ Σ⁻¹ e,   u = N^(−1/2) y,   T² = uᵀ C⁻¹ u.

Π is what changes are likely to be. For white innovations C would be one; those of a robot are friction that the model
lacks, alike for seconds. So Σ and, for each length of window, C are measured: the mean of e eᵀ and of u uᵀ over the
minutes before. A joint with bad friction then counts little, and a direction that motion excites again and again too.
T² is Hotelling's, and its threshold that of the rate of false alarms asked for, for as many independent windows as
there are, and as few as C was averaged from. How high T gets without a change is measured too, and where that reaches
further than Hotelling's, it sets the threshold (`_Peaks`).

Errors of the gains and of the arm grow with the torque: a joint that carries three times of what it carried before may
be off by three times as much. Innovations are divided by what such errors may give them.

At rest friction is not known but constant: there torques are compared with their mean since the arm came to rest, and
rest has statistics of its own. That holds as long as a joint stays where it is: a way of a hair's breadth, as that of
an arm that is about to set off, turns friction round (presliding), so torques may change with it by all of stiction.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import f as fisher

from dynid_ros.model.inertia import STATIC

WINDOWS = (0.1, 0.2, 0.4, 0.8)
"""Lengths of the windows, s."""

CHANGE = np.array([2.0, 0.3, 0.3, 0.3])
"""Standard deviations of changes that are looked for: kg, kg m."""

MEMORY = 120.0
"""s over which the innovations are known."""

WARM_UP = 5.0
"""s of innovations before which nothing is said."""

FIRST, FIRST_SCATTER = 10.0, 4.0
"""s of innovations that what is assumed at the start is worth, and C then: friction of typical size."""

CORRELATED = 0.5
"""s of innovations that count as one in what C is worth; friction is alike for about a stroke."""

SETTLING = 0.12
"""s without motion of any joint from which on the arm rests: by then the low-pass has forgotten the motion."""

BREAK_AWAY = 0.2
"""s for which a change at rest must last without motion: a joint that is about to move has its torque rise too."""

CREEP = 2e-4
"""Way of a joint since the arm came to rest by which its friction may have become any, rad or m."""

HOLD_OFF = 1.0
"""s after a change in which there is no other; statistics go on, in case that it was no change."""

UNSURE = 1.0
"""Variance of the prediction, in units of the noise, above which an innovation is not that of the torque."""

PEAK = 2.0
"""Length of the blocks of which the largest T are known, s."""

FIRST_PEAKS, FIRST_PEAK = 5.0, (0.4, 0.015)
"""Number of blocks, and mean and variance of their largest T, as a fraction of the threshold, before any is known."""

CLIP = 4.0
"""Squared innovation, or T², in units of its mean, to which larger ones are cut before they are averaged."""

_STATIC_AND_LAST = [*range(STATIC), -1]
_SMALL, _LARGE = 1e-9, 1e12


@dataclass(frozen=True)
class LoadChange:
    """A load was picked up or dropped.

    Attributes:
        time: when, s; the instant from which on a change fits the torques best.
        noticed: s, when this was known.
        mass: change, kg, as the torques since `time` tell it; rough.
        statistic: T².
        threshold: what it was above.
    """

    time: float
    noticed: float
    mass: float
    statistic: float
    threshold: float


class LoadChangeDetector:
    """Watches innovations.

    Args:
        n_joints: n.
        spacing: s between innovations.
        false_alarms: that are tolerated, per hour, while innovations are as they were.
        stiction: (n,) largest friction of each joint at rest, in units of its noise.
    """

    def __init__(self, n_joints: int, spacing: float, false_alarms: float = 0.1, stiction: ArrayLike = 0.0):
        self._spacing, self._stiction = spacing, stiction
        self._lengths = np.unique([max(1, round(window / spacing)) for window in WINDOWS])
        # Windows of each length may raise their share of the alarms.
        rates = false_alarms / 3600 * self._lengths * spacing / len(self._lengths)
        self._chance = np.minimum(rates, 0.01)
        self._silent = -math.inf
        self._thresholds: dict[int, NDArray] = {}
        self._blocks = 3600 / (false_alarms * PEAK)
        self._prior = np.diag(CHANGE**-2)
        self._statistics = {moving: _Statistics(n_joints, len(self._lengths)) for moving in (False, True)}
        self.restart()

    def restart(self) -> None:
        """Forget the last second, not the statistics: after a change."""
        self._begin(moving=True)
        self._moved = math.nan

    def _begin(self, moving: bool) -> None:
        self._moving = moving
        # Aᵀ Σ⁻¹ [A e] of the last instants, the newest first.
        self._times: deque[float] = deque(maxlen=int(self._lengths[-1]))
        self._recent = np.zeros((int(self._lengths[-1]), STATIC, STATIC + 1))
        self._level, self._rested, self._doubtful = np.zeros(1), 0, 0.0
        self._place, self._crept = np.zeros(1), 0

    def add(
        self,
        time: float,
        rows: NDArray,
        error: NDArray,
        spread: NDArray,
        *,
        systematic: NDArray | float = 0.0,
        looseness: NDArray,
        moving: bool,
        position: NDArray,
    ) -> LoadChange | None:
        """Take up one instant.

        Args:
            time: s.
            rows: (n, k + 1) [A b], mass and mass moment first, divided by the noise and `looseness`.
            error: (n,) innovations, divided alike.
            spread: (n,) variance of the prediction, in the same units.
            systematic: (n,) variance that errors of gains and of the arm give the innovations, in the same units.
            looseness: (n,) deviation of a torque with the friction of a joint at rest, over that of its noise.
            moving: whether a joint moves.
            position: (n,) of the joints.
        """
        if moving or math.isnan(self._moved):
            self._moved = time
        moving = time - self._moved < SETTLING
        if moving != self._moving:
            self._begin(moving)
        equations = rows[:, _STATIC_AND_LAST]
        motion = np.ones(len(error))
        if moving:
            motion = looseness**-2.0
            equations[:, -1] = error
            usual = spread.max() < UNSURE
            scale = 1.0 / np.sqrt(1.0 + spread + systematic)
            equations *= (scale if usual else np.where(spread < UNSURE, scale, 0.0))[:, None]
        else:
            # What friction holds is not known, but constant, as is the rest: only what changes since then counts.
            equations *= looseness[:, None]
            if self._crept >= len(self._recent):
                self._begin(moving)
            if not self._rested:
                self._place = position
            way = np.minimum(np.abs(position - self._place) / CREEP, 1.0)
            self._crept += bool(way.max() == 1.0)
            self._rested += 1
            self._level = self._level + (equations[:, -1] - self._level) / self._rested
            equations[:, -1] -= self._level
            equations /= np.hypot(1.0, way * self._stiction)[:, None]
            usual = True
        known = self._statistics[moving]
        weighted = known.precision @ equations
        products = equations.T @ weighted
        self._times.appendleft(time)
        self._recent[1:] = self._recent[:-1]
        self._recent[0] = products[:-1]
        known.count += 1
        elapsed = known.count * self._spacing
        share = self._spacing / min(elapsed + FIRST, MEMORY)
        if usual:
            square = max(float(products[-1, -1]), _SMALL)
            known.learn(equations[:, -1], motion, min(1.0, CLIP * len(equations) / square), self._spacing)
        return self._judge(known, elapsed, share)

    def _judge(self, known: _Statistics, elapsed: float, share: float) -> LoadChange | None:
        ready = int(self._lengths.searchsorted(len(self._times), side="right"))
        if not ready:
            return None
        sums = self._recent.cumsum(axis=0)
        windows = sums[self._lengths[:ready] - 1]
        roots = np.linalg.cholesky(windows[:, :, :-1] + self._prior)
        explained = np.linalg.solve(roots, windows[:, :, -1:])
        inverse = known.inverse_scatter[:ready]
        pulled = inverse @ explained
        statistic = (explained * pulled).sum(axis=(1, 2))
        if elapsed > WARM_UP and self._times[0] >= self._silent:
            threshold = self._threshold(elapsed)[:ready]
            relative = statistic / threshold
            best = int(relative.argmax())
            height = math.sqrt(relative[best])
            limit = known.peaks.limit(self._blocks)
            if height <= limit:
                self._doubtful = 0.0
                known.peaks.add(height, self._spacing)
            elif self._moving or self._doubtful >= BREAK_AWAY:
                return self._change(sums, float(statistic[best]), float(threshold[best] * limit**2))
            else:
                self._doubtful += self._spacing
        kept = share * np.minimum(1.0, CLIP * STATIC / np.maximum(statistic, _SMALL))
        inverse -= (kept / (1.0 - share + kept * statistic))[:, None, None] * pulled * pulled.transpose(0, 2, 1)
        inverse /= 1.0 - share
        _bound(inverse)
        return None

    def _threshold(self, elapsed: float) -> NDArray:
        # Quantiles are slow; a few per cent of the time make no difference.
        step = int(20 * math.log(min(elapsed + FIRST, MEMORY)))
        if step not in self._thresholds:
            self._thresholds[step] = self._hotelling(math.exp(step / 20))
        return self._thresholds[step]

    def _hotelling(self, known: float) -> NDArray:
        blocks = known / np.maximum(self._lengths * self._spacing, CORRELATED)
        dof = np.maximum(blocks, STATIC + 1.0)
        factor = STATIC * dof / (dof - STATIC + 1.0)
        return factor * fisher.isf(self._chance, STATIC, dof - STATIC + 1.0)

    def _change(self, sums: NDArray, statistic: float, threshold: float) -> LoadChange:
        sums = sums[: len(self._times)]
        changes = np.linalg.solve(sums[:, :, :-1] + self._prior, sums[:, :, -1:])[:, :, 0]
        start = int((sums[:, :, -1] * changes).sum(axis=1).argmax())
        self._silent = self._times[0] + HOLD_OFF
        return LoadChange(self._times[start], self._times[0], float(changes[start, 0]), statistic, threshold)


class _Statistics:
    """What innovations were like: Σ⁻¹ (n, n), and C⁻¹ (w, 4, 4) of each length of window, from `count` innovations.

    A mean that gains one square at a time has an inverse that does too (Sherman and Morrison). A joint that rests while
    others move says nothing of its innovations in motion: its row and column of Σ are kept.
    """

    def __init__(self, n_joints: int, lengths: int):
        self.count = 0
        self._elapsed = np.full(n_joints, FIRST)
        self.precision = np.eye(n_joints)
        self.inverse_scatter = np.tile(np.eye(STATIC) / FIRST_SCATTER, (lengths, 1, 1))
        self.peaks = _Peaks()

    def learn(self, error: NDArray, motion: NDArray, kept: float, spacing: float) -> None:
        """Update the inverse of Σ ← D Σ D + r rᵀ.

        Args:
            error: (n,) innovations.
            motion: (n,) weight of each innovation; near zero for a joint that rests while others move.
            kept: part of the squared innovation that is averaged.
            spacing: s between innovations.
        """
        self._elapsed = np.minimum(self._elapsed + spacing * motion, MEMORY)
        share = spacing / self._elapsed
        shrink = 1.0 / np.sqrt(1.0 - share * motion)
        self.precision *= shrink[:, None] * shrink
        root = np.sqrt(kept * share) * error
        weighted = self.precision @ root
        self.precision -= weighted[:, None] * weighted / (1.0 + weighted @ root)
        _bound(self.precision)


def _bound(inverses: NDArray) -> None:
    """Keep what never varies, as in a simulation without noise, from counting without end."""
    if inverses.max() > _LARGE:
        scale = np.sqrt(np.minimum(1.0, _LARGE / inverses.diagonal(axis1=-2, axis2=-1)))
        inverses *= scale[..., :, None] * scale[..., None, :]


class _Peaks:
    """How high T gets, as a fraction of its threshold in theory: largest values of blocks of time.

    Largest values have Gumbel's distribution, whatever that of T, if its tail is not heavier than exponential; how far
    it reaches in many blocks follows from mean and variance of those seen (Gumbel 1958, "Statistics of extremes").
    """

    def __init__(self) -> None:
        self._count, self._mean, self._variance = FIRST_PEAKS, *FIRST_PEAK
        self._elapsed, self._highest = 0.0, 0.0

    def add(self, height: float, duration: float) -> None:
        self._highest = max(self._highest, height)
        self._elapsed += duration
        if self._elapsed < PEAK:
            return
        self._count = min(self._count + 1.0, MEMORY / PEAK)
        change = min(self._highest - self._mean, 3.0 * math.sqrt(self._variance))
        self._mean += change / self._count
        self._variance += (change * change - self._variance) / self._count
        self._elapsed, self._highest = 0.0, 0.0

    def limit(self, blocks: float) -> float:
        """What is exceeded once in so many blocks; at least one, that of theory."""
        scale = math.sqrt(6.0 * self._variance) / math.pi
        return max(1.0, self._mean + scale * (math.log(blocks) - np.euler_gamma))
