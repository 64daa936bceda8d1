"""Simulate one static-rotation experiment of the demo arm, shared by tests of whole jobs."""

from functools import cache

import numpy as np

from dynid_ros.excitation import StaticRotation
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.simulation import Drives, Sensors, SimulatedArm, demo_arm_urdf
from dynid_ros.simulation.replay import measure, simulate
from dynid_ros.trajectories import MotionLimits, Trajectory

ROTORS = (0.8, 0.8, 0.4, 0.04, 0.04, 0.02)
FRICTION = np.array([5.0, 6.0, 4.0, 1.0, 1.0, 0.5])
"""Coulomb friction of `planned_motion` in N m."""


@cache
def demo_robot() -> RobotModel:
    return RobotModel.from_urdf(demo_arm_urdf())


@cache
def _plan() -> Trajectory:
    limits = MotionLimits.of(demo_robot(), 8.0)
    return StaticRotation(demo_robot(), limits, steps=5, dwell=0.4, speed_fraction=0.8).plan().trajectory


@cache
def demo_motion() -> Recording:
    """Return the simulated motion without sensor errors."""
    return simulate(SimulatedArm(demo_robot(), drives=Drives(rotor_inertia=ROTORS)), _plan())


@cache
def demo_recording(seed: int = 0) -> Recording:
    """Return the motion measured by sensors with offsets of 2 % and noise of 0.5 % of their range."""
    return _measured(demo_motion(), seed)


@cache
def planned_motion() -> Recording:
    """Return the motion of an arm that follows exactly, which needs no simulation."""
    robot = demo_robot()
    motion = _plan().sample(125.0)
    torque = robot.inverse_dynamics(motion.position, motion.velocity, motion.acceleration)
    turning = np.abs(motion.velocity) > 1e-6
    last = np.maximum.accumulate(np.where(turning, np.arange(len(turning))[:, None], 0))
    approach = np.take_along_axis(np.sign(motion.velocity), last, axis=0)
    torque += FRICTION * np.where(turning.cumsum(axis=0) > 0, approach, 0.0)
    return Recording(robot.joint_names, motion.time, motion.position, motion.velocity, torque, source="plan")


@cache
def planned_recording(seed: int = 0) -> Recording:
    """Return the planned motion measured by the same sensors."""
    return _measured(planned_motion(), seed)


def _measured(motion: Recording, seed: int) -> Recording:
    rng = np.random.default_rng(seed)
    return measure(motion, Sensors.draw(demo_robot().limits.effort, rng, position_noise=2e-5), rng)
