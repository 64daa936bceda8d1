"""Simulate position servos in MuJoCo under the gravity compensation of their set-points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from servo_arms import ServoArm, compiled

from dynid_ros.control import CarriedLoad, GravityCompensator, JointSettings, LoadedGravity, Timing
from dynid_ros.control.joint_feedback import FeedbackGains
from dynid_ros.control.servo_offset import ServoOffset
from dynid_ros.model.gravity import GravityModel

PERIOD_S = 0.02
SUBSTEPS = 80
RAMP_S = 0.5


class ServoLoop:
    """Arm of servos, compensator, and a record of both.

    Args:
        arm: servos and links.
        mass: mass in the hand in kg.
        stiffness: assumed stiffness as a fraction of the true one.
        is_load_known: whether the compensator knows the mass.
    """

    def __init__(self, arm: ServoArm, mass: float = 0.0, *, stiffness: float = 1.0, is_load_known: bool = True) -> None:
        import mujoco  # noqa: PLC0415

        self._mujoco = mujoco
        self.arm = arm
        robot = arm.robot
        self.model = compiled(arm, mass=mass)
        self.data = mujoco.MjData(self.model)
        self._joints = np.array([self.model.joint(name).qposadr[0] for name in robot.joint_names])
        self._order = np.array([self.model.actuator(name).id for name in robot.joint_names])
        load = CarriedLoad(mass, (0.0, 0.0, 0.0), robot.tip) if mass and is_load_known else None
        gravity = LoadedGravity(GravityModel(robot), GravityModel(robot).project(arm.parameters), load=load)
        servo = ServoOffset.from_robot(
            robot, {}, stiffness=(stiffness * arm.per_joint("stiffness")).tolist(), limit=[0.3]
        )
        joints = JointSettings.from_robot(
            robot,
            fault_ramp_time=0.5,
            torque=[1000.0],
            feedback=FeedbackGains.from_robot(robot, setpoint_velocity=[0.5]),
            servo=servo,
        )
        self.compensator = GravityCompensator(gravity, joints, Timing(ramp_time=RAMP_S, watch_motion=False))
        self.servo = servo
        self.time = 100.0
        self.command = np.zeros(robot.n_joints)
        self.commands: list[np.ndarray] = []

    @property
    def position(self) -> np.ndarray:
        """Positions (n,) of the encoders, rad."""
        return self.data.qpos[self._joints].copy()

    def start(self, pose: Sequence[float]) -> ServoLoop:
        """Let the servos hold a set-point without compensation until they rest."""
        self.command = np.array(pose, dtype=float)
        self.data.qpos[self._joints] = self.command
        return self.run(2.0)

    def enable(self) -> ServoLoop:
        """Enable from the set-point that the resting arm shows."""
        joints = self.compensator.joints
        self.compensator.update(self.time, self.position.tolist(), self.time)
        gravity = self.compensator.gravity(self.position.tolist())
        desired, torque = self.servo.present(self.position.tolist(), gravity, joints.gain, joints.torque)
        self.compensator.enable(self.time, torque, desired)
        return self

    def run(self, seconds: float) -> ServoLoop:
        """Let time pass."""
        for _ in range(round(seconds / PERIOD_S)):
            self.time += PERIOD_S
            torque = self.compensator.update(self.time, self.position.tolist(), self.time)
            self.advance(torque)
        return self

    def advance(self, torque: Sequence[float] | None) -> None:
        """Send the set-point of a torque and simulate one period; None keeps the last set-point."""
        if torque is not None:
            self.command = np.array(self.servo.command(self.compensator.desired, torque))
        self.commands.append(self.command)
        self.data.ctrl[self._order] = self.command
        self._mujoco.mj_step(self.model, self.data, nstep=SUBSTEPS)

    def sag(self, pose: Sequence[float]) -> float:
        """Return the largest distance of a joint from a pose, rad."""
        return float(np.abs(self.position - np.asarray(pose)).max())
