"""`dynid identify links`: recordings of motion, to inertias and friction of the arm."""

import argparse

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_identification
from dynid_ros.identification import LinkIdentification
from dynid_ros.identification.links.link_identification import EQUATIONS, ESTIMATORS
from dynid_ros.jobs.identification import identify_links
from dynid_ros.jobs.inputs import read_recordings, read_robot
from dynid_ros.model.friction import FRICTION_TERMS, friction_terms


def add(links: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_identification(links)
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
    links.set_defaults(command=_identify)


def _identify(options: argparse.Namespace) -> Answer:
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
