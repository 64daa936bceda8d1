"""Test that joints beyond the tip that move during a recording are reported."""

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
TIME_S = np.linspace(0.0, 10.0, 1001)


def create_recording(**others):
    """Return a recording of the arm; other joints move from zero to the given travel."""
    names = (*MODEL.joint_names, *others)
    arm = np.column_stack([np.sin(TIME_S), np.cos(TIME_S)])
    rest = [np.linspace(0.0, travel, len(TIME_S)) for travel in others.values()]
    position = np.column_stack([arm, *rest])
    velocity = np.gradient(position, TIME_S, axis=0)
    torque = np.column_stack([MODEL.gravity_torque(arm), np.full((len(TIME_S), len(others)), np.nan)])
    return Recording(names, TIME_S, position, velocity, torque, source="run")


def list_moving_hands(*recordings, model=MODEL):
    return [finding for finding in check(recordings, model) if finding.kind == "moving hand"]


@pytest.mark.parametrize(("name", "travel", "unit"), [("slide", 0.006, "m"), ("turn", 0.03, "rad")])
def test_reports_joints_that_move_beyond_the_tip(name, travel, unit):
    (finding,) = list_moving_hands(create_recording(**{name: travel}))
    assert (finding.severity, finding.where) == ("warning", f"run, joint '{name}'")
    assert f"moves by {travel:g} {unit}" in finding.message
    assert "from 'base' to 'b'" in finding.message


@pytest.mark.parametrize("others", [{"slide": 0.004}, {"turn": 0.015}, {"beside": 0.04}, {"stranger": 1.0}, {}])
def test_ignores_joints_at_rest_and_joints_not_carried(others):
    assert list_moving_hands(create_recording(**others)) == []


def test_compares_positions_between_recordings():
    open_ = create_recording(slide=0.0)
    position = open_.position.copy()
    position[:, 2] = 0.03
    closed = Recording(open_.joint_names, TIME_S, position, open_.velocity, open_.torque, source="other")
    assert list_moving_hands(open_) == list_moving_hands(closed) == []
    assert len(list_moving_hands(open_, closed)) == 1


def test_ignores_joints_of_the_chain():
    beyond = RobotModel.from_urdf(ARM, tip="left")
    assert list_moving_hands(create_recording(slide=0.03), model=beyond) == []
