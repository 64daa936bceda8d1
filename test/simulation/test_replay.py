"""Test replays in MuJoCo: torque of a prescribed motion, and motion under a prescribed torque."""

import numpy as np
import pytest
from random_chains import TIP, random_urdf
from urdf_parts import joint, link, robot

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel
from dynid_ros.simulation.mjcf import mjcf_text
from dynid_ros.simulation.replay import Replay, hold_others

INERTIA = 2.0
AXLE = (
    '<robot name="axle"><link name="base"/><link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" '
    f'izz="{INERTIA}" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="turn" type="continuous"><parent '
    'link="base"/><child link="arm"/><axis xyz="0 0 1"/>{}</joint></robot>'
)


def create_axle(dynamics=""):
    """Return the replay of an axle with an inertia of 2 kg m²."""
    urdf = AXLE.format(dynamics)
    return Replay(mjcf_text(urdf, RobotModel.from_urdf(urdf)), ["turn"])


def test_torque_of_a_random_chain_matches_inverse_dynamics():
    arm = RobotModel.from_urdf(random_urdf(np.random.default_rng(2), 4), tip=TIP)
    replay = Replay(mjcf_text(arm.urdf, arm), arm.joint_names)
    motion = np.random.default_rng(0).normal(size=(3, 20, 4))
    np.testing.assert_allclose(replay.torque(*motion), arm.inverse_dynamics(*motion), atol=1e-7)


def test_torque_includes_friction():
    replay = create_axle('<dynamics damping="0.5" friction="3"/>')
    speed = np.array([[1.0], [-1.0], [0.3]])
    computed = replay.torque(np.zeros((3, 1)), speed, np.ones((3, 1)))
    np.testing.assert_allclose(computed[:, 0], INERTIA + 0.5 * speed[:, 0] + 3.0 * np.sign(speed[:, 0]), atol=1e-6)


def test_position_under_increasing_torque_matches_the_closed_form():
    time = np.linspace(5.0, 5.4, 9)
    torque = (time - 5.0)[:, None] * 3.0
    computed = create_axle().position(np.array([0.2]), np.array([-0.1]), time, torque)
    np.testing.assert_allclose(computed, 0.2 - 0.1 * 0.4 + 3.0 / INERTIA * 0.4**3 / 6, atol=1e-3 * 0.4)
    repeated = create_axle().position(np.array([0.2]), np.array([-0.1]), time, torque)
    np.testing.assert_array_equal(computed, repeated)


def test_holds_joints_outside_the_chain():
    arm = RobotModel.from_urdf(random_urdf(np.random.default_rng(3), 4), tip="link_2")
    held = hold_others(arm.urdf, arm.joint_names)
    replay = Replay(mjcf_text(held, arm), arm.joint_names)
    motion = np.random.default_rng(0).normal(size=(3, 5, 2))
    np.testing.assert_allclose(replay.torque(*motion), arm.inverse_dynamics(*motion), atol=1e-7)
    with pytest.raises(ModelError, match="4 joints move in MuJoCo, expected 2"):
        Replay(mjcf_text(arm.urdf, arm), arm.joint_names)


def test_holds_joints_at_the_configured_positions():
    urdf = random_urdf(np.random.default_rng(3), 4)
    held = {"joint_1": 0.7, "joint_3": -0.4}
    arm = RobotModel.from_urdf(urdf, tip=TIP, held=held)
    replay = Replay(mjcf_text(hold_others(urdf, arm.joint_names, held), arm), arm.joint_names)
    motion = np.random.default_rng(0).normal(size=(3, 5, 2))
    np.testing.assert_allclose(replay.torque(*motion), arm.inverse_dynamics(*motion), atol=1e-7)


def test_reports_models_that_mujoco_refuses():
    text = robot(link("base"), link("arm", ""), joint("turn", "base", "arm"))
    with pytest.raises(ModelError, match="MuJoCo refuses it"):
        mjcf_text(text, RobotModel.from_urdf(text))
    with pytest.raises(ModelError, match="MuJoCo refuses the model"):
        Replay("<mujoco><nonsense/></mujoco>", ["turn"])
