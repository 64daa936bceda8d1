"""The sanity check, before anything is fitted."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.checks import check
from dynid_ros.recording.checks.finding import Finding


def checked(
    recordings: Sequence[Recording], robot: RobotModel | None, motion: bool = False, *, torque: bool = True
) -> tuple[Finding, ...]:
    """Run the sanity check on recordings that belong together; an error stops here, warnings are returned.

    Args:
        recordings: all that are fitted together.
        robot: the arm; None: look only for what needs no model, as torques in other units than N m do.
        motion: whether the fit needs motion, see `check`.
        torque: False: torques are not used, and not looked at.

    Raises:
        RecordingError: the first error found.

    """
    if torque:
        findings = check(recordings, robot, motion)
    else:
        without = [replace(part, torque=np.full_like(part.torque, np.nan)) for part in recordings]
        findings = [finding for finding in check(without, robot, motion) if finding.kind != "missing torque"]
    for finding in findings:
        if finding.severity == "error":
            raise RecordingError(str(finding))
    return tuple(findings)


def check_apart(fitted: Sequence[Recording], unseen: Sequence[Recording]) -> None:
    """Refuse to judge by what was fitted.

    Raises:
        RecordingError: a recording is in both.

    """
    for other in unseen:
        if any(np.array_equal(other.position, own.position) for own in fitted):
            raise RecordingError(
                f"{other.source}: it is to be fitted and to be validated on, which would only show how well it was "
                "fitted; validate on another recording"
            )
