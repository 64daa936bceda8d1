"""From recordings to `identified.yaml` and `report.html`: the gravity parameters of an arm."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dynid_ros.errors import IdentificationError, IdentifiedFileError
from dynid_ros.files import all_or_none, writable_folder
from dynid_ros.identification import GravityIdentification, GravityResult
from dynid_ros.identified.identified_file import check_same_robot, load_identified
from dynid_ros.identified.validation import Validation
from dynid_ros.jobs.checking import checked
from dynid_ros.jobs.progress import progress
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.checks.finding import Finding
from dynid_ros.report import write_gravity_report


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


def report_gravity(model: Path, robot: RobotModel, recordings: Sequence[Recording], output: Path) -> Path:
    """Write the report anew from `identified.yaml` and the recordings that it was fitted to.

    Raises:
        IdentifiedFileError: the file is malformed, of another robot, or of a link identification.

    """
    document = load_identified(model)
    check_same_robot(document, robot)
    if "links" in document:
        raise IdentifiedFileError(
            f"{model}: it is of a link identification, whose report needs the fit; run `dynid identify links` again"
        )
    samples = document.get("source", {}).get("settings", {}).get("samples", "static")
    identification = GravityIdentification(robot, samples=samples)
    return write_gravity_report(output, robot, document, identification.extract(*recordings))
