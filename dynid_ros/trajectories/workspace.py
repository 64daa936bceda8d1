"""Where the links may be: above a floor and apart from each other."""

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.checks import check_times
from dynid_ros.trajectories.trajectory import Trajectory

PROBE_POSES = 16


class Workspace:
    """Keeps the links, seen as straight lines from origin to origin, above a floor and apart from each other.

    Links have a thickness that this does not know: leave room for it. What stands around the arm is not known either.

    Attributes:
        up: (3,) unit vector against gravity, in the base frame.

    Args:
        robot: the arm.
        floor_height: lowest height of a moving link origin and of the tip, against gravity from the base's origin, m.
        clearance: smallest distance between two links, m; 0: not checked. Links that are less than three times as far
            apart along the arm, as those of a wrist, are close by design and not looked at.

    Raises:
        TrajectoryError: the robot's gravity is zero.

    """

    def __init__(self, robot: RobotModel, floor_height: float = -np.inf, clearance: float = 0.0) -> None:
        self.floor_height = floor_height
        self.clearance = clearance
        self._robot = robot
        magnitude = np.linalg.norm(robot.gravity)
        if magnitude == 0.0:
            raise TrajectoryError("gravity is zero: there is no floor, and no gravity torque to excite")
        self.up = -robot.gravity / magnitude
        self._tip = robot.tip_offset[:3, 3]
        self._names = (robot.base, *robot.link_names, robot.tip)
        probe = self._points(np.random.default_rng(0).uniform(-1.0, 1.0, (PROBE_POSES, robot.n_joints)))
        self._moving = np.ptp(probe, axis=0).max(axis=-1) > 1e-9
        lengths = np.linalg.norm(np.diff(probe, axis=1), axis=-1).min(axis=0)
        along = np.concatenate([[0.0], np.cumsum(lengths)])
        self._pairs = np.array(
            [
                (a, b)
                for a, b in combinations(np.flatnonzero(lengths > 1e-9), 2)
                if clearance > 0 and along[b] - along[a + 1] > 3 * clearance
            ],
            dtype=int,
        ).reshape(-1, 2)

    def allowed(self, position: ArrayLike) -> NDArray:
        """(N,) bool: whether the arm at positions (N, n) is above the floor and clear of itself."""
        points = self._points(position)
        return np.all(self._height_above_floor(points) >= 0, axis=1) & np.all(self._room(points) >= 0, axis=1)

    def check(self, trajectory: Trajectory) -> None:
        """The arm is above the floor and clear of itself all along the motion.

        Raises:
            TrajectoryError: names the links, the time, the height or distance, and its bound.

        """
        time = check_times(trajectory)
        points = self._points(trajectory.at(time)[0])
        height = self._height_above_floor(points)
        if height.min(initial=0.0) < 0:
            k, i = np.unravel_index(np.argmin(height), height.shape)
            name = np.array(self._names)[self._moving][i]
            raise TrajectoryError(
                f"'{name}' would be at height {height[k, i] + self.floor_height:.3f} m at {time[k]:.3f} s, below "
                f"floor_height {self.floor_height:g} m"
            )
        room = self._room(points)
        if room.min(initial=0.0) < 0:
            k, pair = np.unravel_index(np.argmin(room), room.shape)
            a, b = self._pairs[pair]
            raise TrajectoryError(
                f"the link from '{self._names[b]}' to '{self._names[b + 1]}' would come within "
                f"{room[k, pair] + self.clearance:.3f} m of the one from '{self._names[a]}' to '{self._names[a + 1]}' "
                f"at {time[k]:.3f} s; clearance is {self.clearance:g} m"
            )

    def _points(self, position: ArrayLike) -> NDArray:
        """Origins (N, n + 2, 3) of base, links and tip."""
        poses = self._robot.forward_kinematics(position)
        tip = poses[:, -1, :3, :3] @ self._tip + poses[:, -1, :3, 3]
        return np.concatenate([np.zeros((len(poses), 1, 3)), poses[:, :, :3, 3], tip[:, np.newaxis]], axis=1)

    def _height_above_floor(self, points: NDArray) -> NDArray:
        return points[:, self._moving] @ self.up - self.floor_height

    def _room(self, points: NDArray) -> NDArray:
        """Distances (N, pairs) between links, less the clearance."""
        a, b = self._pairs.T
        return _segment_distance(points[:, a], points[:, a + 1], points[:, b], points[:, b + 1]) - self.clearance


def _segment_distance(a0: NDArray, a1: NDArray, b0: NDArray, b1: NDArray) -> NDArray:
    """Distances (...) between segments a0-a1 and b0-b1 (..., 3) (Ericson, Real-Time Collision Detection, 5.1.9)."""
    a, b, between = a1 - a0, b1 - b0, a0 - b0
    aa, bb, ab = (np.sum(u * v, axis=-1) for u, v in ((a, a), (b, b), (a, b)))
    a_between, b_between = np.sum(a * between, axis=-1), np.sum(b * between, axis=-1)
    parallel = aa * bb - ab**2
    s = np.clip((ab * b_between - a_between * bb) / np.maximum(parallel, 1e-12), 0.0, 1.0)
    t = np.clip((ab * s + b_between) / bb, 0.0, 1.0)
    s = np.clip((ab * t - a_between) / aa, 0.0, 1.0)
    return np.linalg.norm(between + s[..., np.newaxis] * a - t[..., np.newaxis] * b, axis=-1)
