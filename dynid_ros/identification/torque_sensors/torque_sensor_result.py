"""Result of a torque-sensor calibration: gains, offsets and friction, with undetermined combinations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.display import percent, text_table
from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identification.result import Result, unseen_agreement
from dynid_ros.identification.static_samples import SampleRules, static_samples, with_known_torque
from dynid_ros.identification.torque_sensors.torque_sensor_fit import (
    NullDirection,
    TorqueSensorFit,
    freedoms,
    reported,
    undecided,
)
from dynid_ros.identification.torque_sensors.torque_sensor_model import CENTER, TorqueSensorModel
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.identified.identified_file import DOF, as_numbers
from dynid_ros.identified.torque_sensors import DEFAULTS, TorqueSensors, torque_sensor_entry
from dynid_ros.identified.validation import Validation, unit_of_joints, validate_torque
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.recording import Recording

COLLINEAR_INFLATION = 30.0
"""Inflation of a standard error by collinearity above which errors of the model may exceed the noise."""


@dataclass(frozen=True, eq=False, repr=False)
class TorqueSensorResult(Result):
    """Gain and offset of each joint's torque sensor, and of its position sensor if they were unknown.

    A reading v corresponds to the torque gain · (v − offset), a position reading φ to the position position_gain · φ +
    position_offset. Undetermined numbers are NaN; `reasons` gives the causes, `freedoms` the combinations of unknowns
    that have no effect on any reading.

    Attributes:
        model: model of the readings, with the samples.
        fit: estimates of the unknowns of the model.
        sources: names of the recordings.
        settings: settings of the calibration, as plain data.
        remarks: sentences on contradictions in the data.
        arm: content of the arm's `identified.yaml`, to which the sensors are added; None: the file contains only the
            sensors.
    """

    model: TorqueSensorModel
    fit: TorqueSensorFit
    sources: tuple[str, ...]
    settings: dict
    remarks: tuple[str, ...] = ()
    arm: dict | None = None

    @property
    def robot(self) -> RobotModel:
        """Robot that was calibrated."""
        return self.model.robot

    @property
    def dof(self) -> float:
        """Degrees of freedom of all variances."""
        return self.fit.dof

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the n joints."""
        return self.model.robot.joint_names

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all unknowns (K,), such as "gain joint_2", "n_x joint_2" or "center x"."""
        return tuple(reported(name) for name in self.model.names)

    @cached_property
    def reasons(self) -> dict[str, str]:
        """Reasons of undetermined unknowns, by name."""
        std = np.sqrt(np.diag(self.fit.covariance))
        return {reported(name): why for name, why in undecided(self.model, self.fit, std).items()}

    @property
    def missing(self) -> tuple[str, ...]:
        """Sentences on undetermined gains of joints that gravity loads."""
        loaded = ~GravityModel(self.model.robot).unobservable_axes()
        names = [f"gain {joint}" for joint, known in zip(self.joint_names, loaded, strict=True) if known]
        return tuple(f"{name} is not known: {self.reasons[name]}" for name in names if name in self.reasons)

    @cached_property
    def freedoms(self) -> tuple[NullDirection, ...]:
        """Combinations of unknowns that have no effect on any reading."""
        return freedoms(self.model, self.fit)

    @property
    def parameters(self) -> NDArray:
        """Values (K,) in the order of `names`; NaN if undetermined."""
        values = self.fit.values.copy()
        index = self.model.index("sensitivity")
        values[index] = 1 / values[index]
        return np.where(self._decided, values, np.nan)

    @cached_property
    def covariance(self) -> NDArray:
        """Covariance (K, K) of `parameters`; NaN if undetermined."""
        slope = np.ones(len(self.names))
        index = self.model.index("sensitivity")
        slope[index] = -1 / self.fit.values[index] ** 2
        covariance = self.fit.covariance * np.outer(slope, slope)
        covariance[~self._decided], covariance[:, ~self._decided] = np.nan, np.nan
        return covariance

    @property
    def gain(self) -> NDArray:
        """Gains (n,), N m per unit of the reading, N for prismatic joints."""
        return self.per_joint("gain")[0]

    @property
    def offset(self) -> NDArray:
        """Offsets (n,): readings without torque."""
        return self.per_joint("offset")[0]

    @property
    def position_gain(self) -> NDArray:
        """Position gains (n,); 1 if positions are known."""
        return self.per_joint("position_gain")[0]

    @property
    def position_offset(self) -> NDArray:
        """Position offsets (n,), rad or m; 0 if positions are known."""
        return self.per_joint("position_offset")[0]

    @property
    def coulomb(self) -> NDArray:
        """Coulomb friction (n,), N m; NaN if friction or gain is undetermined."""
        return self.per_joint("coulomb")[0] * self.gain

    @property
    def center(self) -> NDArray | None:
        """Centre (3,) of the reference mass in the tip frame, m, given or estimated; None without a mass."""
        mass = self.model.mass
        if mass is None:
            return None
        return self._pick(CENTER)[0] if mass.center is None else np.asarray(mass.center, dtype=float)

    @property
    def gravity(self) -> KnownGravity | None:
        """Moments of the arm without the mass, given or estimated, for a later calibration without the mass.

        Their uncertainty includes that of the gains. None: they are undetermined.
        """
        model = self.model
        if model.known is not None:
            return model.known
        names = [self.names[i] for i in model.free_moments]
        if any(name in self.reasons for name in names):
            return None
        moments = np.zeros(len(model.gravity.names))
        covariance = np.zeros((len(moments), len(moments)))
        moments[model.moment_columns] = self.fit.values[model.free_moments]
        covariance[np.ix_(model.moment_columns, model.moment_columns)] = self.fit.covariance[
            np.ix_(model.free_moments, model.free_moments)
        ]
        return KnownGravity(moments, covariance, f"calibration of {', '.join(self.sources)}")

    @property
    def condition_number(self) -> float:
        """Condition number of the column-scaled weighted Jacobian, without its null space."""
        return self.fit.condition_number

    @property
    def nullity(self) -> int:
        """Dimension of the null space: number of independent changes of unknowns without effect on any reading."""
        return self.fit.open.shape[1]

    @property
    def residual_rms(self) -> NDArray:
        """RMS residual (n,) of the readings; NaN for a joint without readings."""
        known = np.isfinite(self.fit.residual)
        squares = np.where(known, self.fit.residual, 0.0) ** 2
        return np.sqrt(squares.sum(axis=0) / np.where(known.any(axis=0), known.sum(axis=0), np.nan))

    @property
    def sensors(self) -> TorqueSensors:
        """Calibration that corrects recordings."""
        return TorqueSensors.of(self.joint_names, {label: self.per_joint(label)[0] for label in DEFAULTS})

    def per_joint(self, label: str) -> tuple[NDArray, NDArray]:
        """Return values and standard errors (n,) of "gain", "offset", "coulomb" (in readings) and so on."""
        if label.startswith("position") and not self.model.positions:
            n = len(self.joint_names)
            return np.full(n, DEFAULTS[label]), np.zeros(n)
        return self._pick([f"{label} {joint}" for joint in self.joint_names])

    def correct(self, recording: Recording) -> Recording:
        """Return the recording with true torques and angles, see `TorqueSensors.correct`."""
        return self.sensors.correct(recording)

    def validate(self, recording: Recording) -> Validation:
        """Compare corrected readings at rest with gravity and friction, in a recording without the reference mass.

        Raises:
            RecordingError: a joint of the robot is not in the recording.
            IdentificationError: the recording has no dwells.
        """
        corrected = self.correct(recording.select(self.joint_names))
        samples = static_samples(with_known_torque(corrected), SampleRules())
        if not len(samples):
            raise IdentificationError(f"{recording.source}: no dwells to validate on; record rests in many poses")
        predicted = np.full_like(samples.torque, np.nan)
        if self.gravity is not None:
            gravity = GravityModel(self.robot).regressor(samples.position) @ self.gravity.moments
            friction = np.nan_to_num(self.coulomb) * samples.direction
            predicted = np.where(np.isnan(self.gain), np.nan, gravity + friction)
        unit = unit_of_joints(self.robot.chain.prismatic, "N m", "N")
        return validate_torque(recording.source, self.joint_names, samples.torque, predicted, unit)

    @property
    def _labels(self) -> list[str]:
        """Columns of the table: gain and offset, and those of the position sensors if they were unknown."""
        return list(DEFAULTS) if self.model.positions else list(DEFAULTS)[:2]

    def verdict(self, validations: Sequence[Validation] = ()) -> str:
        """Say how many gains are determined, and how accurately."""
        errors = half_width(1.0, self.fit.dof) * self.per_joint("gain")[1] / np.abs(self.gain)
        known = np.isfinite(errors)
        worst = f" to ± {percent(np.max(errors[known]))} or better (95 %)" if known.any() else ""
        agreement = unseen_agreement(validations)
        end = f"; {agreement}" if agreement else ""
        text = f"The gains of {np.count_nonzero(known)} of {len(known)} torque sensors are determined{worst}{end}."
        if self.motor_gains is None:
            return text
        gains = ", ".join("?" if gain is None else f"{gain:.5g}" for gain in self.motor_gains)
        return f"{text}\nmotor_gains: [{gains}]"

    def joint_table(self, _validations: Sequence[Validation] = ()) -> list[str]:
        """Return gains and offsets with half 95 % intervals, and residuals, by joint."""
        half = half_width(1.0, self.fit.dof)
        columns = [self.per_joint(label) for label in self._labels]
        rows = [
            [
                joint,
                *(
                    "not determined" if np.isnan(value[j]) else f"{value[j]:+.5g} ± {half * error[j]:.2g}"
                    for value, error in columns
                ),
                f"{self.residual_rms[j]:.3g}",
            ]
            for j, joint in enumerate(self.joint_names)
        ]
        return text_table(["joint", *(label.replace("_", " ") for label in self._labels), "rms"], rows)

    def notes(self) -> list[str]:
        """Return the remarks, and why gains and offsets are not determined."""
        reasons: dict[str, list[str]] = {}
        for name, reason in self.reasons.items():
            reasons.setdefault(reason, []).append(name)
        return [*self.remarks, *(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())]

    def further_lines(self) -> list[str]:
        """Return lines on the centre of the reference mass, and on unknowns that the data determine only together."""
        half = half_width(1.0, self.fit.dof)
        lines = []
        if self.model.mass is not None and self.model.mass.center is None:
            center, errors = self._pick(CENTER)
            cells = [
                f"{axis} not determined" if np.isnan(c) else f"{axis} {c:+.4f} ± {half * e:.4f}"
                for axis, c, e in zip("xyz", center, errors, strict=True)
            ]
            lines.append(f"centre of the mass in the frame of '{self.robot.tip}' [m]: {', '.join(cells)}")
        in_table = {f"{label} {joint}" for label in self._labels for joint in self.joint_names}
        lines += [
            f"no reading changes if these change together: {direction}"
            for direction in self.freedoms
            if not in_table.isdisjoint(direction.changes)
        ]
        return lines

    @property
    def motor_gains(self) -> list[float | None] | None:
        """Gains (n,) for `--motor-gains`, N m/A, with None for an undetermined gain; None if readings are torques."""
        return as_numbers(self.gain) if self.settings.get("effort_convention") == "motor_current" else None

    def _line(self) -> str:
        return f"{self.model.robot.name}, {len(self.joint_names)} joints, condition {self.condition_number:.3g}"

    def sections(self) -> dict:
        """Return the sections of the sensors, of their calibration and of the gravity moments that were estimated."""
        document: dict = {}
        columns = {label: self.per_joint(label) for label in (*DEFAULTS, "coulomb")}
        document["torque_sensors"] = {
            joint: torque_sensor_entry(
                {label: (value[j], error[j]) for label, (value, error) in columns.items()},
                self.fit.dof,
                {label: why for label in columns if (why := self.reasons.get(f"{label} {joint}"))},
            )
            for j, joint in enumerate(self.joint_names)
        }
        gravity = self.gravity
        if gravity is not None and self.model.known is None:
            document["gravity"] = gravity.section(self.model.robot)
        about: dict = {"nullity": self.nullity, "freedoms": [direction.changes for direction in self.freedoms]}
        if self.motor_gains is not None:
            about["motor_gains"] = self.motor_gains
        about["left_out"] = dict(zip(self.joint_names, self.fit.left_out.tolist(), strict=True))
        center = self.center
        if self.model.mass is not None and center is not None:
            about["reference_mass"] = {"mass": self.model.mass.mass, "center": as_numbers(center)}
        if gravity is not None:
            about["moment_covariance"] = gravity.covariance.tolist()
        document["torque_sensor_calibration"] = about
        return document

    def merged(self, content: dict) -> dict:
        """Return the content of the arm's file with the sensors added; the calibration keeps its source and remarks."""
        kept = ("source", "condition_number", DOF, "remarks", *([self.VALIDATION] if content[self.VALIDATION] else []))
        own = {"torque_sensors": content["torque_sensors"]}
        own["torque_sensor_calibration"] = content["torque_sensor_calibration"] | {
            key: content[key] for key in kept if key in content
        }
        return {**content, **(self.arm or {}), **own}

    @cached_property
    def _decided(self) -> NDArray:
        return np.array([name not in self.reasons for name in self.names])

    def _pick(self, names: tuple[str, ...] | list[str]) -> tuple[NDArray, NDArray]:
        where = [self.names.index(name) for name in names]
        return self.parameters[where], self.standard_errors[where]
