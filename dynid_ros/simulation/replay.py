"""A recorded motion in a MuJoCo model: the torque that it takes there, and where recorded torque takes the arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ModelError
from dynid_ros.model.link_tree import LinkTree, position
from dynid_ros.model.urdf import Joint, displacement, pose, roll_pitch_yaw
from dynid_ros.recording.series import CommandPath
from dynid_ros.simulation.mjcf import BRISTLES_OF, TIMESTEP_S


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
    """Move the origin of a joint to where its child is at a position, rad or m."""
    where = f"joint '{joint.name}'"
    place = pose(joint.origin, where) @ displacement(joint, held_at, where)
    for origin in element.findall("origin"):
        element.remove(origin)
    numbers = {"xyz": place[:3, 3].tolist(), "rpy": roll_pitch_yaw(place[:3, :3])}
    ET.SubElement(element, "origin", {name: " ".join(map(repr, values)) for name, values in numbers.items()})


class Replay:
    """An arm in MuJoCo, whose joints are followed by name.

    Args:
        mjcf: text, or a URDF.
        joint_names: n joints, all that move.

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
        # A recorded position may be beyond a limit by its noise.
        self._model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
        self._data = mujoco.MjData(self._model)
        self._dofs = np.array([self._model.joint(name).dofadr[0] for name in joint_names])
        self._places = np.array([self._model.joint(name).qposadr[0] for name in joint_names])
        self._names = joint_names
        names = [self._model.actuator(k).name for k in range(len(joint_names), self._model.actuator_gainprm.shape[0])]
        self._bristles = {self._dofs[joint_names.index(name.removeprefix(BRISTLES_OF))]: name for name in names}

    def torque(self, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
        """Return the torque (N, n) of a motion, (N, n) each, friction included."""
        found = np.empty_like(q)
        for k, state in enumerate(zip(q, qd, qdd, strict=True)):
            self._data.qpos[self._places], self._data.qvel[self._dofs], self._data.qacc[self._dofs] = state
            mujoco.mj_inverse(self._model, self._data)
            for dof, name in self._bristles.items():
                self._data.qfrc_inverse[dof] += self._sliding_friction(name, self._data.qvel[dof])
            found[k] = self._data.qfrc_inverse[self._dofs]
        return found

    def _sliding_friction(self, name: str, velocity: float) -> float:
        """Return LuGre friction at a constant speed, which inverse dynamics leave out."""
        coulomb, static, stribeck = self._model.actuator(name).biasprm[3:6]
        return float(np.sign(velocity) * (coulomb + (static - coulomb) * np.exp(-((velocity / stribeck) ** 2))))

    def follow(
        self, q: NDArray, qd: NDArray, commands: Sequence[CommandPath], start: float, end: float
    ) -> tuple[NDArray, NDArray]:
        """Return times (K,), s, and positions (K, n) of servos that follow commands from a state (n,) at `start`."""
        mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[self._places] = q
        self._data.qvel[self._dofs] = qd
        times = start + TIMESTEP_S * np.arange(round((end - start) / TIMESTEP_S) + 1)
        drives = [self._model.actuator(name).id for name in self._names]
        for k, command in zip(drives, commands, strict=True):
            count = self._model.actuator_history[k, 0] if hasattr(self._model, "actuator_history") else 0
            if count:  # commands before the start are on their way
                before = TIMESTEP_S * np.arange(-count, 0)
                mujoco.mj_initCtrlHistory(self._model, self._data, k, before, command.at(start + before))
        control = np.column_stack([command.at(times) for command in commands])
        path = np.empty((len(times), len(self._places)))
        for k, row in enumerate(control):
            path[k] = self._data.qpos[self._places]
            self._data.ctrl[drives] = row
            mujoco.mj_step(self._model, self._data)
        return times, path

    def position(self, q: NDArray, qd: NDArray, time: NDArray, torque: NDArray) -> NDArray:
        """Return the position (n,) to which torque (M, n) at times (M,), linear between, drives a state (n,)."""
        mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[self._places] = q
        self._data.qvel[self._dofs] = qd
        steps = time[0] + TIMESTEP_S * (np.arange(round((time[-1] - time[0]) / TIMESTEP_S)) + 0.5)
        for values in np.stack([np.interp(steps, time, column) for column in torque.T], axis=1):
            self._data.qfrc_applied[self._dofs] = values
            mujoco.mj_step(self._model, self._data)
        return self._data.qpos[self._places].copy()
