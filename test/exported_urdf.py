"""Provide inertias to write into a URDF, and compare what Pinocchio and MuJoCo read from it."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest
from pinocchio_arm import PinocchioArm

from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import from_log_cholesky, possible_prior


def draw_parameters(robot: RobotModel, seed: int = 0) -> np.ndarray:
    """Return consistent URDF parameters with a body of about 0.5 kg and 0.05 m added to each link."""
    nominal, _ = possible_prior(robot.parameters, robot.link_names)
    coordinates = np.random.default_rng(seed).normal(size=(robot.n_joints, 10)) * ([0.3] * 4 + [0.1] * 6)
    coordinates[:, :4] += [-0.4, -3.0, -3.0, -3.0]
    return nominal + from_log_cholesky(coordinates).ravel()


def assert_parameters(actual: np.ndarray, expected: np.ndarray) -> None:
    """Assert equality to 1e-12 of the mass, the largest moment and the largest inertia of each link."""
    actual = actual.reshape(-1, 10)
    expected = expected.reshape(-1, 10)
    for entries in (slice(0, 1), slice(1, 4), slice(4, 10)):
        largest = np.abs(expected[:, entries]).max(axis=1, keepdims=True)
        assert np.all(np.abs(actual - expected)[:, entries] <= 1e-12 * largest)


def assert_same_torque(urdf: str, robot: RobotModel, parameters: np.ndarray) -> None:
    """Assert that Pinocchio and MuJoCo compute the model's torque, with all other joints locked at zero."""
    q, qd, qdd = np.random.default_rng(5).normal(size=(3, 5, robot.n_joints))
    expected = robot.inverse_dynamics(q, qd, qdd, parameters)
    scale = np.abs(expected).max()
    arm = PinocchioArm(urdf, robot.joint_names, robot.gravity)
    torque = [arm.inverse_dynamics(*sample) for sample in zip(q, qd, qdd, strict=True)]
    np.testing.assert_allclose(torque, expected, rtol=0, atol=1e-11 * scale)
    np.testing.assert_allclose(mujoco_torque(urdf, robot, q, qd, qdd), expected, rtol=0, atol=1e-9 * scale)


def mujoco_torque(urdf: str, robot: RobotModel, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    mujoco = pytest.importorskip("mujoco")
    root = ET.fromstring(urdf)
    for link in root.iter("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(shape)
    for settings in root.findall("mujoco"):
        root.remove(settings)
    # Without balancing, MuJoCo refuses links without inertia; version 3.3 fuses links with a wrong center.
    ET.SubElement(ET.SubElement(root, "mujoco"), "compiler", fusestatic="false", balanceinertia="false")
    model = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
    model.opt.gravity = robot.gravity
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.dof_damping[:] = 0
    data = mujoco.MjData(model)
    torque = np.empty_like(q)
    joints = [model.joint(name) for name in robot.joint_names]
    for k in range(len(q)):
        for j, joint in enumerate(joints):
            data.qpos[joint.qposadr] = q[k, j]
            data.qvel[joint.dofadr] = qd[k, j]
            data.qacc[joint.dofadr] = qdd[k, j]
        mujoco.mj_inverse(model, data)
        torque[k] = [data.qfrc_inverse[joint.dofadr[0]] for joint in joints]
    return torque
