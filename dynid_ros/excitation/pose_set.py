"""Static poses that estimate gravity parameters best, visited in a short order."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import DOWN, POSES, UP, GuardedExperiment, TrajectoryPlan, require
from dynid_ros.information.criteria import condition_number, d_optimal, log_determinant, rank, whitening_axes
from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.model.inertia import STATIC
from dynid_ros.trajectories.limits import MotionLimits, per_joint
from dynid_ros.trajectories.trajectory import Trajectory
from dynid_ros.trajectories.workspace import Workspace

# Planned rests in a set of poses.


@dataclass(frozen=True)
class PoseDwell:
    """A dwell of the whole arm.

    Attributes:
        pose: number of the pose, in the order of the visits.
        direction: 1 where all joints arrived moving upwards, -1 downwards, 0 where each came from its own side.
        start: time of arrival, s.
        end: time of departure, s.
    """

    pose: int
    direction: int
    start: float
    end: float


@dataclass(frozen=True, eq=False)
class PoseSetPlan(TrajectoryPlan):
    """What `PoseSet.plan` returns.

    Attributes:
        trajectory: the whole motion; how the arm gets to its start is not part of it.
        poses: (K, n) in the order of the visits, rad or m.
        dwells: in order of time.
        target: what the poses are for, "gravity" or "load".
        rank: combinations of parameters and offsets that the poses determine.
        possible_rank: that poses within the limits can determine.
        condition_number: of their regressor, see `pose_choice.condition_number`.
        log_determinant: of their information, see `pose_choice.whitening_axes`.
        warnings: what will weaken the identification, or is not known.
    """

    trajectory: Trajectory
    poses: NDArray
    dwells: tuple[PoseDwell, ...]
    target: str
    rank: int
    possible_rank: int
    condition_number: float
    log_determinant: float
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML: times in s from the start of the motion, positions in rad or m."""
        names = self.trajectory.joint_names
        return {
            "format": "dynid-pose-set/1",
            "duration": round(self.duration, 4),
            "target": self.target,
            "rank": self.rank,
            "possible_rank": self.possible_rank,
            "condition_number": round(self.condition_number, 3),
            "log_determinant": round(self.log_determinant, 4),
            "poses": [dict(zip(names, np.round(pose, 6).tolist(), strict=True)) for pose in self.poses],
            "dwells": [
                {"pose": d.pose, "direction": d.direction, "start": round(d.start, 4), "end": round(d.end, 4)}
                for d in self.dwells
            ],
            "warnings": list(self.warnings),
        }

    def summary(self) -> str:
        """Lines of text: duration, number of poses, rank and condition number, warnings."""
        lines = [
            f"{self.duration:.1f} s, {len(self.poses)} poses, {len(self.dwells)} dwells",
            f"{self.target}: {self.rank} of {self.possible_rank} combinations of parameters and offsets are "
            f"determined, condition number {self.condition_number:.1f}",
        ]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


# A short way through all poses: nearest neighbour, then 2-opt (Croes 1958).


GAIN = 1e-9


def visiting_order(times: NDArray) -> list[int]:
    """Order of K poses, each visited once, by symmetric `times` (K, K) from one to the other; ends where it likes.

    The nearest neighbour is taken from each pose in turn as a start, and stretches of the shortest way are reversed
    while that shortens it.
    """
    count = len(times)
    ways = [_nearest(times, start) for start in range(count)]
    way = min(ways, key=lambda nodes: length(times, nodes))
    shortened = True
    while shortened:
        shortened = False
        for i in range(count - 1):
            for j in range(i + 1, count):
                before = times[way[i - 1], way[i]] if i else 0.0
                after = times[way[j], way[j + 1]] if j + 1 < count else 0.0
                instead = (times[way[i - 1], way[j]] if i else 0.0) + (
                    times[way[i], way[j + 1]] if j + 1 < count else 0.0
                )
                if instead < before + after - GAIN:
                    way[i : j + 1] = way[i : j + 1][::-1]
                    shortened = True
    return way


def length(times: NDArray, way: list[int]) -> float:
    """Time that a way through the poses takes, s."""
    return float(times[way[:-1], way[1:]].sum())


def _nearest(times: NDArray, start: int) -> list[int]:
    way = [start]
    left = set(range(len(times))) - {start}
    while left:
        way.append(min(left, key=lambda pose: (times[way[-1], pose], pose)))
        left.remove(way[-1])
    return way


GRAVITY, LOAD = "gravity", "load"


class PoseSet(GuardedExperiment):
    """Plans rests in poses that together estimate the parameters best: those of the largest information determinant.

    The poses are chosen from many that limits and workspace allow, by the torques of all joints. Each is reached twice,
    all joints moving up by `approach`, then down: so the sign of Coulomb friction is known, and it cancels.

    Args:
        robot: the arm.
        limits: what the joints may do; 80 % of the acceleration is used.
        workspace: where the links may be; None: anywhere.
        target: "gravity": the base gravity parameters of the arm; "load": mass and mass moments of what is fixed to the
            last link, the arm being known.
        count: poses chosen.
        poses: (P, n) poses of the caller's own, all of which are visited; None: choose.
        offsets: whether each joint's torque has an unknown offset that the poses must distinguish from gravity.
        dwell: rest at each pose and from each side, s.
        approach: distance from which a joint comes to a pose, one value or (n,), rad or m; 0: each pose once, straight.
        seed: of the choices that the search starts from.
        guards: `position_margin`, `speed_fraction`, `travel_speed_fraction`, `torque_fraction` of `GuardedExperiment`.

    Raises:
        TrajectoryError: a setting makes no sense.
    """

    def __init__(
        self,
        robot: RobotModel,
        limits: MotionLimits,
        workspace: Workspace | None = None,
        *,
        target: str = GRAVITY,
        count: int = 15,
        poses: ArrayLike | None = None,
        offsets: bool = True,
        dwell: float = 1.0,
        approach: ArrayLike = 0.05,
        seed: int = 0,
        **guards: float,
    ) -> None:
        super().__init__(robot, limits, workspace, **guards)
        self.target, self.count, self.offsets, self.dwell, self.seed = target, count, offsets, dwell, seed
        self.approach = per_joint(approach, robot.joint_names, "approach")
        self.poses = None if poses is None else np.asarray(poses, dtype=float)
        shaped = self.poses is None or (self.poses.ndim == 2 and self.poses.shape[1] == robot.n_joints)
        finite = self.poses is None or (len(self.poses) > 0 and np.isfinite(self.poses).all())
        require(
            ("target", target, target in (GRAVITY, LOAD), f"'{GRAVITY}' or '{LOAD}'"),
            ("count", count, count >= 2, "at least 2: one pose does not separate the parameters"),
            (
                "poses",
                poses,
                shaped and finite,
                f"one or more rows of a finite position for each of {robot.joint_names}",
            ),
            ("dwell", dwell, dwell > 0, "positive"),
            ("approach", approach, np.all(self.approach >= 0), "zero or more"),
            ("seed", seed, seed >= 0, "zero or more"),
        )

    def plan(self) -> PoseSetPlan:
        """Choose the poses and join them to one motion.

        Raises:
            TrajectoryError: there are too few poses, one of the given ones is not allowed, or there is no safe way.
        """
        axes = whitening_axes(self._rows(self.limits.poses(POSES, self.margin)))
        if axes.shape[1] <= self.offsets * self.robot.n_joints:
            raise TrajectoryError(
                f"no pose shows the {self.target}: gravity acts on no joint's torque, or as an offset does"
            )
        if self.poses is not None:
            self._check_given(self.poses)
            poses, trajectory, dwells = self._motion(self.poses)
        else:
            candidates = self.allowed_poses(self.approach)
            try:
                poses, trajectory, dwells = self._motion(self._chosen(candidates, axes))
            except TrajectoryError:
                # Where the room falls into parts, the arm stays in the one that holds most poses.
                groups = self.travel.groups(candidates)
                candidates = candidates[groups == np.argmax(np.bincount(groups[groups >= 0], minlength=1))]
                poses, trajectory, dwells = self._motion(self._chosen(candidates, axes))
        self.check(trajectory)
        rows = self._rows(poses) @ axes
        return PoseSetPlan(
            trajectory,
            poses,
            dwells,
            self.target,
            rank(rows),
            axes.shape[1],
            condition_number(rows),
            log_determinant(rows),
            tuple(self._warnings(rows)),
        )

    def _chosen(self, candidates: NDArray, axes: NDArray) -> NDArray:
        if len(candidates) < self.count:
            raise TrajectoryError(
                f"{len(candidates)} of {POSES} poses are allowed by limits, workspace and torque and reached from each "
                f"other, fewer than the {self.count} asked for: widen them, or lower count"
            )
        return candidates[d_optimal(self._rows(candidates) @ axes, self.count, self.seed)]

    def _check_given(self, poses: NDArray) -> None:
        for k, pose in enumerate(poses):
            for side in (0, -1, 1):
                try:
                    self.check_pose(pose + side * self.approach)
                except TrajectoryError as error:
                    where = "" if side == 0 else ", on the approach to it"
                    raise TrajectoryError(f"pose {k} of those given is not allowed{where}: {error}") from error

    def _rows(self, poses: NDArray) -> NDArray:
        """Rows (P, n, k) of the target's parameters, and of the offsets, in the torques at rest."""
        if self.target == LOAD:
            rows = self.robot.gravity_regressor(poses)[..., self.robot.tip_columns][..., :STATIC]
        else:
            rows = GravityModel(self.robot).regressor(poses)
        if self.offsets:
            n = self.robot.n_joints
            rows = np.concatenate([rows, np.broadcast_to(np.eye(n), (len(poses), n, n))], axis=2)
        return rows

    def _motion(self, poses: NDArray) -> tuple[NDArray, Trajectory, tuple[PoseDwell, ...]]:
        """The poses in the order of a short way through them, the motion and its dwells."""
        poses = poses[visiting_order(np.array([[self.slow.shortest_move(b - a) for b in poses] for a in poses]))]
        if np.any(self.approach):
            stops = np.stack([poses - self.approach, poses, poses + self.approach, poses], axis=1).reshape(
                -1, poses.shape[1]
            )
            rest, directions = np.tile([0.0, self.dwell], 2 * len(poses)), np.tile([0, UP, 0, DOWN], len(poses))
        else:
            stops, rest, directions = poses, np.full(len(poses), self.dwell), np.zeros(len(poses), dtype=int)
        trajectory, times = self.travel.visit(stops, rest)
        each = len(stops) // len(poses)
        return (
            poses,
            trajectory,
            tuple(
                PoseDwell(k // each, int(directions[k]), float(start), float(end))
                for k, (start, end) in enumerate(times)
                if rest[k]
            ),
        )

    def _warnings(self, rows: NDArray) -> list[str]:
        warnings = self.torque_warnings()
        if rank(rows) < rows.shape[2]:
            warnings.append(
                f"the poses determine {rank(rows)} of {rows.shape[2]} combinations of parameters; "
                "take more or other poses"
            )
        if not np.all(self.approach):
            warnings.append("a joint without approach may stop with friction of either sign, which adds to its torque")
        return warnings
