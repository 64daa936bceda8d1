"""What to move more, and whether it helps to do so."""

import re

import numpy as np
import pytest
from helpers.judged_motions import RATE, followed, motion, ur10

from dynid_ros.information.motion_quality import MotionQuality


def said(text, name):
    """Amplitude and middle (degrees) and speed (rad/s) of a joint, as the sentence has them."""
    return map(float, re.search(rf"{name} swinging ±(\d+)° about (-?\d+)° at up to ([\d.]+) rad/s", text).groups())


@pytest.mark.parametrize(
    ("model", "still", "width"),
    [("links", (4,), 0.5), ("links", (), 0.05), ("links", (0, 3, 5), 0.5), ("load", (3, 4, 5), 0.3)],
)
def test_advice_does_what_it_says(model, still, width):
    robot = ur10()
    samples = motion(robot, still, width=width)
    settings = {"noise": [2.0, 2.0, 1.0, 0.5, 0.5, 0.5], "rate": RATE, "model": model}
    quality = MotionQuality.of(robot, *samples, **settings)
    assert not quality.enough
    assert quality.helpful
    names = quality.columns.names
    before = quality
    for advised, (q, qd, qdd), after in followed(quality, robot, samples, **settings):
        limits = quality.motion.limits
        assert np.all((q >= limits.lower - 1e-9) & (q <= limits.upper + 1e-9))
        assert np.all(np.abs(qd) <= limits.velocity)
        assert np.all(np.abs(qdd) <= limits.acceleration)
        # One motion, and the one that is said.
        np.testing.assert_allclose(np.gradient(q, 1 / RATE, axis=0)[1:-1], qd[1:-1], atol=0.01)
        np.testing.assert_allclose(np.gradient(qd, 1 / RATE, axis=0)[1:-1], qdd[1:-1], atol=0.03)
        low, high = np.rad2deg([q.min(axis=0), q.max(axis=0)])
        for joint in np.flatnonzero(high > low):
            size, centre, speed = said(advised.text, robot.joint_names[joint])
            assert [size, centre] == pytest.approx([(high - low)[joint] / 2, (high + low)[joint] / 2], abs=1.0)
            assert speed == pytest.approx(np.abs(qd[:, joint]).max(), rel=0.06)
        for joint in np.flatnonzero(high == low):
            place = re.search(rf"{robot.joint_names[joint]} stands at (-?\d+)°", advised.text)
            expected = float(place[1]) if place else np.rad2deg(quality.motion.middle[joint])
            assert low[joint] == pytest.approx(expected, abs=0.6)
        for name in advised.after:
            i = names.index(name)
            assert advised.after[name] == pytest.approx(after.standard_errors[i], rel=0.2)
            assert advised.before[name] == pytest.approx(before.standard_errors[i], rel=0.2)
            assert before.standard_errors[i] > 1.4 * after.standard_errors[i]
        before = after
    assert after.rank > quality.rank or np.nanmax(after.effects) < np.nanmax(quality.effects)


def test_advice_names_the_joint_that_stood_still():
    robot = ur10()
    quality = MotionQuality.of(robot, *motion(robot, still=(4,)), rate=RATE)
    assert all("wrist_2_joint" in parameter for parameter in quality.without_effect)
    assert "wrist_2_joint" in quality.advice[0]
    assert "it did not move" in quality.advice[0]
    # No motion that leaves the joint still shows its friction.
    others = MotionQuality.of(robot, *motion(robot, still=(4,), seed=1), rate=RATE)
    assert others.missing == quality.missing


def test_advice_keeps_to_where_the_arm_may_be():
    robot = ur10()
    samples = motion(robot, still=(0,))

    def allowed(position):
        return np.abs(position[:, 0] - samples[0][0, 0]) < 0.1

    narrow = MotionQuality.of(robot, *samples, rate=RATE, allowed=allowed)
    assert not any(0 in advised.motion.joints for advised in narrow.helpful)
    assert any(0 in advised.motion.joints for advised in MotionQuality.of(robot, *samples, rate=RATE).helpful)
