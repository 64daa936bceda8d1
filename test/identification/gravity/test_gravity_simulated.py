"""Gravity identification of the simulated demo arm: MuJoCo's dynamics and friction, noisy sensors."""

import pytest

pytest.importorskip("mujoco")
accuracy = pytest.importorskip("benchmarks.gravity_accuracy")


@pytest.mark.slow
def test_error_and_coverage():
    error, covered = accuracy.run(repetitions=80, motions=2)
    assert error.max() <= 0.005
    assert 0.91 <= covered.mean() <= 0.98
