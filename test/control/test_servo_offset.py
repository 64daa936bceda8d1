"""Test the compensation of sagging position servos in MuJoCo by their set-points, and its faults."""

import math

import numpy as np
import pytest
from helpers.servo_loop import PERIOD_S, RAMP_S, ServoLoop
from servo_arms import one, so101, viper

from dynid_ros.control import State
from dynid_ros.control.servo_offset import DEVIATION_MARGIN, MIN_DEVIATION_TIME_S, ServoOffset, SetpointWatch
from dynid_ros.errors import ControlError

ARMS = {"so101": (so101, [0.2, -0.3, 0.4, 0.3, 0.0]), "viper": (viper, [0.3, 0.5, -0.3, 0.0, 0.4, 0.0])}
"""Arms with their poses: SO-101, and an arm of six Dynamixels."""


def run_compensated(name, mass=0.0, **options):
    """Return the loop at a set-point, the set-point, and the sag without compensation."""
    make, pose = ARMS[name]
    loop = ServoLoop(make(seed=4), mass, **options).start(pose)
    uncompensated_sag = loop.sag(pose)
    loop.enable().compensator.aim(pose)
    return loop.run(2.5), pose, uncompensated_sag


@pytest.mark.parametrize("mass", [0.0, 0.2])
@pytest.mark.parametrize("name", ARMS)
def test_sag_is_reduced_by_90_percent(name, mass):
    loop, pose, uncompensated_sag = run_compensated(name, mass)
    assert uncompensated_sag > 0.02
    assert loop.sag(pose) < 0.1 * uncompensated_sag
    assert loop.compensator.state is State.ACTIVE


@pytest.mark.parametrize("name", ARMS)
def test_unknown_load_or_wrong_stiffness_leaves_part_of_the_sag(name):
    unknown, pose, uncompensated_sag = run_compensated(name, 0.2, is_load_known=False)
    assert unknown.sag(pose) < 0.5 * uncompensated_sag
    soft, pose, uncompensated_sag = run_compensated(name, stiffness=1.25)
    assert 0.1 * uncompensated_sag < soft.sag(pose) < 0.3 * uncompensated_sag


@pytest.mark.parametrize("name", ARMS)
def test_enable_keeps_the_pose_and_set_points_make_no_step(name):
    make, pose = ARMS[name]
    loop = ServoLoop(make(seed=4)).start(pose)
    before = loop.command
    resting = loop.position
    loop.enable().run(2.0)
    friction_deflection = loop.arm.per_joint("friction") / loop.arm.per_joint("stiffness")
    assert (np.abs(loop.commands[-100] - before) < friction_deflection + 1e-3).all(), (
        "dry friction hides this part of the set-point"
    )
    assert np.abs(loop.position - resting).max() < 2e-3
    first = len(loop.commands)
    loop.compensator.aim(pose)
    loop.run(3.0)
    steps = np.abs(np.diff(loop.commands[first - 1 :], axis=0)).max()
    assert steps < (0.5 + 0.3 / RAMP_S) * PERIOD_S + 1e-9


def send_faults(kind, loop):
    """Feed the compensator faulty positions, or none, for a second."""
    position = loop.position
    for _ in range(50):
        loop.time += PERIOD_S
        if kind == "stale":
            torque = loop.compensator.watch(loop.time)
        else:
            bad = position.copy()
            bad[1] = math.nan if kind == "nan" else position[1] + 1.2
            torque = loop.compensator.update(loop.time, bad.tolist(), loop.time)
            torque = loop.compensator.watch(loop.time) if torque is None else torque
        loop.advance(torque)


@pytest.mark.parametrize("kind", ["stale", "nan", "jump"])
@pytest.mark.parametrize("name", ARMS)
def test_fault_holds_the_uncompensated_set_point(name, kind):
    loop, pose, uncompensated_sag = run_compensated(name)
    first = len(loop.commands)
    send_faults(kind, loop)
    assert loop.compensator.state is State.FAULT
    assert loop.command == pytest.approx(loop.compensator.desired, abs=1e-12)
    steps = np.abs(np.diff(loop.commands[first - 1 :], axis=0)).max()
    assert steps < 0.3 / 0.5 * PERIOD_S + 1e-9
    assert loop.sag(pose) < 1.15 * uncompensated_sag


@pytest.mark.parametrize("name", ARMS)
def test_ended_process_leaves_the_arm_in_place(name):
    loop, pose, uncompensated_sag = run_compensated(name)
    for _ in range(100):
        loop.advance(None)
    assert loop.sag(pose) < 0.1 * uncompensated_sag


def make_offset(**changes):
    robot = one().robot
    return ServoOffset.from_robot(robot, {"lift": 20.0}, **({"limit": [0.1]} | changes))


def test_set_points_respect_limits_of_offset_and_position():
    servo = make_offset()
    assert servo.torque_limits([9.0]) == [2.0]
    assert servo.torque_limits([1.0]) == [1.0]
    assert servo.command([0.5], [1.0]) == [0.55]
    assert servo.command([1.49], [1.0]) == [1.5], "not beyond the joint's limit"
    assert servo.command([1.6], [0.0]) == [1.6], "a pose beyond it stays"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"limit": [0.0]}, "offset_limits of joint 'lift' is 0.0; expected above 0"),
        ({"limit": [0.7]}, "at most 0.5"),
        ({"stiffness": [math.nan]}, "servo_stiffness"),
    ],
)
def test_impossible_settings_are_refused(changes, words):
    with pytest.raises(ControlError, match=words):
        make_offset(**changes)


def test_unknown_stiffness_is_refused():
    with pytest.raises(ControlError, match="needs the stiffness of lift: give servo_stiffness"):
        ServoOffset.from_robot(one().robot, {})


def test_joint_away_from_its_set_point_is_reported():
    watch = SetpointWatch()
    servo = make_offset()
    far = 0.1 + DEVIATION_MARGIN + 0.01
    assert not watch.doubt(0.0, ["lift"], servo, [0.0], [far])
    assert not watch.doubt(0.4, ["lift"], servo, [0.0], [far])
    assert "joint 'lift' stays 0.16" in watch.doubt(MIN_DEVIATION_TIME_S + 0.01, ["lift"], servo, [0.0], [far])
    assert not watch.doubt(1.0, ["lift"], servo, [0.0], [far + 0.01]), "the set-point moves"
    assert not watch.doubt(9.0, ["lift"], servo, [0.1], [far])
