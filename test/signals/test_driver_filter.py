"""What drivers do to torques: low-pass and delay, in numbers and as text."""

import numpy as np
import pytest
from scipy.signal import butter, freqz, sosfilt, sosfilt_zi

from dynid_ros.errors import RecordingError
from dynid_ros.signals.driver_filter import AUTO, DriverFilter, DriverPassage, driver_filter

RATE = 100.0
CAUSAL = (DriverFilter(5.0, order=1), DriverFilter(5.0, order=2), DriverFilter(5.0, order=2, delay=0.02))
ZERO_PHASE = (DriverFilter(5.0, order=1, zero_phase=True), DriverFilter(5.0, order=4, zero_phase=True))


@pytest.mark.parametrize("kind", CAUSAL)
def test_before_the_record_was_its_first_value_and_nothing_of_the_future_is_known(kind):
    values = 3.0 + np.random.default_rng(0).normal(size=(200, 2))
    long = np.concatenate([np.repeat(values[:1], 2000, axis=0), values])
    np.testing.assert_allclose(kind.filter(values, RATE), kind.filter(long, RATE)[2000:], atol=1e-9)
    np.testing.assert_allclose(kind.filter(values[:50], RATE), kind.filter(values, RATE)[:50], atol=1e-12)


@pytest.mark.parametrize("kind", CAUSAL + ZERO_PHASE)
def test_what_is_constant_passes(kind):
    np.testing.assert_allclose(kind.filter(np.full((400, 2, 3), 7.0), RATE), 7.0, rtol=1e-9)


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("frequency", [1.0, 5.0, 20.0])
def test_gain_and_phase_are_butterworths(order, frequency):
    time = np.arange(4000) / RATE
    found = DriverFilter(5.0, order=order, delay=0.01).filter(np.sin(2 * np.pi * frequency * time)[:, None], RATE)[:, 0]
    response = freqz(*butter(order, 5.0, fs=RATE), worN=[frequency], fs=RATE)[1][0]
    late = time[2000:] - 0.01
    expected = np.imag(response * np.exp(2j * np.pi * frequency * late))
    np.testing.assert_allclose(found[2000:], expected, atol=1e-6)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("cutoff", [0.5, 5.0, 0.45 * RATE])
def test_low_pass_is_that_of_scipy_from_a_state_at_rest(order, cutoff):
    values = np.cumsum(np.random.default_rng(order).normal(size=(500, 2)), axis=0)
    sections = butter(order, cutoff, fs=RATE, output="sos")
    expected = sosfilt(sections, values, axis=0, zi=sosfilt_zi(sections)[:, :, None] * values[:1])[0]
    assert np.abs(DriverFilter(cutoff, order).filter(values, RATE) - expected).max() < 1e-9 * np.abs(values).max()


def test_a_filter_slower_than_the_values_takes_no_memory():
    values = np.random.default_rng(0).normal(size=(100, 2))
    assert np.isfinite(DriverFilter(1e-9, 4).filter(values, RATE)).all()


def test_a_delay_between_samples_is_linear_and_may_be_negative():
    ramp = np.arange(100.0)[:, None]
    for delay in (0.004, 0.037, -0.004, -0.037):
        found = DriverFilter(delay=delay).filter(ramp, RATE)
        np.testing.assert_allclose(found[10:-10, 0], ramp[10:-10, 0] - delay * RATE, atol=1e-9)


@pytest.mark.parametrize("kind", [*CAUSAL, *ZERO_PHASE, DriverFilter(delay=0.03)])
def test_a_disturbance_has_settled_but_for_a_hundredth(kind):
    """Of a step that lies behind, no more shows than that."""
    step = np.ones((3000, 1))
    step[:1000] = 0.0
    found = np.abs(kind.filter(step, RATE)[1000 + kind.settling(RATE) :] - 1.0)
    assert found.max() < 0.015


@pytest.mark.parametrize("kind", [*CAUSAL, *ZERO_PHASE, DriverFilter(delay=-0.03)])
def test_its_text_reads_back(kind):
    assert driver_filter(str(kind)) == kind
    assert driver_filter("auto") == AUTO
    assert driver_filter("none") is None


@pytest.mark.parametrize(
    ("text", "said"),
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
def test_others_are_refused_by_name(text, said):
    with pytest.raises(RecordingError, match=r"^torque_filter: ") as caught:
        driver_filter(text)
    assert said in str(caught.value)


def passed(kind: DriverFilter, values: np.ndarray, steps: np.ndarray) -> np.ndarray:
    passage = DriverPassage(kind)
    return np.array([passage.next(row, step) for row, step in zip(values, steps, strict=True)])


@pytest.mark.parametrize("kind", [*CAUSAL, DriverFilter(5.0, order=4), DriverFilter(delay=0.013)])
def test_sample_by_sample_it_is_the_same_whatever_the_steps(kind):
    rate = 2000.0
    time = np.arange(0.0, 3.0, 1 / rate)
    values = np.column_stack([np.sin(2 * np.pi * 2.0 * time) + 2.0, time > 1.0])
    wanted = kind.filter(values, rate)
    chosen = np.sort(np.random.default_rng(0).choice(len(time), 2000, replace=False))
    means = np.array([part.mean(axis=0) for part in np.split(values, chosen + 1)[:-1]])
    uneven = passed(kind, means, np.diff(time[chosen], prepend=-1 / rate))
    assert np.abs(passed(kind, values, np.full(len(time), 1 / rate)) - wanted)[:, 0].max() < 0.01
    assert np.abs(uneven - wanted[chosen])[:, 0].max() < 0.06  # means are of half a step before
    assert np.median(np.abs(uneven - wanted[chosen])[:, 1]) < 1e-3


@pytest.mark.parametrize("kind", [*ZERO_PHASE, DriverFilter(delay=-0.01)])
def test_what_no_driver_does_on_its_way_changes_no_sample(kind):
    values = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_array_equal(passed(kind, values, np.full(50, 0.01)), values)


def test_after_a_restart_all_was_as_it_is_then():
    passage = DriverPassage(CAUSAL[2])
    for value in np.random.default_rng(0).normal(size=(50, 2)):
        passage.next(value, 0.01)
    passage.restart()
    np.testing.assert_allclose(passage.next([3.0, 4.0], 0.01), [3.0, 4.0])
