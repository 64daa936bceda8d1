"""Test motions from rest to rest and the gradients of the design problem."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest
from numerical_gradient import numerical_gradient

from dynid_ros.excitation.fourier_problem import DISTANCE_SCALE_M, DesignProblem, FourierBasis, MotionConstraints
from dynid_ros.information.criteria import CRITERIA
from dynid_ros.information.torque_information import MotionWithJerk, TorqueInformation
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace


def test_problem_gradient_matches_finite_differences():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0)
    basis = FourierBasis(limits, 0.2, 2, 24)
    source = TorqueInformation(robot, limits.velocity, noise=1.0)
    constraints = MotionConstraints(limits, Workspace(robot, floor_height=0.1))
    problem = DesignProblem(basis, source, CRITERIA["condition"], constraints)
    rng = np.random.default_rng(0)
    vector = rng.standard_normal(basis.size)
    _, excess = problem.evaluate(vector, 4.0)
    weights = rng.standard_normal(excess.shape)

    def lagrangian(vector):
        objective, excess = problem.evaluate(vector, 4.0)
        return objective + float(np.sum(weights * excess))

    expected = numerical_gradient(lagrangian, vector)
    problem.evaluate(vector, 4.0)
    np.testing.assert_allclose(problem.gradient(weights), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


ROBOT = RobotModel.from_urdf(planar_arm.urdf())
LIMITS = MotionLimits.of(ROBOT, [4.0, 6.0, 8.0], jerk_limits=100.0)
TORQUE_LIMITS = replace(LIMITS, torque=np.array([np.inf, 40.0, 20.0]))
WORKSPACE = Workspace(ROBOT, floor_height=0.1, clearance=0.05)


def create_rest():
    """Return a motion of one sample at rest and its torque (1, 3)."""
    return MotionWithJerk(*np.zeros((4, 1, 3))), np.zeros((1, 3))


@pytest.mark.parametrize(
    ("field", "joint", "value", "expected"),
    [
        ("position", 1, 2.6, 0.1 / 2.5),
        ("position", 1, -2.6, 0.1 / 2.5),
        ("velocity", 2, -3.3, 0.1),
        ("acceleration", 0, 5.0, 0.25),
        ("jerk", 1, 120.0, 0.2),
    ],
)
def test_excess_is_relative_to_the_limit(field, joint, value, expected):
    constraints = MotionConstraints(TORQUE_LIMITS, Workspace(ROBOT))
    motion, torque = create_rest()
    assert constraints.excess(motion, torque).max() <= 0
    getattr(motion, field)[0, joint] = value
    excess = constraints.excess(motion, torque)[0]
    assert excess.max() == pytest.approx(expected)
    assert constraints.names[int(np.argmax(excess))] == f"{field} of joint 'joint_{joint + 1}'"


def test_excess_of_torque_and_distance():
    constraints = MotionConstraints(TORQUE_LIMITS, WORKSPACE, margin=0.1, clearance=0.02)
    motion, torque = create_rest()
    torque[0] = [1e6, 44.0, 0.0]  # the first joint has no torque limit
    excess = constraints.excess(motion, torque)[0]
    assert excess[: 5 * 3].max() == pytest.approx(44.0 / 40.0 - 0.9)
    distances = WORKSPACE.distances(motion.position).room
    np.testing.assert_allclose(excess[5 * 3 :], (0.02 - distances[0]) / DISTANCE_SCALE_M)
    assert len(constraints.names) == len(excess)


def test_constraint_gradient_matches_finite_differences():
    constraints = MotionConstraints(TORQUE_LIMITS, WORKSPACE, margin=0.05, clearance=0.01)
    rng = np.random.default_rng(0)
    motion = MotionWithJerk(*rng.uniform(-2.0, 2.0, (4, 5, 3)))
    torque = rng.uniform(-50.0, 50.0, (5, 3))
    weights = rng.standard_normal(constraints.excess(motion, torque).shape)
    gradient_by_motion, gradient_by_torque = constraints.gradient(weights)

    def value(*arrays):
        return float(np.sum(constraints.excess(MotionWithJerk(*arrays[:4]), arrays[4]) * weights))

    arrays = [*motion, torque]
    for k, gradient in enumerate([*gradient_by_motion, gradient_by_torque]):
        expected = numerical_gradient(lambda array, k=k: value(*arrays[:k], array, *arrays[k + 1 :]), arrays[k])
        np.testing.assert_allclose(gradient, expected, atol=1e-6)


def create_basis():
    """Return the basis of motions with four harmonics and 40 samples."""
    return FourierBasis(LIMITS, 0.2, 4, 40)


def test_vectors_are_series_from_rest_to_rest():
    basis = create_basis()
    vector = np.random.default_rng(0).standard_normal(basis.size)
    series = basis.series(vector)
    motion = basis.motion(vector)
    times = np.arange(40) / (40 * 0.2)
    for values, expected in zip(motion, (*series.at(times), series.jerk(times)), strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-10 * np.abs(expected).max())
    _, velocity, acceleration = series.at(np.array([0.0, 5.0]))
    assert np.abs(velocity).max() < 1e-9 * np.abs(motion.velocity).max()
    assert np.abs(acceleration).max() < 1e-9 * np.abs(motion.acceleration).max()
    np.testing.assert_allclose(basis.vector(series), vector, atol=1e-12)


def test_unit_vectors_use_exactly_one_limit():
    basis = create_basis()
    for k in range(basis.size):
        motion = basis.motion(np.eye(basis.size)[k])
        used = [
            np.abs(motion.position - (LIMITS.lower + LIMITS.upper) / 2) / ((LIMITS.upper - LIMITS.lower) / 2),
            np.abs(motion.velocity) / LIMITS.velocity,
            np.abs(motion.acceleration) / LIMITS.acceleration,
        ]
        assert np.max(used) == pytest.approx(1.0)
