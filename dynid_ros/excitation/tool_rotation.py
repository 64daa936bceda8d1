"""Rotation of the tool about a tool axis by the last joints alone (Atkeson, An and Hollerbach 1986)."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import OdeSolution, solve_ivp

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import Experiment
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.trajectory import PEAK_ACCELERATION, PEAK_VELOCITY, Trajectory, minimum_jerk
from dynid_ros.trajectories.workspace import Workspace

MAX_WRIST_JOINTS = 3
MIN_SINGULAR_VALUE_RATIO = 0.25
"""Smallest singular value of the joints' axes, relative to the largest; below, joints race for little rotation."""
AXIS_TOLERANCE = 1e-6
"""Largest error of the tool's rotation axis, a unit vector."""
SAMPLES_PER_MOVE = 40
N_TESTED_ANGLES = 65
"""Angles of a rotation that are tested against the workspace."""
USED_LIMIT_FRACTION = 0.99
"""Fraction of the limits that is used, because values between the samples are not checked one by one."""
MIN_RATE = 1e-9
"""Rate below which a joint does not limit a turn, rad/s per rad/s of the tool."""


def wrist_joints(robot: RobotModel) -> NDArray:
    """Return the indices of the last revolute joints before the tip, at most three."""
    return np.flatnonzero(~robot.chain.prismatic & robot.chain.moved[:, robot.chain.tip_link])[-MAX_WRIST_JOINTS:]


def tool_axes(robot: RobotModel, poses: NDArray) -> NDArray:
    """Return the axes (P, 3, 3) of the tip's frame in the base frame, as columns, at poses (P, n)."""
    return robot.forward_kinematics(poses)[:, robot.chain.tip_link, :3, :3] @ robot.tip_offset[:3, :3]


def wrist_rates(axes: NDArray, wanted: NDArray) -> NDArray:
    """Solve for the joint rates (..., w) that give the tool an angular velocity, in the least-squares sense.

    Args:
        axes: (..., w, 3) axes of the joints.
        wanted: (..., 3) angular velocity.
    """
    inverse = np.linalg.pinv(np.swapaxes(axes, -1, -2), rcond=MIN_SINGULAR_VALUE_RATIO)
    return np.einsum("...ij,...j->...i", inverse, wanted)


@dataclass(frozen=True, eq=False)
class ToolRotation:
    """Rotations of the tool from a pose, about an axis that is fixed in the base frame.

    Attributes:
        robot: the arm.
        pose: (n,) pose at angle 0.
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
        """Integrate the rotation as far as limits and workspace of an experiment allow.

        Args:
            experiment: arm, limits and workspace.
            pose: (n,) pose at angle 0.
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
        return ToolRotation(robot, pose, axis, *ends, *solutions)._restrict_to(experiment.workspace)

    def at(self, angle: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Return pose, and its first and second derivative by the angle, each (M, n), at angles (M,)."""
        joints = wrist_joints(self.robot)
        q = np.tile(self.pose, (len(angle), 1))
        for side, solution in ((angle < 0, self._below), (angle >= 0, self._above)):
            if side.any():
                q[np.ix_(side, joints)] = solution(angle[side]).T
        axes = self.robot.joint_axes(q)[:, joints]
        direction = tool_axes(self.robot, self.pose[np.newaxis])[0, :, self.axis]
        rates = wrist_rates(axes, np.broadcast_to(direction, (len(q), 3)))
        # Each axis is fixed to the link before it, which turns with all joints up to there.
        link_rotation = np.cumsum(rates[..., np.newaxis] * axes, axis=1) - rates[..., np.newaxis] * axes
        axis_change = np.cross(link_rotation, axes)
        first = np.zeros_like(q)
        second = np.zeros_like(q)
        first[:, joints] = rates
        second[:, joints] = wrist_rates(axes, -np.einsum("mji,mj->mi", axis_change, rates))
        return q, first, second

    def quick_angle(self, limits: MotionLimits) -> float:
        """Return the angle of a turn that just reaches velocity and acceleration limits, rad."""
        rates = np.maximum(np.abs(self.at(np.zeros(1))[1][0]), MIN_RATE)
        speed = np.min(limits.velocity / rates)
        acceleration = np.min(limits.acceleration / rates)
        return float(PEAK_ACCELERATION / PEAK_VELOCITY**2 * speed**2 / acceleration)

    def move(self, start: float, goal: float, limits: MotionLimits) -> Trajectory:
        """Plan a minimum-jerk turn between two angles, as fast as velocity, acceleration and jerk limits allow.

        Args:
            start: first angle, rad.
            goal: last angle, rad.
            limits: of the joints.
        """
        if start == goal:
            raise TrajectoryError(f"a turn from {start:g} to {goal:g} rad moves nothing")
        time: NDArray = np.linspace(0.0, 1.0, SAMPLES_PER_MOVE + 1)
        (angle,), (speed,), (acceleration,) = (v.T[:, :, None] for v in minimum_jerk([start], [goal], 1.0, time))
        q, first, second = self.at(angle[:, 0])
        in_one_second = Trajectory(limits.joint_names, time, q, first * speed, second * speed**2 + first * acceleration)
        return time_scaled_to(in_one_second, limits)

    def _restrict_to(self, workspace: Workspace) -> "ToolRotation":
        """Return the part about angle 0 that the workspace allows."""
        ends = []
        for end in (self.lowest, self.highest):
            angles = np.linspace(0.0, end, N_TESTED_ANGLES)
            blocked = np.flatnonzero(~workspace.allowed(self.at(angles)[0]))
            ends.append(float(angles[max(blocked[0] - 1, 0)]) if len(blocked) else end)
        return replace(self, lowest=ends[0], highest=ends[1])


def time_scaled_to(motion: Trajectory, limits: MotionLimits) -> Trajectory:
    """Return the same path, as fast as the limits of velocity, acceleration and jerk allow."""
    _, velocity, acceleration = motion.at(np.linspace(0.0, motion.duration, 8 * motion.n_samples))
    _, jerk = motion.jerk_peaks()
    factor = max(
        float(np.max(np.abs(velocity) / limits.velocity)),
        float(np.sqrt(np.max(np.abs(acceleration) / limits.acceleration))),
        float(np.cbrt(np.max(np.abs(jerk) / limits.jerk))),
    )
    return stretch_time(motion, factor / USED_LIMIT_FRACTION)


def stretch_time(motion: Trajectory, factor: float) -> Trajectory:
    """Return the same path, with its duration times `factor`."""
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
