"""Experiments on the simulated arm as fast as the processor allows, into recordings."""

from dataclasses import replace

import numpy as np

from dynid_ros.recording import Recording
from dynid_ros.recording.series import WrenchSeries
from dynid_ros.simulation.arm import SimulatedArm
from dynid_ros.simulation.sensors import Sensors, WrenchSensor
from dynid_ros.simulation.trajectory_points import TrajectoryPoints
from dynid_ros.trajectories import Trajectory


def simulate(
    arm: SimulatedArm,
    trajectory: Trajectory,
    rate: float = 250.0,
    *,
    wrench_topic: str | None = None,
    link_encoders: bool = False,
) -> Recording:
    """Return the true motion, without sensor errors, of `arm` reset to the first pose of `trajectory` and following it.

    Args:
        arm: with its load; ends at the end of the trajectory.
        trajectory: of all joints, in any order.
        rate: samples per second; its period must be a multiple of the arm's timestep.
        wrench_topic: name of the load's wrench in the recording; None: without a wrench.
        link_encoders: the recording holds the positions of the links too.

    Raises:
        DynidError: the trajectory cannot be followed, or the rate does not fit.
    """
    motion = trajectory.select(arm.robot.joint_names)
    arm.reset(motion.position[0])
    arm.follow(TrajectoryPoints(motion.joint_names, motion.time, motion.position, motion.velocity, motion.acceleration))
    n_samples = int(motion.duration * rate + 1e-6) + 1
    samples = np.empty((4, n_samples, arm.robot.n_joints))
    wrench = np.empty((n_samples, 6))
    for sample in range(n_samples):
        if sample:
            arm.step(1.0 / rate)
        samples[:, sample] = arm.position, arm.velocity, arm.torque, arm.link_position
        if wrench_topic is not None:
            wrench[sample] = arm.wrench
    position, velocity, torque, link_position = samples
    time = np.arange(n_samples) / rate
    wrenches = {}
    if wrench_topic is not None:
        wrenches[wrench_topic] = WrenchSeries(time, wrench[:, :3], wrench[:, 3:], arm.robot.tip)
    source = f"simulation of '{arm.robot.name}'"
    return Recording(
        motion.joint_names,
        time,
        position,
        velocity,
        torque,
        link_position=link_position if link_encoders else None,
        wrenches=wrenches,
        source=source,
    )


def measure(
    true: Recording, sensors: Sensors, rng: np.random.Generator, wrench_sensor: WrenchSensor | None = None
) -> Recording:
    """Return the readings of `sensors` for a motion; repeat it for the repetitions of an experiment.

    Without `wrench_sensor` wrenches stay true, as poses always do.
    """
    position, velocity, torque = sensors.measure(true.position, true.velocity, true.torque, rng)
    readings = replace(true, position=position, velocity=velocity, torque=torque)
    if true.link_position is not None:
        readings = replace(readings, link_position=sensors.measure_links(true.link_position, rng))
    if wrench_sensor is None:
        return readings
    wrenches = {}
    for topic, series in true.wrenches.items():
        wrench = wrench_sensor.measure(np.hstack([series.force, series.torque]), rng)
        wrenches[topic] = replace(series, force=wrench[:, :3], torque=wrench[:, 3:])
    return replace(readings, wrenches=wrenches)


def record(
    arm: SimulatedArm,
    trajectory: Trajectory,
    rate: float = 250.0,
    *,
    wrench_topic: str | None = None,
    link_encoders: bool = False,
) -> Recording:
    """Simulate a motion and return the readings of the arm's own sensors."""
    true = simulate(arm, trajectory, rate, wrench_topic=wrench_topic, link_encoders=link_encoders)
    return measure(true, arm.sensors, arm.rng, arm.wrench_sensor)
