"""Test errors of simulated joint sensors and of the simulated wrench sensor."""

import numpy as np
import pytest

from dynid_ros.errors import DynidError
from dynid_ros.simulation import Sensors, WrenchSensor

WRENCH = np.array([10.0, -20.0, 30.0, 1.0, -2.0, 3.0])


def test_ideal_wrench_sensor_returns_the_true_wrench():
    assert np.array_equal(WrenchSensor.ideal().measure(WRENCH, np.random.default_rng(0)), WRENCH)


def test_wrench_errors_may_differ_for_force_and_torque():
    sensor = WrenchSensor.draw(np.random.default_rng(1), bias=[4.0, 0.2], noise=0.5, range=[1, 2, 3, 4, 5, 6])
    assert np.abs(sensor.bias).tolist() == [4.0] * 3 + [0.2] * 3
    assert len(set(np.sign(sensor.bias))) == 2
    assert sensor.noise.tolist() == [0.5] * 6
    assert sensor.range.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_wrench_has_bias_and_white_noise_on_each_axis():
    sensor = WrenchSensor.draw(np.random.default_rng(2), bias=(5.0, 0.3), noise=(0.1, 0.01))
    error = sensor.measure(np.tile(WRENCH, (20000, 1)), np.random.default_rng(3)) - WRENCH
    assert error.mean(axis=0) == pytest.approx(sensor.bias, abs=0.003)
    assert error.std(axis=0) == pytest.approx(sensor.noise, rel=0.03)
    assert np.abs(np.corrcoef(error.T) - np.eye(6)).max() < 0.03


def test_clips_wrenches_at_the_range():
    sensor = WrenchSensor(np.full(6, 100.0), np.full(6, 50.0), np.array([40.0] * 3 + [4.0] * 3))
    readings = sensor.measure(np.tile(WRENCH, (1000, 1)), np.random.default_rng(4))
    assert readings.max(axis=0).tolist() == [40.0] * 3 + [4.0] * 3
    assert readings.min() >= -40.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bias": -1.0}, "bias of the wrench sensor is -1.0"),
        ({"noise": [0.1, 0.1, 0.1]}, r"noise of the wrench sensor is \[0.1, 0.1, 0.1\]; .*one per axis"),
        ({"noise": np.inf}, "noise of the wrench sensor is inf"),
        ({"range": np.nan}, "range of the wrench sensor is nan"),
    ],
)
def test_refuses_invalid_wrench_errors(settings, message):
    with pytest.raises(DynidError, match=message):
        WrenchSensor.draw(np.random.default_rng(0), **settings)


def test_ideal_sensors_return_the_true_values():
    truth = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]), np.array([[5.0, 6.0]])
    for reading, value in zip(Sensors.ideal(2).measure(*truth, np.random.default_rng(0)), truth, strict=True):
        assert np.array_equal(reading, value)


def test_torque_gain_applies_before_the_offset():
    sensors = Sensors(np.array([0.5]), np.array([0.1]), np.zeros(1), np.zeros(1), np.zeros(1))
    _, _, torque = sensors.measure(np.zeros(1), np.zeros(1), np.array([10.0]), np.random.default_rng(0))
    assert torque == pytest.approx([11.5])


def test_drawn_errors_scale_with_the_torque_range():
    sensors = Sensors.draw(
        [200.0] * 50 + [10.0] * 50,
        np.random.default_rng(0),
        torque_offset=0.02,
        torque_gain_error=0.03,
        torque_noise=0.005,
        position_noise=1e-4,
        velocity_noise=1e-3,
    )
    assert np.abs(sensors.torque_offset) == pytest.approx([4.0] * 50 + [0.2] * 50)
    assert np.abs(sensors.torque_gain_error) == pytest.approx(0.03)
    for signs in (np.sign(sensors.torque_offset), np.sign(sensors.torque_gain_error)):
        assert -50 < signs.sum() < 50
    assert sensors.torque_noise == pytest.approx([1.0] * 50 + [0.05] * 50)


def test_noise_is_white_with_the_configured_deviation():
    sensors = Sensors(np.zeros(2), np.zeros(2), np.array([1.0, 0.1]), np.array([2.0, 0.2]), np.array([3.0, 0.3]))
    zeros = np.zeros((40000, 2))
    position, velocity, torque = sensors.measure(zeros, zeros, zeros, np.random.default_rng(0))
    for noise, size in ((torque, sensors.torque_noise), (position, sensors.position_noise), (velocity, [3.0, 0.3])):
        assert noise.std(axis=0) == pytest.approx(size, rel=0.02)
        assert noise.mean(axis=0) / size == pytest.approx([0.0, 0.0], abs=0.02)
        assert abs(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1]) < 0.02
        assert abs(np.corrcoef(noise[1:, 0], noise[:-1, 0])[0, 1]) < 0.02
    assert abs(np.corrcoef(torque[:, 0], position[:, 0])[0, 1]) < 0.02


@pytest.mark.parametrize(
    ("range_", "settings", "message"),
    [
        (3.0, {"torque_noise": -0.1}, "torque_noise of joint '1' is -0.1"),
        (3.0, {"torque_offset": [0.1, 0.2]}, "torque_offset: 2 values; give one for all joints"),
        (3.0, {"position_noise": np.nan}, "position_noise of joint '1' is nan"),
        (np.inf, {}, "torque_range of joint '3' is inf"),
    ],
)
def test_refuses_invalid_sensor_errors(range_, settings, message):
    with pytest.raises(DynidError, match=message):
        Sensors.draw([1.0, 2.0, range_], np.random.default_rng(0), **settings)
