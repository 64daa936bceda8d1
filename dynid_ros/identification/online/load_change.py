"""Detection of a load that is picked up or dropped.

A change δ of mass and mass moment adds A δ to the torques, with known columns A. The generalised likelihood ratio
(Willsky and Jones 1976; Lai 1995 for windows) measures how much of the innovations e of the last rows it explains. With
Σ the covariance of the innovations,

    N = Σ Aᵀ Σ⁻¹ A + Π,   y = Σ Aᵀ Σ⁻¹ e,   u = N^(−1/2) y,   T² = uᵀ C⁻¹ u.

Π is the prior information on changes. C is one for white innovations, but innovations of a robot are unmodelled
friction, which is similar for seconds. So Σ, and C for each length of window, are measured as means of e eᵀ and of u uᵀ
over the previous minutes. A joint with bad friction then counts little, and so does a direction that the motion excites
again and again. T² is Hotelling's statistic. Its threshold follows from the requested rate of false alarms, the number
of independent windows, and the number of innovations behind C. The largest T without a change is measured as well, and
sets the threshold where it exceeds Hotelling's (`_Peaks`).

Errors of the gains and of the arm grow with the torque: a joint that carries three times its earlier load may have
three times the error. Innovations are therefore divided by the deviation that such errors may cause.

At rest friction is unknown but constant. There torques are compared with their mean since the arm came to rest, with
statistics of their own. This holds while a joint stays in place: a tiny displacement, as of an arm that is about to
start, turns friction round (presliding) and may change torques by all of stiction.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtri

from dynid_ros.model.inertia import STATIC

WINDOW_S = (0.1, 0.2, 0.4, 0.8)
"""Lengths of the windows, s."""

MAX_LOAD_CHANGE = np.array([2.0, 0.3, 0.3, 0.3])
"""Standard deviations of changes that are looked for: kg, kg m."""

MEMORY_S = 120.0
"""s over which the innovations are known."""

WARM_UP_S = 5.0
"""Duration of innovations before the first alarm, s."""

INITIAL_WORTH_S = 10.0
INITIAL_SCATTER = 4.0
"""Duration of innovations, s, that the initial statistics are worth, and the initial C: friction of typical size."""

CORRELATION_S = 0.5
"""Duration of innovations, s, that count as one in C; friction is similar for about a stroke."""

SETTLING_S = 0.12
"""Time without motion after which the arm rests, s: the low-pass has forgotten the motion by then."""

BREAK_AWAY_S = 0.2
"""s for which a change at rest must last without motion: a joint that is about to move has its torque rise too."""

MAX_CREEP = 2e-4
"""Displacement of a joint since the arm came to rest, rad or m, beyond which its friction may have changed."""

HOLD_OFF_S = 1.0
"""Time after a change without another alarm, s; statistics continue in case of a false alarm."""

MAX_SURE_SPREAD = 1.0
"""Variance of the prediction, in units of the noise, above which an innovation is not that of the torque."""

PEAK_BLOCK_S = 2.0
"""Length of the blocks whose largest T are recorded, s."""

INITIAL_PEAKS = 5.0
INITIAL_PEAK = (0.4, 0.015)
"""Number of blocks, and mean and variance of their largest T, as a fraction of the threshold, before any is known."""

MAX_SQUARE_RATIO = 4.0
"""Largest ratio of a squared innovation, or of T², to its mean; larger values are cut before averaging."""

_STATIC_AND_LAST = [*range(STATIC), -1]
_SMALL = 1e-9
_LARGE = 1e12


@dataclass(frozen=True)
class LoadChange:
    """A load that was picked up or dropped.

    Attributes:
        time: time of the change that fits the torques best, s.
        noticed: time of the alarm, s.
        mass: rough change of mass by the torques since `time`, kg.
        statistic: T².
        threshold: threshold that T² exceeded.
    """

    time: float
    noticed: float
    mass: float
    statistic: float
    threshold: float


class LoadChangeDetector:
    """Detector of changes in the innovations.

    Args:
        n_joints: n.
        spacing: time between innovations, s.
        false_alarms: tolerated number of false alarms per hour.
        stiction: (n,) largest friction of each joint at rest, in units of its noise.
    """

    def __init__(self, n_joints: int, spacing: float, false_alarms: float = 0.1, stiction: ArrayLike = 0.0):
        self._spacing = spacing
        self._stiction = stiction
        self._lengths = np.unique([max(1, round(window / spacing)) for window in WINDOW_S])
        # Windows of each length may raise their share of the alarms.
        rates = false_alarms / 3600 * self._lengths * spacing / len(self._lengths)
        self._chance = np.minimum(rates, 0.01)
        self._silent = -math.inf
        self._thresholds: dict[int, NDArray] = {}
        self._blocks = 3600 / (false_alarms * PEAK_BLOCK_S)
        self._prior = np.diag(MAX_LOAD_CHANGE**-2)
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
        self._level = np.zeros(1)
        self._rested = 0
        self._doubtful = 0.0
        self._place = np.zeros(1)
        self._crept = 0

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
        moving = time - self._moved < SETTLING_S
        if moving != self._moving:
            self._begin(moving)
        equations = rows[:, _STATIC_AND_LAST]
        motion = np.ones(len(error))
        if moving:
            motion = looseness**-2.0
            equations[:, -1] = error
            usual = spread.max() < MAX_SURE_SPREAD
            scale = 1.0 / np.sqrt(1.0 + spread + systematic)
            equations *= (scale if usual else np.where(spread < MAX_SURE_SPREAD, scale, 0.0))[:, None]
        else:
            # What friction holds is not known, but constant, as is the rest: only what changes since then counts.
            equations *= looseness[:, None]
            if self._crept >= len(self._recent):
                self._begin(moving)
            if not self._rested:
                self._place = position
            way = np.minimum(np.abs(position - self._place) / MAX_CREEP, 1.0)
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
        share = self._spacing / min(elapsed + INITIAL_WORTH_S, MEMORY_S)
        if usual:
            square = max(float(products[-1, -1]), _SMALL)
            known.learn(equations[:, -1], motion, min(1.0, MAX_SQUARE_RATIO * len(equations) / square), self._spacing)
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
        if elapsed > WARM_UP_S and self._times[0] >= self._silent:
            threshold = self._threshold(elapsed)[:ready]
            relative = statistic / threshold
            best = int(relative.argmax())
            height = math.sqrt(relative[best])
            limit = known.peaks.limit(self._blocks)
            if height <= limit:
                self._doubtful = 0.0
                known.peaks.add(height, self._spacing)
            elif self._moving or self._doubtful >= BREAK_AWAY_S:
                return self._change(sums, float(statistic[best]), float(threshold[best] * limit**2))
            else:
                self._doubtful += self._spacing
        kept = share * np.minimum(1.0, MAX_SQUARE_RATIO * STATIC / np.maximum(statistic, _SMALL))
        inverse -= (kept / (1.0 - share + kept * statistic))[:, None, None] * pulled * pulled.transpose(0, 2, 1)
        inverse /= 1.0 - share
        _bound(inverse)
        return None

    def _threshold(self, elapsed: float) -> NDArray:
        # Quantiles are slow; a few per cent of the time make no difference.
        step = int(20 * math.log(min(elapsed + INITIAL_WORTH_S, MEMORY_S)))
        if step not in self._thresholds:
            self._thresholds[step] = self._hotelling(math.exp(step / 20))
        return self._thresholds[step]

    def _hotelling(self, known: float) -> NDArray:
        blocks = known / np.maximum(self._lengths * self._spacing, CORRELATION_S)
        dof = np.maximum(blocks, STATIC + 1.0)
        factor = STATIC * dof / (dof - STATIC + 1.0)
        return factor * fdtri(STATIC, dof - STATIC + 1.0, 1 - self._chance)

    def _change(self, sums: NDArray, statistic: float, threshold: float) -> LoadChange:
        sums = sums[: len(self._times)]
        changes = np.linalg.solve(sums[:, :, :-1] + self._prior, sums[:, :, -1:])[:, :, 0]
        start = int((sums[:, :, -1] * changes).sum(axis=1).argmax())
        self._silent = self._times[0] + HOLD_OFF_S
        return LoadChange(self._times[start], self._times[0], float(changes[start, 0]), statistic, threshold)


class _Statistics:
    """Statistics of the innovations: Σ⁻¹ (n, n), and C⁻¹ (w, 4, 4) of each length of window, from `count` innovations.

    The inverse of a mean that gains one square at a time is updated by the formula of Sherman and Morrison. A joint
    that rests while others move shows nothing of its innovations in motion, so its row and column of Σ are kept.
    """

    def __init__(self, n_joints: int, lengths: int):
        self.count = 0
        self._elapsed = np.full(n_joints, INITIAL_WORTH_S)
        self.precision = np.eye(n_joints)
        self.inverse_scatter = np.tile(np.eye(STATIC) / INITIAL_SCATTER, (lengths, 1, 1))
        self.peaks = _Peaks()

    def learn(self, error: NDArray, motion: NDArray, kept: float, spacing: float) -> None:
        """Update the inverse of Σ ← D Σ D + r rᵀ.

        Args:
            error: (n,) innovations.
            motion: (n,) weight of each innovation; near zero for a joint that rests while others move.
            kept: part of the squared innovation that is averaged.
            spacing: s between innovations.
        """
        self._elapsed = np.minimum(self._elapsed + spacing * motion, MEMORY_S)
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
    """Distribution of the largest T in blocks of time, as fractions of the theoretical threshold.

    Largest values follow Gumbel's distribution if the tail of T is not heavier than exponential. Their quantile for
    many blocks follows from the mean and variance of the recorded ones (Gumbel 1958, "Statistics of extremes").
    """

    def __init__(self) -> None:
        self._count, self._mean, self._variance = INITIAL_PEAKS, *INITIAL_PEAK
        self._elapsed = 0.0
        self._highest = 0.0

    def add(self, height: float, duration: float) -> None:
        self._highest = max(self._highest, height)
        self._elapsed += duration
        if self._elapsed < PEAK_BLOCK_S:
            return
        self._count = min(self._count + 1.0, MEMORY_S / PEAK_BLOCK_S)
        change = min(self._highest - self._mean, 3.0 * math.sqrt(self._variance))
        self._mean += change / self._count
        self._variance += (change * change - self._variance) / self._count
        self._elapsed = 0.0
        self._highest = 0.0

    def limit(self, blocks: float) -> float:
        """Return the level that one in so many blocks exceeds, at least one, the theoretical threshold."""
        scale = math.sqrt(6.0 * self._variance) / math.pi
        return max(1.0, self._mean + scale * (math.log(blocks) - np.euler_gamma))
