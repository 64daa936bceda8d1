"""Gravity parameters that are known, and how well: what torque sensors are calibrated against without a mass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identification.identified_file import check_same_robot, file_of, gravity_moments, is_number
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel


@dataclass(frozen=True, eq=False)
class KnownGravity:
    """Moments of a `GravityModel` and their covariance.

    Attributes:
        moments: (k,) kg m, kg for prismatic joints.
        covariance: (k, k); zero for numbers that are exact.
        source: where they come from, for messages.

    """

    moments: NDArray
    covariance: NDArray
    source: str = "given moments"

    @classmethod
    def of_urdf(cls, robot: RobotModel) -> KnownGravity:
        """The masses and centres of the robot's URDF, taken as exact.

        Raises:
            IdentifiedFileError: the robot has no masses.

        """
        moments = GravityModel(robot).project(robot.parameters)
        if not moments.any():
            raise IdentifiedFileError(
                f"robot '{robot.name}' has no masses to be loaded by; give an identified.yaml with section gravity"
            )
        return cls(moments, np.zeros((len(moments), len(moments))), f"URDF of '{robot.name}'")

    @classmethod
    def of_document(cls, document: dict, robot: RobotModel) -> KnownGravity:
        """Section `gravity` of an `identified.yaml` of this robot, with its standard errors.

        Only one that a calibration of torque sensors wrote knows how the moments are correlated.

        Raises:
            IdentifiedFileError: of another robot, without the section, or with a joint that was not observable.

        """
        check_same_robot(document, robot)
        gravity = GravityModel(robot)
        moments = gravity_moments(document, gravity)
        std = np.zeros(len(moments))
        for i, joint in enumerate(robot.joint_names):
            entry = document["gravity"][joint]
            if entry.get("observable") is not True:
                continue
            errors = entry.get("std")
            for column in range(len(moments))[gravity.columns(i)]:
                label = gravity.names[column].split()[0]
                value = errors.get(label) if isinstance(errors, dict) else None
                if not is_number(value) or value < 0:
                    raise IdentifiedFileError(
                        f"{file_of(document)}: std of {label} of joint '{joint}' is {value!r}, expected a number; "
                        "without it no uncertainty of the sensors can be given: run the gravity identification again"
                    )
                std[column] = value
        return cls(moments, _covariance(document, std), file_of(document))

    def section(self, robot: RobotModel) -> dict:
        """Section `gravity` of `identified.yaml`."""
        gravity, std = GravityModel(robot), np.sqrt(np.diag(self.covariance))
        free = gravity.unobservable_axes()
        section = {}
        for i, joint in enumerate(robot.joint_names):
            columns = range(len(self.moments))[gravity.columns(i)]
            labels = [gravity.names[c].split()[0] for c in columns]
            entry: dict = {
                label: None if free[i] else float(self.moments[c]) for label, c in zip(labels, columns, strict=True)
            }
            entry["std"] = {label: None if free[i] else float(std[c]) for label, c in zip(labels, columns, strict=True)}
            entry["observable"] = not free[i]
            if free[i]:
                entry |= {"torque_free": True, "reason": "gravity never loads this joint"}
            section[joint] = entry
        return section


def _covariance(document: dict, std: NDArray) -> NDArray:
    """(k, k) of a calibration with a mass, in which the moments share the scale; else from standard errors alone."""
    about = document.get("torque_sensor_calibration")
    values = about.get("moment_covariance") if isinstance(about, dict) else None
    if values is None:
        return np.diag(std**2)
    try:
        covariance = np.array(values, dtype=float)
    except (TypeError, ValueError):
        covariance = np.empty(0)
    if covariance.shape != (len(std), len(std)) or not np.allclose(np.diag(covariance), std**2, rtol=1e-6):
        raise IdentifiedFileError(
            f"{file_of(document)}: moment_covariance does not fit the section gravity; calibrate with the mass again"
        )
    return covariance
