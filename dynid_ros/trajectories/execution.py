"""Execution of a motion by a controller: division into pieces, stop on the path, and check of the tracking error."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.trajectory import Trajectory, move

MIN_STOP_S = 0.2
STOP_DURATIONS_S = np.geomspace(MIN_STOP_S, 10.0, 41)
"""Durations of a stop that are tried, shortest first."""
STOP_RATE_HZ = 100.0
STOP_JERK_FACTOR = 1.5
"""Largest jerk of a stop over the limit; above 1, because a motion at its jerk limit needs more jerk to slow down."""
PEAK_ACCELERATION = 3.94
"""Largest acceleration, in v/T, of the quintic that begins with speed v and returns to rest at its start within T."""
PEAK_JERK = 36.0
"""Largest jerk of that quintic, in v/T²."""
MIN_POINT_INTERVAL_S = 0.005
"""Shortest interval between two points of a piece, s, because times in messages are rounded."""
MIN_REMAINDER_S = 0.5
"""Shortest remainder of a motion, s, that is sent as a piece; a shorter one is added to the piece before."""
INSTANTS_PER_LATENCY = 6
"""Number of instants within the latency that are compared with the measured position."""


def stop(trajectory: Trajectory, time: float, limits: MotionLimits) -> Trajectory:
    """Plan a stop from the state of `trajectory` at `time` (s), in the shortest time that the limits allow.

    The arm slows down along the path of the motion, which has been checked: the time of the motion advances at a rate
    that falls smoothly from 1 to 0. Position, velocity and acceleration are continuous, and the velocity is nowhere
    higher than in the motion itself. If no duration keeps to the limits, because the motion violates them too, the
    duration with the smallest excess is used.
    """
    smallest_excess = np.inf
    for duration in STOP_DURATIONS_S:
        slowed, jerk = _slow_down(trajectory, time, duration)
        excess = max(
            float(np.max(np.abs(slowed.acceleration) / limits.acceleration)),
            float(np.max(np.abs(jerk) / (STOP_JERK_FACTOR * limits.jerk))),
        )
        if not excess >= smallest_excess:
            smallest_excess = excess
            best = slowed
        if smallest_excess <= 1.0:
            break
    return best


def cut_piece(motion: Trajectory, begin: float, end: float, limits: MotionLimits) -> tuple[Trajectory, float]:
    """Cut a piece out of a motion, with a stop after it.

    A controller that receives no further piece therefore comes to rest on the path of the motion, within the limits. If
    the remainder of the motion after `end` is short, the piece contains it, and ends at the end of the motion.

    Args:
        motion: the motion.
        begin: start of the piece in the time of the motion, s.
        end: start of the stop in the time of the motion, s.
        limits: limits of the stop.

    Returns:
        The piece, and the start of its stop in the time of the motion, s.
    """
    is_last = end + MIN_REMAINDER_S >= motion.duration
    stop_time = motion.duration if is_last else end
    inside = (motion.time > begin + MIN_POINT_INTERVAL_S) & (motion.time < stop_time - MIN_POINT_INTERVAL_S)
    time: NDArray = np.concatenate([[begin], motion.time[inside], [stop_time]])
    piece = Trajectory(motion.joint_names, time - begin, *motion.at(time))
    return (piece if is_last else Trajectory.join([piece, stop(motion, end, limits)])), stop_time


def coast(limits: MotionLimits, position: ArrayLike, velocity: ArrayLike) -> Trajectory:
    """Plan a stop along a straight line from `position` and `velocity`, each (n,), as quickly as the limits allow."""
    ends = np.array([0.0, 2.0 * STOP_DURATIONS_S[-1]])
    straight = np.asarray(position, dtype=float) + ends[:, np.newaxis] * np.asarray(velocity, dtype=float)
    steady = np.broadcast_to(np.asarray(velocity, dtype=float), straight.shape)
    return stop(Trajectory(limits.joint_names, ends, straight, steady, np.zeros_like(straight)), 0.0, limits)


def standstill(limits: MotionLimits, position: ArrayLike, speed: float) -> Trajectory:
    """Plan a rest at `position` (n,) for an arm that passes this position with at most `speed` (per s).

    The rest lasts so long that the arm can stop and return within the limits of acceleration and jerk.
    """
    by_acceleration = PEAK_ACCELERATION * speed / float(np.min(limits.acceleration))
    by_jerk = float(np.sqrt(PEAK_JERK * speed / np.min(limits.jerk)))
    return move(limits.joint_names, position, position, max(MIN_STOP_S, by_acceleration, by_jerk))


def _slow_down(trajectory: Trajectory, start: float, duration: float) -> tuple[Trajectory, NDArray]:
    """Return the motion from `start` (s) to rest within `duration` (s), and its jerk (N, n)."""
    time: NDArray = np.linspace(0.0, duration, int(np.ceil(duration * STOP_RATE_HZ)) + 1)
    s = time / duration
    path_time = start + duration * (s - s**3 + s**4 / 2)
    # First to third derivative of the path time with respect to time; then the chain rule.
    rate = (1 - 3 * s**2 + 2 * s**3)[:, np.newaxis]
    rate_change = (-6 * s * (1 - s) / duration)[:, np.newaxis]
    rate_curvature = (-6 * (1 - 2 * s) / duration**2)[:, np.newaxis]
    position, velocity, acceleration = trajectory.at(path_time)
    jerk = trajectory.jerk(path_time) * rate**3 + 3 * acceleration * rate * rate_change + velocity * rate_curvature
    fields = (position, velocity * rate, acceleration * rate**2 + velocity * rate_change)
    return Trajectory(trajectory.joint_names, time, *fields), jerk


@dataclass(frozen=True)
class MotionInProgress:
    """A trajectory that a controller is executing.

    Attributes:
        start: time of the first sample on the clock of the caller, s.
        tracking_error_limit: (n,) largest distance of a joint from the motion, rad or m.
        latency: largest age of a measured position, s.
    """

    trajectory: Trajectory
    start: float
    tracking_error_limit: NDArray
    latency: float

    def done(self, now: float) -> bool:
        """Return whether the motion has ended."""
        return now >= self.start + self.trajectory.duration

    def fraction(self, now: float) -> float:
        """Return the elapsed fraction of the duration, 0 to 1."""
        return float(np.clip((now - self.start) / self.trajectory.duration, 0.0, 1.0))

    def check(self, measured: ArrayLike, now: float) -> None:
        """Check that `measured` (n,) is near a position of the motion between `now` minus the latency and `now`.

        Raises:
            TrajectoryError: a joint is too far away; the message has joint, measured and expected position.
        """
        recent = self.trajectory.at(now - self.start - np.linspace(0.0, self.latency, INSTANTS_PER_LATENCY))[0]
        measured = np.asarray(measured, dtype=float)
        expected = np.clip(measured, recent.min(axis=0), recent.max(axis=0))
        excess = np.abs(measured - expected) - self.tracking_error_limit
        i = int(np.argmax(excess))
        if not excess[i] <= 0:
            raise TrajectoryError(
                f"joint '{self.trajectory.joint_names[i]}' is at {measured[i]:.4g}, the motion at {recent[0, i]:.4g}: "
                f"further away than tracking_error_limit {self.tracking_error_limit[i]:g}"
            )
