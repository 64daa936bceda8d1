"""Integration of a simulated arm over time: links, motors that act through springs, and external pushes on links."""

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
"""Longest duration of a push, s."""
MAX_JOINT_SPEED = 1e4
"""Largest speed of a joint, rad/s or m/s; a higher one shows that the simulation diverged."""
EQUILIBRIUM_ITERATIONS = 20
"""Iterations for the equilibrium of links and springs; each reduces the error by the ratio of the derivative of the
gravity torque to the stiffness."""


class Push:
    """External force and torque at the origin of a link's frame, which moves with the link.

    Args:
        model: model of the arm.
        link: pushed link.
        wrench: (6,) force (N) and torque (N m).
        axes: link in whose axes `wrench` is expressed.
        duration: duration of the push, s.

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
        """Apply the push for one step; return False when its duration is over."""
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
    # The first body is MuJoCo's world.
    names = [model.body(i).name for i in range(1, model.nbody)]
    links = [name for name in names if name != LOAD and not name.startswith(MOTOR_OF)]
    if link not in links:
        raise DynidError(f"the arm has no link '{link}' to push; its links are {', '.join(links)}")
    return 1 + names.index(link)


class Plant:
    """Arm whose drives move the links directly, integrated one timestep at a time.

    Args:
        model: model of arm and load; its damping is that of the joints' friction.
        friction: additional friction; None: no additional friction.
        flexible: whether the model has separate degrees of freedom for the motors, after those of the links.

    Attributes:
        position, velocity: (n,) state of the motors; views of MuJoCo's present state.
        link_position, link_velocity: (n,) state of the links, likewise.
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
        """Put the arm at rest with the motors at `position` (n,)."""
        self._start(position, position)

    def brake(self, damping: np.ndarray | float) -> None:
        """Set a damping (n,) of the motors in addition to friction, which acts on the velocity at the end of a step."""
        self._model.dof_damping[:] = self._viscous
        self._model.dof_damping[self._motors] += damping
        self._braking[self._motors] = damping

    def carry(self, load: np.ndarray | None) -> None:
        """Set the parameters (10,) of the load, None: no load; position and velocity stay."""
        put_load(self._model, load)
        derive_constants(self._model)
        mujoco.mj_step1(self._model, self._data)

    def push(self, link: str, wrench: ArrayLike, axes: str, duration: float) -> None:
        """Begin a push, which replaces the previous one; see `Push`."""
        push = Push(self._model, link, wrench, axes, duration)
        self._data.xfrc_applied[:] = 0.0
        self._push = push

    def step(self, torque: np.ndarray) -> None:
        """Advance one timestep with the drives' `torque` (n,) on the motors."""
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
    """Arm with flexible joints (Spong 1987): M(q) qdd + ... = tau_s, J qdd_m + b qd_m + tau_s = u.

    MuJoCo evaluates damping at the velocity at the end of a step. The inertia then appears larger by damping times half
    a timestep, which is about one per cent for a motor. Half of the viscous friction therefore acts on the velocity at
    the beginning of a step, which cancels this error.

    Args:
        robot: the arm.
        drives: friction of the links and inertia of the motors, (n,).
        springs: springs between motors and links, (n,).
        timestep: timestep, s.

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
        # The inertia at a spring is smallest if all other joints move freely: the inverse of the diagonal of M^-1.
        smallest = 1.0 / np.diagonal(np.linalg.inv(mass_matrix(model, self._data)[:n, :n]))
        springs.check_timestep(robot.joint_names, smallest, np.asarray(drives.rotor_inertia), timestep)

    def rest(self, position: np.ndarray) -> None:
        """Put the motors at rest at `position` (n,), and the links where the springs carry their weight."""
        links = position
        for _ in range(EQUILIBRIUM_ITERATIONS):
            self._start(position, links)
            links = position - self._springs.deflection(self._data.qfrc_bias[self._links])

    def step(self, torque: np.ndarray) -> None:
        """Advance one timestep with the drives' torque (n,)."""
        spring = self._springs.torque(self.position - self.link_position, self.velocity - self.link_velocity)
        friction = self._viscous * self._data.qvel
        self._data.qfrc_applied[self._links] = spring - friction[self._links]
        super().step(torque - spring - friction[self._motors])
