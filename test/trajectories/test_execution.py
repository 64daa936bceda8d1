"""Test supervision of a motion in progress, and smooth stops."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation import StaticRotation
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionInProgress, MotionLimits, Trajectory, Workspace, check_limits, move, stop
from dynid_ros.trajectories.connection import Connection
from dynid_ros.trajectories.execution import cut_piece, standstill

MOTION = MotionInProgress(move(("a", "b"), [0.0, 0.0], [1.0, 0.0], 4.0), 100.0, np.array([0.1, 0.05]), 0.2)


def test_fraction_and_end_follow_the_clock():
    assert [MOTION.fraction(now) for now in (99.0, 100.0, 101.0, 104.0, 110.0)] == [0.0, 0.0, 0.25, 1.0, 1.0]
    assert [MOTION.done(now) for now in (99.0, 103.9, 104.0)] == [False, False, True]


def test_accepts_tracking_errors_up_to_the_limit():
    """The distance counts from any position of the motion within the latency."""
    before = MOTION.trajectory.at(1.8)[0][0]
    assert before < 0.45
    MOTION.check([before - 0.099, 0.0], 102.0)
    with pytest.raises(TrajectoryError):
        MOTION.check([before - 0.101, 0.0], 102.0)
    MOTION.check([0.0, 0.0], 99.0)
    MOTION.check([0.59, 0.049], 102.0)
    MOTION.check([0.95, 0.0], 110.0)


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        ([0.30, 0.0], "joint 'a' is at 0.3, the motion at 0.5: further away than tracking_error_limit 0.1"),
        ([0.5, -0.06], "joint 'b' is at -0.06, the motion at 0: further away than tracking_error_limit 0.05"),
        ([0.5, np.nan], "joint 'b' is at nan"),
    ],
)
def test_reports_joints_beyond_the_tracking_error_limit(measured, message):
    with pytest.raises(TrajectoryError, match=message):
        MOTION.check(measured, 102.0)


@pytest.mark.parametrize(("end", "stops"), [(3.6, 4.0), (3.4, 3.4)])
def test_last_piece_includes_a_short_remainder(end, stops):
    limits = MotionLimits(("a", "b"), ("rad", "rad"), -2.0, 2.0, 1.0, 4.0)
    piece, stop_time = cut_piece(MOTION.trajectory, 1.0, end, limits)
    assert stop_time == stops
    assert (piece.duration == pytest.approx(4.0 - 1.0)) == (stops == 4.0)


DEMO_ARM = Path(__file__).parents[2] / "config" / "demo_arm.urdf"


@pytest.fixture(scope="module")
def planned():
    robot = RobotModel.from_urdf(DEMO_ARM)
    limits = MotionLimits.of(robot, 4.0)
    plan = StaticRotation(robot, limits, Workspace(robot, 0.1), steps=4, sweep=3.0, speed_fraction=1.0).plan()
    return plan.trajectory, limits


def test_stop_is_smooth_short_and_on_the_path(planned):
    motion, limits = planned
    rng = np.random.default_rng(0)
    durations = []
    for time in rng.uniform(0.0, motion.duration, 60):
        stopping = stop(motion, time, limits)
        for values, before in zip(stopping.at(0.0), motion.at(time), strict=True):
            np.testing.assert_allclose(values, before, atol=1e-9)
        np.testing.assert_array_equal(stopping.velocity[-1], 0.0)
        np.testing.assert_array_equal(stopping.acceleration[-1], 0.0)
        check_limits(stopping.sample(50.0), limits)
        path = motion.at(np.linspace(time, time + stopping.duration, 4000))[0]
        for pose in stopping.position[::7]:
            assert np.abs(path - pose).max(axis=1).min() < 2e-3
        durations.append(stopping.duration)
    assert max(durations) < 2.0


@pytest.mark.parametrize("time", [-0.1, 1e9])
def test_stop_outside_the_motion_stays_at_its_ends(planned, time):
    motion, limits = planned
    stopping = stop(motion, time, limits)
    end = 0 if time < 0 else -1
    np.testing.assert_allclose(stopping.position, np.tile(motion.position[end], (stopping.n_samples, 1)), atol=1e-3)
    assert stopping.duration == pytest.approx(0.2)


def test_stop_respects_jerk_limits_and_the_speed_of_the_motion(planned):
    """The motion reaches its jerk limit; the stop may exceed it by half."""
    robot = RobotModel.from_urdf(DEMO_ARM)
    limits = MotionLimits.of(robot, 4.0, jerk_limits=30.0)
    goal = np.array([1.0, -0.8, 0.6, 1.0, 0.5, -1.0])
    motion = Connection(limits, Workspace(robot)).connect(np.zeros(6), goal)
    assert np.abs(motion.jerk_peaks()[1]).max() == pytest.approx(30.0, rel=1e-6)
    unlimited = planned[1]
    for time in np.linspace(0.0, motion.duration, 40):
        stopping = stop(motion, time, limits)
        instants = np.linspace(0.0, stopping.duration, 2000)
        _, velocity, acceleration = stopping.at(instants)
        assert np.abs(stopping.jerk(instants)).max() <= 1.52 * 30.0
        assert np.abs(acceleration).max() <= 4.0 + 1e-6
        later = np.abs(motion.at(np.linspace(time, time + stopping.duration, 2000))[1]).max(axis=0)
        assert np.all(np.abs(velocity).max(axis=0) <= later + 1e-6)
        assert stopping.duration < 2.0
        assert stopping.duration >= stop(motion, time, unlimited).duration


@pytest.mark.parametrize("jerk", [np.inf, 20.0])
def test_standstill_brakes_moving_joints_within_limits(planned, jerk):
    limits = replace(planned[1], acceleration=np.array(0.5), jerk=np.array(jerk))
    pose = np.full(len(limits.joint_names), 0.1)
    speed = 0.05
    held = standstill(limits, pose, speed)
    check_limits(held, limits)
    np.testing.assert_array_equal(held.position[-1], pose)
    velocity = [0.0 * pose + speed, 0.0 * pose]
    braking = Trajectory(held.joint_names, held.time, held.position, velocity, held.acceleration)
    time = np.linspace(0.0, braking.duration, 2001)
    used = np.abs(braking.at(time)[2]).max() / 0.5, np.abs(braking.jerk(time)).max() / jerk
    assert max(used) == pytest.approx(1.0, rel=0.01)
