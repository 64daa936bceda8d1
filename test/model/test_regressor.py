"""Rows of the regressor a block at a time, with chosen columns, against Pinocchio."""

import numpy as np
import pytest
from pinocchio_arm import PinocchioArm, example_urdf
from random_chains import TIP, random_urdf

from dynid_ros.model import RobotModel
from dynid_ros.model.regressor import RegressorRows

UNTOUCHED = 7.0


def _expected(robot: RobotModel, motion: np.ndarray) -> np.ndarray:
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    return np.array([arm.torque_regressor(*sample) for sample in motion.transpose(1, 0, 2)])


def _filled(robot: RobotModel, motion: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
    size = robot.parameters.size if columns is None else len(columns)
    matrix = np.full((robot.n_joints, size, motion.shape[1]), UNTOUCHED)
    RegressorRows(robot.chain, robot.gravity, columns).fill(matrix, *motion)
    return matrix.transpose(2, 0, 1)


@pytest.mark.parametrize("seed", range(12))
def test_any_columns_of_random_chains(seed):
    rng = np.random.default_rng(seed)
    robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(1, 8))), tip=TIP, gravity=rng.normal(size=3) * 8)
    motion = rng.normal(size=(3, 4, robot.n_joints))
    expected = _expected(robot, motion)
    size = robot.parameters.size
    for columns in (np.arange(size), np.flatnonzero(rng.random(size) < 0.3), np.array([size - 10]), np.array([], int)):
        link = columns // 10
        found = _filled(robot, motion, columns)
        for joint in range(robot.n_joints):
            np.testing.assert_allclose(
                found[:, joint, link >= joint], expected[:, joint, columns[link >= joint]], rtol=1e-10, atol=1e-10
            )
            assert (found[:, joint, link < joint] == UNTOUCHED).all()


def test_base_columns_are_enough_for_the_torques():
    robot = RobotModel.from_urdf(example_urdf("ur_description/urdf/ur10_robot.urdf"), tip="tool0")
    motion = np.random.default_rng(1).uniform(-2.0, 2.0, (3, 50, 6))
    base = robot.base_parameters()
    rows = np.zeros((6, base.rank, 50))
    RegressorRows(robot.chain, robot.gravity, base.columns).fill(rows, *motion)
    found = rows.transpose(2, 0, 1) @ base.project(robot.parameters)
    np.testing.assert_allclose(found, robot.inverse_dynamics(*motion), rtol=1e-9, atol=1e-9)


def test_blocks_of_any_size_one_after_the_other():
    rng = np.random.default_rng(3)
    robot = RobotModel.from_urdf(random_urdf(rng, 4), tip=TIP)
    rows = RegressorRows(robot.chain, robot.gravity)
    for size in (5, 5, 1, 0, 17):
        motion = rng.normal(size=(3, size, 4))
        matrix = np.zeros((4, 40, size))
        rows.fill(matrix, *motion)
        np.testing.assert_array_equal(matrix.transpose(2, 0, 1), robot.torque_regressor(*motion))


def test_motion_is_left_as_it_was():
    rng = np.random.default_rng(4)
    robot = RobotModel.from_dh([{"a": 0.3, "alpha": 0.5, "d": 0.1, "theta": 0.2, "type": "prismatic"}])
    motion = rng.normal(size=(3, 6, 1))
    before = motion.copy()
    robot.torque_regressor(*motion)
    np.testing.assert_array_equal(motion, before)


def test_positions_at_which_the_tangent_of_half_the_angle_is_infinite():
    robot = RobotModel.from_dh([{"a": 0.3, "alpha": 0.5, "d": 0.1, "theta": 0.2, "type": "revolute"}] * 2)
    q = np.pi * np.array([[1.0, -1.0], [3.0, 5.0], [0.5, -0.5], [101.0, 0.0]])
    shifted = q - 2.0 * np.pi * np.array([[1, 0], [2, 3], [0, 0], [50, 0]])
    rates = np.ones_like(q)
    expected = robot.torque_regressor(shifted, rates, rates)
    np.testing.assert_allclose(robot.torque_regressor(q, rates, rates), expected, atol=1e-12)
    parameters = np.random.default_rng(5).uniform(0.1, 1.0, 20)
    torques = robot.inverse_dynamics(q, rates, rates, parameters)
    np.testing.assert_allclose(robot.torque_regressor(q, rates, rates) @ parameters, torques, rtol=1e-12, atol=1e-12)
