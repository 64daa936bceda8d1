"""Test recordings of simulated motions, with and without sensor errors."""

import time

import numpy as np
import pytest

from dynid_ros.errors import DynidError
from dynid_ros.simulation import Drives, Sensors, SimulatedArm, Springs, measure, record, simulate
from dynid_ros.trajectories import Trajectory

GOAL = np.array([0.3, 0.5, -0.4, 0.2, 0.6, -0.5])


@pytest.fixture
def trajectory(demo_robot):
    zeros = np.zeros((3, 6))
    return Trajectory(demo_robot.joint_names, [0.0, 1.5, 3.0], np.array([0 * GOAL, GOAL, 0 * GOAL]), zeros, zeros)


def test_simulated_motion_follows_the_trajectory(demo_robot, trajectory):
    recording = simulate(SimulatedArm(demo_robot), trajectory, rate=200.0)
    assert recording.joint_names == demo_robot.joint_names
    assert recording.link_position is None
    assert recording.time == pytest.approx(np.arange(601) / 200.0)
    assert recording.position == pytest.approx(trajectory.at(recording.time)[0], abs=3e-3)
    assert recording.velocity == pytest.approx(trajectory.at(recording.time)[1], abs=0.03)


def test_starts_each_experiment_in_the_first_pose(demo_robot, trajectory):
    arm = SimulatedArm(demo_robot, start=[0.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    first = simulate(arm, trajectory)
    arm.release()
    arm.step(1.0)
    second = simulate(arm, trajectory)
    assert np.array_equal(first.torque, second.torque)
    assert first.position[0].tolist() == [0.0] * 6


def test_matches_trajectory_joints_by_name(demo_robot, trajectory):
    arm = SimulatedArm(demo_robot)
    other = trajectory.select(demo_robot.joint_names[::-1])
    assert np.array_equal(simulate(arm, other).torque, simulate(arm, trajectory).torque)


def test_repeated_measurements_differ_by_noise_only(demo_robot, trajectory):
    sensors = Sensors.draw(demo_robot.limits.effort, np.random.default_rng(0), torque_offset=0.0)
    arm = SimulatedArm(demo_robot, sensors=sensors, seed=5)
    true = simulate(arm, trajectory)
    rng = np.random.default_rng(1)
    first = measure(true, sensors, rng)
    second = measure(true, sensors, rng)
    assert not np.array_equal(first.torque, second.torque)
    assert np.std(first.torque - true.torque, axis=0) == pytest.approx(0.005 * demo_robot.limits.effort, rel=0.15)
    assert np.array_equal(record(arm, trajectory).torque, measure(true, sensors, np.random.default_rng(5)).torque)


def test_records_link_encoders_on_request(demo_robot, trajectory):
    sensors = Sensors.draw(demo_robot.limits.effort, np.random.default_rng(0), position_noise=1e-4)
    arm = SimulatedArm(demo_robot, drives=Drives(rotor_inertia=0.5), springs=Springs(700.0), sensors=sensors, seed=5)
    true = simulate(arm, trajectory, link_encoders=True)
    reading = record(arm, trajectory, link_encoders=True)
    assert np.abs(true.link_position - true.position).max() > 5e-3
    noise = reading.link_position - true.link_position
    assert noise.std(axis=0) == pytest.approx([1e-4] * 6, rel=0.15)
    assert np.corrcoef(noise.ravel(), (reading.position - true.position).ravel())[0, 1] == pytest.approx(0.0, abs=0.06)


def test_refuses_rates_that_do_not_divide_the_timestep_rate(demo_robot, trajectory):
    with pytest.raises(DynidError, match="not a multiple of the timestep"):
        simulate(SimulatedArm(demo_robot), trajectory, rate=300.0)


def test_simulates_faster_than_real_time(demo_robot, trajectory):
    """A timestep usually takes 15 µs; the limit of 300 µs detects mistakes, not slow machines."""
    arm = SimulatedArm(demo_robot)
    start = time.process_time()
    simulate(arm, trajectory)
    assert time.process_time() - start < 3000 * 300e-6
