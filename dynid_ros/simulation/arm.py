"""A serial arm in MuJoCo with joint drives, a position servo and torque motors."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import DynidError, TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import MAX_MAGNITUDE, per_joint
from dynid_ros.simulation.drives import ActingFriction, Drives, KnownFriction, PositionServo, Springs
from dynid_ros.simulation.mujoco_model import checked_load, compile_arm
from dynid_ros.simulation.plant import MAX_JOINT_SPEED, FlexiblePlant, Plant
from dynid_ros.simulation.sensors import Sensors, WrenchSensor
from dynid_ros.simulation.trajectory_points import JointSpline, SetPoint, TrajectoryPoints
from dynid_ros.simulation.truth import ArmTruth


def checked_pose(robot: RobotModel, position: ArrayLike, *, clip: bool = False) -> np.ndarray:
    """Return positions (n,) within the limits; with `clip`, positions beyond a limit move to it.

    Raises:
        DynidError: the number of positions is wrong, or one is not finite or beyond its limits.
    """
    limits = robot.limits
    names = robot.joint_names
    pose = per_joint(position, names, "the pose", error=DynidError, least=-MAX_MAGNITUDE)
    if clip:
        return np.clip(pose, limits.lower, limits.upper)
    for joint in np.flatnonzero((pose < limits.lower) | (pose > limits.upper)):
        raise DynidError(
            f"the pose has joint '{names[joint]}' at {pose[joint]:.6g}; its limits are "
            f"{limits.lower[joint]:.6g} to {limits.upper[joint]:.6g}"
        )
    return pose


def checked_effort(robot: RobotModel, effort: ArrayLike) -> np.ndarray:
    """Return torques (n,), N m.

    Raises:
        DynidError: the number of torques is wrong, or one is not finite.
    """
    torques = np.asarray(effort, dtype=float)
    names = robot.joint_names
    if torques.shape != (len(names),):
        raise DynidError(f"the effort command has {torques.size} values; expected {len(names)}: {', '.join(names)}")
    for joint in np.flatnonzero(~np.isfinite(torques)):
        raise DynidError(f"the effort command for joint '{names[joint]}' is {torques[joint]}; expected a number")
    return torques


class SimulatedArm:
    """Arm that moves under its joint drives and gravity; it has no contacts, not even between its own links.

    In *position mode* a servo follows trajectories by PD control, with gains that suit the inertia of the arm. As in
    industrial controllers, it may add a feed-forward of inertia and gravity, and commanded torques (`add_effort`). It
    uses the true state, without noise of the encoders. In *effort mode* the last commanded torques persist. The effort
    limits of the URDF saturate the torques of both modes.

    The torque sensor is on the motor's side of friction and rotor inertia, so it reads the torque of the drive. At rest
    this is gravity plus stiction, at most the Coulomb torque, with the sign of the last motion.

    A load may be fixed to the tip link while the arm moves. The servo has no model of the load: the arm sags and
    oscillates until the position error balances the weight of the load. A force/torque sensor between tip link and load
    measures the wrench of the load only.

    With springs every joint is flexible: the drive turns a motor, and a spring transmits its torque to the link.
    Encoders, servo and torque sensor belong to the motors. Only `link_position` shows where the links are.

    Time, position, velocity, torque and wrench refer to the same instant. The state in MuJoCo is one step later,
    because the torque of a step is only known after the step. A command in response to a state therefore acts one
    timestep after that state.

    Args:
        robot: arm with URDF, joint order, limits and gravity.
        drives: friction and rotor inertia; None: friction of the URDF, no rotor inertia.
        friction: friction with all terms of this package, in place of that of the drives; its rotor inertia is added to
            that of the drives.
        springs: springs between motors and links; None: rigid joints.
        sensors: errors of the joints' readings; None: no errors.
        wrench_sensor: errors of the force/torque sensor; None: no errors.
        start: position at the start and after a reset, rad or m, (n,) or one for all joints; None: zero, or the limit
            nearest to it.
        timestep: timestep of the simulation, s.
        seed: seed of the noise of the sensors.
        servo_model: whether the servo has a feed-forward of inertia and gravity.

    Attributes:
        drives: drives with (n,) arrays; their rotor inertia includes that of `friction`.
        truth: true inertial parameters of links and load.
        rng: generator of the noise of the sensors.

    Raises:
        ModelError: the robot cannot be simulated.
        DynidError: invalid drives, friction, springs, start or timestep.
    """

    def __init__(
        self,
        robot: RobotModel,
        *,
        drives: Drives | None = None,
        friction: KnownFriction | None = None,
        springs: Springs | None = None,
        sensors: Sensors | None = None,
        wrench_sensor: WrenchSensor | None = None,
        start: ArrayLike | None = None,
        timestep: float = 0.001,
        seed: int = 0,
        servo_model: bool = True,
    ) -> None:
        if not 0.0 < timestep <= 0.005:
            raise DynidError(f"timestep is {timestep:g} s; expected more than 0 and at most 0.005")
        self.robot = robot
        self.timestep = timestep
        unloaded = compile_arm(robot, timestep)
        drives = drives or Drives()
        if friction is not None:
            if springs is not None:
                raise DynidError("friction is given besides springs; flexible joints have that of the drives")
            drives = drives.without_friction(friction.of_term(robot, "rotor_inertia"))
        self.friction = friction
        self.drives = drives.apply(unloaded)
        self.springs = None if springs is None else springs.of(robot.n_joints)
        self.truth = ArmTruth(unloaded, robot.base)
        acting = None if friction is None else ActingFriction(robot, friction, timestep)
        self._plant = (
            Plant(copy(unloaded), acting)
            if self.springs is None
            else FlexiblePlant(robot, self.drives, self.springs, timestep)
        )
        self.sensors = sensors or Sensors.ideal(robot.n_joints)
        self.wrench_sensor = wrench_sensor or WrenchSensor.ideal()
        self._servo = PositionServo(unloaded, robot.limits, model=servo_model)
        self.rng = np.random.default_rng(seed)
        self._effort: np.ndarray | None = None
        self._added = np.zeros(robot.n_joints)
        self._start = checked_pose(robot, np.zeros(robot.n_joints) if start is None else start, clip=start is None)
        self.reset()

    @property
    def time(self) -> float:
        """Time since the last reset, s."""
        return (self._steps - 1) * self.timestep

    @property
    def position(self) -> np.ndarray:
        """(n,) true positions of the motors, rad or m."""
        return self._position.copy()

    @property
    def link_position(self) -> np.ndarray:
        """(n,) true positions of the links; those of the motors where joints are rigid."""
        return self._link_position.copy()

    @property
    def velocity(self) -> np.ndarray:
        """(n,) true velocities of the motors, rad/s or m/s."""
        return self._velocity.copy()

    @property
    def torque(self) -> np.ndarray:
        """(n,) torques that the drives apply, which also overcome friction and rotor inertia, N m or N."""
        return self._torque.copy()

    @property
    def wrench(self) -> np.ndarray:
        """(6,) force (N) and torque (N m) of the load on the sensor, in the tip link's frame."""
        acceleration = (self._plant.link_velocity - self._link_velocity) / self.timestep
        return self.truth.wrench([self._link_position], [self._link_velocity], [acceleration])[0]

    @property
    def position_error(self) -> np.ndarray:
        """(n,) desired minus true position of the motors in position mode, rad or m."""
        return self._motion.at(self.time)[0] - self._position

    @property
    def effort_mode(self) -> bool:
        """Whether the last effort command drives the arm, instead of the position servo."""
        return self._effort is not None

    def measure(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return readings of position, velocity and torque, each (n,), with the errors of the sensors."""
        return self.sensors.measure(self._position, self._velocity, self._torque, self.rng)

    def measure_links(self) -> np.ndarray:
        """Return readings (n,) of the links' positions, by encoders with the same noise as those of the motors."""
        return self.sensors.measure_links(self._link_position, self.rng)

    def measure_wrench(self) -> tuple[np.ndarray, np.ndarray]:
        """Return force (3,) in N and torque (3,) in N m of the load on the sensor, in the tip link's frame.

        For a load at rest the force is its weight, directed downwards.
        """
        reading = self.wrench_sensor.measure(self.wrench, self.rng)
        return reading[:3], reading[3:]

    def attach_load(self, parameters: ArrayLike) -> None:
        """Fix a load to the tip link in place of the previous load; position and velocity stay, and resets keep it.

        Args:
            parameters: (10,) `[m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]` about the tip link's frame.

        Raises:
            DynidError: no body has these parameters; the previous load stays.
        """
        load = checked_load(parameters)
        self.truth.carry(load)
        self._plant.carry(load)

    def detach_load(self) -> None:
        """Remove the load, if there is one; position and velocity stay."""
        self.truth.carry(None)
        self._plant.carry(None)

    def push(self, wrench: ArrayLike, link: str | None = None, axes: str | None = None, duration: float = 0.1) -> None:
        """Apply an external wrench to a link, as a hand does; a new push replaces the previous one, a reset ends it.

        The force/torque sensor measures the load only, so it does not show the push.

        Args:
            wrench: (6,) force (N) and torque (N m) at the origin of the link's frame.
            link: pushed link; None: the tip link.
            axes: link in whose axes `wrench` is expressed, also while they turn; None: the base link.
            duration: duration of the push, s.

        Raises:
            DynidError: the arm lacks the link, the wrench is not six finite numbers, or the duration is invalid.
        """
        self._plant.push(link or self.robot.tip, wrench, axes or self.robot.base, duration)

    def reset(self, position: ArrayLike | None = None) -> None:
        """Put the arm at rest at `position` (n,) (None: the start), in position mode, at time 0; the load stays.

        Raises:
            DynidError: the position is beyond the limits.
        """
        pose = self._start if position is None else checked_pose(self.robot, position)
        self._plant.rest(pose)
        self._steps = 0
        self._added = np.zeros(self.robot.n_joints)
        self.hold()
        self._advance()

    def hold(self) -> None:
        """Go to position mode and hold the present position."""
        self._effort = None
        self._motion: JointSpline | SetPoint = JointSpline(
            np.zeros(1), self._plant.position[np.newaxis, np.newaxis].copy()
        )
        self._plant.brake(self._servo.gains.damping)

    def release(self) -> None:
        """Go to effort mode with zero torque."""
        self._effort = np.zeros(self.robot.n_joints)
        self._plant.brake(0.0)

    def command_effort(self, effort: ArrayLike) -> None:
        """Set the torques (n,), N m, that the drives apply from now on.

        Raises:
            DynidError: the arm is in position mode, the number of torques is wrong, or one is not finite.
        """
        if not self.effort_mode:
            raise DynidError("effort commands move the arm in effort mode only; it is in position mode")
        self._effort = np.clip(checked_effort(self.robot, effort), -self.robot.limits.effort, self.robot.limits.effort)

    def add_effort(self, effort: ArrayLike) -> None:
        """Set the torques (n,), N m, that are added to those of the servo in position mode from now on.

        Raises:
            DynidError: the number of torques is wrong, or one is not finite.
        """
        self._added = checked_effort(self.robot, effort)

    def follow(self, points: TrajectoryPoints, delay: float = 0.0) -> None:
        """Follow a trajectory, which replaces the previous one and starts from its present desired state.

        Points are joined by linear, cubic or quintic polynomials, depending on which derivatives the points have. After
        the last point the arm holds its position.

        Args:
            points: points of the trajectory.
            delay: time from now until the start of the trajectory, s.

        Raises:
            TrajectoryError: the arm is in effort mode, or a controller would refuse the trajectory; the previous one
                continues.
        """
        if self.effort_mode:
            raise TrajectoryError("the arm follows trajectories in position mode only; it is in effort mode")
        self._motion = points.join(self.robot, self.time, delay, self._motion.at(self.time))

    def track(self, desired: np.ndarray, ahead: float) -> None:
        """Let the servo reach a set-point and then hold it, as a drive interpolates between cyclic set-points.

        Args:
            desired: (3, n) position, velocity and acceleration; a joint with position NaN keeps its last set-point.
            ahead: time from now at which the set-point is reached, s.

        Raises:
            DynidError: the arm is in effort mode.
        """
        if self.effort_mode:
            raise DynidError("the arm takes set-points in position mode only; it is in effort mode")
        held = [[1.0], [0.0], [0.0]] * self._motion.at(self.time)[0]
        self._motion = SetPoint(self.time + ahead, np.where(np.isnan(desired[0]), held, desired))

    def step(self, duration: float) -> None:
        """Let `duration` seconds pass, a multiple of the timestep.

        Raises:
            DynidError: the duration is not a multiple of the timestep, or the simulation diverged.
        """
        steps = round(duration / self.timestep)
        if abs(steps * self.timestep - duration) > 1e-6 * self.timestep:
            raise DynidError(f"cannot step by {duration:g} s: not a multiple of the timestep, {self.timestep:g} s")
        for _ in range(steps):
            self._advance()
        if not np.abs(self._velocity).max() < MAX_JOINT_SPEED:
            where = f"the simulation diverged at {self.time:.3f} s"
            raise DynidError(f"{where}; command smaller efforts or take a shorter timestep")

    def _advance(self) -> None:
        """Keep the present state, and advance the plant by one timestep from it."""
        plant = self._plant
        self._position = plant.position.copy()
        self._velocity = plant.velocity.copy()
        self._link_position = plant.link_position.copy()
        self._link_velocity = plant.link_velocity.copy()
        if self._effort is None:
            desired = self._motion.at(self._steps * self.timestep)
            drive = self._servo.drive(desired, self._position, self._velocity, self._added)
            plant.step(drive)
            # MuJoCo applies the damping of the servo at the velocity after the step.
            self._torque = drive - self._servo.gains.damping * plant.velocity
        else:
            self._torque = self._effort
            plant.step(self._effort)
        self._steps += 1
