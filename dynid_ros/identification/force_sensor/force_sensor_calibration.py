"""Calibration of a wrist force/torque sensor at rest: its bias, and mass and centre of what hangs on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import f as f_distribution

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import ILL_CONDITIONED, jackknife_covariance
from dynid_ros.estimation.identifiability import RANK_TOLERANCE
from dynid_ros.estimation.least_squares import LeastSquaresFit, solve, solve_grouped
from dynid_ros.identification.force_sensor.force_sensor_result import ForceSensorResult
from dynid_ros.identification.force_sensor.static_readings import (
    N_LOAD,
    TILT,
    TURN,
    StaticReading,
    StaticReadings,
    refuse_contradiction,
    rotation_matrices,
)
from dynid_ros.identification.wrench_faults import LinearReadings, find_faults
from dynid_ros.identification.wrench_frame import (
    AXES,
    UNITS,
    Convention,
    Frame,
    require_choices,
    sensor_wrench,
)
from dynid_ros.model.arrays import finite_vector
from dynid_ros.model.robot import STANDARD_GRAVITY

# Standard errors of a static calibration, whose residuals are no noise: a sensor drifts as it warms up.


BLOCKS = 10
"""Stretches of neighbouring poses, left out in turn."""
DEGREES = (1, 2)
"""Degrees of the polynomials in time of the drift that is looked for."""
DRIFTS = 1e-3
"""Probability with which noise feigns as much drift in an axis."""
NORMAL = 1e6
"""Degrees of freedom that are as good as infinite."""
FEWEST = 8
"""Poses that show a drift beside all else."""


@dataclass(frozen=True, eq=False)
class WeightedPoses:
    """A fit of the readings of M poses.

    Attributes:
        matrix: (6 M, k), pose by pose.
        wrench: (M, 6).
        sigma: (6 M,) noise of each row.
        course: (M,) time from −1 to 1.
    """

    matrix: NDArray
    wrench: NDArray
    sigma: NDArray
    course: NDArray

    @cached_property
    def fit(self) -> LeastSquaresFit:
        """Weighted."""
        return self._solve(self.matrix)

    def covariance(self, known: NDArray) -> tuple[NDArray, NDArray]:
        """Covariance (k, k) and degrees of freedom (k,) of its variances.

        From fits without one stretch of poses after the other (jackknife), so that residuals may be alike in
        neighbouring poses. Where axes drift, how far an estimate of the drift moves the solution is an error too.

        Args:
            known: (6 M, r) standard deviations of errors that no residual shows, each a column of readings. They are
                known themselves, and leave the more degrees of freedom, the more they add (Satterthwaite 1946).
        """
        covariance, dof = self.fit.covariance, float(max(self.wrench.size - self.fit.rank, 1))
        groups = np.array_split(np.argsort(self.course, kind="stable"), min(BLOCKS, len(self.wrench)))
        parts = [self._without(group) for group in groups]
        if all(part.rank == self.fit.rank for part in parts):
            moves = np.array([part.solution for part in parts]) - self.fit.solution
            covariance, dof = jackknife_covariance(moves), len(groups) - 1.0
        if self.drifts:
            covariance = covariance + np.outer(self.change_by_drift, self.change_by_drift)
        moved = self.fit.covariance @ (self.matrix / self.sigma[:, None] ** 2).T @ known
        total = covariance + moved @ moved.T
        with np.errstate(divide="ignore", invalid="ignore"):
            return total, np.fmin(dof * (np.diag(total) / np.diag(covariance)) ** 2, NORMAL)

    @cached_property
    def drifts(self) -> dict[int, float]:
        """How far each axis drifts, N or N m, by axis from 0; only those that do."""
        poses, axes = self.wrench.shape
        wanted = self.fit.rank + len(DEGREES) * axes
        if poses < FEWEST or self._drifting.rank < wanted:
            return {}
        before, after = (
            np.sum(np.reshape(fit.residual, (poses, axes)) ** 2, axis=0) for fit in (self.fit, self._drifting)
        )
        dof = poses - wanted / axes
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (before - after) / len(DEGREES) / (after / dof)
        seen = f_distribution.sf(ratio, len(DEGREES), dof) < DRIFTS
        courses = self._courses @ self._drifting.solution[self.matrix.shape[1] :].reshape(len(DEGREES), axes)
        return {int(axis): float(np.ptp(courses[:, axis])) for axis in np.flatnonzero(seen)}

    @property
    def change_by_drift(self) -> NDArray:
        """(k,) how far an estimate of the drift moves the solution."""
        return self._drifting.solution[: len(self.fit.solution)] - self.fit.solution

    @cached_property
    def _drifting(self) -> LeastSquaresFit:
        """With a polynomial of time in each axis besides."""
        poses, axes = self.wrench.shape
        own = self._courses[:, None, :, None] * np.eye(axes)[None, :, None, :]
        return self._solve(np.hstack([self.matrix, own.reshape(poses * axes, -1)]))

    @property
    def _courses(self) -> NDArray:
        return self.course[:, None] ** np.array(DEGREES)

    def _without(self, poses: NDArray) -> LeastSquaresFit:
        kept = np.repeat(~np.isin(np.arange(len(self.wrench)), poses), self.wrench.shape[1])
        return solve(self.matrix[kept], self.wrench.ravel()[kept], 1 / self.sigma[kept] ** 2, RANK_TOLERANCE)

    def _solve(self, matrix: NDArray) -> LeastSquaresFit:
        return solve(matrix, self.wrench.ravel(), 1 / self.sigma**2, RANK_TOLERANCE)


# What to know of a static calibration beside its numbers.


FEIGNED = 1e-4
"""Probability with which noise feigns as much of a turn."""
WORTH = 0.2
"""Part of the squared residuals that a turn must explain to be worth a remark."""


def remarks(
    result: ForceSensorResult, poses: WeightedPoses, turns: tuple[StaticReading, WeightedPoses] | None
) -> Iterator[str]:
    """Sentences.

    Args:
        result: of the calibration.
        poses: its fit.
        turns: model and fit with turns of base and sensor besides, if it has none.
    """
    if not result.mass > 2 * result.mass_error:
        yield "no weight is seen: the centre of mass is open"
    if result.condition_number > ILL_CONDITIONED:
        yield f"condition number {result.condition_number:.3g}: poses that differ more would tell more"
    drifts = poses.drifts
    if drifts:
        axes = ", ".join(f"{AXES[axis]} by {size:.2g} {UNITS[axis]}" for axis, size in drifts.items())
        mass = result.mass + poses.change_by_drift[0]
        yield (
            f"the sensor drifts: {axes} in the course of the poses, beyond noise; with drift=2 the mass is {mass:.4g} "
            "kg. Let it warm up, or zero it and record again"
        )
    elif turns is not None:
        yield from _turns(poses, *turns)


def _turns(poses: WeightedPoses, reading: StaticReading, turned: WeightedPoses) -> Iterator[str]:
    count = len(TILT) + len(TURN)
    dof = poses.wrench.size - turned.fit.rank
    if turned.fit.rank < len(reading.names) or dof < count:
        return
    before, after = (float(np.sum((fit.residual / poses.sigma) ** 2)) for fit in (poses.fit, turned.fit))
    ratio = (before - after) / count / (after / dof) if after > 0 else np.inf
    if before - after > WORTH * before and f_distribution.sf(ratio, count, dof) < FEIGNED:
        tilt, turn = (np.degrees(rotation.magnitude()) for rotation in (reading.tilted, reading.turned))
        yield (
            f"the base would be tilted by {tilt:.2g}° and the sensor turned by {turn:.2g}° against the poses given, "
            f"which explains {1 - after / before:.0%} of the squared residuals: check how both are mounted, or set "
            "base_tilt or sensor_turn"
        )


ROUNDS = 30
SETTLED = 1e-7
MOST_DRIFT = 3
SEEN = 3.0
"""Standard errors below zero at which a mass is negative."""


@dataclass
class ForceSensorCalibration:
    """Fits readings at rest, m Rᵀ g + bias and c × m Rᵀ g + bias (Atkeson, An and Hollerbach 1986, eq. 21).

    Force counts alike in all three axes, torque too, each by the noise of its kind.

    Attributes:
        gravity: (3,) in the base, m/s².
        frame: of the wrenches; None: "sensor".
        convention: who exerts the wrench that is read.
        bias: (6,) N and N m if it is known; None: estimated.
        base_tilt: whether only the size of gravity is known, and its direction in the base is estimated.
        sensor_turn: whether the sensor's axes are turned against those given by an unknown small angle.
        drift: degree of the polynomial of time that the bias follows; 0: it does not.
        gain_error: standard deviation of the relative error of each axis' gain.
        turn_error: standard deviation of how far the sensor is turned about each axis against the axes given, rad; it
            does not count where `sensor_turn` estimates it.
    """

    gravity: ArrayLike = STANDARD_GRAVITY
    frame: Frame | None = None
    convention: Convention = "load_on_sensor"
    bias: ArrayLike | None = None
    base_tilt: bool = False
    sensor_turn: bool = False
    drift: int = 0
    gain_error: float = 0.005
    turn_error: float = 0.002

    def __post_init__(self) -> None:
        require_choices(self.frame, self.convention)
        self.gravity = finite_vector(self.gravity, 3, "gravity (m/s^2, in the base frame)")
        if not self.gravity.any():
            raise IdentificationError("gravity is zero; without weight no pose differs from another")
        self._known = np.zeros(6) if self.bias is None else finite_vector(self.bias, 6, "bias (N and N m)")
        for name in ("gain_error", "turn_error"):
            size = getattr(self, name)
            if not (isinstance(size, (int, float)) and np.isfinite(size) and size >= 0):
                raise IdentificationError(f"{name} is {size!r}; expected a number of 0 or more")
        if self.drift not in range(MOST_DRIFT + 1) or (self.drift and self.bias is not None):
            raise IdentificationError(
                f"drift is {self.drift!r}; expected a degree from 0 to {MOST_DRIFT}, and 0 if the bias is given"
            )

    def fit(self, orientations: ArrayLike, wrench: ArrayLike, time: ArrayLike | None = None) -> ForceSensorResult:
        """Calibrate from poses, in the order in which they were taken.

        Args:
            orientations: of the sensor in the base: (M, 3, 3) with its axes as columns, or quaternions (M, 4) x y z w.
            wrench: (M, 6) force and torque, N and N m; moments about the sensor's origin.
            time: (M,) s; None: not known, and the bias must not drift.

        Raises:
            IdentificationError: shapes, values, a frame or a sign that contradict the data, or too few poses.
        """
        rotations, readings = rotation_matrices(orientations), np.asarray(wrench, dtype=float)
        moments = np.arange(len(rotations), dtype=float) if time is None else np.asarray(time, dtype=float)
        if readings.shape != (len(rotations), 6) or moments.shape != (len(rotations),) or not len(rotations):
            raise IdentificationError(
                f"{len(rotations)} orientations, wrenches of shape {readings.shape} and times of shape {moments.shape} "
                "do not fit; expected at least one pose, (M, 6) and (M,)"
            )
        if self.drift and time is None:
            raise IdentificationError(
                f"the bias drifts (drift={self.drift}), and no time is given: give time (M,) in s for the "
                f"{len(rotations)} poses"
            )
        bad = np.flatnonzero(~np.isfinite(readings).all(axis=1) | ~np.isfinite(moments))
        if bad.size:
            raise IdentificationError(f"wrench of pose {bad[0]} is not finite ({bad.size} such poses); leave them out")
        return self._fit(StaticReadings(rotations, readings, moments), self.frame or "sensor", np.asarray(self.gravity))

    def _fit(self, readings: StaticReadings, frame: Frame, gravity: NDArray) -> ForceSensorResult:
        rotations, wrench, time = readings
        reading = StaticReading(gravity, self.bias is None, self.base_tilt, self.sensor_turn, self.drift)
        # Bias and drift change sign with the load's wrench, and back.
        sign = 1.0 if self.convention == "load_on_sensor" else -1.0
        sensed = sign * (sensor_wrench(wrench, rotations, frame) - self._known)
        course = 2 * (time - time.min()) / max(np.ptp(time), 1e-9) - 1
        reading, poses = _solved(reading, rotations, sensed, course)
        _require_decided(reading, rotations, poses.fit)
        refuse_contradiction(reading, rotations, wrench, frame, self._known)
        covariance, dof = poses.covariance(self._known_errors(reading, rotations, poses))
        values = poses.fit.solution
        if values[0] < -SEEN * np.sqrt(covariance[0, 0]):
            other = "sensor_on_load" if self.convention == "load_on_sensor" else "load_on_sensor"
            raise IdentificationError(
                f"the mass would be {values[0]:.4g} kg: the wrenches have the sign of convention='{other}'; set it, or "
                "turn gravity round"
            )
        weight = reading.weight(rotations)
        nothing = np.empty((len(weight), 0))
        linear = LinearReadings(time, np.zeros(len(time)), weight, (nothing, nothing), sensed, self.drift)
        find_faults(linear, "poses", self.gain_error, max_drift=np.inf)
        signs = np.where([name.startswith(("bias", "drift")) for name in reading.names], sign, 1.0)
        result = ForceSensorResult(
            names=reading.names,
            values=signs * values,
            covariance=covariance * np.outer(signs, signs),
            dof=dof,
            reading=reading,
            known_bias=self._known,
            times=(float(time.min()), float(time.max())),
            frame=frame,
            convention=self.convention,
            condition_number=poses.fit.condition_number,
            residuals=sign * poses.fit.residual.reshape(-1, 6),
        )
        turns = None if reading.bends else _solved(replace(reading, tilt=True, turn=True), rotations, sensed, course)
        return replace(result, remarks=tuple(remarks(result, poses, turns)))

    def _known_errors(self, reading: StaticReading, rotations: NDArray, poses: WeightedPoses) -> NDArray:
        """(6 M, r) standard deviations of readings by wrong gains and a turned sensor, each a column."""
        bias = [i for i, name in enumerate(reading.names) if name.startswith("bias")]
        load = poses.wrench.ravel() - poses.fit.residual - poses.matrix[:, bias] @ poses.fit.solution[bias]
        errors = [self.gain_error * load[:, None] * np.tile(np.eye(6), (len(rotations), 1))]
        if not self.sensor_turn:
            turn = replace(reading, bias=False, tilt=False, turn=True, drift=0, load=poses.fit.solution[:N_LOAD])
            columns = turn.columns(rotations, poses.course)[:, :, N_LOAD:]
            errors.append(self.turn_error * columns.reshape(len(load), -1))
        return np.hstack(errors)


def _solved(
    reading: StaticReading, rotations: NDArray, sensed: NDArray, course: NDArray
) -> tuple[StaticReading, WeightedPoses]:
    """The model, linearised about its solution, and the weighted fit."""
    group = np.tile(np.repeat([0, 1], 3), len(rotations))
    for _ in range(ROUNDS):
        matrix = reading.columns(rotations, course).reshape(sensed.size, -1)
        fit, sigma = solve_grouped(matrix, sensed.ravel(), group)
        after = reading.after(fit.solution)
        moved = (after.turned * reading.turned.inv()).magnitude() + (after.tilted * reading.tilted.inv()).magnitude()
        if not reading.bends or (moved < SETTLED and reading.load.any()):
            break
        reading = after
    return reading, WeightedPoses(matrix, sensed, sigma[group], course)


def _require_decided(reading: StaticReading, rotations: NDArray, fit: LeastSquaresFit) -> None:
    left_open = [name for name, found in zip(reading.names, fit.inflation, strict=True) if not np.isfinite(found)]
    if not left_open:
        return
    weight = reading.weight(rotations)
    weight = weight / np.linalg.norm(weight, axis=1, keepdims=True)
    spread = np.degrees(np.arccos(np.clip(np.min(weight @ weight.T), -1.0, 1.0)))
    raise IdentificationError(
        f"{len(rotations)} pose(s) show {fit.rank} of {len(reading.names)} unknowns and leave undetermined "
        f"{', '.join(left_open)}. Gravity must point in at least three directions in the sensor's axes; here they "
        f"differ by at most {spread:.3g}°. Record more poses, tilted about two axes, or give the bias"
    )
