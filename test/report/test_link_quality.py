"""Test residual autocorrelation on processes with a known autocorrelation, and repeated-motion detection."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib import rc_context, rcParams
from scipy.signal import lfilter

from dynid_ros.report.drawing import before_after_plot, split_at_gaps
from dynid_ros.report.link_quality import LinkQuality, ResidualCorrelation, TorqueComparison
from dynid_ros.signals import LowPass, Motion

RATE = 200.0
CUTOFF = 7.0


def compare_with_zero(error, time, recording="run", position=None):
    """Return a comparison whose measured torque is `error` and whose predictions are zero."""
    motion = Motion(*(np.zeros_like(error) if position is None else position for _ in range(3)))
    return TorqueComparison(recording, time, motion, error, np.zeros_like(error), np.zeros_like(error), RATE)


def simulate_filtered_noise(seconds, joints=40):
    """Return a comparison of white sensor noise, filtered and decimated like the equations."""
    low_pass = LowPass(CUTOFF, RATE)
    noise = np.random.default_rng(0).normal(size=(int(seconds * RATE), joints))
    time = np.arange(len(noise)) / RATE
    return compare_with_zero(low_pass.reduce(noise), low_pass.reduce(time))


def test_filtered_white_noise_lies_in_the_band():
    correlation = ResidualCorrelation.from_comparisons(CUTOFF, [simulate_filtered_noise(120)])
    inside = np.abs(correlation.values - correlation.noise[:, None])[5:] < correlation.band
    assert 0.93 < inside.mean() < 0.97, "of 40 joints; lags next to zero vary less"
    assert correlation.is_noise.mean() > 0.8
    assert np.nanmedian(correlation.memory) < 0.15


def test_first_order_process_has_exponential_autocorrelation():
    step = 0.035
    time_constant = 0.5
    time = step * np.arange(20000)
    decay = np.exp(-step / time_constant)
    error = lfilter([1.0], [1.0, -decay], np.random.default_rng(1).normal(size=(len(time), 1)), axis=0)
    correlation = ResidualCorrelation.from_comparisons(CUTOFF, [compare_with_zero(error, time)])
    assert correlation.values[:, 0] == pytest.approx(np.exp(-correlation.lag / time_constant), abs=0.05)
    assert not correlation.is_noise[0]
    assert correlation.memory[0] > 1.0


def test_gaps_do_not_change_the_autocorrelation():
    step = 0.035
    length = 400
    time = np.concatenate([step * np.arange(length), 100 + step * np.arange(length)])
    error = np.tile(np.sin(2 * np.pi * np.arange(length) / 57)[:, None], (2, 1))
    assert [(rows.start, rows.stop) for rows in split_at_gaps(time)] == [(0, length), (length, 2 * length)]
    both = ResidualCorrelation.from_comparisons(CUTOFF, [compare_with_zero(error, time)])
    first = ResidualCorrelation.from_comparisons(CUTOFF, [compare_with_zero(error[:length], time[:length])])
    assert both.values == pytest.approx(first.values, abs=1e-9)


def test_autocorrelation_of_zero_error_is_nan():
    correlation = ResidualCorrelation.from_comparisons(
        CUTOFF, [compare_with_zero(np.zeros((200, 1)), 0.035 * np.arange(200))]
    )
    assert np.isnan(correlation.values).all()


def test_warns_of_narrow_intervals_if_correlation_outlasts_blocks():
    time = 0.035 * np.arange(2000)
    rng = np.random.default_rng(2)
    slow = np.repeat(rng.normal(size=(2000 // 40, 1)), 40, axis=0)  # constant for 1.4 s
    correlation = ResidualCorrelation.from_comparisons(CUTOFF, [compare_with_zero(slow, time)])
    short, long = (" ".join(correlation.sentences(["elbow"], block)) for block in (0.5, 60.0))
    assert "residuals of elbow stay correlated for longer" in short
    assert "too narrow" not in long
    assert "not sensor noise" in long


def test_detects_validation_with_the_fitted_motion():
    rng = np.random.default_rng(3)
    time = 0.035 * np.arange(600)

    def draw_motion(seed):
        phase = np.random.default_rng(seed).uniform(0, 6, (5, 1, 3))
        return np.sum(np.sin(np.arange(1, 6)[:, None, None] * time[None, :, None] + phase), axis=0)

    def draw_run(seed):
        position = draw_motion(seed) + rng.normal(0, 1e-3, (600, 3))
        return compare_with_zero(rng.normal(size=(600, 3)), time, f"run {seed}", position)

    joints = ("a", "b", "c")
    assert LinkQuality.from_comparisons(joints, [draw_run(0)], [draw_run(0)]).repeats_fit
    assert not LinkQuality.from_comparisons(joints, [draw_run(0)], [draw_run(1)]).repeats_fit
    assert not LinkQuality.from_comparisons(joints, [draw_run(0)], []).repeats_fit


def test_noise_autocorrelation_covers_all_lags_at_10_khz():
    error = np.random.default_rng(0).normal(size=(1200, 2))
    fast = replace(compare_with_zero(error, 0.02 * np.arange(1200)), rate=10_000.0)
    correlation = ResidualCorrelation.from_comparisons(CUTOFF, [fast])
    assert len(correlation.noise) == len(correlation.values) == len(correlation.lag)


def test_plots_ignore_and_keep_the_callers_matplotlib_settings():
    values = np.array([1.0, 2.0])
    with rc_context({"font.size": 17.0}):
        picture = before_after_plot(["a", "b"], values, values, "torque (N m)")
        assert rcParams["font.size"] == 17.0
    assert before_after_plot(["a", "b"], values, values, "torque (N m)") == picture
