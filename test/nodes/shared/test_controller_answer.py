"""What the parameters of a controller say of what it does."""

import pytest

pytest.importorskip("rclpy")

from dynid_ros.nodes.shared.controllers import QUERIED, ControllerAnswer

JOINTS = {"joints": ["joint_2", "joint_1"], "command_interfaces": ["position", "effort"]}


def answer(**values):
    tolerances = {f"constraints.{joint}.trajectory": None for joint in JOINTS["joints"]}
    return ControllerAnswer.from_parameters("jtc", dict.fromkeys(QUERIED) | tolerances | JOINTS | values)


def test_what_is_not_declared_is_not_so():
    said = answer()
    assert said.claims == (("joint_2", "joint_1"), ("position", "effort"), True)
    assert not said.interpolates_from_desired
    assert not said.restores_last_command
    assert said.tolerant


@pytest.mark.parametrize(("timeout", "goal_time", "effective"), [(0.5, 0.0, 0.5), (0.5, 0.5, 0.0), (0.5, 0.6, 0.0)])
def test_a_timeout_counts_only_beyond_the_goal_time(timeout, goal_time, effective):
    said = answer(cmd_timeout=timeout, **{"constraints.goal_time": goal_time})
    assert said.command_timeout == effective


@pytest.mark.parametrize("name", ["interpolate_from_desired_state", "open_loop_control"])
def test_a_trajectory_begins_at_the_last_command_by_either_name(name):
    assert answer(**{name: True}).interpolates_from_desired


def test_activation_restores_the_last_command():
    assert answer(set_last_command_interface_value_as_state_on_activation=True).restores_last_command


def test_claims_do_not_change_with_what_may_be_set():
    assert answer(cmd_timeout=0.5, **{"constraints.joint_1.trajectory": 0.1}).claims == answer().claims
    assert answer(joints=["joint_1", "joint_2"]).claims != answer().claims
