import numpy as np
import pytest

from dynid_ros.errors import DynidError
from dynid_ros.simulation import WrenchSensor

WRENCH = np.array([10.0, -20.0, 30.0, 1.0, -2.0, 3.0])


def test_an_ideal_sensor_tells_the_truth():
    assert np.array_equal(WrenchSensor.ideal().measure(WRENCH, np.random.default_rng(0)), WRENCH)


def test_sizes_for_force_and_torque():
    sensor = WrenchSensor.draw(np.random.default_rng(1), bias=[4.0, 0.2], noise=0.5, range=[1, 2, 3, 4, 5, 6])
    assert np.abs(sensor.bias).tolist() == [4.0] * 3 + [0.2] * 3
    assert len(set(np.sign(sensor.bias))) == 2
    assert sensor.noise.tolist() == [0.5] * 6
    assert sensor.range.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_bias_and_white_noise_on_every_axis():
    sensor = WrenchSensor.draw(np.random.default_rng(2), bias=(5.0, 0.3), noise=(0.1, 0.01))
    error = sensor.measure(np.tile(WRENCH, (20000, 1)), np.random.default_rng(3)) - WRENCH
    assert error.mean(axis=0) == pytest.approx(sensor.bias, abs=0.003)
    assert error.std(axis=0) == pytest.approx(sensor.noise, rel=0.03)
    assert np.abs(np.corrcoef(error.T) - np.eye(6)).max() < 0.03


def test_a_reading_ends_at_the_range_with_bias_and_noise():
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
def test_bad_sizes_are_refused(settings, message):
    with pytest.raises(DynidError, match=message):
        WrenchSensor.draw(np.random.default_rng(0), **settings)
