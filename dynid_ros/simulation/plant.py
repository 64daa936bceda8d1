"""What moves of a simulated arm: its links, and its motors where springs let these move apart."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.model import RobotModel
from dynid_ros.simulation.drives import Drives
from dynid_ros.simulation.load_body import put_load
from dynid_ros.simulation.physics import compile_arm, derive_constants, mass_matrix
from dynid_ros.simulation.push import Push
from dynid_ros.simulation.springs import Springs

DIVERGED = 1e4
"""rad/s or m/s; no arm moves so fast, and MuJoCo still can."""
SETTLING = 20
"""Looks at how far the links sag; each comes nearer by the weight's torque per radian over the stiffness."""


class Plant:
    """Links that the drives move directly; one timestep at a time.

    Args:
        model: of arm and load; its damping is that of the joints' friction.

    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self._data = mujoco.MjData(model)
        self._links = self._motors = slice(model.nv)
        self._viscous = model.dof_damping.copy()
        self._push: Push | None = None

    @property
    def position(self) -> np.ndarray:
        """(n,) of the motors; a view."""
        return self._data.qpos[self._motors]

    @property
    def velocity(self) -> np.ndarray:
        """(n,) of the motors; a view."""
        return self._data.qvel[self._motors]

    @property
    def link_position(self) -> np.ndarray:
        """(n,) of the links; a view."""
        return self._data.qpos[self._links]

    @property
    def link_velocity(self) -> np.ndarray:
        """(n,) of the links; a view."""
        return self._data.qvel[self._links]

    def rest(self, position: np.ndarray) -> None:
        """Be at rest with the motors at `position` (n,)."""
        self._start(position, position)

    def brake(self, damping: np.ndarray | float) -> None:
        """Damp the motors by this (n,) besides their friction; it acts on the velocity at the end of a step."""
        self._model.dof_damping[:] = self._viscous
        self._model.dof_damping[self._motors] += damping

    def carry(self, load: np.ndarray | None) -> None:
        """Have the links carry a load (10,), or none; position and velocity stay."""
        put_load(self._model, load)
        derive_constants(self._model)
        mujoco.mj_step1(self._model, self._data)

    def push(self, link: str, wrench: ArrayLike, axes: str, duration: float) -> None:
        """Push a link, in place of the push before; see `Push`."""
        push = Push(self._model, link, wrench, axes, duration)
        self._data.xfrc_applied[:] = 0.0
        self._push = push

    def step(self, torque: np.ndarray) -> None:
        """Let the drives' `torque` (n,) act on the motors for one timestep."""
        if self._push is not None and not self._push.apply(self._data):
            self._push = None
        self._data.qfrc_applied[self._motors] = torque
        mujoco.mj_step2(self._model, self._data)
        mujoco.mj_step1(self._model, self._data)

    def _start(self, motors: np.ndarray, links: np.ndarray) -> None:
        self._push = None
        mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[self._motors], self._data.qpos[self._links] = motors, links
        mujoco.mj_step1(self._model, self._data)


class FlexiblePlant(Plant):
    """Links that motors pull along by springs: M(q) qdd + ... = tau_s, J qdd_m + b qd_m + tau_s = u.

    MuJoCo takes damping at the velocity of a step's end, which makes inertias seem larger by damping times half a step.
    Of a motor that is a per cent. So half of viscous friction acts on the velocity at a step's beginning.

    Args:
        robot: gives the URDF.
        drives: friction of the links and inertia of the motors, (n,).
        springs: between them, (n,).
        timestep: s.

    Raises:
        DynidError: a motor without inertia, or a timestep that does not resolve a spring.

    """

    def __init__(self, robot: RobotModel, drives: Drives, springs: Springs, timestep: float) -> None:
        model, n = compile_arm(robot, timestep, motors=True), robot.n_joints
        model.dof_frictionloss[:n] = drives.coulomb
        model.dof_damping[:n], model.dof_damping[n:] = drives.viscous, springs.motor_viscous
        model.dof_damping *= 0.5
        model.dof_armature[n:] = drives.rotor_inertia
        derive_constants(model)
        super().__init__(model)
        self._links, self._motors, self._springs = slice(n), slice(n, 2 * n), springs
        self._start(np.zeros(n), np.zeros(n))
        # The lightest that a link can be to its spring: all joints beside it free to give way.
        lightest = 1.0 / np.diagonal(np.linalg.inv(mass_matrix(model, self._data)[:n, :n]))
        springs.check_timestep(robot.joint_names, lightest, np.asarray(drives.rotor_inertia), timestep)

    def rest(self, position: np.ndarray) -> None:
        """As above; the links sag by what the springs give way under their weight."""
        links = position
        for _ in range(SETTLING):
            self._start(position, links)
            links = position - self._springs.deflection(self._data.qfrc_bias[self._links])

    def step(self, torque: np.ndarray) -> None:
        """As above."""
        spring = self._springs.torque(self.position - self.link_position, self.velocity - self.link_velocity)
        friction = self._viscous * self._data.qvel
        self._data.qfrc_applied[self._links] = spring - friction[self._links]
        super().step(torque - spring - friction[self._motors])
