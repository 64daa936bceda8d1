"""The sanity check, before anything is fitted."""

from collections.abc import Sequence

from dynid_ros.errors import RecordingError
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.checks import Finding, check


def checked(recordings: Sequence[Recording], robot: RobotModel, motion: bool = False) -> tuple[Finding, ...]:
    """Run the sanity check on recordings that belong together; an error stops here, warnings are returned.

    Args:
        recordings: all that are fitted together.
        robot: the arm.
        motion: whether the fit needs motion, see `check`.

    Raises:
        RecordingError: the first error found.

    """
    findings = check(recordings, robot, motion)
    for finding in findings:
        if finding.severity == "error":
            raise RecordingError(str(finding))
    return tuple(findings)
