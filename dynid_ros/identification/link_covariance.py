"""Standard errors that allow for residuals that are not noise, and for torque sensors with a wrong gain.

Residuals of a robot are mostly friction that the model lacks. They are alike in neighbouring samples, and again
whenever the motion repeats: counting samples, or stretches of time, takes repetitions for new evidence. So samples
are put into kinds of motion (`MotionKinds`), in which residuals may be correlated in any way; what kinds of motion on
their own say of a parameter differs by as much as its estimate is uncertain (cluster-robust or "sandwich" covariance,
Liang and Zeger 1986). Each kind counts once per joint, for friction in one joint knows nothing of that in another. As
the fit follows the residuals of each kind the more, the fewer there are, residuals are set right so that the
covariance is unbiased for white noise (CR2: Bell and McCaffrey 2002, "Bias reduction in standard errors for linear
regression with multi-stage samples"), and intervals are Student's with the degrees of freedom of that paper, some
ten.

In simulations (benchmarks/link_coverage.py) white noise gives standard errors that are too small by a factor of three,
stretches of time by a factor of two where the motion repeats, and so do the residuals' autocorrelation or spectrum,
which see no repetition. Leaving kinds out in turn (CR3, the jackknife) makes intervals a quarter too wide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.link_problem import RANK_TOLERANCE, LinkProblem

OWN = 1e-6
"""Share of noise that the fit leaves in a residual, below which the residual says nothing of it: what only one kind of
motion decides is as uncertain as white noise makes it."""
NORMAL = 1e6
"""Degrees of freedom that are as good as infinite."""


def robust_covariance(
    problem: LinkProblem, noise: NDArray, solution: NDArray, gain_error: float = 0.0
) -> tuple[NDArray, NDArray]:
    """Covariance (k, k) of a weighted fit, and degrees of freedom (k,) of each parameter's variance.

    Args:
        problem: that was solved.
        noise: (n,) of each joint, N m.
        solution: (k,).
        gain_error: standard deviation of the unknown relative error of each joint's torque gain; known itself, it has
            no degrees of freedom to lose (Satterthwaite 1946).

    """
    pieces = [
        tuple(part / s**2 for part in problem.kind_gram(j, kind))
        for kind in problem.factors.kinds
        for j, s in enumerate(noise)
    ]
    half = _half_inverse(sum(matrix for matrix, _ in pieces))
    scores, pulls, sizes, alone = [], [], [], np.zeros(half.shape)
    for matrix, right in pieces:
        share, axes = np.linalg.eigh(half.T @ matrix @ half)
        share = np.clip(share, 0.0, 1.0)
        left = 1 - share
        lost = left < OWN
        wider = axes * np.where(lost, 0.0, 1 / np.sqrt(np.where(lost, 1.0, left)))
        scores.append(half @ (wider @ (axes.T @ (half.T @ (right - matrix @ solution)))))
        response = (half @ wider) * np.sqrt(share)
        sizes.append(np.sum(response**2, axis=1))
        pulls.append((half @ wider) * share @ axes.T)
        alone = alone + (half @ axes[:, lost]) @ axes[:, lost].T
    seen = np.array(scores).T @ np.array(scores) + alone @ half.T
    joints = np.array([sum(right for _, right in pieces[j :: len(noise)]) for j in range(len(noise))])
    drift = gain_error * joints @ half @ half.T
    covariance = seen + drift.T @ drift
    freedom = _freedom(np.array(pulls), np.array(sizes))
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = freedom * (np.diag(covariance) / np.diag(seen)) ** 2
    return covariance, np.where(freedom < NORMAL, np.maximum(freedom, 1.0), NORMAL)


def white_covariance(
    problem: LinkProblem, weights: NDArray, noise: NDArray, gain_error: float = 0.0
) -> tuple[NDArray, NDArray]:
    """As `robust_covariance`, of residuals that are independent of each other: of samples that are no recording.

    Args:
        problem: that was solved.
        weights: (n,) what the rows of each joint were divided by.
        noise: (n,) of each joint, N m.
        gain_error: as there.

    """
    parts = [problem.joint(j) for j in range(problem.n_joints)]
    squares = [matrix.T @ matrix / w**2 for (matrix, _), w in zip(parts, weights, strict=True)]
    half = _half_inverse(sum(squares))
    inverse = half @ half.T
    middle = sum(square * (s / w) ** 2 for square, s, w in zip(squares, noise, weights, strict=True))
    moments = np.array([matrix.T @ right / w**2 for (matrix, right), w in zip(parts, weights, strict=True)])
    drift = gain_error * moments @ inverse
    return inverse @ middle @ inverse + drift.T @ drift, np.full(problem.n_unknowns, NORMAL)


def _half_inverse(normal: NDArray) -> NDArray:
    """H (k, r), for which H Hᵀ is the inverse of normal equations (k, k) within what they decide."""
    scale = np.sqrt(np.where(np.diag(normal) > 0, np.diag(normal), 1.0))
    values, axes = np.linalg.eigh(normal / np.outer(scale, scale))
    decided = values > RANK_TOLERANCE**2 * values[-1]
    return axes[:, decided] / np.sqrt(values[decided]) / scale[:, None]


def _freedom(pulls: NDArray, sizes: NDArray) -> NDArray:
    """(k,) degrees of freedom of the sum of squares of C scores, under white noise.

    Args:
        pulls: (C, k, r), what noise that the columns follow adds to each score.
        sizes: (C, k), variance of each score if the fit did not follow it.

    """
    found = np.empty(sizes.shape[1])
    for parameter, size in enumerate(sizes.T):
        covariance = np.diag(size) - pulls[:, parameter] @ pulls[:, parameter].T
        square = np.sum(covariance**2)
        found[parameter] = np.trace(covariance) ** 2 / square if square > 0 else np.inf
    return found
