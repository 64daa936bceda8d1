"""The pace at which an arm is put down."""

import pytest

from dynid_ros.control.descent import MAX_BRAKING_S, REST_S, Descent

RAMP, SPEED = 2.0, 0.2


def descent(**arguments):
    return Descent(10.0, RAMP, SPEED, **arguments)


@pytest.mark.parametrize(("velocity", "pace"), [(0.0, -0.5), (0.1, -0.25), (0.2, 0.0), (0.3, 0.25), (5.0, 0.5)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_ramp_waits_for_the_motion(velocity, pace, sign):
    assert descent().pace(11.0, [0.0, sign * velocity], brakes=True) == pytest.approx(pace)


def test_before_its_time_the_arm_is_held():
    assert descent().pace(9.9, [5.0], brakes=True) == 0.0


def test_without_brakes_or_time_the_ramp_does_not_wait():
    assert descent().pace(11.0, [5.0], brakes=False) == pytest.approx(-1.0 / RAMP)
    assert descent(ends=12.0).pace(12.1, [5.0], brakes=True) == pytest.approx(-1.0 / RAMP)


def test_it_is_done_where_the_arm_rests_without_torque():
    arm = descent()
    arm.pace(15.0, [0.3], brakes=True)
    assert not arm.done(15.0, 0.5)
    assert not arm.done(15.1, 0.0)
    assert arm.done(15.0 + REST_S + 0.2, 0.0)


def test_an_arm_that_never_rests_is_braked_for_a_while():
    arm = descent()
    for k in range(200):
        time = 15.0 + 0.1 * k
        arm.pace(time, [0.3], brakes=True)
        if arm.done(time, 0.0):
            break
    assert time - 15.0 == pytest.approx(MAX_BRAKING_S, abs=0.2)
