"""What drivers do to torques: low-pass and delay, in numbers and as text."""

import numpy as np
import pytest
from scipy.signal import butter, freqz

from dynid_ros.errors import RecordingError
from dynid_ros.signals.driver_filter import AUTO, DriverFilter, driver_filter

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
