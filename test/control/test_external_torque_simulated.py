"""A small part of `benchmarks.external_torque`, on an arm of its development."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

from benchmarks.external_torque import SOON, measure


@pytest.mark.slow
def test_alarms_are_about_as_many_as_asked_for_and_pushes_are_found():
    found = measure("panda", 0, learn=400.0, work=300.0, pushed=24.0)
    assert 0.3 * found.asked[120.0] <= found.calibrated[120.0] <= 3.0 * found.asked[120.0]
    delays = found.delays[120.0][:, 0]
    assert np.mean(delays[~np.isnan(delays)] <= SOON) >= 0.7
