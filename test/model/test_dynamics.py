"""Torques of many samples: missing positions, exchange of gravity and parameters, and pickling."""

import pickle

import numpy as np
from paper_arms import cmu_arm
from random_chains import random_tree_urdf

from dynid_ros.model import RobotModel, dynamics


def _tree(seed: int) -> RobotModel:
    return RobotModel.from_urdf(random_tree_urdf(np.random.default_rng(seed), 9), tip="all", gravity=(1.0, -2.0, 9.0))


def test_missing_position_does_not_affect_other_branches():
    tree = _tree(0)
    q = np.random.default_rng(2).normal(size=(3, tree.n_joints))
    joint = tree.n_joints - 1
    q[1, joint] = np.nan
    shares = (tree.chain.moved & tree.chain.moved[joint]).any(axis=1)
    for torque in (tree.gravity_torque(q), tree.inverse_dynamics(q, q, q)):
        assert not shares.all()
        np.testing.assert_array_equal(np.isnan(torque[1]), shares)
        assert np.isfinite(torque[[0, 2]]).all()


def test_gravity_and_parameters_do_not_change_the_code():
    robot = cmu_arm()
    q = np.ones((1, robot.n_joints))
    robot.inverse_dynamics(q, q, q)
    before = dynamics.inverse_dynamics_function.cache_info().misses
    robot.with_gravity(0.5 * robot.gravity).inverse_dynamics(q, q, q, np.ones(robot.parameters.size))
    assert dynamics.inverse_dynamics_function.cache_info().misses == before


def test_evaluated_model_can_be_pickled():
    robot = cmu_arm()
    q = np.ones((2, robot.n_joints))
    torque = robot.inverse_dynamics(q, q, q)
    copy = pickle.loads(pickle.dumps(robot))
    np.testing.assert_array_equal(copy.inverse_dynamics(q, q, q), torque)
