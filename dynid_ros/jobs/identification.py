"""From recordings to `identified.yaml`, `identified.urdf` and `report.html`: links and friction of an arm."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dynid_ros.errors import IdentificationError, ModelError
from dynid_ros.files import all_or_none, remove, writable_folder
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.identified.identified_file import check_same_robot, load_identified
from dynid_ros.identified.validation import Validation
from dynid_ros.jobs.inputs import check_apart, checked
from dynid_ros.jobs.progress import progress
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.checks.finding import Finding

if TYPE_CHECKING:
    from dynid_ros.identification import (
        GravityIdentification,
        GravityResult,
        LinkIdentification,
        LinkResult,
        TorqueSensorCalibration,
        TorqueSensorResult,
    )

# From recordings to `identified.yaml` and `report.html`: the gravity parameters of an arm.


@dataclass(frozen=True)
class GravityJob:
    """What the job leaves: the result, the files and what the sanity check found."""

    result: GravityResult
    validations: tuple[Validation, ...]
    findings: tuple[Finding, ...]
    identified: Path
    report: Path

    @property
    def missing(self) -> tuple[str, ...]:
        """What is not known, and what to record."""
        return self.result.missing

    def summary(self) -> str:
        """Result, validation on other recordings, warnings and where the files are."""
        lines = [self.result.summary()]
        for validation in self.validations:
            rms = "  ".join(f"{value:.3f}" for value in validation.rms)
            lines.append(f"RMS on {validation.recording} [N m]: {rms}")
        lines += [f"warning: {finding}" for finding in self.findings]
        lines += [f"not enough: {missing}" for missing in self.missing]
        lines.append(f"wrote {self.identified} and {self.report}")
        return "\n".join(lines)

    def document(self) -> dict:
        """Content of `identified.yaml`, and the warnings of the sanity check."""
        return {
            **self.result.document(),
            "validation": [validation.document() for validation in self.validations],
            "warnings": [str(finding) for finding in self.findings],
        }


@all_or_none()
def identify_gravity(
    identification: GravityIdentification,
    recordings: Sequence[Recording],
    output: str | Path,
    validate: Sequence[Recording] = (),
) -> GravityJob:
    """Check the recordings, fit, validate on recordings that were not fitted, write both files into `output`.

    Raises:
        RecordingError: the sanity check found an error in a recording.
        IdentificationError: the recordings hold too little.

    """
    robot, output = identification.robot, writable_folder(output)
    with progress(3) as step:
        step("looking for faults in the recordings")
        findings = checked(recordings, robot)
        step("identifying gravity")
        result = _fitted(identification, recordings)
        validations = tuple(result.validate(other) for other in validate)
        step("writing the report")
        identified = result.save(output / "identified.yaml", validations)
        document = result.document() | {"validation": [validation.document() for validation in validations]}
        from dynid_ros.report.gravity import write_gravity_report  # noqa: PLC0415  # draws

        report = write_gravity_report(output / "report.html", robot, document, result.samples)
    return GravityJob(result, validations, findings, identified, report)


def _fitted(identification: GravityIdentification, recordings: Sequence[Recording]) -> GravityResult:
    """The fit; where dwells are too few for it, its error says whether slow motion would do."""
    try:
        return identification.fit(*recordings)
    except IdentificationError as error:
        stretches = 0
        if identification.samples == "static":
            with suppress(IdentificationError):
                stretches = len(replace(identification, samples="slow").extract(*recordings))
        if not stretches:
            raise
        raise IdentificationError(
            f"{str(error).rstrip('.')}. But it moves slowly, below {identification.rules.slow_velocity:g} per s, in "
            f"{stretches} stretches; to identify from these: --samples slow (node: samples:=slow)"
        ) from error


# From recordings to `identified.yaml` and `report.html`: gains and offsets of torque sensors.


@dataclass(frozen=True)
class TorqueSensorJob:
    """What the job leaves: the result, the files and what the sanity check found.

    Attributes:
        arm: content of the `identified.yaml` that the sensors were added to; None: the file holds them alone.

    """

    result: TorqueSensorResult
    findings: tuple[Finding, ...]
    identified: Path
    report: Path
    arm: dict | None

    def summary(self) -> str:
        """Result, warnings and where the files are."""
        lines = [self.result.summary(), *(f"warning: {finding}" for finding in self.findings)]
        lines.append(f"wrote {self.identified} and {self.report}")
        return "\n".join(lines)

    def document(self) -> dict:
        """The sensors' part of `identified.yaml`, and the warnings."""
        return {**self.result.document(), "warnings": [str(finding) for finding in self.findings]}


@all_or_none()
def identify_torque_sensors(
    calibration: TorqueSensorCalibration,
    recordings: Sequence[Recording],
    output: str | Path,
    with_mass: Sequence[Recording] = (),
    arm: dict | None = None,
) -> TorqueSensorJob:
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
    output, names = writable_folder(output), calibration.robot.joint_names
    plain, loaded = ([recording.select(names) for recording in some] for some in (recordings, with_mass))
    # Readings need not be N m, nor near the torques that the URDF predicts: that is what is to be found.
    with progress(3) as step:
        step("looking for faults in the recordings")
        findings = checked([*plain, *loaded], None)
        step("calibrating")
        result = calibration.fit(plain, loaded)
        step("writing the report")
        identified = result.save(output / "identified.yaml", arm)
        from dynid_ros.report.torque_sensors import write_torque_sensor_report  # noqa: PLC0415  # draws

        report = write_torque_sensor_report(output / "report.html", result)
    return TorqueSensorJob(result, findings, identified, report, arm)


def read_gravity(path: Path, robot: RobotModel) -> tuple[KnownGravity, dict]:
    """Gravity parameters of an `identified.yaml` with their uncertainty, and all that it holds.

    Raises:
        IdentifiedFileError: unreadable, of another robot, or without gravity parameters of all joints.

    """
    document = load_identified(path)
    check_same_robot(document, robot)
    return KnownGravity.of_document(document, robot), document


@dataclass(frozen=True)
class LinkJob:
    """What the job leaves: the result, the files and what the sanity check found.

    Attributes:
        urdf: None where no URDF can be written; `no_urdf` says why.

    """

    result: LinkResult
    validations: tuple[Validation, ...]
    findings: tuple[Finding, ...]
    identified: Path
    report: Path
    urdf: Path | None
    no_urdf: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """What is not known, and what to record."""
        return self.result.missing

    def summary(self) -> str:
        """Result, validation on other recordings, warnings and where the files are."""
        lines = [self.result.summary()]
        for validation in self.validations:
            lines += [f"Validation on {validation.recording}", validation.table()]
        lines += [f"warning: {finding}" for finding in self.findings]
        if self.missing:
            lines += [f"not enough: {missing}" for missing in self.missing]
        elif self.urdf is None:
            lines.append(f"no URDF: {self.no_urdf}")
        files = [path for path in (self.identified, self.urdf, self.report) if path is not None]
        lines.append(f"wrote {', '.join(map(str, files))}")
        return "\n".join(lines)

    def document(self) -> dict:
        """Content of `identified.yaml`, and the warnings of the sanity check."""
        return {
            **self.result.document(),
            "validation": [validation.document() for validation in self.validations],
            "warnings": [str(finding) for finding in self.findings],
        }


@all_or_none()
def identify_links(
    identification: LinkIdentification,
    recordings: Sequence[Recording],
    output: str | Path,
    validate: Sequence[Recording] = (),
) -> LinkJob:
    """Check the recordings, fit, validate on recordings that were not fitted, write all files into `output`.

    Where the recordings do not determine all links, only what they decide is written, and nothing validated.

    Raises:
        RecordingError: the sanity check found an error in a recording, or one is to be fitted and validated.
        IdentificationError: the recordings hold too little.

    """
    check_apart(recordings, validate)
    output, robot = writable_folder(output), identification.robot
    with progress(4) as step:
        step("looking for faults in the recordings")
        findings = checked(recordings, robot, motion=True)
        for other in validate:
            findings += checked([other], robot, motion=True)
        step("identifying links and friction")
        result = identification.fit(*recordings)
        step("validating")
        validations = () if result.missing else tuple(result.validate(other) for other in validate)
        step("writing the report")
        identified = result.save(output / "identified.yaml", validations)
        urdf, no_urdf = _write_urdf(result, output / "identified.urdf")
        if result.missing:
            from dynid_ros.report.identified_yaml import write_file_report  # noqa: PLC0415  # draws

            report = write_file_report(output / "report.html", result.document(), robot)
        else:
            from dynid_ros.report.links import write_link_report  # noqa: PLC0415  # draws

            report = write_link_report(output / "report.html", result, recordings, validate)
    return LinkJob(result, validations, findings, identified, report, urdf, no_urdf)


def _write_urdf(result: LinkResult, path: Path) -> tuple[Path | None, str]:
    """The file, or why there is none."""
    try:
        return result.write_urdf(path), ""
    except (IdentificationError, ModelError) as error:
        # One of an earlier run would be taken for this result's.
        remove(path)
        return None, str(error)
