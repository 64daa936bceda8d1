"""Simulate single joints of table I with other spring laws or stiffnesses, link encoders, and motion by scipy."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import flexible_experiments as experiments
import flexible_motion
import numpy as np
import pa10
from flexible_link import eq_10

from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording


class SpringExperiment(NamedTuple):
    """Recording with the robot and the true joint without its spring."""

    robot: RobotModel
    truth: pa10.FlexibleJoint
    recording: Recording


def spring_experiment(
    joint: int,
    spring: Callable[[float], float] | None = None,
    *,
    stiffer: float = 1.0,
    seconds: float = 8.0,
    base_frequency: float = 1.0,
    harmonics: int | None = None,
    noise: float = 1.0,
) -> SpringExperiment:
    """Simulate a periodic motion with the noise of `flexible_experiments`.

    Args:
        joint: joint 1 to 6 of table I.
        spring: torque in N m by deflection in rad; None: linear.
        stiffer: factor of a linear stiffness.
        seconds: duration.
        base_frequency: base frequency of the motors' motion in Hz.
        harmonics: number of harmonics; None: typical of the joint.
        noise: factor of the noise.
    """
    row = pa10.table_one(joint)
    row = replace(row, stiffness=stiffer * row.stiffness)
    usual, seed = experiments.MOTIONS[joint]
    name = f"joint_{joint}"
    motor = flexible_motion.motor_series(
        (name,), np.array([experiments.SPEED]), base_frequency, harmonics or usual, seed, np.array([0.3])
    )
    start = [float(motor.at([0.0])[0][0, 0]), 0.0]
    derivative = eq_10(row, motor, flexible_motion.SMOOTHING, spring)
    links = flexible_motion.integrate(derivative, start, motor.period, math.ceil(motor.period / 2.5e-4))
    time = np.arange(round(seconds * experiments.RATE)) / experiments.RATE
    q_m, qd_m, qdd_m = motor.at(time)
    q = links.at(time, True)
    wound = np.vectorize(spring)(q_m - q) if spring else row.stiffness * (q_m - q)
    torque = wound + row.motor_inertia * qdd_m + row.motor_viscous * qd_m
    rng = np.random.default_rng(joint)
    scales = (experiments.MOTOR_NOISE, experiments.TORQUE_NOISE * np.sqrt(np.mean(torque**2)), experiments.LINK_NOISE)
    motors, torques, encoders = (
        values + noise * scale * rng.standard_normal(values.shape)
        for values, scale in zip((q_m, torque, q), scales, strict=True)
    )
    recording = Recording(
        (name,), time, motors, np.full_like(motors, np.nan), torques, link_position=encoders, source=f"{name}.csv"
    )
    return SpringExperiment(pa10.single_joint_robot(joint), row, recording)
