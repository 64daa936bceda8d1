"""Standard errors that allow for residuals that are correlated in time, and for torque sensors with a wrong gain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.link_problem import LinkProblem


def robust_covariance(
    problem: LinkProblem, noise: NDArray, solution: NDArray, gain_error: float = 0.0
) -> tuple[NDArray, int]:
    """Covariance (k, k) of a weighted fit, and its degrees of freedom.

    Residuals of a robot are mostly friction that the model lacks: they change with the motion, within tenths of a
    second, so that neighbouring samples err alike. What stretches of time say on their own differs by as much as the
    estimate is uncertain (cluster-robust or "sandwich" covariance, Liang and Zeger 1986).

    Args:
        problem: that was solved.
        noise: (n,) of each joint, N m.
        solution: (k,).
        gain_error: standard deviation of the unknown relative error of each joint's torque gain.

    """
    k = problem.n_unknowns
    counts = problem.factors.counts
    normal, scores = np.zeros((k, k)), np.zeros((len(counts) // 2, k))
    gains = np.zeros((problem.n_joints, k))
    for stretch in range(len(scores)):
        groups = [2 * stretch, 2 * stretch + 1]
        for j, s in enumerate(noise):
            matrix, right, _ = problem.gram(j, groups)
            normal += matrix / s**2
            scores[stretch] += (right - matrix @ solution) / s**2
            gains[j] += right / s**2
    scale = np.sqrt(np.where(np.diag(normal) > 0, np.diag(normal), 1.0))
    bread = np.linalg.pinv(normal / np.outer(scale, scale), rcond=1e-14, hermitian=True) / np.outer(scale, scale)
    occupied = int(np.sum(counts.reshape(-1, 2).sum(axis=1) > 0))
    correction = occupied / max(occupied - 1, 1)
    half = scores @ bread
    drift = gain_error * gains @ bread
    return correction * half.T @ half + drift.T @ drift, max(occupied - 1, 1)
