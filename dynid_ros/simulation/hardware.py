"""The simulated arm as hardware: command interfaces, and what stays in them when controllers are gone."""

from __future__ import annotations

import numpy as np

from dynid_ros.simulation.arm import SimulatedArm


class CommandInterfaces:
    """Values that controllers have written; they persist when a controller is deactivated or released.

    The next controller that claims an interface finds the last value in it (ros2_control 4.46.0, handle.hpp: NaN at
    first; resource_manager.cpp: a release clears a flag only).

    Attributes:
        position: (n,) rad or m in the arm's joint order; NaN: never commanded.
        velocity: (n,) of the set-point, for drives that interpolate between two of them; zero: at rest.
        acceleration: (n,) of the set-point.
        effort: (n,) N m; NaN: never commanded.
    """

    def __init__(self, n_joints: int) -> None:
        self._n_joints = n_joints
        self.forget()

    def forget(self) -> None:
        """Restore the state before any command, as after a start of the hardware."""
        self.position = np.full(self._n_joints, np.nan)
        self.effort = np.full(self._n_joints, np.nan)
        self.rest()

    def rest(self) -> None:
        """Bring the set-point of the position to rest."""
        self.velocity = np.zeros(self._n_joints)
        self.acceleration = np.zeros(self._n_joints)


class ArmHardware:
    """Hardware that applies its command interfaces to an arm, once per cycle.

    Without a position command the arm holds its position; without an effort command it has no effort. A drive neither
    moves nor pushes a joint beyond its limits. `sums`: effort is added to the servo's torque; False: one of the two
    modes acts at a time.

    Attributes:
        effort_mode: of hardware with modes: effort alone acts; False: position alone.
    """

    def __init__(self, arm: SimulatedArm, interfaces: CommandInterfaces, *, sums: bool) -> None:
        self._arm = arm
        self._interfaces = interfaces
        self._sums = sums
        self.effort_mode = False

    def write(self, period: float) -> None:
        """Command the set-point that is due in `period` s."""
        arm = self._arm
        commands = self._interfaces
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
