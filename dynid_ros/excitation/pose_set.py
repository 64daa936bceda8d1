"""Static poses that estimate gravity parameters best, visited in a short order."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import DOWN, N_SAMPLED_POSES, UP, Dwell, Experiment, Plan, require
from dynid_ros.information.criteria import condition_number, d_optimal, log_determinant, rank, whitening_axes
from dynid_ros.information.torque_information import GRAVITY, LOAD
from dynid_ros.model import GravityModel
from dynid_ros.model.inertia import STATIC
from dynid_ros.trajectories.limits import per_joint
from dynid_ros.trajectories.trajectory import Trajectory

MIN_GAIN_S = 1e-9
"""Smallest reduction of the time for which a stretch of the path is reversed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PoseSet(Experiment):
    """Experiment that rests in the poses whose torques contain most information about the parameters (D-optimality).

    The poses are chosen from many that limits and workspace allow. The arm rests at each pose twice: once after all
    joints moved up by `approach`, once after they moved down. The sign of Coulomb friction is therefore known, and
    friction cancels between the two rests.

    Attributes:
        target: "gravity": the base gravity parameters of the arm; "load": mass and mass moments of the load on the last
            link of a known arm.
        count: number of poses to choose.
        poses: (P, n) poses to visit, rad or m; None: choose them.
        offsets: whether each joint's torque has an unknown offset that the poses must distinguish from gravity.
        dwell: duration of each rest, s.
        approach: distance of the approach to a pose, one value or (n,), rad or m; 0: direct, with one rest per pose.
        seed: seed of the random first choices of the search.
    """

    target: str = GRAVITY
    count: int = 15
    poses: ArrayLike | None = None
    offsets: bool = True
    dwell: float = 1.0
    approach: ArrayLike = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        names = self.robot.joint_names
        approach = per_joint(self.approach, names, "approach")
        poses = np.zeros((1, len(names))) if self.poses is None else np.asarray(self.poses, dtype=float)
        is_valid = poses.ndim == 2 and poses.shape[1] == len(names) and len(poses) > 0 and np.isfinite(poses).all()
        require(
            ("target", self.target, self.target in (GRAVITY, LOAD), f"'{GRAVITY}' or '{LOAD}'"),
            ("count", self.count, self.count >= 2, "at least 2: one pose does not separate the parameters"),
            ("poses", self.poses, is_valid, f"one or more rows of a finite position for each of {names}"),
            ("dwell", self.dwell, self.dwell > 0, "positive"),
            ("approach", self.approach, np.all(approach >= 0), "zero or more"),
            ("seed", self.seed, self.seed >= 0, "zero or more"),
        )
        object.__setattr__(self, "approach", approach)

    def plan(self) -> Plan:
        """Choose the poses and join them to one motion.

        Raises:
            TrajectoryError: too few poses are allowed, a given pose is not allowed, or there is no safe motion.
        """
        axes = whitening_axes(self._rows(self.limits.poses(N_SAMPLED_POSES, self.margin)))
        if axes.shape[1] <= self.offsets * self.robot.n_joints:
            raise TrajectoryError(
                f"no pose shows the {self.target}: gravity acts on no joint's torque, or as an offset does"
            )
        if self.poses is not None:
            requested = np.asarray(self.poses, dtype=float)
            self._check_poses(requested)
            poses, trajectory, dwells = self._visit(requested)
        else:
            candidates = self.allowed_poses(self.approach)
            try:
                poses, trajectory, dwells = self._visit(self._choose(candidates, axes))
            except TrajectoryError:
                # The free space is not connected: use only its component with the largest number of poses.
                groups = self.transit_planner.groups(candidates)
                candidates = candidates[groups == np.argmax(np.bincount(groups[groups >= 0], minlength=1))]
                poses, trajectory, dwells = self._visit(self._choose(candidates, axes))
        self.check(trajectory)
        rows = self._rows(poses) @ axes
        possible_rank = axes.shape[1]
        condition = condition_number(rows)
        names = self.robot.joint_names
        return Plan(
            trajectory=trajectory,
            format="dynid-pose-set/1",
            facts={
                "target": self.target,
                "rank": rank(rows),
                "possible_rank": possible_rank,
                "condition_number": round(condition, 3),
                "log_determinant": round(log_determinant(rows), 4),
                "poses": [dict(zip(names, np.round(pose, 6).tolist(), strict=True)) for pose in poses],
            },
            lines=(
                f"{trajectory.duration:.1f} s, {len(poses)} poses, {len(dwells)} dwells",
                f"{self.target}: {rank(rows)} of {possible_rank} combinations of parameters and offsets are "
                f"determined, condition number {condition:.1f}",
            ),
            dwells=dwells,
            warnings=tuple(self._warnings(rank(rows), possible_rank)),
        )

    def _choose(self, candidates: NDArray, axes: NDArray) -> NDArray:
        """Return the D-optimal poses (count, n) of the candidates (P, n); `axes` span the identifiable parameters."""
        if len(candidates) < self.count:
            raise TrajectoryError(
                f"{len(candidates)} of {N_SAMPLED_POSES} poses are allowed by limits, workspace and torque and reached "
                f"from each other, fewer than the {self.count} asked for: widen them, or lower count"
            )
        return candidates[d_optimal(self._rows(candidates) @ axes, self.count, self.seed)]

    def _check_poses(self, poses: NDArray) -> None:
        for k, pose in enumerate(poses):
            for side in (0, -1, 1):
                try:
                    self.check_pose(pose + side * np.asarray(self.approach))
                except TrajectoryError as error:
                    where = "" if side == 0 else ", on the approach to it"
                    raise TrajectoryError(f"pose {k} of those given is not allowed{where}: {error}") from error

    def _rows(self, poses: NDArray) -> NDArray:
        """Return the regressor rows (P, n, k) of the target's parameters, and of the offsets, at rest."""
        if self.target == LOAD:
            rows = self.robot.gravity_regressor(poses)[..., self.robot.tip_columns][..., :STATIC]
        else:
            rows = GravityModel(self.robot).regressor(poses)
        if self.offsets:
            n = self.robot.n_joints
            rows = np.concatenate([rows, np.broadcast_to(np.eye(n), (len(poses), n, n))], axis=2)
        return rows

    def _visit(self, poses: NDArray) -> tuple[NDArray, Trajectory, tuple[Dwell, ...]]:
        """Return the poses in a short order, the motion through them, and its dwells."""
        times = np.array([[self.transit_limits.shortest_move(b - a) for b in poses] for a in poses])
        poses = poses[visiting_order(times)]
        stops = poses
        rests = np.full(len(poses), self.dwell)
        directions = np.zeros(len(poses), dtype=int)
        if np.any(self.approach):
            approach = np.asarray(self.approach)
            stops = np.stack([poses - approach, poses, poses + approach, poses], axis=1).reshape(-1, poses.shape[1])
            rests = np.tile([0.0, self.dwell], 2 * len(poses))
            directions = np.tile([0, UP, 0, DOWN], len(poses))
        trajectory, intervals = self.transit_planner.visit(stops, rests)
        stops_per_pose = len(stops) // len(poses)
        dwells = tuple(
            Dwell(float(start), float(end), pose=k // stops_per_pose, direction=int(directions[k]))
            for k, (start, end) in enumerate(intervals)
            if rests[k]
        )
        return poses, trajectory, dwells

    def _warnings(self, reached_rank: int, possible_rank: int) -> list[str]:
        warnings = list(self.workspace_and_torque.warnings)
        if reached_rank < possible_rank:
            warnings.append(
                f"the poses determine {reached_rank} of {possible_rank} combinations of parameters; take more or other "
                "poses"
            )
        if not np.all(self.approach):
            warnings.append("a joint without approach may stop with friction of either sign, which adds to its torque")
        return warnings


def visiting_order(times: NDArray) -> list[int]:
    """Order K poses so that the path through all of them is short; the path may end at any pose.

    Nearest-neighbour paths from each pose are compared, and 2-opt improves the shortest one (Croes 1958): it reverses
    stretches of the path while that shortens the path.

    Args:
        times: (K, K) symmetric times from pose to pose, s.
    """
    count = len(times)
    paths = [_nearest_neighbour_path(times, start) for start in range(count)]
    path = np.array(min(paths, key=lambda nodes: path_duration(times, nodes)), dtype=int)
    shortened = True
    while shortened:
        shortened = False
        for i in range(count - 1):
            end = i
            while len(better := _better_ends(times, path, i, end + 1)):
                end = better[0]
                path[i : end + 1] = path[i : end + 1][::-1]
                shortened = True
    return path.tolist()


def _better_ends(times: NDArray, path: NDArray, start: int, first: int) -> NDArray:
    """Return the ends, from `first` on, of the stretches from `start` whose reversal shortens the path (K,)."""
    ends = np.arange(first, len(path))
    inner = ends[:-1]
    gain = np.zeros(len(ends))
    gain[:-1] = times[path[inner], path[inner + 1]] - times[path[start], path[inner + 1]]
    if start:
        gain += times[path[start - 1], path[start]] - times[path[start - 1], path[ends]]
    return ends[gain > MIN_GAIN_S]


def path_duration(times: NDArray, path: list[int]) -> float:
    """Return the duration of a path through the poses, s."""
    return float(times[path[:-1], path[1:]].sum())


def _nearest_neighbour_path(times: NDArray, start: int) -> list[int]:
    path = [start]
    distance = times.astype(float)
    while len(path) < len(times):
        distance[:, path[-1]] = np.inf
        path.append(int(np.argmin(distance[path[-1]])))
    return path
