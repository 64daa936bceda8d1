"""Test the watch of commanded torques."""

import numpy as np
import pytest
from helpers.command_watch import JITTER_S, CommandWatch
from std_msgs.msg import Float64MultiArray

RATE = 100.0
LIMIT = 20.0


def record_torques(times, torques):
    watch = CommandWatch()
    for time, torque in zip(times, torques, strict=True):
        watch(Float64MultiArray(data=[0.0, torque]), {"source_timestamp": round(time * 1e9)})
    return watch


def test_ramp_at_the_rate_passes_despite_jitter():
    times = np.arange(20) * 0.01
    record_torques(times, RATE * times).check(RATE, LIMIT)
    delayed = times + np.random.default_rng(0).uniform(0.0, 0.9 * JITTER_S, 20).cumsum() % (0.9 * JITTER_S)
    record_torques(np.maximum.accumulate(delayed), RATE * times).check(RATE, LIMIT)


@pytest.mark.parametrize("step", [5.0, -5.0])
def test_step_fails(step):
    with pytest.raises(AssertionError, match="further than 100 N m/s allow"):
        record_torques(np.arange(20) * 0.01, [10.0] * 10 + [10.0 + step] * 10).check(RATE, LIMIT, start=[0.0, 10.0])


def test_ramp_faster_than_the_rate_fails():
    times = np.arange(100) * 0.001
    with pytest.raises(AssertionError, match="allow"):
        record_torques(times, 1.5 * RATE * times).check(RATE, LIMIT)


def test_first_torque_must_continue_the_acting_torque():
    with pytest.raises(AssertionError, match="the first torque is 12"):
        record_torques([0.0, 0.1], [12.0, 12.0]).check(RATE, LIMIT)
    record_torques([0.0, 0.1], [12.0, 12.0]).check(RATE, LIMIT, start=[0.0, 12.0])


def test_nonfinite_or_too_large_torque_fails():
    with pytest.raises(AssertionError, match="not finite"):
        record_torques([0.0, 1.0], [0.0, np.nan]).check(RATE, LIMIT)
    with pytest.raises(AssertionError, match="the limit is 20"):
        record_torques([0.0, 1.0], [0.0, 21.0]).check(RATE, LIMIT)
