"""Simulated robots whose URDF is inaccurate, in MuJoCo with sensors; and torques of a URDF by Pinocchio."""

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
INERTIA_ERROR = 0.3
GAIN_ERROR = 0.01
RELATIVE_NOISE = 0.005
"""Torque noise relative to a joint's largest torque."""
NOISE_CORRELATION_S = 0.02
"""Time after which the autocorrelation of the noise is 1/e."""
ENCODER_STEP = 2 * np.pi / 2**17
"""Resolution of the encoders, rad or m."""
RELATIVE_TORQUE_STEP = 1 / 2**11
"""Resolution of the torques, relative to a joint's largest torque."""
STAMP_JITTER_S = 2e-4
LOST_FRACTION = 0.01
RELATIVE_ROTOR_RANGE = (0.1, 0.4)
"""Rotor inertia relative to a joint's inertia."""
MIN_RELATIVE_GRAVITY = 0.05
"""Smallest gravity torque, relative to the largest of all joints, of a joint that counts as loaded by gravity."""
N_POSES = 200


class TreeDynamics:
    """Dynamics of a URDF with all joints free, projected on the joints of an arm; others follow or are held."""

    def __init__(self, robot: RobotModel, columns: Mapping[str, int], size: int) -> None:
        chain = robot.chain
        self.lead, self.offset = np.zeros((size, robot.n_joints)), np.zeros(size)
        for i, name in enumerate(chain.mover_names):
            self.lead[columns[name], chain.drivers[i]] = chain.ratios[i]
            self.offset[columns[name]] = chain.offsets[i]
        for name, position in robot.held.items():
            self.offset[columns[name]] = position

    def torque(self, q: np.ndarray, qd: np.ndarray | None = None, qdd: np.ndarray | None = None) -> np.ndarray:
        """Return the torque (N, n) of a motion, (N, n) each; at rest without qd and qdd."""
        still = np.zeros_like(q)
        motion = (q, still if qd is None else qd, still if qdd is None else qdd)
        free = [signal @ self.lead.T for signal in motion]
        free[0] = free[0] + self.offset
        return np.array([self._torque(*sample) for sample in zip(*free, strict=True)]) @ self.lead

    def _torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class InMujoco(TreeDynamics):
    """Dynamics of a URDF in MuJoCo."""

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


class InPinocchio(TreeDynamics):
    """Dynamics of a URDF in Pinocchio."""

    def __init__(self, robot: RobotModel, urdf: str) -> None:
        self.model = pinocchio.buildModelFromXML(urdf)
        self.data = self.model.createData()
        neutral = pinocchio.neutral(self.model)
        pinocchio.framesForwardKinematics(self.model, self.data, neutral)
        base = self.data.oMf[self.model.getFrameId(robot.base)].rotation
        self.model.gravity.linear = base @ robot.gravity
        self.joints = list(self.model.joints)[1:]
        columns = {name: joint.idx_v for name, joint in zip(list(self.model.names)[1:], self.joints, strict=True)}
        super().__init__(robot, columns, self.model.nv)

    def _torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        configuration = np.zeros(self.model.nq)
        for joint in self.joints:
            angle = q[joint.idx_v]
            coordinates = [angle] if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
            configuration[joint.idx_q : joint.idx_q + joint.nq] = coordinates
        return pinocchio.rnea(self.model, self.data, configuration, qd, qdd)


class Truth:
    """A simulated robot whose URDF is inaccurate, and its sensors."""

    def __init__(self, nominal: RobotModel, rng: np.random.Generator, gain_error: float = GAIN_ERROR) -> None:
        prior, _ = possible_prior(nominal.parameters, nominal.link_names)
        coordinates = log_cholesky(prior.reshape(-1, 10))
        coordinates[:, 0] += 0.5 * np.log(rng.uniform(1 - INERTIA_ERROR, 1 + INERTIA_ERROR, len(coordinates)))
        coordinates[:, 1:4] += 0.5 * np.log(rng.uniform(1 - INERTIA_ERROR, 1 + INERTIA_ERROR, (len(coordinates), 3)))
        self.links = from_log_cholesky(coordinates).ravel()
        self.nominal = nominal
        n = nominal.n_joints
        self.arm = self.carrying(np.zeros(10))
        self.gains = 1 + gain_error * rng.standard_normal(n)
        self.offsets = rng.uniform(-0.02, 0.02, n)
        self.friction_seed = int(rng.integers(2**31))
        limits = nominal.limits
        lower = np.maximum(limits.lower, -np.pi)
        upper = np.minimum(limits.upper, np.pi)
        self.poses = rng.uniform(lower, upper, (N_POSES, n))
        self.gravity = self.arm.torque(self.poses)
        self.largest = np.abs(self.gravity).max(axis=0)
        self.loaded = self.largest > MIN_RELATIVE_GRAVITY * self.largest.max()
        few = self.poses[:10]
        inertia = [
            np.mean(self.arm.torque(few, qdd=np.tile(axis, (10, 1))) - self.gravity[:10], axis=0) @ axis
            for axis in np.eye(n)
        ]
        self.rotors = rng.uniform(*RELATIVE_ROTOR_RANGE, n) * np.array(inertia)
        self.size = np.maximum(self.largest, 0.05 * self.largest.max())
        self.size = np.where(limits.effort > 0, np.minimum(self.size, limits.effort), self.size)

    @property
    def values(self) -> dict[str, float]:
        """True parameters by name."""
        names = [*parameter_names(self.nominal), *(f"rotor_inertia {joint}" for joint in self.nominal.joint_names)]
        return dict(zip(names, (*self.links, *self.rotors), strict=True))

    def carrying(self, load: np.ndarray) -> InMujoco:
        """Return the dynamics of the robot with a load (10,) about the tip."""
        robot = self.nominal
        links = self.links.copy()
        links[robot.tip_columns] += transformed(load, robot.tip_offset)
        return InMujoco(robot, urdf_with_inertias(robot, links))

    def drive(self, arm: InMujoco, trajectory: Trajectory, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Return times (N,), and position, velocity and torque (N, n) at the joints."""
        time = np.arange(0.0, trajectory.duration, 1 / RATE)
        q, qd, qdd = trajectory.select(self.nominal.joint_names).at(
            np.maximum(time + STAMP_JITTER_S * rng.normal(size=len(time)), 0)
        )
        torque = arm.torque(q, qd, qdd) + self.rotors * qdd
        return time, q, qd, torque + friction(q, qd, torque, self.size, np.random.default_rng(self.friction_seed))

    def record(self, driven: tuple[np.ndarray, ...], path: Path, rng: np.random.Generator) -> Path:
        """Write the sensors' recording of a motion and return its path."""
        time, q, qd, torque = driven
        torque = self.gains * torque + self.size * self.offsets
        torque = torque + RELATIVE_NOISE * self.size * coloured_noise(q.shape, NOISE_CORRELATION_S * RATE, rng)
        q = q + ENCODER * rng.normal(size=q.shape)
        kept = rng.random(len(time)) >= LOST_FRACTION
        steps = RELATIVE_TORQUE_STEP * self.size
        q = np.round(q / ENCODER_STEP) * ENCODER_STEP
        torque = np.round(torque / steps) * steps
        qd = qd + 0.01 * rng.normal(size=q.shape)
        Recording(self.nominal.joint_names, *(signal[kept] for signal in (time, q, qd, torque))).write_npz(path)
        return path
