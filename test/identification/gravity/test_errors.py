"""Errors of a handful of poses, by hand and by Pinocchio."""

import numpy as np
from pinocchio_arm import PinocchioArm

from dynid_ros.identification import GravityIdentification
from dynid_ros.identification.gravity.gravity_identification import LinearEstimate
from dynid_ros.identification.static_samples import Samples
from dynid_ros.model import RobotModel
from dynid_ros.simulation.descriptions import demo_arm_urdf

NOISE = np.array([0.1, 0.1, 0.05, 0.01, 0.01, 0.003])
COULOMB = np.array([4.0, 6.0, 2.0, 0.2, 0.2, 0.06])
"""N m."""
POSES, REPETITIONS = 8, 30


def approached(arm, rng):
    """Rests in poses, each come to from both sides."""
    pose = np.repeat(rng.uniform(-1.5, 1.5, (POSES, 6)), 2, axis=0)
    side = np.tile([1.0, -1.0], POSES)[:, None] * np.ones(6)
    torque = np.array([arm.gravity_torque(q) for q in pose]) + COULOMB * side + rng.normal(0.0, NOISE, pose.shape)
    count = len(pose)
    return Samples(
        pose, np.zeros_like(pose), torque, side, np.ones(count, bool), np.arange(count) * 1.0, np.zeros(count, int)
    )


def test_errors_of_few_poses_are_as_large_as_they_are_said_to_be():
    urdf = demo_arm_urdf()
    robot = RobotModel.from_urdf(urdf)
    arm, rng = PinocchioArm(urdf, robot.joint_names, robot.gravity), np.random.default_rng(5)
    score, held = [], []
    for _ in range(REPETITIONS):
        result = GravityIdentification(robot).fit_samples(approached(arm, rng))
        truth = result.gravity.project(robot.parameters)
        score.append((result.parameters - truth) / result.standard_errors)
        low, high = result.confidence_intervals().T
        held.append(((low <= truth) & (truth <= high))[np.isfinite(low)])
    score = np.array(score)
    assert 0.6 < np.sqrt(np.nanmean(score**2)) < 1.3
    assert np.mean(np.concatenate(held)) > 0.93


def mean_of(values, angle):
    count = len(values)
    gain = np.full((1, count), 1 / count)
    return LinearEstimate(np.ones((count, 1)), gain, values - values.mean(), np.zeros(count, int), np.array([1e-3]))


def test_the_mean_of_few_angles_has_its_textbook_error():
    """The jackknife of a mean is its standard error: spread / √N; of angles that come twice, of their means."""
    values = np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    angle, joint = np.arange(5.0), np.zeros(5, int)
    found = mean_of(values, angle).covariance(joint, angle)
    np.testing.assert_allclose(found, [[values.var(ddof=1) / 5]])
    twice = mean_of(np.repeat(values, 2), np.repeat(angle, 2))
    np.testing.assert_allclose(twice.covariance(np.zeros(10, int), np.repeat(angle, 2)), found)
    np.testing.assert_allclose(twice.freedom(), [9.0])


def test_what_one_angle_alone_decides_has_the_error_of_noise():
    matrix = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    gain, right = np.linalg.pinv(matrix), np.array([1.0, 2.0, 3.0, 7.0])
    estimate = LinearEstimate(matrix, gain, right - matrix @ gain @ right, np.array([0, 0, 0, 1]), np.array([1.0, 0.3]))
    found = estimate.covariance(np.array([0, 0, 0, 1]), np.array([0.0, 1.0, 2.0, 0.0]))
    np.testing.assert_allclose(found[1], [0.0, 0.09], atol=1e-12)
    assert found[0, 0] > 0.3


def test_degrees_of_freedom_are_those_of_the_noise_that_counts():
    """Two means of two noises, five and three rows: four and two degrees, and of their sum in between."""
    matrix = np.zeros((8, 3))
    matrix[:5, 0], matrix[5:, 1] = 1.0, 1.0
    gain = np.zeros((3, 8))
    gain[0, :5], gain[1, 5:] = 1 / 5, 1 / 3
    gain[2] = gain[0] + gain[1]
    group = np.repeat([0, 1], [5, 3])
    found = LinearEstimate(matrix, gain, np.zeros(8), group, np.array([1.0, 1.0])).freedom()
    a, b = 1 / 5, 1 / 3
    np.testing.assert_allclose(found, [4.0, 2.0, (a + b) ** 2 / (a**2 / 4 + b**2 / 2)])
