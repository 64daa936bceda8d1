"""Errors that no innovation shows: of the arm's model, and of the torque sensors' gains."""

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


def _estimate(robot, known, motion, torque, gain_error=0.0):
    online = OnlineIdentification(
        robot, arm=known, noise=np.ones(robot.n_joints), watch=False, torque_gain_error=gain_error
    )
    for sample in zip(*motion, torque, strict=True):
        online.update(*sample)
    return online.estimate()


def _torque(robot, arm, motion):
    links = arm.parameters.copy()
    links[-10:] += transformed(block(1.5), robot.tip_offset)
    return replace(arm, parameters=links).predict(*motion[1:])


def test_errors_of_the_arm_count_as_what_they_do_to_the_load(robot, motion, arm):
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


def test_a_wrong_gain_counts_as_what_it_does_to_the_load(robot, motion, arm):
    """With the arm's model as it would be by the same gains, and with a model of which that is not known."""
    torque, n, error = _torque(robot, arm, motion), robot.n_joints, 0.02
    size = KnownArm(arm).values.size
    rng = np.random.default_rng(1)
    shifts = rng.normal(size=(n, size)) * 0.1
    for known in (KnownArm(arm, np.zeros((size, size)), shifts), KnownArm(arm)):
        exact = _estimate(robot, known, motion, torque)
        counted = _estimate(robot, known, motion, torque, error)
        expected = np.zeros(10)
        for joint in range(n):
            values = np.concatenate([arm.parameters, arm.coefficients])
            wrong = torque.copy()
            if known.gain_shifts is None:  # the arm's torque is off as the sensor is
                wrong[:, joint] += error * (torque - arm.predict(*motion[1:]))[:, joint]
            else:
                wrong[:, joint] *= 1 + error
                values[known.terms] += error * shifts[joint]
            off = replace(arm, parameters=values[: arm.parameters.size], coefficients=values[arm.parameters.size :])
            expected += (_estimate(robot, off, motion, wrong).values - exact.values)[:10] ** 2
        # At standstill the model's own friction has a direction, and on-line it has none.
        np.testing.assert_allclose(np.diag(counted.covariance - exact.covariance)[:10], expected, rtol=0.05)


def test_an_arm_whose_errors_are_known_but_not_how_gains_shift_it(robot, motion, arm):
    """A wrong gain then counts as with an arm of which nothing is known."""
    torque, size = _torque(robot, arm, motion), KnownArm(arm).values.size
    found, expected = (
        _estimate(robot, known, motion, torque, 0.02).standard_errors
        for known in (KnownArm(arm, np.zeros((size, size))), KnownArm(arm))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)
