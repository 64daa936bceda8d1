"""Standard errors of torque sensors with residuals that are correlated along a rotation."""

import numpy as np
import pytest
from scipy.stats import t as student_t
from torque_sensor_experiments import FAST

from benchmarks.torque_sensor_coverage import SensorConditions, judge_intervals
from dynid_ros.estimation.rank import decompose
from dynid_ros.identification.static_samples import Samples
from dynid_ros.identification.torque_sensors.torque_sensor_model import rotation_of, widening

N_ROTATIONS = 12
RESTS_PER_ROTATION = 8


def coverage(correlation: float, runs: int = 400) -> tuple[float, float]:
    """Return the coverage of 95 % intervals of a slope and a constant, and that of white standard errors."""
    rng = np.random.default_rng(0)
    rotation = np.repeat(np.arange(N_ROTATIONS), RESTS_PER_ROTATION)
    covered = []
    white = []
    for _ in range(runs):
        level = rng.normal(size=N_ROTATIONS)[rotation]
        matrix = np.column_stack([np.ones(len(level)), level + 0.3 * rng.normal(size=len(level))])
        error = np.sqrt(correlation) * rng.normal(size=N_ROTATIONS)[rotation]
        error += np.sqrt(1 - correlation) * rng.normal(size=len(level))
        parts = decompose(matrix, 1e-9)
        half = (parts.right.T * parts.inverse) / parts.scale[:, None]
        moved = half @ (parts.left.T @ error)
        plain = np.sqrt((half**2).sum(axis=1))
        factor, dof = widening(parts, error - parts.left @ (parts.left.T @ error), rotation)
        covered.append(np.abs(moved) < student_t.ppf(0.975, dof) * factor * plain)
        white.append(np.abs(moved) < 1.96 * plain)
    return float(np.mean(covered)), float(np.mean(white))


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_intervals_cover_the_truth_for_correlated_residuals(correlation):
    share, white = coverage(correlation)
    assert 0.925 < share < 0.98
    assert correlation == 0.0 or white < 0.8


def test_single_decisive_rotation_does_not_narrow_intervals():
    rng = np.random.default_rng(1)
    matrix = np.zeros((16, 2))
    matrix[:8, 0] = rng.normal(size=8)
    matrix[8:, 1] = rng.normal(size=8)
    parts = decompose(matrix, 1e-9)
    factor, dof = widening(parts, rng.normal(size=16), np.repeat([0, 1], 8))
    assert np.all(factor >= 1)
    assert np.all(dof == 4)


def test_rotations_are_identified_by_the_moving_joint():
    """Joint 1 turns, then joint 2; the last pose belongs to no rotation."""
    position = np.zeros((13, 3))
    position[:6, 0] = np.linspace(0, 1, 6)
    position[6:12] = [0.5, 0.0, 0.7]
    position[6:12, 1] = np.linspace(0, 1, 6)
    position[12] = -1.0
    zeros = np.zeros_like(position)
    still = np.ones(13, bool)
    count = np.arange(13.0)
    samples = Samples(position, zeros, zeros, zeros, still, count, np.zeros(13, int))
    assert rotation_of(samples).tolist() == [0] * 6 + [6] * 6 + [12]


@pytest.mark.slow
def test_intervals_cover_the_truth_under_unmodelled_friction():
    """The arm was used in development; `benchmarks.torque_sensor_coverage` has held-out arms."""
    covered, widths = judge_intervals(SensorConditions("kinova", FAST), range(20))
    assert 0.9 < np.nanmean(covered) < 0.99
    assert np.nanmedian(widths) < 0.02
