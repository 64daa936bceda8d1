"""Standard errors where the rests of a rotation err alike: one rotation after the other is left out.

What a model of friction misses is the same all along a rotation, in which one joint turns and the others hold, so its
rests are no independent evidence. The jackknife over rotations, to first order (Bell and McCaffrey 2002, with the
residuals that each rotation would have if it had not been fitted), asks for nothing but independent rotations.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.least_squares import MINIMUM_FREEDOM, Decomposition
from dynid_ros.identification.rotations import rotations
from dynid_ros.identification.samples import Samples

ALONE = 1e-6
"""Part of a rotation's residual that its own fit leaves, below which it alone decides a direction."""


def rotation_of(samples: Samples) -> NDArray:
    """(M,) number of the rotation that each sample belongs to; one in none is a rotation of its own."""
    number = np.arange(len(samples))
    for rotation in rotations(samples):
        number[rotation.rows] = rotation.rows[0]
    return number


def widening(parts: Decomposition, residual: NDArray, rotation: NDArray) -> tuple[NDArray, NDArray]:
    """By what standard errors of white residuals are to be multiplied, (k,), and degrees of freedom (k,).

    Where so few rotations decide an unknown that these cannot be told, errors are not narrowed.

    Args:
        parts: of the weighted matrix (m, k).
        residual: (m,) weighted.
        rotation: (m,) that each row belongs to.

    """
    half = (parts.right.T * parts.inverse) / parts.scale[:, None]
    moved, squares, crossed = [], [], []
    for number in np.unique(rotation):
        left = parts.left[rotation == number]
        size, axes = np.linalg.eigh(np.eye(len(left)) - left @ left.T)
        outside = (axes / np.maximum(size, ALONE)) @ axes.T
        weights = half @ (left.T @ outside)
        moved.append(weights @ residual[rotation == number])
        squares.append((weights**2).sum(axis=1))
        crossed.append(weights @ left)
    own, shared = np.array(squares), np.array(crossed)
    # Sum and sum of squares of the eigenvalues of diag(own) − shared sharedᵀ.
    trace = own.sum(axis=0) - (shared**2).sum(axis=(0, 2))
    products = np.einsum("ckr,dkr->kcd", shared, shared)
    diagonal = np.einsum("kcc->kc", products)
    square = (own.T**2 - 2 * own.T * diagonal).sum(axis=1) + (products**2).sum(axis=(1, 2))
    white = np.maximum((half**2).sum(axis=1), 1e-300)
    factor = np.sqrt((np.array(moved) ** 2).sum(axis=0) / white)
    freedom = trace**2 / np.maximum(square, 1e-300)
    # A rotation that alone decides a direction has no residual in it: what is left would be too little.
    few = ~(freedom >= MINIMUM_FREEDOM) | (trace < white)
    return np.where(few, np.maximum(factor, 1.0), factor), np.where(few, MINIMUM_FREEDOM, freedom)
