"""`dynid identify links`: recordings of motion, to inertias and friction of the arm."""

import argparse

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_identification, add_settings
from dynid_ros.identification import LinkIdentification
from dynid_ros.jobs.identification import identify_links
from dynid_ros.jobs.inputs import read_recordings, read_robot
from dynid_ros.settings import settings_of, values_of

SETTINGS = settings_of(LinkIdentification)


def add(links: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_identification(links)
    add_settings(links, SETTINGS)
    links.set_defaults(command=_identify)


def _identify(options: argparse.Namespace) -> Answer:
    robot = read_robot(options)
    identification = LinkIdentification(robot, **values_of(SETTINGS, vars(options)))
    recordings = read_recordings(options, robot, options.recording)
    others = read_recordings(options, robot, options.validate)
    return Answer.of(identify_links(identification, recordings, options.output, others))
