"""Section `torque_sensors` of `identified.yaml`, and calibrated sensors: from what they read to torques and angles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.identified_file import DOF, as_number, check_same_robot, file_of, is_number
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording

DEFAULTS = {"gain": 1.0, "offset": 0.0, "position_gain": 1.0, "position_offset": 0.0}
"""What a sensor is taken to have where its calibration determined nothing: what its driver believes."""


def torque_sensor_entry(estimates: Mapping[str, tuple[float, float]], dof: float, undecided: Mapping[str, str]) -> dict:
    """Entry of a joint.

    Args:
        estimates: value and standard error by label, those of `DEFAULTS` and "coulomb"; NaN where not determined.
        dof: degrees of freedom of the errors.
        undecided: why a value is not determined, by label.
    """
    return {
        **{label: as_number(value) for label, (value, _) in estimates.items()},
        "std": {label: as_number(error) for label, (_, error) in estimates.items()},
        DOF: dof,
        "undecided": dict(undecided),
    }


@dataclass(frozen=True, eq=False)
class TorqueSensors:
    """Sensors of n joints: torque = gain (reading − offset), angle = position gain · reading + position offset.

    Attributes:
        joint_names: n.
        gain: (n,) N m per unit of the reading, N for prismatic joints.
        offset: (n,) in units of the reading.
        position_gain: (n,).
        position_offset: (n,) rad or m.
        assumed: (n,) by joint, what was not determined and has the value of `DEFAULTS`.
    """

    joint_names: tuple[str, ...]
    gain: NDArray
    offset: NDArray
    position_gain: NDArray
    position_offset: NDArray
    assumed: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, joint_names: tuple[str, ...], values: Mapping[str, NDArray]) -> TorqueSensors:
        """From (n,) values by label, NaN where they are not known."""
        given = {label: np.asarray(values[label], dtype=float) for label in DEFAULTS}
        assumed = tuple(
            tuple(label for label in DEFAULTS if np.isnan(given[label][j])) for j in range(len(joint_names))
        )
        known = {label: np.where(np.isnan(given[label]), default, given[label]) for label, default in DEFAULTS.items()}
        return cls(tuple(joint_names), **known, assumed=assumed)

    @classmethod
    def ideal(cls, joint_names: tuple[str, ...]) -> TorqueSensors:
        """Sensors that read the torque and the angle."""
        return cls.of(joint_names, {label: np.full(len(joint_names), value) for label, value in DEFAULTS.items()})

    @classmethod
    def of_document(cls, document: dict, robot: RobotModel) -> TorqueSensors:
        """Section `torque_sensors` of an `identified.yaml` of this robot.

        Raises:
            IdentifiedFileError: of another robot, without the section, or malformed.
        """
        check_same_robot(document, robot)
        file, section = file_of(document), document.get("torque_sensors")
        if not isinstance(section, dict):
            raise IdentifiedFileError(f"{file} has no section 'torque_sensors'; run `dynid identify torque-sensors`")
        values = {label: np.full(robot.n_joints, np.nan) for label in DEFAULTS}
        for j, joint in enumerate(robot.joint_names):
            entry = section.get(joint)
            if not isinstance(entry, dict):
                raise IdentifiedFileError(f"{file}: torque sensor of joint '{joint}' is missing; calibrate again")
            for label, known in values.items():
                value = entry.get(label)
                if value is None:
                    continue
                if not is_number(value) or (label.endswith("gain") and value == 0):
                    raise IdentifiedFileError(
                        f"{file}: {label} of the torque sensor of joint '{joint}' is {value!r}; expected "
                        f"a number{' other than 0' if label.endswith('gain') else ''}"
                    )
                known[j] = value
        return cls.of(robot.joint_names, values)

    @staticmethod
    def errors_of(document: dict, robot: RobotModel) -> NDArray:
        """(n, 2) standard errors of gain and offset in the section; zero where it has none."""
        entries = [document["torque_sensors"].get(joint, {}).get("std") for joint in robot.joint_names]
        values = [
            [entry.get(label) if isinstance(entry, dict) else None for label in ("gain", "offset")] for entry in entries
        ]
        return np.array([[value if is_number(value) else 0.0 for value in row] for row in values])

    def torque(self, readings: NDArray) -> NDArray:
        """Torques (N, n) of readings (N, n)."""
        return self.gain * (readings - self.offset)

    def correct(self, recording: Recording) -> Recording:
        """The recording with true torques, positions and velocities, joints in the order of the sensors.

        A sensor keeps its own gain or offset where the calibration did not determine it, see `assumed`. The second
        encoder, wrenches and poses stay as they are.

        Raises:
            RecordingError: a joint is not in the recording.
        """
        chosen = recording.select(self.joint_names)
        return replace(
            chosen,
            position=self.position_gain * chosen.position + self.position_offset,
            velocity=self.position_gain * chosen.velocity,
            torque=self.torque(chosen.torque),
        )
