"""Khosla & Kanade (1987), section 5.1; the numbers are closed forms of their difference equation."""

import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import FivePointDifferentiator, five_point_derivative

T = 0.002
TIME = T * np.arange(500)


def test_exact_on_quadratics_to_the_ends():
    values = np.column_stack([3 - 2 * TIME + 5 * TIME**2, TIME])
    expected = np.column_stack([-2 + 10 * TIME, np.ones_like(TIME)])
    np.testing.assert_allclose(five_point_derivative(values, T), expected, atol=1e-9)


def test_bias_on_a_cubic():
    bias = five_point_derivative(TIME**3, T) - 3 * TIME**2
    np.testing.assert_allclose(bias[2:-2], 17 / 5 * T**2, rtol=1e-6)


@pytest.mark.parametrize(("frequency", "gain"), [(10, 0.99108), (50, 0.79256)])
def test_gain(frequency, gain):
    omega = 2 * np.pi * frequency
    derivative = five_point_derivative(np.sin(omega * TIME), T)
    np.testing.assert_allclose(derivative[2:-2], gain * omega * np.cos(omega * TIME[2:-2]), atol=1e-5 * omega)


def test_noise_gain():
    noise = np.random.default_rng(1).normal(size=400_000)
    assert np.std(five_point_derivative(noise, T)) == pytest.approx(np.sqrt(10) / (10 * T), rel=0.01)


def test_causal_form_is_two_samples_late():
    values = np.random.default_rng(2).normal(size=(50, 3))
    causal = five_point_derivative(values, T, causal=True)
    assert np.isnan(causal[:4]).all()
    x = values
    published = (-2 * x[:-4] - x[1:-3] + x[3:-1] + 2 * x[4:]) / (10 * T)
    np.testing.assert_allclose(causal[4:], published, atol=1e-9)
    np.testing.assert_allclose(causal[4:], five_point_derivative(values, T)[2:-2], atol=1e-9)


def test_streaming_equals_causal_and_forgets():
    values = np.random.default_rng(3).normal(size=(20, 2))
    stream = FivePointDifferentiator(T)
    assert stream.delay == pytest.approx(0.004)
    for _ in range(2):
        outputs = [stream.update(sample) for sample in values]
        assert outputs[:4] == [None] * 4
        np.testing.assert_allclose(outputs[4:], five_point_derivative(values, T, causal=True)[4:], atol=1e-9)
        stream.reset()


def test_streaming_keeps_no_view_of_a_reused_buffer():
    stream, buffer = FivePointDifferentiator(T), np.zeros(1)
    for k in range(5):
        buffer[:] = k * T
        slope = stream.update(buffer)
    assert slope == pytest.approx(1)


def test_too_short():
    with pytest.raises(RecordingError, match="5 samples, there are 4"):
        five_point_derivative(np.zeros(4), T)
