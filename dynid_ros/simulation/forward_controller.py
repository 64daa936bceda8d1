"""`forward_command_controller` for efforts: what it does with a command, and when it is switched on and off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import DynidError
from dynid_ros.simulation.command_interfaces import CommandInterfaces


class ForwardController:
    """Writes the last command to the effort interfaces in each cycle.

    As ros2_controllers 4.42.1 has it (forward_controllers_base.cpp): a command that is not finite is dropped when it
    comes; an empty one is nothing; one of another size is an error of `update`, for which the manager deactivates the
    controller. Activation and deactivation forget the command and write nothing: the torque before stays in the
    interface and acts.

    Args:
        joints: in the controller's order.
        arm_joints: the same in the arm's order.
        interfaces: of the arm.

    """

    def __init__(self, joints: Sequence[str], arm_joints: Sequence[str], interfaces: CommandInterfaces) -> None:
        self._joints = list(joints)
        self._order = [self._joints.index(name) for name in arm_joints]
        self._interfaces = interfaces
        self._command: np.ndarray | None = None

    def activate(self) -> None:
        """Forget what came before; write nothing."""
        self._command = None

    def deactivate(self) -> None:
        """The same."""
        self._command = None

    def command(self, effort: ArrayLike) -> None:
        """Take a command, of whatever size, also while inactive.

        Args:
            effort: (n,) N m in the controller's joint order.

        Raises:
            DynidError: a number that is not finite; the command before stays.

        """
        values = np.asarray(effort, dtype=float)
        for number, value in enumerate(values.tolist()):
            if not np.isfinite(value):
                name = f"joint '{self._joints[number]}'" if number < len(self._joints) else f"value {number + 1}"
                raise DynidError(f"the effort command for {name} is {value}; expected a number")
        self._command = values

    def update(self) -> None:
        """Write the command.

        Raises:
            DynidError: it has another size; nothing is written.

        """
        command = self._command
        if command is None or not command.size:
            return
        if command.shape != (len(self._joints),):
            raise DynidError(
                f"the effort command has {command.size} values; expected {len(self._joints)}: {', '.join(self._joints)}"
            )
        self._interfaces.effort = command[self._order]
