"""Test motions for a payload: turns about each axis of the tool, one at a time, with rests between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import Dwell, Experiment, Plan, require
from dynid_ros.excitation.tool_rotation import ToolRotation, stretch_time, tool_axes, wrist_joints, wrist_rates
from dynid_ros.information.criteria import condition_number, log_determinant, rank, whitening_axes
from dynid_ros.model.base_parameters import BaseParameters
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC
from dynid_ros.model.parameter_words import LINK_PARAMETERS
from dynid_ros.trajectories.limits import check_times
from dynid_ros.trajectories.trajectory import Trajectory, move

TOOL_AXES = ("x", "y", "z")
MAX_RATED_POSES = 128
"""Poses with widely spread wrist axes, and free range around them, that are rated by the load's regressor."""
MAX_PLANNED_POSES = 3
"""Poses whose whole motion is planned; the best conditioned motion is taken."""
MIN_TURN_RAD = np.deg2rad(10.0)
SLOWDOWN_FACTOR = 1.2
MAX_SLOWDOWNS = 12
"""Number of times that a turn with too much torque is slowed down, to a ninth of the speed."""
MAX_CONDITION_NUMBER = 100.0
"""Condition number above which the plan warns."""
MIN_RATE = 1e-9
"""Rate below which a joint does not limit a turn, rad/s per rad/s of the tool."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PayloadMotion(Experiment):
    """Plans turns of the tool about its x, y and z axis, one after the other.

    About each axis the tool first turns as far as the wrist allows, with rests at its ends, which determine mass and
    mass moments. Then it turns to and fro just so far that velocity and acceleration limits are both reached. Rotation
    about one axis at a time excites the moments of inertia, which gravity alone does not (Atkeson, An and Hollerbach
    1986). The last three revolute joints turn the tool while the other joints hold. Of the poses that limits
    and workspace allow, the one that determines the ten parameters of the load best is taken.

    Attributes:
        pose: (n,) where the turns start, rad or m; None: choose.
        reach: largest angle to either side, rad.
        repeats: number of quick turns to and fro about each axis.
        dwell: rest at the start and at the ends of the far turn, s.
    """

    pose: ArrayLike | None = None
    reach: float = np.pi / 2
    repeats: int = 2
    dwell: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        names = self.robot.joint_names
        is_valid_pose = self.pose is None or (np.shape(self.pose) == (len(names),) and np.isfinite(self.pose).all())
        require(
            ("pose", self.pose, is_valid_pose, f"a finite position for each of {', '.join(names)}"),
            ("reach", self.reach, MIN_TURN_RAD <= self.reach <= np.pi, "from 0.18 to π"),
            ("repeats", self.repeats, self.repeats >= 1, "at least 1"),
            ("dwell", self.dwell, self.dwell > 0, "positive"),
        )
        if not len(wrist_joints(self.robot)):
            raise TrajectoryError(f"'{self.robot.name}' has no revolute joint to turn a tool with")

    def plan(self) -> Plan:
        """Choose the pose and plan the turns.

        Raises:
            TrajectoryError: in no allowed pose can the tool be turned; describes the reason.
        """
        if self.pose is None:
            poses = self._rated_poses()[:MAX_PLANNED_POSES]
        else:
            poses = np.asarray(self.pose, dtype=float)[np.newaxis]
            try:
                self.check_pose(poses[0])
            except TrajectoryError as error:
                raise TrajectoryError(f"the arm may not rest at the pose given: {error}") from error
        plans: list[tuple[int, float, Plan]] = []
        reason: TrajectoryError | None = None
        for pose in poses:
            try:
                plans.append(self._plan_at(pose))
            except TrajectoryError as error:
                reason = reason or error
        if not plans:
            raise TrajectoryError(f"the tool cannot be turned in any of {len(poses)} poses: {reason}")
        return min(plans, key=lambda plan: (-plan[0], plan[1]))[2]

    def _rated_poses(self) -> NDArray:
        """Return allowed poses (P, n), sorted by the information that turns there contain on the load."""
        limits = self.design_limits
        joints = wrist_joints(self.robot)
        poses = self.allowed_poses()
        poses = poses[np.all((poses > limits.lower) & (poses < limits.upper), axis=1)]
        axes = self.robot.joint_axes(poses)[:, joints]
        spread = np.linalg.svd(axes, compute_uv=False)[:, -1]
        free = np.minimum(poses - limits.lower, limits.upper - poses)[:, joints].min(axis=1)
        best = np.argsort(-spread * np.minimum(free, self.reach), kind="stable")[:MAX_RATED_POSES]
        poses = poses[best]
        axes = axes[best]
        rows = []
        for direction in np.moveaxis(tool_axes(self.robot, poses), 2, 0):
            rates = np.zeros_like(poses)
            rates[:, joints] = wrist_rates(axes, direction)
            size = np.maximum(np.abs(rates), MIN_RATE)
            speed = np.min(limits.velocity / size, axis=1, keepdims=True) * rates
            acceleration = np.min(limits.acceleration / size, axis=1, keepdims=True) * rates
            rows += [self._load_rows(poses, 0 * rates, sign * acceleration) for sign in (-1, 1)]
            rows += [self._load_rows(poses, speed, 0 * rates)]
        pose_rows = np.concatenate(rows, axis=1)
        pose_rows = pose_rows @ whitening_axes(pose_rows)
        return poses[np.argsort([-log_determinant(row[np.newaxis]) for row in pose_rows], kind="stable")]

    def _plan_at(self, pose: NDArray) -> tuple[int, float, Plan]:
        """Plan the turns about the tool's axes at `pose` (n,); return rank, condition number and plan."""
        parts: list[Trajectory] = [move(self.limits.joint_names, pose, pose, self.dwell)]
        dwells = [Dwell(0.0, self.dwell)]
        turns: list[dict[str, Any]] = []
        skipped: dict[str, str] = {}
        for axis, name in enumerate(TOOL_AXES):
            rotation = ToolRotation.within(self, pose, axis, self.reach)
            if rotation.highest - rotation.lowest < MIN_TURN_RAD:
                skipped[name] = "the last joints cannot turn the tool about it there"
                continue
            try:
                moves = self._turn(rotation)
            except TrajectoryError as error:
                skipped[name] = str(error)
                continue
            start = sum(part.duration for part in parts)
            end = start
            for part in moves:
                if not part.velocity.any():
                    dwells.append(Dwell(end, end + part.duration))
                end += part.duration
            turns.append(
                {
                    "axis": name,
                    "lowest": round(rotation.lowest, 6),
                    "highest": round(rotation.highest, 6),
                    "acceleration": round(self._largest_acceleration(rotation, moves), 4),
                    "start": round(start, 4),
                    "end": round(end, 4),
                }
            )
            parts += moves
        if not turns:
            raise TrajectoryError("; ".join(f"about {name}: {reason}" for name, reason in skipped.items()))
        trajectory = Trajectory.join(parts)
        self.check(trajectory)
        return self._describe(trajectory, pose, turns, dwells, skipped)

    def _turn(self, rotation: ToolRotation) -> list[Trajectory]:
        """Return moves and rests of the turns about an axis, first over the whole range, then quickly to and fro."""
        low = rotation.lowest
        high = rotation.highest
        half = min(rotation.quick_angle(self.design_limits), high - low) / 2
        middle = np.clip(0.0, low + half, high - half)
        quick = [middle - half, middle + half]
        angles = np.round([0.0, high, low, *quick * self.repeats, quick[0], 0.0], 6)
        moves = []
        for start, goal in pairwise(angles[np.append(True, np.diff(angles) != 0.0)]):
            turn = self._slow_down(rotation.move(start, goal, self.design_limits))
            moves.append(turn)
            if goal in (angles[1], angles[2], 0.0):
                pose = turn.position[-1]
                moves.append(move(turn.joint_names, pose, pose, self.dwell))
        return moves

    def _largest_acceleration(self, rotation: ToolRotation, moves: list[Trajectory]) -> float:
        """Return the largest angular acceleration of the tool about the axis, rad/s²."""
        joints = wrist_joints(self.robot)
        direction = tool_axes(self.robot, rotation.pose[np.newaxis])[0, :, rotation.axis]
        largest = 0.0
        for turn in moves:
            axes = self.robot.joint_axes(turn.position)[:, joints]
            speed = np.einsum("mji,mj->mi", axes, turn.velocity[:, joints]) @ direction
            largest = max(largest, float(np.abs(np.gradient(speed, turn.time)).max()))
        return largest

    def _slow_down(self, turn: Trajectory) -> Trajectory:
        """Return the turn, slowed down until its torques are small enough."""
        reason: TrajectoryError | None = None
        for _ in range(MAX_SLOWDOWNS):
            try:
                self.check(turn)
            except TrajectoryError as error:
                reason = error
                turn = stretch_time(turn, SLOWDOWN_FACTOR)
                continue
            return turn
        raise TrajectoryError(str(reason))

    def _load_rows(self, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
        """Return the regressor rows (N, n, 10) of a load that is fixed to the last link."""
        return self.robot.torque_regressor(q, qd, qdd)[..., self.robot.tip_columns]

    def _describe(
        self,
        trajectory: Trajectory,
        pose: NDArray,
        turns: list[dict[str, Any]],
        dwells: list[Dwell],
        skipped: Mapping[str, str],
    ) -> tuple[int, float, Plan]:
        """Return rank and condition number of the load's regressor, and the plan."""
        rows = self._load_rows(*trajectory.at(check_times(trajectory)[:: len(trajectory.time) // 400 + 1]))
        base = BaseParameters(rows, [f"{name}{self.robot.chain.tip_link + 1}" for name in LINK_PARAMETERS])
        still, _, _ = trajectory.at([(dwell.start + dwell.end) / 2 for dwell in dwells])
        static = self._load_rows(still, 0 * still, 0 * still)[..., :STATIC]
        static_rank = rank(static @ whitening_axes(static))
        condition = condition_number(rows)
        warnings = list(self.workspace_and_torque.warnings)
        if base.rank < PARAMETERS_PER_LINK:
            warnings.append(
                f"the motion excites {base.rank} of 10 parameters of the load: {', '.join(base.expressions)}"
            )
        elif condition > MAX_CONDITION_NUMBER:
            warnings.append(f"condition number above {MAX_CONDITION_NUMBER:g}: raise the acceleration limits, or reach")
        lines = [f"{trajectory.duration:.1f} s, {len(dwells)} dwells"]
        for turn in turns:
            low, high = np.rad2deg([turn["lowest"], turn["highest"]])
            lines.append(
                f"about {turn['axis']} of the tool: {low:.0f} to {high:.0f}°, up to {turn['acceleration']:.1f} rad/s²"
            )
        plan = Plan(
            trajectory=trajectory,
            format="dynid-payload-motion/1",
            facts={
                "pose": dict(zip(trajectory.joint_names, np.round(pose, 6).tolist(), strict=True)),
                "rank": base.rank,
                "static_rank": static_rank,
                "condition_number": round(condition, 3),
                "parameters": list(base.expressions),
                "turns": turns,
            },
            lines=(
                *lines,
                f"rank {base.rank} of the load's 10 parameters, condition number {condition:.1f}; at rest "
                f"{static_rank} of 4",
                *(f"about {axis} of the tool: no turn, {reason}" for axis, reason in skipped.items()),
            ),
            dwells=tuple(dwells),
            skipped=skipped,
            warnings=tuple(warnings),
        )
        return base.rank, condition, plan
