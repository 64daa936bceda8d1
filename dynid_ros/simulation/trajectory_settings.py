"""The simulated arm as hardware of ros2_control, and the parameters of `joint_trajectory_controller`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dynid_ros.errors import DynidError
from dynid_ros.model.arrays import MAX_MAGNITUDE, per_joint
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


INTERFACES = (("position",), ("position", "effort"))


@dataclass(frozen=True)
class Tolerances:
    """Tolerances of a trajectory.

    Attributes:
        trajectory: (n,) rad or m from the desired position on the way; 0: not checked.
        goal: (n,) likewise at the end.
        stopped_velocity: per s, at the end, if the controller commands effort; 0: not checked.
        goal_time: time after the end until which the goal must be reached, s; 0: unlimited.
    """

    trajectory: np.ndarray
    goal: np.ndarray
    stopped_velocity: float
    goal_time: float

    def on_the_way(self, error: np.ndarray) -> bool:
        """Return whether position errors (n,) are within the tolerances on the way."""
        return _within(error, self.trajectory)

    def at_the_end(self, error: np.ndarray, velocity: np.ndarray) -> bool:
        """Return whether errors of position and velocity, each (n,), are within the tolerances at the end."""
        return _within(error, self.goal) and _within(velocity, np.full_like(velocity, self.stopped_velocity))


@dataclass(frozen=True)
class TrajectorySettings:
    """Parameters by their real names and with their real defaults (ros2_controllers 4.42.1).

    `allow_trajectory_replacement` came later (2026-08-15, default true); false is the behaviour of 4.42.1.

    Attributes:
        command_interfaces: `("position",)` or `("position", "effort")`.
        interpolate_from_desired_state: a new trajectory begins at the desired state; false: at the measured one.
        allow_trajectory_replacement: a trajectory that replaces an active one begins on its path.
        set_last_command_interface_value_as_state_on_activation: an activation holds the position that any controller
            commanded last; false: the measured one.
        cmd_timeout: s after the last point at which a command that is not repeated is dropped; in force only if it is
            longer than `goal_time`.
        goal_time: `constraints.goal_time`, see `Tolerances`, as the three below.
        stopped_velocity_tolerance: `constraints.stopped_velocity_tolerance`.
        trajectory: `constraints.<joint>.trajectory`, one for all joints or one per joint.
        goal: `constraints.<joint>.goal`, likewise.
    """

    command_interfaces: tuple[str, ...] = ("position",)
    interpolate_from_desired_state: bool = False
    allow_trajectory_replacement: bool = False
    set_last_command_interface_value_as_state_on_activation: bool = True
    cmd_timeout: float = 0.0
    goal_time: float = 0.0
    stopped_velocity_tolerance: float = 0.01
    trajectory: Sequence[float] = field(default=(0.0,))
    goal: Sequence[float] = field(default=(0.0,))

    def __post_init__(self) -> None:
        """Raise `DynidError` for command interfaces or times that the controller does not take."""
        if self.command_interfaces not in INTERFACES:
            raise DynidError(f"command_interfaces are {list(self.command_interfaces)}; expected one of {INTERFACES}")
        for name, value in (
            ("cmd_timeout", self.cmd_timeout),
            ("constraints.goal_time", self.goal_time),
            ("constraints.stopped_velocity_tolerance", self.stopped_velocity_tolerance),
        ):
            if not 0.0 <= value < np.inf:
                raise DynidError(f"Parameter '{name}' is {value:g}; expected 0 or more")

    @property
    def has_effort(self) -> bool:
        """Whether the controller commands effort."""
        return "effort" in self.command_interfaces

    @property
    def timeout(self) -> float:
        """Effective `cmd_timeout`, s; infinity if commands are never dropped."""
        return self.cmd_timeout if self.cmd_timeout > self.goal_time else np.inf

    def tolerances(self, n_joints: int) -> Tolerances:
        """Return the tolerances in force if an action goal has none.

        Raises:
            DynidError: neither one value nor one per joint, or a negative one.
        """
        joints = range(1, n_joints + 1)
        return Tolerances(
            per_joint(self.trajectory, joints, "constraints.trajectory", error=DynidError, least=0.0),
            per_joint(self.goal, joints, "constraints.goal", error=DynidError, least=0.0),
            self.stopped_velocity_tolerance,
            self.goal_time,
        )


@dataclass(frozen=True)
class GoalTolerances:
    """Tolerances of an action goal: 0 means as the parameters, -1 unlimited; one for all joints or one each.

    Attributes:
        trajectory: rad or m on the way (`path_tolerance`).
        goal: rad or m at the end (`goal_tolerance`).
        goal_time: s (`goal_time_tolerance`).
    """

    trajectory: Sequence[float] = (0.0,)
    goal: Sequence[float] = (0.0,)
    goal_time: float = 0.0

    def over(self, default: Tolerances) -> Tolerances:
        """Return the tolerances in force after this goal; an invalid value leaves the whole default (tolerances.hpp).

        Raises:
            DynidError: neither one value nor one per joint.
        """
        joints = range(1, len(default.trajectory) + 1)
        trajectory, goal = (
            per_joint(value, joints, what, error=DynidError, least=-MAX_MAGNITUDE)
            for value, what in ((self.trajectory, "the goal's path tolerance"), (self.goal, "the goal's tolerance"))
        )
        given = np.concatenate([trajectory, goal, [self.goal_time]])
        if np.any((given < 0.0) & (given != -1.0)) or not np.isfinite(given).all():
            return default
        return Tolerances(
            _over(trajectory, default.trajectory),
            _over(goal, default.goal),
            default.stopped_velocity,
            float(_over(np.array([self.goal_time]), np.array([default.goal_time]))[0]),
        )


def _within(error: np.ndarray, tolerance: np.ndarray) -> bool:
    return not np.any((tolerance > 0.0) & (np.abs(error) > tolerance))


def _over(given: np.ndarray, default: np.ndarray) -> np.ndarray:
    return np.where(given > 0.0, given, np.where(given < 0.0, 0.0, default))
