"""How an arm comes down that floats on the compensator alone."""

import pytest
from helpers.floating_arm import STRANGERS, FloatingArm

from dynid_ros.control import State
from dynid_ros.control.descent import MAX_BRAKING_S, REST_S, Descent

END_S = 8.0


@pytest.fixture(name="floating", params=sorted(STRANGERS))
def fixture_floating(request):
    """Return an arm that its compensator holds alone."""
    return FloatingArm(STRANGERS[request.param]).enable(2.5).let_go().run(0.5)


def test_after_a_fault_the_arm_is_held_then_lowered_to_rest(floating):
    begun = floating.time
    floating.compensator.interrupt(floating.time, "somebody else publishes")
    assert floating.compensator.state is State.FAULT
    floating.run(floating.timing.descent_time)
    assert floating.motion(begun) < 0.01
    lowered = floating.time
    floating.run(25.0)
    assert floating.compensator.at_rest
    assert floating.motion(lowered) > 0.3
    assert floating.speed(begun) < 2.0 * floating.timing.descent_speed
    assert floating.step(begun) < 0.05


def test_disable_lowers_the_arm(floating):
    begun = floating.time
    floating.compensator.disable(floating.time)
    floating.run(25.0)
    assert floating.compensator.state is State.DISABLED
    assert floating.speed(begun) < 2.0 * floating.timing.descent_speed


def test_a_process_that_ends_lowers_the_arm_while_there_is_time(floating):
    begun = floating.time
    floating.compensator.stop(floating.time, END_S)
    floating.run(END_S - 0.5)
    assert floating.speed(begun) < 4.0 * floating.timing.descent_speed
    floating.run(1.5)
    assert floating.compensator.at_rest


def test_where_the_pose_is_not_known_the_torque_fades(floating):
    floating.compensator.fault(floating.time, "position jumped")
    floating.run(floating.timing.fault_ramp_time + 0.05)
    assert floating.compensator.at_rest


# the pace, alone

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
