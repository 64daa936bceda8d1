"""Table of the kinds of identification, with the recordings, checks, settings, report and extra files of each.

`dynid identify`, the identification nodes, `dynid fleet` and the documentation are generated from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from dynid_ros.settings import Setting, made, settings_of

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel


class Role(NamedTuple):
    """Role of recordings in an identification, such as to be fitted or to be predicted.

    Attributes:
        name: keyword of the estimator's `fit`; "recordings" and "validate" are used by `run` itself.
        option: option of `dynid identify`, which may be repeated.
        parameter: parameter of the node.
        help: help of the option.
        required: whether the option must be given.
    """

    name: str
    option: str
    parameter: str
    help: str
    required: bool = False


class FileInput(NamedTuple):
    """File other than recordings that an estimator reads.

    Attributes:
        name: attribute of the estimator with the path, or None; it is also the name of the option of `dynid identify`.
        help: help of the option and of the node's parameter, which is called `<name>_file`.
    """

    name: str
    help: str


class Checks(NamedTuple):
    """Extent of the sanity check of recordings before a fit.

    Attributes:
        model: whether torques are compared with the robot model.
        motion: whether motion is required, as for fits of inertias.
        torque: whether torques are checked at all.
    """

    model: bool = True
    motion: bool = False
    torque: bool = True


CHECKED_AGAINST_MODEL = Checks()
FITTED = Role("recordings", "recording", "recording", "recording to fit: bag folder, .csv or .npz; repeatable", True)
VALIDATED = Role(
    "validate", "validate", "validation_recording", "recording to predict, which is not fitted; repeatable"
)
WITH_MASS = Role(
    "with_mass",
    "recording-with-mass",
    "recording_with_mass",
    "recording of the same motion with the reference mass attached; repeatable",
)
UNLOADED = Role(
    "unloaded", "unloaded", "unloaded_recording", "recording of the arm in motion without the load; repeatable"
)
RESULT_FILES = ("identified.yaml", "report.html")


@dataclass(frozen=True)
class Kind:
    """Kind of identification; the modules that it names are imported only when it is chosen.

    Attributes:
        purpose: help of the command; empty: an option of another command selects this kind.
        step: name of the fit in progress lines.
        estimator: "module:class"; its settings become options and parameters. It has `robot` and `fit`, and if the
            result alone cannot predict a recording, `validate`.
        report: "module:function" that writes the report from path, result, recordings by role and validations.
        settings_from: "module:class" whose settings replace those of the estimator, which then has `build`.
        roles: roles of its recordings.
        checks: sanity check of its recordings.
        extras: "module:function" that writes further files of a result into a folder; empty: no further files.
        files: inputs other than recordings.
        writes: names of the files that every run writes.
        all_or_nothing: whether a result with undetermined parameters cannot predict any recording.
    """

    purpose: str
    step: str
    estimator: str
    report: str
    settings_from: tuple[str, ...] = ()
    roles: tuple[Role, ...] = (FITTED, VALIDATED)
    checks: Checks = CHECKED_AGAINST_MODEL
    extras: str = ""
    files: tuple[FileInput, ...] = ()
    writes: tuple[str, ...] = RESULT_FILES
    all_or_nothing: bool = False

    def load(self, attribute: str) -> Any:
        """Import the class or function that `estimator`, `report` or `extras` names."""
        return _imported(getattr(self, attribute))

    def settings(self) -> tuple[Setting, ...]:
        """Return the settings that commands and nodes offer."""
        owners = map(_imported, self.settings_from) if self.settings_from else (self.load("estimator"),)
        return tuple(setting for owner in owners for setting in settings_of(owner))

    def build(self, robot: RobotModel | None, values: Mapping[str, Any], **inputs: Any) -> Any:
        """Return the estimator for a robot, with values of its settings by name, and with further attributes."""
        estimator = self.load("estimator")
        if hasattr(estimator, "build"):
            return estimator.build(robot, values, **inputs)
        return made(estimator, values, robot, **inputs)


def _imported(name: str) -> Any:
    """Import the object of a name "module:object"."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


KINDS = {
    "gravity": Kind(
        "gravity parameters, torque offsets and Coulomb friction",
        "identifying gravity",
        "dynid_ros.identification.gravity.gravity_identification:GravityIdentification",
        "dynid_ros.report.gravity:write_result_report",
    ),
    "links": Kind(
        "masses, mass moments and inertias of all links, friction, rotor inertias",
        "identifying links and friction",
        "dynid_ros.identification.links.link_identification:LinkIdentification",
        "dynid_ros.report.links:write_result_report",
        checks=Checks(motion=True),
        extras="dynid_ros.jobs.run:write_urdf",
        writes=(*RESULT_FILES, "identified.urdf"),
        all_or_nothing=True,
    ),
    "load": Kind(
        "mass, centre of mass and inertia of a payload",
        "identifying the load",
        "dynid_ros.jobs.load:LoadRun",
        "dynid_ros.report.load:write_result_report",
        settings_from=("dynid_ros.jobs.load:LoadSettings",),
        roles=(FITTED, UNLOADED, VALIDATED),
        extras="dynid_ros.jobs.load:write_driver_settings",
        files=(
            FileInput("model", "identified.yaml of the links of the arm without the load"),
            FileInput("tare", "identified.yaml of a load that is part of this one and is subtracted"),
        ),
    ),
    "flexible": Kind(
        "springs, motor inertias and friction of flexible joints, and their links",
        "identifying springs, motors and links",
        "dynid_ros.jobs.flexible_joints:FlexibleRun",
        "dynid_ros.report.flexible_joints:write_result_report",
        settings_from=(
            "dynid_ros.jobs.flexible_joints:FlexibleSettings",
            "dynid_ros.identification.flexible.flexible_identification:FlexibleJointIdentification",
        ),
        checks=Checks(model=False, motion=True),
    ),
    "torsion": Kind(
        "",
        "identifying torsion",
        "dynid_ros.jobs.flexible_joints:TorsionRun",
        "dynid_ros.report.torsion:write_result_report",
        checks=Checks(model=False, motion=True),
    ),
    "torque-sensors": Kind(
        "gains and offsets of the joints' torque sensors, by gravity",
        "calibrating",
        "dynid_ros.nodes.torque_sensor_calibration:CalibrationRun",
        "dynid_ros.report.torque_sensors:write_result_report",
        settings_from=("dynid_ros.identification.torque_sensors.torque_sensor_calibration:TorqueSensorCalibration",),
        roles=(FITTED._replace(required=False), WITH_MASS, VALIDATED),
        checks=Checks(model=False),
        files=(FileInput("model", "identified.yaml with known gravity parameters, for which no mass is needed"),),
    ),
    "servos": Kind(
        "delay, gain, inertia and friction of position servos without torque sensing",
        "identifying servos",
        "dynid_ros.identification.servo.servo_identification:ServoIdentification",
        "dynid_ros.report.servos:write_result_report",
        roles=(FITTED, WITH_MASS, VALIDATED),
        checks=Checks(torque=False),
    ),
}
"""Kinds of identification by name, as in `dynid identify <name>`; "torsion" is an option of "flexible"."""
