"""A handful of poses: intervals hold the truth by Pinocchio, which those of the weighted fit alone do not."""

import numpy as np
import pytest
from pinocchio_arm import PinocchioArm

from dynid_ros.identification import GravityIdentification
from dynid_ros.identification.gravity import few_poses
from dynid_ros.identification.samples import Samples
from dynid_ros.model import RobotModel
from dynid_ros.simulation.demo_arm import demo_arm_urdf

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


def scores():
    """Errors of all moments in standard errors, over repetitions."""
    urdf = demo_arm_urdf()
    robot = RobotModel.from_urdf(urdf)
    arm, rng = PinocchioArm(urdf, robot.joint_names, robot.gravity), np.random.default_rng(5)
    found = []
    for _ in range(REPETITIONS):
        result = GravityIdentification(robot).fit_samples(approached(arm, rng))
        truth = result.gravity.project(robot.parameters)
        found.append((result.parameters - truth) / result.standard_errors)
    found = np.array(found)
    return found[np.isfinite(found)]


def test_errors_are_as_large_as_they_are_said_to_be(monkeypatch):
    score = scores()
    assert 0.6 < np.sqrt(np.mean(score**2)) < 1.2
    assert np.mean(np.abs(score) < 2.0) > 0.92
    monkeypatch.setattr(few_poses, "FEW_POSES", 0)
    assert np.sqrt(np.mean(scores() ** 2)) > 1.4


def test_the_mean_of_few_poses_has_its_textbook_error():
    """The jackknife of a mean is its standard error: spread / √N; what is known better than that is widened to it."""
    values = np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    pose, ones = np.arange(5.0)[:, None] * np.ones(6), np.ones(5)
    samples = Samples(pose, pose, values[:, None] * np.ones(6), pose, ones > 0, ones, ones.astype(int))
    found = few_poses.widened(
        np.diag([1e-4, 1e4]), ("mean", "known worse"), samples, lambda kept: {"mean": kept.torque[:, 0].mean()}
    )
    np.testing.assert_allclose(np.sqrt(np.diagonal(found)), [values.std(ddof=1) / np.sqrt(5), 100.0])


@pytest.mark.parametrize("count", [2, few_poses.FEW_POSES + 1])
def test_other_numbers_of_poses_keep_their_errors(count):
    pose = np.linspace(0.0, 2.0, count)[:, None] * np.ones(6)
    ones = np.ones(count)
    samples = Samples(pose, pose, pose, pose, ones > 0, ones, ones.astype(int))
    covariance = np.diag([1.0, 2.0])
    assert few_poses.widened(covariance, ("a", "b"), samples, lambda _: {"a": 0.0, "b": 9.0}) is covariance
