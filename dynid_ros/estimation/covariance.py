"""Standard errors that allow for residuals that are not noise, and for torque sensors with a wrong gain.

Residuals of a robot are mostly friction that the model lacks. They are correlated in neighbouring samples, and again
when the motion repeats: to count samples, or stretches of time, takes repetitions for new evidence. So samples are put
into kinds of motion (`MotionKinds`), in which residuals may be correlated in any way. What kinds of motion say of a
parameter differs by as much as its estimate is uncertain (cluster-robust or "sandwich" covariance, Liang and Zeger
1986). Each kind counts once per joint: friction in one joint knows nothing of that in another.

A fit follows the residuals of ten kinds of motion closely. They are set right so that the covariance is unbiased under
a working model of them (CR2: Bell and McCaffrey 2002; Pustejovsky and Tipton 2018): noise, and what the model lacks,
which in each kind of motion looks as if all parameters were others. How much of it there is, is estimated from the
residuals. Intervals are Student's with the degrees of freedom that the covariance has under that model (Imbens and
Kolesar 2016), some ten.

Errors that are the same in all samples, as of a gain or of the arm that carries a load, are counted apart. But they
show in the residuals too, as the motion differs, so what they are expected to show is subtracted.

In simulations (benchmarks/link_coverage.py) standard errors of white noise are too small by a factor of two. Where
the motion repeats, those from stretches of time, or from the autocorrelation or the spectrum of the residuals, are too
small too: they see no repetition. Without a working model of what is lacking, few kinds of motion hide a tenth of the
standard error; to leave out one kind after the other (CR3, the jackknife) adds a fifth too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.estimation.rank import half_inverse

NEGLIGIBLE_LEVERAGE = 1e-9
"""Leverage that counts as none."""
MAX_LEVERAGE = 1 - 1e-6
"""Leverage from which on residuals say nothing, as only one kind of motion determines: there errors are those of the
working model."""
MAX_DOF = 1e6
"""Degrees of freedom that are as good as infinite."""


@dataclass(frozen=True, eq=False)
class _Piece:
    """Samples of one joint in one kind of motion, compressed to s equations.

    Attributes:
        joint: counted from 0.
        rows: (s, r) orthogonal to each other, of columns in which the sum of all pieces' rowsᵀ rows is one.
        share: (s,) leverage, the rows' squared lengths.
        residual: (s,).
        known: (s, m) residual that each of the known errors would give, at one standard deviation.
    """

    joint: int
    rows: NDArray
    share: NDArray
    residual: NDArray
    known: NDArray


def robust_covariance(
    problem: WeightedProblem, weights: NDArray, noise: NDArray, solution: NDArray, gain_error: float = 0.0
) -> tuple[NDArray, NDArray]:
    """Covariance (k, k) of a weighted fit, and degrees of freedom (k,) of each parameter's variance.

    Args:
        problem: that was solved.
        weights: (n,) by which the equations of each joint were divided.
        noise: (n,) RMS residual of each joint, N m.
        solution: (k,).
        gain_error: standard deviation of the unknown relative error of each joint's torque gain. It is known itself,
            and so leaves the more degrees of freedom, the more it adds (Satterthwaite 1946).
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
    """Covariance (k, k) of a fit, and degrees of freedom (k,) of its variances, from what kinds of motion say.

    Args:
        grams: for each joint in each kind of motion the joint, its normal equations (k, k) and right-hand side (k,).
        white: (n,) variance of each joint's noise, in the units of the equations.
        solution: (k,).
        known: for each of `grams` right-hand sides (k, m): what m independent errors add at one standard deviation.
            They are the same in all of the data, and whoever asks counts them himself; the covariance is without them.
            None: there are none.
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
    return _without(seen, dof, expected, np.sum(inverse @ noise * inverse, axis=1))


def white_covariance(
    problem: WeightedProblem, weights: NDArray, noise: NDArray, gain_error: float = 0.0
) -> tuple[NDArray, NDArray]:
    """As `robust_covariance`, of residuals that are independent of each other: of samples that are no recording."""
    squares = [square / w**2 for square, w in zip(problem.squares, weights, strict=True)]
    half = half_inverse(sum(squares))
    inverse = half @ half.T
    middle = sum(square * (s / w) ** 2 for square, s, w in zip(squares, noise, weights, strict=True))
    covariance = inverse @ middle @ inverse
    if gain_error:
        covariance += _gain_covariance(problem, weights, gain_error)
    return covariance, np.full(problem.n_unknowns, MAX_DOF)


def widened(own: NDArray, other: NDArray) -> NDArray:
    """Covariance (k, k) of an estimator that counts samples as independent, its errors no smaller than `other` has.

    An estimator other than the weighted fit meets the same residuals that are not noise; its correlations stay.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt(np.diag(other) / np.diag(own))
    factor = np.where(np.isfinite(ratio), np.maximum(ratio, 1.0), 1.0)
    return own * np.outer(factor, factor)


def _without(seen: NDArray, dof: NDArray, expected: NDArray, least: NDArray) -> tuple[NDArray, NDArray]:
    """Covariance (k, k) less variances (k,) that are counted elsewhere, none below `least`; its correlations stay.

    What is subtracted is known, so what is left is as uncertain as all was, with the fewer degrees of freedom.
    """
    whole = np.diag(seen)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(whole > 0.0, np.maximum(whole - expected, np.minimum(least, whole)) / whole, 1.0)
    return seen * np.sqrt(np.outer(share, share)), dof * share**2


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
        share, axes = share[kept], axes[:, kept]
        white = (inverse @ axes).T / np.sqrt(share)[:, None]
        residual, of_known = white @ (right - matrix @ solution), white @ (errors - matrix @ moved)
        pieces.append(_Piece(j, (axes * np.sqrt(share)).T, share, residual, of_known))
    return inverse, pieces


def _working_model(pieces: Sequence[_Piece], white: NDArray) -> list[NDArray]:
    """Variances (s,) of each piece's residuals before the fit: white noise (n,), and parameters that vary by kind.

    A row's part of the latter is as its leverage. Its size in each joint is that with which the sums of squared
    residuals, in the space of the columns, are expected to be what they are.
    """
    n, r = len(white), pieces[0].rows.shape[1]
    found, linear, square = np.zeros(n), np.zeros((n, r, r)), np.zeros((n, r, r))
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
    """(s, r) by which residuals are multiplied for a score whose square is unbiased.

    Args:
        piece: of the residuals.
        variance: (s,) of its residuals by the working model, before the fit.
        total: (r, r) variance of the solution by that model.
    """
    seen = piece.share < MAX_LEVERAGE
    rows, variance = piece.rows[seen], variance[seen]
    after = np.diag(variance * (1 - 2 * piece.share[seen])) + rows @ total @ rows.T
    root = np.sqrt(variance)
    values, axes = np.linalg.eigh(root[:, None] * after * root)
    effect = np.zeros_like(piece.rows)
    effect[seen] = root[:, None] * (axes / np.sqrt(values) @ axes.T) @ (root[:, None] * rows)
    return effect


def gain_shifts(problem: WeightedProblem, weights: NDArray) -> NDArray:
    """(n, k) change of the solution per relative error of each joint's gain, which moves its whole torque."""
    parts = [problem.joint(j) for j in range(problem.n_joints)]
    moments = np.array([matrix.T @ right / w**2 for (matrix, right), w in zip(parts, weights, strict=True)])
    inverse = half_inverse(sum(square / w**2 for square, w in zip(problem.squares, weights, strict=True)))
    return moments @ inverse @ inverse.T


def _gain_covariance(problem: WeightedProblem, weights: NDArray, gain_error: float) -> NDArray:
    moved = gain_error * gain_shifts(problem, weights)
    return moved.T @ moved


def _dof(pieces: Sequence[_Piece], variances: Sequence[NDArray], effects: Sequence[NDArray], total: NDArray) -> NDArray:
    """(k,) degrees of freedom of the sums of the squared scores under the working model."""
    pulls = np.array([p.rows.T @ e for p, e in zip(pieces, effects, strict=True)])
    moved = np.array([(p.rows.T * v) @ e for p, v, e in zip(pieces, variances, effects, strict=True)])
    sizes = np.array([v @ e**2 for v, e in zip(variances, effects, strict=True)])
    found = np.full(sizes.shape[1], np.inf)
    for parameter, size in enumerate(sizes.T):
        pull, cross = pulls[:, :, parameter], moved[:, :, parameter] @ pulls[:, :, parameter].T
        covariance = np.diag(size) - cross - cross.T + pull @ total @ pull.T
        if size.any():
            found[parameter] = np.trace(covariance) ** 2 / np.sum(covariance**2)
    return found


# Errors of a load that no residual shows: of the arm's model, and of the sensors' gains.


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
    """Covariance (k, k) of a solution x = N⁻¹ Aᵀ W (d − B δ) that comes from the arm's error δ and from wrong gains.

    A gain that is wrong by ε moves the whole torque of its channel, d + B β, β being the arm's parameters. But these
    were found with the same gain, and are wrong for it: what is common to the arm's torque then and now cancels.

    Args:
        grams: for each channel [A B d]ᵀ W [A B d], (k + a + 1, k + a + 1): columns that are fitted, columns of the
            arm, and the right-hand side.
        size: k.
        gain_error: standard deviation of the relative error of each channel's gain.
        arm: whose columns B are; None: there are none.
    """
    half = half_inverse(np.sum(grams, axis=0)[:size, :size])
    sides = known_sides(list(enumerate(grams)), len(grams), size, gain_error, arm)
    moved = half @ (half.T @ np.sum(sides, axis=0))
    return moved @ moved.T


def known_sides(
    grams: Sequence[tuple[int, NDArray]], channels: int, size: int, gain_error: float, arm: KnownColumns | None
) -> list[NDArray]:
    """Right-hand sides (k, m) that each of these errors adds to normal equations at one standard deviation.

    Args:
        grams: channel, and its [A B d]ᵀ W [A B d] in some of the data.
        channels: number c of them.
        size: k.
        gain_error: standard deviation of the relative error of each channel's gain.
        arm: whose columns B are; None: there are none.
    """
    ends, sides = slice(size, -1), []
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
    """(k, k) whose product with its transpose is the covariance (k, k), which may be singular."""
    values, axes = np.linalg.eigh(covariance)
    return axes * np.sqrt(np.maximum(values, 0.0))
