"""Standard errors under residuals are correlated all along a rotation."""

import numpy as np
import pytest
from scipy.stats import t as student_t
from torque_sensor_experiments import FAST

from benchmarks.torque_sensor_coverage import SensorConditions, judge_intervals
from dynid_ros.estimation.rank import decompose
from dynid_ros.identification.static_samples import Samples
from dynid_ros.identification.torque_sensors.torque_sensor_model import rotation_of, widening

ROTATIONS, RESTS = 12, 8


def covered(alike: float, runs: int = 400) -> tuple[float, float]:
    """How often 95 % intervals of a slope and a constant hold, and what white errors would have made of it."""
    rng = np.random.default_rng(0)
    rotation = np.repeat(np.arange(ROTATIONS), RESTS)
    found, white = [], []
    for _ in range(runs):
        level = rng.normal(size=ROTATIONS)[rotation]
        matrix = np.column_stack([np.ones(len(level)), level + 0.3 * rng.normal(size=len(level))])
        error = np.sqrt(alike) * rng.normal(size=ROTATIONS)[rotation]
        error += np.sqrt(1 - alike) * rng.normal(size=len(level))
        parts = decompose(matrix, 1e-9)
        half = (parts.right.T * parts.inverse) / parts.scale[:, None]
        moved, plain = half @ (parts.left.T @ error), np.sqrt((half**2).sum(axis=1))
        factor, dof = widening(parts, error - parts.left @ (parts.left.T @ error), rotation)
        found.append(np.abs(moved) < student_t.ppf(0.975, dof) * factor * plain)
        white.append(np.abs(moved) < 1.96 * plain)
    return float(np.mean(found)), float(np.mean(white))


@pytest.mark.parametrize("alike", [0.0, 0.3])
def test_intervals_hold_whether_rests_are_alike_or_not(alike):
    share, white = covered(alike)
    assert 0.925 < share < 0.98
    assert alike == 0.0 or white < 0.8


def test_a_rotation_that_alone_decides_narrows_nothing():
    rng = np.random.default_rng(1)
    matrix = np.zeros((16, 2))
    matrix[:8, 0], matrix[8:, 1] = rng.normal(size=(2, 8))
    parts = decompose(matrix, 1e-9)
    factor, dof = widening(parts, rng.normal(size=16), np.repeat([0, 1], 8))
    assert np.all(factor >= 1)
    assert np.all(dof == 4)


def test_rotations_are_told_by_what_moves():
    """Joint 1 turns, then joint 2; last a pose of its own."""
    position = np.zeros((13, 3))
    position[:6, 0] = np.linspace(0, 1, 6)
    position[6:12] = [0.5, 0.0, 0.7]
    position[6:12, 1] = np.linspace(0, 1, 6)
    position[12] = -1.0
    zeros = np.zeros_like(position)
    still, count = np.ones(13, bool), np.arange(13.0)
    samples = Samples(position, zeros, zeros, zeros, still, count, np.zeros(13, int))
    assert rotation_of(samples).tolist() == [0] * 6 + [6] * 6 + [12]


@pytest.mark.slow
def test_intervals_hold_under_friction_that_is_not_fitted():
    """A small part of `python -m benchmarks.torque_sensor_coverage`, on an arm that this was developed with."""
    found, widths = judge_intervals(SensorConditions("kinova", FAST), range(20))
    assert 0.9 < np.nanmean(found) < 0.99
    assert np.nanmedian(widths) < 0.02
