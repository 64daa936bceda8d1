"""Calibrations that cannot be: a mass that no reading feels, gains that no sensor has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import MIN_GROUP_DOF, solve
from dynid_ros.estimation.rank import Decomposition
from dynid_ros.identification.static_samples import Samples, rotations
from dynid_ros.identification.torque_sensors.torque_sensor_model import TorqueSensorModel

if TYPE_CHECKING:
    from dynid_ros.identification.torque_sensors.torque_sensor_result import TorqueSensorResult


# Standard errors for dwells of one rotation that err together. Friction that a model lacks is the same all along a
# rotation, in which one joint turns and the others hold, so its dwells are not independent. The jackknife over
# rotations, to first order (Bell and McCaffrey 2002, with the residuals of each rotation in a fit without it), assumes
# only that rotations are independent.


SINGLE_ROTATION_TOLERANCE = 1e-6
"""Part of a rotation's residual that its own fit leaves, below which the rotation alone determines a direction."""


def rotation_of(samples: Samples) -> NDArray:
    """Return the rotation (M,) that each sample belongs to; a sample outside all rotations is one of its own."""
    number = np.arange(len(samples))
    for rotation in rotations(samples):
        number[rotation.rows] = rotation.rows[0]
    return number


def widening(parts: Decomposition, residual: NDArray, rotation: NDArray) -> tuple[NDArray, NDArray]:
    """Return the factors (k,) by which standard errors of white residuals grow, and the degrees of freedom (k,).

    If too few rotations determine an unknown for a factor, its error is not reduced.

    Args:
        parts: decomposition of the weighted matrix (m, k).
        residual: (m,) weighted residual.
        rotation: (m,) rotation of each row.
    """
    half = (parts.right.T * parts.inverse) / parts.scale[:, None]
    moved = []
    squares = []
    crossed = []
    for number in np.unique(rotation):
        left = parts.left[rotation == number]
        size, axes = np.linalg.eigh(np.eye(len(left)) - left @ left.T)
        outside = (axes / np.maximum(size, SINGLE_ROTATION_TOLERANCE)) @ axes.T
        weights = half @ (left.T @ outside)
        moved.append(weights @ residual[rotation == number])
        squares.append((weights**2).sum(axis=1))
        crossed.append(weights @ left)
    own = np.array(squares)
    shared = np.array(crossed)
    # Sum and sum of squares of the eigenvalues of diag(own) − shared sharedᵀ.
    trace = own.sum(axis=0) - (shared**2).sum(axis=(0, 2))
    products = np.einsum("ckr,dkr->kcd", shared, shared)
    diagonal = np.einsum("kcc->kc", products)
    square = (own.T**2 - 2 * own.T * diagonal).sum(axis=1) + (products**2).sum(axis=(1, 2))
    white = np.maximum((half**2).sum(axis=1), 1e-300)
    factor = np.sqrt((np.array(moved) ** 2).sum(axis=0) / white)
    dof = trace**2 / np.maximum(square, 1e-300)
    # A rotation that alone determines a direction leaves no residual, so the variance would be too small.
    few = ~(dof >= MIN_GROUP_DOF) | (trace < white)
    return np.where(few, np.maximum(factor, 1.0), factor), np.where(few, MIN_GROUP_DOF, dof)


GAIN_RANGE = (0.5, 2.0)
"""Gains of sensors that read N m: an uncalibrated one is off by some per cent."""
ANY_GAIN = (-np.inf, np.inf)
"""Range of the gains of motors whose currents are read; negative for a motor that turns against its joint."""
MIN_F_STATISTIC = 10.0
"""Smallest mean square change of the readings by each unknown of a mass, in squares of their scatter."""


def check_gain_range(gain_range: tuple[float, float]) -> None:
    """Raise where it is not two numbers in order.

    Raises:
        IdentificationError: it is not.
    """
    given = np.asarray(gain_range, dtype=float)
    if not (given.shape == (2,) and given[0] < given[1]):
        raise IdentificationError(
            f"gain_range is {tuple(given.tolist())}; expected the lowest and the highest gain that a sensor may have, "
            "N m per unit of the reading"
        )


def check_mass_is_seen(model: TorqueSensorModel) -> None:
    """Refuse recordings with the mass whose readings equal those without it, within their scatter.

    Each joint's readings are fitted independently, with any size and sign of the arm's weight and the mass. So no
    unknown of the calibration can be wrong here.

    Raises:
        IdentificationError: the mass does not show.
    """
    if model.mass is None or model.loaded.all():
        return
    gained = 0.0
    unknowns = 0
    for j in np.flatnonzero(model.weighed):
        rows = np.flatnonzero(np.isfinite(model.samples.torque[:, j]))
        if not model.loaded[rows].any() or model.loaded[rows].all():
            continue
        regressor = model.recorded_regressor[rows, j]
        direction = model.samples.direction[rows, j]
        known = np.column_stack([regressor, np.ones(len(rows)), direction])
        both = np.hstack([known, regressor @ model.load_columns * model.loaded[rows, None]])
        readings = model.samples.torque[rows, j]
        without = solve(known, readings)
        with_mass = solve(both, readings)
        dof = len(rows) - with_mass.rank
        added = with_mass.rank - without.rank
        if dof > 0 and added > 0:
            left = _squares(with_mass.residual)
            floor = (1e-9 * max(float(np.abs(readings).max()), 1e-300)) ** 2
            gained += (_squares(without.residual) - left) / max(left / dof, floor)
            unknowns += added
    if unknowns and gained < MIN_F_STATISTIC * unknowns:
        raise IdentificationError(
            f"the reference mass of {model.mass.mass:g} kg is not seen: the readings with it differ from those without "
            f"by no more than they scatter; attach it to '{model.robot.tip}' and record the motion again, or give the "
            "recording that was made with it"
        )


def check_gains(result: TorqueSensorResult, gain_range: tuple[float, float]) -> None:
    """Refuse gains outside the range.

    Raises:
        IdentificationError: names the joints and possible causes.
    """
    gain = result.gain
    outside = np.flatnonzero((gain < gain_range[0]) | (gain > gain_range[1]))
    if not outside.size:
        return
    standard = (
        "the moments are of this arm with what it carries"
        if result.model.mass is None
        else f"the mass was attached and weighs {result.model.mass.mass:g} kg"
    )
    raise IdentificationError(
        f"gains of {', '.join(f'{result.joint_names[j]} {gain[j]:.4g}' for j in outside)} N m per unit of the reading "
        f"are outside gain_range, {gain_range[0]:g} to {gain_range[1]:g}: see that {standard}, and which unit and sign "
        "the readings have; for currents give gain_range"
    )


def _squares(residual: NDArray) -> float:
    return float(residual @ residual)
