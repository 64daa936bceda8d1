"""Section `gravity` of `identified.yaml`: gravity moments of each joint, and how well they are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.identified_file import (
    DOF,
    LARGEST_MOMENT,
    as_number,
    check_same_robot,
    dof_of,
    file_of,
    is_number,
    mapping,
    read_number,
    section_of,
)
from dynid_ros.identified.joint_friction import DIRECTIONS, friction_values
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.robot import RobotModel


def gravity_section(
    gravity: GravityModel,
    moments: NDArray,
    errors: NDArray,
    reasons: Mapping[str, str],
    dof: NDArray | None = None,
) -> dict:
    """The section.

    Args:
        gravity: what the moments belong to.
        moments: (k,) in the order of `gravity.names`, kg m (prismatic joints: kg); NaN where not known.
        errors: (k,) their standard errors.
        reasons: by joint, why its moment is not known; joints that gravity never loads need no reason.
        dof: (k,) degrees of freedom of the errors; None: not known.
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
    """(k,) moments for `gravity.compile`, in kg m; zero for joints whose gravity torque is zero in every pose.

    Raises:
        IdentifiedFileError: the section is missing or malformed, or a joint was not observable.
    """
    moments, free = np.zeros(len(gravity.names)), gravity.unobservable_axes()
    section = section_of(document, "gravity", "gravity")
    for i, joint in enumerate(gravity.robot.joint_names):
        entry = _entry(document, section, joint)
        if free[i]:
            continue
        if entry.get("observable") is not True:
            raise IdentifiedFileError(
                f"{file_of(document)}: joint '{joint}' was not observable ({entry.get('reason', 'no reason given')}); "
                "no torque can be promised, identify again with better poses"
            )
        for label, column in _columns(gravity, i).items():
            value = entry.get(label)
            if not is_number(value) or abs(value) > LARGEST_MOMENT:
                raise IdentifiedFileError(
                    f"{file_of(document)}: {label} of joint '{joint}' is {value!r}, expected a number "
                    f"up to {LARGEST_MOMENT:g}"
                )
            moments[column] = value
    return moments


def _entry(document: dict, section: dict, joint: str) -> dict:
    entry = section.get(joint)
    if not isinstance(entry, dict):
        raise IdentifiedFileError(
            f"{file_of(document)}: gravity of joint '{joint}' is missing; run the gravity identification"
        )
    return entry


def _columns(gravity: GravityModel, joint: int) -> dict[str, int]:
    """Where the moments of a joint are among all, by their labels in the section."""
    columns, own = range(len(gravity.names))[gravity.columns(joint)], gravity.robot.joint_names[joint]
    return {gravity.names[column].removesuffix(f" {own}"): column for column in columns}


class IdentifiedGravity:
    """Moments, torque offsets and friction of a robot, and the torque that they predict; NaN where the file has none.

    Attributes:
        gravity: what the moments belong to.
        moments, std: (k,) in the order of `gravity.names`, kg m (prismatic joints: kg).
        dof: (k,) degrees of freedom of `std`.
        offset, coulomb, viscous: (n,) N m, N m, N m s/rad.
        reasons: why a joint's moment is not known, by joint; joints that gravity never loads are not among them.
        torque_free: names of those that gravity never loads.
        condition_number: of the fit.

    Raises:
        IdentifiedFileError: the document has no gravity section, is malformed or of another robot.
    """

    def __init__(self, robot: RobotModel, document: dict):
        section = section_of(document, "gravity", "gravity")
        check_same_robot(document, robot)
        self.robot = robot
        self.gravity = GravityModel(robot)
        self.moments = np.full(len(self.gravity.names), np.nan)
        self.std, self.dof = self.moments.copy(), np.full(len(self.gravity.names), np.inf)
        self.reasons: dict[str, str] = {}
        free = self.gravity.unobservable_axes()
        self.torque_free = [name for name, is_free in zip(robot.joint_names, free, strict=True) if is_free]
        for i, joint in enumerate(robot.joint_names):
            self._read(document, i, _entry(document, section, joint))
        friction = friction_values(document, robot.joint_names, ("offset", "coulomb", "viscous", *DIRECTIONS))
        self.offset, self.coulomb, self.viscous, *moving = friction
        self._moving = np.stack(moving, axis=1)
        self.condition_number = read_number(document, document, "condition_number", "the whole fit")

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
        both = np.nan_to_num(self.offset)[:, None] + self.coulomb[:, None] * [1.0, -1.0]
        return np.where(np.isnan(self._moving), both, self._moving)

    def predict(self, position: NDArray, velocity: NDArray, direction: NDArray) -> NDArray:
        """(M, n) what the sensors read, friction included; direction (M, n) is -1, 1, or 0 where it is not known."""
        friction = np.nan_to_num(self.coulomb) * direction + np.nan_to_num(self.viscous) * velocity
        return self.sensor_torque(position) + friction

    def _read(self, document: dict, i: int, entry: dict) -> None:
        joint = self.robot.joint_names[i]
        if joint in self.torque_free:
            return
        if entry.get("observable") is not True:
            self.reasons[joint] = str(entry.get("reason", "no reason given"))
            return
        std = mapping(entry, "std", f"{file_of(document)}: gravity of joint '{joint}'")
        for label, column in _columns(self.gravity, i).items():
            self.moments[column] = read_number(document, entry, label, f"gravity of joint '{joint}'")
            self.dof[column] = dof_of(document, entry, label)
            self.std[column] = read_number(document, std, label, f"standard error of joint '{joint}'")
            if np.isnan(self.moments[column]):
                raise IdentifiedFileError(
                    f"{file_of(document)}: {label} of joint '{joint}' is missing, expected a number"
                )


@dataclass(frozen=True, eq=False)
class KnownGravity:
    """Moments of a `GravityModel` and their covariance: what torque sensors are calibrated against without a mass.

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
            for label, column in _columns(gravity, i).items():
                value = errors.get(label) if isinstance(errors, dict) else None
                if not is_number(value) or value < 0:
                    raise IdentifiedFileError(
                        f"{file_of(document)}: std of {label} of joint '{joint}' is {value!r}, expected a number; "
                        "without it no uncertainty of the sensors can be given: run the gravity identification again"
                    )
                std[column] = value
        return cls(moments, _covariance(document, std), file_of(document))

    def section(self, robot: RobotModel) -> dict:
        """Section `gravity` of `identified.yaml`; null for joints that gravity never loads."""
        gravity = GravityModel(robot)
        moments, std = self.moments.astype(float), np.sqrt(np.diag(self.covariance))
        for i, free in enumerate(gravity.unobservable_axes()):
            if free:
                moments[gravity.columns(i)] = std[gravity.columns(i)] = np.nan
        return gravity_section(gravity, moments, std, {})


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
