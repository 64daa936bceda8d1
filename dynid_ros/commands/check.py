"""`dynid check`: faults of recordings, before anything is fitted to them."""

import argparse
from pathlib import Path

from dynid_ros.commands.answers import Answer, finding_document
from dynid_ros.commands.options import add_output, add_recordings, add_robot
from dynid_ros.errors import DynidError, RecordingError, TrajectoryError
from dynid_ros.jobs.inputs import read_recordings, read_robot
from dynid_ros.jobs.load_change import check_with_load
from dynid_ros.jobs.progress import progress
from dynid_ros.model import RobotModel
from dynid_ros.model.friction_terms import friction_terms
from dynid_ros.recording import Recording


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_robot(parser)
    add_recordings(parser, required=False)
    parser.add_argument(
        "--motion",
        nargs="?",
        const=True,
        type=Path,
        metavar="TRAJECTORY",
        help="also ask whether the motion shows what links and friction need, and how well; of a planned "
        "trajectory.yaml, without recordings. Exit code 1 where that is not enough",
    )
    parser.add_argument(
        "--friction",
        metavar="TERMS",
        help="with --motion: terms that it must show, as those of identify links; default: auto, what cannot be chosen "
        "is said",
    )
    add_output(parser)
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> Answer:
    robot = read_robot(options)
    if options.friction and not options.motion:
        raise TrajectoryError("--friction is of what a motion must show; give --motion with it")
    if isinstance(options.motion, Path):
        if options.recording:
            raise TrajectoryError(f"--motion {options.motion} is a planned motion; give it or recordings")
        with progress(1) as step:
            step("judging the motion")
            text, motion = _judged(robot, options.motion, options.friction)
        return Answer(text, {"motion": motion}, code=0 if motion["enough"] else 1)
    if not options.recording:
        raise RecordingError("nothing to check; give --recording, or a planned motion by --motion TRAJECTORY")
    recordings = read_recordings(options, robot, options.recording)
    with progress(2) as step:
        step("looking for faults in the recordings")
        undecided: list[str] = []
        findings = check_with_load(recordings, robot, bool(options.motion), undecided)
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
            text, document["motion"] = _judged(robot, recordings, options.friction)
            lines.append(text)
            faulty = not document["motion"].get("enough", False)
    return Answer("\n".join(lines), document, code=1 if faulty else 0)


def _judged(robot: RobotModel, source: list[Recording] | Path, friction: str | None) -> tuple[str, dict]:
    from dynid_ros.jobs.judging import judge, unseen_friction  # noqa: PLC0415  # only --motion needs it

    terms = friction_terms(friction or "auto")
    try:
        quality, unseen = judge(robot, source), unseen_friction(robot, source, terms)
    except DynidError as error:
        if isinstance(source, Path):
            raise
        return f"the motion was not judged: {error}", {"not_judged": str(error)}
    document = quality.as_dict() | {"unseen_friction": unseen}
    if friction and unseen:
        document["enough"] = False
    return "\n".join([quality.summary(), *unseen]), document
