"""Least squares that outliers cannot pull far: Huber's M-estimator by iteratively reweighted least squares.

Rows up to 1.345 standard deviations off count in full, those beyond by 1.345 σ/|residual|; with Gaussian noise that
costs 5 % of efficiency (Huber 1964, "Robust estimation of a location parameter"; Holland and Welsch 1977). Outliers in
the torque are bounded so; those in the motion spoil regressor rows, which no M-estimator repairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import LinearFit, fit_with_prior, triangular_factor

MAD_TO_SIGMA = 1.482602
"""Standard deviation of Gaussian noise over the median of its magnitude."""


def median_deviation(values: NDArray) -> float:
    """Return the standard deviation of Gaussian noise by the median magnitude."""
    return float(MAD_TO_SIGMA * np.median(np.abs(values)))


# Marker residuals against outliers: how large noise makes them, and how much each one counts.


MEDIAN_NORM_OF_3 = 1.5382
"""Median length of a vector of three standard normal numbers."""

OUTLIER_SIGMAS = 4.5
"""Standard deviations beyond which a marker's residual is an outlier; noise is beyond once in 15 000 times."""

TUKEY_SIGMAS = 5.5
"""Standard deviations at which Tukey's biweight of a vector of three reaches zero (95 % efficiency)."""


def lengths(residual: NDArray) -> NDArray:
    """Lengths (...) of residuals (..., 3); infinite where they are not finite."""
    squared = np.einsum("...i,...i->...", residual, residual)
    return np.sqrt(np.where(np.isfinite(squared), squared, np.inf))


def spread(length: NDArray) -> NDArray:
    """Return the standard deviation (...) of a coordinate from the median of finite lengths (..., P), else NaN."""
    ordered = np.sort(np.where(np.isfinite(length), length, np.inf), axis=-1)
    count = np.isfinite(ordered).sum(axis=-1)
    middle = [np.maximum((count - 1 + odd) // 2, 0) for odd in (0, 1)]
    median = sum(np.take_along_axis(ordered, m[..., None], axis=-1)[..., 0] for m in middle) / 2
    return np.where(count > 0, median, np.nan) / MEDIAN_NORM_OF_3


def tukey(length: NDArray, scale: ArrayLike) -> NDArray:
    """Weights of squared residuals, (1 − (r / 5.5 σ)²)², zero beyond (Beaton and Tukey 1974)."""
    return (
        np.maximum(1 - (np.where(np.isfinite(length), length, np.inf) / (TUKEY_SIGMAS * np.asarray(scale))) ** 2, 0.0)
        ** 2
    )


HUBER_SIGMAS = 1.345
"""Standard deviations up to which a row counts in full."""

MAX_PASSES = 50

PREDICTION_TOLERANCE = 1e-3
"""Root mean square change of the predicted torque between two passes, in standard deviations, that ends them."""

NOISE_TOLERANCE = 0.02
"""Change of a joint's noise between two passes, in parts of it, that is not followed: noise that is held makes the
problem convex."""

MIN_NOISE_FRACTION = 1e-10
"""Least standard deviation of a joint's noise, in parts of its largest torque: less is rounding."""

Blocks = Callable[[], Iterable[tuple[NDArray, NDArray]]]
"""Function that returns regressors (M, n, k) and torques (M, n), once per pass."""


@dataclass(frozen=True)
class RobustFit(LinearFit):
    """Fit of rows divided by the noise of their joints; the covariance is that of an M-estimator.

    Attributes:
        noise: (n,) standard deviation of each joint's torque without its outliers.
        outliers: (n,) share of the rows with a weight below one half.
        passes: number of passes over the data.
    """

    noise: NDArray
    outliers: NDArray
    passes: int


def huber_weights(standardised: ArrayLike) -> NDArray:
    """Weights of squared residuals, of the same shape, from residuals in standard deviations."""
    size = np.abs(np.asarray(standardised, dtype=float))
    return HUBER_SIGMAS / np.maximum(size, HUBER_SIGMAS)


def solve_robust(blocks: Blocks) -> RobustFit:
    """Fit all joints, each with its own noise, in passes over blocks; only a triangle and the residuals are stored.

    The noise of a joint is 1.4826 times the median magnitude of its residuals, estimated after every pass. Undetermined
    parts have minimum norm in columns of unit norm.
    """
    solution: NDArray | None = None
    noise: NDArray | None = None
    for passes in range(2, MAX_PASSES + 1):  # the last one is for the covariance
        factor, residual = _pass(blocks, solution, noise)
        fit = fit_with_prior(factor[:, :-1], factor[:, -1], scaled=True)
        # The median needs all residuals of a pass, so the weights of the next one rest on it.
        if noise is None:
            floor = MIN_NOISE_FRACTION * np.max(np.abs(residual), axis=0)
        updated = _noise(residual, floor)
        if solution is not None and noise is not None:
            change = np.linalg.norm(factor[:, :-1] @ (fit.solution - solution)) / np.sqrt(residual.size)
            steady = np.abs(updated - noise) <= NOISE_TOLERANCE * noise
            if change < PREDICTION_TOLERANCE and steady.all():
                covariance = _covariance(blocks, fit, updated)
                outliers = np.mean(huber_weights(residual / updated) < 0.5, axis=0)
                return RobustFit(
                    **vars(replace(fit, covariance=covariance)), noise=updated, outliers=outliers, passes=passes
                )
            updated = np.where(steady, noise, updated)
        solution = fit.solution
        noise = updated
    raise IdentificationError(
        f"Huber's weights did not settle in {MAX_PASSES} passes over the data; look at the residuals of an ordinary "
        "fit: more than a few per cent of outliers, or motion that hardly excites the parameters?"
    )


def _pass(blocks: Blocks, solution: NDArray | None, noise: NDArray | None) -> tuple[NDArray, NDArray]:
    """Triangular factor of the weighted rows of [Y τ], and the residuals (N, n) that weighted them."""
    residuals: list[NDArray] = []

    def weighted() -> Iterator[NDArray]:
        for regressor, torque in blocks():
            Y, tau = _checked(regressor, torque)
            residual = tau if solution is None else tau - Y @ solution
            residuals.append(residual)
            root = np.ones_like(tau) if noise is None else np.sqrt(huber_weights(residual / noise)) / noise
            yield np.concatenate([Y, tau[..., None]], axis=-1) * root[..., None]
        if not sum(map(len, residuals)):
            raise IdentificationError(
                "Robust fit: the blocks hold no samples; check the recordings, and make the blocks anew at every call"
            )

    factor = triangular_factor(weighted())
    return factor, np.concatenate(residuals)


def _checked(regressor: ArrayLike, torque: ArrayLike) -> tuple[NDArray, NDArray]:
    Y = np.asarray(regressor, dtype=float)
    tau = np.asarray(torque, dtype=float)
    if Y.ndim != 3 or tau.shape != Y.shape[:2]:
        raise IdentificationError(
            f"Block of regressors {Y.shape} and torques {tau.shape} do not fit; expected (M, n, k) and (M, n)"
        )
    if not (np.isfinite(Y).all() and np.isfinite(tau).all()):
        raise IdentificationError("Robust fit: a block is not finite; remove such samples before the fit")
    return Y, tau


def _noise(residual: NDArray, floor: NDArray | float = 0.0) -> NDArray:
    """Return the standard deviation (n,) per joint from the median magnitude; 1 if that and the floor are zero."""
    spread = np.maximum(MAD_TO_SIGMA * np.median(np.abs(residual), axis=0), floor)
    return np.where(spread > 0, spread, 1.0)


def _covariance(blocks: Blocks, fit: LinearFit, noise: NDArray) -> NDArray:
    """Return A⁻¹ B A⁻¹ with A = Σ ψ' y yᵀ and B = Σ ψ² y yᵀ over rows y, within the determined space."""
    slope, square = np.zeros((2, fit.rank, fit.rank))
    for regressor, torque in blocks():
        Y, tau = _checked(regressor, torque)
        standardised = (tau - Y @ fit.solution) / noise
        rows = (Y / fit.scale @ fit.determined.T) / noise[:, None]
        inside = rows[np.abs(standardised) <= HUBER_SIGMAS]
        bounded = (rows * np.clip(standardised, -HUBER_SIGMAS, HUBER_SIGMAS)[..., None]).reshape(-1, fit.rank)
        slope += inside.T @ inside
        square += bounded.T @ bounded
    values, axes = np.linalg.eigh(square)
    try:
        half = np.linalg.solve(slope, axes * np.sqrt(np.maximum(values, 0.0)))
    except np.linalg.LinAlgError as error:
        raise IdentificationError(
            "Robust fit: fewer samples count in full than there are parameters; record longer"
        ) from error
    half = (half.T @ fit.determined / fit.scale).T
    return half @ half.T
