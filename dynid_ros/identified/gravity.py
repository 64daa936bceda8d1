"""Section `gravity` of `identified.yaml`: gravity moments of each joint and their standard errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.identified_file import DOF, Section, as_number, check_same_robot, dof_of, file_of, is_number
from dynid_ros.identified.joint_friction import DIRECTIONS, friction_values
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.robot import RobotModel

MAX_MOMENT = 1e6
"""Largest plausible gravity moment, kg m or kg."""
NULL_COLUMN = 1e-9
"""Largest entry of the regressor with which a torque does not depend on a moment: rounding errors."""


def gravity_section(
    gravity: GravityModel, moments: NDArray, errors: NDArray, reasons: Mapping[str, str], dof: NDArray | None = None
) -> dict:
    """Return the section `gravity`.

    Args:
        gravity: gravity model of the robot.
        moments: (k,) moments in the order of `gravity.names`, kg m (prismatic joints: kg); NaN where unknown.
        errors: (k,) standard errors of the moments.
        reasons: reason for each unknown moment, by joint; joints that gravity never loads need no reason.
        dof: (k,) degrees of freedom of the errors; None: unknown.
    """
    section = {}
    for i, (joint, free) in enumerate(zip(gravity.robot.joint_names, gravity.unobservable_axes(), strict=True)):
        columns = _columns(gravity, i)
        entry: dict = {label: as_number(moments[c]) for label, c in columns.items()}
        for key, values in (("std", errors), (DOF, dof)):
            if values is not None:
                entry[key] = {label: as_number(values[c]) for label, c in columns.items()}
        reason = reasons.get(joint, "gravity never loads this joint" if free else "")
        entry["observable"] = not reason
        if reason:
            entry |= {"torque_free": bool(free), "reason": reason}
        section[joint] = entry
    return section


def gravity_moments(document: dict, gravity: GravityModel) -> NDArray:
    """Return the moments (k,) for `gravity.compile`, kg m; zero for joints that gravity never loads."""
    moments = np.zeros(len(gravity.names))
    torque_free = gravity.unobservable_axes()
    section = Section.required(document, "gravity", "gravity")
    for i, joint in enumerate(gravity.robot.joint_names):
        entry = section.joint(joint)
        if torque_free[i]:
            continue
        if entry.get("observable") is not True:
            raise IdentifiedFileError(
                f"{file_of(document)}: joint '{joint}' was not observable ({entry.get('reason', 'no reason given')}), "
                "so its torque is unknown; identify again with better poses"
            )
        for label, column in _columns(gravity, i).items():
            moments[column] = entry.number(label)
            if abs(moments[column]) > MAX_MOMENT:
                raise entry.error(f"{label} is {moments[column]:g}, expected a number up to {MAX_MOMENT:g}")
    return moments


def _columns(gravity: GravityModel, joint: int) -> dict[str, int]:
    """Return the columns of a joint's moments by their labels in the section."""
    joint_name = gravity.robot.joint_names[joint]
    columns = range(len(gravity.names))[gravity.columns(joint)]
    return {gravity.names[column].removesuffix(f" {joint_name}"): column for column in columns}


class IdentifiedGravity:
    """Moments, torque offsets and friction in a file, with the torque that they predict; NaN where unknown.

    Attributes:
        robot: the arm.
        gravity: gravity model of the robot.
        moments, std: (k,) moments and their standard errors in the order of `gravity.names`, kg m (prismatic: kg).
        dof: (k,) degrees of freedom of `std`.
        offset, coulomb, viscous: (n,) N m, N m and N m s/rad (prismatic: N, N and N s/m).
        reasons: reason for each unknown moment, by joint; joints that gravity never loads are left out.
        torque_free: names of the joints that gravity never loads.
        condition_number: condition number of the fit.
    """

    def __init__(self, robot: RobotModel, document: dict):
        section = Section.required(document, "gravity", "gravity")
        check_same_robot(document, robot)
        self.robot = robot
        self.gravity = GravityModel(robot)
        self.moments = np.full(len(self.gravity.names), np.nan)
        self.std = self.moments.copy()
        self.dof = np.full(len(self.gravity.names), np.inf)
        self.reasons: dict[str, str] = {}
        free = self.gravity.unobservable_axes()
        self.torque_free = [name for name, is_free in zip(robot.joint_names, free, strict=True) if is_free]
        for i, joint in enumerate(robot.joint_names):
            self._read(document, i, section.joint(joint))
        friction = friction_values(document, robot.joint_names, ("offset", "coulomb", "viscous", *DIRECTIONS))
        self.offset, self.coulomb, self.viscous, *moving = friction
        self._moving = np.stack(moving, axis=1)
        self.condition_number = Section(document, file_of(document)).number_or_nan("condition_number")

    def sensor_torque(self, q: NDArray) -> NDArray:
        """Return gravity torque plus offset (N, n), N m; NaN where it depends on an unknown moment."""
        regressor = self.gravity.regressor(q)
        unknown = np.isnan(self.moments)
        torque = regressor @ np.nan_to_num(self.moments) + np.nan_to_num(self.offset)
        torque[np.any(np.abs(regressor[:, :, unknown]) > NULL_COLUMN, axis=2)] = np.nan
        return torque

    @property
    def moving(self) -> NDArray:
        """Torque (n, 2) without gravity of each joint that moves slowly in its positive and its negative direction."""
        both = np.nan_to_num(self.offset)[:, None] + self.coulomb[:, None] * [1.0, -1.0]
        return np.where(np.isnan(self._moving), both, self._moving)

    def predict(self, position: NDArray, velocity: NDArray, direction: NDArray) -> NDArray:
        """Return torque with offset and friction (M, n); direction (M, n) is -1, 1, or 0 if it is unknown."""
        friction = np.nan_to_num(self.coulomb) * direction + np.nan_to_num(self.viscous) * velocity
        return self.sensor_torque(position) + friction

    def _read(self, document: dict, i: int, entry: Section) -> None:
        """Read the entry of joint i."""
        joint = self.robot.joint_names[i]
        if joint in self.torque_free:
            return
        if entry.get("observable") is not True:
            self.reasons[joint] = str(entry.get("reason", "no reason given"))
            return
        std = entry.child("std")
        for label, column in _columns(self.gravity, i).items():
            self.moments[column] = entry.number(label)
            self.dof[column] = dof_of(document, entry, label)
            self.std[column] = std.number_or_nan(label)


@dataclass(frozen=True, eq=False)
class KnownGravity:
    """Known moments of a `GravityModel`, by which torque sensors can be calibrated without a reference mass.

    Attributes:
        moments: (k,) moments, kg m, or kg for prismatic joints.
        covariance: (k, k) covariance of the moments; zero for exact numbers.
        source: origin of the moments, for messages.
    """

    moments: NDArray
    covariance: NDArray
    source: str = "given moments"

    @classmethod
    def of_urdf(cls, robot: RobotModel) -> KnownGravity:
        """Return the moments of the robot's URDF as exact numbers."""
        moments = GravityModel(robot).project(robot.parameters)
        if not moments.any():
            raise IdentifiedFileError(
                f"robot '{robot.name}' has no masses; give an identified.yaml with the section gravity"
            )
        return cls(moments, np.zeros((len(moments), len(moments))), f"URDF of '{robot.name}'")

    @classmethod
    def of_document(cls, document: dict, robot: RobotModel) -> KnownGravity:
        """Return the moments of an `identified.yaml` of this robot with their covariance.

        Only the file of a torque sensor calibration has correlations; moments of other files count as uncorrelated.
        """
        check_same_robot(document, robot)
        gravity = GravityModel(robot)
        moments = gravity_moments(document, gravity)
        std = np.zeros(len(moments))
        section = Section.required(document, "gravity", "gravity")
        for i, joint in enumerate(robot.joint_names):
            entry = section.joint(joint)
            if entry.get("observable") is not True:
                continue
            errors = entry.child("std")
            for label, column in _columns(gravity, i).items():
                if not is_number(errors.get(label)) or errors[label] < 0:
                    raise errors.error(f"{label} is {errors.get(label)!r}, expected a standard error of at least 0")
                std[column] = errors[label]
        return cls(moments, _covariance(document, std), file_of(document))

    def section(self, robot: RobotModel) -> dict:
        """Return the section `gravity` of `identified.yaml`; null for joints that gravity never loads."""
        gravity = GravityModel(robot)
        moments = self.moments.astype(float)
        std = np.sqrt(np.diag(self.covariance))
        for i, free in enumerate(gravity.unobservable_axes()):
            if free:
                moments[gravity.columns(i)] = std[gravity.columns(i)] = np.nan
        return gravity_section(gravity, moments, std, {})


def _covariance(document: dict, std: NDArray) -> NDArray:
    """Return the covariance (k, k) of the moments.

    Moments from a calibration with a mass are correlated, as they share its scale. Other files have only standard
    errors.
    """
    calibration = document.get("torque_sensor_calibration")
    values = calibration.get("moment_covariance") if isinstance(calibration, dict) else None
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
