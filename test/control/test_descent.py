"""How an arm comes down that floats on the compensator alone."""

import pytest
from helpers.floating_arm import STRANGERS, FloatingArm

from dynid_ros.control import State

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
