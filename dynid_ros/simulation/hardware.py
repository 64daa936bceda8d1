"""The simulated arm as hardware: command interfaces, and what stays in them when controllers are gone."""

from __future__ import annotations

import numpy as np

from dynid_ros.simulation.arm import SimulatedArm


class CommandInterfaces:
    """Values that controllers have written; nobody resets them when a controller is deactivated or released.

    Whoever claims one next finds the last value in it (ros2_control 4.46.0, handle.hpp: NaN at first;
    resource_manager.cpp: a release clears a flag only).

    Attributes:
        position: (n,) rad or m in the arm's joint order; NaN: never commanded.
        velocity: (n,) of the same set-point, for drives that interpolate between two of them; zero: it rests.
        acceleration: (n,) likewise.
        effort: (n,) N m; NaN: never commanded.
    """

    def __init__(self, n_joints: int) -> None:
        self._n_joints = n_joints
        self.forget()

    def forget(self) -> None:
        """As before any command: the hardware was started anew."""
        self.position, self.effort = np.full(self._n_joints, np.nan), np.full(self._n_joints, np.nan)
        self.rest()

    def rest(self) -> None:
        """The set-point of the position moves no more."""
        self.velocity, self.acceleration = np.zeros(self._n_joints), np.zeros(self._n_joints)


class ArmHardware:
    """Has an arm do what its command interfaces say, once in a cycle.

    Without a position command the arm holds its place, without an effort it has none. Beyond the limits of a joint its
    drive neither goes nor pushes. `sums`: effort is added to the servo's torque; False: the two have modes, one at a
    time.

    Attributes:
        effort_mode: of hardware with modes: effort alone acts; False: position alone.
    """

    def __init__(self, arm: SimulatedArm, interfaces: CommandInterfaces, *, sums: bool) -> None:
        self._arm = arm
        self._interfaces = interfaces
        self._sums = sums
        self.effort_mode = False

    def write(self, period: float) -> None:
        """Command the arm what is to be reached in `period` from now, s."""
        arm, commands = self._arm, self._interfaces
        limit = arm.robot.limits
        effort = np.nan_to_num(commands.effort)
        if self.effort_mode:
            if not arm.effort_mode:
                arm.release()
            arm.command_effort(effort)
            return
        if arm.effort_mode:
            arm.hold()
        arm.add_effort(effort if self._sums else np.zeros_like(effort))
        position = np.clip(commands.position, limit.lower, limit.upper)
        arm.track(np.array([position, commands.velocity, commands.acceleration]), period)
