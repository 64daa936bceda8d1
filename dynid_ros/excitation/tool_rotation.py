"""The tool turning about one of its own axes, by the last joints alone (Atkeson, An and Hollerbach 1986)."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import OdeSolution, solve_ivp

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.trajectory import PEAK_ACCELERATION, PEAK_VELOCITY, Trajectory, minimum_jerk
from dynid_ros.trajectories.workspace import Workspace

WRIST = 3
"""Joints that turn the tool, at most."""
SPREAD = 0.25
"""Least singular value of the joints' axes, of the largest: where it is lower, they would race for little rotation."""
ERROR = 1e-6
"""What may be missing of a rotation's axis."""
POINTS = 40
"""Samples of a move."""
ANGLES = 65
"""Angles looked at in the workspace."""
ROOM = 0.99
"""Part of the limits used: what lies between the samples is not looked at one by one."""


def wrist_joints(robot: RobotModel) -> NDArray:
    """Indices of the last revolute joints before the tip, three or as many as there are."""
    return np.flatnonzero(~robot.chain.prismatic & robot.chain.moved[:, robot.chain.tip_link])[-WRIST:]


def tool_axes(robot: RobotModel, poses: NDArray) -> NDArray:
    """Axes (P, 3, 3) of the tip's frame in the base frame, as columns."""
    return robot.forward_kinematics(poses)[:, robot.chain.tip_link, :3, :3] @ robot.tip_offset[:3, :3]


def wrist_rates(axes: NDArray, wanted: NDArray) -> NDArray:
    """Rates (..., w) of joints with axes (..., w, 3) that turn the tool at `wanted` (..., 3), as far as they can."""
    return np.einsum("...ij,...j->...i", np.linalg.pinv(np.swapaxes(axes, -1, -2), rcond=SPREAD), wanted)


@dataclass(frozen=True, eq=False)
class ToolRotation:
    """Rotations of the tool from a pose, about an axis that stays where it is.

    Attributes:
        robot: the arm.
        pose: (n,) pose at angle 0.
        axis: 0, 1, 2: x, y or z of the tip's frame.
        lowest: angle that it can turn to, rad, at most 0.
        highest: angle that it can turn to, rad, at least 0.
    """

    robot: RobotModel
    pose: NDArray
    axis: int
    lowest: float
    highest: float
    _below: OdeSolution
    _above: OdeSolution

    @staticmethod
    def find(
        robot: RobotModel, limits: MotionLimits, workspace: Workspace, *, pose: NDArray, axis: int, reach: float
    ) -> "ToolRotation":
        """The rotation, as far as limits and workspace allow, up to `reach` (rad) to either side."""
        joints = wrist_joints(robot)
        direction = tool_axes(robot, pose[np.newaxis])[0, :, axis]

        def rates(_: float, wrist: NDArray) -> NDArray:
            return wrist_rates(_axes(robot, pose, joints, wrist), direction)

        def room(_: float, wrist: NDArray) -> float:
            return float(np.min([wrist - limits.lower[joints], limits.upper[joints] - wrist]))

        def exact(_: float, wrist: NDArray) -> float:
            axes = _axes(robot, pose, joints, wrist)
            return ERROR - float(np.linalg.norm(axes.T @ wrist_rates(axes, direction) - direction))

        room.terminal = exact.terminal = True  # type: ignore[attr-defined]
        ends, solutions = [], []
        for end in (-reach, reach):
            found = solve_ivp(
                rates,
                (0.0, end),
                pose[joints],
                method="DOP853",
                rtol=1e-9,
                atol=1e-10,
                dense_output=True,
                events=(room, exact),
            )
            possible = room(0.0, pose[joints]) > 0 and exact(0.0, pose[joints]) > 0
            ends.append(ROOM * float(found.t[-1]) if possible else 0.0)
            solutions.append(found.sol)
        rotation = ToolRotation(robot, pose, axis, *ends, *solutions)
        return rotation._within(workspace)

    def at(self, angle: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Pose, and its first and second derivative by the angle, each (M, n), at angles (M,)."""
        joints = wrist_joints(self.robot)
        q = np.tile(self.pose, (len(angle), 1))
        for side, solution in ((angle < 0, self._below), (angle >= 0, self._above)):
            if side.any():
                q[np.ix_(side, joints)] = solution(angle[side]).T
        axes = self.robot.joint_axes(q)[:, joints]
        direction = tool_axes(self.robot, self.pose[np.newaxis])[0, :, self.axis]
        rates = wrist_rates(axes, np.broadcast_to(direction, (len(q), 3)))
        # The axes are fixed to the links before them, which turn with the joints up to there.
        turning = np.cumsum(rates[..., np.newaxis] * axes, axis=1) - rates[..., np.newaxis] * axes
        change = np.cross(turning, axes)
        bending = wrist_rates(axes, -np.einsum("mji,mj->mi", change, rates))
        first, second = np.zeros_like(q), np.zeros_like(q)
        first[:, joints], second[:, joints] = rates, bending
        return q, first, second

    def quick(self, limits: MotionLimits) -> float:
        """Angle of a turn that just reaches velocity and acceleration limits, rad; wider ones accelerate less."""
        rates = np.maximum(np.abs(self.at(np.zeros(1))[1][0]), 1e-9)
        speed, acceleration = np.min(limits.velocity / rates), np.min(limits.acceleration / rates)
        return float(PEAK_ACCELERATION / PEAK_VELOCITY**2 * speed**2 / acceleration)

    def move(self, start: float, goal: float, limits: MotionLimits) -> Trajectory:
        """Minimum-jerk turn from angle to angle (rad), as fast as velocity, acceleration and jerk limits allow.

        Raises:
            TrajectoryError: the angles are the same.
        """
        if start == goal:
            raise TrajectoryError(f"a turn from {start:g} to {goal:g} rad moves nothing")
        time: NDArray = np.linspace(0.0, 1.0, POINTS + 1)
        (angle,), (speed,), (acceleration,) = (v.T[:, :, None] for v in minimum_jerk([start], [goal], 1.0, time))
        q, first, second = self.at(angle[:, 0])
        unhurried = Trajectory(limits.joint_names, time, q, first * speed, second * speed**2 + first * acceleration)
        return fastest(unhurried, limits)

    def _within(self, workspace: Workspace) -> "ToolRotation":
        """The part about angle 0 that the workspace allows."""
        ends = []
        for end in (self.lowest, self.highest):
            angles = np.linspace(0.0, end, ANGLES)
            blocked = np.flatnonzero(~workspace.allowed(self.at(angles)[0]))
            ends.append(float(angles[max(blocked[0] - 1, 0)]) if len(blocked) else end)
        return replace(self, lowest=ends[0], highest=ends[1])


def fastest(motion: Trajectory, limits: MotionLimits) -> Trajectory:
    """The same path at the pace at which a limit of velocity, acceleration or jerk is just met."""
    _, velocity, acceleration = motion.at(np.linspace(0.0, motion.duration, 8 * motion.n_samples))
    _, jerk = motion.jerk_peaks()
    slower = max(
        float(np.max(np.abs(velocity) / limits.velocity)),
        float(np.sqrt(np.max(np.abs(acceleration) / limits.acceleration))),
        float(np.cbrt(np.max(np.abs(jerk) / limits.jerk))),
    )
    return paced(motion, slower / ROOM)


def paced(motion: Trajectory, slower: float) -> Trajectory:
    """The same path, taking so many times as long."""
    return Trajectory(
        motion.joint_names,
        slower * motion.time,
        motion.position,
        motion.velocity / slower,
        motion.acceleration / slower**2,
    )


def _axes(robot: RobotModel, pose: NDArray, joints: NDArray, wrist: NDArray) -> NDArray:
    """Axes (w, 3) of the wrist's joints at angles (w,)."""
    q = pose.copy()
    q[joints] = wrist
    return robot.joint_axes(q[np.newaxis])[0, joints]
