"""Model of torque-sensor readings at rest (Ma & Hollerbach 1996), and checks of calibrations against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import MIN_GROUP_DOF, solve
from dynid_ros.estimation.rank import Decomposition
from dynid_ros.identification.static_samples import Samples, rotations
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel

if TYPE_CHECKING:
    from dynid_ros.identification.torque_sensors.torque_sensor_result import TorqueSensorResult


# The mass with which torque sensors are calibrated.


@dataclass(frozen=True)
class ReferenceMass:
    """Body of known weight, fixed to the tip link.

    Attributes:
        mass: mass including its holder, kg.
        center: (3,) centre of mass in the frame of the tip link, m; None: unknown and estimated.

    Raises:
        IdentificationError: a mass that is not positive, or a centre that is not three numbers.
    """

    mass: float
    center: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mass) and self.mass > 0):
            raise IdentificationError(
                f"the reference mass is {self.mass:g} kg; expected more than 0: weigh it on a balance, holder included"
            )
        if self.center is not None and not (np.shape(self.center) == (3,) and np.isfinite(self.center).all()):
            raise IdentificationError(
                f"the centre of the reference mass is {self.center}; expected x, y and z in the frame of the tip link, "
                "m, or none if it is not known"
            )


JOINT_LABELS = ("sensitivity", "offset", "coulomb", "position_gain", "position_offset")
CENTER = tuple(f"center {axis}" for axis in "xyz")


class ModelPoint:
    """Readings of a model and their derivatives at one value of the unknowns.

    Attributes:
        model: the model.
        values: (K,) values of the unknowns.
        moments: (k,) moments of the arm without the mass, kg m or kg.
        load: (4,) mass and mass moment of the reference mass in the tip frame, kg and kg m.
        angles: (M, n) positions after gain and offset of the position sensors, rad or m.
        torque: (M, n) gravity torques, N m or N.
    """

    def __init__(self, model: TorqueSensorModel, values: NDArray) -> None:
        self.model = model
        self.values = values
        self._of = {label: values[model.index(label)] for label in JOINT_LABELS}
        self.moments = np.zeros(len(model.gravity.names))
        if model.known is None:
            self.moments[model.moment_columns] = values[model.free_moments]
        else:
            self.moments[:] = model.known.moments
        self.load = np.zeros(4)
        if model.mass is not None:
            center = values[-3:] if model.mass.center is None else model.mass.center
            self.load = model.mass.mass * np.array([1.0, *center])
        position = model.samples.position
        self.angles = position
        if model.positions:
            self.angles = self._of["position_gain"] * position + self._of["position_offset"]
        self._regressor = model.gravity.regressor(self.angles) if model.positions else model.recorded_regressor
        self._sample_moments = self.moments + np.outer(model.loaded, model.load_columns @ self.load)
        self.torque = self._torque(self._regressor)
        self._shape = (*position.shape, len(values))

    def readings(self) -> NDArray:
        """Return the readings (M, n) in the units of the sensors."""
        friction = self._of["coulomb"] * self.model.samples.direction
        return self._of["sensitivity"] * self.torque + self._of["offset"] + friction

    def jacobian(self) -> NDArray:
        """Return the derivatives (M, n, K) of the readings with respect to the unknowns."""
        model = self.model
        n = self.model.robot.n_joints
        jacobian = np.zeros(self._shape)
        each = np.arange(n)
        jacobian[:, each, model.index("sensitivity")] = self.torque
        jacobian[:, each, model.index("offset")] = 1.0
        jacobian[:, each, model.index("coulomb")] = model.samples.direction
        if model.positions:
            for joint in np.flatnonzero(model.weighed):
                slope = self._of["sensitivity"] * self._slope(int(joint))
                jacobian[:, :, model.index("position_offset")[joint]] = slope
                jacobian[:, :, model.index("position_gain")[joint]] = slope * model.samples.position[:, [joint]]
        if model.known is None:
            jacobian[:, :, model.free_moments] = self.moment_jacobian()[:, :, model.moment_columns]
        if model.mass is not None and model.mass.center is None:
            columns = model.mass.mass * self.moment_jacobian() @ model.load_columns[:, 1:]
            jacobian[:, :, -3:] = columns * model.loaded[:, None, None]
        return jacobian

    def moment_jacobian(self) -> NDArray:
        """Return the derivatives (M, n, k) of the readings with respect to all moments."""
        return (self._of["sensitivity"] * self.model.weighed)[:, None] * self._regressor

    def _torque(self, regressor: NDArray) -> NDArray:
        return np.einsum("mik,mk->mi", regressor, self._sample_moments) * self.model.weighed

    def _slope(self, joint: int) -> NDArray:
        """Return the derivative (M, n) of the torques with respect to a joint's position.

        A torque is a constant plus a sinusoid of a revolute joint's angle, and linear in a prismatic joint's position.
        So its derivative is exactly half the difference of the torques a quarter turn, or a unit, ahead and behind.
        """
        step = np.zeros(self.model.robot.n_joints)
        step[joint] = 1.0 if self.model.robot.chain.prismatic[joint] else np.pi / 2
        after, before = (self._torque(self.model.gravity.regressor(self.angles + side * step)) for side in (1, -1))
        return (after - before) / 2


@dataclass(frozen=True, eq=False)
class TorqueSensorModel:
    """Readings v = s τ + b + f d of M samples at joint angles θ = c φ + o, where φ are the position readings.

    s = 1/k is the sensitivity (readings per N m), b the offset, f the Coulomb friction (both in readings), d the
    direction of the approach, τ = Y(θ) (n + [loaded] load moments) the gravity torque. Unknowns are s, b, f of each
    joint, c and o if positions are unknown, the moments n unless known, and the centre of the mass unless known.

    Attributes:
        robot: kinematics and gravity.
        samples: M samples, with readings as torque.
        loaded: (M,) mask of samples with the reference mass.
        mass: reference mass, or None.
        known: known moments, or None.
        positions: whether c and o are unknown.
    """

    robot: RobotModel
    samples: Samples
    loaded: NDArray
    mass: ReferenceMass | None
    known: KnownGravity | None
    positions: bool

    @cached_property
    def gravity(self) -> GravityModel:
        """Gravity model with the minimal set of moments."""
        return GravityModel(self.robot)

    @cached_property
    def names(self) -> list[str]:
        """Names of the K unknowns: "offset joint_1" and so on, label by label; then moments; then "center x" to z."""
        names = [f"{label} {joint}" for label in self.joint_labels for joint in self.robot.joint_names]
        if self.known is None:
            names += [self.gravity.names[c] for c in self.moment_columns]
        if self.mass is not None and self.mass.center is None:
            names += CENTER
        return names

    @property
    def joint_labels(self) -> tuple[str, ...]:
        """Labels of the unknowns that each joint has."""
        return JOINT_LABELS if self.positions else JOINT_LABELS[:3]

    @cached_property
    def moment_columns(self) -> NDArray:
        """Columns of moments that load any joint."""
        used = np.ones(len(self.gravity.names), bool)
        for joint in np.flatnonzero(~self.weighed):
            used[self.gravity.columns(int(joint))] = False
        return np.flatnonzero(used)

    @cached_property
    def weighed(self) -> NDArray:
        """Mask (n,) of joints that gravity loads in some pose; the position of any other joint changes no torque."""
        return ~self.gravity.unobservable_axes()

    def at(self, values: NDArray) -> ModelPoint:
        """Return the model at values (K,) of the unknowns."""
        return ModelPoint(self, values)

    @cached_property
    def reading_range(self) -> NDArray:
        """Range (n,) of the readings of each joint, largest minus smallest; 0 for a joint without readings."""
        readings = self.samples.torque
        is_read = np.isfinite(readings)
        highest = np.where(is_read, readings, -np.inf).max(axis=0)
        lowest = np.where(is_read, readings, np.inf).min(axis=0)
        return np.where(is_read.any(axis=0), highest - lowest, 0.0)

    def index(self, label: str) -> NDArray:
        """Return the indices (n,) of a label's unknowns, one per joint; empty if they are known."""
        if label not in self.joint_labels:
            return np.zeros(0, int)
        n = self.robot.n_joints
        return self.joint_labels.index(label) * n + np.arange(n)

    @cached_property
    def free_moments(self) -> NDArray:
        """Indices of the moments among the unknowns; empty if the moments are known."""
        first = len(self.joint_labels) * self.robot.n_joints
        return np.arange(first, first + (0 if self.known else len(self.moment_columns)))

    @cached_property
    def load_columns(self) -> NDArray:
        """Map (k, 4) from mass and mass moment of a load in the tip frame to the moments of the gravity model."""
        last_link = np.eye(4)
        last_link[1:, 0] = self.robot.tip_offset[:3, 3]
        last_link[1:, 1:] = self.robot.tip_offset[:3, :3]
        return self.gravity.projection[:, self.robot.tip_columns][:, :4] @ last_link

    @cached_property
    def recorded_regressor(self) -> NDArray:
        """Gravity regressor (M, n, k) at the positions as read."""
        return self.gravity.regressor(self.samples.position)


# Standard errors for dwells of one rotation whose errors are correlated. Unmodelled friction is similar throughout a
# rotation, in which one joint turns and the others hold, so its dwells are not independent. The jackknife over
# rotations, to first order (Bell and McCaffrey 2002, with the residuals of each rotation in a fit without it), assumes
# only that rotations are independent.


SINGLE_ROTATION_TOLERANCE = 1e-6
"""Eigenvalue of I − H of a rotation's rows, where H is their hat matrix, below which this rotation alone determines a
direction."""


def rotation_of(samples: Samples) -> NDArray:
    """Return the index (M,) of each sample's rotation; a sample outside all rotations forms one by itself."""
    number = np.arange(len(samples))
    for rotation in rotations(samples):
        number[rotation.rows] = rotation.rows[0]
    return number


def widening(parts: Decomposition, residual: NDArray, rotation: NDArray) -> tuple[NDArray, NDArray]:
    """Return the factors (k,) by which standard errors of white residuals grow, and the degrees of freedom (k,).

    If too few rotations determine an unknown for a reliable factor, the factor is at least 1.

    Args:
        parts: decomposition of the weighted matrix (m, k).
        residual: (m,) weighted residual.
        rotation: (m,) index of each row's rotation.
    """
    half = (parts.right.T * parts.inverse) / parts.scale[:, None]
    shifts = []
    squares = []
    projected = []
    for number in np.unique(rotation):
        left = parts.left[rotation == number]
        size, axes = np.linalg.eigh(np.eye(len(left)) - left @ left.T)
        outside = (axes / np.maximum(size, SINGLE_ROTATION_TOLERANCE)) @ axes.T
        weights = half @ (left.T @ outside)
        shifts.append(weights @ residual[rotation == number])
        squares.append((weights**2).sum(axis=1))
        projected.append(weights @ left)
    square_sums = np.array(squares)
    shared = np.array(projected)
    # Degrees of freedom (Σ λ)² / Σ λ² of the variance, from the eigenvalues λ of diag(square_sums) − shared sharedᵀ.
    trace = square_sums.sum(axis=0) - (shared**2).sum(axis=(0, 2))
    products = np.einsum("ckr,dkr->kcd", shared, shared)
    diagonal = np.einsum("kcc->kc", products)
    square = (square_sums.T**2 - 2 * square_sums.T * diagonal).sum(axis=1) + (products**2).sum(axis=(1, 2))
    white = np.maximum((half**2).sum(axis=1), 1e-300)
    factor = np.sqrt((np.array(shifts) ** 2).sum(axis=0) / white)
    dof = trace**2 / np.maximum(square, 1e-300)
    # A rotation that alone determines a direction leaves no residual, so the variance would be too small.
    few = ~(dof >= MIN_GROUP_DOF) | (trace < white)
    return np.where(few, np.maximum(factor, 1.0), factor), np.where(few, MIN_GROUP_DOF, dof)


GAIN_RANGE = (0.5, 2.0)
"""Range of gains of sensors that read N m; an uncalibrated sensor has an error of some per cent."""
ANY_GAIN = (-np.inf, np.inf)
"""Range of gains if readings are currents; a gain is negative if the motor turns against its joint."""
MIN_F_STATISTIC = 10.0
"""Smallest mean square of the readings that each unknown of the mass explains, relative to the residual variance."""


def check_gain_range(gain_range: tuple[float, float]) -> None:
    """Check that a range of gains is two numbers, the lower one first.

    Raises:
        IdentificationError: the range is something else.
    """
    given = np.asarray(gain_range, dtype=float)
    if not (given.shape == (2,) and given[0] < given[1]):
        raise IdentificationError(
            f"gain_range is {tuple(given.tolist())}; expected the lowest and the highest gain that a sensor may have, "
            "N m per unit of the reading"
        )


def check_mass_is_seen(model: TorqueSensorModel) -> None:
    """Refuse recordings with the mass whose readings equal those without it, within their scatter.

    Each joint's readings are fitted independently, with any size and sign of the arm's weight and of the mass. So this
    check does not depend on the calibration.

    Raises:
        IdentificationError: the mass does not change the readings.
    """
    if model.mass is None or model.loaded.all():
        return
    explained = 0.0  # sum of squares that the mass explains, relative to the residual variance
    unknowns = 0
    for j in np.flatnonzero(model.weighed):
        rows = np.flatnonzero(np.isfinite(model.samples.torque[:, j]))
        if not model.loaded[rows].any() or model.loaded[rows].all():
            continue
        regressor = model.recorded_regressor[rows, j]
        direction = model.samples.direction[rows, j]
        columns = np.column_stack([regressor, np.ones(len(rows)), direction])
        columns_with_mass = np.hstack([columns, regressor @ model.load_columns * model.loaded[rows, None]])
        readings = model.samples.torque[rows, j]
        without = solve(columns, readings)
        with_mass = solve(columns_with_mass, readings)
        dof = len(rows) - with_mass.rank
        added = with_mass.rank - without.rank
        if dof > 0 and added > 0:
            left = _squares(with_mass.residual)
            floor = (1e-9 * max(float(np.abs(readings).max()), 1e-300)) ** 2
            explained += (_squares(without.residual) - left) / max(left / dof, floor)
            unknowns += added
    if unknowns and explained < MIN_F_STATISTIC * unknowns:
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
