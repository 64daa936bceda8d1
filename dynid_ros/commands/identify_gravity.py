"""`dynid identify gravity`: recordings of poses or motion, to what gravity does to the joints."""

import argparse

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_identification, add_settings
from dynid_ros.identification import GravityIdentification
from dynid_ros.identification.static_samples import SampleRules
from dynid_ros.jobs.identification import identify_gravity
from dynid_ros.jobs.inputs import read_recordings, read_robot
from dynid_ros.settings import settings_of, values_of

SETTINGS, RULES = settings_of(GravityIdentification), settings_of(SampleRules)


def add(gravity: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_identification(gravity)
    add_settings(gravity, (*SETTINGS, *RULES))
    gravity.set_defaults(command=_identify)


def _identify(options: argparse.Namespace) -> Answer:
    robot, given = read_robot(options), vars(options)
    rules = SampleRules(**values_of(RULES, given))
    identification = GravityIdentification(robot, **values_of(SETTINGS, given), rules=rules)
    recordings = read_recordings(options, robot, options.recording)
    others = read_recordings(options, robot, options.validate)
    return Answer.of(identify_gravity(identification, recordings, options.output, others))
