"""What makes one motion better than another, as functions of the information that it holds.

The information is the matrix of normal equations, the inverse of the covariance of the parameters. Both criteria are
smooth, and smaller for better motions.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FLOOR = 1e-14
"""Least eigenvalue, of the largest, that is distinguished from zero."""


class Criterion(Protocol):
    """Rates information matrices (p, p)."""

    name: str

    def value(self, information: NDArray) -> float:
        """The rating to report; infinite where a parameter stays open."""

    def smooth(self, information: NDArray, sharpness: float) -> tuple[float, NDArray]:
        """A smooth rating, nearer to the true one the larger `sharpness`, and its gradient (p, p)."""


class Condition:
    """Condition number of the regressor (Lightcap and Banks 2007, eq. 8).

    Largest and smallest eigenvalues that are equal have no gradient. Instead of them the search sees the norms
    (Σ λ^s)^(1/s) and (Σ λ^-s)^(1/s), which all eigenvalues take part in and which tend to them.

    Args:
        scaled: the columns of the regressor are brought to unit norm first. The number does not depend on units then,
            and is close to the least that scaling can reach (van der Sluis 1969).
    """

    def __init__(self, *, scaled: bool = True) -> None:
        self.scaled = scaled
        self.name = "condition" if scaled else "condition_unscaled"

    def value(self, information: NDArray) -> float:
        """The condition number."""
        norms = np.sqrt(np.diag(information))
        if not norms.all():
            return np.inf
        values = np.linalg.eigvalsh(self._scaled(information, norms))
        return float(np.sqrt(values[-1] / values[0])) if values[0] > FLOOR * values[-1] else np.inf

    def smooth(self, information: NDArray, sharpness: float) -> tuple[float, NDArray]:
        """Twice the logarithm of the condition number, smoothly; gradient (p, p)."""
        norms = np.sqrt(np.maximum(np.diag(information), FLOOR * np.trace(information)))
        matrix = self._scaled(information, norms)
        values, vectors = np.linalg.eigh(matrix)
        values = np.maximum(values, FLOOR * values[-1])
        logs = np.log(values)
        large, small = np.exp(sharpness * (logs - logs[-1])), np.exp(sharpness * (logs[0] - logs))
        rating = logs[-1] - logs[0] + (np.log(large.sum()) + np.log(small.sum())) / sharpness
        gradient = (vectors * ((large / large.sum() - small / small.sum()) / values)) @ vectors.T
        if self.scaled:
            by_norms = np.einsum("ij,ji->i", gradient, matrix) / norms**2
            gradient = gradient / np.outer(norms, norms)
            gradient[np.diag_indices_from(gradient)] -= by_norms
        return float(rating), gradient

    def _scaled(self, information: NDArray, norms: NDArray) -> NDArray:
        return information / np.outer(norms, norms) if self.scaled else information


class Determinant:
    """The volume that the parameters' errors take: D-optimality (Calafiore, Indri and Bona 2001).

    It weighs noise as it is, and does not depend on the choice of base parameters or of units.
    """

    name = "determinant"

    def value(self, information: NDArray) -> float:
        """The mean of the logarithms of the errors' half axes: lower by 0.7 is twice as good."""
        sign, logarithm = np.linalg.slogdet(information)
        return float(-0.5 * logarithm / len(information)) if sign > 0 else np.inf

    def smooth(self, information: NDArray, sharpness: float) -> tuple[float, NDArray]:  # noqa: ARG002
        """The logarithm of the determinant, negative, over the number of parameters and times 10; gradient (p, p)."""
        values, vectors = np.linalg.eigh(information)
        values = np.maximum(values, FLOOR * values[-1])
        share = 10.0 / len(values)
        return float(-share * np.log(values).sum()), -share * (vectors / values) @ vectors.T


CRITERIA: dict[str, Criterion] = {
    criterion.name: criterion for criterion in (Condition(), Condition(scaled=False), Determinant())
}
"""By their names."""
