"""Section `torque_sensors` of `identified.yaml`: calibrated sensors, which convert readings to torques and angles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identified.identified_file import DOF, Section, as_number, check_same_robot, is_number
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording

DEFAULTS = {"gain": 1.0, "offset": 0.0, "position_gain": 1.0, "position_offset": 0.0}
"""Values of a sensor that its calibration did not determine, with which readings stay as the driver gives them."""


def torque_sensor_entry(estimates: Mapping[str, tuple[float, float]], dof: float, undecided: Mapping[str, str]) -> dict:
    """Return the entry of a joint.

    Args:
        estimates: value and standard error by label of `DEFAULTS`, and "coulomb"; NaN where undetermined.
        dof: degrees of freedom of the errors.
        undecided: reason for each undetermined value, by label.
    """
    return {
        **{label: as_number(value) for label, (value, _) in estimates.items()},
        "std": {label: as_number(error) for label, (_, error) in estimates.items()},
        DOF: dof,
        "undecided": dict(undecided),
    }


@dataclass(frozen=True, eq=False)
class TorqueSensors:
    """Sensors of n joints: torque = gain · (reading − offset), position = position gain · reading + position offset.

    Attributes:
        joint_names: names of the n joints.
        gain: (n,) gains, N m per unit of the reading, N for prismatic joints.
        offset: (n,) offsets, in units of the reading.
        position_gain: (n,) gains of the position sensors.
        position_offset: (n,) offsets of the position sensors, rad or m.
        assumed: labels, for each of n joints, of undetermined values, which are those of `DEFAULTS`.
    """

    joint_names: tuple[str, ...]
    gain: NDArray
    offset: NDArray
    position_gain: NDArray
    position_offset: NDArray
    assumed: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, joint_names: tuple[str, ...], values: Mapping[str, NDArray]) -> TorqueSensors:
        """Return the sensors from values (n,) by label, NaN where unknown."""
        estimates = {label: np.asarray(values[label], dtype=float) for label in DEFAULTS}
        assumed = tuple(
            tuple(label for label in DEFAULTS if np.isnan(estimates[label][j])) for j in range(len(joint_names))
        )
        filled = {
            label: np.where(np.isnan(estimates[label]), default, estimates[label])
            for label, default in DEFAULTS.items()
        }
        return cls(tuple(joint_names), **filled, assumed=assumed)

    @classmethod
    def ideal(cls, joint_names: tuple[str, ...]) -> TorqueSensors:
        """Return sensors that read the true torque and angle."""
        return cls.of(joint_names, {label: np.full(len(joint_names), value) for label, value in DEFAULTS.items()})

    @classmethod
    def of_document(cls, document: dict, robot: RobotModel) -> TorqueSensors:
        """Return the sensors in an `identified.yaml` of this robot."""
        check_same_robot(document, robot)
        section = Section.required(document, "torque_sensors", "torque-sensors")
        values = {label: np.full(robot.n_joints, np.nan) for label in DEFAULTS}
        for j, joint in enumerate(robot.joint_names):
            entry = section.joint(joint)
            for label, column in values.items():
                if entry.get(label) is None:
                    continue
                column[j] = entry.number(label)
                if label.endswith("gain") and column[j] == 0:
                    raise entry.error(f"{label} is 0, expected another number")
        return cls.of(robot.joint_names, values)

    @staticmethod
    def errors_of(document: dict, robot: RobotModel) -> NDArray:
        """Return the standard errors (n, 2) of gain and offset in a document; zero if it has none."""
        entries = [document["torque_sensors"].get(joint, {}).get("std") for joint in robot.joint_names]
        values = [
            [entry.get(label) if isinstance(entry, dict) else None for label in ("gain", "offset")] for entry in entries
        ]
        return np.array([[value if is_number(value) else 0.0 for value in row] for row in values])

    def torque(self, readings: NDArray) -> NDArray:
        """Return the torques (N, n) of readings (N, n)."""
        return self.gain * (readings - self.offset)

    def correct(self, recording: Recording) -> Recording:
        """Return the recording with true torques, positions and velocities; joints are in the order of the sensors.

        Gains and offsets that the calibration did not determine change nothing, see `assumed`. Link positions, wrenches
        and poses do not change.

        Raises:
            RecordingError: the recording lacks a joint.
        """
        chosen = recording.select(self.joint_names)
        return replace(
            chosen,
            position=self.position_gain * chosen.position + self.position_offset,
            velocity=self.position_gain * chosen.velocity,
            torque=self.torque(chosen.torque),
        )
