"""`dynid`: identification without ROS, and the demo."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import dynid_ros.one_thread  # noqa: F401 - before numpy
from dynid_ros import __version__
from dynid_ros.demo import run_demo
from dynid_ros.errors import DynidError, RecordingError
from dynid_ros.identification import GravityIdentification, LinkIdentification
from dynid_ros.identification.link_estimators import ESTIMATORS
from dynid_ros.identification.links import EQUATIONS
from dynid_ros.identification.samples import SampleRules
from dynid_ros.jobs.friction_terms import FRICTION_TERMS, friction_terms
from dynid_ros.jobs.gravity import identify_gravity, report_gravity
from dynid_ros.jobs.links import LinkJob, identify_links
from dynid_ros.jobs.prediction import PredictionJob, predict
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.checks import check
from dynid_ros.recording.effort import EffortConvention


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; bad input ends it with one line and exit code 2."""
    options = _parser().parse_args(arguments)
    try:
        sys.exit(options.command(options))
    except DynidError as error:
        print(f"dynid: error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, as all errors are said."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"dynid: error: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="dynid", description="Identify the dynamics of a serial arm from recordings.")
    parser.add_argument("--version", action="version", version=f"dynid_ros {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    demo = commands.add_parser("demo", help="a simulated arm: excite, record, identify, compensate, over real ROS 2")
    demo.add_argument("--output", type=Path, default=Path("demo_results"), help="folder for bag, model and report")
    demo.add_argument("--parameters", type=Path, help="ROS parameter file of all nodes; default: config/demo.yaml")
    demo.set_defaults(command=_demo)

    checking = commands.add_parser("check", help="look for faults in a recording before anything is fitted to it")
    _add_robot(checking)
    _add_recording(checking)
    checking.add_argument("--motion", action="store_true", help="also ask whether all joints move, as links need it")
    checking.set_defaults(command=_check)

    identify = commands.add_parser("identify", help="recordings in, identified.yaml and report.html out")
    kinds = identify.add_subparsers(required=True, metavar="what")
    _add_gravity(kinds.add_parser("gravity", help="gravity parameters, torque offsets and Coulomb friction"))
    _add_links(kinds.add_parser("links", help="masses, mass moments and inertias of all links, friction, rotors"))

    validate = commands.add_parser("validate", help="measured beside predicted torque of every recorded sample")
    _add_robot(validate)
    _add_recording(validate)
    validate.add_argument("--model", type=Path, required=True, help="identified.yaml")
    validate.add_argument("--output", type=Path, required=True, help="the CSV file")
    validate.add_argument("--json", action="store_true", help="print the agreement as JSON")
    validate.set_defaults(command=_validate)

    report = commands.add_parser("report", help="report.html anew from a gravity identified.yaml and its recordings")
    _add_robot(report)
    _add_recording(report)
    report.add_argument("--model", type=Path, required=True, help="identified.yaml")
    report.add_argument("--output", type=Path, required=True, help="the HTML file")
    report.set_defaults(command=_report)
    return parser


def _add_gravity(gravity: argparse.ArgumentParser) -> None:
    _add_identification(gravity)
    gravity.add_argument("--estimator", choices=("global", "recursive"), default="global")
    gravity.add_argument("--samples", choices=("static", "slow", "both"), default="static")
    rules = SampleRules()
    gravity.add_argument(
        "--slow-velocity", type=float, default=rules.slow_velocity, help="fastest joint in a slow sample, rad/s or m/s"
    )
    gravity.add_argument(
        "--slow-acceleration", type=float, default=rules.slow_acceleration, help="largest in a slow sample, per s^2"
    )
    gravity.add_argument("--no-torque-offset", action="store_true", help="the torque sensors are zeroed")
    gravity.set_defaults(command=_identify_gravity)


def _add_links(links: argparse.ArgumentParser) -> None:
    _add_identification(links)
    links.add_argument(
        "--estimator",
        choices=ESTIMATORS,
        default="consistent",
        help="%(default)s: links that can exist, drawn to the URDF's; weighted, ordinary, huber: least squares; "
        "others: of the papers, see docs/links.md",
    )
    links.add_argument(
        "--equations",
        choices=tuple(EQUATIONS),
        default="filtered",
        help="%(default)s: all through one low-pass; integral: without accelerations, needs --friction",
    )
    links.add_argument(
        "--friction",
        default="auto",
        metavar="TERMS",
        help=f"of all joints: auto, none, or some of {', '.join(FRICTION_TERMS)} with commas between, as in "
        "coulomb,viscous,stribeck_velocity=0.1",
    )
    links.add_argument("--prior-weight", type=float, metavar="W", help="of the URDF; default: by cross-validation")
    links.add_argument(
        "--torque-gain-error", type=float, default=0.01, metavar="S", help="standard deviation, relative (%(default)s)"
    )
    links.add_argument("--cutoff", type=float, metavar="HZ", help="low-pass of torque and regressor; default: by data")
    links.add_argument("--motion-cutoff", type=float, metavar="HZ", help="low-pass of the positions; default: by data")
    links.add_argument(
        "--coupled", nargs=2, action="append", default=[], metavar=("A", "B"), help="joints of one motor; repeatable"
    )
    links.add_argument("--json", action="store_true", help="print the content of identified.yaml as JSON")
    links.set_defaults(command=_identify_links)


def _add_identification(parser: argparse.ArgumentParser) -> None:
    _add_robot(parser)
    _add_recording(parser)
    parser.add_argument(
        "--validate", action="append", type=Path, default=[], metavar="R", help="recording to predict, not to fit"
    )
    parser.add_argument("--output", type=Path, required=True, help="folder for identified.yaml and report.html")


def _add_robot(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--urdf", type=Path, required=True)
    parser.add_argument("--base", help="link that the chain starts from; default: the root")
    parser.add_argument("--tip", help="link that the chain ends at; default: the only leaf")
    parser.add_argument(
        "--gravity",
        type=float,
        nargs=3,
        default=(0.0, 0.0, -9.80665),
        metavar=("X", "Y", "Z"),
        help="in the base link's frame, m/s^2",
    )


def _add_recording(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--recording", action="append", type=Path, required=True, metavar="R", help="bag folder, .csv, .npz; repeatable"
    )
    parser.add_argument("--joint-states-topic", help="in a bag that has several")
    parser.add_argument("--torque-topic", help="separate joint torques in a bag; default: effort of the joint states")
    parser.add_argument(
        "--effort-convention",
        choices=("torque", "motor_current", "gravity_compensated"),
        default="torque",
        help="what the recorded effort is",
    )
    parser.add_argument("--motor-gains", type=float, nargs="+", metavar="K", help="N m per unit of effort, per joint")


def _robot(options: argparse.Namespace) -> RobotModel:
    return RobotModel.from_urdf(options.urdf, options.tip, options.base, options.gravity)


def _recordings(options: argparse.Namespace, robot: RobotModel, paths: Sequence[Path]) -> list[Recording]:
    convention = EffortConvention(options.effort_convention, options.motor_gains)
    return [
        Recording.read(
            path,
            joint_names=robot.joint_names,
            joint_states_topic=options.joint_states_topic,
            torque_topic=options.torque_topic,
            effort_convention=convention,
        )
        for path in paths
    ]


def _check(options: argparse.Namespace) -> int:
    robot = _robot(options)
    recordings = _recordings(options, robot, options.recording)
    findings = check(recordings, robot, options.motion)
    for finding in findings:
        print(f"{finding.severity}: {finding}")
    if not findings:
        print(f"{sum(recording.n_samples for recording in recordings)} samples, nothing to complain of")
    return 1 if any(finding.severity == "error" for finding in findings) else 0


def _identify_gravity(options: argparse.Namespace) -> int:
    robot = _robot(options)
    identification = GravityIdentification(
        robot,
        estimator=options.estimator,
        torque_offset=not options.no_torque_offset,
        samples=options.samples,
        rules=SampleRules(slow_velocity=options.slow_velocity, slow_acceleration=options.slow_acceleration),
    )
    recordings = _recordings(options, robot, options.recording)
    others = _recordings(options, robot, options.validate)
    print(identify_gravity(identification, recordings, options.output, others).summary())
    return 0


def _identify_links(options: argparse.Namespace) -> int:
    robot = _robot(options)
    identification = LinkIdentification(
        robot,
        friction=friction_terms(options.friction),
        coupled=[(first, second) for first, second in options.coupled],
        estimator=options.estimator,
        equations=options.equations,
        prior_weight=options.prior_weight,
        torque_gain_error=options.torque_gain_error,
        cutoff=options.cutoff,
        motion_cutoff=options.motion_cutoff,
    )
    recordings = _recordings(options, robot, options.recording)
    others = _recordings(options, robot, options.validate)
    _print(identify_links(identification, recordings, options.output, others), options)
    return 0


def _validate(options: argparse.Namespace) -> int:
    if len(options.recording) > 1:
        raise RecordingError(f"validate takes one recording, not {len(options.recording)}; run it once for each")
    robot = _robot(options)
    (recording,) = _recordings(options, robot, options.recording)
    _print(predict(options.model, robot, recording, options.output), options)
    return 0


def _print(job: LinkJob | PredictionJob, options: argparse.Namespace) -> None:
    print(json.dumps(job.document(), ensure_ascii=False, indent=1) if options.json else job.summary())


def _report(options: argparse.Namespace) -> int:
    robot = _robot(options)
    recordings = _recordings(options, robot, options.recording)
    print(f"wrote {report_gravity(options.model, robot, recordings, options.output)}")
    return 0


def _demo(options: argparse.Namespace) -> int:
    return run_demo(options.output, options.parameters)


if __name__ == "__main__":
    main()
