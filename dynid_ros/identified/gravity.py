"""Gravity parameters that are known, and how well: what torque sensors are calibrated against without a mass."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.estimation.estimate import freedom_of, half_width
from dynid_ros.identified.identified_file import (
    DIRECTIONS,
    LARGEST_MOMENT,
    _is_numbers,
    check_same_robot,
    file_of,
    is_number,
    mapping,
)
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel


def gravity_moments(document: dict, gravity: GravityModel) -> NDArray:
    """(k,) moments for `gravity.compile`, in kg m; zero for joints whose gravity torque is zero in every pose.

    Raises:
        IdentifiedFileError: the section is missing or malformed, or a joint was not observable.

    """
    section = document.get("gravity")
    if not isinstance(section, dict):
        raise IdentifiedFileError(f"{file_of(document)} has no section 'gravity'; run the gravity identification")
    moments = np.zeros(len(gravity.names))
    free = gravity.unobservable_axes()
    for i, joint in enumerate(gravity.robot.joint_names):
        entry = section.get(joint)
        if not isinstance(entry, dict):
            raise IdentifiedFileError(
                f"{file_of(document)}: gravity of joint '{joint}' is missing; run the gravity identification"
            )
        if free[i]:
            continue
        if entry.get("observable") is not True:
            raise IdentifiedFileError(
                f"{file_of(document)}: joint '{joint}' was not observable ({entry.get('reason', 'no reason given')}); "
                "no torque can be promised, identify again with better poses"
            )
        for column in range(len(moments))[gravity.columns(i)]:
            label = gravity.names[column].split()[0]
            if not _is_numbers([entry.get(label)], 1) or abs(entry[label]) > LARGEST_MOMENT:
                raise IdentifiedFileError(
                    f"{file_of(document)}: {label} of joint '{joint}' is {entry.get(label)!r}, expected a number "
                    f"up to {LARGEST_MOMENT:g}"
                )
            moments[column] = entry[label]
    return moments


# The gravity model that an `identified.yaml` holds, with NaN where it holds no number.


class IdentifiedGravity:
    """Moments, torque offsets and friction of a robot, and the torque that they predict.

    Attributes:
        gravity: what the moments belong to.
        moments, std: (k,) in the order of `gravity.names`, kg m (prismatic joints: kg).
        offset, coulomb, viscous: (n,) N m, N m, N m s/rad.
        reasons: why a joint's moment is not known, by joint; joints that gravity never loads are not among them.
        torque_free: names of those that gravity never loads.
        condition_number: of the fit.

    Raises:
        IdentifiedFileError: the document has no gravity section, is malformed or of another robot.

    """

    def __init__(self, robot: RobotModel, document: dict):
        self._file = file_of(document)
        section = document.get("gravity")
        if not isinstance(section, dict):
            raise IdentifiedFileError(f"{self._file} has no section 'gravity'; run the gravity identification")
        check_same_robot(document, robot)
        self.robot = robot
        self.gravity = GravityModel(robot)
        self.moments = np.full(len(self.gravity.names), np.nan)
        self.std, self._freedom = self.moments.copy(), np.full(len(self.gravity.names), np.inf)
        self.reasons: dict[str, str] = {}
        free = self.gravity.unobservable_axes()
        self.torque_free = [name for name, is_free in zip(robot.joint_names, free, strict=True) if is_free]
        for joint in robot.joint_names:
            entry = section.get(joint)
            if not isinstance(entry, dict):
                raise IdentifiedFileError(
                    f"{self._file}: gravity of joint '{joint}' is missing; run the gravity identification"
                )
            self._read(document, joint, entry)
        friction = mapping(document, "friction", self._file)
        entries = {joint: mapping(friction, joint, f"{self._file}: friction") for joint in robot.joint_names}
        self.offset, self.coulomb, self.viscous = (
            np.array([self._number(entry, label, f"friction of joint '{joint}'") for joint, entry in entries.items()])
            for label in ("offset", "coulomb", "viscous")
        )
        self._moving = np.array(
            [
                [self._number(entry, label, f"friction of joint '{joint}'") for label in DIRECTIONS]
                for joint, entry in entries.items()
            ]
        )
        self.condition_number = self._number(document, "condition_number", "the whole fit")

    @property
    def half_widths(self) -> NDArray:
        """(k,) of the 95 % intervals."""
        return half_width(self.std, self._freedom)

    def sensor_torque(self, q: NDArray) -> NDArray:
        """(N, n) what the sensors read without friction, N m; NaN where it rests on a moment that is not known."""
        regressor = self.gravity.regressor(q)
        unknown = np.isnan(self.moments)
        torque = regressor @ np.nan_to_num(self.moments) + np.nan_to_num(self.offset)
        torque[np.any(np.abs(regressor[:, :, unknown]) > 1e-9, axis=2)] = np.nan
        return torque

    @property
    def moving(self) -> NDArray:
        """(n, 2) torque besides gravity of each joint that moves in its positive, and negative, direction."""
        told = self._moving
        both = np.nan_to_num(self.offset)[:, None] + self.coulomb[:, None] * [1.0, -1.0]
        return np.where(np.isnan(told), both, told)

    def predict(self, position: NDArray, velocity: NDArray, direction: NDArray) -> NDArray:
        """(M, n) what the sensors read, friction included; direction (M, n) is -1, 1, or 0 where it is not known."""
        friction = np.nan_to_num(self.coulomb) * direction + np.nan_to_num(self.viscous) * velocity
        return self.sensor_torque(position) + friction

    def _number(self, entry: dict, label: str, where: str) -> float:
        return _number(self._file, entry, label, where)

    def _read(self, document: dict, joint: str, entry: dict) -> None:
        if joint in self.torque_free:
            return
        if entry.get("observable") is not True:
            self.reasons[joint] = str(entry.get("reason", "no reason given"))
            return
        std = mapping(entry, "std", f"{self._file}: gravity of joint '{joint}'")
        for column, name in enumerate(self.gravity.names):
            label, _, owner = name.partition(" ")
            if owner == joint:
                self.moments[column] = self._number(entry, label, f"gravity of joint '{joint}'")
                self._freedom[column] = freedom_of(document, entry, label)
                self.std[column] = self._number(std, label, f"standard error of joint '{joint}'")
                if np.isnan(self.moments[column]):
                    raise IdentifiedFileError(f"{self._file}: {label} of joint '{joint}' is missing, expected a number")


def _number(file: str, entry: dict, label: str, where: str) -> float:
    """NaN for what is not known, for which an infinite number counts too."""
    value = entry.get(label)
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise IdentifiedFileError(f"{file}: {label}, {where}, is {value!r}, expected a number or null")
    return float(value) if is_number(value) else math.nan


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
