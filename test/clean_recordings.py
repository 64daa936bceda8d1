"""Simulate recordings of random Fourier motion without faults: MuJoCo's dynamics, realistic drives and sensors."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
import planar_arm
from pinocchio_arm import example_urdf
from random_chains import TIP, random_urdf

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.simulation import demo_arm_urdf
from dynid_ros.simulation.mujoco_model import compile_arm, mass_matrix

EXAMPLES = {
    "panda": ("panda_description/urdf/panda.urdf", "panda_hand"),
    "ur3": ("ur_description/urdf/ur3_robot.urdf", "ee_link"),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", "tool0"),
    "ur10": ("ur_description/urdf/ur10_robot.urdf", "ee_link"),
    "kinova": ("kinova_description/robots/kinova.urdf", "j2s6s200_end_effector"),
    "xarm7": ("xarm_description/urdf/xarm7.urdf", None),
    "tiago": ("tiago_description/robots/tiago_no_hand.urdf", "arm_tool_link"),
    "z1": ("z1_description/urdf/z1.urdf", None),
}
ARMS = ("demo", "planar", *EXAMPLES)
RATES = (100, 125, 200, 250, 500)


@dataclass(frozen=True)
class Case:
    """Recording with the quantities that determine whether a fault matters.

    Attributes:
        name: name of the arm.
        robot: model with assumed inertias.
        recording: recording of one run.
        friction: (n,) mean magnitude of the friction torque in N m.
        gravity: (N, n) gravity torque that the driver would subtract, in N m.
        bandwidth: highest frequency of the motion in Hz.
        simulated: whether the arm is simulated.
        motion: kind of motion.
        rigid: (N, n) exact torque without friction, if it is known, in N m.
    """

    name: str
    robot: RobotModel
    recording: Recording
    friction: np.ndarray
    gravity: np.ndarray
    bandwidth: float
    simulated: bool = True
    motion: str = "fourier"
    rigid: np.ndarray | None = None


@cache
def arm(name: str) -> RobotModel:
    """Return one of ARMS or the random chain of that number, with joints outside the chain fixed."""
    if name == "demo":
        return RobotModel.from_urdf(demo_arm_urdf())
    if name == "planar":
        return RobotModel.from_urdf(planar_arm.urdf())
    if name in EXAMPLES:
        path, tip = EXAMPLES[name]
        return fix_other_joints(RobotModel.from_urdf(example_urdf(path), tip=tip), tip)
    rng = np.random.default_rng(int(name))
    return RobotModel.from_urdf(random_urdf(rng, int(rng.integers(3, 8)), 0.15), tip=TIP)


def fix_other_joints(robot: RobotModel, tip: str | None, base: str | None = None) -> RobotModel:
    """Return the arm with all joints outside its chain fixed."""
    root = ET.fromstring(robot.urdf)
    for joint in root.iter("joint"):
        if joint.get("name") not in robot.joint_names and joint.get("type") is not None:
            joint.set("type", "fixed")
    return RobotModel.from_urdf(ET.tostring(root, encoding="unicode"), tip=tip, base=base)


def clean_case(
    rng: np.random.Generator,
    name: str | None = None,
    amplitude: float | np.ndarray | None = None,
    find: Callable[[str], RobotModel] | None = None,
) -> Case:
    """Simulate a recording of 15 to 50 s of one of ARMS, or in a quarter of the cases of a random chain.

    Args:
        rng: random generator.
        name: name of the arm; None: random.
        amplitude: amplitude in rad or m, (n,) or one number; 0 holds a joint; None: as the limits allow.
        find: function that returns the model of an arm; None: `arm`.
    """
    find = find or arm
    while True:
        chosen = name or (str(rng.integers(1000)) if rng.random() < 0.25 else str(rng.choice(ARMS)))
        try:
            model = compile_arm(find(chosen), 0.001)
        except ModelError:  # a random chain whose last link has no mass
            if name:
                raise
            continue
        return _recorded(chosen, find(chosen), model, amplitude, rng)


def fourier_motion(robot: RobotModel, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Return times (N,), position with two derivatives (3, N, n), and the highest of five frequencies in Hz."""
    n = robot.n_joints
    harmonics = np.arange(1, 6)
    base = rng.uniform(0.05, 0.2)
    time = np.arange(0.0, np.clip(rng.uniform(1.0, 4.0) / base, 15.0, 50.0), 1 / rng.choice(RATES))
    prismatic = robot.chain.prismatic
    reach = np.where(prismatic, 0.5, np.pi)
    middle = np.clip(0.0, robot.limits.lower, robot.limits.upper)
    lower = np.maximum(robot.limits.lower, middle - reach)
    upper = np.minimum(robot.limits.upper, middle + reach)
    speed = np.minimum(robot.limits.velocity, np.where(prismatic, 0.5, 2.0)) * rng.uniform(0.4, 0.9, n)
    amplitude = rng.normal(size=(5, n)) / harmonics[:, None] ** rng.uniform(0.0, 1.0)
    phase = rng.uniform(0, 2 * np.pi, (5, n))
    rate = 2 * np.pi * base * harmonics
    angle = np.multiply.outer(time, rate)[:, :, None] + phase
    motion = np.array(
        [np.sum(amplitude * np.sin(angle + d * np.pi / 2) * rate[:, None] ** d, axis=1) for d in (0, 1, 2)]
    )
    span = np.ptp(motion[0], axis=0)
    scale = np.minimum(rng.uniform(0.4, 0.9, n) * (upper - lower) / span, speed / np.abs(motion[1]).max(axis=0))
    motion *= scale
    room = (upper - lower) - np.ptp(motion[0], axis=0)
    motion[0] += lower - motion[0].min(axis=0) + room * rng.uniform(0.1, 0.9, n)
    return time, motion, 5 * base


def _recorded(name: str, robot: RobotModel, model: mujoco.MjModel, amplitude, rng: np.random.Generator) -> Case:
    n = robot.n_joints
    time, (q, qd, qdd), bandwidth = fourier_motion(robot, rng)
    if amplitude is not None:
        middle = q.mean(axis=0)
        reach = np.ptp(q, axis=0) / 2
        factor = np.minimum(1.0, amplitude / reach)
        q = middle + factor * (q - middle)
        qd = factor * qd
        qdd = factor * qdd
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    at_the_joint = rng.random() < 0.3  # torque sensors behind the gear measure little friction and no rotor
    model.dof_armature[:] = 0.0 if at_the_joint else np.diag(mass_matrix(model, data)) * rng.uniform(0.0, 1.0, n)
    model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    torque, gravity = (_inverse(model, data, q, *derivatives) for derivatives in ((qd, qdd), (0 * qd, 0 * qdd)))
    size = torque.std(axis=0)
    size = np.maximum(size, max(0.05 * size.max(), 0.01 * np.abs(torque).max()))
    friction = _friction(qd, size * (rng.uniform(0.0, 0.03, n) if at_the_joint else rng.uniform(0.03, 0.4, n)), rng)
    torque = (torque + friction) * (1 + rng.uniform(-0.02, 0.02, n)) + size * rng.uniform(-0.2, 0.2, n)
    torque += size * rng.uniform(0.003, 0.03, n) * rng.standard_normal(q.shape)
    step = 2 * np.pi / 2 ** rng.integers(16, 21)
    measured = np.round((q + rng.normal(0, rng.choice([1e-6, 1e-5, 5e-5]), q.shape)) / step) * step
    velocity = qd + rng.normal(0, 0.003, q.shape) if rng.random() < 0.8 else np.full_like(q, np.nan)
    stamps = time + rng.uniform(0, 0.2 * time[1] * (rng.random() < 0.5), len(time))
    recording = Recording(robot.joint_names, stamps - stamps[0], measured, velocity, torque, source=name)
    driver = gravity * (1 + rng.uniform(-0.1, 0.1, n))
    return Case(name, perturb_links(robot, rng), recording, np.abs(friction).mean(axis=0), driver, bandwidth)


def perturb_links(robot: RobotModel, rng: np.random.Generator, error: float = 0.3) -> RobotModel:
    """Return the arm with masses, first moments and inertias of each link wrong by up to `error`."""
    links = robot.parameters.reshape(-1, 10) * np.repeat(
        1 + rng.uniform(-error, error, (robot.n_joints, 3)), [1, 3, 6], axis=1
    )
    return RobotModel(robot.chain, links.ravel(), robot.gravity, robot.urdf)


def set_gravity(case: Case, gravity: np.ndarray) -> Case:
    """Return the case with another gravity in its robot model."""
    robot = case.robot
    return replace(case, robot=RobotModel(robot.chain, robot.parameters, gravity, robot.urdf))


def _inverse(model: mujoco.MjModel, data: mujoco.MjData, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    torques = np.empty_like(q)
    for torque, *state in zip(torques, q, qd, qdd, strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = state
        mujoco.mj_inverse(model, data)
        torque[:] = data.qfrc_inverse
    return torques


def _friction(qd: np.ndarray, level: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return Coulomb friction of `level` (n,) with viscous friction, asymmetry and a Stribeck term, in N m."""
    n = len(level)
    direction = np.tanh(qd / rng.uniform(0.001, 0.01))
    stribeck = 1 + rng.uniform(0, 0.3, n) * np.exp(-((qd / 0.05) ** 2))
    asymmetry = 1 + rng.uniform(-0.1, 0.1, n) * direction
    viscous = level * rng.uniform(0.2, 1.0, n) * qd / np.maximum(qd.std(axis=0), 1e-9)
    return level * direction * stribeck * asymmetry + viscous
