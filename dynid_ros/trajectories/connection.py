"""Moves from pose to pose that keep to the workspace, over other poses where the straight one does not."""

from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components, dijkstra

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories.limits import MotionLimits, check_limits
from dynid_ros.trajectories.trajectory import Trajectory, move

POSES = 256
NEIGHBOURS = 12
POINTS = 24
"""Poses looked at on each straight line of the roadmap; those that a motion uses are then checked closely."""
SHORTEST_MOVE = 0.1


class Room(Protocol):
    """Where the arm may be."""

    def allowed(self, position: ArrayLike) -> NDArray:
        """(N,) bool for positions (N, n)."""

    def check(self, trajectory: Trajectory) -> None:
        """Raise `TrajectoryError` where the motion leaves it."""


class Connection:
    """Finds minimum-jerk moves, at rest at each pose, as fast as `limits` allow.

    Where the straight move would leave the workspace, it goes over poses of a probabilistic roadmap (Kavraki et al.
    1996).
    """

    def __init__(self, limits: MotionLimits, workspace: Room) -> None:
        self._limits = limits
        self._workspace = workspace

    def connect(self, start: ArrayLike, goal: ArrayLike) -> Trajectory:
        """Motion from `start` to `goal` (n,).

        Raises:
            TrajectoryError: a pose is not one finite position for each joint; or no motion was found: says where the
                straight one would leave limits or workspace.
        """
        start, goal = self._pose("start", start), self._pose("goal", goal)
        try:
            return self._move(start, goal)
        except TrajectoryError as error:
            detour = self._detour(start, goal)
            if detour is None:
                raise TrajectoryError(f"no safe way there: on the straight one {error}") from error
            return detour

    def visit(self, poses: ArrayLike, dwell: ArrayLike) -> tuple[Trajectory, NDArray]:
        """Motion from pose to pose of (P, n), with a dwell of `dwell` s at each; starts and ends (P, 2) of the dwells.

        Args:
            poses: rad or m.
            dwell: one value or (P,), s; where it is 0 the arm stops for no time.

        Raises:
            TrajectoryError: no poses, a dwell that makes no sense, or no safe way to a pose; says to which.
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
        """(P,) number of the connected part of the room that each pose of (P, n) is seen to be in; −1: in none."""
        via, between = self._roadmap
        _, parts = connected_components(between > 0.0, directed=False)
        distance = np.abs(poses[:, np.newaxis] - via) @ (1.0 / self._limits.velocity)
        nearest = np.argsort(distance, axis=1)[:, :NEIGHBOURS]
        starts = np.repeat(poses, nearest.shape[1], axis=0)
        seen = self._times(starts, via[nearest.ravel()]).reshape(nearest.shape) > 0.0
        first = np.take_along_axis(nearest, np.argmax(seen, axis=1)[:, np.newaxis], axis=1)[:, 0]
        return np.where(seen.any(axis=1), parts[first], -1)

    def _pose(self, what: str, pose: ArrayLike) -> NDArray:
        pose, names = np.asarray(pose, dtype=float), self._limits.joint_names
        if pose.shape != (len(names),) or not np.isfinite(pose).all():
            raise TrajectoryError(
                f"the {what} pose is {pose.tolist()}; expected a finite position for each of {', '.join(names)}"
            )
        return pose

    def _move(self, start: NDArray, goal: NDArray) -> Trajectory:
        return self._checked(move(self._limits.joint_names, start, goal, self._duration(goal - start)))

    def _checked(self, motion: Trajectory) -> Trajectory:
        check_limits(motion, self._limits)
        self._workspace.check(motion)
        return motion

    def _detour(self, start: NDArray, goal: NDArray) -> Trajectory | None:
        via, between = self._roadmap
        poses = np.concatenate([[start, goal], via])
        times = np.zeros((len(poses), len(poses)))
        times[2:, 2:] = between
        for end in (0, 1):
            times[end, 2:] = times[2:, end] = self._times(np.broadcast_to(poses[end], via.shape), via)
        while True:
            _, before = dijkstra(times, indices=0, return_predecessors=True)
            way = [1]
            while way[0] > 0:
                way.insert(0, int(before[way[0]]))
            if way[0] < 0:
                return None
            moves = []
            for a, b in pairwise(way):
                try:
                    moves.append(self._move(poses[a], poses[b]))
                except TrajectoryError:
                    times[a, b] = times[b, a] = 0.0
                    break
            else:
                return Trajectory.join(moves)

    @cached_property
    def _roadmap(self) -> tuple[NDArray, NDArray]:
        """Poses (P, n), and the times (P, P) that moves between neighbours take; 0 where there is no move."""
        poses = self._limits.poses(POSES)
        poses = poses[self._workspace.allowed(poses)]
        distance = np.abs(poses[:, np.newaxis] - poses) @ (1.0 / self._limits.velocity)
        nearest = np.argsort(distance, axis=1)[:, 1 : NEIGHBOURS + 1]
        a, b = np.repeat(np.arange(len(poses)), nearest.shape[1]), nearest.ravel()
        times = np.zeros((len(poses), len(poses)))
        times[a, b] = self._times(poses[a], poses[b])
        return poses, np.maximum(times, times.T)

    def _times(self, starts: NDArray, goals: NDArray) -> NDArray:
        """Durations (M,) of straight moves, 0 where one looks unsafe."""
        fraction = np.linspace(0.0, 1.0, POINTS)[:, np.newaxis]
        lines = starts[:, np.newaxis] + fraction * (goals - starts)[:, np.newaxis]
        safe = self._workspace.allowed(lines.reshape(-1, starts.shape[1])).reshape(-1, POINTS).all(axis=1)
        return np.where(safe, [self._duration(displacement) for displacement in goals - starts], 0.0)

    def _duration(self, displacement: NDArray) -> float:
        return max(self._limits.shortest_move(displacement), SHORTEST_MOVE)
