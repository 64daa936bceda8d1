"""Motions from rest to rest: the series are Fourier series, the gradient is that of differences."""

import numpy as np
import planar_arm
import pytest
from numerical_gradient import numerical_gradient

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.fourier_problem import FourierBasis
from dynid_ros.information.torque_information import MotionWithJerk
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits

ROBOT = RobotModel.from_urdf(planar_arm.urdf())
LIMITS = MotionLimits.of(ROBOT, [4.0, 6.0, 8.0], jerk_limits=100.0)


def basis(harmonics=4, samples=40):
    return FourierBasis(LIMITS, 0.2, harmonics, samples)


def test_every_vector_is_a_series_from_rest_to_rest():
    space = basis()
    vector = np.random.default_rng(0).standard_normal(space.size)
    series = space.series(vector)
    motion = space.motion(vector)
    times = np.arange(40) / (40 * 0.2)
    for found, expected in zip(motion, (*series.at(times), series.jerk(times)), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())
    _, velocity, acceleration = series.at(np.array([0.0, 5.0]))
    assert np.abs(velocity).max() < 1e-9 * np.abs(motion.velocity).max()
    assert np.abs(acceleration).max() < 1e-9 * np.abs(motion.acceleration).max()
    np.testing.assert_allclose(space.vector(series), vector, atol=1e-12)


def test_no_series_from_rest_to_rest_is_left_out():
    space = basis(harmonics=3)
    jacobian = np.array(
        [np.ravel(space.motion(unit).position - space.motion(0 * unit).position) for unit in np.eye(space.size)]
    )
    assert np.linalg.matrix_rank(jacobian) == space.size == 3 * (2 * 3 - 1)


def test_one_is_what_a_function_may_take():
    space = basis()
    for k in range(space.size):
        motion = space.motion(np.eye(space.size)[k])
        used = [
            np.abs(motion.position - (LIMITS.lower + LIMITS.upper) / 2) / ((LIMITS.upper - LIMITS.lower) / 2),
            np.abs(motion.velocity) / LIMITS.velocity,
            np.abs(motion.acceleration) / LIMITS.acceleration,
        ]
        assert np.max(used) == pytest.approx(1.0)


def test_gradient():
    space = basis()
    rng = np.random.default_rng(1)
    weights = MotionWithJerk(*rng.standard_normal((4, 40, 3)))

    def value(vector):
        return sum(float(np.sum(a * b)) for a, b in zip(weights, space.motion(vector), strict=True))

    vector = rng.standard_normal(space.size)
    np.testing.assert_allclose(space.gradient(weights), numerical_gradient(value, vector), rtol=1e-6)


@pytest.mark.parametrize(
    ("frequency", "harmonics", "message"),
    [(0.2, 1, "harmonics is 1; it must be at least 2"), (0.0, 4, "base_frequency is 0 Hz"), (np.nan, 4, "is nan Hz")],
)
def test_senseless_settings(frequency, harmonics, message):
    with pytest.raises(TrajectoryError, match=message):
        FourierBasis(LIMITS, frequency, harmonics, 40)
