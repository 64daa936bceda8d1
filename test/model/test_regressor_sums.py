"""Sums of regressors against those of many samples, and Pinocchio's."""

import numpy as np
import pytest
from paper_arms import cmu_arm, cylindrical_robot
from random_chains import TIP, random_urdf

from dynid_ros.identification.online.online_equations import RegressorSums
from dynid_ros.model import RobotModel


def _features(sums: RegressorSums, motion: np.ndarray) -> np.ndarray:
    return np.array([sums.features(*sample) for sample in zip(*motion.tolist(), strict=True)])


def _assert_equal(robot: RobotModel, rng: np.random.Generator) -> None:
    motion = 2 * rng.normal(size=(3, 5, robot.n_joints))
    weights = rng.normal(size=(3, 5))
    expected = np.tensordot(weights, robot.torque_regressor(*motion), axes=1)
    sums = RegressorSums(robot)
    found = sums(_features(sums, motion), weights)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_random_chains():
    kinds = []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(1, 9))), tip=TIP, gravity=rng.normal(size=3) * 8)
        _assert_equal(robot, rng)
        kinds += robot.joint_types
    assert kinds.count("prismatic") > 10


@pytest.mark.parametrize("robot", [cylindrical_robot(), cmu_arm()], ids=["cylindrical", "cmu"])
def test_dh_tables(robot):
    _assert_equal(robot, np.random.default_rng(0))


def test_nan_stays_nan():
    sums = RegressorSums(cmu_arm())
    assert np.isnan(sums(np.array([sums.features([np.nan] * 3, [0.0] * 3, [0.0] * 3)]), np.ones((1, 1)))).any()
