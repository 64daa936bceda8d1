"""Joints beyond the tip that move while the arm is recorded."""

import numpy as np
import pytest
from urdf_parts import joint, link, robot

from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording, check

SLIDE = '<limit lower="0" upper="0.04" velocity="1" effort="1"/>'
ARM = robot(
    *map(link, ("base", "a", "b", "palm", "left", "thumb", "rail")),
    joint("joint_1", "base", "a"),
    joint("joint_2", "a", "b", axis="0 1 0"),
    joint("mount", "b", "palm", "fixed"),
    joint("slide", "palm", "left", "prismatic", SLIDE),
    joint("turn", "left", "thumb"),
    joint("beside", "base", "rail", "prismatic", SLIDE),
)
MODEL = RobotModel.from_urdf(ARM, tip="b")
TIME = np.linspace(0.0, 10.0, 1001)


def recorded(**others):
    """The arm swings; other joints go from zero to what is given."""
    names = (*MODEL.joint_names, *others)
    arm = np.column_stack([np.sin(TIME), np.cos(TIME)])
    rest = [np.linspace(0.0, travel, len(TIME)) for travel in others.values()]
    position = np.column_stack([arm, *rest])
    velocity = np.gradient(position, TIME, axis=0)
    torque = np.column_stack([MODEL.gravity_torque(arm), np.full((len(TIME), len(others)), np.nan)])
    return Recording(names, TIME, position, velocity, torque, source="run")


def moving(*recordings, model=MODEL):
    return [finding for finding in check(recordings, model) if finding.kind == "moving hand"]


@pytest.mark.parametrize(("name", "travel", "unit"), [("slide", 0.006, "m"), ("turn", 0.03, "rad")])
def test_a_joint_beyond_the_tip_that_moves_is_reported(name, travel, unit):
    (finding,) = moving(recorded(**{name: travel}))
    assert (finding.severity, finding.where) == ("warning", f"run, joint '{name}'")
    assert f"moves by {travel:g} {unit}" in finding.message
    assert "from 'base' to 'b'" in finding.message


@pytest.mark.parametrize("others", [{"slide": 0.004}, {"turn": 0.015}, {"beside": 0.04}, {"stranger": 1.0}, {}])
def test_what_rests_or_is_not_carried_is_not(others):
    assert moving(recorded(**others)) == []


def test_recordings_are_looked_at_together():
    open_ = recorded(slide=0.0)
    position = open_.position.copy()
    position[:, 2] = 0.03
    closed = Recording(open_.joint_names, TIME, position, open_.velocity, open_.torque, source="other")
    assert moving(open_) == moving(closed) == []
    assert len(moving(open_, closed)) == 1


def test_a_tip_beyond_it_takes_it_in():
    beyond = RobotModel.from_urdf(ARM, tip="left")
    assert moving(recorded(slide=0.03), model=beyond) == []
