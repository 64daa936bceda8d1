"""Moving parts of a simulated arm: its links, motors behind springs, and pushes on links."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import finite_vector
from dynid_ros.simulation.drives import ActingFriction, Drives, Springs
from dynid_ros.simulation.mujoco_model import (
    LINK as LOAD,
    MOTOR_OF,
    compile_arm,
    derive_constants,
    mass_matrix,
    put_load,
)

MAX_PUSH_S = 3600.0
"""s"""


class Push:
    """Force and torque at the origin of a moving link's frame, in the directions of given axes.

    Args:
        wrench: (6,) force (N) and torque (N m).
        axes: link along whose axes `wrench` is given.
        duration: s.

    Raises:
        ModelError: the wrench is not six finite numbers.
        DynidError: the arm lacks a link, or the duration is invalid.
    """

    def __init__(self, model: mujoco.MjModel, link: str, wrench: ArrayLike, axes: str, duration: float) -> None:
        if not 0.0 < duration <= MAX_PUSH_S:
            raise DynidError(f"a push for {duration} s; expected a time above 0, up to {MAX_PUSH_S:g} s")
        self._force, self._torque = np.split(finite_vector(wrench, 6, "push (force, torque)"), 2)
        self._body = _body(model, link)
        self._axes = _body(model, axes)
        self._steps = round(duration / model.opt.timestep)

    def apply(self, data: mujoco.MjData) -> bool:
        """Act on the arm for one step; return False when the time is over."""
        self._steps -= 1
        if self._steps < 0:
            data.xfrc_applied[self._body] = 0.0
            return False
        axes = data.xmat[self._axes].reshape(3, 3)
        force = axes @ self._force
        lever = data.xpos[self._body] - data.xipos[self._body]  # MuJoCo takes forces at the centre of mass
        data.xfrc_applied[self._body, :3] = force
        data.xfrc_applied[self._body, 3:] = axes @ self._torque + np.cross(lever, force)
        return True


def _body(model: mujoco.MjModel, link: str) -> int:
    # the first body is MuJoCo's world
    names = [model.body(i).name for i in range(1, model.nbody)]
    links = [name for name in names if name != LOAD and not name.startswith(MOTOR_OF)]
    if link not in links:
        raise DynidError(f"the arm has no link '{link}' to push; its links are {', '.join(links)}")
    return 1 + names.index(link)


DIVERGED = 1e4
"""rad/s or m/s; no arm moves so fast, and MuJoCo still can."""
SETTLING = 20
"""Looks at how far the links sag; each comes nearer by the weight's torque per radian over the stiffness."""


class Plant:
    """Links that the drives move directly; one timestep at a time.

    Args:
        model: of arm and load; its damping is that of the joints' friction.
        friction: additional friction; None without it.
        flexible: whether motors follow the links in the model; else they are the links.

    Attributes:
        position, velocity: (n,) of the motors; views of the present state.
        link_position, link_velocity: (n,) of the links; views.
    """

    def __init__(
        self, model: mujoco.MjModel, friction: ActingFriction | None = None, *, flexible: bool = False
    ) -> None:
        self._model = model
        self._friction = friction
        self._braking = np.zeros(model.nv)
        self._data = mujoco.MjData(model)
        n = model.nv // 2 if flexible else model.nv
        self._links = slice(n)
        self._motors = slice(n, 2 * n) if flexible else self._links
        self.position = self._data.qpos[self._motors]
        self.velocity = self._data.qvel[self._motors]
        self.link_position = self._data.qpos[self._links]
        self.link_velocity = self._data.qvel[self._links]
        self._viscous = model.dof_damping.copy()
        self._push: Push | None = None

    def rest(self, position: np.ndarray) -> None:
        """Be at rest with the motors at `position` (n,)."""
        self._start(position, position)

    def brake(self, damping: np.ndarray | float) -> None:
        """Damp the motors by (n,) in addition to their friction; it acts on the velocity at the end of a step."""
        self._model.dof_damping[:] = self._viscous
        self._model.dof_damping[self._motors] += damping
        self._braking[self._motors] = damping

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
        if self._friction is not None:
            self._data.qfrc_applied -= self._friction.torque
        mujoco.mj_step2(self._model, self._data)
        if self._friction is not None:
            self._friction.act(self._model, self._data, self._viscous + self._braking)
        mujoco.mj_step1(self._model, self._data)

    def _start(self, motors: np.ndarray, links: np.ndarray) -> None:
        self._push = None
        mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[self._motors] = motors
        self._data.qpos[self._links] = links
        if self._friction is not None:
            self._friction.rest(self._data.qpos)
        mujoco.mj_step1(self._model, self._data)


class FlexiblePlant(Plant):
    """Links that motors pull along by springs: M(q) qdd + ... = tau_s, J qdd_m + b qd_m + tau_s = u.

    MuJoCo takes damping at the velocity of a step's end, which makes inertias seem larger by damping times half a step.
    Of a motor that is a per cent. So half of viscous friction acts on the velocity at a step's beginning.

    Args:
        drives: friction of the links and inertia of the motors, (n,).
        springs: between them, (n,).
        timestep: s.

    Raises:
        DynidError: a motor without inertia, or a timestep that does not resolve a spring.
    """

    def __init__(self, robot: RobotModel, drives: Drives, springs: Springs, timestep: float) -> None:
        model = compile_arm(robot, timestep, motors=True)
        n = robot.n_joints
        model.dof_frictionloss[:n] = drives.coulomb
        model.dof_damping[:n] = drives.viscous
        model.dof_damping[n:] = springs.motor_viscous
        model.dof_damping *= 0.5
        model.dof_armature[n:] = drives.rotor_inertia
        derive_constants(model)
        super().__init__(model, flexible=True)
        self._springs = springs
        self._start(np.zeros(n), np.zeros(n))
        # A link is lightest for its spring when all other joints are free to give way.
        lightest = 1.0 / np.diagonal(np.linalg.inv(mass_matrix(model, self._data)[:n, :n]))
        springs.check_timestep(robot.joint_names, lightest, np.asarray(drives.rotor_inertia), timestep)

    def rest(self, position: np.ndarray) -> None:
        """Set the motors to rest at `position`; the links sag by the deflection of the springs under their weight."""
        links = position
        for _ in range(SETTLING):
            self._start(position, links)
            links = position - self._springs.deflection(self._data.qfrc_bias[self._links])

    def step(self, torque: np.ndarray) -> None:
        """Advance one timestep with the drives' torque (n,)."""
        spring = self._springs.torque(self.position - self.link_position, self.velocity - self.link_velocity)
        friction = self._viscous * self._data.qvel
        self._data.qfrc_applied[self._links] = spring - friction[self._links]
        super().step(torque - spring - friction[self._motors])
