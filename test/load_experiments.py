"""Simulate experiments on confidence intervals of load parameters: arms with and without a load in MuJoCo.

Every draw has other motions, another load, friction, noise and gain error.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from clean_recordings import arm
from coverage_experiments import ENCODER, coloured_noise, fourier_motion, friction, record, torque_scale

from dynid_ros.excitation import FourierExcitation
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import from_center_of_mass
from dynid_ros.recording import Recording
from dynid_ros.simulation import Drives, SimulatedArm
from dynid_ros.trajectories import FourierSeries, MotionLimits

MASS = (1.0, 3.0)
REACH = 0.12
"""Largest distance of the load's center from the flange in each direction in m."""
ACCELERATION = 10.0
"""Largest acceleration of each joint in rad/s²."""
HARMONICS = 8
SIZE = (0.05, 0.25)
"""Range of the edges of the block in m."""


@dataclass(frozen=True)
class LoadConditions:
    """Common conditions of experiments.

    Attributes:
        arm: one of `clean_recordings.ARMS`.
        duration: duration of the motion with the load in s.
        unloaded: duration of the motion without the load in s.
        rate: sampling rate in Hz.
        noise: standard deviation of a torque sample in N m.
        correlation: correlation time (1/e) of the noise in s; 0 is white noise.
        friction: Coulomb friction relative to the largest torque; 0: sensors behind the gears, without friction.
        mismatch: scale of the friction that Coulomb, viscous and offset terms do not describe.
        gain_error: standard deviation of the relative error of each torque sensor's gain.
        period: period of the motion with the load in s; designed motions without it have twice this period.
    """

    arm: str = "panda"
    duration: float = 5.0
    unloaded: float = 40.0
    rate: float = 250.0
    noise: float = 0.1
    correlation: float = 0.0
    friction: float = 0.02
    mismatch: float = 1.0
    gain_error: float = 0.003
    period: float = 5.0
    designs: int = 0
    """Number of optimized motions, of which each arm executes one; 0: random motions."""


@dataclass(frozen=True)
class LoadExperiment:
    """Recordings without and with a load, and its true parameters (10,) about the tip's frame."""

    robot: RobotModel
    unloaded: Recording
    loaded: Recording
    load: np.ndarray


def draw_load(rng: np.random.Generator, mass: float | None = None) -> np.ndarray:
    """Return the parameters (10,) of a randomly oriented block."""
    mass = rng.uniform(*MASS) if mass is None else mass
    edges = rng.uniform(*SIZE, 3)
    axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    inertia = axes @ np.diag(mass / 12 * (np.sum(edges**2) - edges**2)) @ axes.T
    center = rng.uniform(-REACH, REACH, 3) + np.array([0.0, 0.0, REACH])
    return from_center_of_mass(mass, center, inertia)


@cache
def design_motion(name: str, target: str, period: float, seed: int) -> FourierSeries:
    """Return an optimized motion for links or a load, with typical accelerations of arms of this size."""
    robot = arm(name)
    limits = MotionLimits.of(robot, ACCELERATION)
    plan = FourierExcitation(
        robot,
        limits,
        base_frequency=1 / period,
        harmonics=HARMONICS,
        target=target,
        starts=1,
        design_time=60.0,
        workers=1,
        seed=seed,
    ).plan()
    return plan.series


def draw(conditions: LoadConditions, rng: np.random.Generator, load: np.ndarray | None = None) -> LoadExperiment:
    """Draw an experiment."""
    robot = arm(conditions.arm)
    load = draw_load(rng) if load is None else load
    simulated = SimulatedArm(robot, drives=Drives(0.0, 0.0))
    seeds = rng.integers(2**31, size=2)
    gains = 1 + conditions.gain_error * rng.standard_normal(robot.n_joints)
    offsets = rng.uniform(-0.5, 0.5, robot.n_joints)
    recordings = []
    scale = None
    for duration, body in ((conditions.unloaded, None), (conditions.duration, load)):
        time = np.arange(0.0, duration, 1 / conditions.rate)
        if conditions.designs:
            target, period = ("links", 2 * conditions.period) if body is None else ("load", conditions.period)
            motion = np.array(
                design_motion(conditions.arm, target, period, int(rng.integers(conditions.designs))).at(time)
            )
        else:
            motion = fourier_motion(robot, time, 1 / conditions.period, rng)
        if body is None:
            simulated.detach_load()
        else:
            simulated.attach_load(body)
        torque = simulated.truth.drive_torque(*motion)
        if scale is None:
            scale = torque_scale(torque)
        if conditions.friction:
            # equal friction with and without load apart from its dependence on the torque
            share = conditions.friction / 0.1
            friction_rng = np.random.default_rng(seeds[0])
            torque = torque + share * friction(*motion[:2], torque, scale, conditions.mismatch, friction_rng)
        noise = coloured_noise(torque.shape, conditions.correlation * conditions.rate, rng)
        torque = gains * torque + offsets + conditions.noise * noise
        source = "loaded" if body is not None else "unloaded"
        recordings.append(record(robot, time, motion[0], torque, source, rng))
    return LoadExperiment(robot, *recordings, load)


def draw_rests(robot: RobotModel, load: np.ndarray, n_poses: int, rng: np.random.Generator, noise: float) -> Recording:
    """Return rests of 0.6 s in random poses, each approached from above and from below by all joints.

    Torques are MuJoCo's at rest, with offsets and Coulomb friction of 5 % of the largest torque.
    """
    step = 1 / 250.0
    approach = 0.05
    rest = 0.6
    poses = rng.uniform(
        np.maximum(robot.limits.lower, -2.0), np.minimum(robot.limits.upper, 2.0), (n_poses, len(robot.joint_names))
    )
    ramp = np.linspace(-1.0, 0.0, round(0.4 / step), endpoint=False)
    hold = np.zeros(round(rest / step))
    path = []
    directions = []
    for pose in poses:
        for side in (1.0, -1.0):
            path.append(pose + side * approach * np.concatenate([ramp, hold])[:, None])
            directions.append(np.full((len(ramp) + len(hold), len(pose)), side))
    position = np.concatenate(path)
    direction = np.concatenate(directions)
    simulated = SimulatedArm(robot, drives=Drives(0.0, 0.0))
    simulated.attach_load(load)
    torque = simulated.truth.gravity_torque(position)
    torque += 0.05 * np.abs(torque).max(axis=0) * direction + rng.uniform(-1.0, 1.0, len(robot.joint_names))
    torque += noise * rng.standard_normal(torque.shape)
    unknown = np.full_like(position, np.nan)
    measured = position + rng.normal(0, ENCODER, position.shape)
    return Recording(robot.joint_names, step * np.arange(len(position)), measured, unknown, torque, source="rests")
