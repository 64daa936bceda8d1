"""Load changes within or between recordings, as a finding of the check of recordings."""

from __future__ import annotations

from collections.abc import Sequence

from dynid_ros.checks.all_checks import check
from dynid_ros.checks.finding import DRIFT, LOAD_CHANGE, Finding
from dynid_ros.errors import DynidError
from dynid_ros.identification import LinkIdentification
from dynid_ros.identification.links.load_step import LOAD_STEP_REMEDY, LoadChangeError
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording


def check_with_load(
    recordings: Sequence[Recording], robot: RobotModel, motion: bool = False, undecided: list[str] | None = None
) -> list[Finding]:
    """Return the findings of all checks; a change of load replaces the drift that it resembles.

    Args:
        recordings: recordings that are to be fitted together.
        robot: the arm with its mounting.
        motion: whether the fit needs motion.
        undecided: list that receives the names of faults that these recordings would not show.
    """
    findings = check(recordings, robot, motion, undecided)
    if any(finding.severity == "error" for finding in findings):
        return findings
    change = load_change(recordings, robot)
    if change is None:
        return findings
    return [*(finding for finding in findings if finding.kind != DRIFT), change]


def load_change(recordings: Sequence[Recording], robot: RobotModel) -> Finding | None:
    """Return an error if no single load explains the torques; None: one does.

    Recordings that do not identify links, such as poses at rest, show no change.
    """
    try:
        LinkIdentification(robot, estimator="weighted").require_one_load(*recordings)
    except LoadChangeError as error:
        return Finding("error", error.where, error.change, LOAD_STEP_REMEDY, LOAD_CHANGE)
    except DynidError:
        pass
    return None
