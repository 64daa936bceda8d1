"""The kinds of identification, and their runs: from recordings to `identified.yaml`, `report.html` and more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid_ros.errors import IdentificationError, ModelError
from dynid_ros.files import all_or_none, remove, writable_folder
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.identified.gravity_direction import GIVEN
from dynid_ros.identified.identified_file import check_same_robot, load_identified
from dynid_ros.identified.validation import Validation, validated
from dynid_ros.jobs.inputs import check_apart, checked
from dynid_ros.jobs.progress import progress
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.checks.finding import Finding

if TYPE_CHECKING:
    from dynid_ros.identification import ServoIdentification, TorqueSensorCalibration


RESULT_FILES = ("identified.yaml", "report.html")


@dataclass(frozen=True)
class Kind:
    """What can be identified.

    Attributes:
        purpose: for the help.
        doing: what runs while it is fitted.
        estimator: module and class, with a colon between; its settings are options and parameters. It has `robot` and
            `fit`; its result has `summary`, `document`, `save`, `validate` and `missing`.
        report: module and function that writes the page of path, result, recordings fitted, recordings not fitted and
            validations.
        motion: whether the fit needs motion, see `check`; what is validated on is checked too then, and not fitted.
        whole: whether a result with something missing predicts nothing.
        command: module with options of its own; empty: those of all, and the estimator's settings.
        writes: names of the files that it writes.
    """

    purpose: str
    doing: str = ""
    estimator: str = ""
    report: str = ""
    motion: bool = False
    whole: bool = False
    command: str = ""
    writes: tuple[str, ...] = RESULT_FILES

    def load(self, what: str) -> Any:
        """The estimator's class or the report's function."""
        module, _, name = getattr(self, what).partition(":")
        return getattr(import_module(module), name)


KINDS = {
    "gravity": Kind(
        "gravity parameters, torque offsets and Coulomb friction",
        "identifying gravity",
        "dynid_ros.identification.gravity.gravity_identification:GravityIdentification",
        "dynid_ros.report.gravity:write_result_report",
    ),
    "links": Kind(
        "masses, mass moments and inertias of all links, friction, rotors",
        "identifying links and friction",
        "dynid_ros.identification.links.link_identification:LinkIdentification",
        "dynid_ros.report.links:write_result_report",
        motion=True,
        whole=True,
        writes=(*RESULT_FILES, "identified.urdf"),
    ),
    "load": Kind("mass, centre and inertia of what the arm carries", command="dynid_ros.commands.identify_load"),
    "flexible": Kind(
        "springs, motor inertias and friction of flexible joints, and their links",
        command="dynid_ros.commands.identify_flexible",
    ),
    "torque-sensors": Kind(
        "gains and offsets of the joints' torque sensors, by gravity",
        command="dynid_ros.commands.identify_torque_sensors",
    ),
    "servos": Kind(
        "delay, gain, inertia and friction of position servos without torque",
        estimator="dynid_ros.identification.servo.servo_identification:ServoIdentification",
        command="dynid_ros.commands.identify_servos",
    ),
}
"""By the name that `dynid identify` has for it; what they name is imported when it is chosen."""


@dataclass(frozen=True)
class Job:
    """What an identification leaves.

    Attributes:
        result: of the estimator.
        content: of `identified.yaml`, as far as it was identified here.
        files: that were written, by what they are: "identified", "report" and more.
        findings: of the sanity check.
        validated: lines on recordings that were not fitted.
        missing: what is not known, and what to record.
        remarks: further lines of the summary.
        warnings: besides the findings.
    """

    result: Any
    content: Mapping[str, Any]
    files: Mapping[str, Path]
    findings: tuple[Finding, ...]
    validated: Sequence[str] = ()
    missing: tuple[str, ...] = ()
    remarks: Sequence[str] = ()
    warnings: Sequence[str] = ()

    @property
    def identified(self) -> Path:
        """`identified.yaml`."""
        return self.files["identified"]

    @property
    def report(self) -> Path:
        """The page."""
        return self.files["report"]

    def summary(self) -> str:
        """Result, validation on other recordings, warnings and where the files are."""
        warnings = [*map(str, self.findings), *self.warnings]
        return "\n".join(
            [
                self.result.summary(),
                *self.validated,
                *(f"warning: {warning}" for warning in warnings),
                *(f"not enough: {missing}" for missing in self.missing),
                *self.remarks,
                f"wrote {', '.join(map(str, self.files.values()))}",
            ]
        )

    def document(self) -> dict:
        """What was identified, as in `identified.yaml`, and the warnings."""
        return {**self.content, "warnings": [*map(str, self.findings), *self.warnings]}


def validation_lines(validations: Sequence[Validation]) -> list[str]:
    """Lines of the summary on recordings that were not fitted."""
    return [line for one in validations for line in (f"Validation on {one.recording}", one.table())]


@all_or_none()
def identify(
    kind: str,
    identification: Any,
    recordings: Sequence[Recording],
    output: str | Path,
    validate: Sequence[Recording] = (),
) -> Job:
    """Check the recordings, fit, validate on recordings that were not fitted, write all files into `output`.

    Where the recordings do not determine all that predicts torque, that is written, and nothing validated.

    Args:
        kind: key of `KINDS`.
        identification: estimator of that kind.
        recordings: to fit.
        output: folder.
        validate: recordings to predict.

    Raises:
        RecordingError: the sanity check found an error in a recording, or one is to be fitted and validated.
        IdentificationError: the recordings hold too little.
    """
    own, output, robot = KINDS[kind], writable_folder(output, *KINDS[kind].writes), identification.robot
    if own.motion:
        check_apart(recordings, validate)
    with progress(3 + bool(validate)) as step:
        step("looking for faults in the recordings")
        mounted = getattr(identification, "gravity_direction", GIVEN) == GIVEN
        findings = _checked_all(recordings, validate, robot, own) if mounted else checked(recordings, None)
        step(own.doing)
        result = identification.fit(*recordings)
        if not mounted:  # what an arm shows is seen with the gravity that it has
            findings = _checked_all(recordings, validate, result.robot, own)
        missing = tuple(result.missing)
        if validate:
            step("validating")
        compared = [] if missing and own.whole else [result.validate(other) for other in validate]
        validations = tuple(one for one in compared if len(one.unpredicted) < robot.n_joints)
        step("writing the report")
        files, remarks = {"identified": result.save(output / "identified.yaml", validations)}, []
        if hasattr(result, "write_urdf"):
            try:
                files["urdf"] = result.write_urdf(output / "identified.urdf")
            except (IdentificationError, ModelError) as error:
                # One of an earlier run would be taken for this result's.
                remove(output / "identified.urdf")
                remarks = [] if missing else [f"no URDF: {error}"]
        files["report"] = own.load("report")(output / "report.html", result, recordings, validate, validations)
    content = validated(result.document(), validations)
    lines = validation_lines(validations)
    unpredicted = [joint for joint in robot.joint_names if any(joint in one.unpredicted for one in compared)]
    if validate and missing and (unpredicted or not compared):
        lines.append(f"no validation of {', '.join(unpredicted) or 'torque'}: not predicted, as {missing[0]}")
    return Job(result, content, files, findings, lines, missing, remarks)


def _checked_all(
    recordings: Sequence[Recording], validate: Sequence[Recording], robot: RobotModel, kind: Kind
) -> tuple[Finding, ...]:
    findings = checked(recordings, robot, motion=kind.motion)
    for other in validate if kind.motion else ():
        findings += checked([other], robot, motion=True)
    return findings


@all_or_none()
def identify_torque_sensors(
    calibration: TorqueSensorCalibration,
    recordings: Sequence[Recording],
    output: str | Path,
    with_mass: Sequence[Recording] = (),
    arm: dict | None = None,
) -> Job:
    """Check the recordings, fit, write both files into `output`.

    Args:
        calibration: with what is known.
        recordings: without the reference mass.
        output: folder.
        with_mass: recordings with it.
        arm: content of an `identified.yaml` of the same robot, which the sensors are added to.

    Raises:
        RecordingError: the sanity check found an error in a recording.
        IdentificationError: the recordings are not those that the calibration needs.
    """
    output, names = writable_folder(output, *RESULT_FILES), calibration.robot.joint_names
    plain, loaded = ([recording.select(names) for recording in some] for some in (recordings, with_mass))
    # Readings need not be N m, nor near the torques that the URDF predicts: that is what is to be found.
    with progress(3) as step:
        step("looking for faults in the recordings")
        findings = checked([*plain, *loaded], None)
        step("calibrating")
        result = calibration.fit(plain, loaded)
        step("writing the report")
        from dynid_ros.report.torque_sensors import write_torque_sensor_report  # noqa: PLC0415  # draws

        files = {
            "identified": result.save(output / "identified.yaml", arm),
            "report": write_torque_sensor_report(output / "report.html", result),
        }
    return Job(result, result.document(), files, findings, missing=result.missing)


@all_or_none()
def identify_servos(
    identification: ServoIdentification,
    recordings: Sequence[Recording],
    output: str | Path,
    with_mass: Sequence[Recording] = (),
    validate: Sequence[Recording] = (),
) -> Job:
    """Check the recordings, fit, validate on recordings that were not fitted, write both files into `output`.

    Args:
        identification: with its settings.
        recordings: with commands, without the reference mass.
        output: folder.
        with_mass: recordings with it.
        validate: recordings without it to predict, not to fit.

    Raises:
        RecordingError: the sanity check found an error in a recording, or one is to be fitted and validated.
        IdentificationError: no commands, or recordings that hold too little.
    """
    output, robot = writable_folder(output, *RESULT_FILES), identification.robot
    check_apart([*recordings, *with_mass], validate)
    with progress(3 + bool(validate)) as step:
        step("looking for faults in the recordings")
        findings = checked([*recordings, *with_mass, *validate], robot, torque=False)
        step("identifying servos")
        result = identification.fit(*recordings, with_mass=with_mass)
        if validate:
            step("validating")
        validations = tuple(result.validate(other) for other in validate)
        step("writing the report")
        from dynid_ros.report.servos import write_servo_report  # noqa: PLC0415  # draws

        files = {
            "identified": result.save(output / "identified.yaml", validations),
            "report": write_servo_report(output / "report.html", result, (*validate, *recordings)[0], validations),
        }
    content = validated(result.document(), validations)
    return Job(result, content, files, findings, validation_lines(validations), result.missing)


def read_gravity(path: Path, robot: RobotModel) -> tuple[KnownGravity, dict]:
    """Gravity parameters of an `identified.yaml` with their uncertainty, and all that it holds.

    Raises:
        IdentifiedFileError: unreadable, of another robot, or without gravity parameters of all joints.
    """
    document = load_identified(path)
    check_same_robot(document, robot)
    return KnownGravity.of_document(document, robot), document
