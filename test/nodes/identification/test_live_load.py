"""Joint states thinned by means."""

import numpy as np
import pytest

from dynid_ros.nodes.identification.live_load import LEARNING, SampleMeans


def means(rate, highest, kept=lambda k: True, size=400):
    """Of position t and torque −t."""
    thinned, found = SampleMeans(highest), []
    for k in range(size):
        if kept(k):
            mean = thinned.add(k / rate, [k / rate, 0.0], [-k / rate, 1.0])
            found += [] if mean is None else [mean]
    return thinned, found


@pytest.mark.parametrize(("rate", "size"), [(100, 1), (250, 1), (270, 1), (300, 2), (500, 2), (1000, 4)])
def test_so_many_make_a_mean_that_the_rate_is_kept(rate, size):
    thinned, found = means(rate, 250.0)
    assert thinned.period == pytest.approx(1 / rate)
    assert len(found) == (400 - LEARNING - 1) // size
    steps = np.diff([mean[0] for mean in found])
    assert steps == pytest.approx(np.full(len(steps), size / rate))
    assert 1 / steps[0] < 1.12 * 250


def test_time_position_and_torque_stay_together():
    _, found = means(1000, 250.0)
    for time, position, torque in found:
        assert position == pytest.approx([time, 0.0])
        assert torque == pytest.approx([-time, 1.0])


def test_no_mean_spans_a_gap_and_what_is_missing_is_counted():
    thinned, found = means(1000, 250.0, lambda k: not 202 <= k < 240)
    assert thinned.missing == 38
    times = np.array([mean[0] for mean in found])
    assert np.all((times < 0.202) | (times > 0.240))
    assert np.diff(times[times > 0.240]) == pytest.approx(0.004)


def test_a_clock_that_became_slower_is_learnt_anew():
    thinned, found = means(1000, 250.0, lambda k: k < 200 or k % 10 == 0, size=2000)
    assert thinned.period == pytest.approx(0.01)
    assert np.diff([mean[0] for mean in found[-50:]]) == pytest.approx(0.01)
