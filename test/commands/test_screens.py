"""Test screens and help texts of the commands: their length, groups of options, and first words."""

import argparse
import re
from pathlib import Path

import pytest
from command_line import commands

from dynid_ros.commands.options import add_settings
from dynid_ros.identification import GravityIdentification
from dynid_ros.jobs.experiments import MotionSettings
from dynid_ros.jobs.kinds import KINDS
from dynid_ros.jobs.screen import MAX_LINE_WIDTH, MAX_LINES, Screen
from dynid_ros.settings import settings_of

FRAGMENTS = {"of", "in", "at", "by", "to", "or", "on", "for", "with", "what", "whose", "who", "how", "whether", "where"}
GROUPS = {"robot", "recordings", "effort", "method", "output"}


COMMANDS = commands()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_texts_begin_with_a_noun_or_verb(command):
    actions = [action for action in COMMANDS[command]._actions if action.dest != "help"]
    for action in actions:
        first = re.match(r"[\w-]+", action.help or "")
        assert first, f"{action.dest} has no help"
        assert first[0].lower() not in FRAGMENTS, f"{action.dest}: {action.help}"


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.purpose])
def test_identifications_group_their_options(kind):
    parser = COMMANDS[f"identify {kind}"]
    titles = {group.title for group in parser._action_groups if group._group_actions}
    assert titles >= GROUPS - (set() if KINDS[kind].checks.torque else {"effort"})
    assert "--validate" in parser._option_string_actions
    assert ("--motor-gains" in parser._option_string_actions) == KINDS[kind].checks.torque


def test_screen_has_at_most_25_lines_and_three_remarks():
    rows = ["joint  value", *(f"joint_{number}  {number}" for number in range(40))]
    remarks = [f"remark {number}" for number in range(9)]
    lines = Screen(["verdict", "x " * 100], rows, remarks, [Path("a.yaml")]).text().splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= MAX_LINE_WIDTH
    assert lines[-1] == "wrote a.yaml"
    assert "more rows: --verbose" in "\n".join(lines)
    assert [line for line in lines if "remark" in line.lower()] == ["Remarks", "  remark 0", "  remark 1", "  remark 2"]
    assert "  6 more: --verbose" in lines


def test_short_screen_is_complete():
    assert Screen(["done"]).text() == "done"
    assert Screen.from_lines("holds a\nholds b\nwrote x, y").text().endswith("wrote x, y")


def test_long_rows_are_wrapped_where_all_lines_fit():
    row = f"error: run: {'position ' * 40}record longer"
    lines = Screen(["verdict"], [row]).text().splitlines()
    assert max(map(len, lines)) <= MAX_LINE_WIDTH
    assert " ".join(" ".join(lines).split()) == f"verdict {row}"
    full = Screen(["verdict"], [*map(str, range(20)), row]).text().splitlines()
    assert len(full) <= MAX_LINES
    assert max(map(len, full)) <= MAX_LINE_WIDTH
    assert full[-1].endswith("record longer")


@pytest.mark.parametrize("owner", [GravityIdentification, MotionSettings])
def test_negated_option_has_its_own_help(owner):
    parser = argparse.ArgumentParser()
    settings = settings_of(owner)
    add_settings(parser, settings)
    on = {
        f"--no-{setting.name.replace('_', '-')}": setting.description for setting in settings if setting.default is True
    }
    helps = {action.option_strings[0]: action.help for action in parser._actions}
    assert on
    assert all(helps[option] and helps[option] != description for option, description in on.items())
