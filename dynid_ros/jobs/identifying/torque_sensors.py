"""From recordings to `identified.yaml` and `report.html`: gains and offsets of torque sensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dynid_ros.files import all_or_none, writable_folder
from dynid_ros.identification import TorqueSensorCalibration, TorqueSensorResult
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.identified.identified_file import check_same_robot, load_identified
from dynid_ros.jobs.checking import checked
from dynid_ros.jobs.progress import progress
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.checks.finding import Finding
from dynid_ros.report.torque_sensors import write_torque_sensor_report


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
