"""The simulated arm as hardware behind command interfaces."""

from __future__ import annotations

import numpy as np

from dynid_ros.simulation.arm import SimulatedArm
from dynid_ros.simulation.command_interfaces import CommandInterfaces


class ArmHardware:
    """Has an arm do what its command interfaces say, once in a cycle.

    Without a position command the arm holds its place, without an effort it has none. Beyond the limits of a joint its
    drive neither goes nor pushes.

    Args:
        arm: that moves.
        interfaces: that are obeyed.
        sums: effort is added to the servo's torque; False: the two have modes, one at a time.

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
