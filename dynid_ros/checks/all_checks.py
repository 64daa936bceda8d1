"""All checks of recordings, in order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

import dynid_ros.checks
from dynid_ros.checks.finding import RECORDING_CHECKS, CheckSettings, Finding
from dynid_ros.checks.model_faults import check_model
from dynid_ros.checks.too_little_motion import check_hand, check_motion
from dynid_ros.files.disk_arrays import release_pages
from dynid_ros.recording.recording import Recording

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel


def check(
    recording: Recording | Sequence[Recording],
    robot: RobotModel | None = None,
    motion: bool = False,
    undecided: list[str] | None = None,
) -> list[Finding]:
    """Return the faults of recordings, each with a remedy; empty for sound recordings. docs/checks.md lists them.

    With a robot, positions are also compared with its limits, and torques with its model; joints are selected by name.
    Recordings that are fitted together should be checked together: a single pose does not show the convention of the
    effort, while several recordings of one pose each do (see `check_effort`).

    Args:
        recording: recording, or all recordings that are fitted together.
        robot: robot model with the gravity of its mounting; None: the recordings are checked alone.
        motion: whether the fit needs motion, as for inertias and friction; gravity can be estimated from poses.
        undecided: list that receives the faults which these recordings cannot show; None to omit them.

    Raises:
        RecordingError: a joint of the robot is not in a recording.
    """
    recordings = [recording] if isinstance(recording, Recording) else list(recording)
    if robot is not None:
        recordings = [part.select(robot.joint_names) for part in recordings]
    settings = CheckSettings(robot, motion)
    _import_checks(tuple(dynid_ros.checks.__path__))
    functions = [function for _, function in sorted(RECORDING_CHECKS, key=lambda registered: registered[0])]
    findings: list[Finding] = []
    for part in recordings:
        for function in functions:
            findings += function(part, settings)
            release_pages()
    if robot is not None:
        if motion:
            findings += check_motion(recordings, robot)
        findings += check_hand(recordings, robot)
        # The model cannot be judged with torques or positions of a broken channel.
        if not any(finding.severity == "error" for finding in findings):
            findings += check_model(recordings, robot, undecided)
    return findings


@lru_cache(maxsize=8)
def _import_checks(path: tuple[str, ...]) -> None:
    """Import all modules of the package, which registers their checks."""
    for module in iter_modules(path):
        import_module(f"dynid_ros.checks.{module.name}")
