import numpy as np
import pytest

from dynid_ros.errors import DynidError
from dynid_ros.simulation import Sensors


def test_ideal_sensors_tell_the_truth():
    truth = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]), np.array([[5.0, 6.0]])
    for reading, value in zip(Sensors.ideal(2).measure(*truth, np.random.default_rng(0)), truth, strict=True):
        assert np.array_equal(reading, value)


def test_gain_then_offset():
    sensors = Sensors(np.array([0.5]), np.array([0.1]), np.zeros(1), np.zeros(1), np.zeros(1))
    _, _, torque = sensors.measure(np.zeros(1), np.zeros(1), np.array([10.0]), np.random.default_rng(0))
    assert torque == pytest.approx([11.5])


def test_sizes_of_drawn_errors():
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


def test_noise_is_white_normal_and_of_the_size_asked_for():
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
    ("settings", "message"),
    [
        ({"torque_noise": -0.1}, "torque_noise is -0.1"),
        ({"torque_offset": [0.1, 0.2]}, "torque_offset is .*or 3 of them"),
        ({"position_noise": np.nan}, "position_noise is nan"),
    ],
)
def test_bad_sizes_are_refused(settings, message):
    with pytest.raises(DynidError, match=message):
        Sensors.draw([1.0, 2.0, 3.0], np.random.default_rng(0), **settings)


def test_unlimited_range_is_refused():
    with pytest.raises(DynidError, match=r"torque_range is .*inf"):
        Sensors.draw([1.0, np.inf], np.random.default_rng(0))
