"""What a static calibration of a force/torque sensor found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import half_width, interval
from dynid_ros.identification.force_sensor.static_readings import N_BIAS, N_LOAD, StaticReading, rotation_matrices
from dynid_ros.identification.wrench_frame import AXES, UNITS, Convention, Frame, sensor_wrench, turned
from dynid_ros.identified.section import as_number
from dynid_ros.model.rigid_body import LoadBody

DRIFT_SAMPLES = 100
"""Moments at which a drifting bias is looked at for the range of its drift."""


@dataclass(frozen=True, eq=False)
class ForceSensorResult:
    """Bias of the sensor, mass and centre of what hangs on it; all about the sensor's frame.

    Attributes:
        names: of the k unknowns: mass and mass moments first, then the bias unless it was given, then turns and drift.
        values: (k,).
        covariance: (k, k); allows for residuals that are correlated in neighbouring poses and for drift of the sensor.
        dof: (k,) degrees of freedom of the variances.
        reading: the model, with the turns that were found.
        known_bias: (6,) N and N m, given; zero where it is estimated.
        times: (2,) first and last pose of the calibration, s, between which the bias drifts.
        frame, convention: of the wrenches, see `wrench_frame`.
        condition_number: of the weighted equations with unit columns.
        residuals: (M, 6) reading less model, in the sensor's axes, N and N m.
        remarks: what to know of the result.
    """

    names: tuple[str, ...]
    values: NDArray
    covariance: NDArray
    dof: NDArray
    reading: StaticReading
    known_bias: NDArray
    times: tuple[float, float]
    frame: Frame
    convention: Convention
    condition_number: float
    residuals: NDArray
    remarks: tuple[str, ...] = ()

    @property
    def standard_errors(self) -> NDArray:
        """(k,) of `values`."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def confidence_intervals(self, level: float = 0.95) -> NDArray:
        """(k, 2) lower and upper ends, from Student's t."""
        return interval(self.values, self.standard_errors, self.dof, level)

    @property
    def parameters(self) -> NDArray:
        """(10,) of the load; NaN for its inertia, which does not act at rest."""
        return np.concatenate([self.values[:N_LOAD], np.full(10 - N_LOAD, np.nan)])

    @property
    def mass(self) -> float:
        """Mass of what hangs on the sensor, kg."""
        return float(self.values[0])

    @property
    def mass_error(self) -> float:
        """Standard error, kg."""
        return float(self.standard_errors[0])

    @property
    def center(self) -> NDArray:
        """(3,) centre of mass in the sensor's frame, m; NaN if no weight is seen."""
        return self._body.center if self.mass > 2 * self.mass_error else np.full(3, np.nan)

    @property
    def center_errors(self) -> NDArray:
        """(3,) standard errors, m."""
        return np.where(np.isfinite(self.center), self._body.center_errors, np.nan)

    @property
    def bias(self) -> NDArray:
        """(6,) reading without load, N and N m, in the sensor's axes; of one that drifts that midway."""
        own = self.values[N_LOAD : N_LOAD + N_BIAS] if self.reading.bias else 0.0
        return self.known_bias + own

    @property
    def bias_errors(self) -> NDArray:
        """(6,) standard errors; zero if the bias was given."""
        return self.standard_errors[N_LOAD : N_LOAD + N_BIAS] if self.reading.bias else np.zeros(N_BIAS)

    @property
    def residual_rms(self) -> NDArray:
        """(6,) in the sensor's axes, N and N m."""
        return np.sqrt(np.mean(self.residuals**2, axis=0))

    @property
    def gravity(self) -> NDArray:
        """(3,) in the base, m/s²: as given, or as found."""
        return self.reading.tilted.apply(self.reading.gravity)

    def bias_at(self, time: ArrayLike) -> NDArray:
        """(M, 6) bias at times (M,) s, N and N m, in the sensor's axes.

        Before the calibration and after it the bias is that of its begin and end: no polynomial holds beyond its data.
        """
        first, last = self.times
        course = np.clip(2 * (np.asarray(time, dtype=float) - first) / max(last - first, 1e-9) - 1, -1.0, 1.0)
        powers = course[:, None] ** np.arange(1, self.reading.drift + 1)
        return self.bias + powers @ self.drift

    @property
    def drift(self) -> NDArray:
        """(degree, 6) coefficients of the bias' drift in the calibration's time, which runs from −1 to 1, N and N m."""
        return self.values[len(self.values) - N_BIAS * self.reading.drift :].reshape(-1, N_BIAS)

    def predict(self, orientations: ArrayLike, time: ArrayLike | None = None) -> NDArray:
        """Readings (M, 6) at rest, in `frame`.

        Args:
            orientations: (M, 3, 3) or (M, 4).
            time: (M,) of the poses, s, as in the calibration; None: only
                where the bias does not drift.

        Raises:
            IdentificationError: orientations that are none, or no times though the bias drifts.
        """
        rotations = rotation_matrices(orientations)
        still = replace(self.reading, tilt=False, turn=False, drift=0, bias=False)
        load = still.columns(rotations, np.zeros(len(rotations))) @ self.values[:N_LOAD]
        reading = (load if self.convention == "load_on_sensor" else -load) + self._bias_of(rotations, time)
        return turned(reading, rotations) if self.frame == "base" else reading

    def contact(self, orientations: ArrayLike, wrench: ArrayLike, time: ArrayLike | None = None) -> NDArray:
        """What is left of readings (M, 6) without load and bias: by contact or motion, in the sensor's axes.

        `time` as in `predict`.
        """
        rotations = rotation_matrices(orientations)
        left = np.asarray(wrench, dtype=float) - self.predict(rotations, time)
        return sensor_wrench(left, rotations, self.frame)

    def validate(self, orientations: ArrayLike, wrench: ArrayLike, time: ArrayLike | None = None) -> NDArray:
        """(6,) RMS error of the prediction of poses that were not fitted, in the sensor's axes, N and N m.

        `time` as in `predict`.
        """
        return np.sqrt(np.mean(self.contact(orientations, wrench, time) ** 2, axis=0))

    def _bias_of(self, rotations: NDArray, time: ArrayLike | None) -> NDArray:
        if not self.reading.drift:
            return self.bias
        if time is None:
            raise IdentificationError(
                f"the bias drifts, and no time is given: give time (M,) in s for the {len(rotations)} poses; the "
                f"calibration went from {self.times[0]:g} to {self.times[1]:g} s"
            )
        times = np.asarray(time, dtype=float)
        if times.shape != (len(rotations),) or not np.isfinite(times).all():
            raise IdentificationError(
                f"times of shape {times.shape} for {len(rotations)} poses; expected (M,), finite, in s"
            )
        return self.bias_at(times)

    def summary(self) -> str:
        """A few lines."""
        half = half_width(1.0, self.dof)
        center = zip(self.center, half[1:N_LOAD] * self.center_errors, strict=True)
        lines = [
            f"mass {self.mass:.4g} kg ± {half[0] * self.mass_error:.2g}",
            f"centre {', '.join(f'{value:.4f} ± {error:.1g}' for value, error in center)} m",
        ]
        of_bias = half[N_LOAD : N_LOAD + N_BIAS] if self.reading.bias else np.zeros(N_BIAS)
        for axis, unit, value, error, rms in zip(
            AXES, UNITS, self.bias, of_bias * self.bias_errors, self.residual_rms, strict=True
        ):
            lines.append(f"{axis}: bias {value:.4g} ± {error:.2g} {unit}, residual RMS {rms:.2g} {unit}")
        if self.reading.drift:
            first, last = self.times
            paths = np.ptp(self.bias_at(np.linspace(first, last, DRIFT_SAMPLES)), axis=0)
            sizes = ", ".join(f"{axis} {size:.2g} {unit}" for axis, unit, size in zip(AXES, UNITS, paths, strict=True))
            lines.append(f"drift of the bias from {first:g} to {last:g} s: {sizes}")
        return "\n".join(
            [
                *lines,
                f"{len(self.residuals)} poses, condition number {self.condition_number:.3g}; ± are 95 % intervals",
                *self.remarks,
            ]
        )

    def document(self) -> dict:
        """Section `force_sensor` of `identified.yaml`."""
        return {
            "mass": self.mass,
            "mass_std": self.mass_error,
            "center": [as_number(v) for v in self.center],
            "center_std": [as_number(v) for v in self.center_errors],
            "bias": dict(zip(AXES, map(float, self.bias), strict=True)),
            "bias_std": dict(zip(AXES, map(float, self.bias_errors), strict=True)),
            "drift": {axis: [float(v) for v in self.drift[:, i]] for i, axis in enumerate(AXES)},
            "times": list(self.times),
            "gravity": [float(v) for v in self.gravity],
            "turn": [float(v) for v in self.reading.turned.as_rotvec()],
            "frame": self.frame,
            "convention": self.convention,
            "residual_rms": dict(zip(AXES, map(float, self.residual_rms), strict=True)),
            "condition_number": float(self.condition_number),
            "poses": len(self.residuals),
            "remarks": list(self.remarks),
        }

    @cached_property
    def _body(self) -> LoadBody:
        covariance = np.zeros((10, 10))
        covariance[:N_LOAD, :N_LOAD] = self.covariance[:N_LOAD, :N_LOAD]
        return LoadBody(self.parameters, covariance)
