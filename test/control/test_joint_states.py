"""Test the velocities from joint states, and the delay of the loop."""

import math

import pytest

from dynid_ros.control.joint_states import JointMotion


def run_motion(motion, *, interval=0.004, seconds=1.0, speed=0.5, measured=False, age=0.0, stamped=True):
    for k in range(round(seconds / interval)):
        time = 10.0 + k * interval
        velocity = [speed] if measured else None
        motion.update(time + age, [speed * time], velocity, time if stamped else None, age)
    return motion


@pytest.mark.parametrize("speed", [0.5, -0.5])
@pytest.mark.parametrize("stamped", [True, False])
def test_missing_velocities_are_differentiated(speed, stamped):
    assert run_motion(JointMotion(1), speed=speed, stamped=stamped).velocity == pytest.approx([speed], rel=1e-3)


def test_nonfinite_velocity_is_ignored():
    motion = run_motion(JointMotion(1))
    motion.update(11.0, [5.5], [math.nan], 11.0)
    assert motion.velocity == pytest.approx([0.5], rel=0.01)


@pytest.mark.parametrize("interval", [0.001, 0.004, 0.01])
def test_delay_includes_period_age_and_differentiation(interval):
    measured = run_motion(JointMotion(1), interval=interval, measured=True)
    assert measured.delay == pytest.approx(2.0 * interval, rel=0.05)
    assert run_motion(JointMotion(1), interval=interval).delay == pytest.approx(4.5 * interval, rel=0.05)
    aged = run_motion(JointMotion(1), interval=interval, measured=True, age=0.02)
    assert aged.delay == pytest.approx(2.0 * interval + 0.02, rel=0.05)


def test_burst_of_joint_states_is_no_motion():
    motion = run_motion(JointMotion(1), speed=0.0)
    for k in range(20):
        motion.update(12.0 + 1e-5 * k, [1e-4 * k], None, 12.0 + 1e-5 * k)
    assert abs(motion.velocity[0]) < 0.1
