"""Provide an arm model with known links, rotors and friction, and a motion."""

import numpy as np

from dynid_ros.identified.links import LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.recording.uniform_motion import LinkSignals

BASIC_TERMS = JointFriction(offset=True, rotor_inertia=True, smoothing=0.05)
ALL_TERMS = JointFriction(sliding_length=1e-3, stribeck_velocity=0.1, load=True, offset=True, rotor_inertia=True)
RATE = 500.0
BANDWIDTH = 25.0


def build_model(robot: RobotModel, friction: JointFriction = BASIC_TERMS, seed: int = 0) -> LinkModel:
    terms = FrictionModel(friction, (), robot.parameters)
    names = terms.names(robot)
    coefficients = np.random.default_rng(seed).uniform(0.1, 1.0, len(names))
    coefficients[[name.startswith("load") for name in names]] = 0.05
    return LinkModel(robot, robot.parameters, terms, coefficients, LinkSignals(10.0, 10.0, ""))


def make_motion(n: int, duration: float = 3.0) -> tuple[np.ndarray, ...]:
    time = np.arange(0.0, duration, 1 / RATE)
    rate = 1.0 + 0.7 * np.arange(n)
    phase = 0.4 * np.arange(n)
    angle = np.multiply.outer(time, rate) + phase
    return time, 0.8 * np.sin(angle), 0.8 * rate * np.cos(angle), -0.8 * rate**2 * np.sin(angle)
