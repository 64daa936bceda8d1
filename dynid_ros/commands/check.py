"""`dynid check`: search for faults in recordings before anything is fitted to them."""

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dynid_ros.commands.options import Answer, add_output, add_parameters, add_recordings, add_robot, finding_document
from dynid_ros.errors import DynidError, RecordingError, TrajectoryError
from dynid_ros.jobs.inputs import joint_gains, read_recordings, read_robot, robot_parameters, update_parameter_file
from dynid_ros.jobs.judging import check_with_load, judge, quality_screen, unseen_friction
from dynid_ros.jobs.screen import Screen, progress
from dynid_ros.model import RobotModel
from dynid_ros.model.friction_terms import friction_terms
from dynid_ros.recording import Recording


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    add_robot(parser)
    add_recordings(parser, required=False)
    parser.add_argument(
        "--motion",
        nargs="?",
        const=True,
        type=Path,
        metavar="TRAJECTORY",
        help="planned trajectory.yaml to judge; without a value, judge the motion of the recordings; exit code 1: it "
        "does not show all parameters of links and friction",
    )
    parser.add_argument(
        "--friction",
        metavar="TERMS",
        help="friction terms that the motion must excite, as in identify links, with --motion (default: auto, terms "
        "that cannot be chosen are named)",
    )
    add_parameters(parser, "robot and meaning of effort, if no fault is found")
    add_output(parser)
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> Answer:
    robot = read_robot(options)
    if options.friction and not options.motion:
        raise TrajectoryError("--friction lists the terms that the motion must excite, so it needs --motion")
    if isinstance(options.motion, Path):
        if options.recording:
            raise TrajectoryError(f"--motion {options.motion} is a planned motion; give it or recordings")
        with progress(1) as step:
            step("judging the motion")
            planned = judge_for_check(robot, options.motion, options.friction)
        return Answer(planned.screen, {"motion": planned.document}, code=0 if planned.enough else 1)
    if not options.recording:
        raise RecordingError("nothing to check; give --recording, or a planned motion by --motion TRAJECTORY")
    recordings = read_recordings(options, robot, options.recording)
    with progress(2) as step:
        step("looking for faults in the recordings")
        undecided: list[str] = []
        findings = check_with_load(recordings, robot, bool(options.motion), undecided)
        is_faulty = any(finding.severity == "error" for finding in findings)
        judged: JudgedMotion | None = None
        if options.motion and not is_faulty:
            step("judging the motion")
            judged = judge_for_check(robot, recordings, options.friction)
    samples = sum(recording.n_samples for recording in recordings)
    document: dict = {
        "recordings": [recording.source for recording in recordings],
        "samples": samples,
        "findings": [finding_document(finding) for finding in findings],
        "undecided": undecided,
    }
    rows = []
    for finding in findings:
        rows += [f"{finding.severity}: {finding.where}: {finding.message}", f"  {finding.fix}"]
    names = ", ".join(Path(recording.source).stem for recording in recordings)
    seconds = sum(recording.duration for recording in recordings)
    counts = Counter(finding.severity for finding in findings)
    faults = ", ".join(f"{count} {severity}{'s' * (count > 1)}" for severity, count in counts.items())
    verdict = [f"{robot.name}: {faults or 'no fault found'} in {names} ({seconds:.0f} s, {samples} samples)"]
    if undecided:
        rows += ["This motion would not show:", *(f"  {fault}" for fault in undecided)]
    screen = Screen(verdict, rows)
    if judged is not None:
        document["motion"] = judged.document
        motion = judged.screen
        screen = Screen([*verdict, *motion.verdict], [*rows, *motion.table], [*motion.remarks, *screen.remarks])
    if options.parameters is not None and not is_faulty:
        gains = joint_gains(options, "motor_gains", robot.joint_names)
        effort = {"effort_convention": options.effort_convention, "motor_gains": gains}
        screen = replace(screen, files=[update_parameter_file(options.parameters, robot_parameters(options) | effort)])
    is_good = not is_faulty and (judged is None or judged.enough)
    return Answer(screen, document, code=0 if is_good else 1)


class JudgedMotion(NamedTuple):
    """Verdict on a motion.

    Attributes:
        screen: verdict, table by joint and remarks.
        document: plain data.
        enough: whether the motion shows all parameters, and the friction terms that were given.
    """

    screen: Screen
    document: dict
    enough: bool


def judge_for_check(robot: RobotModel, source: list[Recording] | Path, friction: str | None) -> JudgedMotion:
    """Judge recordings, or a planned motion; recordings that cannot be judged are not enough."""
    terms = friction_terms(friction or "auto")
    try:
        quality = judge(robot, source)
        unseen = unseen_friction(robot, source, terms)
    except DynidError as error:
        if isinstance(source, Path):
            raise
        return JudgedMotion(Screen([f"the motion was not judged: {error}"]), {"not_judged": str(error)}, False)
    enough = quality.enough and not (friction and unseen)
    document = quality.as_dict() | {"unseen_friction": unseen, "enough": enough}
    return JudgedMotion(quality_screen(quality, unseen), document, enough)
