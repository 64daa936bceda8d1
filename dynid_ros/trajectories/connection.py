"""Moves from pose to pose that keep to the workspace, over other poses where the straight one does not."""

from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import dijkstra

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories.checks import check_limits
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.minimum_jerk import move, shortest_duration
from dynid_ros.trajectories.trajectory import Trajectory
from dynid_ros.trajectories.workspace import Workspace

POSES = 256
NEIGHBOURS = 12
POINTS = 24
"""Poses looked at on each straight line of the roadmap; those that a motion uses are then checked closely."""
SHORTEST_MOVE = 0.1


class Connection:
    """Finds minimum-jerk moves, at rest at each pose, as fast as `limits` allow.

    Where the straight move would leave the workspace, it goes over poses of a probabilistic roadmap (Kavraki et al.
    1996).
    """

    def __init__(self, limits: MotionLimits, workspace: Workspace) -> None:
        self._limits = limits
        self._workspace = workspace

    def connect(self, start: ArrayLike, goal: ArrayLike) -> Trajectory:
        """Motion from `start` to `goal` (n,).

        Raises:
            TrajectoryError: none was found; says where the straight one would leave limits or workspace.

        """
        start, goal = np.asarray(start, dtype=float), np.asarray(goal, dtype=float)
        try:
            return self._move(start, goal)
        except TrajectoryError as error:
            detour = self._detour(start, goal)
            if detour is None:
                raise TrajectoryError(f"no safe way there: on the straight one {error}") from error
            return detour

    def _move(self, start: NDArray, goal: NDArray) -> Trajectory:
        limits = self._limits
        duration = max(shortest_duration(goal - start, limits.velocity, limits.acceleration), SHORTEST_MOVE)
        motion = move(limits.joint_names, start, goal, duration)
        check_limits(motion, limits)
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
        limits = self._limits
        durations = [shortest_duration(d, limits.velocity, limits.acceleration) for d in goals - starts]
        return np.where(safe, np.maximum(durations, SHORTEST_MOVE), 0.0)
