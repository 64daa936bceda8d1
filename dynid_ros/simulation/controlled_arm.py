"""The simulated arm with its controllers, in the cycle of `controller_manager`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dynid_ros.errors import DynidError
from dynid_ros.simulation.arm import SimulatedArm
from dynid_ros.simulation.trajectory_controller import ForwardController, TrajectoryController
from dynid_ros.simulation.trajectory_points import CommandInterfaces, TrajectorySettings

TRAJECTORY = "trajectory controller"
FORWARD = "effort controller"


class ArmHardware:
    """Hardware that applies its command interfaces to an arm, once per cycle.

    Without a position command the arm holds its position; without an effort command the effort is zero. Position and
    effort are limited to the limits of the joints.

    Args:
        arm: the arm.
        interfaces: values that the controllers command.
        sums: whether effort is added to the torque of the servo; False: one of them acts at a time.

    Attributes:
        effort_mode: whether effort acts instead of position; always False if the hardware adds them.
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


class ControlledArm:
    """Arm with a trajectory controller and a forward controller of efforts.

    Args:
        arm: the arm; the caller of `update` steps it.
        settings: settings of the trajectory controller; if it commands effort too, there is no forward controller.
        sums: whether the hardware adds efforts to the torque of the servo. False: effort acts while the trajectory
            controller is inactive and the forward controller active; while both are inactive the last mode stays.
        joints: joint names in the order of the forward controller; None: the order of the arm.
        report: function that receives log messages of the controllers.
        changed: function that receives the name of a controller (`TRAJECTORY`, `FORWARD`) and whether it is active now.

    Attributes:
        interfaces: values that the controllers command.
        forward: controller of efforts; None: the trajectory controller commands effort.
    """

    def __init__(
        self,
        arm: SimulatedArm,
        settings: TrajectorySettings,
        *,
        sums: bool,
        joints: Sequence[str] | None = None,
        report: Callable[[str], None] = lambda _what: None,
        changed: Callable[[str, bool], None] = lambda _name, _active: None,
    ) -> None:
        names = list(arm.robot.joint_names)
        self.arm = arm
        self.interfaces = CommandInterfaces(len(names))
        self.hardware = ArmHardware(arm, self.interfaces, sums=sums)
        self.trajectory = TrajectoryController(arm.robot, self.interfaces, settings, report)
        self.forward = None if settings.has_effort else ForwardController(joints or names, names, self.interfaces)
        self._sums = sums
        self._report = report
        self._changed = changed
        self._active: set[str] = set()
        self.reset()

    def reset(self) -> None:
        """Restart hardware and controllers without any command, after a reset of the arm."""
        self.interfaces.forget()
        self._set(TRAJECTORY, False)
        self._set(FORWARD, False)
        self.trajectory.configure()
        self.hardware.effort_mode = False
        self._set(TRAJECTORY, True)
        if self._sums and self.forward is not None:
            self._set(FORWARD, True)

    def active(self, name: str) -> bool:
        """Return whether a controller is active."""
        return name in self._active

    def switch(self, name: str, active: bool) -> str:
        """Activate or deactivate one controller, and return a sentence on the result.

        Raises:
            DynidError: no controller has that name.
        """
        self._require(name)
        if active == self.active(name):
            return f"{name} is {_word(active)} already"
        self._set(name, active)
        return f"{name} {_word(active)}"

    def exchange(self, name: str) -> str:
        """Activate one controller and deactivate the other in the same cycle.

        Raises:
            DynidError: no controller has that name, or the two act together.
        """
        self._require(name)
        if self._sums:
            raise DynidError("the servo and torques act together here; only controller 'effort' has an effort mode")
        other = FORWARD if name == TRAJECTORY else TRAJECTORY
        if self.active(name) and not self.active(other):
            return f"{name} is active already"
        self._set(other, False)
        self._set(name, True)
        return f"{name} active, {other} inactive"

    def update(self, period: float) -> None:
        """Execute one cycle of `period` s: controllers, then hardware; a controller that fails is deactivated."""
        arm = self.arm
        self.trajectory.update(arm.time, period, arm.position, arm.velocity)
        if self.forward is not None and self.active(FORWARD):
            try:
                self.forward.update()
            except DynidError as error:
                self._report(f"{error}; {FORWARD} deactivated, as its update resulted in an error")
                self._set(FORWARD, False)
        self.hardware.write(period)

    def torque(self) -> np.ndarray:
        """Return the torques (n,), N m, in the effort interfaces; zero if nothing was commanded."""
        return np.nan_to_num(self.interfaces.effort)

    def _require(self, name: str) -> None:
        if name == FORWARD and self.forward is None:
            raise DynidError(f"there is no {FORWARD} here: efforts are in the points of trajectories")

    def _set(self, name: str, active: bool) -> None:
        if active == self.active(name):
            return
        self._active ^= {name}
        if name == TRAJECTORY:
            if active:
                self.trajectory.activate(self.arm.position)
            else:
                self.trajectory.deactivate()
        elif self.forward is not None:
            (self.forward.activate if active else self.forward.deactivate)()
        if self._active and not self._sums:
            self.hardware.effort_mode = not self.active(TRAJECTORY)
        self._changed(name, active)


def _word(active: bool) -> str:
    return "active" if active else "inactive"
