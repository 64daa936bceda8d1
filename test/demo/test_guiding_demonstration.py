"""Test the verdict on hand guiding: passed for an arm that follows and stays, failed otherwise."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.demo.floating_acts import GuidedMotion, judge_guiding, link_origins
from dynid_ros.model import RobotModel

ROBOT = RobotModel.from_urdf(planar_arm.urdf())
LINK = ROBOT.link_names[-1]
LEAD_INTERVALS_S = [(1.0, 2.0), (4.2, 5.2)]


@pytest.fixture(name="guided")
def fixture_guided():
    """Return a motion in which only joint 1 rotates, by 0.4 rad in each lead."""
    time = np.arange(0.0, 7.4, 0.01)
    angle = sum(0.4 * np.clip(time - start, 0, 1) for start, _ in LEAD_INTERVALS_S)
    position = np.stack([angle, 0.3 + 0 * time, -0.2 + 0 * time], axis=1)
    force = 20.0 * sum((time > start) & (time < end) for start, end in LEAD_INTERVALS_S)
    return GuidedMotion(ROBOT, LINK, time, position, force, LEAD_INTERVALS_S)


def test_arm_that_follows_and_stays_passes(guided):
    act = judge_guiding(guided)
    reach = np.linalg.norm(link_origins(ROBOT, LINK, guided.position)[0, :2])
    assert act.passed, act.sentences
    np.testing.assert_allclose(guided.distances, 2 * reach * np.sin(0.2), rtol=1e-2)
    assert guided.drifts.max() < 1e-9
    assert guided.shortest_rest == pytest.approx(2.2, abs=0.02)
    assert len(act.pictures) == 2


def add_drift(guided):
    angle = guided.position.copy()
    angle[:, 0] += 0.02 * np.clip(guided.time - 6.0, 0, 1)
    return replace(guided, position=angle)


def hold_still(guided):
    return replace(guided, position=np.repeat(guided.position[:1], len(guided.time), axis=0))


def speed_up(guided):
    return replace(guided, time=guided.time / 3, leads=[(start / 3, end / 3) for start, end in guided.leads])


@pytest.mark.parametrize("change", [add_drift, hold_still, speed_up])
def test_other_motions_fail(guided, change):
    assert not judge_guiding(change(guided)).passed
