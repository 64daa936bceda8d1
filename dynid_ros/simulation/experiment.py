"""Experiments on the simulated arm as fast as the processor allows, into recordings."""

from dataclasses import replace

import numpy as np

from dynid_ros.recording import Recording
from dynid_ros.simulation.arm import SimulatedArm
from dynid_ros.simulation.following import TrajectoryPoints
from dynid_ros.simulation.sensors import Sensors
from dynid_ros.trajectories import Trajectory


def simulate(arm: SimulatedArm, trajectory: Trajectory, rate: float = 250.0) -> Recording:
    """The true motion, without sensor errors, of `arm` reset to the first pose of `trajectory` and following it.

    Args:
        arm: ends at the end of the trajectory.
        trajectory: of all joints, in any order.
        rate: samples per second; its period must be a multiple of the arm's timestep.

    Raises:
        DynidError: the trajectory cannot be followed, or the rate does not fit.

    """
    motion = trajectory.select(arm.robot.joint_names)
    arm.reset(motion.position[0])
    arm.follow(TrajectoryPoints(motion.joint_names, motion.time, motion.position, motion.velocity, motion.acceleration))
    n_samples = int(motion.duration * rate + 1e-6) + 1
    samples = np.empty((3, n_samples, arm.robot.n_joints))
    for sample in range(n_samples):
        if sample:
            arm.step(1.0 / rate)
        samples[:, sample] = arm.position, arm.velocity, arm.torque
    position, velocity, torque = samples
    source = f"simulation of '{arm.robot.name}'"
    return Recording(motion.joint_names, np.arange(n_samples) / rate, position, velocity, torque, source=source)


def measure(true: Recording, sensors: Sensors, rng: np.random.Generator) -> Recording:
    """What `sensors` report of a motion; repeat it for as many repetitions of an experiment as a statistic needs."""
    position, velocity, torque = sensors.measure(true.position, true.velocity, true.torque, rng)
    return replace(true, position=position, velocity=velocity, torque=torque)


def record(arm: SimulatedArm, trajectory: Trajectory, rate: float = 250.0) -> Recording:
    """`simulate`, as the arm's own sensors report it."""
    return measure(simulate(arm, trajectory, rate), arm.sensors, arm.rng)
