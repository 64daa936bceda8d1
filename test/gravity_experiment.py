"""One simulated static-rotation experiment of the demo arm, shared by tests of whole jobs."""

from functools import cache

import numpy as np

from dynid_ros.excitation import StaticRotation
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.simulation import Drives, Sensors, SimulatedArm, demo_arm_urdf
from dynid_ros.simulation.simulated_recording import measure, simulate
from dynid_ros.trajectories import MotionLimits

ROTORS = (0.8, 0.8, 0.4, 0.04, 0.04, 0.02)


@cache
def demo_robot() -> RobotModel:
    return RobotModel.from_urdf(demo_arm_urdf())


@cache
def demo_motion() -> Recording:
    """As it was."""
    robot = demo_robot()
    plan = StaticRotation(robot, MotionLimits.of(robot, 8.0), steps=5, dwell=0.4, speed_fraction=0.8).plan()
    return simulate(SimulatedArm(robot, drives=Drives(rotor_inertia=ROTORS)), plan.trajectory)


@cache
def demo_recording(seed: int = 0) -> Recording:
    """As its sensors saw it: offset 2 % and noise 0.5 % of their range."""
    rng = np.random.default_rng(seed)
    sensors = Sensors.draw(demo_robot().limits.effort, rng, position_noise=2e-5)
    return measure(demo_motion(), sensors, rng)
