"""Calibration of torque sensors: known gravity from files, and the estimator that `run` calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dynid_ros.identification import TorqueSensorCalibration
from dynid_ros.identification.torque_sensors.torque_sensor_result import TorqueSensorResult
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.identified.identified_file import check_same_robot, load_identified
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording


def read_gravity(path: Path, robot: RobotModel) -> tuple[KnownGravity, dict]:
    """Read gravity parameters of an `identified.yaml` with their uncertainty, and the content of the file.

    Raises:
        IdentifiedFileError: unreadable, of another robot, or without gravity parameters of all joints.
    """
    document = load_identified(path)
    check_same_robot(document, robot)
    return KnownGravity.of_document(document, robot), document


@dataclass
class CalibrationRun:
    """Estimator of torque-sensor gains and offsets for `run`.

    Attributes:
        robot: the arm.
        calibration: settings of the fit, with the gravity that is known.
        arm: content of the `identified.yaml` that the sensors are added to; None: the file holds the sensors alone.
    """

    robot: RobotModel
    calibration: TorqueSensorCalibration
    arm: dict | None = None

    @classmethod
    def build(
        cls,
        robot: RobotModel,
        values: Mapping[str, Any],
        *,
        model: Path | None = None,
        known_masses: bool = False,
        currents: bool = False,
    ) -> CalibrationRun:
        """Return the estimator with values of the settings of `TorqueSensorCalibration`.

        Args:
            robot: the arm.
            values: values by name.
            model: `identified.yaml` with known gravity parameters.
            known_masses: take the gravity parameters of the URDF as known.
            currents: the readings are motor currents, whose gains are the motors' torque constants at the joints.
        """
        gravity, arm = (None, None) if model is None else read_gravity(model, robot)
        if known_masses:
            gravity = KnownGravity.of_urdf(robot)
        return cls(robot, TorqueSensorCalibration(robot, gravity=gravity, currents=currents, **values), arm)

    def fit(self, recordings: Sequence[Recording], with_mass: Sequence[Recording] = ()) -> TorqueSensorResult:
        """Calibrate from dwells without and with the reference mass."""
        return replace(self.calibration.fit(recordings, with_mass), arm=self.arm)
