"""Simulate an arm that floats on the compensator alone, in lockstep with it.

Joint states come at 250 Hz with the default errors of the simulator's sensors, and each command acts one period later.
A position servo holds the arm until it floats, like the previously active controller.
"""

from dataclasses import dataclass

import numpy as np
from pinocchio_arm import example_urdf

from dynid_ros.control import GravityCompensator, JointBrake, JointSettings, Timing
from dynid_ros.control.gravity_feedforward import LoadedGravity
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.simulation import Drives, Sensors, SimulatedArm

PERIOD_S = 0.004
RAMP_S = 2.0
ROTOR_PER_EFFORT = 0.004
"""Rotor inertia in kg m^2 of a joint per N m of its effort limit, which the URDFs do not contain."""


@dataclass(frozen=True)
class Stranger:
    """An arm of `example-robot-data` and a pose in which gravity loads it.

    Attributes:
        urdf: path below the folder of robots.
        tip: last link.
        pose: (n,) rad.
        root: link whose axes are those of the base.
        coulomb: dry friction as a part of the effort limits.
    """

    urdf: str
    tip: str | None
    pose: tuple[float, ...]
    root: str
    coulomb: float = 0.02

    def robot(self) -> RobotModel:
        """Read its URDF."""
        return RobotModel.from_urdf(example_urdf(self.urdf), tip=self.tip)


STRANGERS = {
    "xarm7": Stranger("xarm_description/urdf/xarm7.urdf", None, (0.0, 0.5, 0.3, 1.2, 0.2, 0.6, 0.0), "link_base"),
    "ur5": Stranger("ur_description/urdf/ur5_robot.urdf", "tool0", (0.0, -0.6, 0.9, -0.5, 0.4, 0.0), "base_link"),
    "z1": Stranger("z1_description/urdf/z1.urdf", None, (0.0, 1.2, -0.9, 0.2, 0.1, 0.0, -0.3), "link00", 0.015),
}


class FloatingArm:
    """Arm, compensator and a record of both.

    Args:
        stranger: the arm.
        factor: factor of the model's gravity moments; 1: the truth.
        timing: timing of the compensator; None: a descent of 2 s.
        seed: seed of the sensors.

    Attributes:
        times: times in s.
        positions: (N, n) true positions in rad.
        torques: (N, n) commands in N m, zero without a command.
    """

    def __init__(self, stranger: Stranger, *, factor: float = 1.0, timing: Timing | None = None, seed: int = 1) -> None:
        robot = stranger.robot()
        self.robot = robot
        self.root = stranger.root
        limits = robot.limits
        rng = np.random.default_rng(seed)
        sensors = Sensors.draw(
            limits.effort, rng, torque_offset=0.02, torque_noise=0.005, position_noise=2e-5, velocity_noise=1e-3
        )
        coulomb = stranger.coulomb * np.asarray(limits.effort)
        rotors = ROTOR_PER_EFFORT * np.asarray(limits.effort)
        drives = Drives(coulomb=coulomb, viscous=0.5 * coulomb, rotor_inertia=rotors)
        self.arm = SimulatedArm(robot, start=stranger.pose, drives=drives, sensors=sensors, seed=seed)
        self.model = GravityModel(robot)
        self.moments = self.model.project(robot.parameters)
        self.brake = JointBrake.from_robot(robot, limits.effort, rotor_inertia=rotors)
        self.timing = timing or Timing(ramp_time=RAMP_S, descent_time=2.0)
        self.compensator = GravityCompensator(self.gravity(factor), self.settings(), self.timing)
        self.time = 100.0
        self.floats = False
        self.times: list[float] = []
        self.positions: list[np.ndarray] = []
        self.torques: list[np.ndarray] = []
        self.run(0.2)

    def gravity(self, factor: float = 1.0) -> LoadedGravity:
        """Return the gravity torque of a model whose moments are off by a factor."""
        return LoadedGravity(self.model, factor * self.moments)

    def settings(self, scale: float = 1.0) -> JointSettings:
        """Return the joints' settings at a scale."""
        return JointSettings.from_robot(self.robot, fault_ramp_time=0.5, gain=[scale], brake=self.brake)

    def let_go(self) -> "FloatingArm":
        """Leave the arm to the compensator."""
        self.arm.release()
        self.floats = True
        return self

    def enable(self, seconds: float = RAMP_S + 1.5, **arguments) -> "FloatingArm":
        """Enable at a torque of zero, and let the arm go at once."""
        self.compensator.enable(self.time, **arguments)
        return self.run(seconds)

    def run(self, seconds: float, before_step=None) -> "FloatingArm":
        """Let time pass; `before_step` is called before each step of the simulation."""
        for _ in range(round(seconds / PERIOD_S)):
            self.time += PERIOD_S
            position, velocity, _ = self.arm.measure()
            torque = self.compensator.update(
                self.time, position.tolist(), self.time, None, velocity.tolist(), age=0.5 * PERIOD_S
            )
            command = np.zeros(self.robot.n_joints) if torque is None else np.array(torque)
            if before_step is not None:
                before_step()
            self.arm.step(PERIOD_S)  # the previous command acts meanwhile
            if self.floats:
                self.arm.command_effort(command)
            self.times.append(self.time)
            self.positions.append(self.arm.position)
            self.torques.append(command)
        return self

    def motion(self, since: float) -> float:
        """Return the largest displacement in rad of a joint since time `since` in s."""
        first = int(np.searchsorted(self.times, since))
        positions = np.array(self.positions[first:])
        return float(np.abs(positions - positions[0]).max())

    def speed(self, since: float) -> float:
        """Return the fastest true speed of any joint since then, rad/s."""
        first = int(np.searchsorted(self.times, since))
        return float(np.abs(np.diff(self.positions[first:], axis=0)).max() / PERIOD_S)

    def step(self, since: float) -> float:
        """Return the largest step of a command since then, as a part of the joint's effort limit."""
        first = int(np.searchsorted(self.times, since))
        steps = np.abs(np.diff(self.torques[first:], axis=0)) / self.robot.limits.effort
        return float(steps.max())


class Hand:
    """Hand that leads the tip of an arm like a spring, from place to place with rests.

    Args:
        arm: arm that is led.
        rng: draws the durations and the places, within 0.2 m about the tip of the arm's first pose.

    Attributes:
        forces: (3,) force on the tip in N, one per step.
    """

    STIFFNESS = 800.0
    DAMPING = 40.0
    MAX_FORCE = 120.0

    def __init__(self, arm: FloatingArm, rng: np.random.Generator) -> None:
        self.forces: list[np.ndarray] = []
        self._arm = arm
        self._rng = rng
        self._root = arm.root
        self._middle = self._last = self._start = self._goal = self._tip()
        self._began = arm.time
        self._duration = rng.uniform(0.5, 1.5)  # until a person grasps the released arm

    def pull(self) -> None:
        """Pull for one period."""
        phase = (self._arm.time - self._began) / self._duration
        if phase >= 1.0:
            self._start = self._goal
            if self._rng.random() < 0.7:
                self._goal = self._middle + self._rng.uniform(-0.2, 0.2, 3)
            self._began = self._arm.time
            self._duration = self._rng.uniform(0.6, 2.5)
            phase = 0.0
        smooth = phase**3 * (10.0 - 15.0 * phase + 6.0 * phase**2)
        target = self._start + smooth * (self._goal - self._start)
        tip = self._tip()
        force = self.STIFFNESS * (target - tip) - self.DAMPING * (tip - self._last) / PERIOD_S
        force = np.clip(force, -self.MAX_FORCE, self.MAX_FORCE)
        self._last = tip
        self.forces.append(force)
        self._arm.arm.push([*force, 0.0, 0.0, 0.0], None, self._root, 2.0 * PERIOD_S)

    def _tip(self) -> np.ndarray:
        robot = self._arm.robot
        pose = robot.forward_kinematics(self._arm.arm.position[np.newaxis])[0, -1] @ robot.tip_offset
        return pose[:3, 3]


@dataclass(frozen=True)
class Guiding:
    """Result of leading an arm by hand.

    Attributes:
        alarms: sentences of the compensator.
        forces: (N,) sizes of the forces on the tip, N.
    """

    alarms: list[str]
    forces: np.ndarray


def lead(stranger: Stranger, minutes: float, *, watched: bool = True, seed: int = 0) -> Guiding:
    """Lead an arm by hand: in each ten seconds it is enabled, released by its servo, and led for eight seconds.

    Args:
        stranger: the arm.
        minutes: simulated time in minutes.
        watched: whether the motion is watched and braked.
        seed: seed of sensors and hand.
    """
    rng = np.random.default_rng(seed)
    alarms = []
    forces = []
    for k in range(round(6.0 * minutes)):
        arm = FloatingArm(stranger, seed=seed + k)
        if not watched:
            arm.brake = None
            arm.compensator.joints = arm.settings()
        arm.compensator.enable(arm.time)
        arm.run(RAMP_S + 0.1)
        arm.let_go()
        if watched:
            arm.compensator.released()
        hand = Hand(arm, rng)
        arm.run(8.0, hand.pull)
        if arm.compensator.fault_reason or arm.compensator.notice:
            alarms.append(arm.compensator.fault_reason or arm.compensator.notice)
        forces += [float(np.linalg.norm(force)) for force in hand.forces]
    return Guiding(alarms, np.array(forces))
