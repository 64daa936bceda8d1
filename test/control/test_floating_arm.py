"""What an arm does that floats on the compensator: arms of others, sensors with errors, judged by the motion."""

import numpy as np
import pytest
from helpers.floating_arm import PERIOD_S, RAMP_S, STRANGERS, FloatingArm, lead

from dynid_ros.control import State

ARMS = [pytest.param(STRANGERS[name], id=name, marks=[pytest.mark.slow] * (name != "xarm7")) for name in STRANGERS]
HELD = 0.01
"""rad, motion of an arm that is held."""
NOTICED = 0.35
"""rad, motion of an arm until a wrong torque is noticed and taken back."""
MAX_SINKING_SPEED = 0.35
"""rad/s, of an arm that is lowered at 0.15 rad/s; joints that hang on others swing a little faster."""


def floating(stranger, **arguments):
    return FloatingArm(stranger, **arguments).enable().let_go()


@pytest.mark.parametrize("stranger", ARMS)
def test_after_a_fault_the_arm_is_held_and_then_lowered(stranger):
    arm = floating(stranger)
    began = arm.time
    arm.compensator.interrupt(arm.time, "a stray message")
    arm.run(1.9)
    assert arm.motion(began) < HELD
    arm.run(30.0)
    assert arm.speed(began) < MAX_SINKING_SPEED
    assert arm.step(began) < 0.03
    assert arm.motion(began) > 0.5, "it was lowered"
    assert arm.compensator.at_rest
    assert arm.compensator.state is State.FAULT
    resting = arm.time
    arm.run(1.0)
    assert arm.motion(resting) < 0.02, "it does not fall from where it was put down"


def test_where_the_pose_is_not_known_the_torque_fades():
    arm = floating(STRANGERS["xarm7"])
    arm.compensator.fault(arm.time, "a position jumped")
    arm.run(arm.timing.fault_ramp_time + 0.05)
    assert arm.compensator.at_rest


def pause_loop(arm, seconds):
    """Let the arm move for a while under the last command, while the loop does not run."""
    for _ in range(round(seconds / PERIOD_S)):
        arm.arm.step(PERIOD_S)
    arm.time += seconds


def watch_to_zero(arm):
    """Return the commands (N, n) of the watch, one each 10 ms, until the torque is zero."""
    commands = []
    while not arm.compensator.at_rest and len(commands) < 200:
        commands.append(arm.compensator.watch(arm.time) or arm.compensator.torque)
        arm.time += 0.01
    return np.array(commands)


EVENTS = {
    "silence": lambda compensator, time: compensator.watch(time),
    "implausible state": lambda compensator, time: compensator.fault(time, "a position jumped"),
    "no controller": lambda compensator, time: compensator.interrupt(time, "no controller listens", fade=True),
    "process ends": lambda compensator, time: compensator.stop(time),
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("stranger", ["xarm7", pytest.param("z1", marks=pytest.mark.slow)])
def test_a_fault_ramp_does_not_count_a_pause_of_the_loop_before_it(stranger, event):
    arm = floating(STRANGERS[stranger])
    before = arm.compensator.torque
    pause_loop(arm, 1.0)
    began = arm.time
    EVENTS[event](arm.compensator, arm.time)
    commands = watch_to_zero(arm)
    assert commands[0] == pytest.approx(before, rel=1e-12), "the ramp begins at the last command"
    steps = np.abs(np.diff(commands, axis=0)) / np.abs(before).max()
    assert steps.max() < 0.03, "ten milliseconds are a fiftieth of the ramp"
    assert arm.time - began == pytest.approx(arm.timing.fault_ramp_time, abs=0.03)


def test_a_fault_ramp_counts_a_pause_within_it_for_three_periods():
    arm = floating(STRANGERS["xarm7"])
    before = np.array(arm.compensator.torque)
    arm.compensator.stop(arm.time)
    arm.compensator.watch(arm.time)
    pause_loop(arm, 1.0)
    after = np.array(arm.compensator.watch(arm.time))
    share = 3 * 0.01 / arm.timing.fault_ramp_time
    assert np.abs(after - before).max() <= share * np.abs(before).max() + 1e-9


def test_disabled_the_arm_is_lowered_and_can_be_enabled_on_the_way():
    arm = floating(STRANGERS["z1"])
    began = arm.time
    arm.compensator.disable(arm.time)
    arm.run(3.5)
    assert arm.compensator.state is State.RAMPING_OUT
    assert arm.speed(began) < MAX_SINKING_SPEED
    arm.compensator.enable(arm.time)
    arm.run(RAMP_S + 0.5)
    held = arm.time
    assert arm.compensator.state is State.ACTIVE
    arm.run(1.0)
    assert arm.motion(held) < HELD
    assert arm.step(began) < 0.04


def test_the_end_of_the_process_lowers_the_arm_in_time():
    arm = floating(STRANGERS["xarm7"])
    began = arm.time
    arm.compensator.stop(arm.time, 8.0)
    arm.run(9.5)
    assert arm.compensator.at_rest
    assert arm.speed(began) < 2.0 * MAX_SINKING_SPEED


@pytest.mark.parametrize("stranger", ARMS)
@pytest.mark.parametrize("factor", [1.5, 1.25, 0.75, 0.5])
def test_a_wrong_model_is_noticed_where_the_arm_is_let_go(stranger, factor):
    arm = FloatingArm(stranger, factor=factor).enable()
    began = arm.time
    arm.let_go()
    arm.compensator.released()
    for _ in range(90):
        if arm.compensator.state is State.FAULT:
            break
        arm.run(0.1)
    assert arm.compensator.state is State.FAULT
    assert ("rises" if factor > 1.0 else "sinks") in arm.compensator.fault_reason
    assert arm.motion(began) < NOTICED


@pytest.mark.parametrize("stranger", ARMS)
def test_at_a_low_scale_the_arm_sinks_slowly(stranger):
    arm = FloatingArm(stranger)
    arm.compensator.adjust(arm.settings(0.2), arm.timing)
    arm.enable()
    began = arm.time
    arm.let_go()
    arm.compensator.released()
    while arm.compensator.state is not State.FAULT:
        arm.run(0.1)
    assert "scale is low" in arm.compensator.fault_reason
    assert arm.motion(began) < NOTICED
    noticed = arm.time
    arm.run(5.0)
    assert arm.speed(noticed) < MAX_SINKING_SPEED


@pytest.mark.parametrize("stranger", ARMS)
@pytest.mark.parametrize("what", ["reload", "scale", "load"])
def test_a_change_that_lifts_the_arm_is_taken_back(stranger, what):
    arm = floating(stranger)
    began = arm.time
    if what == "scale":
        arm.compensator.adjust(arm.settings(1.4), arm.timing)
    else:
        arm.compensator.replace(arm.gravity(1.25), arm.settings(), load=what == "load")
    arm.run(6.0)
    assert "began to move by itself" in arm.compensator.notice
    assert arm.compensator.state is State.ACTIVE
    assert arm.motion(began) < 2.0 * NOTICED
    taken_back = arm.time
    arm.run(1.0)
    assert arm.motion(taken_back) < HELD
    assert arm.compensator.joints.gain == (1.0,) * arm.robot.n_joints


def test_a_right_model_is_not_suspected():
    arm = FloatingArm(STRANGERS["xarm7"]).enable()
    began = arm.time
    arm.let_go()
    arm.compensator.released()
    arm.run(3.0)
    assert arm.compensator.state is State.ACTIVE
    assert arm.motion(began) < 0.01


def test_a_small_change_of_the_model_comes_in():
    arm = floating(STRANGERS["xarm7"])
    arm.compensator.replace(arm.gravity(1.03), arm.settings())
    arm.run(RAMP_S + 1.5)
    assert not arm.compensator.notice
    expected = arm.gravity(1.03)(arm.arm.position.tolist())
    assert arm.torques[-1] == pytest.approx(expected, abs=1e-3 * max(map(abs, expected)))


def test_an_arm_faster_than_its_limit_is_braked():
    """Pushed with the same force it stays slower than without brakes."""
    speeds = []
    for braked in (True, False):
        arm = floating(STRANGERS["xarm7"])
        if not braked:
            arm.brake = None
            arm.compensator.joints = arm.settings()
        began = arm.time
        arm.arm.push([0.0, 0.0, 60.0, 0.0, 0.0, 0.0], None, "link_base", 0.5)
        arm.run(0.6)
        speeds.append(arm.speed(began))
    assert speeds[0] < 0.9 * speeds[1]


def test_after_a_gap_of_joint_states_the_torque_does_not_catch_up_at_once():
    arm = floating(STRANGERS["xarm7"])
    pose = arm.arm.position
    moved = pose + 0.25 * (pose != 0.0)
    arm.time += 0.17
    before = arm.compensator.torque
    after = arm.compensator.update(arm.time, moved.tolist(), arm.time)
    rate = arm.compensator.joints.rate
    steps = [abs(a - b) / r for a, b, r in zip(after, before, rate, strict=True)]
    assert 0.0 < max(steps) <= 0.03 + 1e-9


def test_enabled_again_while_it_ramps_out_the_measured_pose_is_held():
    arm = floating(STRANGERS["xarm7"])
    arm.compensator.disable(arm.time)
    arm.run(0.5)
    arm.arm.push([0.0, 20.0, 30.0, 0.0, 0.0, 0.0], None, "link_base", 0.3)
    arm.run(0.5)
    arm.compensator.enable(arm.time)
    assert arm.compensator.desired == arm.compensator.position


@pytest.mark.slow
@pytest.mark.parametrize("stranger", ARMS)
def test_an_arm_that_a_hand_leads_is_not_suspected(stranger):
    assert not lead(stranger, 2.0).alarms
