"""Test gravity by an IMU on the base: its low-pass, its rate limit, and implausible readings."""

import math

import numpy as np
import pytest

from dynid_ros.control import BaseGravity, BaseRules

GRAVITY_MS2 = 9.80665
RATE_HZ = 100.0


def upward_acceleration(angle, length=GRAVITY_MS2):
    """Return the acceleration (3,) at rest on a base rotated about its x axis."""
    return np.array([0.0, length * math.sin(angle), length * math.cos(angle)])


def send_samples(count=300, start=0.0, base=None, acceleration=None, orientation=None, free=True):
    """Return the base after `count` samples, and the time of the last one."""
    base = base or BaseGravity((0.0, 0.0, -GRAVITY_MS2), BaseRules())
    acceleration = upward_acceleration(0.0) if acceleration is None else acceleration
    for now in start + np.arange(1, count + 1) / RATE_HZ:
        base.add_sample(now, list(acceleration), None if orientation is None else list(orientation))
        base.follow(now, free=free)
    return base, now


def tilt_angle(base):
    return math.atan2(-base.down[1], -base.down[2])


def test_acceleration_is_low_passed():
    base, now = send_samples()
    assert base.down == pytest.approx((0.0, 0.0, -GRAVITY_MS2))
    assert not base.problem(now)
    assert not base.unsettled(now)
    base, now = send_samples(50, now, base, upward_acceleration(0.1))
    assert 0.6 * 0.1 < tilt_angle(base) < 0.66 * 0.1  # 1 - 1/e after one time constant
    base, _ = send_samples(400, now, base, upward_acceleration(0.1))
    assert tilt_angle(base) == pytest.approx(0.1, abs=1e-3)
    assert np.linalg.norm(base.down) == pytest.approx(GRAVITY_MS2)
    assert "low-passed acceleration" in base.source


def test_orientation_acts_at_once_up_to_the_rate_limit():
    base, now = send_samples(orientation=-upward_acceleration(0.0, 1.0))
    assert "orientation" in base.source
    acceleration = upward_acceleration(0.1) + np.array([0.5, 0.0, 0.0])
    base, now = send_samples(1, now, base, acceleration, -upward_acceleration(0.1, 1.0))
    assert tilt_angle(base) == pytest.approx(0.1)
    base, now = send_samples(10, now, base, upward_acceleration(0.4), -upward_acceleration(0.4, 1.0), free=False)
    assert tilt_angle(base) == pytest.approx(0.1 + 0.5 * 10 / RATE_HZ, abs=1e-3)


@pytest.mark.parametrize(
    ("acceleration", "orientation", "problem"),
    [
        ([math.nan, 0.0, GRAVITY_MS2], None, "not finite"),
        ([0.0, 0.0, 1.0], None, "feels 1.00 m/s"),
        (upward_acceleration(0.0, GRAVITY_MS2 + 1.1), None, "feels 10.91 m/s"),
        (upward_acceleration(0.0, GRAVITY_MS2 - 1.1), None, "feels 8.71 m/s"),
        (upward_acceleration(0.6), None, "tilted by 34 degrees"),
        (-upward_acceleration(0.0), None, "it is upside down"),
        (upward_acceleration(0.3), [0.0, 0.0, -1.0], "orientation 17 degrees away"),
        (upward_acceleration(0.0), upward_acceleration(0.2, 1.0) * [1, 1, -1], "orientation 11 degrees away"),
        (upward_acceleration(0.0), [0.0, 0.0, 1.0], "orientation 180 degrees away"),
    ],
)
def test_implausible_readings_are_a_problem(acceleration, orientation, problem):
    base, now = send_samples(acceleration=acceleration, orientation=orientation)
    assert problem in base.problem(now)
    assert base.down == (0.0, 0.0, -GRAVITY_MS2)


def test_silence_is_a_problem_and_restarts_the_filter():
    base = BaseGravity((0.0, 0.0, -GRAVITY_MS2), BaseRules())
    assert "nothing yet" in base.problem(0.0)
    base, now = send_samples(base=base)
    assert "for 0.30 s" in base.problem(now + 0.3)
    base, now = send_samples(1, now + 1.0, base)
    assert base.unsettled(now)


def test_vibration_is_filtered():
    base, start = send_samples()
    rng = np.random.default_rng(0)
    for now in start + np.arange(1, 300) / RATE_HZ:
        base.add_sample(now, list(upward_acceleration(0.0) + rng.normal(0, 1.0, 3)), None)
        base.follow(now, free=False)
        assert not base.problem(now)
        assert abs(tilt_angle(base)) < 0.05


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_readings_within_the_limits_are_accepted(sign):
    for acceleration, orientation in (
        (upward_acceleration(0.0, GRAVITY_MS2 + sign * 0.9), None),
        (upward_acceleration(sign * 0.15), -upward_acceleration(0.0)),
        (upward_acceleration(sign * 0.45), None),
    ):
        base, now = send_samples(400, acceleration=acceleration, orientation=orientation)
        assert not base.problem(now)


def test_filter_settles_after_three_time_constants():
    for time_constant in (0.2, 0.5):
        base = BaseGravity((0.0, 0.0, -GRAVITY_MS2), BaseRules(time_constant=time_constant))
        base, now = send_samples(round(2.8 * time_constant * RATE_HZ), base=base)
        assert base.unsettled(now)
        base, now = send_samples(round(0.4 * time_constant * RATE_HZ), now, base)
        assert not base.unsettled(now)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_direction_of_gravity_keeps_its_rate_limit(sign):
    base = BaseGravity((0.0, 0.0, -GRAVITY_MS2), BaseRules(max_rate=0.1))
    base, now = send_samples(base=base)
    base, now = send_samples(100, now, base, upward_acceleration(sign * 0.4), free=False)
    assert tilt_angle(base) == pytest.approx(sign * 0.1, abs=2e-3)
