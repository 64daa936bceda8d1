"""Experiments on a MuJoCo model without ROS: simulated recordings, and replays of recorded motions and torques."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ModelError
from dynid_ros.model.link_tree import LinkTree, position
from dynid_ros.model.urdf import Joint, displacement, pose, roll_pitch_yaw
from dynid_ros.recording import Recording
from dynid_ros.recording.series import CommandPath, WrenchSeries
from dynid_ros.simulation.arm import SimulatedArm
from dynid_ros.simulation.mjcf import BRISTLES_OF, TIMESTEP_S
from dynid_ros.simulation.sensors import Sensors, WrenchSensor
from dynid_ros.simulation.trajectory_points import TrajectoryPoints
from dynid_ros.trajectories import Trajectory


def simulate(
    arm: SimulatedArm,
    trajectory: Trajectory,
    rate: float = 250.0,
    *,
    wrench_topic: str | None = None,
    link_encoders: bool = False,
) -> Recording:
    """Return a recording, without sensor errors, of `arm` while it follows `trajectory` from its first pose.

    Args:
        arm: arm with its load; it is reset to the first pose, and stays at the last one.
        trajectory: trajectory of all joints, in any order.
        rate: samples per second; its period must be a multiple of the arm's timestep.
        wrench_topic: name of the load's wrench in the recording; None: record no wrench.
        link_encoders: whether to record the positions of the links too.

    Raises:
        DynidError: the trajectory cannot be followed, or the rate does not fit.
    """
    motion = trajectory.select(arm.robot.joint_names)
    arm.reset(motion.position[0])
    arm.follow(TrajectoryPoints(motion.joint_names, motion.time, motion.position, motion.velocity, motion.acceleration))
    n_samples = int(motion.duration * rate + 1e-6) + 1
    samples = np.empty((4, n_samples, arm.robot.n_joints))
    wrench = np.empty((n_samples, 6))
    for sample in range(n_samples):
        if sample:
            arm.step(1.0 / rate)
        samples[:, sample] = arm.position, arm.velocity, arm.torque, arm.link_position
        if wrench_topic is not None:
            wrench[sample] = arm.wrench
    position, velocity, torque, link_position = samples
    time = np.arange(n_samples) / rate
    wrenches = {}
    if wrench_topic is not None:
        wrenches[wrench_topic] = WrenchSeries(time, wrench[:, :3], wrench[:, 3:], arm.robot.tip)
    source = f"simulation of '{arm.robot.name}'"
    return Recording(
        motion.joint_names,
        time,
        position,
        velocity,
        torque,
        link_position=link_position if link_encoders else None,
        wrenches=wrenches,
        source=source,
    )


def measure(
    true: Recording, sensors: Sensors, rng: np.random.Generator, wrench_sensor: WrenchSensor | None = None
) -> Recording:
    """Return a copy of a true recording with the errors of `sensors`; each call draws other noise.

    Without `wrench_sensor` wrenches stay true; poses always stay true.
    """
    position, velocity, torque = sensors.measure(true.position, true.velocity, true.torque, rng)
    readings = replace(true, position=position, velocity=velocity, torque=torque)
    if true.link_position is not None:
        readings = replace(readings, link_position=sensors.measure_links(true.link_position, rng))
    if wrench_sensor is None:
        return readings
    wrenches = {}
    for topic, series in true.wrenches.items():
        wrench = wrench_sensor.measure(np.hstack([series.force, series.torque]), rng)
        wrenches[topic] = replace(series, force=wrench[:, :3], torque=wrench[:, 3:])
    return replace(readings, wrenches=wrenches)


def record(
    arm: SimulatedArm,
    trajectory: Trajectory,
    rate: float = 250.0,
    *,
    wrench_topic: str | None = None,
    link_encoders: bool = False,
) -> Recording:
    """Simulate a motion and return the readings of the arm's own sensors."""
    true = simulate(arm, trajectory, rate, wrench_topic=wrench_topic, link_encoders=link_encoders)
    return measure(true, arm.sensors, arm.rng, arm.wrench_sensor)


def hold_others(urdf: str, joint_names: Sequence[str], posture: Mapping[str, float] | None = None) -> str:
    """Return the text of a URDF in which all joints except `joint_names` are fixed.

    Args:
        urdf: text of the URDF.
        joint_names: joints that move.
        posture: positions of the others, rad or m; a joint without one is at zero, or follows the joint it mimics.
    """
    described = LinkTree(urdf, "the URDF").joints
    root = ET.fromstring(urdf)
    for joint in root.findall("joint"):
        name = joint.get("name", "")
        if name in joint_names:
            continue
        if held_at := position(described[name], posture or {}):
            _displace(joint, described[name], held_at)
        joint.set("type", "fixed")
        for mimic in joint.findall("mimic"):
            joint.remove(mimic)
    return ET.tostring(root, encoding="unicode")


def _displace(element: ET.Element, joint: Joint, held_at: float) -> None:
    """Move the origin of a joint to the pose of its child at the joint position `held_at`, rad or m."""
    where = f"joint '{joint.name}'"
    place = pose(joint.origin, where) @ displacement(joint, held_at, where)
    for origin in element.findall("origin"):
        element.remove(origin)
    numbers = {"xyz": place[:3, 3].tolist(), "rpy": roll_pitch_yaw(place[:3, :3])}
    ET.SubElement(element, "origin", {name: " ".join(map(repr, values)) for name, values in numbers.items()})


class Replay:
    """Simulation of recorded motions, commands and torques on a MuJoCo model.

    Args:
        mjcf: text of an MJCF file or a URDF.
        joint_names: names of the n joints, in the order of all arrays; no other joint may move.

    Raises:
        ModelError: MuJoCo refuses the text, or other joints move too.
    """

    def __init__(self, mjcf: str, joint_names: Sequence[str]) -> None:
        try:
            self._model = mujoco.MjModel.from_xml_string(mjcf)
        except ValueError as error:
            raise ModelError(f"MuJoCo refuses the model: {' '.join(str(error).split())}") from error
        if self._model.nv != len(joint_names):
            raise ModelError(f"{self._model.nv} joints move in MuJoCo, expected {len(joint_names)}")
        self._model.opt.timestep = TIMESTEP_S
        self._model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        # Noise may put a recorded position beyond a limit.
        self._model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
        self._data = mujoco.MjData(self._model)
        self._dofs = np.array([self._model.joint(name).dofadr[0] for name in joint_names])
        self._qpos_indices = np.array([self._model.joint(name).qposadr[0] for name in joint_names])
        self._names = joint_names
        names = [self._model.actuator(k).name for k in range(len(joint_names), self._model.actuator_gainprm.shape[0])]
        self._bristles = {self._dofs[joint_names.index(name.removeprefix(BRISTLES_OF))]: name for name in names}

    def torque(self, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
        """Return the torque (N, n) of a motion with position, velocity and acceleration (N, n), including friction."""
        torque = np.empty_like(q)
        for k, state in enumerate(zip(q, qd, qdd, strict=True)):
            self._data.qpos[self._qpos_indices], self._data.qvel[self._dofs], self._data.qacc[self._dofs] = state
            mujoco.mj_inverse(self._model, self._data)
            for dof, name in self._bristles.items():
                self._data.qfrc_inverse[dof] += self._sliding_friction(name, self._data.qvel[dof])
            torque[k] = self._data.qfrc_inverse[self._dofs]
        return torque

    def _sliding_friction(self, name: str, velocity: float) -> float:
        """Return LuGre friction at constant velocity, because MuJoCo's inverse dynamics omit actuators."""
        coulomb, static, stribeck = self._model.actuator(name).biasprm[3:6]
        return float(np.sign(velocity) * (coulomb + (static - coulomb) * np.exp(-((velocity / stribeck) ** 2))))

    def follow(
        self, q: NDArray, qd: NDArray, commands: Sequence[CommandPath], start: float, end: float
    ) -> tuple[NDArray, NDArray]:
        """Simulate servos that follow commands from the state `q`, `qd` (n,) at time `start` until `end`, s.

        Returns:
            Times (K,), s, and positions (K, n).
        """
        mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[self._qpos_indices] = q
        self._data.qvel[self._dofs] = qd
        times = start + TIMESTEP_S * np.arange(round((end - start) / TIMESTEP_S) + 1)
        drives = [self._model.actuator(name).id for name in self._names]
        for k, command in zip(drives, commands, strict=True):
            count = self._model.actuator_history[k, 0] if hasattr(self._model, "actuator_history") else 0
            if count:  # delayed commands from before the start still take effect
                before = TIMESTEP_S * np.arange(-count, 0)
                mujoco.mj_initCtrlHistory(self._model, self._data, k, before, command.at(start + before))
        control = np.column_stack([command.at(times) for command in commands])
        path = np.empty((len(times), len(self._qpos_indices)))
        for k, row in enumerate(control):
            path[k] = self._data.qpos[self._qpos_indices]
            self._data.ctrl[drives] = row
            mujoco.mj_step(self._model, self._data)
        return times, path

    def position(self, q: NDArray, qd: NDArray, time: NDArray, torque: NDArray) -> NDArray:
        """Return the final position (n,) of a simulation from the state `q`, `qd` (n,) with torques as input.

        Args:
            q: (n,) initial position, rad or m.
            qd: (n,) initial velocity, per s.
            time: (M,) times of the torques, s, between which they are interpolated linearly.
            torque: (M, n) torques, N m or N.
        """
        mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[self._qpos_indices] = q
        self._data.qvel[self._dofs] = qd
        steps = time[0] + TIMESTEP_S * (np.arange(round((time[-1] - time[0]) / TIMESTEP_S)) + 0.5)
        for values in np.stack([np.interp(steps, time, column) for column in torque.T], axis=1):
            self._data.qfrc_applied[self._dofs] = values
            mujoco.mj_step(self._model, self._data)
        return self._data.qpos[self._qpos_indices].copy()
