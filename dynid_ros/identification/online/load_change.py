"""Detection of a load that is picked up or dropped.

A change δ of mass and mass moment adds A δ to the torques, with known columns A. The generalised likelihood ratio
(Willsky and Jones 1976; Lai 1995 for windows) measures how much of the innovations e of the last rows it explains. With
Σ the covariance of the innovations,

    N = Σ Aᵀ Σ⁻¹ A + Π,   y = Σ Aᵀ Σ⁻¹ e,   u = N^(−1/2) y,   T² = uᵀ C⁻¹ u.

Π is the prior information on changes. C is the identity for white innovations, but innovations of a robot are mostly
unmodelled friction, which stays similar for seconds. So Σ, and C for each length of window, are measured as means of
e eᵀ and of u uᵀ over the previous minutes. A joint with large unmodelled friction then has little weight, and so does a
direction of u that friction excites repeatedly. T² is Hotelling's statistic. Its threshold follows from the requested
rate of false alarms, the number of independent windows, and the number of innovations that C averages. The largest T
without a change is measured as well, and sets the threshold where it exceeds Hotelling's (`_Peaks`).

Errors of the gains and of the arm grow with the torque: a joint that carries three times its earlier load may have
three times the error. Innovations are therefore divided by the standard deviation that such errors may cause.

At rest friction is unknown but constant. There torques are compared with their mean since the arm came to rest, with
separate statistics. This holds while a joint stays in place: a tiny displacement, as of an arm that is about to start,
reverses friction (presliding) and may change torques by up to stiction.
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
"""Prior standard deviations of a change of mass and of mass moment, kg and kg m."""

MEMORY_S = 120.0
"""Time over which statistics of the innovations are averaged, s."""

WARM_UP_S = 5.0
"""Duration of innovations before the first alarm, s."""

INITIAL_WORTH_S = 10.0
INITIAL_SCATTER = 4.0
"""Weight of the initial statistics, as a duration of innovations (s), and the initial C, for typical friction."""

CORRELATION_S = 0.5
"""Correlation time of innovations, s, which sets the degrees of freedom of C: friction is similar during a stroke."""

SETTLING_S = 0.12
"""Time without motion after which the arm rests, s: the low-pass has forgotten the motion by then."""

BREAK_AWAY_S = 0.2
"""Time that a change at rest must last without motion, s: the torque of a joint that is about to move rises too."""

MAX_CREEP = 2e-4
"""Displacement of a joint since the arm came to rest, rad or m, beyond which its friction may have changed."""

HOLD_OFF_S = 1.0
"""Time after a change without another alarm, s; statistics continue in case of a false alarm."""

MAX_SURE_SPREAD = 1.0
"""Variance of a prediction, relative to that of the noise, above which an innovation shows errors of the estimate."""

PEAK_BLOCK_S = 2.0
"""Length of the blocks of time whose largest T is recorded, s."""

INITIAL_PEAKS = 5.0
INITIAL_PEAK = (0.4, 0.015)
"""Initial values of `_Peaks`: number of blocks, mean and variance of their largest T as a fraction of the threshold."""

MAX_SQUARE_RATIO = 4.0
"""Largest ratio of a squared innovation, or of T², to its mean; larger values are clipped before averaging."""

_STATIC_AND_LAST = [*range(STATIC), -1]
_SMALL = 1e-9
_LARGE = 1e12


@dataclass(frozen=True)
class LoadChange:
    """A load that was picked up or dropped.

    Attributes:
        time: time of the change that fits the torques best, s.
        noticed: time of the alarm, s.
        mass: first estimate of the change of mass, from the torques between `time` and `noticed`, kg.
        statistic: T² at the alarm.
        threshold: threshold that T² exceeded.
    """

    time: float
    noticed: float
    mass: float
    statistic: float
    threshold: float


class LoadChangeDetector:
    """Detector of load changes in the innovations of recursive least squares.

    Args:
        n_joints: number n of joints.
        spacing: time between innovations, s.
        false_alarms: tolerated number of false alarms per hour.
        stiction: (n,) largest friction of each joint at rest, in units of its noise.
    """

    def __init__(self, n_joints: int, spacing: float, false_alarms: float = 0.1, stiction: ArrayLike = 0.0):
        self._spacing = spacing
        self._stiction = stiction
        self._lengths = np.unique([max(1, round(window / spacing)) for window in WINDOW_S])
        # Each length of window may raise an equal share of the false alarms.
        rates = false_alarms / 3600 * self._lengths * spacing / len(self._lengths)
        self._chance = np.minimum(rates, 0.01)
        self._silent = -math.inf
        self._thresholds: dict[int, NDArray] = {}
        self._blocks = 3600 / (false_alarms * PEAK_BLOCK_S)
        self._prior = np.diag(MAX_LOAD_CHANGE**-2)
        self._statistics = {moving: _Statistics(n_joints, len(self._lengths)) for moving in (False, True)}
        self.restart()

    def restart(self) -> None:
        """Start new windows, as after a change, but keep the statistics."""
        self._begin(moving=True)
        self._moved = math.nan

    def _begin(self, moving: bool) -> None:
        self._moving = moving
        # Products Aᵀ Σ⁻¹ [A e] of the last instants, the newest first.
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
        """Add the equations of one instant and return the change of the load that they reveal, or None.

        Args:
            time: time of the instant, s.
            rows: (n, k + 1) [A b], mass and mass moment first, divided by the noise and `looseness`.
            error: (n,) innovations, divided alike.
            spread: (n,) variance of the prediction, in the same units.
            systematic: (n,) variance that errors of gains and of the arm give the innovations, in the same units.
            looseness: (n,) standard deviation of a torque with unknown friction, relative to that of its noise.
            moving: whether any joint moves.
            position: (n,) positions of the joints, rad or m.
        """
        if moving or math.isnan(self._moved):
            self._moved = time
        moving = time - self._moved < SETTLING_S
        if moving != self._moving:
            self._begin(moving)
        equations = rows[:, _STATIC_AND_LAST]
        weight = np.ones(len(error))
        if moving:
            weight = looseness**-2.0
            equations[:, -1] = error
            usual = spread.max() < MAX_SURE_SPREAD
            scale = 1.0 / np.sqrt(1.0 + spread + systematic)
            equations *= (scale if usual else np.where(spread < MAX_SURE_SPREAD, scale, 0.0))[:, None]
        else:
            # Friction and the torque of the load are unknown but constant at rest, so only their change is tested.
            equations *= looseness[:, None]
            if self._crept >= len(self._recent):
                self._begin(moving)
            if not self._rested:
                self._place = position
            creep = np.minimum(np.abs(position - self._place) / MAX_CREEP, 1.0)
            self._crept += bool(creep.max() == 1.0)
            self._rested += 1
            self._level = self._level + (equations[:, -1] - self._level) / self._rested
            equations[:, -1] -= self._level
            equations /= np.hypot(1.0, creep * self._stiction)[:, None]
            usual = True
        statistics = self._statistics[moving]
        weighted = statistics.precision @ equations
        products = equations.T @ weighted
        self._times.appendleft(time)
        self._recent[1:] = self._recent[:-1]
        self._recent[0] = products[:-1]
        statistics.count += 1
        elapsed = statistics.count * self._spacing
        share = self._spacing / min(elapsed + INITIAL_WORTH_S, MEMORY_S)
        if usual:
            square = max(float(products[-1, -1]), _SMALL)
            kept = min(1.0, MAX_SQUARE_RATIO * len(equations) / square)
            statistics.learn(equations[:, -1], weight, kept, self._spacing)
        return self._judge(statistics, elapsed, share)

    def _judge(self, statistics: _Statistics, elapsed: float, share: float) -> LoadChange | None:
        """Return the change if T² exceeds its threshold in any window; otherwise update C⁻¹ and return None."""
        ready = int(self._lengths.searchsorted(len(self._times), side="right"))  # number of windows that are full
        if not ready:
            return None
        sums = self._recent.cumsum(axis=0)
        windows = sums[self._lengths[:ready] - 1]
        roots = np.linalg.cholesky(windows[:, :, :-1] + self._prior)
        explained = np.linalg.solve(roots, windows[:, :, -1:])
        inverse = statistics.inverse_scatter[:ready]
        solved = inverse @ explained
        statistic = (explained * solved).sum(axis=(1, 2))
        if elapsed > WARM_UP_S and self._times[0] >= self._silent:
            threshold = self._threshold(elapsed)[:ready]
            relative = statistic / threshold
            best = int(relative.argmax())
            height = math.sqrt(relative[best])
            limit = statistics.peaks.limit(self._blocks)
            if height <= limit:
                self._doubtful = 0.0
                statistics.peaks.add(height, self._spacing)
            elif self._moving or self._doubtful >= BREAK_AWAY_S:
                return self._change(sums, float(statistic[best]), float(threshold[best] * limit**2))
            else:
                self._doubtful += self._spacing
        kept = share * np.minimum(1.0, MAX_SQUARE_RATIO * STATIC / np.maximum(statistic, _SMALL))
        inverse -= (kept / (1.0 - share + kept * statistic))[:, None, None] * solved * solved.transpose(0, 2, 1)
        inverse /= 1.0 - share
        _bound(inverse)
        return None

    def _threshold(self, elapsed: float) -> NDArray:
        """Return the threshold (w,) of T² of each length of window."""
        # Quantiles are slow to compute, so times that differ by up to 5 % share a threshold.
        step = int(20 * math.log(min(elapsed + INITIAL_WORTH_S, MEMORY_S)))
        if step not in self._thresholds:
            self._thresholds[step] = self._hotelling(math.exp(step / 20))
        return self._thresholds[step]

    def _hotelling(self, duration: float) -> NDArray:
        """Return the quantiles (w,) of Hotelling's T², where C averages innovations of a duration (s)."""
        blocks = duration / np.maximum(self._lengths * self._spacing, CORRELATION_S)
        dof = np.maximum(blocks, STATIC + 1.0)
        factor = STATIC * dof / (dof - STATIC + 1.0)
        return factor * fdtri(STATIC, dof - STATIC + 1.0, 1 - self._chance)

    def _change(self, sums: NDArray, statistic: float, threshold: float) -> LoadChange:
        """Return the change that began at the instant which explains most of the innovations since."""
        sums = sums[: len(self._times)]
        changes = np.linalg.solve(sums[:, :, :-1] + self._prior, sums[:, :, -1:])[:, :, 0]
        start = int((sums[:, :, -1] * changes).sum(axis=1).argmax())
        self._silent = self._times[0] + HOLD_OFF_S
        return LoadChange(self._times[start], self._times[0], float(changes[start, 0]), statistic, threshold)


class _Statistics:
    """Statistics of the innovations: Σ⁻¹ (n, n), and C⁻¹ (w, 4, 4) of each length of window, from `count` innovations.

    Each new term of the means has rank one, so the inverses are updated by the formula of Sherman and Morrison. A joint
    that rests while others move does not show its innovations in motion, so its row and column of Σ are kept.
    """

    def __init__(self, n_joints: int, lengths: int):
        self.count = 0
        self._elapsed = np.full(n_joints, INITIAL_WORTH_S)
        self.precision = np.eye(n_joints)
        self.inverse_scatter = np.tile(np.eye(STATIC) / INITIAL_SCATTER, (lengths, 1, 1))
        self.peaks = _Peaks()

    def learn(self, error: NDArray, weight: NDArray, kept: float, spacing: float) -> None:
        """Update the inverse of Σ ← D Σ D + r rᵀ, where D forgets old innovations and r is the scaled innovation.

        Args:
            error: (n,) innovations.
            weight: (n,) weight of each innovation; near zero for a joint that rests while others move.
            kept: fraction of the squared innovation that enters the mean, below 1 where it is clipped.
            spacing: time between innovations, s.
        """
        self._elapsed = np.minimum(self._elapsed + spacing * weight, MEMORY_S)
        share = spacing / self._elapsed
        shrink = 1.0 / np.sqrt(1.0 - share * weight)
        self.precision *= shrink[:, None] * shrink
        root = np.sqrt(kept * share) * error
        solved = self.precision @ root
        self.precision -= solved[:, None] * solved / (1.0 + solved @ root)
        _bound(self.precision)


def _bound(inverses: NDArray) -> None:
    """Limit the diagonals of inverse covariances in place; a variance may be zero, as in a simulation without noise."""
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
        """Return the level that one of `blocks` blocks exceeds; at least 1, which is the theoretical threshold."""
        scale = math.sqrt(6.0 * self._variance) / math.pi
        return max(1.0, self._mean + scale * (math.log(blocks) - np.euler_gamma))
