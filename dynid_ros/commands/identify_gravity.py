"""`dynid identify gravity`: recordings of poses or motion, to what gravity does to the joints."""

import argparse

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_identification
from dynid_ros.identification import GravityIdentification
from dynid_ros.identification.static_samples import SampleRules
from dynid_ros.jobs.identification import identify_gravity
from dynid_ros.jobs.inputs import read_recordings, read_robot


def add(gravity: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_identification(gravity)
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
    gravity.set_defaults(command=_identify)


def _identify(options: argparse.Namespace) -> Answer:
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
