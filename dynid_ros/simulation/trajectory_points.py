"""Points of a joint trajectory, and the motion through them that the position servo follows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, factorial

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel

TIME_ROUNDING = 1e-9
"""s; of times that are sums of periods and multiples of timesteps."""


class JointSpline:
    """Linear, cubic or quintic segments, as `joint_trajectory_controller` joins its points; at rest after the last.

    Args:
        time: (K,) strictly increasing, K >= 1, s.
        derivatives: (K, m, n) positions (m = 1), and velocities (m = 2), and accelerations (m = 3).
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
    """State (3, n) reached with constant acceleration at time `end`, s, and kept at rest after it."""

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
    """Rows that give position, velocity and acceleration from the coefficients of the powers of s = t / duration."""
    powers = [1.0]
    for _ in range(degrees - 1):
        powers.append(powers[-1] * s)
    velocity = [k * powers[k - 1] / duration if k else 0.0 for k in range(degrees)]
    acceleration = [k * (k - 1) * powers[k - 2] / duration**2 if k > 1 else 0.0 for k in range(degrees)]
    return np.array([powers, velocity, acceleration])


def _coefficients(durations: np.ndarray, derivatives: np.ndarray) -> np.ndarray:
    """Return coefficients (K - 1, 2 m, n) of powers of s that meet the m derivatives at both ends of segments."""
    m = derivatives.shape[1]
    scale = np.stack([durations**k / factorial(k) for k in range(m)], axis=1)[:, :, np.newaxis]
    lower = derivatives[:-1] * scale
    binomials = np.array([[comb(j, k) for j in range(2 * m)] for k in range(m)], dtype=float)
    upper = np.linalg.solve(binomials[:, m:], derivatives[1:] * scale - binomials[:, :m] @ lower)
    return np.concatenate([lower, upper], axis=1)


STATE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class TrajectoryPoints:
    """K points of n joints.

    Attributes:
        joint_names: n names in any order.
        time: (K,) from the start of the trajectory, s.
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
        """Spline from the desired state (3, n) at `now` through the points, whose time starts `delay` after now.

        Only the first point may be due already; the arm then heads for the next one.

        Raises:
            TrajectoryError: as of `arrays`; points in the past, positions or speeds beyond the limits, no rest at the
                end. Nothing is moved.
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
    """Return time and derivatives of the points that are not due yet, after the present state (3, n)."""
    due = int(np.searchsorted(time, now, side="right"))
    start = state[np.newaxis, : derivatives.shape[1]]
    return np.concatenate([[now], time[due:]]), np.concatenate([start, derivatives[due:]])


def check_limits(robot: RobotModel, time: np.ndarray, derivatives: np.ndarray, first: int = 1) -> None:
    """Refuse a motion through derivatives (K, m, n) at time (K,) that no drive could follow.

    States before the `first` are measured ones and are not judged.

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
