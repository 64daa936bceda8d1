"""Test the model of low-pass and delay in drivers, and its text form."""

import numpy as np
import pytest
from scipy.signal import butter, freqz, sosfilt, sosfilt_zi

from dynid_ros.errors import RecordingError
from dynid_ros.signals.driver_filter import AUTO, DriverFilter, DriverPassage, driver_filter

RATE_HZ = 100.0
CAUSAL = (DriverFilter(5.0, order=1), DriverFilter(5.0, order=2), DriverFilter(5.0, order=2, delay=0.02))
ZERO_PHASE = (DriverFilter(5.0, order=1, zero_phase=True), DriverFilter(5.0, order=4, zero_phase=True))


@pytest.mark.parametrize("kind", CAUSAL)
def test_causal_filters_start_at_rest_and_ignore_the_future(kind):
    values = 3.0 + np.random.default_rng(0).normal(size=(200, 2))
    long = np.concatenate([np.repeat(values[:1], 2000, axis=0), values])
    np.testing.assert_allclose(kind.filter(values, RATE_HZ), kind.filter(long, RATE_HZ)[2000:], atol=1e-9)
    np.testing.assert_allclose(kind.filter(values[:50], RATE_HZ), kind.filter(values, RATE_HZ)[:50], atol=1e-12)


@pytest.mark.parametrize("kind", CAUSAL + ZERO_PHASE)
def test_constants_pass_unchanged(kind):
    np.testing.assert_allclose(kind.filter(np.full((400, 2, 3), 7.0), RATE_HZ), 7.0, rtol=1e-9)


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("frequency", [1.0, 5.0, 20.0])
def test_gain_and_phase_match_butterworth(order, frequency):
    time = np.arange(4000) / RATE_HZ
    tone = np.sin(2 * np.pi * frequency * time)[:, None]
    filtered = DriverFilter(5.0, order=order, delay=0.01).filter(tone, RATE_HZ)[:, 0]
    response = freqz(*butter(order, 5.0, fs=RATE_HZ), worN=[frequency], fs=RATE_HZ)[1][0]
    delayed = time[2000:] - 0.01
    expected = np.imag(response * np.exp(2j * np.pi * frequency * delayed))
    np.testing.assert_allclose(filtered[2000:], expected, atol=1e-6)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("cutoff", [0.5, 5.0, 0.45 * RATE_HZ])
def test_low_pass_matches_scipy_from_rest(order, cutoff):
    values = np.cumsum(np.random.default_rng(order).normal(size=(500, 2)), axis=0)
    sections = butter(order, cutoff, fs=RATE_HZ, output="sos")
    expected = sosfilt(sections, values, axis=0, zi=sosfilt_zi(sections)[:, :, None] * values[:1])[0]
    assert np.abs(DriverFilter(cutoff, order).filter(values, RATE_HZ) - expected).max() < 1e-9 * np.abs(values).max()


def test_extremely_slow_filters_are_finite():
    values = np.random.default_rng(0).normal(size=(100, 2))
    assert np.isfinite(DriverFilter(1e-9, 4).filter(values, RATE_HZ)).all()


def test_fractional_delays_interpolate_linearly():
    ramp = np.arange(100.0)[:, None]
    for delay in (0.004, 0.037, -0.004, -0.037):
        filtered = DriverFilter(delay=delay).filter(ramp, RATE_HZ)
        np.testing.assert_allclose(filtered[10:-10, 0], ramp[10:-10, 0] - delay * RATE_HZ, atol=1e-9)


@pytest.mark.parametrize("kind", [*CAUSAL, *ZERO_PHASE, DriverFilter(delay=0.03)])
def test_steps_settle_to_one_percent_within_the_settling_time(kind):
    step = np.ones((3000, 1))
    step[:1000] = 0.0
    error = np.abs(kind.filter(step, RATE_HZ)[1000 + kind.settling(RATE_HZ) :] - 1.0)
    assert error.max() < 0.015


@pytest.mark.parametrize("kind", [*CAUSAL, *ZERO_PHASE, DriverFilter(delay=-0.03)])
def test_filter_text_round_trips(kind):
    assert driver_filter(str(kind)) == kind
    assert driver_filter("auto") == AUTO
    assert driver_filter("none") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "'5' is no part of it; expected auto, none, or some of cutoff=HZ"),
        ("cutoff=5,zero_phase=1", "'zero_phase=1' is no part"),
        ("cutoff=five", "cutoff is 'five'; expected a number"),
        ("cutoff=-5", "cutoff is -5.0; expected a frequency above 0 Hz"),
        ("cutoff=nan", "cutoff is nan"),
        ("cutoff=5,order=0", "order is 0; expected 1 to 8"),
        ("cutoff=5,order=2.5", "order is '2.5'; expected a number"),
        ("delay=20", "delay is 20.0; expected at most 1 s either way"),
    ],
)
def test_refuses_invalid_filter_texts(text, message):
    with pytest.raises(RecordingError, match=r"^torque_filter: ") as caught:
        driver_filter(text)
    assert message in str(caught.value)


def filter_samples(kind: DriverFilter, values: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the values filtered sample by sample with these time steps."""
    passage = DriverPassage(kind)
    return np.array([passage.next(row, step) for row, step in zip(values, steps, strict=True)])


@pytest.mark.parametrize("kind", [*CAUSAL, DriverFilter(5.0, order=4), DriverFilter(delay=0.013)])
def test_filtering_by_sample_matches_filtering_of_the_record(kind):
    rate = 2000.0
    time = np.arange(0.0, 3.0, 1 / rate)
    values = np.column_stack([np.sin(2 * np.pi * 2.0 * time) + 2.0, time > 1.0])
    expected = kind.filter(values, rate)
    chosen = np.sort(np.random.default_rng(0).choice(len(time), 2000, replace=False))
    means = np.array([part.mean(axis=0) for part in np.split(values, chosen + 1)[:-1]])
    uneven = filter_samples(kind, means, np.diff(time[chosen], prepend=-1 / rate))
    assert np.abs(filter_samples(kind, values, np.full(len(time), 1 / rate)) - expected)[:, 0].max() < 0.01
    assert np.abs(uneven - expected[chosen])[:, 0].max() < 0.06  # means lag by half a step
    assert np.median(np.abs(uneven - expected[chosen])[:, 1]) < 1e-3


@pytest.mark.parametrize("kind", [*ZERO_PHASE, DriverFilter(delay=-0.01)])
def test_noncausal_filters_keep_single_samples(kind):
    values = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_array_equal(filter_samples(kind, values, np.full(50, 0.01)), values)


def test_restart_begins_at_rest():
    passage = DriverPassage(CAUSAL[2])
    for value in np.random.default_rng(0).normal(size=(50, 2)):
        passage.next(value, 0.01)
    passage.restart()
    np.testing.assert_allclose(passage.next([3.0, 4.0], 0.01), [3.0, 4.0])
