"""Input of a trajectory controller (points, parameters, tolerances) and its output to the command interfaces."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, factorial

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import DynidError, TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import MAX_MAGNITUDE, per_joint

TIME_ROUNDING = 1e-9
"""Tolerance, s, for rounding errors of times that are sums of periods or multiples of timesteps."""
STATE_TOLERANCE = 1e-6
"""Tolerance of positions (rad or m), of speeds (relative) and of the velocity at the end (per s)."""
INTERFACES = (("position",), ("position", "effort"))


class JointSpline:
    """Linear, cubic or quintic segments between points, as in `joint_trajectory_controller`; at rest after the last.

    Args:
        time: (K,) strictly increasing, K >= 1, s.
        derivatives: (K, m, n) positions, velocities (m >= 2) and accelerations (m = 3) at the points.
    """

    def __init__(self, time: np.ndarray, derivatives: np.ndarray) -> None:
        self._time = time.tolist()
        self._durations = np.diff(time).tolist()
        self._coefficients = _coefficients(np.diff(time), derivatives)
        self._rest = np.zeros((3, derivatives.shape[2]))
        self._rest[0] = derivatives[-1, 0]

    @property
    def end(self) -> float:
        """Time of the last point, s."""
        return self._time[-1]

    def at(self, time: float) -> np.ndarray:
        """Return position, velocity and acceleration (3, n) at `time`, which is not before the first point."""
        if time >= self.end:
            return self._rest
        segment = bisect_right(self._time, time) - 1
        duration = self._durations[segment]
        s = (time - self._time[segment]) / duration
        return _basis(s, duration, self._coefficients.shape[1]) @ self._coefficients[segment]


class SetPoint:
    """Motion with constant acceleration that reaches a state (3, n) at time `end`, s, and rests there afterwards."""

    def __init__(self, time: float, state: np.ndarray) -> None:
        self.end = time
        self._state = state
        self._rest = np.zeros_like(state)
        self._rest[0] = state[0]

    def at(self, time: float) -> np.ndarray:
        """Return position, velocity and acceleration (3, n) at `time`."""
        s = time - self.end
        if s > TIME_ROUNDING:
            return self._rest
        position, velocity, acceleration = self._state
        return np.array([position + s * (velocity + 0.5 * s * acceleration), velocity + s * acceleration, acceleration])


def _basis(s: float, duration: float, degrees: int) -> np.ndarray:
    """Return the matrix (3, degrees) from coefficients of powers of s = t / duration to position and derivatives."""
    powers = [1.0]
    for _ in range(degrees - 1):
        powers.append(powers[-1] * s)
    velocity = [k * powers[k - 1] / duration if k else 0.0 for k in range(degrees)]
    acceleration = [k * (k - 1) * powers[k - 2] / duration**2 if k > 1 else 0.0 for k in range(degrees)]
    return np.array([powers, velocity, acceleration])


def _coefficients(durations: np.ndarray, derivatives: np.ndarray) -> np.ndarray:
    """Return the coefficients (K - 1, 2 m, n) of powers of s of each segment, with derivatives (K, m, n) at the points.

    The derivatives at s = 0 give the lower m coefficients; those at s = 1 give a linear system for the upper ones.
    """
    m = derivatives.shape[1]
    scale = np.stack([durations**k / factorial(k) for k in range(m)], axis=1)[:, :, np.newaxis]
    lower = derivatives[:-1] * scale
    binomials = np.array([[comb(j, k) for j in range(2 * m)] for k in range(m)], dtype=float)
    upper = np.linalg.solve(binomials[:, m:], derivatives[1:] * scale - binomials[:, :m] @ lower)
    return np.concatenate([lower, upper], axis=1)


@dataclass(frozen=True)
class TrajectoryPoints:
    """Trajectory of n joints through K points.

    Attributes:
        joint_names: n names in any order.
        time: (K,) times since the start of the trajectory, s.
        position: (K, n) rad or m.
        velocity: (K, n) per s, or None.
        acceleration: (K, n) per s², or None.
        effort: (K, n) N m to add to the servo's torque, or None.
    """

    joint_names: Sequence[str]
    time: ArrayLike
    position: ArrayLike
    velocity: ArrayLike | None = None
    acceleration: ArrayLike | None = None
    effort: ArrayLike | None = None

    def join(self, robot: RobotModel, now: float, delay: float, desired: np.ndarray) -> JointSpline:
        """Return a spline from the desired state (3, n) at time `now` through the points, which begin `delay` s later.

        If the time of the first point has passed, the spline goes to the second point.

        Raises:
            TrajectoryError: an error of `arrays`; more than one point is in the past; positions or speeds are beyond
                the limits; the trajectory does not end at rest.
        """
        time, derivatives = self.arrays(robot)
        time = time + now + delay
        if not np.isfinite(time).all():
            raise TrajectoryError(f"the trajectory begins {delay:g} s from now; expected a finite time")
        due = int(np.searchsorted(time, now, side="right"))
        if due == len(time) or due > 1:
            raise TrajectoryError(f"point {due} of the trajectory lies {now - time[due - 1]:.3g} s in the past")
        time, derivatives = from_state(now, desired, time, derivatives)
        check_limits(robot, time, derivatives)
        return JointSpline(time, derivatives)

    def arrays(self, robot: RobotModel) -> tuple[np.ndarray, np.ndarray]:
        """Return time (K,) and derivatives (K, m, n) in the robot's joint order.

        Raises:
            TrajectoryError: the joints are not the robot's, shapes do not fit, numbers are not finite, or time does not
                increase.
        """
        names = list(self.joint_names)
        if sorted(names) != sorted(robot.joint_names):
            raise TrajectoryError(
                f"the trajectory moves joints {', '.join(names) or '(none)'}; expected each of "
                f"{', '.join(robot.joint_names)} once"
            )
        if self.acceleration is not None and self.velocity is None:
            raise TrajectoryError("the trajectory has accelerations but no velocities; give both, or velocities alone")
        time = np.asarray(self.time, dtype=float)
        if time.ndim != 1 or not len(time):
            raise TrajectoryError("the trajectory has no points; give at least one")
        derivatives = []
        for field in ("position", "velocity", "acceleration"):
            if getattr(self, field) is None:
                break
            values = np.asarray(getattr(self, field), dtype=float)
            if values.shape != (len(time), len(names)):
                raise TrajectoryError(
                    f"{field} of the trajectory has shape {values.shape}; expected {(len(time), len(names))}: "
                    f"{len(time)} points of {len(names)} joints"
                )
            for point, joint in np.argwhere(~np.isfinite(values)):
                raise TrajectoryError(
                    f"{field} of joint '{names[joint]}' at point {point + 1} is {values[point, joint]}; expected a "
                    f"finite number"
                )
            derivatives.append(values)
        if not np.all(np.isfinite(time)) or np.any(np.diff(time) <= 0.0):
            raise TrajectoryError("time_from_start must increase from point to point")
        order = [names.index(name) for name in robot.joint_names]
        return time, np.stack(derivatives, axis=1)[:, :, order]

    def efforts(self, robot: RobotModel) -> np.ndarray:
        """Return the efforts (K, n), N m, in the robot's joint order; zero if the trajectory has none.

        Raises:
            TrajectoryError: shapes do not fit, or numbers are not finite.
        """
        shape = (np.size(self.time), robot.n_joints)
        if self.effort is None:
            return np.zeros(shape)
        effort = np.asarray(self.effort, dtype=float)
        if effort.shape != shape or not np.isfinite(effort).all():
            raise TrajectoryError(f"effort of the trajectory is {effort.tolist()}; expected {shape} finite numbers")
        return effort[:, [list(self.joint_names).index(name) for name in robot.joint_names]]


def from_state(
    now: float, state: np.ndarray, time: np.ndarray, derivatives: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return times and derivatives of the present state (3, n) followed by the points after time `now`."""
    due = int(np.searchsorted(time, now, side="right"))
    start = state[np.newaxis, : derivatives.shape[1]]
    return np.concatenate([[now], time[due:]]), np.concatenate([start, derivatives[due:]])


def check_limits(robot: RobotModel, time: np.ndarray, derivatives: np.ndarray, first: int = 1) -> None:
    """Check that a motion through derivatives (K, m, n) at times (K,) keeps to the limits of the URDF.

    States before the index `first` are measured, so their positions are not checked.

    Raises:
        TrajectoryError: positions or speeds are beyond the limits, or the end is not at rest.
    """
    limits = robot.limits
    position = derivatives[first:, 0]
    for point, joint in np.argwhere(
        (position < limits.lower - STATE_TOLERANCE) | (position > limits.upper + STATE_TOLERANCE)
    ):
        raise TrajectoryError(
            f"joint '{robot.joint_names[joint]}' would go to {position[point, joint]:.6g} at t = "
            f"{time[point + first] - time[0]:.6g} s; its limits are "
            f"{limits.lower[joint]:.6g} to {limits.upper[joint]:.6g}"
        )
    speeds = [np.diff(derivatives[:, 0], axis=0) / np.diff(time)[:, np.newaxis]]
    if derivatives.shape[1] > 1:
        speeds.append(derivatives[1:, 1])
        _check_rest(robot, derivatives[-1, 1])
    for speed in speeds:
        for point, joint in np.argwhere(np.abs(speed) > limits.velocity * (1.0 + STATE_TOLERANCE)):
            raise TrajectoryError(
                f"joint '{robot.joint_names[joint]}' would move at {speed[point, joint]:.4g} /s towards the point at "
                f"t = {time[point + 1] - time[0]:.6g} s; its limit is {limits.velocity[joint]:.4g} /s"
            )


def _check_rest(robot: RobotModel, velocity: np.ndarray) -> None:
    for joint in np.flatnonzero(np.abs(velocity) > STATE_TOLERANCE):
        raise TrajectoryError(
            f"joint '{robot.joint_names[joint]}' has velocity {velocity[joint]:.4g} at the last point; the arm must "
            f"end at rest"
        )


class CommandInterfaces:
    """Values that controllers have written; they persist when a controller is deactivated or releases its interfaces.

    The next controller that claims an interface therefore reads the last value (ros2_control 4.46.0: values are NaN at
    first, see handle.hpp; a release only clears a flag, see resource_manager.cpp).

    Attributes:
        position: (n,) rad or m in the arm's joint order; NaN: never commanded.
        velocity: (n,) velocity of the set-point, for drives that interpolate between set-points; zero: at rest.
        acceleration: (n,) acceleration of the set-point.
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
        """Set velocity and acceleration of the set-point to zero."""
        self.velocity = np.zeros(self._n_joints)
        self.acceleration = np.zeros(self._n_joints)


@dataclass(frozen=True)
class Tolerances:
    """Tolerances of a trajectory.

    Attributes:
        trajectory: (n,) largest position error during the motion, rad or m; 0: not checked.
        goal: (n,) largest position error at the end, likewise.
        stopped_velocity: largest speed at the end, per s, if the controller commands effort; 0: not checked.
        goal_time: longest time after the end until the goal is reached, s; 0: unlimited.
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
    """Parameters of `joint_trajectory_controller` with the names and defaults of ros2_controllers 4.42.1.

    `allow_trajectory_replacement` is newer (2026-08-15, default true); False is the behaviour of 4.42.1.

    Attributes:
        command_interfaces: `("position",)` or `("position", "effort")`.
        interpolate_from_desired_state: whether a new trajectory begins at the desired state; False: at the measured
            state.
        allow_trajectory_replacement: whether a new trajectory is blended with the active one.
        set_last_command_interface_value_as_state_on_activation: whether an activation holds the position that any
            controller commanded last; False: the measured position.
        cmd_timeout: time after the last point, s, at which the controller aborts unless a new trajectory has arrived;
            ignored if it is not longer than `goal_time`.
        goal_time: `constraints.goal_time`; this and the following three: see `Tolerances`.
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
    trajectory: Sequence[float] = (0.0,)
    goal: Sequence[float] = (0.0,)

    def __post_init__(self) -> None:
        """Raise `DynidError` for command interfaces or times that the controller does not support."""
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
        """Return the tolerances of the parameters, which apply if an action goal has no tolerances.

        Raises:
            DynidError: the number of values is neither one nor one per joint, or a value is negative.
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
    """Tolerances of an action goal; 0: that of the parameters; -1: unlimited.

    Attributes:
        trajectory: position error during the motion, rad or m (`path_tolerance`), one for all joints or one per joint.
        goal: position error at the end, rad or m (`goal_tolerance`), likewise.
        goal_time: time after the end until the goal is reached, s (`goal_time_tolerance`).
    """

    trajectory: Sequence[float] = (0.0,)
    goal: Sequence[float] = (0.0,)
    goal_time: float = 0.0

    def over(self, default: Tolerances) -> Tolerances:
        """Return the tolerances that apply to this goal; with an invalid value all are the default (tolerances.hpp).

        Raises:
            DynidError: the number of values is neither one nor one per joint.
        """
        joints = range(1, len(default.trajectory) + 1)
        trajectory, goal = (
            per_joint(value, joints, what, error=DynidError, least=-MAX_MAGNITUDE)
            for value, what in ((self.trajectory, "the goal's path tolerance"), (self.goal, "the goal's tolerance"))
        )
        values = np.concatenate([trajectory, goal, [self.goal_time]])
        if np.any((values < 0.0) & (values != -1.0)) or not np.isfinite(values).all():
            return default
        return Tolerances(
            _over(trajectory, default.trajectory),
            _over(goal, default.goal),
            default.stopped_velocity,
            float(_over(np.array([self.goal_time]), np.array([default.goal_time]))[0]),
        )


def _within(error: np.ndarray, tolerance: np.ndarray) -> bool:
    return not np.any((tolerance > 0.0) & (np.abs(error) > tolerance))


def _over(value: np.ndarray, default: np.ndarray) -> np.ndarray:
    return np.where(value > 0.0, value, np.where(value < 0.0, 0.0, default))
