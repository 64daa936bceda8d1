"""Sinusoidal motions of one joint, and collision-free moves between poses by a probabilistic roadmap."""

from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components, dijkstra

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories.limits import MotionLimits, check_limits
from dynid_ros.trajectories.trajectory import Trajectory, minimum_jerk, move

POINTS_PER_CYCLE = 50
USED_LIMIT_FRACTION = 0.99
"""Fraction of the limits that a sine may reach at its points, because values between the points may be larger."""
N_ROADMAP_POSES = 256
N_NEIGHBOURS = 12
"""Number of nearest poses to which a pose of the roadmap is connected."""
POSES_PER_EDGE = 24
"""Number of poses that are checked on each edge of the roadmap; the edges of a motion are then checked more finely."""
MIN_MOVE_S = 0.1
"""Shortest duration of a move, s."""


def swing(frequency: float, cycles: int, time: ArrayLike) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return a sine of unit amplitude and its first three derivatives, each (M,), at times (M,), s.

    The amplitude grows over the first cycle like a minimum-jerk move, stays at one for `cycles` cycles, and falls to
    zero over a last cycle. Value, velocity and acceleration therefore start and end at zero.
    """
    time = np.asarray(time, dtype=float)
    rate = 2 * np.pi * frequency
    period = 1.0 / frequency
    end = (cycles + 2) * period
    is_first_half = time <= end / 2
    from_nearer_end = np.where(is_first_half, time, end - time)
    # The amplitude is symmetric in time, so its odd derivatives change their sign in the second half.
    (amplitude,), (slope,), (curvature,) = (values.T for values in minimum_jerk([0.0], [1.0], period, from_nearer_end))
    sign = np.where(is_first_half, 1.0, -1.0)
    slope = sign * slope
    s = np.clip(from_nearer_end / period, 0.0, 1.0)
    third = np.where(from_nearer_end < period, (60.0 - 360.0 * s + 360.0 * s**2) / period**3, 0.0) * sign
    sin = np.sin(rate * time)
    cos = np.cos(rate * time)
    return (
        amplitude * sin,
        slope * sin + amplitude * rate * cos,
        curvature * sin + 2 * slope * rate * cos - amplitude * rate**2 * sin,
        third * sin + 3 * curvature * rate * cos - 3 * slope * rate**2 * sin - amplitude * rate**3 * cos,
    )


def widest_swing(limits: MotionLimits, joint: int, centre: float, frequency: float, cycles: int) -> float:
    """Return the largest amplitude about `centre` that the limits of a joint allow, rad or m.

    The amplitude is negative if the centre is outside the position limits.
    """
    _, speed, acceleration, jerk = (np.abs(v).max() for v in swing(frequency, cycles, _times(frequency, cycles)))
    by_position = min(limits.upper[joint] - centre, centre - limits.lower[joint])
    bounds = (limits.velocity[joint] / speed, limits.acceleration[joint] / acceleration, limits.jerk[joint] / jerk)
    return float(min(by_position, *(USED_LIMIT_FRACTION * bound for bound in bounds)))


def sinusoid(
    limits: MotionLimits, joint: int, pose: NDArray, frequency: float, *, amplitude: float, cycles: int
) -> Trajectory:
    """Plan a swing of one joint about a pose; the other joints hold.

    Args:
        limits: limits of the joints.
        joint: index of the joint.
        pose: (n,) start and end of the motion, rad or m.
        frequency: frequency of the sine, Hz.
        amplitude: amplitude, rad or m.
        cycles: number of cycles at full amplitude, between one cycle of growth and one of decay.

    Raises:
        TrajectoryError: the motion violates the limits; names joint, time, value and bound.
    """
    time = _times(frequency, cycles)
    fields = np.zeros((3, len(time), len(pose)))
    fields[:, :, joint] = amplitude * np.array(swing(frequency, cycles, time)[:3])
    fields[0] += pose
    fields[:, [0, -1]] = np.array([pose, 0 * pose, 0 * pose])[:, np.newaxis]  # removes rounding errors
    motion = Trajectory(limits.joint_names, time, *fields)
    check_limits(motion, limits)
    return motion


def _times(frequency: float, cycles: int) -> NDArray:
    return np.linspace(0.0, (cycles + 2) / frequency, POINTS_PER_CYCLE * (cycles + 2) + 1)


class Bounds(Protocol):
    """Bounds of the arm's poses and motions."""

    def allowed(self, position: ArrayLike) -> NDArray:
        """Return a mask (N,) of the allowed positions (N, n)."""

    def check(self, trajectory: Trajectory) -> None:
        """Raise `TrajectoryError` if the motion violates a bound."""


class Connection:
    """Planner of minimum-jerk moves between poses, as fast as the limits allow and at rest at each pose.

    If the straight move would violate a bound, the motion follows a probabilistic roadmap (Kavraki et al. 1996).

    Args:
        limits: limits of the joints.
        workspace: bounds of poses and motions.
    """

    def __init__(self, limits: MotionLimits, workspace: Bounds) -> None:
        self._limits = limits
        self._workspace = workspace

    def connect(self, start: ArrayLike, goal: ArrayLike) -> Trajectory:
        """Plan a motion from `start` to `goal` (n,).

        Raises:
            TrajectoryError: a pose is not one finite position for each joint; or no motion was found, and the message
                has the violation of the straight move.
        """
        first = self._checked_pose("start", start)
        last = self._checked_pose("goal", goal)
        try:
            return self._straight_move(first, last)
        except TrajectoryError as error:
            detour = self._detour(first, last)
            if detour is None:
                raise TrajectoryError(f"no safe way there: on the straight one {error}") from error
            return detour

    def visit(self, poses: ArrayLike, dwell: ArrayLike) -> tuple[Trajectory, NDArray]:
        """Plan a motion through poses, with a dwell at each.

        Args:
            poses: (P, n) rad or m.
            dwell: duration of the dwells, one value or (P,), s; at 0 the arm does not dwell.

        Returns:
            The motion, and the start and end (P, 2) of each dwell, s.

        Raises:
            TrajectoryError: there are no poses, a dwell is negative, or there is no safe motion to a pose, which the
                message names.
        """
        poses = np.asarray(poses, dtype=float)
        if poses.ndim != 2 or not poses.size:
            raise TrajectoryError(f"poses have shape {poses.shape}; expected one or more rows, one position per joint")
        dwell = np.broadcast_to(np.asarray(dwell, dtype=float), len(poses))
        if not (np.isfinite(dwell).all() and (dwell >= 0).all() and dwell.any()):
            raise TrajectoryError(f"dwells are {dwell.tolist()} s; they must be zero or more, and not all zero")
        parts: list[Trajectory] = []
        starts = []
        for k, pose in enumerate(poses):
            try:
                if k and not np.array_equal(poses[k - 1], pose):
                    parts.append(self.connect(poses[k - 1], pose))
                starts.append(sum(part.duration for part in parts))
                if dwell[k]:
                    parts.append(self._checked(move(self._limits.joint_names, pose, pose, float(dwell[k]))))
            except TrajectoryError as error:
                raise TrajectoryError(f"pose {k}: {error}") from error
        return Trajectory.join(parts), np.column_stack([starts, starts + dwell])

    def groups(self, poses: NDArray) -> NDArray:
        """Return the number (P,) of the connected component of the roadmap that each pose (P, n) reaches, or −1."""
        via, times = self._roadmap
        _, parts = connected_components(times > 0.0, directed=False)
        distance = np.abs(poses[:, np.newaxis] - via) @ (1.0 / self._limits.velocity)
        nearest = np.argsort(distance, axis=1)[:, :N_NEIGHBOURS]
        starts = np.repeat(poses, nearest.shape[1], axis=0)
        reached = self._durations(starts, via[nearest.ravel()]).reshape(nearest.shape) > 0.0
        first = np.take_along_axis(nearest, np.argmax(reached, axis=1)[:, np.newaxis], axis=1)[:, 0]
        return np.where(reached.any(axis=1), parts[first], -1)

    def _checked_pose(self, role: str, pose: ArrayLike) -> NDArray:
        names = self._limits.joint_names
        pose = np.asarray(pose, dtype=float)
        if pose.shape != (len(names),) or not np.isfinite(pose).all():
            raise TrajectoryError(
                f"the {role} pose is {pose.tolist()}; expected a finite position for each of {', '.join(names)}"
            )
        return pose

    def _straight_move(self, start: NDArray, goal: NDArray) -> Trajectory:
        return self._checked(move(self._limits.joint_names, start, goal, self._duration(goal - start)))

    def _checked(self, motion: Trajectory) -> Trajectory:
        check_limits(motion, self._limits)
        self._workspace.check(motion)
        return motion

    def _detour(self, start: NDArray, goal: NDArray) -> Trajectory | None:
        """Return the fastest motion along the roadmap whose moves are all safe; None if there is none.

        Edges are checked closely only if they are on the fastest path; an edge that fails is removed, and the search is
        repeated.
        """
        via, roadmap_times = self._roadmap
        poses = np.concatenate([[start, goal], via])
        times = np.zeros((len(poses), len(poses)))
        times[2:, 2:] = roadmap_times
        for end in (0, 1):
            times[end, 2:] = times[2:, end] = self._durations(np.broadcast_to(poses[end], via.shape), via)
        while True:
            _, predecessors = dijkstra(times, indices=0, return_predecessors=True)
            path = [1]
            while path[0] > 0:
                path.insert(0, int(predecessors[path[0]]))
            if path[0] < 0:
                return None
            moves = []
            for a, b in pairwise(path):
                try:
                    moves.append(self._straight_move(poses[a], poses[b]))
                except TrajectoryError:
                    times[a, b] = times[b, a] = 0.0
                    break
            else:
                return Trajectory.join(moves)

    @cached_property
    def _roadmap(self) -> tuple[NDArray, NDArray]:
        """Poses (P, n), and durations (P, P), s, of moves between neighbours; 0: no move."""
        poses = self._limits.poses(N_ROADMAP_POSES)
        poses = poses[self._workspace.allowed(poses)]
        distance = np.abs(poses[:, np.newaxis] - poses) @ (1.0 / self._limits.velocity)
        nearest = np.argsort(distance, axis=1)[:, 1 : N_NEIGHBOURS + 1]
        a = np.repeat(np.arange(len(poses)), nearest.shape[1])
        b = nearest.ravel()
        times = np.zeros((len(poses), len(poses)))
        times[a, b] = self._durations(poses[a], poses[b])
        return poses, np.maximum(times, times.T)

    def _durations(self, starts: NDArray, goals: NDArray) -> NDArray:
        """Return the durations (M,), s, of straight moves; 0 if a pose of the move is not allowed."""
        fraction = np.linspace(0.0, 1.0, POSES_PER_EDGE)[:, np.newaxis]
        lines = starts[:, np.newaxis] + fraction * (goals - starts)[:, np.newaxis]
        allowed = self._workspace.allowed(lines.reshape(-1, starts.shape[1])).reshape(-1, POSES_PER_EDGE).all(axis=1)
        return np.where(allowed, [self._duration(displacement) for displacement in goals - starts], 0.0)

    def _duration(self, displacement: NDArray) -> float:
        return max(self._limits.shortest_move(displacement), MIN_MOVE_S)
