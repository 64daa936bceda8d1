"""Standard errors of a registration by leaving out stretches of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid_ros.mocap.scatter import Scatter

BLOCKS = 10
"""Stretches of consecutive frames: long enough that errors of one do not return in the next."""


def block_errors(scatter: Scatter, weights: NDArray, basis: NDArray) -> tuple[NDArray, NDArray]:
    """Standard errors (6 + n,) of the parameters and (P, 3) of the places; zero for parameters that are not free.

    The jackknife over blocks of consecutive frames, each left out by one Gauss-Newton step (Miller 1974, "The
    jackknife: a review"): honest where residuals of neighbouring frames are alike, as deflections are.
    """
    n_blocks = min(BLOCKS, len(weights))
    residual = np.where(weights[..., None] > 0, scatter.residual, 0.0)
    jacobian = scatter.jacobian @ basis
    mean_jacobian = np.nan_to_num(scatter.mean_jacobian @ basis)
    totals = np.maximum(weights.sum(axis=0), np.finfo(float).tiny)
    parts = np.array_split(np.arange(len(weights)), n_blocks)
    normals, gradients = zip(*(_normal(jacobian[rows], residual[rows], weights[rows]) for rows in parts), strict=True)
    whole = np.sum(normals, axis=0)
    steps, places = [], []
    for rows, normal, gradient in zip(parts, normals, gradients, strict=True):
        step = np.linalg.lstsq(whole - normal, gradient, rcond=None)[0]
        share = weights[rows].sum(axis=0) / totals
        pull = np.einsum("kp,kpi->pi", weights[rows], residual[rows]) / totals[:, None]
        steps.append(basis @ step)
        places.append(mean_jacobian @ step - pull / np.maximum(1 - share, 1e-9)[:, None])
    factor = (n_blocks - 1) / n_blocks
    return tuple(np.sqrt(factor * np.sum(np.square(moves), axis=0)) for moves in (steps, places))  # type: ignore[return-value]


def _normal(jacobian: NDArray, residual: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
    flat = jacobian.reshape(-1, jacobian.shape[-1])
    weighted = (jacobian * weights[..., None, None]).reshape(flat.shape)
    return weighted.T @ flat, weighted.T @ residual.ravel()
