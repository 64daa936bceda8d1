"""Special test motions for a payload: turns about each axis of the tool, one at a time, and rests between them."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import GuardedExperiment, TrajectoryPlan, require
from dynid_ros.excitation.tool_rotation import ToolRotation, paced, tool_axes, wrist_joints, wrist_rates
from dynid_ros.information.criteria import condition_number, log_determinant, rank, whitening_axes
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import LINK_PARAMETERS, BaseParameters
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC
from dynid_ros.trajectories.limits import MotionLimits, check_times
from dynid_ros.trajectories.trajectory import Trajectory, move
from dynid_ros.trajectories.workspace import Workspace

# A planned test motion for a payload.


@dataclass(frozen=True)
class ToolTurn:
    """Turns of the tool about one of its axes.

    Attributes:
        axis: "x", "y" or "z" of the tip's frame.
        lowest: angle that it turns to, rad.
        highest: angle that it turns to, rad.
        acceleration: largest angular acceleration, rad/s².
        start: time in the motion, s.
        end: time in the motion, s.
    """

    axis: str
    lowest: float
    highest: float
    acceleration: float
    start: float
    end: float


@dataclass(frozen=True, eq=False)
class PayloadMotionPlan(TrajectoryPlan):
    """What `PayloadMotion.plan` returns.

    Attributes:
        trajectory: the whole motion; how the arm gets to its start is not part of it.
        pose: (n,) where all turns start and end.
        turns: in order of time.
        dwells: (D, 2) starts and ends of the dwells, s.
        rank: of the load's ten columns of the regressor, on the whole motion.
        static_rank: of the columns of mass and mass moments, on the dwells.
        condition_number: of the ten columns at unit norm; infinite where the rank is lower.
        expressions: combinations of the load's parameters that the motion excites, as `BaseParameters` has them.
        skipped: reason for each axis without a turn.
        warnings: what will weaken the identification, or is not known.
    """

    trajectory: Trajectory
    pose: NDArray
    turns: tuple[ToolTurn, ...]
    dwells: NDArray
    rank: int
    static_rank: int
    condition_number: float
    expressions: tuple[str, ...]
    skipped: dict[str, str]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML: times in s from the start of the motion, angles in rad."""
        return {
            "format": "dynid-payload-motion/1",
            "duration": round(self.duration, 4),
            "pose": dict(zip(self.trajectory.joint_names, np.round(self.pose, 6).tolist(), strict=True)),
            "rank": self.rank,
            "static_rank": self.static_rank,
            "condition_number": round(self.condition_number, 3),
            "parameters": list(self.expressions),
            "turns": [
                {
                    "axis": t.axis,
                    "lowest": round(t.lowest, 6),
                    "highest": round(t.highest, 6),
                    "acceleration": round(t.acceleration, 4),
                    "start": round(t.start, 4),
                    "end": round(t.end, 4),
                }
                for t in self.turns
            ],
            "dwells": [{"start": round(start, 4), "end": round(end, 4)} for start, end in self.dwells.tolist()],
            "skipped": dict(self.skipped),
            "warnings": list(self.warnings),
        }

    def summary(self) -> str:
        """Lines of text: duration, each axis' range and acceleration, ranks and condition number, warnings."""
        lines = [f"{self.duration:.1f} s, {len(self.dwells)} dwells"]
        for t in self.turns:
            low, high = np.rad2deg([t.lowest, t.highest])
            lines.append(f"about {t.axis} of the tool: {low:.0f} to {high:.0f}°, up to {t.acceleration:.1f} rad/s²")
        lines.append(
            f"rank {self.rank} of the load's 10 parameters, condition number {self.condition_number:.1f}; at rest "
            f"{self.static_rank} of 4"
        )
        lines += [f"about {axis} of the tool: no turn, {reason}" for axis, reason in self.skipped.items()]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


AXES = ("x", "y", "z")
SHORTLIST = 128
"""Poses with well spread wrist axes, and room around them, that are rated by the load's regressor."""
TRIES = 3
"""Number of those whose whole motion is planned; the best conditioned one is taken."""
SMALLEST = np.deg2rad(10.0)
SLOWER = 1.2
SLOWDOWNS = 12
"""How often a turn that would need too much torque is made slower, down to a ninth of the speed."""
WEAK = 100.0


class PayloadMotion(GuardedExperiment):
    """Plans turns of the tool about its x, y and z axis, one after the other.

    About each axis it first turns as far as the wrist allows, with rests at its ends, which give mass and mass moments.
    Then it turns to and fro just so far that velocity and acceleration limits are both met: rotation about one axis at
    a time gives the accelerations that moments of inertia need besides gravity (Atkeson, An and Hollerbach 1986). The
    last three revolute joints turn the tool while the others hold, in the pose that shows the ten parameters of the
    load best of those that limits and workspace allow.

    Args:
        robot: the arm.
        limits: what the joints may do; 80 % of the acceleration is used.
        workspace: where the links may be; None: anywhere.
        pose: (n,) where the turns start, rad or m; None: choose.
        reach: largest angle to either side, rad.
        repeats: how often the tool turns quickly to and fro about each axis.
        dwell: rest at the start and at the ends of the far turn, s.
        guards: `position_margin`, `speed_fraction`, `travel_speed_fraction`, `torque_fraction` of `GuardedExperiment`.

    Raises:
        TrajectoryError: a setting makes no sense, or the arm has no revolute joint.
    """

    def __init__(
        self,
        robot: RobotModel,
        limits: MotionLimits,
        workspace: Workspace | None = None,
        *,
        pose: ArrayLike | None = None,
        reach: float = np.pi / 2,
        repeats: int = 2,
        dwell: float = 1.0,
        **guards: float,
    ) -> None:
        super().__init__(robot, limits, workspace, **guards)
        self.pose = None if pose is None else np.asarray(pose, dtype=float)
        self.reach, self.repeats, self.dwell = reach, repeats, dwell
        right = self.pose is None or (self.pose.shape == (robot.n_joints,) and np.isfinite(self.pose).all())
        require(
            ("pose", pose, right, f"a finite position for each of {', '.join(robot.joint_names)}"),
            ("reach", reach, SMALLEST <= reach <= np.pi, "from 0.18 to π"),
            ("repeats", repeats, repeats >= 1, "at least 1"),
            ("dwell", dwell, dwell > 0, "positive"),
        )
        if not len(wrist_joints(robot)):
            raise TrajectoryError(f"'{robot.name}' has no revolute joint to turn a tool with")

    def plan(self) -> PayloadMotionPlan:
        """Choose the pose and plan the turns.

        Raises:
            TrajectoryError: there is no allowed pose in which the tool can be turned; says why.
        """
        if self.pose is not None:
            try:
                self.check_pose(self.pose)
            except TrajectoryError as error:
                raise TrajectoryError(f"the arm may not rest at the pose given: {error}") from error
        poses = self._rated_poses() if self.pose is None else self.pose[np.newaxis]
        plans: list[PayloadMotionPlan] = []
        reason: TrajectoryError | None = None
        for pose in poses[:TRIES]:
            try:
                plans.append(self._about(pose))
            except TrajectoryError as error:
                reason = reason or error
        if not plans:
            raise TrajectoryError(f"the tool cannot be turned in any of {len(poses[:TRIES])} poses: {reason}")
        return min(plans, key=lambda plan: (-plan.rank, plan.condition_number))

    def _rated_poses(self) -> NDArray:
        """Allowed poses, from the one in which turns show the load best."""
        poses = self.allowed_poses()
        joints = wrist_joints(self.robot)
        poses = poses[np.all((poses > self.room.lower) & (poses < self.room.upper), axis=1)]
        axes = self.robot.joint_axes(poses)[:, joints]
        spread = np.linalg.svd(axes, compute_uv=False)[:, -1]
        free = np.minimum(poses - self.room.lower, self.room.upper - poses)[:, joints].min(axis=1)
        best = np.argsort(-spread * np.minimum(free, self.reach), kind="stable")[:SHORTLIST]
        poses, axes = poses[best], axes[best]
        rows = []
        for wanted in np.moveaxis(tool_axes(self.robot, poses), 2, 0):
            rates = np.zeros_like(poses)
            rates[:, joints] = wrist_rates(axes, wanted)
            size = np.maximum(np.abs(rates), 1e-9)
            speed = np.min(self.room.velocity / size, axis=1, keepdims=True) * rates
            acceleration = np.min(self.room.acceleration / size, axis=1, keepdims=True) * rates
            rows += [self._load_rows(poses, 0 * rates, sign * acceleration) for sign in (-1, 1)]
            rows += [self._load_rows(poses, speed, 0 * rates)]
        each = np.concatenate(rows, axis=1)
        each = each @ whitening_axes(each)
        return poses[np.argsort([-log_determinant(row[np.newaxis]) for row in each], kind="stable")]

    def _about(self, pose: NDArray) -> PayloadMotionPlan:
        """The turns about the tool's axes at `pose` (n,)."""
        parts: list[Trajectory] = [move(self.limits.joint_names, pose, pose, self.dwell)]
        rests = [(0.0, self.dwell)]
        turns: list[ToolTurn] = []
        skipped: dict[str, str] = {}
        for axis, name in enumerate(AXES):
            rotation = ToolRotation.find(self.robot, self.room, self.workspace, pose=pose, axis=axis, reach=self.reach)
            if rotation.highest - rotation.lowest < SMALLEST:
                skipped[name] = "the last joints cannot turn the tool about it there"
                continue
            try:
                moves, acceleration = self._turn(rotation)
            except TrajectoryError as error:
                skipped[name] = str(error)
                continue
            start = time = sum(part.duration for part in parts)
            for part in moves:
                if not part.velocity.any():
                    rests.append((time, time + part.duration))
                time += part.duration
            turns.append(ToolTurn(name, rotation.lowest, rotation.highest, acceleration, start, time))
            parts += moves
        if not turns:
            raise TrajectoryError("; ".join(f"about {name}: {reason}" for name, reason in skipped.items()))
        trajectory = Trajectory.join(parts)
        self.check(trajectory)
        return self._plan(trajectory, pose, turns, np.array(rests), skipped)

    def _turn(self, rotation: ToolRotation) -> tuple[list[Trajectory], float]:
        """Moves and rests of the turns about an axis, and the largest angular acceleration: first far, then quick."""
        low, high = rotation.lowest, rotation.highest
        half = min(rotation.quick(self.room), high - low) / 2
        middle = np.clip(0.0, low + half, high - half)
        quick = [middle - half, middle + half]
        angles = np.round([0.0, high, low, *quick * self.repeats, quick[0], 0.0], 6)
        moves = []
        for start, goal in pairwise(angles[np.append(True, np.diff(angles) != 0.0)]):
            turn = self._allowed(rotation.move(start, goal, self.room))
            moves.append(turn)
            if goal in (angles[1], angles[2], 0.0):
                pose = turn.position[-1]
                moves.append(move(turn.joint_names, pose, pose, self.dwell))
        joints = wrist_joints(self.robot)
        axis = tool_axes(self.robot, rotation.pose[np.newaxis])[0, :, rotation.axis]
        largest = 0.0
        for turn in moves:
            axes = self.robot.joint_axes(turn.position)[:, joints]
            speed = np.einsum("mji,mj->mi", axes, turn.velocity[:, joints]) @ axis
            largest = max(largest, float(np.abs(np.gradient(speed, turn.time)).max()))
        return moves, largest

    def _allowed(self, turn: Trajectory) -> Trajectory:
        """The turn, slower if its torques are too large otherwise."""
        reason: TrajectoryError | None = None
        for _ in range(SLOWDOWNS):
            try:
                self.check(turn)
            except TrajectoryError as error:
                reason, turn = error, paced(turn, SLOWER)
                continue
            return turn
        raise TrajectoryError(str(reason))

    def _load_rows(self, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
        """Rows (N, n, 10) of the parameters of what is fixed to the last link."""
        return self.robot.torque_regressor(q, qd, qdd)[..., self.robot.tip_columns]

    def _plan(
        self, trajectory: Trajectory, pose: NDArray, turns: list[ToolTurn], rests: NDArray, skipped: dict[str, str]
    ) -> PayloadMotionPlan:
        rows = self._load_rows(*trajectory.at(check_times(trajectory)[:: len(trajectory.time) // 400 + 1]))
        names = [f"{name}{self.robot.chain.tip_link + 1}" for name in LINK_PARAMETERS]
        base = BaseParameters(rows, names)
        still, _, _ = trajectory.at(rests.mean(axis=1))
        static = self._load_rows(still, 0 * still, 0 * still)[..., :STATIC]
        condition = condition_number(rows)
        warnings = self.torque_warnings()
        if base.rank < PARAMETERS_PER_LINK:
            warnings.append(
                f"the motion excites {base.rank} of 10 parameters of the load: {', '.join(base.expressions)}"
            )
        elif condition > WEAK:
            warnings.append(f"condition number above {WEAK:g}: raise the acceleration limits, or reach")
        return PayloadMotionPlan(
            trajectory,
            pose,
            tuple(turns),
            rests,
            base.rank,
            rank(static @ whitening_axes(static)),
            condition,
            base.expressions,
            skipped,
            tuple(warnings),
        )
