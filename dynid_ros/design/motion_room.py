"""How far a motion exceeds what limits it, as one array with a gradient."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.information.torque_information import MotionWithJerk
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.workspace import Workspace

DISTANCE = 0.1
"""A distance this much too short counts as much as a limit passed by its whole, m."""


class MotionRoom:
    """Excess over limits, zero or less where all is well.

    Of joint limits it is a part of the limit, of distances a part of 0.1 m.

    Args:
        limits: of position, velocity, acceleration, jerk and torque.
        workspace: where the links may be.
        margin: part of each joint limit that is kept free.
        clearance: distance kept beside that of the workspace, one value or one for each of its checks, m.

    Attributes:
        names: (C,) what each column of the excess is about.

    """

    def __init__(
        self, limits: MotionLimits, workspace: Workspace, *, margin: float = 0.0, clearance: ArrayLike = 0.0
    ) -> None:
        self._workspace, self._clearance = workspace, np.asarray(clearance, dtype=float)
        self._middle = (limits.upper + limits.lower) / 2
        bounds = [(limits.upper - limits.lower) / 2, limits.velocity, limits.acceleration, limits.jerk, limits.torque]
        # Of unlimited joints nothing is exceeded.
        self._scales = 1.0 / np.array(bounds)
        self._part = 1.0 - margin
        kinds = ("position", "velocity", "acceleration", "jerk", "torque")
        self.names = (*(f"{kind} of joint '{name}'" for kind in kinds for name in limits.joint_names), *workspace.names)

    def excess(self, motion: MotionWithJerk, torque: NDArray) -> NDArray:
        """(N, C) of a motion and its nominal torques (N, n); remembered for `gradient`."""
        self._used = np.stack([motion.position - self._middle, *motion[1:], torque]) * self._scales[:, None]
        self._distances = self._workspace.distances(motion.position)
        return np.hstack([*(np.abs(self._used) - self._part), (self._clearance - self._distances.room) / DISTANCE])

    def gradient(self, weights: NDArray) -> tuple[MotionWithJerk, NDArray]:
        """Gradients of sum(weights * excess) by the motion and by the torques (N, n); weights (N, C)."""
        kinds, n_samples, n = self._used.shape
        joints = weights[:, : kinds * n].reshape(n_samples, kinds, n).transpose(1, 0, 2)
        by_position, *by_others, by_torque = joints * np.sign(self._used) * self._scales[:, None]
        by_position = by_position + self._distances.gradient(-weights[:, kinds * n :] / DISTANCE)
        return MotionWithJerk(by_position, *by_others), by_torque
