"""Test the effort limits, the joint states and the clock that watch a motion."""

import math
import time

import numpy as np
import planar_arm
import pytest
from rclpy.clock import ROSClock
from rclpy.time import Time
from sensor_msgs.msg import JointState

from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel
from dynid_ros.nodes.experiment.arm_states import (
    MAX_CLOCK_STEP_S,
    EffortWatch,
    MotionTime,
    describe_speeds,
    optional_values,
)
from dynid_ros.trajectories import MotionLimits

LIMITS = MotionLimits.of(RobotModel.from_urdf(planar_arm.urdf()), 2.0, torque_limits=[50.0, 40.0, 30.0])


def find_stop(watch, effort, times):
    """Return the time and message with which the watch stops efforts (T, n), or None."""
    for now, values in zip(times, effort, strict=True):
        try:
            watch.check(values, now)
        except DynidError as error:
            return now, str(error)
    return None


def test_effort_peak_stops_only_after_the_grace_time():
    watch = EffortWatch(LIMITS, np.nan, 0.1)
    times = np.arange(100) * 0.01
    effort = np.tile([45.0, -35.0, 25.0], (100, 1))
    effort[20:29, 1] = -41.0
    assert find_stop(watch, effort, times) is None
    effort[40:60, 1] = -41.0
    now, text = find_stop(watch, effort, times)
    assert now == pytest.approx(0.5)
    assert text == "effort of joint 'joint_2' is -41, above effort_limit 40 for 0.10 s"


def test_grace_time_starts_with_the_motion():
    watch = EffortWatch(LIMITS, np.nan, 0.1)
    watch.check(np.array([60.0, 0.0, 0.0]), 0.0)
    watch.forget()
    watch.check(np.array([60.0, 0.0, 0.0]), 0.5)
    with pytest.raises(DynidError):
        watch.check(np.array([60.0, 0.0, 0.0]), 0.6)


def test_effort_peak_stops_at_once_without_grace():
    with pytest.raises(DynidError, match=r"joint_3' is 31, above effort_limit 30 for 0\.00 s"):
        EffortWatch(LIMITS, np.nan, 0.0).check(np.array([0.0, 0.0, 31.0]), 3.0)


def test_nan_efforts_and_infinite_limits_are_not_watched():
    watch = EffortWatch(LIMITS, [np.nan, np.inf, 2.0], 0.0)
    watch.check(np.array([np.nan, 1e6, np.nan]), 0.0)
    with pytest.raises(DynidError, match=r"joint_3' is 2\.5, above effort_limit 2 "):
        watch.check(np.array([np.nan, 1e6, 2.5]), 0.1)


@pytest.mark.parametrize(
    ("limit", "grace", "message"),
    [
        (0.0, 0.1, "effort_limit of joint 'joint_1' is 0; it must be positive"),
        ([1.0, 2.0], 0.1, "effort_limit: 2 values"),
        (math.nan, -0.1, "effort_grace is -0.1; it must be zero or more"),
        (math.nan, math.nan, "effort_grace is nan"),
        (math.nan, math.inf, "effort_grace is inf; it must be zero or more, and finite"),
    ],
)
def test_invalid_effort_setting_is_refused(limit, grace, message):
    with pytest.raises(DynidError, match=message):
        EffortWatch(LIMITS, limit, grace)


def test_joint_states_are_read_by_joint_name():
    message = JointState(name=["finger", "joint_3", "joint_1"], effort=[9.0, 3.0, math.nan], velocity=[5.0, 0.0, -0.2])
    np.testing.assert_array_equal(optional_values(message, "effort", planar_arm.JOINTS), [math.nan, math.nan, 3.0])
    np.testing.assert_array_equal(
        optional_values(JointState(name=["joint_1"]), "effort", planar_arm.JOINTS), [math.nan] * 3
    )
    velocity = optional_values(message, "velocity", planar_arm.JOINTS)
    np.testing.assert_array_equal(velocity, [-0.2, math.nan, 0.0])
    assert describe_speeds(velocity, planar_arm.JOINTS) == "'joint_1' at -0.2"
    assert describe_speeds(np.array([0.3, 0.05, -1.2]), planar_arm.JOINTS) == "'joint_3' at -1.2, 'joint_1' at 0.3"
    assert describe_speeds(np.full(3, math.nan), planar_arm.JOINTS) == ""


class Computer:
    """Node whose ROS clock, steady clock and simulated time the test sets."""

    def __init__(self, monkeypatch):
        self.steady = 100.0
        self.simulated = 0.0
        self.is_simulated = False
        self.clock = ROSClock()
        monkeypatch.setattr(time, "monotonic", lambda: self.steady)
        monkeypatch.setattr(ROSClock, "ros_time_is_active", property(lambda _: self.is_simulated))
        monkeypatch.setattr(ROSClock, "now", lambda _: Time(nanoseconds=round(self.simulated * 1e9)))

    def get_clock(self):
        return self.clock


@pytest.fixture(name="computer")
def fixture_computer(monkeypatch):
    return Computer(monkeypatch)


def test_motion_time_ignores_steps_of_system_time(computer):
    motion_time = MotionTime(computer)
    computer.steady += 0.2
    computer.simulated += 1e6  # time of the node's clock
    assert motion_time.now() == pytest.approx(0.2)
    computer.steady += 5.0  # overload of the computer is no jump
    assert motion_time.now() == pytest.approx(5.2)
    assert motion_time.take_jump() == 0.0
    assert motion_time.stalled == 0.0


@pytest.mark.parametrize("jump", [-50.0, -1e-3, MAX_CLOCK_STEP_S + 0.01, 1e6])
def test_motion_time_excludes_jumps_of_simulated_time(computer, jump):
    computer.is_simulated = True
    computer.simulated = 60.0
    motion_time = MotionTime(computer)
    computer.simulated += 0.3
    assert motion_time.now() == pytest.approx(0.3)
    computer.simulated += jump
    assert motion_time.now() == pytest.approx(0.3)
    computer.simulated += 0.1
    assert motion_time.now() == pytest.approx(0.4)
    assert motion_time.take_jump() == pytest.approx(jump)
    assert motion_time.take_jump() == 0.0


def test_switch_to_simulated_time_is_a_jump(computer):
    motion_time = MotionTime(computer)
    computer.is_simulated = True
    computer.simulated = 100.1
    assert motion_time.now() == 0.0
    assert motion_time.take_jump() == pytest.approx(0.1)


def test_stalled_time_counts_while_simulated_time_stands(computer):
    computer.is_simulated = True
    motion_time = MotionTime(computer)
    computer.steady += 0.7
    assert motion_time.stalled == pytest.approx(0.7)
    computer.simulated += 0.01
    assert motion_time.stalled == 0.0
