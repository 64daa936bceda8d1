"""Gravity identification of simulated arms: MuJoCo's dynamics and friction, noisy sensors; joints that stick."""

import numpy as np
import pytest


@pytest.mark.slow
def test_error_and_coverage():
    pytest.importorskip("mujoco")
    accuracy = pytest.importorskip("benchmarks.gravity_accuracy")
    error, covered = accuracy.run(repetitions=80, motions=2)
    assert error.max() <= 0.005
    assert 0.91 <= covered.mean() <= 0.98


@pytest.mark.slow
def test_intervals_hold_the_truth_where_friction_is_more_than_the_model_has():
    """Of arms that serve nothing else; the whole of it, with its figures, is the benchmark."""
    coverage = pytest.importorskip("benchmarks.gravity_coverage")
    found = coverage.run(tuple(coverage.ARMS), coverage.WAYS[:3], range(100, 104))
    covered = np.concatenate([one.covered for samples in found.values() for one in samples])
    known = np.isfinite(covered)
    assert known.sum() > 250
    assert 0.90 <= np.mean(covered[known]) <= 0.99
    one_pose = [one.error for arm in coverage.ARMS for one in found[arm, coverage.WAYS[0]]]
    together, alone = np.nanmedian(one_pose, axis=0)
    assert together <= 1.1 * alone
