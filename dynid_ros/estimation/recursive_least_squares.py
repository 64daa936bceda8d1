"""Recursive least squares in square-root information form, with directional forgetting.

The normal equations of all rows so far are kept as their triangular factor [R z] with ‖R x − z‖² = Σ (A x − b)². New
rows are rotated into it (Bierman 1977, "Factorization methods for discrete sequential estimation"): no inverse is
updated, and nothing can become indefinite.

Forgetting is directional (Kulhavý and Kárný 1984, "Tracking of slowly varying parameters by directional forgetting"):
each row replaces a share of the information on A x only. The share is that of the time constant, but at most the
information of the row in that direction. So information is exchanged where the data are rich, and is kept where there
are no new data, as in an arm at rest. There is no wind-up, and no direction ever loses information without gaining as
much.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dsyev, dtpmqrt, dtpqrt, dtrtrs

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.rank import STRUCTURE_RANK_TOLERANCE, Decomposition, decompose

UNKNOWN_DEVIATION = 1e6
"""Standard deviation of unknown parameters, in SI units: large enough to have no effect, and R stays invertible."""

_BLOCK = 8
_SMALL = 1e-12


class Innovation(NamedTuple):
    """New information in rows; m rows of unit noise, k parameters.

    Attributes:
        error: (m,) b − A x with the estimate before the rows.
        spread: (m,) variance of `error` by the uncertainty of the estimate, in units of the noise.
        gain: (k, m) sensitivity of the estimate to `error` for little new information: (RᵀR)⁻¹ Aᵀ.
        considered: (m, c) change of `error` per unit of each other right-hand side.
    """

    error: NDArray
    spread: NDArray
    gain: NDArray
    considered: NDArray


class SquareRootInformation:
    """Triangular factor of the equations, and the estimate.

    Args:
        size: number k of parameters.
        deviation: standard deviation about zero that is known at the start, (k,) or one number for all.
        considered: number c of other right-hand sides that are treated like b: possible errors of b, for their effect
            on the estimate (Schmidt 1966, "consider parameters").

    Attributes:
        size: k.
    """

    def __init__(self, size: int, deviation: ArrayLike = UNKNOWN_DEVIATION, considered: int = 0):
        self.size = size
        self._weak = 1.0 / np.broadcast_to(np.asarray(deviation, dtype=float), (size,))
        self._factor = np.zeros((size + 1, size + 1), order="F")
        self._factor[range(size), range(size)] = self._weak
        self._factor[-1, -1] = _SMALL
        self._considered = np.zeros((size + 1, considered), order="F")

    def update(self, rows: NDArray, keep: float = 1.0, considered: NDArray | None = None) -> Innovation:
        """Add equations.

        Args:
            rows: (m, k + 1), [A b] divided by the standard deviations of the rows; finite.
            keep: share of the old information on A x that remains; 1: all.
            considered: (m, c) other right-hand sides, divided alike; None: there are none.
        """
        factor = self._factor
        solved = dtrtrs(factor, rows.T, trans=1)[0]
        spread_factor = solved[:-1]
        # The last row of the factor takes the part of b that the others leave.
        error = solved[-1] * factor[-1, -1]
        solved[-1] = 0.0
        gram = spread_factor.T @ spread_factor
        gain = dtrtrs(factor, solved)[0][:-1]
        if considered is None:
            considered = np.zeros((len(rows), self._considered.shape[1]))
        other = considered - spread_factor.T @ self._considered[:-1]
        innovation = Innovation(error, gram.diagonal().copy(), gain, other)
        if keep < 1.0:
            new = self._exchange(other, 1.0 - keep, spread_factor, error, gram)
            rows = new @ rows
            considered = new @ considered
        # In Fortran order, so that LAPACK works in place; the rows are not needed any more.
        self._factor, reflectors, blocks, _ = dtpqrt(0, min(_BLOCK, self.size), factor, np.array(rows, order="F"), 1, 1)
        if considered.size:
            sides = np.array(considered, order="F")
            self._considered = dtpmqrt(
                0, reflectors, blocks, self._considered, sides, trans="T", overwrite_a=1, overwrite_b=1
            )[0]
        return innovation

    def _exchange(self, other: NDArray, share: float, spread: NDArray, error: NDArray, gram: NDArray) -> NDArray:
        """Move the estimate by the exchanged information; return a matrix (m, m) to the additional information.

        With A = V̄ᵀR and V̄ = Y S Wᵀ, rows Wᵀ A bring g = s² times the information along Y. Of that, f = min(share, g)
        is removed first: H ← H − Rᵀ Y f Yᵀ R + AᵀA = H + Aᵀ W (1 − f/g) Wᵀ A, and x moves as if all rows had been
        added.
        """
        brought, axes, _ = dsyev(gram)
        replaced = np.where(brought > share, share / np.maximum(brought, _SMALL), 1.0)
        self._factor[:-1, -1] += spread @ (axes @ (replaced * (error @ axes)))
        self._considered[:-1] += spread @ (axes @ (replaced[:, None] * (axes.T @ other)))
        return np.sqrt(1.0 - replaced)[:, None] * axes.T

    def forget(self, first: int) -> None:
        """Forget all information on the first parameters; the information on the others without them is kept."""
        factor = self._factor
        factor[:first] = 0.0
        factor[range(first), range(first)] = self._weak[:first]
        self._considered[:first] = 0.0

    @property
    def factor(self) -> tuple[NDArray, NDArray]:
        """Return R (k, k) upper triangular and z (k,); both include the initial information."""
        return self._factor[:-1, :-1].copy(), self._factor[:-1, -1].copy()

    @property
    def considered(self) -> NDArray:
        """(k, c) other right-hand sides, as z is to b."""
        return self._considered[:-1].copy()

    @property
    def solution(self) -> NDArray:
        """Return the estimate (k,); undetermined parts are zero."""
        R, z = self.factor
        return dtrtrs(np.asfortranarray(R), z)[0]

    @property
    def responses(self) -> NDArray:
        """(k, c) change of the estimate per unit of each other right-hand side."""
        R, _ = self.factor
        return dtrtrs(np.asfortranarray(R), self._considered[:-1])[0]

    def decomposition(self) -> Decomposition:
        """Return the decomposition of R with columns of unit norm; see `decompose` for the tolerance."""
        R, _ = self.factor
        if not np.isfinite(R).all():
            raise IdentificationError("The information is not finite: rows that are not finite were added")
        return decompose(R, STRUCTURE_RANK_TOLERANCE)


# Inflation of the variance by innovations that are correlated in time. Innovations of a robot are mostly unmodelled
# friction, which stays similar for seconds, while the standard errors of least squares treat each row as new evidence.
# Here the estimate's steps, gain times innovation, are summed over blocks of time, and their squares are compared with
# their expectation for white innovations of unit variance. The blocks are 1, 2, 4, ... times as long (blocking:
# Flyvbjerg and Petersen 1989, "Error estimates on averages of correlated data"; for each parameter it is a Bartlett
# estimate of its long-run variance). White innovations give the same ratio at all lengths; correlated ones give a ratio
# that grows until blocks are longer than the correlation. The largest ratio counts. Correlations longer than the
# longest block are not seen, nor those that repeat with the motion.


MAX_LEVELS = 12
MIN_BLOCKS = 8
"""Number of blocks of one length from which their mean ratio counts."""

MIN_INFORMATION = 1.0
"""Largest variance of the prediction, in units of the noise, at which an innovation shows the noise."""


_TINY = 1e-300


@dataclass
class _Level:
    count: NDArray
    ratio: NDArray
    walked: NDArray = field(repr=False)
    white: NDArray = field(repr=False)
    half: bool = False


class EstimateWalk:
    """Variance of each parameter's steps over that of white innovations.

    Args:
        size: number k of parameters.
        blocks: how many blocks of one length count, those before fade.
    """

    def __init__(self, size: int, blocks: float = 200.0):
        self._blocks = blocks
        self._levels = [_Level(*np.zeros((4, size))) for _ in range(MAX_LEVELS)]

    def add(self, innovation: Innovation) -> None:
        """Take up the innovation of one instant; rows that were not predicted count as nothing."""
        known = innovation.spread < MIN_INFORMATION
        if known.any():
            error = known * innovation.error / np.sqrt(1.0 + innovation.spread)
            self._carry(innovation.gain @ error, (innovation.gain * innovation.gain) @ known)

    def _carry(self, walked: NDArray, white: NDArray) -> None:
        for level in self._levels:
            # A parameter that no innovation could move has no information.
            moved = white > 0.0
            np.minimum(level.count + moved, self._blocks, out=level.count)
            ratio = walked * walked / np.maximum(white, _TINY)
            level.ratio += moved * (ratio - level.ratio) / np.maximum(level.count, 1.0)
            if not level.half:
                level.walked = walked
                level.white = white
                level.half = True
                return
            walked = level.walked + walked
            white = level.white + white
            level.half = False

    @property
    def inflation(self) -> NDArray:
        """Return the factors (k,) of the estimate's variances for unit noise; NaN if they are not known yet."""
        ratios = [np.where(level.count >= MIN_BLOCKS, level.ratio, -np.inf) for level in self._levels]
        largest = np.max(ratios, axis=0)
        return np.where(np.isfinite(largest), largest, np.nan)

    @property
    def overall(self) -> float:
        """Median inflation of all parameters, at least one."""
        known = self.inflation[np.isfinite(self.inflation)]
        return max(1.0, float(np.median(known))) if known.size else 1.0
