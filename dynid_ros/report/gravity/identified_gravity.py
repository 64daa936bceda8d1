"""The gravity model that an `identified.yaml` holds, with NaN where it holds no number."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.estimation.estimate import freedom_of, half_width
from dynid_ros.identification.identified_file import DIRECTIONS, check_same_robot, file_of, is_number, mapping
from dynid_ros.identification.samples import Samples
from dynid_ros.identification.validation import Validation
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel


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

    def predict(self, samples: Samples) -> NDArray:
        """(M, n) what the sensors read, with friction where its direction is known."""
        friction = np.nan_to_num(self.coulomb) * samples.direction + np.nan_to_num(self.viscous) * samples.velocity
        return self.sensor_torque(samples.position) + friction

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


def read_validations(document: dict, joint_names: Sequence[str]) -> list[Validation]:
    """The entries of `validation`; NaN for a joint without a number.

    Raises:
        IdentifiedFileError: an entry is malformed.

    """
    file, entries = file_of(document), document.get("validation") or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise IdentifiedFileError(f"{file}: 'validation' must be a list of mappings; run the identification again")
    found = []
    for entry in entries:
        name = str(entry.get("recording", ""))
        columns = [
            np.array(
                [
                    _number(file, mapping(entry, label, f"{file}: validation"), joint, f"{label} on {name}")
                    for joint in joint_names
                ]
            )
            for label in ("rms", "relative_rms", "r2")
        ]
        found.append(Validation(name, tuple(joint_names), *columns))
    return found


def _number(file: str, entry: dict, label: str, where: str) -> float:
    """NaN for what is not known, for which an infinite number counts too."""
    value = entry.get(label)
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise IdentifiedFileError(f"{file}: {label}, {where}, is {value!r}, expected a number or null")
    return float(value) if is_number(value) else math.nan
