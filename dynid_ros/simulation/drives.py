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
"""Natural frequency of a joint alone, rad/s. With a stiffer servo, MuJoCo's stiction would creep away in a dwell."""
N_SAMPLED_POSES = 100
"""Number of random poses in which the modes of the arm are computed."""
MAX_STEP_RATIO = 0.5
"""Largest product of timestep and natural frequency of a flexible joint; above 2, the integration diverges."""
NEWTON_ITERATIONS = 50
REST_SPEED = 1e-6
"""Velocity (rad/s or m/s) at which the slope of viscous friction at rest is evaluated."""
ONE_WAY = 1.0
"""Sliding length, rad or m, of joints without one; its value has no effect, because `act` passes directions."""


@dataclass(frozen=True)
class ServoGains:
    """Gains of a PD controller for n joints.

    Attributes:
        stiffness: (n,) torque per position error, N m/rad.
        damping: (n,) torque per velocity error, N m s/rad.
    """

    stiffness: np.ndarray
    damping: np.ndarray

    @classmethod
    def of(cls, model: mujoco.MjModel, limits: JointLimits) -> ServoGains:
        """Return gains in proportion to the mean inertia of each joint, with which no mode oscillates in many poses.

        D is the diagonal matrix of mean inertias. With stiffness D w² and damping 2 z w D, each eigenvalue e of
        M(q)^-1 D gives a mode with natural frequency w sqrt(e) and damping ratio z sqrt(e). The choice of z makes the
        slowest mode critically damped. The limit of w keeps the fastest mode below 1 / timestep.
        """
        prismatic = model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
        reach = np.where(prismatic, 1.0, np.pi)
        lower = np.where(np.isfinite(limits.lower), limits.lower, -reach)
        upper = np.where(np.isfinite(limits.upper), limits.upper, reach)
        matrices = _mass_matrices(
            model, lower + np.random.default_rng(0).random((N_SAMPLED_POSES, model.nv)) * (upper - lower)
        )
        inertia = np.mean(np.diagonal(matrices, axis1=1, axis2=2), axis=0)
        modes = np.linalg.eigvals(np.linalg.inv(matrices) * inertia).real
        frequency = min(BANDWIDTH, 1.0 / (model.opt.timestep * np.sqrt(modes.max())))
        return cls(inertia * frequency**2, 2.0 * frequency * inertia / np.sqrt(modes.min()))


class PositionServo:
    """PD controller with an optional feed-forward of inertia and gravity of the arm without load.

    Args:
        arm: model of the arm without load.
        limits: effort limits, and position limits for the choice of gains.
        model: whether there is a feed-forward; without it, the arm sags under gravity.
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
        """Return the torque (n,) without the term -damping · velocity, which MuJoCo integrates implicitly.

        Args:
            desired: (3, n) position, velocity and acceleration.
            position: (n,) present position.
            velocity: (n,) present velocity.
            added: (n,) additional commanded torque.
        """
        damping = self.gains.damping
        desired_position, desired_velocity, acceleration = desired
        drive = self._inverse_dynamics(position, velocity, acceleration) if self._model else np.zeros_like(velocity)
        # The position of the next step depends on the velocity in the middle of the step, so damping refers to it.
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


@dataclass(frozen=True)
class Springs:
    """Flexibility of n joints at the link side (Spong 1987); each value is one number for all joints or (n,).

    The deflection is d = q_m - q, the motor position minus the link position. With half the backlash a, the spring is
    stretched by e = sign(d) max(|d| - a, 0) and transmits k e + k3 e³ plus damping times the rate of d. With springs,
    the friction of `Drives` acts on the link, and their rotor inertia is that of the motor.

    Attributes:
        stiffness: k, N m/rad.
        cubic: k3, N m/rad³.
        dead_zone: a, rad.
        damping: damping coefficient in parallel to the spring, N m s/rad.
        motor_viscous: coefficient b of viscous friction on the motor's side, N m s/rad.
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
        """Return the deflection (n,), rad, at which the spring transmits `torque` (n,) at rest; 0 for zero torque."""
        size = np.abs(torque)
        excess = size / self.stiffness
        # Newton's method: the torque is convex in e and the start lies above the root, so the iterates decrease to it.
        for _ in range(NEWTON_ITERATIONS):
            excess -= (self.stiffness * excess + self.cubic * excess**3 - size) / (
                self.stiffness + 3 * self.cubic * excess**2
            )
        return np.sign(torque) * (excess + self.dead_zone)

    def check_timestep(
        self, joint_names: Sequence[str], link_inertia: np.ndarray, motor_inertia: np.ndarray, timestep: float
    ) -> None:
        """Check that a timestep, s, resolves the oscillation of inertias (n,), kg m², on the springs.

        Raises:
            DynidError: a motor has no inertia, or the timestep is too long for a joint; the message names the joint.
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
    """Friction and rotor inertia of n joints, reflected to the joint; each is one number for all joints or (n,).

    Attributes:
        coulomb: Coulomb friction, N m, which also limits stiction at rest; None: friction in the URDF's `<dynamics>`.
        viscous: coefficient of viscous friction, N m s/rad; None: damping in the URDF's `<dynamics>`.
        rotor_inertia: rotor inertia times gear ratio squared, kg m². The gains of the servo are proportional to the
            inertia, so without rotor inertia a light joint with much friction follows inaccurately.
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
            value = getattr(self, field)
            value = urdf[field] if value is None else value
            values[field] = per_joint(value, range(1, model.nv + 1), field, error=DynidError, least=0.0)
        model.dof_frictionloss[:] = values["coulomb"]
        model.dof_damping[:] = values["viscous"]
        model.dof_armature[:] = values["rotor_inertia"]
        derive_constants(model)
        return Drives(**values)

    def without_friction(self, rotors: np.ndarray) -> Drives:
        """Return drives without friction, whose rotor inertia is increased by `rotors` (n,), kg m².

        Raises:
            DynidError: these drives have friction.
        """
        for name in ("coulomb", "viscous"):
            if getattr(self, name) is not None and np.any(getattr(self, name)):
                raise DynidError(f"friction is given besides {name} of the drives; give one of them")
        return Drives(0.0, 0.0, np.asarray(self.rotor_inertia, dtype=float) + rotors)


@dataclass(frozen=True)
class KnownFriction:
    """Friction model of all joints with its coefficients.

    Attributes:
        model: terms of each joint.
        coefficients: (f,) coefficients in the order of `model.names(robot)`, including rotor inertia.
    """

    model: FrictionModel
    coefficients: NDArray

    @classmethod
    def read(cls, path: str | Path, robot: RobotModel) -> KnownFriction:
        """Return the friction in an `identified.yaml` with links.

        Raises:
            IdentifiedFileError: the file belongs to another robot, has no friction model, or is malformed.
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
        by_name = dict(zip(names, values, strict=True))
        return np.array([by_name.get(f"{term} {name}", 0.0) for name in robot.joint_names])


class ActingFriction:
    """Simulation of a friction model in steps of time.

    Dry friction of a joint with a sliding length follows the Dahl model (Dahl 1968): its state behaves like a spring
    that slides. The integration is implicit: within a step of duration h at velocity v, friction grows by k h v, with
    the slope k of friction over position. Dry friction of other joints is that of MuJoCo, which holds joints at rest;
    the smoothing of the model is ignored. Velocity-dependent terms refer to the end of a step. Load-dependent friction
    refers to the present torque of links and load.

    Args:
        robot: the arm.
        friction: friction model with coefficients.
        timestep: h, s.

    Attributes:
        torque: (n,) friction torque that opposes the motion in the next step, apart from MuJoCo's own terms.

    Raises:
        DynidError: the friction model couples joints.
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
        # `act` passes its own directions, so all joints take the form that has a state of direction.
        joints = [
            replace(joint, smoothing=0.0, dead_zone=0.0, sliding_length=joint.sliding_length or ONE_WAY)
            for joint in model.per_joint(n)
        ]
        terms = OneSampleFriction(FrictionModel(joints), n)
        self._evaluate = terms.evaluate
        self._weights = terms.places @ np.asarray(friction.coefficients, dtype=float)
        self._zeros = np.zeros(n).tolist()
        self.rest(np.zeros(n))

    def rest(self, position: NDArray) -> None:
        """Set joints to rest at `position` (n,) with zero friction."""
        self._last = position.copy()
        self._state = np.zeros_like(position)
        self.torque = np.zeros_like(position)

    def act(self, arm: mujoco.MjModel, data: mujoco.MjData, braking: NDArray | float) -> None:
        """Compute friction for the step that begins at the state of `data`.

        Dry friction without sliding length and damping, plus the damping `braking` of the drives, are written to `arm`.
        The rest of friction is written to `torque`.
        """
        q = data.qpos
        velocity = data.qvel
        displacement = q - self._last
        self._state = np.where(
            self._remembers,
            dahl_step(
                self._state,
                np.sign(displacement),
                np.abs(displacement),
                np.where(self._remembers, self._length, 1.0),
            ),
            0.0,
        )
        self._last = q.copy()
        load = self._zeros
        if self._needs_load:
            # The acceleration in `data` is that of the last step.
            torque = np.empty_like(q)
            mujoco.mj_rne(arm, data, 1, torque)
            load = torque.tolist()
        place = q.tolist()
        moving = np.where(np.abs(velocity) < REST_SPEED, REST_SPEED, velocity)
        speeds = moving.tolist()
        # Friction is the sum of a constant, a function of velocity, and a level times the direction (-1 to 1).
        constant, without_dry, up, down = (
            np.array(self._evaluate(place, speed, self._zeros, [direction] * len(place), load)) @ self._weights
            for speed, direction in ((self._zeros, 0.0), (speeds, 0.0), (speeds, 1.0), (speeds, -1.0))
        )
        forward = up - without_dry
        backward = without_dry - down
        level = np.where(velocity >= 0.0, forward, backward)
        slope = level * (1.0 - self._state * np.sign(velocity)) / np.where(self._remembers, self._length, np.inf)
        arm.dof_frictionloss[:] = np.where(self._remembers, 0.0, np.maximum(level, 0.0))
        arm.dof_damping[:] = (without_dry - constant) / moving + self._timestep * slope + braking
        dry = np.where(self._state >= 0.0, forward, backward) * self._state
        self.torque = constant + np.where(self._remembers, dry, 0.0)
