"""Whether the check of recordings names a change of the load, and is silent on one load."""

from dataclasses import replace

import pytest
from link_problems import chain, loaded_torque, wrong
from link_problems import run as plain

from dynid_ros.jobs.load_change import check_with_load, load_change


def test_a_load_that_is_taken_up_is_found_in_place_of_a_drift():
    robot = chain()
    run = plain(robot)
    taken_up = replace(run, torque=run.torque + loaded_torque(robot, run) * (run.time >= 11.0)[:, None])
    (finding,) = check_with_load([taken_up], wrong(robot))
    assert finding.kind == "load change"
    assert finding.where == run.source
    assert "at about t = 11" in finding.message


def test_a_tool_in_one_of_two_recordings_is_found():
    robot = chain()
    bare, run = plain(robot, 0), plain(robot, 1)
    finding = load_change([bare, replace(run, torque=run.torque + loaded_torque(robot, run))], wrong(robot))
    assert finding.where == run.source
    assert "kg more than in the recording before" in finding.message


@pytest.mark.parametrize("seed", [0, 1])
def test_recordings_with_one_load_are_left_alone(seed):
    robot = chain()
    run = plain(robot, seed)
    assert load_change([run], wrong(robot)) is None
    at_rest = replace(run, position=0 * run.position, torque=0 * run.torque + 1.0)
    assert load_change([at_rest], wrong(robot)) is None
