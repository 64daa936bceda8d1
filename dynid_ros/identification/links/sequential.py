"""Identification from tip to base, each joint from its own torque (Khosla and Kanade 1987, section 3).

Links before joint j do not act on its torque. So the last joint is fitted first, and its parameters are known when the
joint before it is fitted. The paper locks the joints before j (off-line) or lets them move (on-line); both are data of
joint j here. A joint seldom determines single parameters, so the knowledge so far is an affine space

    x = x₀ + N y,   N a basis of the undetermined directions,

and joint j is fitted for y alone: R_j N y = z_j − R_j x₀. Fitted to the torques minus those of nominal parameters this
is the paper's error model (eq. 11). Determined combinations never change again; a fit of all joints at once uses the
data better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import LinearFit
from dynid_ros.estimation.rank import STRUCTURE_RANK_TOLERANCE, column_norms, without_rounding
from dynid_ros.model.base_parameters import IDENTIFIABLE, UNIDENTIFIABLE, BaseParameters


@dataclass(frozen=True)
class SequentialFit(LinearFit):
    """Sequential fit; `singular_values` are those of the joints, in the order in which they were fitted.

    Attributes:
        ranks: per joint, the number of combinations that it determines, given those of the joints after it.
        noise: per joint, the standard deviation of its torque by the residual, including errors of the joints after it;
            NaN if it was not measured.
        reasons: reason why each parameter that is NaN in `values` is undetermined, by name.
    """

    ranks: tuple[int, ...]
    noise: tuple[float, ...]
    reasons: Mapping[str, str]


def sequential(factors: Sequence[ArrayLike], names: Sequence[str], counts: Sequence[int]) -> SequentialFit:
    """Fit each joint's torque in turn, from the last to the first; undetermined parts have minimum norm.

    Args:
        factors: per joint, the rows (m_j, k + 1) of [Y_j τ_j], or their triangular factor; no rows if it was not
            measured.
        names: names of the k parameters.
        counts: per joint, the number of rows that were compressed.

    Raises:
        IdentificationError: factors of other shapes or not finite, all zero, or with too few rows to estimate their
            noise.
    """
    problems = [_checked(factor, joint, len(names)) for joint, factor in enumerate(factors)]
    if len(counts) != len(problems):
        raise IdentificationError(f"{len(counts)} row counts for the factors of {len(problems)} joints")
    scale = column_norms(np.array([np.linalg.norm(problem[:, :-1], axis=0) for problem in problems]))
    known = _Known(scale)
    steps = [known.fit(problems[joint], int(counts[joint]), joint) for joint in reversed(range(len(problems)))]
    if not any(step.singular.size for step in steps):
        raise IdentificationError("No joint's torque determines any combination of parameters; record motion")
    determined = known.determined()
    solution, covariance = known.nearest()
    return SequentialFit(
        solution=solution,
        covariance=covariance,
        determined=determined,
        scale=scale,
        condition_number=max(step.condition_number for step in steps if step.singular.size),
        singular_values=np.concatenate([step.singular for step in steps]),
        ranks=tuple(step.singular.size for step in reversed(steps)),
        noise=tuple(step.noise for step in reversed(steps)),
        reasons=_reasons(BaseParameters(determined * scale, names)),
    )


@dataclass(frozen=True)
class _Step:
    singular: NDArray
    condition_number: float
    noise: float


class _Known:
    """The affine space x₀ + N y with the covariance of x₀; N has orthonormal columns, scaled."""

    def __init__(self, scale: NDArray):
        self.point = np.zeros(scale.size)
        self.scale = scale
        self.open = np.eye(scale.size)
        self.covariance = np.zeros((scale.size, scale.size))

    def fit(self, problem: NDArray, count: int, joint: int) -> _Step:
        """Narrow the space by the equations [R z] of one joint."""
        R = problem[:, :-1]
        z = problem[:, -1]
        if not R.any() or not self.open.size:
            return self._residual(problem, count, np.zeros(0), 1.0, joint)
        scale = column_norms(R)
        matrix = R / scale
        largest = float(np.linalg.norm(matrix, ord=2))
        basis, _ = np.linalg.qr(self.open * (scale / self.scale)[:, None])
        left, singular, right = np.linalg.svd(matrix @ basis)
        rank = int(np.sum(singular > STRUCTURE_RANK_TOLERANCE * largest))
        directions = basis @ right.T / scale[:, None]
        gain = (directions[:, :rank] / singular[:rank]) @ left[:, :rank].T
        for _ in range(2):  # the second step takes the rounding errors of the first away
            self.point += gain @ (z - R @ self.point)
        step = self._residual(problem, count, singular[:rank], largest, joint)
        passed = np.eye(len(self.point)) - gain @ R
        self.covariance = passed @ self.covariance @ passed.T + step.noise**2 * gain @ gain.T
        self.open, _ = np.linalg.qr(directions[:, rank:] * self.scale[:, None])
        return step

    def _residual(self, problem: NDArray, count: int, singular: NDArray, largest: float, joint: int) -> _Step:
        squares = float(np.sum((problem[:, -1] - problem[:, :-1] @ self.point) ** 2))
        dof = count - singular.size
        if singular.size and dof < 1:
            raise IdentificationError(
                f"Joint {joint + 1}: {count} samples for {singular.size} unknown combinations do not determine "
                "their noise; record longer"
            )
        condition = float(largest / singular[-1]) if singular.size else np.nan
        return _Step(singular, condition, float(np.sqrt(squares / dof)) if dof > 0 else np.nan)

    def determined(self) -> NDArray:
        """Return orthonormal rows (r, k) orthogonal to the undetermined directions, in scaled columns."""
        complete, _ = np.linalg.qr(self.open, mode="complete")
        return complete[:, self.open.shape[1] :].T

    def nearest(self) -> tuple[NDArray, NDArray]:
        """Return the point of the space nearest to zero, and its covariance."""
        basis, _ = np.linalg.qr(self.open / self.scale[:, None])
        closed = np.eye(len(basis)) - basis @ basis.T
        return closed @ self.point, closed @ self.covariance @ closed.T


def _checked(factor: ArrayLike, joint: int, size: int) -> NDArray:
    array = np.asarray(factor, dtype=float)
    if array.ndim != 2 or array.shape[1] != size + 1:
        raise IdentificationError(
            f"Joint {joint + 1}: equations of shape {array.shape}; expected (m, {size + 1}), a column per parameter "
            "and one of torques"
        )
    if not np.isfinite(array).all():
        raise IdentificationError(
            f"Joint {joint + 1}: its equations are not finite; remove such samples before the fit"
        )
    return np.column_stack([without_rounding(array[:, :-1]), array[:, -1]])


def _reasons(found: BaseParameters) -> dict[str, str]:
    reasons = {}
    for column, (name, category) in enumerate(zip(found.names, found.categories, strict=True)):
        if category == UNIDENTIFIABLE:
            reasons[name] = "no effect on any torque of these data"
        elif category != IDENTIFIABLE:
            parts = [text for row, text in enumerate(found.expressions) if found.combinations[row, column]]
            reasons[name] = f"only in combination: {', '.join(parts)}"
    return reasons
