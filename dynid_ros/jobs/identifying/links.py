"""From recordings to `identified.yaml`, `identified.urdf` and `report.html`: links and friction of an arm."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dynid_ros.errors import IdentificationError, ModelError
from dynid_ros.files import all_or_none, remove, writable_folder
from dynid_ros.identification import LinkIdentification, LinkResult
from dynid_ros.identified.validation import Validation
from dynid_ros.jobs.checking import check_apart, checked
from dynid_ros.jobs.progress import progress
from dynid_ros.recording import Recording
from dynid_ros.recording.checks.finding import Finding
from dynid_ros.report.identified_yaml import write_file_report
from dynid_ros.report.links import write_link_report


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

    Where the recordings do not decide all links, only what they decide is written, and nothing validated.

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
            report = write_file_report(output / "report.html", result.document(), robot)
        else:
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
