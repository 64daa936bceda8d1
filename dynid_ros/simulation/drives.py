"""Joint drives of the simulated arm: position servo, rotor inertia, springs, and friction by all terms of `model`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import DynidError
from dynid_ros.identified.friction import friction_model
from dynid_ros.identified.identified_file import check_same_robot, load_identified
from dynid_ros.model import JointLimits, RobotModel
from dynid_ros.model.arrays import per_joint
from dynid_ros.model.friction import FrictionModel, OneSampleFriction
from dynid_ros.model.friction_terms import dahl_step
from dynid_ros.simulation.mujoco_model import derive_constants, mass_matrix

BANDWIDTH = 60.0
"""Natural frequency (rad/s) of a joint alone. Stiffer servos wear down the soft stiction of MuJoCo during a dwell."""
POSES = 100


@dataclass(frozen=True)
class ServoGains:
    """Torque per position error, stiffness (n,) N m/rad, and per velocity error, damping (n,) N m s/rad."""

    stiffness: np.ndarray
    damping: np.ndarray

    @classmethod
    def of(cls, model: mujoco.MjModel, limits: JointLimits) -> ServoGains:
        """Choose gains by the inertia of each joint, so that no mode of the arm oscillates in any of many poses.

        With stiffness D w² and damping 2 z w D, D diagonal, an eigenvalue e of M(q)^-1 D gives a mode of frequency w
        sqrt(e) and damping ratio z sqrt(e): z makes the slowest mode critical, w keeps the quickest within a step.
        """
        prismatic = model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
        reach = np.where(prismatic, 1.0, np.pi)
        lower = np.where(np.isfinite(limits.lower), limits.lower, -reach)
        upper = np.where(np.isfinite(limits.upper), limits.upper, reach)
        matrices = _mass_matrices(model, lower + np.random.default_rng(0).random((POSES, model.nv)) * (upper - lower))
        inertia = np.mean(np.diagonal(matrices, axis1=1, axis2=2), axis=0)
        modes = np.linalg.eigvals(np.linalg.inv(matrices) * inertia).real
        frequency = min(BANDWIDTH, 1.0 / (model.opt.timestep * np.sqrt(modes.max())))
        return cls(inertia * frequency**2, 2.0 * frequency * inertia / np.sqrt(modes.min()))


class PositionServo:
    """Torque towards a desired motion, from a model of the arm alone: a servo knows nothing of a load.

    Args:
        arm: without a load.
        model: feed inertia and gravity forward; False: a servo that is stiff and knows nothing, and sags.
    """

    def __init__(self, arm: mujoco.MjModel, limits: JointLimits, *, model: bool = True) -> None:
        self.gains = ServoGains.of(arm, limits)
        self._arm = arm
        self._model = model
        self._data = mujoco.MjData(arm)
        self._effort = limits.effort
        self._rotors = arm.dof_armature.copy()
        self._half_step = 0.5 * arm.opt.timestep

    def drive(
        self, desired: np.ndarray, position: np.ndarray, velocity: np.ndarray, added: np.ndarray | float = 0.0
    ) -> np.ndarray:
        """Return the torque (n,) without the damping term, which the caller leaves to MuJoCo's stable integration.

        Args:
            desired: (3, n) position, velocity and acceleration.
            position: (n,) of the arm.
            velocity: (n,) of the arm.
            added: (n,) additional commanded torque.
        """
        damping = self.gains.damping
        desired_position, desired_velocity, acceleration = desired
        drive = self._inverse_dynamics(position, velocity, acceleration) if self._model else np.zeros_like(velocity)
        # Damping acts on the velocity that carries the position through the step: that of its middle.
        drive += damping * (desired_velocity + self._half_step * acceleration)
        drive += self.gains.stiffness * (desired_position - position) + added
        braking = damping * velocity
        return np.clip(drive - braking, -self._effort, self._effort) + braking

    def _inverse_dynamics(self, position: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
        data = self._data
        data.qpos[:] = position
        data.qvel[:] = velocity
        data.qacc[:] = acceleration
        mujoco.mj_kinematics(self._arm, data)
        mujoco.mj_comPos(self._arm, data)
        mujoco.mj_comVel(self._arm, data)
        torque = np.empty_like(velocity)
        mujoco.mj_rne(self._arm, data, 1, torque)
        return torque + self._rotors * acceleration


def _mass_matrices(model: mujoco.MjModel, poses: np.ndarray) -> np.ndarray:
    data = mujoco.MjData(model)
    matrices = []
    for pose in poses:
        data.qpos[:] = pose
        mujoco.mj_step1(model, data)
        matrices.append(mass_matrix(model, data))
    return np.array(matrices)


MAX_STEP_RATIO = 0.5
"""Timestep times the natural frequency of motor and link on their spring; above 2 the integration diverges."""
NEWTON_ITERATIONS = 50


@dataclass(frozen=True)
class Springs:
    """Flexibility of n joints at the link side (Spong 1987); each value is one number for all joints or (n,).

    The deflection is d = q_m - q. The play takes -a to +a of it, and the spring transmits k e + k3 e^3 of the rest e,
    plus a little damping times the rate of d. Friction of `Drives` then belongs to the link, their rotor inertia to the
    motor.

    Attributes:
        stiffness: k, N m/rad.
        cubic: k3, N m/rad^3.
        dead_zone: half the play a, rad.
        damping: in parallel to the spring, N m s/rad.
        motor_viscous: b, friction on the motor's side, N m s/rad.
    """

    stiffness: np.ndarray | float
    cubic: np.ndarray | float = 0.0
    dead_zone: np.ndarray | float = 0.0
    damping: np.ndarray | float = 0.0
    motor_viscous: np.ndarray | float = 0.0

    def of(self, n_joints: int) -> Springs:
        """Return these springs with (n,) arrays.

        Raises:
            DynidError: the number of values is wrong, one is negative or not finite, or a stiffness is 0.
        """
        joints = range(1, n_joints + 1)
        values = {
            field: per_joint(getattr(self, field), joints, field, error=DynidError, least=0.0) for field in vars(self)
        }
        if not np.all(values["stiffness"] > 0.0):
            raise DynidError(
                f"stiffness is {values['stiffness'].tolist()} N m/rad; expected more than 0 for each joint"
            )
        return Springs(**values)

    def torque(self, deflection: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Return the torque (n,) from motor to link, N m, at a deflection (n,) in rad and its rate (n,) in rad/s."""
        excess = np.sign(deflection) * np.maximum(np.abs(deflection) - self.dead_zone, 0.0)
        return self.stiffness * excess + self.cubic * excess**3 + self.damping * rate

    def deflection(self, torque: np.ndarray) -> np.ndarray:
        """Return the deflection (n,), rad, at which the spring transmits `torque` at rest; 0 without torque."""
        size = np.abs(torque)
        excess = size / self.stiffness
        for _ in range(NEWTON_ITERATIONS):  # Newton from above on a convex law
            excess -= (self.stiffness * excess + self.cubic * excess**3 - size) / (
                self.stiffness + 3 * self.cubic * excess**2
            )
        return np.sign(torque) * (excess + self.dead_zone)

    def check_timestep(
        self, joint_names: Sequence[str], link_inertia: np.ndarray, motor_inertia: np.ndarray, timestep: float
    ) -> None:
        """Refuse springs between inertias (n,), kg m^2, that a timestep (s) does not resolve.

        Raises:
            DynidError: a motor has no inertia, or the timestep is too long for a joint; names the joint.
        """
        for joint in np.flatnonzero(~(motor_inertia > 0.0)).tolist():
            raise DynidError(
                f"joint '{joint_names[joint]}' is flexible, its motor has no inertia; expected a rotor_inertia above 0"
            )
        frequency = np.sqrt(self.stiffness * (1.0 / link_inertia + 1.0 / motor_inertia))
        for joint in np.flatnonzero(timestep * frequency > MAX_STEP_RATIO).tolist():
            raise DynidError(
                f"joint '{joint_names[joint]}' swings on its spring at {frequency[joint] / (2 * np.pi):.0f} Hz; a "
                f"timestep of {timestep:g} s is too long: take at most {MAX_STEP_RATIO / frequency[joint]:.2g} s"
            )


@dataclass(frozen=True)
class Drives:
    """Friction and rotor inertia of n joints, seen at the joint; each one number for all joints or (n,).

    Attributes:
        coulomb: dry friction, N m; also the largest torque that holds the joint at rest. None: as in the URDF.
        viscous: damping, N m s/rad. None: as in the URDF's `<dynamics>`.
        rotor_inertia: kg m², gear ratio squared times that of the rotor. The servo is as stiff as inertia allows:
            on a light joint with much friction only a rotor, as every real drive has one, makes it exact.
    """

    coulomb: ArrayLike | None = None
    viscous: ArrayLike | None = None
    rotor_inertia: ArrayLike = 0.0

    def apply(self, model: mujoco.MjModel) -> Drives:
        """Put the drives into `model` and return them as (n,) arrays.

        Raises:
            DynidError: the wrong number of values, or one that is negative or not finite.
        """
        urdf = {"coulomb": model.dof_frictionloss, "viscous": model.dof_damping}
        values = {}
        for field in ("coulomb", "viscous", "rotor_inertia"):
            given = getattr(self, field)
            given = urdf[field] if given is None else given
            values[field] = per_joint(given, range(1, model.nv + 1), field, error=DynidError, least=0.0)
        model.dof_frictionloss[:] = values["coulomb"]
        model.dof_damping[:] = values["viscous"]
        model.dof_armature[:] = values["rotor_inertia"]
        derive_constants(model)
        return Drives(**values)

    def without_friction(self, rotors: np.ndarray) -> Drives:
        """Return these drives without friction, with the rotors (n,) added.

        Raises:
            DynidError: they have friction.
        """
        for name in ("coulomb", "viscous"):
            if getattr(self, name) is not None and np.any(getattr(self, name)):
                raise DynidError(f"friction is given besides {name} of the drives; give one of them")
        return Drives(0.0, 0.0, np.asarray(self.rotor_inertia, dtype=float) + rotors)


SLOW = 1e-6
"""Velocity (rad/s or m/s) at which the slope of viscous friction at rest is evaluated."""
ONE_WAY = 1.0


@dataclass(frozen=True)
class KnownFriction:
    """Friction of all joints.

    Attributes:
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
