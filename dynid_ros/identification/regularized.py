"""Estimates from a rank-deficient regressor: ridge regression and the solution of minimum norm.

Both are about a prior: with nominal parameters θ₀ they solve the error model of Khosla and Kanade (1987, eq. 11)

    ε = τ − Y θ₀ = Y Δθ,   θ = θ₀ + Δθ,

so what the data leave open stays nominal. Without a prior it is zero, as with Atkeson, An and Hollerbach (1986).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.linear_fit import LinearFit, checked_problem, decompose

TOLERANCE = 1e-5
"""Singular values of the column-scaled matrix below this fraction of the largest count as zero. On real motions
structure leaves 1e-15, right angles written as 1.5708 leave 1e-10, and what can be identified more than 1e-3."""


def minimum_norm(
    R: ArrayLike,
    z: ArrayLike,
    prior: ArrayLike | None = None,
    *,
    scaled: bool = False,
    tolerance: float = TOLERANCE,
) -> LinearFit:
    """The least-squares solution nearest to the prior (Atkeson, An and Hollerbach 1986, section 2.2.1).

    Args:
        R: (m, k) regressor with rows of unit variance, tall or its triangular factor.
        z: (m,) right-hand side, compressed alike.
        prior: (k,) nominal parameters; None: zero.
        scaled: measure the distance in columns of unit norm, so that it does not depend on units; else in SI units.
        tolerance: for the rank, which is that of the scaled columns in either case.

    Raises:
        IdentificationError: shapes that do not fit, numbers that are not finite, a regressor of zeros.

    """
    R, z, start = checked_problem(R, z, prior)
    found = decompose(R, tolerance)
    gain = (found.right.T * found.inverse) @ found.left.T / found.scale[:, None]
    if not scaled:
        gain = project(found.right * found.scale, gain)
    return LinearFit(
        solution=start + gain @ (z - R @ start),
        covariance=gain @ gain.T,
        determined=found.right,
        scale=found.scale,
        condition_number=found.condition_number,
        singular_values=found.singular if scaled else np.linalg.svd(R, compute_uv=False),
    )


def ridge(
    R: ArrayLike,
    z: ArrayLike,
    weight: float,
    prior: ArrayLike | None = None,
    *,
    scaled: bool = False,
    tolerance: float = TOLERANCE,
) -> LinearFit:
    """Minimise ‖R θ − z‖² + d ‖θ − θ₀‖²: θ = θ₀ + (RᵀR + d 1)⁻¹ Rᵀ (z − R θ₀), Atkeson's eq. 20.

    The weight should be far below the smallest squared singular value that counts. Every combination is pulled to the
    prior by d / (s² + d) of the way. The covariance is that of a prior with standard deviation 1/√d in each parameter,
    so it covers the pull as far as the prior is that good; along what is open it is zero as in `minimum_norm`.

    Args:
        R: (m, k) regressor, tall or its triangular factor.
        z: (m,) right-hand side, compressed alike.
        weight: d > 0; the paper's 10 is for rows in N m and parameters in SI units.
        prior: (k,) nominal parameters θ₀; None: zero.
        scaled: d weighs columns of unit norm, and is a fraction; else parameters in SI units.
        tolerance: for the rank that is reported; ridge itself needs none.

    Raises:
        IdentificationError: a weight that is not positive, or as `minimum_norm`.

    """
    if not (np.isfinite(weight) and weight > 0):
        raise IdentificationError(f"Weight of the ridge is {weight:g}; expected a positive number")
    R, z, start = checked_problem(R, z, prior)
    found = decompose(R, tolerance)
    unit = found.scale if scaled else np.ones(R.shape[1])
    left, singular, right = np.linalg.svd(R / unit, full_matrices=False)
    directions = right.T / unit[:, None]
    filtered = singular / (singular**2 + weight)
    rank = len(found.right)
    known = directions[:, :rank]
    return LinearFit(
        solution=start + directions @ (filtered * (left.T @ (z - R @ start))),
        covariance=(known / (singular[:rank] ** 2 + weight)) @ known.T,
        determined=found.right,
        scale=found.scale,
        condition_number=found.condition_number,
        singular_values=singular,
    )


def project(rows: NDArray, vectors: NDArray) -> NDArray:
    """Parts of vectors (k, ...) in the span of rows (r, k): with steps from a prior, the shortest that do the same."""
    basis, _ = np.linalg.qr(rows.T)
    return basis @ (basis.T @ vectors)
