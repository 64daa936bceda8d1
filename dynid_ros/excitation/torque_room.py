"""A workspace in which the joints can also bear their load."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.model import RobotModel
from dynid_ros.trajectories.checks import check_torque, unknown_torques
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.trajectory import Trajectory
from dynid_ros.trajectories.workspace import Workspace


class TorqueRoom:
    """Keeps the links in the workspace, and the joints' torques by the robot's own parameters within their limits.

    Args:
        workspace: where the links may be.
        limits: of torque.
        robot: the arm; torques are not looked at where its description has no mass for them.
        margin: part of the torque limits that is left to friction and to what the description gets wrong.

    Attributes:
        unknown: joints with a torque limit whose torque is not known.

    """

    def __init__(self, workspace: Workspace, limits: MotionLimits, robot: RobotModel, margin: float) -> None:
        self._workspace, self._limits, self._robot, self._margin = workspace, limits, robot, margin
        self.unknown = unknown_torques(limits, robot)

    def allowed(self, position: ArrayLike) -> NDArray:
        """(N,) bool: whether the arm may rest at positions (N, n)."""
        allowed = self._workspace.allowed(position)
        if not self.unknown:
            bound = (1 - self._margin) * self._limits.torque
            allowed &= np.all(np.abs(self._robot.gravity_torque(position)) <= bound, axis=1)
        return allowed

    def check(self, trajectory: Trajectory) -> None:
        """The motion keeps to workspace and torque limits.

        Raises:
            TrajectoryError: says where it does not.

        """
        self._workspace.check(trajectory)
        if not self.unknown:
            check_torque(trajectory, self._limits, self._robot, self._margin)
