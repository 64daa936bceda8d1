"""Poses at rest that tell gravity parameters best, visited in a short order."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.guarded import POSES, GuardedExperiment, require
from dynid_ros.excitation.pose_choice import condition_number, d_optimal, log_determinant, rank, told
from dynid_ros.excitation.pose_set_plan import PoseDwell, PoseSetPlan
from dynid_ros.excitation.stepped_rotation import DOWN, UP
from dynid_ros.excitation.visiting_order import visiting_order
from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC
from dynid_ros.trajectories.limits import MotionLimits, per_joint
from dynid_ros.trajectories.trajectory import Trajectory
from dynid_ros.trajectories.workspace import Workspace

GRAVITY, LOAD = "gravity", "load"


class PoseSet(GuardedExperiment):
    """Plans rests in poses that together tell the parameters best: those of the largest information determinant.

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
        offsets: whether each joint's torque has an unknown offset that the poses must tell apart from gravity.
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
            ("count", count, count >= 2, "at least 2: one pose does not tell the parameters apart"),
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
        axes = told(self._rows(self.limits.poses(POSES, self.margin)))
        if axes.shape[1] <= self.offsets * self.robot.n_joints:
            raise TrajectoryError(
                f"no pose tells of the {self.target}: gravity acts on no joint's torque, or as an offset does"
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
            rows = self.robot.gravity_regressor(poses)[..., -PARAMETERS_PER_LINK:][..., :STATIC]
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
                f"the poses tell {rank(rows)} of {rows.shape[2]} combinations of parameters; take more or other poses"
            )
        if not np.all(self.approach):
            warnings.append("a joint without approach may stop with friction of either sign, which adds to its torque")
        return warnings
