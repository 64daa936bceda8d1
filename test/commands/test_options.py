"""Options that commands make of settings."""

import argparse

import pytest

from dynid_ros.commands.options import add_settings
from dynid_ros.identification import GravityIdentification
from dynid_ros.jobs.experiments import MotionSettings
from dynid_ros.settings import settings_of


@pytest.mark.parametrize("owner", [GravityIdentification, MotionSettings])
def test_option_that_switches_off_has_a_help_of_its_own(owner):
    parser = argparse.ArgumentParser()
    settings = settings_of(owner)
    add_settings(parser, settings)
    on = {f"--no-{one.name.replace('_', '-')}": one.description for one in settings if one.default is True}
    helps = {action.option_strings[0]: action.help for action in parser._actions}
    assert on
    assert all(helps[option] and helps[option] != description for option, description in on.items())
