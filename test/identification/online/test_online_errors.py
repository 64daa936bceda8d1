"""Test errors that innovations cannot show: errors of the arm's model and of torque sensor gains."""

from dataclasses import replace

import numpy as np
import pytest
from online_experiment import block, moves

from dynid_ros.identification import OnlineIdentification
from dynid_ros.identified.links import KnownArm, LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import transformed
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.simulation.descriptions import demo_arm_urdf

FRICTION = FrictionModel(JointFriction(offset=True))


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return RobotModel.from_urdf(demo_arm_urdf())


@pytest.fixture(scope="module")
def motion(robot):
    return moves(robot, 8.0, 50.0, np.random.default_rng(0), 0.6)


@pytest.fixture(scope="module")
def arm(robot):
    return LinkModel(robot, robot.parameters, FRICTION, np.ones(3 * robot.n_joints), LinkSignals(10.0, 10.0, ""))


def _estimate(robot, known_arm, motion, torque, gain_error=0.0):
    online = OnlineIdentification(
        robot, arm=known_arm, noise=np.ones(robot.n_joints), watch=False, torque_gain_error=gain_error
    )
    for sample in zip(*motion, torque, strict=True):
        online.update(*sample)
    return online.estimate()


def _torque(robot, arm, motion):
    links = arm.parameters.copy()
    links[-10:] += transformed(block(1.5), robot.tip_offset)
    return replace(arm, parameters=links).predict(*motion[1:])


def test_covariance_includes_errors_of_the_arm(robot, motion, arm):
    torque = _torque(robot, arm, motion)
    size = KnownArm(arm).values.size
    exact = _estimate(robot, KnownArm(arm, np.zeros((size, size)), np.zeros((robot.n_joints, size))), motion, torque)
    for error, place in ((0.01, 0), (0.05, size - 2)):
        covariance = np.zeros((size, size))
        covariance[place, place] = error**2
        counted = _estimate(robot, KnownArm(arm, covariance, np.zeros((robot.n_joints, size))), motion, torque)
        values = np.concatenate([arm.parameters, arm.coefficients])
        values[KnownArm(arm).terms[place]] += error
        off = replace(arm, parameters=values[: arm.parameters.size], coefficients=values[arm.parameters.size :])
        moved = _estimate(robot, off, motion, torque).values - exact.values
        np.testing.assert_allclose(
            np.diag(counted.covariance - exact.covariance)[:10], moved[:10] ** 2, rtol=1e-3, atol=1e-12
        )


def test_covariance_includes_gain_errors(robot, motion, arm):
    """The effect of gains on the arm's model may be known or unknown."""
    torque = _torque(robot, arm, motion)
    n = robot.n_joints
    error = 0.02
    size = KnownArm(arm).values.size
    rng = np.random.default_rng(1)
    shifts = rng.normal(size=(n, size)) * 0.1
    for arm_estimate in (KnownArm(arm, np.zeros((size, size)), shifts), KnownArm(arm)):
        exact = _estimate(robot, arm_estimate, motion, torque)
        counted = _estimate(robot, arm_estimate, motion, torque, error)
        expected = np.zeros(10)
        for joint in range(n):
            values = np.concatenate([arm.parameters, arm.coefficients])
            wrong = torque.copy()
            if arm_estimate.gain_shifts is None:  # the error of the arm's torque is that of the sensor
                wrong[:, joint] += error * (torque - arm.predict(*motion[1:]))[:, joint]
            else:
                wrong[:, joint] *= 1 + error
                values[arm_estimate.terms] += error * shifts[joint]
            off = replace(arm, parameters=values[: arm.parameters.size], coefficients=values[arm.parameters.size :])
            expected += (_estimate(robot, off, motion, wrong).values - exact.values)[:10] ** 2
        # At standstill, friction of the model has a direction, and online it has none.
        np.testing.assert_allclose(np.diag(counted.covariance - exact.covariance)[:10], expected, rtol=0.05)


def test_unknown_gain_shifts_count_as_an_unknown_arm(robot, motion, arm):
    """The errors of the arm are known, but not the effect of the gains on it."""
    torque = _torque(robot, arm, motion)
    size = KnownArm(arm).values.size
    with_errors, without = (
        _estimate(robot, known_arm, motion, torque, 0.02).standard_errors
        for known_arm in (KnownArm(arm, np.zeros((size, size))), KnownArm(arm))
    )
    np.testing.assert_allclose(with_errors, without, rtol=1e-9)
