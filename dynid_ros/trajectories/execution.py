"""A motion while a controller follows it, and how it is brought to rest."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.trajectory import Trajectory, move

SHORTEST = 0.2
DURATIONS = np.geomspace(SHORTEST, 10.0, 41)
"""Durations that are tried, s."""
RATE = 100.0
JERK_ROOM = 1.5
"""A stop may jerk so much more than the limit: a motion at its limit could not be slowed down otherwise."""
PEAK_ACCELERATION, PEAK_JERK = 3.94, 36.0
"""Largest acceleration, in v/T, and jerk, in v/T², of the quintic that takes a speed v to rest where it began, in T."""


def stop(trajectory: Trajectory, time: float, limits: MotionLimits) -> Trajectory:
    """From the state of `trajectory` at `time` (s) to rest, in the shortest time that the limits allow.

    The arm stays on the path of the motion, which has been checked, and slows down along it: the path's own time runs
    at a rate that falls smoothly from 1 to 0. Position, velocity and acceleration are continuous, and the velocity is
    nowhere higher than on the motion itself. Where no duration keeps to the limits, as for a motion that does not
    either, the one that passes them least is taken.
    """
    least = np.inf
    for duration in DURATIONS:
        slowed, jerk = _slowed(trajectory, time, duration)
        excess = max(
            float(np.max(np.abs(slowed.acceleration) / limits.acceleration)),
            float(np.max(np.abs(jerk) / (JERK_ROOM * limits.jerk))),
        )
        if not excess >= least:
            least, stopping = excess, slowed
        if least <= 1.0:
            break
    return stopping


NEAREST_POINTS = 0.005
"""Two points of a piece are at least so far apart, s: times in messages are rounded."""
SHORTEST_REMAINDER = 0.5
"""A piece goes on to the end of the motion where not more than this would be left, s."""


def piece(motion: Trajectory, begin: float, end: float, limits: MotionLimits) -> tuple[Trajectory, float]:
    """Return the part of `motion` from `begin` to `end` (s) with a stop after it, and when the stop begins.

    A controller that gets no further piece so comes to rest on the path of the motion, within the limits. Where little
    of the motion is left after `end`, the piece is all that is left, and its stop the end of the motion.
    """
    ending = end + SHORTEST_REMAINDER >= motion.duration
    stop_time = motion.duration if ending else end
    between = (motion.time > begin + NEAREST_POINTS) & (motion.time < stop_time - NEAREST_POINTS)
    time: NDArray = np.concatenate([[begin], motion.time[between], [stop_time]])
    planned = Trajectory(motion.joint_names, time - begin, *motion.at(time))
    return (planned if ending else Trajectory.join([planned, stop(motion, end, limits)])), stop_time


def coast(limits: MotionLimits, position: ArrayLike, velocity: ArrayLike) -> Trajectory:
    """From `position` and `velocity`, each (n,), to rest in the direction of motion, as quickly as the limits allow."""
    ends = np.array([0.0, 2.0 * DURATIONS[-1]])
    straight = np.asarray(position, dtype=float) + ends[:, np.newaxis] * np.asarray(velocity, dtype=float)
    steady = np.broadcast_to(np.asarray(velocity, dtype=float), straight.shape)
    return stop(Trajectory(limits.joint_names, ends, straight, steady, np.zeros_like(straight)), 0.0, limits)


def standstill(limits: MotionLimits, position: ArrayLike, speed: float) -> Trajectory:
    """Rest at `position` (n,), for a controller to take an arm to that is there with at most `speed` (per s).

    It lasts as long as the limits of acceleration and jerk ask for that.
    """
    by_acceleration = PEAK_ACCELERATION * speed / float(np.min(limits.acceleration))
    by_jerk = float(np.sqrt(PEAK_JERK * speed / np.min(limits.jerk)))
    return move(limits.joint_names, position, position, max(SHORTEST, by_acceleration, by_jerk))


def _slowed(trajectory: Trajectory, start: float, duration: float) -> tuple[Trajectory, NDArray]:
    """The motion, and its jerk (N, n)."""
    time: NDArray = np.linspace(0.0, duration, int(np.ceil(duration * RATE)) + 1)
    s = time / duration
    own_time = start + duration * (s - s**3 + s**4 / 2)
    rate = (1 - 3 * s**2 + 2 * s**3)[:, np.newaxis]
    slowing = (-6 * s * (1 - s) / duration)[:, np.newaxis]
    jerking = (-6 * (1 - 2 * s) / duration**2)[:, np.newaxis]
    position, velocity, acceleration = trajectory.at(own_time)
    jerk = trajectory.jerk(own_time) * rate**3 + 3 * acceleration * rate * slowing + velocity * jerking
    fields = (position, velocity * rate, acceleration * rate**2 + velocity * slowing)
    return Trajectory(trajectory.joint_names, time, *fields), jerk


INSTANTS = 6
"""Instants within the latency at which the motion is looked at."""


@dataclass(frozen=True)
class MotionInProgress:
    """A trajectory that started at a time of some clock.

    Attributes:
        trajectory: the motion.
        start: time of its first sample, s.
        tracking_error_limit: (n,) how far a joint may be from the motion, rad or m.
        latency: how old a measured position may be, s.
    """

    trajectory: Trajectory
    start: float
    tracking_error_limit: NDArray
    latency: float

    def done(self, now: float) -> bool:
        """Whether the last sample is past."""
        return now >= self.start + self.trajectory.duration

    def fraction(self, now: float) -> float:
        """Part of the duration that is past, 0 to 1."""
        return float(np.clip((now - self.start) / self.trajectory.duration, 0.0, 1.0))

    def check(self, measured: ArrayLike, now: float) -> None:
        """The arm, at `measured` (n,), is where the motion is `now` or was within the latency.

        Raises:
            TrajectoryError: names the joint that is too far away, its place and the expected one.
        """
        recent = self.trajectory.at(now - self.start - np.linspace(0.0, self.latency, INSTANTS))[0]
        measured = np.asarray(measured, dtype=float)
        expected = np.clip(measured, recent.min(axis=0), recent.max(axis=0))
        excess = np.abs(measured - expected) - self.tracking_error_limit
        i = int(np.argmax(excess))
        if not excess[i] <= 0:
            raise TrajectoryError(
                f"joint '{self.trajectory.joint_names[i]}' is at {measured[i]:.4g}, the motion at {recent[0, i]:.4g}: "
                f"further away than tracking_error_limit {self.tracking_error_limit[i]:g}"
            )
