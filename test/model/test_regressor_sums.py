"""Weighted sums of regressors, against those of many samples."""

import numpy as np
from paper_arms import cmu_arm
from random_chains import TIP, random_urdf

from dynid_ros.identification.online.online_equations import RegressorSums
from dynid_ros.model import RobotModel


def test_sums_equal_those_of_many_samples():
    kinds = []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(1, 9))), tip=TIP, gravity=rng.normal(size=3) * 8)
        motion = 2 * rng.normal(size=(3, 5, robot.n_joints))
        weights = rng.normal(size=(3, 5))
        expected = np.tensordot(weights, robot.torque_regressor(*motion), axes=1)
        sums = RegressorSums(robot)
        features = np.array([sums.features(*sample) for sample in zip(*motion.tolist(), strict=True)])
        np.testing.assert_allclose(sums(features, weights), expected, rtol=0, atol=1e-10 * np.abs(expected).max())
        kinds += robot.joint_types
    assert kinds.count("prismatic") > 10


def test_sum_with_a_missing_position_is_nan():
    sums = RegressorSums(cmu_arm())
    assert np.isnan(sums(np.array([sums.features([np.nan] * 3, [0.0] * 3, [0.0] * 3)]), np.ones((1, 1)))).any()
