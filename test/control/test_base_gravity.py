"""Gravity by an IMU: how fast it follows, and what of it is not believed."""

import math

import numpy as np
import pytest

from dynid_ros.control import BaseGravity, BaseRules

G = 9.80665
RATE = 100.0


def up(angle, length=G):
    """Acceleration (3,) at rest on a base turned about its x axis."""
    return np.array([0.0, length * math.sin(angle), length * math.cos(angle)])


def heard(count=300, start=0.0, base=None, acceleration=None, oriented=None, free=True):
    """A base after `count` messages, and the time of the last."""
    base = base or BaseGravity((0.0, 0.0, -G), BaseRules())
    acceleration = up(0.0) if acceleration is None else acceleration
    for now in start + np.arange(1, count + 1) / RATE:
        base.add_sample(now, list(acceleration), None if oriented is None else list(oriented))
        base.follow(now, free=free)
    return base, now


def tilt(base):
    return math.atan2(-base.down[1], -base.down[2])


def test_acceleration_is_followed_through_its_low_pass():
    base, now = heard()
    assert base.down == pytest.approx((0.0, 0.0, -G))
    assert not base.problem(now)
    assert not base.unsettled(now)
    base, now = heard(50, now, base, up(0.1))
    assert 0.6 * 0.1 < tilt(base) < 0.66 * 0.1  # 1 - 1/e after one time constant
    base, _ = heard(400, now, base, up(0.1))
    assert tilt(base) == pytest.approx(0.1, abs=1e-3)
    assert np.linalg.norm(base.down) == pytest.approx(G)
    assert "low-passed acceleration" in base.source


def test_orientation_is_followed_at_once_but_for_the_rate():
    base, now = heard(oriented=-up(0.0, 1.0))
    assert "orientation" in base.source
    felt = up(0.1) + np.array([0.5, 0.0, 0.0])
    base, now = heard(1, now, base, felt, -up(0.1, 1.0))
    assert tilt(base) == pytest.approx(0.1)
    base, now = heard(10, now, base, up(0.4), -up(0.4, 1.0), free=False)
    assert tilt(base) == pytest.approx(0.1 + 0.5 * 10 / RATE, abs=1e-3)


@pytest.mark.parametrize(
    ("acceleration", "oriented", "problem"),
    [
        ([math.nan, 0.0, G], None, "not finite"),
        ([0.0, 0.0, 1.0], None, "feels 1.00 m/s"),
        (up(0.0, G + 1.1), None, "feels 10.91 m/s"),
        (up(0.0, G - 1.1), None, "feels 8.71 m/s"),
        (up(0.6), None, "tilted by 34 degrees"),
        (-up(0.0), None, "it is upside down"),
        (up(0.3), [0.0, 0.0, -1.0], "orientation 17 degrees away"),
        (up(0.0), up(0.2, 1.0) * [1, 1, -1], "orientation 11 degrees away"),
        (up(0.0), [0.0, 0.0, 1.0], "orientation 180 degrees away"),
    ],
)
def test_what_cannot_be_is_not_believed(acceleration, oriented, problem):
    base, now = heard(acceleration=acceleration, oriented=oriented)
    assert problem in base.problem(now)
    assert base.down == (0.0, 0.0, -G)


def test_silence_is_a_problem_and_what_comes_after_begins_anew():
    base = BaseGravity((0.0, 0.0, -G), BaseRules())
    assert "nothing yet" in base.problem(0.0)
    base, now = heard(base=base)
    assert "for 0.30 s" in base.problem(now + 0.3)
    base, now = heard(1, now + 1.0, base)
    assert base.unsettled(now)


def test_shaking_is_taken_out():
    base, start = heard()
    rng = np.random.default_rng(0)
    for now in start + np.arange(1, 300) / RATE:
        base.add_sample(now, list(up(0.0) + rng.normal(0, 1.0, 3)), None)
        base.follow(now, free=False)
        assert not base.problem(now)
        assert abs(tilt(base)) < 0.05


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_may_just_be_is_believed(sign):
    for acceleration, oriented in (
        (up(0.0, G + sign * 0.9), None),
        (up(sign * 0.15), -up(0.0)),
        (up(sign * 0.45), None),
    ):
        base, now = heard(400, acceleration=acceleration, oriented=oriented)
        assert not base.problem(now)


def test_it_is_settled_after_three_time_constants_of_its_rules():
    for time_constant in (0.2, 0.5):
        base = BaseGravity((0.0, 0.0, -G), BaseRules(time_constant=time_constant))
        base, now = heard(round(2.8 * time_constant * RATE), base=base)
        assert base.unsettled(now)
        base, now = heard(round(0.4 * time_constant * RATE), now, base)
        assert not base.unsettled(now)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_gravity_turns_no_faster_than_its_rules_allow(sign):
    base = BaseGravity((0.0, 0.0, -G), BaseRules(max_rate=0.1))
    base, now = heard(base=base)
    base, now = heard(100, now, base, up(sign * 0.4), free=False)
    assert tilt(base) == pytest.approx(sign * 0.1, abs=2e-3)
