"""All checks of a recording, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dynid_ros.recording.checks.channels import check_channels
from dynid_ros.recording.checks.finding import Finding
from dynid_ros.recording.checks.model_faults import check_hand, check_model
from dynid_ros.recording.checks.motion import check_motion, check_position_steps, check_steps, check_values
from dynid_ros.recording.checks.torque_stretches import check_torque_stretches
from dynid_ros.recording.recording import Recording

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel


def check(
    recording: Recording | Sequence[Recording],
    robot: RobotModel | None = None,
    motion: bool = False,
    undecided: list[str] | None = None,
) -> list[Finding]:
    """Faults found, each with a way out; empty for sound recordings. docs/checks.md lists them.

    With a robot, whose joints are selected by name, positions are also compared with its limits, and the torques with
    what its model can explain. Recordings that are fitted together should be checked together: one pose shows nothing
    about the effort, several recordings of one pose each do (see `check_effort`).

    Args:
        recording: one, or all that are to be fitted together.
        robot: the arm as it is mounted: with its gravity.
        motion: whether the fit needs motion, as that of inertias and friction does; gravity can be found from poses.
        undecided: gets the faults that would not show in these recordings, one text each; None: nobody asks.

    Raises:
        RecordingError: a joint of the robot is not in a recording.
    """
    recordings = [recording] if isinstance(recording, Recording) else list(recording)
    if robot is not None:
        recordings = [part.select(robot.joint_names) for part in recordings]
    findings: list[Finding] = []
    for part in recordings:
        findings += [
            *check_steps(part, motion),
            *check_channels(part),
            *check_torque_stretches(part),
            *check_position_steps(part),
        ]
        if robot is not None:
            findings += check_values(part, robot)
    if robot is not None:
        if motion:
            findings += check_motion(recordings, robot)
        findings += check_hand(recordings, robot)
        # What a broken channel does to a model says nothing about the model.
        if not any(finding.severity == "error" for finding in findings):
            findings += check_model(recordings, robot, undecided)
    return findings
