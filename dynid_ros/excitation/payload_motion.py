"""Motion that identifies a payload: turns about each axis of the tool, one at a time, with rests between them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import OdeSolution, solve_ivp

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import Dwell, Experiment, Plan, require
from dynid_ros.information.criteria import condition_number, log_determinant, rank, whitening_axes
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import LINK_PARAMETERS, BaseParameters
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC
from dynid_ros.trajectories.limits import MotionLimits, check_times
from dynid_ros.trajectories.trajectory import PEAK_ACCELERATION, PEAK_VELOCITY, Trajectory, minimum_jerk, move

MAX_WRIST_JOINTS = 3
MIN_SINGULAR_VALUE_RATIO = 0.25
"""Smallest singular value of the joint axes, relative to the largest; smaller ones need fast joints for slow turns."""
AXIS_TOLERANCE = 1e-6
"""Largest error of the tool's angular velocity at 1 rad/s, rad/s."""
SAMPLES_PER_MOVE = 40
N_TESTED_ANGLES = 65
"""Number of angles of a rotation that are tested against the workspace."""
USED_LIMIT_FRACTION = 0.99
"""Fraction of the limits that is used, because values between the samples are not checked one by one."""
MIN_RATE = 1e-9
"""Rate below which a joint does not limit a turn, rad/s per rad/s of the tool."""
TOOL_AXES = ("x", "y", "z")
MAX_RATED_POSES = 128
"""Largest number of poses that are rated by the regressor of the load: those with independent wrist axes and much
free range."""
MAX_PLANNED_POSES = 3
"""Largest number of poses at which the whole motion is planned; the best conditioned motion is used."""
MIN_TURN_RAD = np.deg2rad(10.0)
"""Smallest range of a turn about an axis that is planned."""
SLOWDOWN_FACTOR = 1.2
"""Factor on the duration of a turn with too much torque."""
MAX_SLOWDOWNS = 12
"""Largest number of times that a turn is slowed down, to a ninth of its speed."""
MAX_CONDITION_NUMBER = 100.0
"""Condition number above which the plan warns."""


def wrist_joints(robot: RobotModel) -> NDArray:
    """Return the indices of the last revolute joints before the tip, at most three."""
    return np.flatnonzero(~robot.chain.prismatic & robot.chain.moved[:, robot.chain.tip_link])[-MAX_WRIST_JOINTS:]


def tool_axes(robot: RobotModel, poses: NDArray) -> NDArray:
    """Return the axes (P, 3, 3) of the tip's frame in the base frame, as columns, at poses (P, n)."""
    return robot.forward_kinematics(poses)[:, robot.chain.tip_link, :3, :3] @ robot.tip_offset[:3, :3]


def wrist_rates(axes: NDArray, wanted: NDArray) -> NDArray:
    """Return the joint rates (..., w) that give the tool an angular velocity, in the least-squares sense, rad/s.

    Args:
        axes: (..., w, 3) axes of the joints.
        wanted: (..., 3) angular velocity, rad/s.
    """
    inverse = np.linalg.pinv(np.swapaxes(axes, -1, -2), rcond=MIN_SINGULAR_VALUE_RATIO)
    return np.einsum("...ij,...j->...i", inverse, wanted)


@dataclass(frozen=True, eq=False)
class ToolRotation:
    """Rotations of the tool from a pose, about an axis that is fixed in the base frame.

    Attributes:
        robot: the arm.
        pose: (n,) pose at angle 0, rad or m.
        axis: 0, 1, 2: x, y or z of the tip's frame.
        lowest: smallest possible angle, rad, at most 0.
        highest: largest possible angle, rad, at least 0.
    """

    robot: RobotModel
    pose: NDArray
    axis: int
    lowest: float
    highest: float
    _below: OdeSolution
    _above: OdeSolution

    @staticmethod
    def within(experiment: Experiment, pose: NDArray, axis: int, reach: float) -> "ToolRotation":
        """Return the rotation as far as limits and workspace of an experiment allow, by integration over the angle.

        Args:
            experiment: arm, limits and workspace.
            pose: (n,) pose at angle 0, rad or m.
            axis: 0, 1, 2: x, y or z of the tip's frame.
            reach: largest angle to either side, rad.
        """
        robot = experiment.robot
        limits = experiment.design_limits
        joints = wrist_joints(robot)
        direction = tool_axes(robot, pose[np.newaxis])[0, :, axis]

        def rates(_: float, wrist: NDArray) -> NDArray:
            return wrist_rates(_joint_axes(robot, pose, joints, wrist), direction)

        def distance_to_limits(_: float, wrist: NDArray) -> float:
            return float(np.min([wrist - limits.lower[joints], limits.upper[joints] - wrist]))

        def axis_margin(_: float, wrist: NDArray) -> float:
            axes = _joint_axes(robot, pose, joints, wrist)
            return AXIS_TOLERANCE - float(np.linalg.norm(axes.T @ wrist_rates(axes, direction) - direction))

        distance_to_limits.terminal = axis_margin.terminal = True  # type: ignore[attr-defined]
        is_possible = distance_to_limits(0.0, pose[joints]) > 0 and axis_margin(0.0, pose[joints]) > 0
        ends = []
        solutions = []
        for end in (-reach, reach):
            integration = solve_ivp(
                rates,
                (0.0, end),
                pose[joints],
                method="DOP853",
                rtol=1e-9,
                atol=1e-10,
                dense_output=True,
                events=(distance_to_limits, axis_margin),
            )
            ends.append(USED_LIMIT_FRACTION * float(integration.t[-1]) if is_possible else 0.0)
            solutions.append(integration.sol)
        rotation = ToolRotation(robot, pose, axis, *ends, *solutions)
        allowed = []
        for end in ends:
            angles = np.linspace(0.0, end, N_TESTED_ANGLES)
            blocked = np.flatnonzero(~experiment.workspace.allowed(rotation.at(angles)[0]))
            allowed.append(float(angles[max(blocked[0] - 1, 0)]) if len(blocked) else end)
        return replace(rotation, lowest=allowed[0], highest=allowed[1])

    def at(self, angle: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Return the pose and its first and second derivative by the angle, each (M, n), at angles (M,), rad."""
        joints = wrist_joints(self.robot)
        q = np.tile(self.pose, (len(angle), 1))
        for side, solution in ((angle < 0, self._below), (angle >= 0, self._above)):
            if side.any():
                q[np.ix_(side, joints)] = solution(angle[side]).T
        axes = self.robot.joint_axes(q)[:, joints]
        direction = tool_axes(self.robot, self.pose[np.newaxis])[0, :, self.axis]
        rates = wrist_rates(axes, np.broadcast_to(direction, (len(q), 3)))
        # Each axis is fixed to the previous link, which turns with all joints before this one.
        link_rotation = np.cumsum(rates[..., np.newaxis] * axes, axis=1) - rates[..., np.newaxis] * axes
        axis_change = np.cross(link_rotation, axes)
        first = np.zeros_like(q)
        second = np.zeros_like(q)
        first[:, joints] = rates
        second[:, joints] = wrist_rates(axes, -np.einsum("mji,mj->mi", axis_change, rates))
        return q, first, second

    def quick_angle(self, limits: MotionLimits) -> float:
        """Return the angle of a turn that just reaches both velocity limit v and acceleration limit a, rad.

        A minimum-jerk turn by an angle within T has the peaks v = p_v angle / T and a = p_a angle / T², so the angle is
        p_a / p_v² · v² / a.
        """
        rates = np.maximum(np.abs(self.at(np.zeros(1))[1][0]), MIN_RATE)
        speed = np.min(limits.velocity / rates)
        acceleration = np.min(limits.acceleration / rates)
        return float(PEAK_ACCELERATION / PEAK_VELOCITY**2 * speed**2 / acceleration)

    def move(self, start: float, goal: float, limits: MotionLimits) -> Trajectory:
        """Plan a minimum-jerk turn between two angles, as fast as velocity, acceleration and jerk limits allow.

        Args:
            start: first angle, rad.
            goal: last angle, rad.
            limits: limits of the joints.
        """
        if start == goal:
            raise TrajectoryError(f"a turn from {start:g} to {goal:g} rad moves nothing")
        time: NDArray = np.linspace(0.0, 1.0, SAMPLES_PER_MOVE + 1)
        (angle,), (speed,), (acceleration,) = (v.T[:, :, None] for v in minimum_jerk([start], [goal], 1.0, time))
        # Chain rule with the derivatives q' and q'' by the angle θ: q̇ = q' θ̇ and q̈ = q'' θ̇² + q' θ̈.
        q, first, second = self.at(angle[:, 0])
        in_one_second = Trajectory(limits.joint_names, time, q, first * speed, second * speed**2 + first * acceleration)
        return time_scaled_to(in_one_second, limits)


def time_scaled_to(motion: Trajectory, limits: MotionLimits) -> Trajectory:
    """Return a motion on the same path, as fast as the limits of velocity, acceleration and jerk allow."""
    _, velocity, acceleration = motion.at(np.linspace(0.0, motion.duration, 8 * motion.n_samples))
    _, jerk = motion.jerk_peaks()
    factor = max(
        float(np.max(np.abs(velocity) / limits.velocity)),
        float(np.sqrt(np.max(np.abs(acceleration) / limits.acceleration))),
        float(np.cbrt(np.max(np.abs(jerk) / limits.jerk))),
    )
    return stretch_time(motion, factor / USED_LIMIT_FRACTION)


def stretch_time(motion: Trajectory, factor: float) -> Trajectory:
    """Return a motion on the same path, with its duration multiplied by `factor`."""
    return Trajectory(
        motion.joint_names,
        factor * motion.time,
        motion.position,
        motion.velocity / factor,
        motion.acceleration / factor**2,
    )


def _joint_axes(robot: RobotModel, pose: NDArray, joints: NDArray, wrist: NDArray) -> NDArray:
    """Return the axes (w, 3) of the wrist's joints at their positions `wrist` (w,)."""
    q = pose.copy()
    q[joints] = wrist
    return robot.joint_axes(q[np.newaxis])[0, joints]


@dataclass(frozen=True, eq=False, kw_only=True)
class PayloadMotion(Experiment):
    """Plans turns of the tool about its x, y and z axis, one after the other.

    About each axis the tool first turns as far as the wrist allows. The rests at both ends determine mass and mass
    moments. Then it turns back and forth by the angle at which velocity and acceleration limits are both reached.
    Rotation about one axis at a time excites the moments of inertia, which gravity alone does not (Atkeson, An and
    Hollerbach 1986). The last three revolute joints turn the tool while the other joints hold. Among the poses that
    limits and workspace allow, the planner chooses the one that determines the ten parameters of the load best.

    Attributes:
        pose: (n,) pose at which the turns start, rad or m; None: chosen by the planner.
        reach: largest angle to either side, rad.
        repeats: number of quick turns back and forth about each axis.
        dwell: duration of the rests at the start and at the ends of the wide turn, s.
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
            TrajectoryError: the tool cannot be turned in any allowed pose; the message gives the reason.
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
        """Return allowed poses (P, n), those first in which turns contain most information on the load."""
        limits = self.design_limits
        joints = wrist_joints(self.robot)
        poses = self.allowed_poses()
        poses = poses[np.all((poses > limits.lower) & (poses < limits.upper), axis=1)]
        axes = self.robot.joint_axes(poses)[:, joints]
        # Preselection by the independence of the wrist axes and by the free range.
        spread = np.linalg.svd(axes, compute_uv=False)[:, -1]
        free = np.minimum(poses - limits.lower, limits.upper - poses)[:, joints].min(axis=1)
        best = np.argsort(-spread * np.minimum(free, self.reach), kind="stable")[:MAX_RATED_POSES]
        poses = poses[best]
        axes = axes[best]
        # Regressor of the load: peak acceleration in both senses, and peak speed, about each axis of the tool.
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
        """Return moves and rests of the turns about an axis, first over the whole range, then fast back and forth."""
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
        """Return the turn, slowed down until limits and torque limits allow it."""
        reason = ""
        for _ in range(MAX_SLOWDOWNS):
            try:
                self.check(turn)
                return turn
            except TrajectoryError as error:
                reason = str(error)
                turn = stretch_time(turn, SLOWDOWN_FACTOR)
        raise TrajectoryError(reason)

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
