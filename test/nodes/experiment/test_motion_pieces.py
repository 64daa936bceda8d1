"""Test motions sent in pieces to a simulated trajectory controller, on random arms in simulated time."""

import numpy as np
import pytest
import random_chains
from rclpy.time import Time

from dynid_ros.model import RobotModel
from dynid_ros.nodes.experiment.trajectory_action import (
    BLENDED,
    BLENDED_ON_ARRIVAL,
    PASSED_OVER,
    PIECE_LENGTH_S,
    MotionPieces,
)
from dynid_ros.nodes.simulated_arm.controllers import trajectory_points
from dynid_ros.simulation import CommandInterfaces, TrajectoryController, TrajectorySettings
from dynid_ros.trajectories import MotionLimits, Trajectory

PAUSE = 0.5
DURATION = 8.0
POINT_RATE = 50.0
STAMP_OFFSET = 1000.0


def build_arm(seed, n_joints):
    """Return a random arm, a motion with frequencies up to 5 Hz, and limits 1.5 times its largest values."""
    robot = RobotModel.from_urdf(
        random_chains.random_urdf(np.random.default_rng(seed), n_joints), tip=random_chains.TIP
    )
    rate = 2.0 * np.pi * 0.25 * np.arange(1, n_joints + 1)
    amplitude = 0.15 / np.arange(1, n_joints + 1)
    time = np.arange(0.0, DURATION + 1e-9, 1.0 / POINT_RATE)
    s = np.sin(np.outer(time, rate))
    c = np.cos(np.outer(time, rate))
    motion = Trajectory(
        robot.joint_names,
        time,
        amplitude * s**3,
        amplitude * rate * 3 * s**2 * c,
        amplitude * rate**2 * (6 * s * c**2 - 3 * s**3),
    )
    largest = [np.abs(field).max(axis=0) * 1.5 for field in (motion.velocity, motion.acceleration)]
    units = ("rad",) * n_joints
    limits = MotionLimits(robot.joint_names, units, np.full(n_joints, -3.0), np.full(n_joints, 3.0), *largest)
    return robot, limits, motion


ARMS = {"4 joints": (7104, 4), "7 joints": (7107, 7)}
CONTROLLERS = {
    "interpolates": (PASSED_OVER, {"interpolate_from_desired_state": True}, 1e-6),
    "both": (BLENDED, {"interpolate_from_desired_state": True, "allow_trajectory_replacement": True}, 5e-3),
    "replaces": (BLENDED_ON_ARRIVAL, {"allow_trajectory_replacement": True}, 8e-3),
}


class Follower:
    """Simulated controller at 500 Hz with a lagging arm; piece i arrives after `delays[i % len(delays)]` seconds."""

    period = 0.002

    def __init__(self, robot, limits, motion, handover, settings, delays, end_time=np.inf):
        self.motion = motion
        self.controller = TrajectoryController(robot, CommandInterfaces(robot.n_joints), TrajectorySettings(**settings))
        self.controller.activate(np.zeros(robot.n_joints))
        pieces = MotionPieces(motion, robot.joint_names, limits, handover, PAUSE)
        pieces.stamp_first(Time(seconds=STAMP_OFFSET))
        self.pending = [(0.001, pieces.first)]
        count = 0
        self.times = []
        self.reference = []
        position = np.zeros(robot.n_joints)
        for step in range(round((PAUSE + DURATION) / self.period)):
            now = step * self.period
            elapsed = now - PAUSE
            if pieces.is_due(elapsed) and not pieces.lateness(elapsed) and elapsed < end_time:
                delay = delays[count % len(delays)]
                count += 1
                read_later = 0.005 * (count % 2)
                piece = pieces.next_piece(elapsed, Time(seconds=STAMP_OFFSET + now + read_later))
                self.pending.append((now + delay, piece))
            for item in [item for item in self.pending if item[0] <= now]:
                self.pending.remove(item)
                stamp = item[1].header.stamp.sec + 1e-9 * item[1].header.stamp.nanosec
                self.controller.topic(trajectory_points(item[1]), now, stamp - STAMP_OFFSET if stamp else None)
            self.controller.update(now, self.period, position, np.zeros(robot.n_joints))
            reference = self.controller._reference
            position = reference[0] - 0.02 * reference[1] - 0.01  # position error: 20 ms lag and 0.01 rad sag
            self.times.append(elapsed + self.period)
            self.reference.append(reference.copy())

    def position_error(self):
        """Return the largest difference between reference and planned position in rad or m."""
        times = np.array(self.times)
        reference = np.array(self.reference)
        during = (times > 0.01) & (times < DURATION)
        return np.abs(reference[during, 0] - self.motion.at(times[during])[0]).max()


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("name", ARMS)
def test_reference_follows_the_plan(name, controller):
    handover, settings, tolerance = CONTROLLERS[controller]
    follower = Follower(*build_arm(*ARMS[name]), handover, settings, delays=[0.001, 0.003])
    assert follower.position_error() < tolerance


@pytest.mark.parametrize("controller", ["interpolates", "both"])
@pytest.mark.parametrize("name", ARMS)
def test_reference_follows_the_plan_despite_a_late_piece(name, controller):
    handover, settings, tolerance = CONTROLLERS[controller]
    late = 0.25 if controller == "both" else 0.8
    follower = Follower(*build_arm(*ARMS[name]), handover, settings, delays=[0.001, late, 0.003])
    assert follower.position_error() < tolerance


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("end_time", [0.5, 2.2, 3.9])
@pytest.mark.parametrize("name", ARMS)
def test_arm_stops_within_limits_after_the_last_piece(name, end_time, controller):
    handover, settings, _ = CONTROLLERS[controller]
    robot, limits, motion = build_arm(*ARMS[name])
    follower = Follower(robot, limits, motion, handover, settings, delays=[0.001, 0.003], end_time=end_time)
    times = np.array(follower.times)
    reference = np.array(follower.reference)
    moving = np.abs(reference[:, 1]).max(axis=1) > 1e-6
    assert PIECE_LENGTH_S - 0.5 < times[moving][-1] - end_time < PIECE_LENGTH_S + 1.0
    after = times > end_time
    assert (np.abs(reference[after, 1]) <= limits.velocity).all()
    assert (np.abs(reference[after, 2]) <= limits.acceleration * 1.3).all()
