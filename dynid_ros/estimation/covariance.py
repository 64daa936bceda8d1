"""Standard errors under correlated residuals and wrong gains of torque sensors.

Residuals of a robot are mostly friction that the model lacks. They are correlated in neighbouring samples, and again
when the motion repeats. Standard errors that count samples or stretches of time treat repetitions as new evidence. So
samples are divided into kinds of motion (`MotionKinds`), in which residuals may be correlated in any way. The scatter
of the estimate between kinds of motion is its uncertainty (cluster-robust or "sandwich" covariance, Liang and Zeger
1986). Each kind counts once per joint, because friction of different joints is independent.

A fit follows the residuals of ten kinds of motion closely. A correction makes the covariance unbiased under a working
model of the residuals (CR2: Bell and McCaffrey 2002; Pustejovsky and Tipton 2018): noise, and unmodelled friction,
which acts like a change of all parameters in each kind of motion. Its size is estimated from the residuals. Intervals
are Student's with the degrees of freedom of the covariance under that model (Imbens and Kolesar 2016), about ten.

Errors that are the same in all samples, as of a gain or of the arm that carries a load, are counted separately. They
also show in the residuals, because the motion differs, so their expected effect is subtracted.

In simulations (benchmarks/link_coverage.py) standard errors of white noise are too small by a factor of two. Where the
motion repeats, those from stretches of time, or from the autocorrelation or the spectrum of the residuals, are too
small too: they do not see repetition. Without a working model, few kinds of motion hide a tenth of the standard error.
Leaving out one kind after the other (CR3, the jackknife) adds a fifth too much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from dynid_ros.estimation.least_squares import solve_grouped
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.estimation.rank import column_norms, half_inverse

NEGLIGIBLE_LEVERAGE = 1e-9
"""Leverage that counts as zero."""
MAX_LEVERAGE = 1 - 1e-6
"""Leverage above which residuals have no information, because a single kind of motion determines the parameter. The
error is then that of the working model."""
MAX_DOF = 1e6
"""Degrees of freedom that are as good as infinite."""


@dataclass(frozen=True, eq=False)
class _Piece:
    """Samples of one joint in one kind of motion, compressed to s equations.

    Attributes:
        joint: index, from 0.
        rows: (s, r) orthogonal rows, in columns for which the sum of rowsᵀ rows over all pieces is one.
        share: (s,) leverage, the squared norms of the rows.
        residual: (s,).
        known: (s, m) residual by one standard deviation of each known error.
    """

    joint: int
    rows: NDArray
    share: NDArray
    residual: NDArray
    known: NDArray


def robust_covariance(
    problem: WeightedProblem, weights: NDArray, noise: NDArray, solution: NDArray, gain_error: float = 0.0
) -> tuple[NDArray, NDArray]:
    """Return the covariance (k, k) of a weighted fit, and the degrees of freedom (k,) of each variance.

    Args:
        problem: equations that were solved.
        weights: (n,) divisors of the equations of each joint.
        noise: (n,) RMS residual of each joint, N m (N).
        solution: (k,).
        gain_error: standard deviation of the unknown relative error of each joint's torque gain. This variance is
            known, so the degrees of freedom grow with its share (Satterthwaite 1946).
    """
    grams = [
        (j, *(part / w**2 for part in problem.kind_gram(j, kind)))
        for kind in problem.factors.kinds
        for j, w in enumerate(weights)
    ]
    seen, dof = clustered_covariance(grams, (noise / weights) ** 2, solution)
    covariance = seen + _gain_covariance(problem, weights, gain_error)
    with np.errstate(divide="ignore", invalid="ignore"):
        dof = dof * (np.diag(covariance) / np.diag(seen)) ** 2
    return covariance, np.where(dof < MAX_DOF, np.maximum(dof, 1.0), MAX_DOF)


def clustered_covariance(
    grams: Sequence[tuple[int, NDArray, NDArray]],
    white: NDArray,
    solution: NDArray,
    known: Sequence[NDArray] | None = None,
) -> tuple[NDArray, NDArray]:
    """Return the covariance (k, k) of a fit, and its degrees of freedom (k,), by the scatter between kinds of motion.

    Args:
        grams: for each joint in each kind of motion the joint, its normal equations (k, k) and right-hand side (k,).
        white: (n,) variance of each joint's noise, in the units of the equations.
        solution: (k,).
        known: for each of `grams` right-hand sides (k, m) by one standard deviation of m independent errors. They are
            the same in all data and not part of the covariance, so the caller adds them. None: there are none.
    """
    inverse, pieces = _pieces(grams, solution, known)
    variances = _working_model(pieces, white)
    total = sum((p.rows.T * v) @ p.rows for p, v in zip(pieces, variances, strict=True))
    effects = [_effect(p, v, total) @ inverse.T for p, v in zip(pieces, variances, strict=True)]
    scores = np.array([p.residual @ effect for p, effect in zip(pieces, effects, strict=True)])
    alone = sum(
        (p.rows.T * np.where(p.share < MAX_LEVERAGE, 0.0, v)) @ p.rows for p, v in zip(pieces, variances, strict=True)
    )
    seen = scores.T @ scores + inverse @ alone @ inverse.T
    dof = _dof(pieces, variances, effects, total)
    if known is None:
        return seen, dof
    expected = sum(np.sum((p.known.T @ effect) ** 2, axis=0) for p, effect in zip(pieces, effects, strict=True))
    noise = sum(p.rows.T @ p.rows * white[p.joint] for p in pieces)
    # The expected part is known, so the rest has fewer degrees of freedom. Noise remains, and so do correlations.
    whole = np.diag(seen)
    least = np.minimum(np.sum(inverse @ noise * inverse, axis=1), whole)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(whole > 0.0, np.maximum(whole - expected, least) / whole, 1.0)
    return seen * np.sqrt(np.outer(share, share)), dof * share**2


def white_covariance(
    problem: WeightedProblem, weights: NDArray, noise: NDArray, gain_error: float = 0.0
) -> tuple[NDArray, NDArray]:
    """Return the covariance and degrees of freedom of `robust_covariance` for independent residuals."""
    squares = [square / w**2 for square, w in zip(problem.squares, weights, strict=True)]
    half = half_inverse(sum(squares))
    inverse = half @ half.T
    middle = sum(square * (s / w) ** 2 for square, s, w in zip(squares, noise, weights, strict=True))
    covariance = inverse @ middle @ inverse
    if gain_error:
        covariance += _gain_covariance(problem, weights, gain_error)
    return covariance, np.full(problem.n_unknowns, MAX_DOF)


def widened(own: NDArray, other: NDArray) -> NDArray:
    """Return a covariance (k, k) for independent samples, widened to errors no smaller than those of `other`.

    Every estimator meets the correlated residuals of the weighted fit; its own correlations are kept.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt(np.diag(other) / np.diag(own))
    factor = np.where(np.isfinite(ratio), np.maximum(ratio, 1.0), 1.0)
    return own * np.outer(factor, factor)


def _pieces(
    grams: Sequence[tuple[int, NDArray, NDArray]], solution: NDArray, known: Sequence[NDArray] | None
) -> tuple[NDArray, list[_Piece]]:
    """Half inverse (k, r) of the normal equations, and all pieces."""
    inverse = half_inverse(np.sum([matrix for _, matrix, _ in grams], axis=0))
    known = [np.zeros((len(solution), 0))] * len(grams) if known is None else known
    moved = inverse @ (inverse.T @ np.sum(known, axis=0))
    pieces = []
    for (j, matrix, right), errors in zip(grams, known, strict=True):
        share, axes = np.linalg.eigh(inverse.T @ matrix @ inverse)
        kept = share > NEGLIGIBLE_LEVERAGE
        share = share[kept]
        axes = axes[:, kept]
        white = (inverse @ axes).T / np.sqrt(share)[:, None]
        residual = white @ (right - matrix @ solution)
        of_known = white @ (errors - matrix @ moved)
        pieces.append(_Piece(j, (axes * np.sqrt(share)).T, share, residual, of_known))
    return inverse, pieces


def _working_model(pieces: Sequence[_Piece], white: NDArray) -> list[NDArray]:
    """Return variances (s,) of each piece's residuals before the fit: white noise and parameters that vary by kind.

    The second part is proportional to the leverage. Its size in each joint makes the expected sums of squared
    residuals, in the space of the columns, equal to the observed ones.
    """
    n = len(white)
    r = pieces[0].rows.shape[1]
    found = np.zeros(n)
    linear = np.zeros((n, r, r))
    square = np.zeros((n, r, r))
    own = np.zeros((n, 2))
    for p in pieces:
        found[p.joint] += np.sum(p.share * p.residual**2)
        linear[p.joint] += p.rows.T @ p.rows
        square[p.joint] += (p.rows.T * p.share) @ p.rows
        own[p.joint] += np.sum(p.share - 2 * p.share**2), np.sum(p.share**2 - 2 * p.share**3)
    noise = own[:, 0] * white + np.einsum("iab,jab,j->i", square, linear, white)
    varying = nnls(np.diag(own[:, 1]) + np.einsum("iab,jab->ij", square, square), found - noise)[0]
    return [white[p.joint] + varying[p.joint] * p.share for p in pieces]


def _effect(piece: _Piece, variance: NDArray, total: NDArray) -> NDArray:
    """Return the factors (s, r) of residuals that make the square of the score unbiased.

    The working model gives the variance (s,) of the residuals before the fit, and `total` (r, r), that of the solution.
    """
    seen = piece.share < MAX_LEVERAGE
    rows = piece.rows[seen]
    variance = variance[seen]
    after = np.diag(variance * (1 - 2 * piece.share[seen])) + rows @ total @ rows.T
    root = np.sqrt(variance)
    values, axes = np.linalg.eigh(root[:, None] * after * root)
    effect = np.zeros_like(piece.rows)
    effect[seen] = root[:, None] * (axes / np.sqrt(values) @ axes.T) @ (root[:, None] * rows)
    return effect


def gain_shifts(problem: WeightedProblem, weights: NDArray) -> NDArray:
    """Return the change (n, k) of the solution per relative error of each joint's torque gain."""
    parts = [problem.joint(j) for j in range(problem.n_joints)]
    moments = np.array([matrix.T @ right / w**2 for (matrix, right), w in zip(parts, weights, strict=True)])
    inverse = half_inverse(sum(square / w**2 for square, w in zip(problem.squares, weights, strict=True)))
    return moments @ inverse @ inverse.T


def _gain_covariance(problem: WeightedProblem, weights: NDArray, gain_error: float) -> NDArray:
    moved = gain_error * gain_shifts(problem, weights)
    return moved.T @ moved


def _dof(pieces: Sequence[_Piece], variances: Sequence[NDArray], effects: Sequence[NDArray], total: NDArray) -> NDArray:
    """Return the degrees of freedom (k,) of the sums of the squared scores under the working model."""
    pulls = np.array([p.rows.T @ e for p, e in zip(pieces, effects, strict=True)])
    moved = np.array([(p.rows.T * v) @ e for p, v, e in zip(pieces, variances, effects, strict=True)])
    sizes = np.array([v @ e**2 for v, e in zip(variances, effects, strict=True)])
    found = np.full(sizes.shape[1], np.inf)
    for parameter, size in enumerate(sizes.T):
        pull = pulls[:, :, parameter]
        cross = moved[:, :, parameter] @ pulls[:, :, parameter].T
        covariance = np.diag(size) - cross - cross.T + pull @ total @ pull.T
        if size.any():
            found[parameter] = np.trace(covariance) ** 2 / np.sum(covariance**2)
    return found


# Errors of a load that residuals do not show: of the arm's model, and of the sensors' gains.


class KnownColumns(Protocol):
    """Columns that are known, but not exactly: those of an arm's model, or of a sensor's gains."""

    @property
    def covariance(self) -> NDArray | None:
        """(a, a); None: they are exact."""

    @property
    def gain_shifts(self) -> NDArray | None:
        """(n, a) change of their values per relative error of each channel's gain; None: they do not change."""

    @property
    def values(self) -> NDArray:
        """(a,)."""


def known_errors(grams: Sequence[NDArray], size: int, gain_error: float, arm: KnownColumns | None) -> NDArray:
    """Return the covariance (k, k) of x = N⁻¹ Aᵀ W (d − B δ) by the arm's error δ and by wrong gains.

    A gain with an error ε changes the whole torque of its channel, d + B β, where β are the arm's parameters. These
    were found with the same gain and have its error, so the common part of the arm's torque then and now cancels.

    Args:
        grams: for each channel [A B d]ᵀ W [A B d], (k + a + 1, k + a + 1): fitted columns, columns of the arm,
            right-hand side.
        size: k.
        gain_error: standard deviation of the relative error of each channel's gain.
        arm: model with the columns B; None: there is none.
    """
    half = half_inverse(np.sum(grams, axis=0)[:size, :size])
    sides = known_sides(list(enumerate(grams)), len(grams), size, gain_error, arm)
    moved = half @ (half.T @ np.sum(sides, axis=0))
    return moved @ moved.T


def known_sides(
    grams: Sequence[tuple[int, NDArray]], channels: int, size: int, gain_error: float, arm: KnownColumns | None
) -> list[NDArray]:
    """Return the right-hand sides (k, m) of the normal equations by one standard deviation of each of these errors.

    Args:
        grams: channel, and its [A B d]ᵀ W [A B d] in some of the data.
        channels: number c of channels.
        size: k.
        gain_error: standard deviation of the relative error of each channel's gain.
        arm: model with the columns B; None: there is none.
    """
    ends = slice(size, -1)
    sides = []
    root = None if arm is None or arm.covariance is None else covariance_root(arm.covariance)
    for channel, gram in grams:
        gains = np.zeros((size, channels))
        gains[:, channel] = gram[:size, -1]
        if arm is None or root is None:
            sides.append(gain_error * gains)
            continue
        of_arm = gram[:size, ends]
        if arm.gain_shifts is not None:
            gains[:, channel] += of_arm @ arm.values
            gains -= of_arm @ arm.gain_shifts.T
        sides.append(np.hstack([of_arm @ root, gain_error * gains]))
    return sides


def covariance_root(covariance: NDArray) -> NDArray:
    """Return a root (k, k) of a covariance (k, k), which may be singular: its product with its transpose."""
    values, axes = np.linalg.eigh(covariance)
    return axes * np.sqrt(np.maximum(values, 0.0))


N_TIME_BLOCKS = 10
"""Number of blocks of time: few enough to be long, enough for Student's quantile to be below 2.3."""
SINGLE_GROUP_TOLERANCE = 1e-6
"""Remainder of a combination without one group that counts as zero: that group alone determines the combination."""


# Standard errors by groups of samples that are left out in turn (Quenouille, Tukey). Unmodelled torques are correlated
# in neighbouring samples. Blocks of time that are longer than the correlation are nearly independent, and so are the
# positions of a joint.


@dataclass(frozen=True, eq=False)
class Jackknife:
    """Estimates without each of B blocks.

    Attributes:
        estimates: (B, p), one estimate per block that is left out.
    """

    estimates: NDArray

    @property
    def covariance(self) -> NDArray:
        """Covariance (p, p) of the estimate from all samples."""
        return jackknife_covariance(self.estimates - self.estimates.mean(axis=0))

    @property
    def standard_errors(self) -> NDArray:
        """Square roots (p,) of the variances."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def dof(self) -> int:
        """Degrees of freedom of the covariance."""
        return len(self.estimates) - 1


def jackknife_covariance(moves: NDArray) -> NDArray:
    """Return the covariance (p, p) of an estimate that leaving out each of B blocks moves by (B, p)."""
    return (len(moves) - 1) / len(moves) * moves.T @ moves


def jackknife_variance(moves: NDArray) -> NDArray:
    """Return the variances (...) of `jackknife_covariance` for moves (B, ...)."""
    return (len(moves) - 1) / len(moves) * np.sum(np.square(moves), axis=0)


def left_out_steps(normals: NDArray, gradients: NDArray, rcond: float | None = None) -> NDArray:
    """Return the moves (B, p) by Gauss-Newton steps without each block (Miller 1974, "The jackknife: a review").

    Args:
        normals: (B, p, p) normal matrix of each block.
        gradients: (B, p) right-hand side of each block at the estimate.
        rcond: see `numpy.linalg.lstsq`.
    """
    rest = np.sum(normals, axis=0) - normals
    return np.array([np.linalg.lstsq(a, b, rcond=rcond)[0] for a, b in zip(rest, gradients, strict=True)])


def time_blocks(runs: NDArray) -> NDArray:
    """Return the block (N,) of each sample: about `N_TIME_BLOCKS` contiguous stretches of equal length.

    No block extends over two runs, and each run has at least two.

    Args:
        runs: (N,) run of each sample; samples of a run are adjacent and in order of time.
    """
    blocks = np.empty(len(runs), dtype=int)
    start = 0
    for run in np.unique(runs):
        rows = np.flatnonzero(runs == run)
        own = max(2, round(N_TIME_BLOCKS * len(rows) / len(runs)))
        blocks[rows] = start + np.arange(len(rows)) * own // len(rows)
        start += own
    return blocks


def jackknife(estimate: Callable[[NDArray], NDArray], blocks: NDArray) -> Jackknife:
    """Return the estimates (p,) without each block (N,) in turn, by a function of a mask of samples (N,)."""
    return Jackknife(np.array([estimate(blocks != block) for block in np.unique(blocks)]))


@dataclass(frozen=True)
class LinearEstimate:
    """Linear estimate x = gain b of b = matrix x + noise; k unknowns, m rows.

    Attributes:
        matrix: (m, k).
        gain: (k, m).
        residual: (m,).
        group: (m,) index of each row's noise.
        sigma: (G,) standard deviation of each noise.
    """

    matrix: NDArray
    gain: NDArray
    residual: NDArray
    group: NDArray
    sigma: NDArray

    def dof(self) -> NDArray:
        """Return the degrees of freedom (k,) of each variance; few rows determine each noise (Satterthwaite 1946)."""
        leverage = np.einsum("mk,km->m", self.matrix, self.gain)
        group_dof = np.maximum(np.bincount(self.group, 1 - leverage, len(self.sigma)), 1.0)
        squares = np.array([np.bincount(self.group, row**2, len(self.sigma)) for row in self.gain])
        parts = squares * self.sigma**2
        total = parts.sum(axis=1)
        return np.where(total > 0, total**2 / np.maximum((parts**2 / group_dof).sum(axis=1), 1e-300), group_dof.sum())

    def covariance(self, groups: NDArray) -> NDArray:
        """Return the covariance (k, k) by a jackknife over groups of rows (Efron 1982).

        An unknown that a single group determines has the error of noise alone.

        Args:
            groups: (m,) group of each row, 0 … C−1; errors are independent between groups.
        """
        scale = column_norms(self.matrix)
        total = np.zeros((len(scale), len(scale)))
        count = int(groups.max()) + 1
        for rows in np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1]):
            gain = self.gain[:, rows] * scale[:, None]
            rest = np.eye(len(scale)) - gain @ (self.matrix[rows] / scale)
            inverse = np.linalg.pinv(rest, SINGLE_GROUP_TOLERANCE)
            moved = inverse @ (gain @ self.residual[rows])
            alone = (gain - inverse @ (rest @ gain)) * self.sigma[self.group[rows]]
            total += (1 - 1 / count) * np.outer(moved, moved) + alone @ alone.T
        return total / np.outer(scale, scale)


def sample_jackknife(matrix: NDArray, right: NDArray, group: NDArray, solution: NDArray) -> NDArray:
    """Return the covariance (k, k) of `solve_grouped` by a jackknife over samples with all channels (Tukey 1958).

    The noise of the channels, which weights them, is estimated from few samples. Formulas for known weights give 95 %
    intervals that contain the true value in 85 % of cases only.

    Args:
        matrix: (m, k), with the channels of a sample in adjacent rows.
        right: (m,).
        group: (m,) channel of each row.
        solution: (k,) solution of all rows.
    """
    channels = group.max() + 1
    n_samples = len(right) // channels
    moved = []
    for sample in range(n_samples):
        kept = np.ones(n_samples, bool)
        kept[sample] = False
        rows = np.repeat(kept, channels)
        moved.append(solve_grouped(matrix[rows], right[rows], group[rows])[0].solution - solution)
    return jackknife_covariance(np.array(moved))
