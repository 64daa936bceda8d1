"""`dynid check`: faults of recordings, before anything is fitted to them."""

import argparse

from dynid_ros.commands.answers import Answer, finding_document
from dynid_ros.commands.options import add_json, add_recording, add_robot
from dynid_ros.errors import DynidError
from dynid_ros.jobs.inputs import read_recordings, read_robot
from dynid_ros.jobs.progress import progress
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.checks.all_checks import check


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_robot(parser)
    add_recording(parser)
    parser.add_argument(
        "--motion",
        action="store_true",
        help="also ask whether the motion shows what links need, and how well; exit code 1 where that is not enough",
    )
    add_json(parser)
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> Answer:
    robot = read_robot(options)
    recordings = read_recordings(options, robot, options.recording)
    with progress(2) as step:
        step("looking for faults in the recordings")
        undecided: list[str] = []
        findings = check(recordings, robot, options.motion, undecided)
        faulty = any(finding.severity == "error" for finding in findings)
        samples = sum(recording.n_samples for recording in recordings)
        document: dict = {
            "recordings": [recording.source for recording in recordings],
            "samples": samples,
            "findings": [finding_document(finding) for finding in findings],
            "undecided": undecided,
        }
        lines = [f"{finding.severity}: {finding}" for finding in findings]
        lines += [] if findings else [f"{samples} samples, nothing to report"]
        lines += [f"undecided, as it would not show in this motion: {subject}" for subject in undecided]
        if options.motion and not faulty:
            step("judging the motion")
            text, document["motion"] = _judged(robot, recordings)
            lines.append(text)
            faulty = not document["motion"].get("enough", False)
    return Answer("\n".join(lines), document, code=1 if faulty else 0)


def _judged(robot: RobotModel, recordings: list[Recording]) -> tuple[str, dict]:
    from dynid_ros.jobs.judging import judge  # noqa: PLC0415  # only --motion needs it

    try:
        quality = judge(robot, recordings)
    except DynidError as error:
        return f"the motion was not judged: {error}", {"not_judged": str(error)}
    return quality.summary(), quality.as_dict()
