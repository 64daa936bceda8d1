"""Simulate experiments on confidence intervals of links, rotors, springs and loads by MuJoCo's torques and friction.

Half of the draws have friction of the identified terms, the other half has additional terms.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from clean_recordings import fix_other_joints
from coverage_experiments import add_stamp_noise, coloured_noise, fourier_motion, link_inertia, record, torque_scale
from live_load_experiments import block, friction
from online_experiment import moves
from pinocchio_arm import example_urdf
from scipy.signal import butter, lfilter

from dynid_ros.information.friction_needs import own_gravity
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.recording import Recording
from dynid_ros.simulation import Drives, SimulatedArm
from dynid_ros.simulation.descriptions import misjudged_urdf

ARMS = {
    "talos": ("talos_data/robots/talos_reduced_corrected.urdf", "torso_2_link", "arm_right_7_link"),
    "centauro": ("centauro_description/urdf/centauro.urdf", "torso_2", "arm2_8"),
}
"""Arms that were not used for development."""
DURATION, RATE = 24.0, 100.0
"""Duration in s and sampling rate in Hz of each recording."""
GAIN_ERROR, NOISE, CORRELATION = 0.01, (0.005, 0.02), (0.0, 0.05)
"""Relative gain errors, noise relative to the largest torque, correlation time (1/e) in s."""
MISJUDGED = 0.2
LOAD = (0.15, 0.45)
"""Mass relative to the arm's, at most 3 kg."""
HEAVIEST = 3.0
SENSING = ("exact", "jitter", "filtered")
JITTER_S = (2e-4, 3e-3)
LOSS = 0.01
DRIVER_CUTOFF_HZ = (6.0, 12.0)
SPRING = (0.1, 0.3)
"""Torque of a spring at 1 rad relative to the joint's largest."""


@dataclass(frozen=True)
class WholeExperiment:
    """Recordings and model of an arm with true values.

    Attributes:
        robot: inexact model of the user.
        unloaded: recordings of the arm alone, in a motion of all joints at once and from pose to pose.
        loaded: recording with the load.
        links: (10 n,) true parameters.
        drives: true coefficients by name, such as "rotor_inertia elbow" and "spring elbow".
        load: (10,) true parameters about the tip's frame.
    """

    robot: RobotModel
    unloaded: tuple[Recording, Recording]
    loaded: Recording
    links: np.ndarray
    drives: dict[str, float]
    load: np.ndarray

    def truth(self, base: BaseParameters) -> np.ndarray:
        """Return true base parameters (k,), NaN for those with friction terms."""
        coefficients = [self.drives.get(name, np.nan) for name in base.names[len(self.links) :]]
        values = np.concatenate([self.links, coefficients])
        mixed = np.any(base.combinations[:, np.isnan(values)] != 0, axis=1)
        return np.where(mixed, np.nan, base.project(np.nan_to_num(values)))


@cache
def arm(name: str) -> RobotModel:
    """Return one of ARMS with joints outside the chain fixed."""
    path, base, tip = ARMS[name]
    return fix_other_joints(RobotModel.from_urdf(example_urdf(path), base=base, tip=tip), tip, base)


def draw(name: str, seed: int, *, known: bool, sensing: str = "exact") -> WholeExperiment:
    """Draw an experiment.

    Args:
        name: name of the arm.
        seed: seed of the random numbers.
        known: whether friction has identified terms only.
        sensing: one of SENSING: exact stamps; noisy stamps and 1 % lost samples; or torques after a causal second-order
            low-pass at 6 to 12 Hz.
    """
    robot = arm(name)
    rng = np.random.default_rng([23, seed, known])
    n = robot.n_joints
    load = block(min(robot.parameters[::10].sum(), HEAVIEST / LOAD[1]) * rng.uniform(*LOAD), rng)
    motions = [
        fourier_motion(robot, np.arange(0.0, DURATION, 1 / RATE), 2 / DURATION, rng),
        *(np.array(moves(robot, DURATION, RATE, rng, rng.uniform(0.4, 0.8))[1:]) for _ in range(2)),
    ]
    rotors = rng.uniform(0.1, 0.4, n) * link_inertia(robot)
    simulated = SimulatedArm(robot, drives=Drives(0.0, 0.0, rotors))
    links = simulated.truth.parameters
    scale = torque_scale(simulated.truth.drive_torque(*motions[0]))
    springs = scale * rng.uniform(*SPRING, n) * (rng.random(n) < 0.5) * ~own_gravity(robot)
    terms, coefficients = _terms(robot, scale, rng)
    gains = 1 + GAIN_ERROR * rng.standard_normal(n)
    noise = rng.uniform(*NOISE, n)
    offset = rng.uniform(-0.03, 0.03, n)
    friction_seed = rng.integers(2**31)
    correlation = rng.uniform(*CORRELATION)
    sensing_rng = np.random.default_rng([29, seed, known])
    jitter = sensing_rng.uniform(*JITTER_S)
    driver_cutoff = sensing_rng.uniform(*DRIVER_CUTOFF_HZ)
    recordings = []
    for motion, body in zip(motions, (None, None, load), strict=True):
        simulated.detach_load()
        if body is not None:
            simulated.attach_load(body)
        torque = simulated.truth.drive_torque(*motion)
        added = (
            terms.of_motion(robot, *motion) @ coefficients
            if known
            else friction(*motion[:2], torque, scale, np.random.default_rng(friction_seed))
        )
        torque = gains * (torque + added + springs * motion[0] + scale * offset)
        if sensing == "filtered":
            torque = lfilter(*butter(2, driver_cutoff, fs=RATE), torque - torque[0], axis=0) + torque[0]
        torque += scale * noise * coloured_noise(torque.shape, correlation * RATE, rng)
        recording = record(robot, np.arange(len(torque)) / RATE, motion[0], torque, f"{name} {seed}", rng)
        if sensing == "jitter":
            recording = add_stamp_noise(recording, "delay", jitter, LOSS, sensing_rng)
        recordings.append(recording)
    drives = dict(zip([f"rotor_inertia {joint}" for joint in robot.joint_names], rotors, strict=True))
    drives |= dict(zip([f"spring {joint}" for joint in robot.joint_names], springs, strict=True))
    urdf = misjudged_urdf(robot, MISJUDGED, rng)
    inexact = RobotModel.from_urdf(urdf, tip=robot.tip, base=ARMS[name][1])
    return WholeExperiment(inexact, (recordings[0], recordings[1]), recordings[2], links, drives, load)


def _terms(robot: RobotModel, scale: np.ndarray, rng: np.random.Generator) -> tuple[FrictionModel, np.ndarray]:
    """Return presliding friction that depends on the load of some joints, saturates in others, and may stick."""
    joints = []
    coefficients = []
    for largest in scale:
        joint = JointFriction(
            sliding_length=float(np.exp(rng.uniform(*np.log([2e-4, 3e-3])))),
            load=bool(rng.random() < 0.3),
            stribeck_velocity=float(rng.uniform(0.03, 0.2)) if rng.random() < 0.3 else None,
            saturation_velocity=float(rng.uniform(0.5, 1.5)) if rng.random() < 0.3 else None,
        )
        coulomb = largest * rng.uniform(0.02, 0.1)
        of_one = {
            "coulomb": coulomb,
            "viscous": largest * rng.uniform(0.01, 0.05),
            "stribeck": coulomb * rng.uniform(0.1, 0.4),
            "load": rng.uniform(0.01, 0.05),
        }
        joints.append(joint)
        coefficients += [of_one[term] for term in joint.terms]
    return FrictionModel(joints, (), robot.parameters), np.array(coefficients)
