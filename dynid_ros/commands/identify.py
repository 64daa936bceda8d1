"""`dynid identify`: recordings in, `identified.yaml` and `report.html` out."""

import argparse
from pathlib import Path

from dynid_ros.commands import identify_flexible, identify_load, identify_torque_sensors
from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_json, add_recording, add_robot
from dynid_ros.identification import GravityIdentification, LinkIdentification
from dynid_ros.identification.links.link_identification import EQUATIONS, ESTIMATORS
from dynid_ros.identification.static_samples import SampleRules
from dynid_ros.jobs.identification import identify_gravity, identify_links
from dynid_ros.jobs.inputs import read_recordings, read_robot
from dynid_ros.model.friction import FRICTION_TERMS, friction_terms


def add(parser: argparse.ArgumentParser) -> None:
    """Add what there is to identify."""
    kinds = parser.add_subparsers(required=True, metavar="what")
    _add_gravity(kinds.add_parser("gravity", help="gravity parameters, torque offsets and Coulomb friction"))
    _add_links(kinds.add_parser("links", help="masses, mass moments and inertias of all links, friction, rotors"))
    identify_load.add(kinds)
    identify_flexible.add(kinds)
    identify_torque_sensors.add(kinds)


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
    links.set_defaults(command=_identify_links)


def _add_identification(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    add_recording(parser)
    parser.add_argument(
        "--validate", action="append", type=Path, default=[], metavar="R", help="recording to predict, not to fit"
    )
    parser.add_argument("--output", type=Path, required=True, help="folder for identified.yaml and report.html")
    add_json(parser)


def _identify_gravity(options: argparse.Namespace) -> Answer:
    robot = read_robot(options)
    identification = GravityIdentification(
        robot,
        estimator=options.estimator,
        torque_offset=not options.no_torque_offset,
        samples=options.samples,
        rules=SampleRules(slow_velocity=options.slow_velocity, slow_acceleration=options.slow_acceleration),
    )
    recordings = read_recordings(options, robot, options.recording)
    others = read_recordings(options, robot, options.validate)
    return Answer.of(identify_gravity(identification, recordings, options.output, others))


def _identify_links(options: argparse.Namespace) -> Answer:
    robot = read_robot(options)
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
    recordings = read_recordings(options, robot, options.recording)
    others = read_recordings(options, robot, options.validate)
    return Answer.of(identify_links(identification, recordings, options.output, others))
