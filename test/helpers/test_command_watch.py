import numpy as np
import pytest
from helpers.command_watch import JITTER, CommandWatch
from std_msgs.msg import Float64MultiArray

RATE, LIMIT = 100.0, 20.0


def watched(times, torques):
    watch = CommandWatch()
    for time, torque in zip(times, torques, strict=True):
        watch(Float64MultiArray(data=[0.0, torque]), {"source_timestamp": round(time * 1e9)})
    return watch


def test_a_ramp_at_the_rate_passes_whatever_the_jitter():
    times = np.arange(20) * 0.01
    watched(times, RATE * times).check(RATE, LIMIT)
    late = times + np.random.default_rng(0).uniform(0.0, 0.9 * JITTER, 20).cumsum() % (0.9 * JITTER)
    watched(np.maximum.accumulate(late), RATE * times).check(RATE, LIMIT)


@pytest.mark.parametrize("step", [5.0, -5.0])
def test_a_step_does_not(step):
    with pytest.raises(AssertionError, match="further than 100 N m/s allow"):
        watched(np.arange(20) * 0.01, [10.0] * 10 + [10.0 + step] * 10).check(RATE, LIMIT, start=[0.0, 10.0])


def test_nor_does_a_ramp_that_is_too_fast_in_small_steps():
    times = np.arange(100) * 0.001
    with pytest.raises(AssertionError, match="allow"):
        watched(times, 1.5 * RATE * times).check(RATE, LIMIT)


def test_nor_does_a_first_torque_but_from_where_one_acts():
    with pytest.raises(AssertionError, match="the first torque is 12"):
        watched([0.0, 0.1], [12.0, 12.0]).check(RATE, LIMIT)
    watched([0.0, 0.1], [12.0, 12.0]).check(RATE, LIMIT, start=[0.0, 12.0])


def test_nor_what_is_not_finite_or_beyond_the_limit():
    with pytest.raises(AssertionError, match="not finite"):
        watched([0.0, 1.0], [0.0, np.nan]).check(RATE, LIMIT)
    with pytest.raises(AssertionError, match="the limit is 20"):
        watched([0.0, 1.0], [0.0, 21.0]).check(RATE, LIMIT)
