"""Friction of the simulated arm by the terms of `dynid_ros.model`: memory, load, Stribeck, springs, harmonics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import DynidError
from dynid_ros.identified.friction import friction_model
from dynid_ros.identified.identified_file import check_same_robot, load_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, OneSampleFriction
from dynid_ros.model.friction_terms import dahl_step

SLOW = 1e-6
"""Velocity (rad/s or m/s) at which the slope of viscous friction at rest is evaluated."""
ONE_WAY = 1.0


@dataclass(frozen=True)
class KnownFriction:
    """Friction of all joints.

    Attributes:
        model: terms of the joints.
        coefficients: (f,) in the order of `model.names(robot)`; those of rotors are the drives' inertia.
    """

    model: FrictionModel
    coefficients: NDArray

    @classmethod
    def read(cls, path: str | Path, robot: RobotModel) -> KnownFriction:
        """Return the friction in an `identified.yaml` with links.

        Raises:
            IdentifiedFileError: the file belongs to another robot, lacks such friction, or is malformed.
        """
        document = load_identified(path)
        check_same_robot(document, robot)
        return cls(*friction_model(document, robot))

    def of_term(self, robot: RobotModel, term: str) -> NDArray:
        """Return the coefficient (n,) of a term of each joint; 0 for joints without the term.

        Raises:
            DynidError: the number of coefficients differs from the model's.
        """
        names = self.model.names(robot)
        values = np.asarray(self.coefficients, dtype=float)
        if values.shape != (len(names),):
            raise DynidError(f"friction has {values.size} coefficients; expected {len(names)}: {', '.join(names)}")
        known = dict(zip(names, values, strict=True))
        return np.array([known.get(f"{term} {name}", 0.0) for name in robot.joint_names])


class ActingFriction:
    """Friction that acts one timestep after the other.

    A direction with memory is a spring that bends and slides (Dahl 1968), integrated implicitly: friction at the end of
    a step is k h v more than at its beginning, with the timestep h. Without memory dry friction is MuJoCo's, which
    holds joints at rest, whatever smoothing the model has. Velocity-dependent terms also refer to the step's end. The
    load of the gears is the present torque of links and load.

    Args:
        robot: the arm.
        friction: of its joints.
        timestep: h, s.

    Raises:
        DynidError: coupled joints.
        ModelError: the model is for another number of joints.
    """

    def __init__(self, robot: RobotModel, friction: KnownFriction, timestep: float) -> None:
        model = friction.model
        n = robot.n_joints
        if model.coupled:
            raise DynidError("friction has coupled joints, which are not simulated; leave them out")
        self._needs_load = model.needs_load
        self._timestep = timestep
        self._length = np.array([joint.sliding_length for joint in model.per_joint(n)])
        self._remembers = self._length > 0.0
        # Directions are given, each as one with a memory.
        given = [
            replace(joint, smoothing=0.0, dead_zone=0.0, sliding_length=joint.sliding_length or ONE_WAY)
            for joint in model.per_joint(n)
        ]
        terms = OneSampleFriction(FrictionModel(given), n)
        self._of = terms.evaluate
        self._weights = terms.places @ np.asarray(friction.coefficients, dtype=float)
        self._still = np.zeros(n).tolist()
        self.rest(np.zeros(n))

    def rest(self, position: NDArray) -> None:
        """Set joints to rest at `position` (n,), without any history."""
        self._last = position.copy()
        self._state = np.zeros_like(position)
        self.torque = np.zeros_like(position)

    def act(self, arm: mujoco.MjModel, data: mujoco.MjData, braking: NDArray | float) -> None:
        """Prepare the step that begins at the positions and velocities of `data`.

        Dry friction and damping, plus the damping `braking` of the drives, go into `arm`; `torque` (n,) brakes too.
        """
        q = data.qpos
        velocity = data.qvel
        way = q - self._last
        self._state = np.where(
            self._remembers,
            dahl_step(self._state, np.sign(way), np.abs(way), np.where(self._remembers, self._length, 1.0)),
            0.0,
        )
        self._last = q.copy()
        load = self._still
        if self._needs_load:
            # Of the links where they were a step ago, which a solver of MuJoCo's has at hand.
            torque = np.empty_like(q)
            mujoco.mj_rne(arm, data, 1, torque)
            load = torque.tolist()
        at = q.tolist()
        moving = np.where(np.abs(velocity) < SLOW, SLOW, velocity)
        speeds = moving.tolist()
        alone, free, up, down = (
            np.array(self._of(at, speed, self._still, [direction] * len(at), load)) @ self._weights
            for speed, direction in ((self._still, 0.0), (speeds, 0.0), (speeds, 1.0), (speeds, -1.0))
        )
        forward = up - free
        backward = free - down
        level = np.where(velocity >= 0.0, forward, backward)
        bending = level * (1.0 - self._state * np.sign(velocity)) / np.where(self._remembers, self._length, np.inf)
        arm.dof_frictionloss[:] = np.where(self._remembers, 0.0, np.maximum(level, 0.0))
        arm.dof_damping[:] = (free - alone) / moving + self._timestep * bending + braking
        dry = np.where(self._state >= 0.0, forward, backward) * self._state
        self.torque = alone + np.where(self._remembers, dry, 0.0)
