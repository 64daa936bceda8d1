"""Test the descent of an arm: its pace, torque ramps, drops and holds."""

import math

import pytest
from driven_pendulum import Arm, make_joint_settings, pendulum_gravity

from dynid_ros.control import State, Timing
from dynid_ros.control.descent import MAX_BRAKING_S, REST_S, Descent
from dynid_ros.errors import ControlError

RAMP_S = 2.0
SPEED_RAD_S = 0.2

ACTING_TORQUE = [-8.0, 3.0]
RATE = make_joint_settings().rate


def make_descent(**arguments):
    return Descent(10.0, RAMP_S, SPEED_RAD_S, **arguments)


@pytest.mark.parametrize(("velocity", "pace"), [(0.0, -0.5), (0.1, -0.25), (0.2, 0.0), (0.3, 0.25), (5.0, 0.5)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_ramp_waits_for_the_motion(velocity, pace, sign):
    assert make_descent().pace(11.0, [0.0, sign * velocity], brakes=True) == pytest.approx(pace)


def test_arm_is_held_before_the_descent():
    assert make_descent().pace(9.9, [5.0], brakes=True) == 0.0


def test_ramp_does_not_wait_without_brakes_or_after_its_end():
    assert make_descent().pace(11.0, [5.0], brakes=False) == pytest.approx(-1.0 / RAMP_S)
    assert make_descent(ends=12.0).pace(12.1, [5.0], brakes=True) == pytest.approx(-1.0 / RAMP_S)


def test_descent_ends_when_the_arm_rests_without_torque():
    arm = make_descent()
    arm.pace(15.0, [0.3], brakes=True)
    assert not arm.done(15.0, 0.5)
    assert not arm.done(15.1, 0.0)
    assert arm.done(15.0 + REST_S + 0.2, 0.0)


def test_braking_of_a_moving_arm_ends_after_a_time():
    arm = make_descent()
    for k in range(200):
        time = 15.0 + 0.1 * k
        arm.pace(time, [0.3], brakes=True)
        if arm.done(time, 0.0):
            break
    assert time - 15.0 == pytest.approx(MAX_BRAKING_S, abs=0.2)


def mix_torques(start, target, part, whole=1.0):
    """Return the approximate sum of `part` of the start and `whole - part` of the target."""
    return pytest.approx([part * a + (whole - part) * b for a, b in zip(start, target, strict=True)])


def test_torque_moves_linearly_from_the_acting_torque():
    arm = Arm().ready()
    arm.compensator.enable(arm.time, ACTING_TORQUE)
    arm.run(0.01)
    assert arm.commands[-1] == ACTING_TORQUE
    arm.run(0.25)
    assert arm.commands[-1] == mix_torques(ACTING_TORQUE, pendulum_gravity(arm.position), 0.75)
    arm.run(0.8)
    assert arm.compensator.state is State.ACTIVE
    assert arm.commands[-1] == pytest.approx(pendulum_gravity(arm.position), abs=1e-12)


def test_disable_during_the_ramp_fades_both_torques():
    arm = Arm().ready()
    arm.compensator.enable(arm.time, ACTING_TORQUE)
    arm.run(0.31)
    before = arm.commands[-1]
    arm.compensator.disable()
    arm.run(0.1)
    assert arm.commands[-1] == mix_torques(ACTING_TORQUE, pendulum_gravity(arm.position), 0.6, whole=0.8)
    steps = [abs(a - b) for a, b in zip(arm.commands[-1], before, strict=True)]
    assert all(step <= rate * 0.1 for step, rate in zip(steps, RATE, strict=True))
    arm.run(0.8)
    assert arm.compensator.state is State.DISABLED
    assert arm.compensator.torque == (0.0, 0.0)


def test_drop_sets_the_torque_to_zero_at_once():
    arm = Arm().run_enabled()
    arm.compensator.drop(arm.time, "what is commanded does not act")
    assert arm.compensator.state is State.FAULT
    assert arm.compensator.fault_reason == "what is commanded does not act"
    assert arm.compensator.at_rest
    arm.commands.clear()
    arm.run(0.1).watch(0.05)
    assert not any(arm.commands)
    arm.compensator.enable(arm.time)
    arm.run(0.01)
    assert arm.commands[-1] == [0.0, 0.0]


def test_drop_during_the_ramp_out_disables():
    arm = Arm().run_enabled()
    arm.compensator.stop(arm.time)
    arm.watch(0.1)
    arm.compensator.drop(arm.time, "what is commanded does not act")
    assert arm.compensator.state is State.DISABLED
    arm.commands.clear()
    arm.watch(0.6)
    assert not any(arm.commands)


HOLDING = Timing(ramp_time=1.0, fault_ramp_time=0.5, timeout=0.1, hold_on_silence=0.3)


def test_torque_is_held_after_silence_before_its_ramp():
    arm = Arm(timing=HOLDING).run_enabled()
    torque = arm.commands[-1]
    arm.watch(0.12)
    assert arm.compensator.state is State.FAULT
    arm.commands.clear()
    arm.watch(0.27)
    assert all(command == torque for command in arm.commands)
    arm.watch(0.25)
    assert arm.commands[-1] == pytest.approx([0.5 * value for value in torque], rel=0.1)
    arm.watch(0.3)
    assert arm.compensator.torque == (0.0, 0.0)


def test_enable_during_the_hold_keeps_the_torque():
    arm = Arm(timing=HOLDING).run_enabled()
    torque = arm.commands[-1]
    arm.watch(0.2).run(0.05)
    assert arm.compensator.state is State.FAULT, "the compensator does not restart by itself"
    arm.compensator.enable(arm.time)
    arm.commands.clear()
    arm.run(1.1)
    assert arm.compensator.state is State.ACTIVE
    assert all(command == pytest.approx(torque) for command in arm.commands)


@pytest.mark.parametrize("event", ["fault", "interrupt", "stop", "disable"])
def test_other_events_end_the_hold(event):
    arm = Arm(timing=HOLDING).run_enabled()
    torque = arm.commands[-1]
    arm.watch(0.13)
    arguments = {"fault": [arm.time, "a joint is missing"], "interrupt": [arm.time, "gone"], "stop": [arm.time]}
    getattr(arm.compensator, event)(*arguments.get(event, ()))
    arm.watch(0.1)
    assert arm.commands[-1] == pytest.approx([0.8 * value for value in torque], rel=0.05)


def test_other_faults_have_no_hold():
    arm = Arm(timing=HOLDING).run_enabled()
    torque = arm.commands[-1]
    arm.position = [math.nan, 0.3]
    arm.run(0.01).watch(0.1)
    assert arm.commands[-1] == pytest.approx([0.8 * value for value in torque], rel=0.05)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_hold_lasts_at_most_one_second(value):
    with pytest.raises(ControlError, match=r"hold_on_silence is .*; expected 0 to 1 s"):
        Timing(hold_on_silence=value)
