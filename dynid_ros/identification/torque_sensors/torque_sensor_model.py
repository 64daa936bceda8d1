"""Readings of torque sensors at rest as a function of all their unknowns (Ma & Hollerbach 1996)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.static_samples import Samples
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel

# The mass that torque sensors are calibrated with.


@dataclass(frozen=True)
class ReferenceMass:
    """A body of known weight, fixed to the tip link.

    Attributes:
        mass: kg, with all that is attached together with it.
        center: (3,) its centre of mass in the frame of the tip link, m; None: not known, and estimated.

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
    """Readings and their derivatives at one value of the unknowns."""

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
        """Return the derivatives (M, n, K) of the readings by the unknowns."""
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
        """Return the derivatives (M, n, k) of the readings by all moments."""
        return (self._of["sensitivity"] * self.model.weighed)[:, None] * self._regressor

    def _torque(self, regressor: NDArray) -> NDArray:
        return np.einsum("mik,mk->mi", regressor, self._sample_moments) * self.model.weighed

    def _slope(self, joint: int) -> NDArray:
        """Return the derivative (M, n) of the torques by a joint's position.

        A torque is a constant and a sinusoid of a revolute joint's angle, and linear in a prismatic joint's position.
        The derivative is half its difference between a quarter turn before and after, or between a unit before and
        after.
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
        """Minimal moments."""
        return GravityModel(self.robot)

    @cached_property
    def names(self) -> list[str]:
        """Names of the K unknowns: label and joint, by label; then the moments, then "center x" and so on."""
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
        """(n,) whether gravity loads a joint in any pose; where it does not, its position changes no torque either."""
        return ~self.gravity.unobservable_axes()

    def at(self, values: NDArray) -> ModelPoint:
        """Return the model at values (K,) of the unknowns."""
        return ModelPoint(self, values)

    @cached_property
    def reading_range(self) -> NDArray:
        """(n,) largest less smallest reading of each joint; 0 for one without."""
        readings = self.samples.torque
        known = np.isfinite(readings)
        ends = [np.where(known, readings, worst) for worst in (-np.inf, np.inf)]
        return np.where(known.any(axis=0), ends[0].max(axis=0) - ends[1].min(axis=0), 0.0)

    def index(self, label: str) -> NDArray:
        """Return where the values of all joints of a label are; empty if they are known."""
        if label not in self.joint_labels:
            return np.zeros(0, int)
        n = self.robot.n_joints
        return self.joint_labels.index(label) * n + np.arange(n)

    @cached_property
    def free_moments(self) -> NDArray:
        """Return the indices of the moments among the unknowns; empty if they are known."""
        first = len(self.joint_labels) * self.robot.n_joints
        return np.arange(first, first + (0 if self.known else len(self.moment_columns)))

    @cached_property
    def load_columns(self) -> NDArray:
        """(k, 4) moments of a load's mass and its mass moment in the tip frame."""
        last_link = np.eye(4)
        last_link[1:, 0] = self.robot.tip_offset[:3, 3]
        last_link[1:, 1:] = self.robot.tip_offset[:3, :3]
        return self.gravity.projection[:, self.robot.tip_columns][:, :4] @ last_link

    @cached_property
    def recorded_regressor(self) -> NDArray:
        """(M, n, k) at the positions as read."""
        return self.gravity.regressor(self.samples.position)
