"""Identification from tip to base, each joint from its own torque (Khosla and Kanade 1987, section 3).

Links before joint j do not act on its torque, so the last joint is fitted first, and what it determines is known when
the joint before it is fitted. The paper locks the joints before j (off-line) or lets them move (on-line); both are data
of joint j here. A joint seldom determines single parameters. What is known so far is therefore kept as an affine space

    x = x₀ + N y,   N a basis of what is still open,

and joint j is fitted for y alone: R_j N y = z_j − R_j x₀. With nominal parameters as x₀ at the start this is the
paper's error model (eq. 11). What is determined is never touched again; fitting all joints at once uses the data
better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import TOLERANCE, LinearFit, column_norms, without_rounding
from dynid_ros.model.base_parameters import (
    COMBINED,
    IDENTIFIABLE,
    LINK_PARAMETER,
    UNIDENTIFIABLE,
    BaseParameters,
)


@dataclass(frozen=True)
class Stage:
    """What the torque of one joint added.

    Attributes:
        joint: counted from 0.
        rank: combinations determined here, given those of the joints after it.
        condition_number: largest singular value of this joint's columns over the smallest that counts.
        noise: standard deviation of this joint's torque, from the residual; what the joints after it got wrong counts.
        residual_rms: of this joint's torque, in its unit.
        categories: of each parameter of the link and the friction of this joint, once this joint is fitted:
            "identifiable" by itself, "combined" with others, "unidentifiable" (in these data and at this stage).
        unseen: those of them without effect on this joint's torque.
    """

    joint: int
    rank: int
    condition_number: float
    noise: float
    residual_rms: float
    categories: Mapping[str, str]
    unseen: tuple[str, ...]


@dataclass(frozen=True)
class SequentialFit(LinearFit):
    """As `LinearFit`; `singular_values` are those of the stages, in the order in which they were fitted.

    Attributes:
        stages: from the first joint to the last, though they are fitted from the last to the first.
        reasons: why each parameter that is NaN in `values` is open, by name.
    """

    stages: tuple[Stage, ...]
    reasons: Mapping[str, str]


def sequential(
    factors: Sequence[ArrayLike],
    names: Sequence[str],
    counts: Sequence[int],
    prior: ArrayLike | None = None,
    *,
    structure: BaseParameters | None = None,
    tolerance: float = TOLERANCE,
) -> SequentialFit:
    """Fit each joint's torque in turn, from the last to the first.

    Args:
        factors: per joint, the rows (m_j, k + 1) of [Y_j τ_j], or their triangular factor; no rows: not measured.
        names: of the k parameters; m1 ... Izz1, m2 ... for those of the links.
        counts: per joint, the number of rows that were compressed.
        prior: (k,) nominal parameters; what stays open is nearest to them. None: zero.
        structure: what motion of all joints would show, for the reasons.
        tolerance: part of a joint's largest singular value, its columns scaled, below which it does not determine a
            combination; then a joint before it may. Raise it if a noisy wrist spoils the joints before it: their
            `residual_rms` shows that.

    Raises:
        IdentificationError: factors of other shapes or not finite, all zero, or with too few rows to estimate their
            noise.
    """
    problems = [_checked(factor, joint, len(names)) for joint, factor in enumerate(factors)]
    if len(counts) != len(problems):
        raise IdentificationError(f"{len(counts)} row counts for the factors of {len(problems)} joints")
    start = np.zeros(len(names)) if prior is None else np.asarray(prior, dtype=float)
    if start.shape != (len(names),) or not np.isfinite(start).all():
        raise IdentificationError(f"Prior has shape {start.shape}; expected {len(names)} finite numbers, one per name")
    effects = np.array([np.linalg.norm(problem[:, :-1], axis=0) for problem in problems])
    scale = column_norms(effects)
    known = _Known(start, scale)
    stages: list[Stage] = []
    singular_values: list[NDArray] = []
    for joint in reversed(range(len(problems))):
        step = known.fit(problems[joint], int(counts[joint]), joint, tolerance)
        singular_values.append(step.singular)
        own = [i for i, owner in enumerate(_owners(names, effects)) if owner == joint]
        categories = BaseParameters(known.determined() * scale, names).categories
        stages.append(
            Stage(
                joint=joint,
                rank=len(step.singular),
                condition_number=step.condition_number,
                noise=step.noise,
                residual_rms=step.residual_rms,
                categories={names[i]: categories[i] for i in own},
                unseen=tuple(names[i] for i in own if effects[joint, i] == 0),
            )
        )
    if not any(stage.rank for stage in stages):
        raise IdentificationError("No joint's torque determines any combination of parameters; record motion")
    determined = known.determined()
    solution, covariance = known.nearest(start)
    return SequentialFit(
        solution=solution,
        covariance=covariance,
        determined=determined,
        scale=scale,
        condition_number=max(stage.condition_number for stage in stages if stage.rank),
        singular_values=np.concatenate(singular_values),
        stages=tuple(reversed(stages)),
        reasons=_reasons(BaseParameters(determined * scale, names), structure),
    )


@dataclass(frozen=True)
class _Step:
    singular: NDArray
    condition_number: float
    noise: float
    residual_rms: float


class _Known:
    """The affine space x₀ + N y with the covariance of x₀; N has orthonormal columns, scaled."""

    def __init__(self, start: NDArray, scale: NDArray):
        self.point, self.scale = start.copy(), scale
        self.open = np.eye(start.size)
        self.covariance = np.zeros((start.size, start.size))

    def fit(self, problem: NDArray, count: int, joint: int, tolerance: float) -> _Step:
        """Narrow the space by the equations [R z] of one joint."""
        R, z = problem[:, :-1], problem[:, -1]
        if not R.any() or not self.open.size:
            return self._residual(problem, count, np.zeros(0), 1.0, joint)
        scale = column_norms(R)
        matrix = R / scale
        largest = float(np.linalg.norm(matrix, ord=2))
        basis, _ = np.linalg.qr(self.open * (scale / self.scale)[:, None])
        left, singular, right = np.linalg.svd(matrix @ basis)
        rank = int(np.sum(singular > tolerance * largest))
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
        noise = float(np.sqrt(squares / dof)) if dof > 0 else np.nan
        return _Step(singular, condition, noise, float(np.sqrt(squares / count)) if count else np.nan)

    def determined(self) -> NDArray:
        """(r, k) orthonormal rows orthogonal to what is open, in scaled columns."""
        complete, _ = np.linalg.qr(self.open, mode="complete")
        return complete[:, self.open.shape[1] :].T

    def nearest(self, start: NDArray) -> tuple[NDArray, NDArray]:
        """The point of the space nearest to the prior, and its covariance."""
        basis, _ = np.linalg.qr(self.open / self.scale[:, None])
        closed = np.eye(len(start)) - basis @ basis.T
        return start + closed @ (self.point - start), closed @ self.covariance @ closed.T


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
    array = array.copy()
    array[:, :-1] = without_rounding(array[:, :-1])
    return array


def _owners(names: Sequence[str], effects: NDArray) -> list[int]:
    """The joint that each parameter belongs to: that of its link, else the last one whose torque it acts on."""
    owners = []
    for column, name in enumerate(names):
        match = LINK_PARAMETER.fullmatch(name)
        acting = np.flatnonzero(effects[:, column])
        owners.append(int(match[2]) - 1 if match else int(acting[-1]) if acting.size else -1)
    return owners


def _reasons(found: BaseParameters, structure: BaseParameters | None) -> dict[str, str]:
    reasons = {}
    for column, (name, category) in enumerate(zip(found.names, found.categories, strict=True)):
        if category == IDENTIFIABLE:
            continue
        if category == UNIDENTIFIABLE:
            reason = "no effect on any torque of these data"
        else:
            parts = [text for row, text in enumerate(found.expressions) if found.combinations[row, column]]
            reason = f"only in combination: {', '.join(parts)}"
        possible = structure.categories[column] if structure else category
        if category == UNIDENTIFIABLE and structure and possible == UNIDENTIFIABLE:
            reason = "no effect on any torque, whatever the motion"
        elif possible == IDENTIFIABLE or (possible, category) == (COMBINED, UNIDENTIFIABLE):
            reason += "; motion of all joints would show it, so move the joints before it as well"
        reasons[name] = reason
    return reasons
