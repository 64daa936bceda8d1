"""Test the motion of simulated arms that float on the compensator, with sensor errors."""

import numpy as np
import pytest
from helpers.floating_arm import PERIOD_S, RAMP_S, STRANGERS, FloatingArm, lead

from dynid_ros.control import State

ARMS = [pytest.param(STRANGERS[name], id=name, marks=[pytest.mark.slow] * (name != "xarm7")) for name in STRANGERS]
MAX_HELD_MOTION_RAD = 0.01
"""Largest motion in rad of an arm that is held."""
MAX_UNNOTICED_MOTION_RAD = 0.35
"""Largest motion in rad until a wrong torque is detected and taken back."""
MAX_SINKING_SPEED = 0.35
"""Largest speed in rad/s of an arm that is lowered at 0.15 rad/s; outer joints swing slightly faster."""


def make_floating_arm(stranger, **arguments):
    return FloatingArm(stranger, **arguments).enable().let_go()


@pytest.mark.parametrize("stranger", ARMS)
def test_fault_holds_and_then_lowers_the_arm(stranger):
    arm = make_floating_arm(stranger)
    start = arm.time
    arm.compensator.interrupt(arm.time, "a stray message")
    arm.run(1.9)
    assert arm.motion(start) < MAX_HELD_MOTION_RAD
    arm.run(30.0)
    assert arm.speed(start) < MAX_SINKING_SPEED
    assert arm.step(start) < 0.03
    assert arm.motion(start) > 0.5, "the arm was lowered"
    assert arm.compensator.at_rest
    assert arm.compensator.state is State.FAULT
    resting = arm.time
    arm.run(1.0)
    assert arm.motion(resting) < 0.02, "the lowered arm stays in place"


def test_unknown_pose_fades_the_torque():
    arm = make_floating_arm(STRANGERS["xarm7"])
    arm.compensator.fault(arm.time, "a position jumped")
    arm.run(arm.timing.fault_ramp_time + 0.05)
    assert arm.compensator.at_rest


def pause_loop(arm, seconds):
    """Let the arm move under the last command while the loop does not run."""
    for _ in range(round(seconds / PERIOD_S)):
        arm.arm.step(PERIOD_S)
    arm.time += seconds


def watch_to_zero(arm):
    """Return the commands (N, n) of the watch every 10 ms until the torque is zero."""
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
def test_fault_ramp_excludes_an_earlier_pause_of_the_loop(stranger, event):
    arm = make_floating_arm(STRANGERS[stranger])
    before = arm.compensator.torque
    pause_loop(arm, 1.0)
    start = arm.time
    EVENTS[event](arm.compensator, arm.time)
    commands = watch_to_zero(arm)
    assert commands[0] == pytest.approx(before, rel=1e-12), "the ramp begins at the last command"
    steps = np.abs(np.diff(commands, axis=0)) / np.abs(before).max()
    assert steps.max() < 0.03, "ten milliseconds are a fiftieth of the ramp"
    assert arm.time - start == pytest.approx(arm.timing.fault_ramp_time, abs=0.03)


def test_fault_ramp_counts_a_pause_as_three_periods():
    arm = make_floating_arm(STRANGERS["xarm7"])
    before = np.array(arm.compensator.torque)
    arm.compensator.stop(arm.time)
    arm.compensator.watch(arm.time)
    pause_loop(arm, 1.0)
    after = np.array(arm.compensator.watch(arm.time))
    share = 3 * 0.01 / arm.timing.fault_ramp_time
    assert np.abs(after - before).max() <= share * np.abs(before).max() + 1e-9


def test_lowered_arm_can_be_enabled_during_the_descent():
    arm = make_floating_arm(STRANGERS["z1"])
    start = arm.time
    arm.compensator.disable(arm.time)
    arm.run(3.5)
    assert arm.compensator.state is State.RAMPING_OUT
    assert arm.speed(start) < MAX_SINKING_SPEED
    arm.compensator.enable(arm.time)
    arm.run(RAMP_S + 0.5)
    hold_start = arm.time
    assert arm.compensator.state is State.ACTIVE
    arm.run(1.0)
    assert arm.motion(hold_start) < MAX_HELD_MOTION_RAD
    assert arm.step(start) < 0.04


def test_end_of_the_process_lowers_the_arm_in_time():
    arm = make_floating_arm(STRANGERS["xarm7"])
    start = arm.time
    arm.compensator.stop(arm.time, 8.0)
    arm.run(9.5)
    assert arm.compensator.at_rest
    assert arm.speed(start) < 2.0 * MAX_SINKING_SPEED


@pytest.mark.parametrize("stranger", ARMS)
@pytest.mark.parametrize("factor", [1.25, 0.75])
def test_wrong_model_is_detected_after_release(stranger, factor):
    arm = FloatingArm(stranger, factor=factor).enable()
    start = arm.time
    arm.let_go()
    arm.compensator.released()
    for _ in range(90):
        if arm.compensator.state is State.FAULT:
            break
        arm.run(0.1)
    assert arm.compensator.state is State.FAULT
    assert ("rises" if factor > 1.0 else "sinks") in arm.compensator.fault_reason
    assert arm.motion(start) < MAX_UNNOTICED_MOTION_RAD


@pytest.mark.parametrize("stranger", ARMS)
def test_arm_sinks_slowly_at_a_low_scale(stranger):
    arm = FloatingArm(stranger)
    arm.compensator.adjust(arm.settings(0.2), arm.timing)
    arm.enable()
    start = arm.time
    arm.let_go()
    arm.compensator.released()
    while arm.compensator.state is not State.FAULT:
        arm.run(0.1)
    assert "scale is low" in arm.compensator.fault_reason
    assert arm.motion(start) < MAX_UNNOTICED_MOTION_RAD
    detection_time = arm.time
    arm.run(5.0)
    assert arm.speed(detection_time) < MAX_SINKING_SPEED


@pytest.mark.parametrize("stranger", ARMS)
@pytest.mark.parametrize("kind", ["reload", "scale", "load"])
def test_change_that_lifts_the_arm_is_taken_back(stranger, kind):
    arm = make_floating_arm(stranger)
    start = arm.time
    if kind == "scale":
        arm.compensator.adjust(arm.settings(1.4), arm.timing)
    else:
        arm.compensator.replace(arm.gravity(1.25), arm.settings(), load=kind == "load")
    arm.run(6.0)
    assert "began to move by itself" in arm.compensator.notice
    assert arm.compensator.state is State.ACTIVE
    assert arm.motion(start) < 2.0 * MAX_UNNOTICED_MOTION_RAD
    taken_back = arm.time
    arm.run(1.0)
    assert arm.motion(taken_back) < MAX_HELD_MOTION_RAD
    assert arm.compensator.joints.gain == (1.0,) * arm.robot.n_joints


def test_correct_model_is_not_suspected():
    arm = FloatingArm(STRANGERS["xarm7"]).enable()
    start = arm.time
    arm.let_go()
    arm.compensator.released()
    arm.run(3.0)
    assert arm.compensator.state is State.ACTIVE
    assert arm.motion(start) < 0.01


def test_small_change_of_the_model_is_accepted():
    arm = make_floating_arm(STRANGERS["xarm7"])
    arm.compensator.replace(arm.gravity(1.03), arm.settings())
    arm.run(RAMP_S + 1.5)
    assert not arm.compensator.notice
    expected = arm.gravity(1.03)(arm.arm.position.tolist())
    assert arm.torques[-1] == pytest.approx(expected, abs=1e-3 * max(map(abs, expected)))


def test_arm_above_its_speed_limit_is_braked():
    """Brakes reduce the speed that a push causes."""
    speeds = []
    for braked in (True, False):
        arm = make_floating_arm(STRANGERS["xarm7"])
        if not braked:
            arm.brake = None
            arm.compensator.joints = arm.settings()
        start = arm.time
        arm.arm.push([0.0, 0.0, 60.0, 0.0, 0.0, 0.0], None, "link_base", 0.5)
        arm.run(0.6)
        speeds.append(arm.speed(start))
    assert speeds[0] < 0.9 * speeds[1]


def test_torque_keeps_its_rate_after_a_gap_of_joint_states():
    arm = make_floating_arm(STRANGERS["xarm7"])
    pose = arm.arm.position
    moved = pose + 0.25 * (pose != 0.0)
    arm.time += 0.17
    before = arm.compensator.torque
    after = arm.compensator.update(arm.time, moved.tolist(), arm.time)
    rate = arm.compensator.joints.rate
    steps = [abs(a - b) / r for a, b, r in zip(after, before, rate, strict=True)]
    assert 0.0 < max(steps) <= 0.03 + 1e-9


def test_enable_during_the_ramp_out_holds_the_measured_pose():
    arm = make_floating_arm(STRANGERS["xarm7"])
    arm.compensator.disable(arm.time)
    arm.run(0.5)
    arm.arm.push([0.0, 20.0, 30.0, 0.0, 0.0, 0.0], None, "link_base", 0.3)
    arm.run(0.5)
    arm.compensator.enable(arm.time)
    assert arm.compensator.desired == arm.compensator.position


@pytest.mark.slow
@pytest.mark.parametrize("stranger", ARMS)
def test_guided_arm_is_not_suspected(stranger):
    assert not lead(stranger, 2.0).alarms
