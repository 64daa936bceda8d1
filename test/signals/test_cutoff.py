import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import choose_cutoff


def motion(rate, highest, noise, seconds=30.0, seed=0):
    """(N, 2): harmonics of 0.1 Hz up to `highest` with equal acceleration, and up to half of it; white noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(0, seconds, 1 / rate)
    columns = []
    for top in (highest, highest / 2):
        f = np.arange(0.1, top + 0.01, 0.1)
        amplitudes = 1 / (2 * np.pi * f) ** 2
        columns.append(np.sin(2 * np.pi * np.outer(time, f) + rng.uniform(0, 2 * np.pi, len(f))) @ amplitudes)
    q = np.column_stack(columns)
    return q + noise * rng.normal(size=q.shape)


@pytest.mark.parametrize("rate", [100.0, 1000.0, 5000.0])
@pytest.mark.parametrize("noise", [0.0, 1e-5, 1e-4])
def test_finds_the_end_of_the_motion(rate, noise):
    choice = choose_cutoff(motion(rate, 5.0, noise), rate)
    assert choice.bands[0] == pytest.approx(5.0, abs=0.4)
    assert choice.bands[1] == pytest.approx(2.5, abs=0.4)
    assert choice.low_pass.gain(choice.bands[0]) == pytest.approx(0.99)
    assert f"{choice.low_pass.cutoff:.3g} Hz" in choice.reason
    assert "number 1" in choice.reason


def test_a_faster_motion_gives_a_higher_cutoff():
    cutoffs = [choose_cutoff(motion(500.0, top, 1e-5), 500.0).low_pass.cutoff for top in (1, 3, 9)]
    assert cutoffs[0] < 0.5 * cutoffs[1] < 0.25 * cutoffs[2], cutoffs


def test_resting_joint_does_not_count():
    q = motion(200.0, 3.0, 1e-5)
    q[:, 1] = 1e-4 * np.random.default_rng(1).normal(size=len(q))
    choice = choose_cutoff(q, 200.0)
    assert np.isnan(choice.bands[1])
    assert choice.bands[0] == pytest.approx(3.0, abs=0.4)


def test_motion_too_fast_for_the_recording():
    choice = choose_cutoff(motion(20.0, 8.5, 1e-6), 20.0)
    assert choice.low_pass.cutoff == pytest.approx(8.0)
    assert "record faster" in choice.reason


@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_no_motion(noise):
    with pytest.raises(RecordingError, match="no joint moves"):
        choose_cutoff(noise * np.random.default_rng(0).normal(size=(1000, 3)), 100.0)


def test_too_short_or_not_finite():
    with pytest.raises(RecordingError, match="at least 64"):
        choose_cutoff(np.zeros((63, 1)), 100.0)
    with pytest.raises(RecordingError, match="all finite"):
        choose_cutoff(np.full((100, 1), np.nan), 100.0)
