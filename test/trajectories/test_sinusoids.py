"""Test sinusoidal motions of single joints and their largest amplitude."""

from itertools import pairwise

import numpy as np
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories import MotionLimits, check_limits
from dynid_ros.trajectories.connection import sinusoid, swing, widest_swing

JOINTS = ("a", "b")
POSE = np.array([0.3, -0.2])


def create_limits(lower=-1.0, upper=1.0, velocity=2.0, acceleration=8.0, **changes):
    return MotionLimits(JOINTS, ("rad", "m"), lower, upper, velocity, acceleration, **changes)


def test_swing_derivatives_match_finite_differences():
    time = np.linspace(0.0, 5 / 0.7, 100001)
    values = swing(0.7, 3, time)
    for value, derivative in pairwise(values):
        np.testing.assert_allclose(
            np.gradient(value, time)[1:-1], derivative[1:-1], atol=1e-3 * np.abs(derivative).max()
        )
    for value in values[:3]:
        np.testing.assert_allclose(value[[0, -1]], 0.0, atol=1e-9)


def test_full_cycles_are_sinusoidal():
    time = np.linspace(1 / 0.7, 4 / 0.7, 501)
    np.testing.assert_allclose(swing(0.7, 3, time)[0], np.sin(2 * np.pi * 0.7 * time), atol=1e-12)


def test_sinusoid_moves_a_single_joint():
    motion = sinusoid(create_limits(), 1, POSE, 0.5, amplitude=0.1, cycles=4)
    assert motion.duration == pytest.approx(12.0)
    position, velocity, _ = motion.at(np.linspace(0.0, 12.0, 5001))
    np.testing.assert_allclose(position[:, 0], 0.3, atol=1e-12)
    assert np.ptp(position[:, 1]) == pytest.approx(0.2, rel=1e-4)
    assert np.abs(velocity[:, 1]).max() == pytest.approx(0.1 * np.pi, rel=0.1)
    for values in (motion.velocity, motion.acceleration):
        np.testing.assert_array_equal(values[[0, -1]], 0.0)
    np.testing.assert_array_equal(motion.position[[0, -1]], [POSE, POSE])


@pytest.mark.parametrize(
    ("frequency", "changes"),
    [(0.05, {}), (0.5, {}), (3.0, {}), (0.5, {"jerk": 10.0}), (0.2, {"velocity": 0.1})],
    ids=["position", "velocity", "acceleration", "jerk", "slow"],
)
def test_widest_swing_reaches_a_limit(frequency, changes):
    limits = create_limits(**changes)
    widest = widest_swing(limits, 0, POSE[0], frequency, 3)
    motion = sinusoid(limits, 0, POSE, frequency, amplitude=widest, cycles=3)
    check_limits(motion, limits)
    position, velocity, acceleration = motion.at(np.linspace(0.0, motion.duration, 20001))
    used = [
        np.abs(position[:, 0] - 0.3).max() / 0.7,
        np.abs(velocity[:, 0]).max() / limits.velocity[0],
        np.abs(acceleration[:, 0]).max() / limits.acceleration[0],
        np.abs(motion.jerk_peaks()[1][:, 0]).max() / limits.jerk[0],
    ]
    assert 0.975 < max(used) <= 1.0 + 1e-9


def test_refuses_swings_beyond_the_limits():
    with pytest.raises(TrajectoryError, match=r"joint 'a' would reach position 1.\d+ rad at .* its limit is 1 rad"):
        sinusoid(create_limits(), 0, POSE, 0.2, amplitude=0.9, cycles=3)
    with pytest.raises(TrajectoryError, match="joint 'a' would reach speed"):
        sinusoid(create_limits(), 0, POSE, 1.0, amplitude=0.6, cycles=3)


def test_amplitude_is_negative_outside_the_limits():
    assert widest_swing(create_limits(), 0, 1.5, 0.2, 3) == pytest.approx(-0.5)
