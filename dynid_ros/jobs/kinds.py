"""Table of the kinds of identification: the recordings, checks, settings, report and extra files of each.

`dynid identify`, the identification nodes, `dynid fleet` and the documentation are made from it.
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
    """Recordings that an identification uses in one way.

    Attributes:
        name: keyword of the estimator's `fit`; "recordings" and "validate" are known to `run` itself.
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
    """File other than recordings that the estimator reads; its field `name` holds the path, or None.

    Attributes:
        name: field of the estimator, and option of `dynid identify`.
        help: help of the option and of the node's parameter, which is called `<name>_file`.
    """

    name: str
    help: str


class Checks(NamedTuple):
    """Part of the sanity check that recordings of a kind go through before anything is fitted.

    Attributes:
        model: compare torques with the robot model.
        motion: require motion, as fits of inertia need it.
        torque: look at torques at all.
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
    """One kind of identification; modules that it names are imported when it is chosen.

    Attributes:
        purpose: help of the command; empty: the kind is reached by an option of another command.
        step: name of the fit in progress lines.
        estimator: "module:class"; its settings become options and parameters. It has `robot`, `fit` and, where the
            result alone cannot predict a recording, `validate`.
        settings_from: "module:class" whose settings are offered, in place of the estimator's, which then has `build`.
        report: "module:function" that writes the page from path, result, recordings by role and validations.
        roles: recordings that it uses.
        checks: sanity check of its recordings.
        extras: "module:function" that writes further files of a result into a folder; empty: no further files.
        files: names of the inputs other than recordings.
        writes: names of the files that every run writes.
        all_or_nothing: whether a result with undetermined parameters predicts no recording.
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
        """Return the estimator with values of its settings, by name, and with further inputs."""
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
"""Kinds by the name that `dynid identify` has for them."""
