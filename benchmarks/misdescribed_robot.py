"""A robot that its URDF describes badly, in MuJoCo, with its sensors; and how Pinocchio reads a URDF."""

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
import pinocchio
from coverage_experiments import ENCODER, coloured_noise
from live_load_experiments import friction

from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import parameter_names
from dynid_ros.model.inertia import from_log_cholesky, log_cholesky, possible_prior, transformed
from dynid_ros.model.urdf_export import urdf_with_inertias
from dynid_ros.recording import Recording
from dynid_ros.simulation.mujoco_model import strip
from dynid_ros.trajectories import Trajectory

RATE = 125.0
WRONG, GAIN_ERROR = 0.3, 0.01
NOISE, CORRELATION = 0.005, 0.02
"""Of a joint's largest torque, and s after which 1/e of it is left."""
ENCODER_STEP, TORQUE_STEP = 2 * np.pi / 2**17, 1 / 2**11
"""rad or m; of the largest torque."""
JITTER, DROPPED, ROTORS = 2e-4, 0.01, (0.1, 0.4)
"""s; of the samples; of a joint's inertia."""
LOADED = 0.05
"""Largest gravity torque, relative to that of all joints, from which a joint counts."""
POSES = 200


class Reduced:
    """A URDF with all joints free, and its torque at the joints of an arm: others follow these, or stand."""

    def __init__(self, robot: RobotModel, columns: Mapping[str, int], size: int) -> None:
        chain = robot.chain
        self.lead, self.offset = np.zeros((size, robot.n_joints)), np.zeros(size)
        for i, name in enumerate(chain.mover_names):
            self.lead[columns[name], chain.drivers[i]] = chain.ratios[i]
            self.offset[columns[name]] = chain.offsets[i]
        for name, at in robot.held.items():
            self.offset[columns[name]] = at

    def torque(self, q: np.ndarray, qd: np.ndarray | None = None, qdd: np.ndarray | None = None) -> np.ndarray:
        """Torque (N, n) of a motion, (N, n) each; at rest without qd and qdd."""
        still = np.zeros_like(q)
        motion = (q, still if qd is None else qd, still if qdd is None else qdd)
        free = [each @ self.lead.T for each in motion]
        free[0] = free[0] + self.offset
        return np.array([self._torque(*sample) for sample in zip(*free, strict=True)]) @ self.lead

    def _torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class InMujoco(Reduced):
    """As MuJoCo reads the URDF."""

    def __init__(self, robot: RobotModel, urdf: str) -> None:
        root = ET.fromstring(urdf)
        strip(root)
        self.model = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
        self.data = mujoco.MjData(self.model)
        mujoco.mj_kinematics(self.model, self.data)
        self.model.opt.gravity = self.data.body(robot.base).xmat.reshape(3, 3) @ robot.gravity
        names = [self.model.joint(i).name for i in range(self.model.njnt)]
        super().__init__(robot, {name: i for i, name in enumerate(names)}, self.model.nv)

    def _torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        self.data.qpos[:], self.data.qvel[:] = q, qd
        mujoco.mj_fwdPosition(self.model, self.data)
        mujoco.mj_fwdVelocity(self.model, self.data)
        torque = np.empty(self.model.nv)
        mujoco.mj_mulM(self.model, self.data, torque, qdd)
        return torque + self.data.qfrc_bias


class InPinocchio(Reduced):
    """As Pinocchio reads it."""

    def __init__(self, robot: RobotModel, urdf: str) -> None:
        self.model = pinocchio.buildModelFromXML(urdf)
        self.data = self.model.createData()
        at = pinocchio.neutral(self.model)
        pinocchio.framesForwardKinematics(self.model, self.data, at)
        base = self.data.oMf[self.model.getFrameId(robot.base)].rotation
        self.model.gravity.linear = base @ robot.gravity
        self.joints = list(self.model.joints)[1:]
        columns = {name: joint.idx_v for name, joint in zip(list(self.model.names)[1:], self.joints, strict=True)}
        super().__init__(robot, columns, self.model.nv)

    def _torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        placed = np.zeros(self.model.nq)
        for joint in self.joints:
            angle = q[joint.idx_v]
            own = [angle] if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
            placed[joint.idx_q : joint.idx_q + joint.nq] = own
        return pinocchio.rnea(self.model, self.data, placed, qd, qdd)


class Truth:
    """A robot that its URDF describes badly, and its sensors."""

    def __init__(self, nominal: RobotModel, rng: np.random.Generator, gain_error: float = GAIN_ERROR) -> None:
        prior, _ = possible_prior(nominal.parameters, nominal.link_names)
        coordinates = log_cholesky(prior.reshape(-1, 10))
        coordinates[:, 0] += 0.5 * np.log(rng.uniform(1 - WRONG, 1 + WRONG, len(coordinates)))
        coordinates[:, 1:4] += 0.5 * np.log(rng.uniform(1 - WRONG, 1 + WRONG, (len(coordinates), 3)))
        self.links, self.nominal, n = from_log_cholesky(coordinates).ravel(), nominal, nominal.n_joints
        self.arm = self.carrying(np.zeros(10))
        self.gains, self.offsets = 1 + gain_error * rng.standard_normal(n), rng.uniform(-0.02, 0.02, n)
        self.own = int(rng.integers(2**31))
        limits = nominal.limits
        lower, upper = np.maximum(limits.lower, -np.pi), np.minimum(limits.upper, np.pi)
        self.poses = rng.uniform(lower, upper, (POSES, n))
        self.gravity = self.arm.torque(self.poses)
        self.largest = np.abs(self.gravity).max(axis=0)
        self.loaded = self.largest > LOADED * self.largest.max()
        few = self.poses[:10]
        inertia = [
            np.mean(self.arm.torque(few, qdd=np.tile(axis, (10, 1))) - self.gravity[:10], axis=0) @ axis
            for axis in np.eye(n)
        ]
        self.rotors = rng.uniform(*ROTORS, n) * np.array(inertia)
        self.size = np.maximum(self.largest, 0.05 * self.largest.max())
        self.size = np.where(limits.effort > 0, np.minimum(self.size, limits.effort), self.size)

    @property
    def values(self) -> dict[str, float]:
        """Parameters by name."""
        names = [*parameter_names(self.nominal), *(f"rotor_inertia {joint}" for joint in self.nominal.joint_names)]
        return dict(zip(names, (*self.links, *self.rotors), strict=True))

    def carrying(self, load: np.ndarray) -> InMujoco:
        """The robot with a load (10,) about the tip."""
        robot, links = self.nominal, self.links.copy()
        links[robot.tip_columns] += transformed(load, robot.tip_offset)
        return InMujoco(robot, urdf_with_inertias(robot, links))

    def drive(self, arm: InMujoco, trajectory: Trajectory, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Times (N,), and position, velocity and torque (N, n) at the joints."""
        time = np.arange(0.0, trajectory.duration, 1 / RATE)
        q, qd, qdd = trajectory.select(self.nominal.joint_names).at(
            np.maximum(time + JITTER * rng.normal(size=len(time)), 0)
        )
        torque = arm.torque(q, qd, qdd) + self.rotors * qdd
        return time, q, qd, torque + friction(q, qd, torque, self.size, np.random.default_rng(self.own))

    def record(self, driven: tuple[np.ndarray, ...], path: Path, rng: np.random.Generator) -> Path:
        """What the sensors make of it."""
        time, q, qd, torque = driven
        torque = self.gains * torque + self.size * self.offsets
        torque = torque + NOISE * self.size * coloured_noise(q.shape, CORRELATION * RATE, rng)
        q = q + ENCODER * rng.normal(size=q.shape)
        kept = rng.random(len(time)) >= DROPPED
        steps = TORQUE_STEP * self.size
        q, torque = np.round(q / ENCODER_STEP) * ENCODER_STEP, np.round(torque / steps) * steps
        qd = qd + 0.01 * rng.normal(size=q.shape)
        Recording(self.nominal.joint_names, *(each[kept] for each in (time, q, qd, torque))).write_npz(path)
        return path
