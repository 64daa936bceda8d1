"""Gradients of the regressor against differences of Pinocchio's."""

import numpy as np
import pytest
from numerical_gradient import numerical_gradient
from pinocchio_arm import PinocchioArm, example_urdf
from random_chains import TIP, random_urdf

from dynid_ros.model import RobotModel
from dynid_ros.model.regressor import DifferentiableRegressor


def motions(rng, n_samples, n):
    return [rng.uniform(-1.5, 1.5, (n_samples, n)) for _ in range(3)]


def check(robot, truth, rng):
    """All three gradients of a random function of the regressor, at a few samples."""
    motion = motions(rng, 3, robot.n_joints)
    regressor = DifferentiableRegressor(robot.chain, robot.gravity)
    matrix = regressor.matrix(*motion)
    weights = rng.standard_normal(matrix.shape)
    gradients = regressor.gradient(weights)

    def value(position, velocity, acceleration):
        rows = [truth.torque_regressor(*sample) for sample in zip(position, velocity, acceleration, strict=True)]
        return float(np.sum(np.stack(rows, axis=-1) * weights))

    for k, found in enumerate(gradients):
        expected = numerical_gradient(lambda array, k=k: value(*motion[:k], array, *motion[k + 1 :]), motion[k])
        np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("path", ["ur_description/urdf/ur10_robot.urdf", "panda_description/urdf/panda.urdf"])
def test_arms(path):
    text = example_urdf(path).read_text()
    robot = RobotModel.from_urdf(text, tip="tool0" if "ur10" in path else "panda_hand")
    check(robot, PinocchioArm(text, robot.joint_names, robot.gravity), np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(6))
def test_random_chains(seed):
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, 4, prismatic_share=0.4)
    robot = RobotModel.from_urdf(text, tip=TIP)
    check(robot, PinocchioArm(text, robot.joint_names, robot.gravity), rng)


def test_chosen_columns_are_those_of_all():
    rng = np.random.default_rng(1)
    robot = RobotModel.from_urdf(random_urdf(rng, 4), tip=TIP)
    columns = np.array([3, 7, 9, 12, 24, 29, 38])
    motion = motions(rng, 5, 4)
    every = DifferentiableRegressor(robot.chain, robot.gravity)
    some = DifferentiableRegressor(robot.chain, robot.gravity, columns)
    matrix = every.matrix(*motion)
    np.testing.assert_array_equal(some.matrix(*motion), matrix[:, columns])
    np.testing.assert_array_equal(matrix, robot.torque_regressor(*motion).transpose(1, 2, 0))
    weights = np.zeros_like(matrix)
    weights[:, columns] = rng.standard_normal((4, len(columns), 5))
    for a, b in zip(every.gradient(weights), some.gradient(weights[:, columns]), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_gradient_costs_a_few_evaluations_however_many_joints(monkeypatch):
    """By the multiplications that einsum and matmul are asked for, not by the clock."""
    counted = {"steps": 0}
    einsum = np.einsum

    def counting(subscripts, *operands, **options):
        counted["steps"] += 1
        return einsum(subscripts, *operands, **options)

    monkeypatch.setattr(np, "einsum", counting)
    steps = []
    for n in (3, 6):
        robot = RobotModel.from_urdf(random_urdf(np.random.default_rng(n), n), tip=TIP)
        regressor = DifferentiableRegressor(robot.chain, robot.gravity)
        counted["steps"] = 0
        matrix = regressor.matrix(*motions(np.random.default_rng(0), 10, n))
        forward, counted["steps"] = counted["steps"], 0
        regressor.gradient(np.ones_like(matrix))
        steps.append(counted["steps"] / forward)
    assert max(steps) < 4  # differences would take 3 n + 1 evaluations
