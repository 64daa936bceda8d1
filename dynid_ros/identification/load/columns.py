"""Columns of the equations of a load: its ten parameters, what changes in the joints, and those of the arm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identified.links import KnownArm
from dynid_ros.model.inertia import LOAD_NAMES, PARAMETERS_PER_LINK, STATIC, transformed
from dynid_ros.model.regressor import RegressorRows

CHANGES = ("offset", "coulomb", "viscous")
AT_REST = 2
"""Of these, the first that act at rest."""


class TorqueLoadColumns:
    """Columns of the difference between the torques of an arm with a load and those of the arm alone.

    Friction is not the same with a load, nor on another day: each joint has an offset, Coulomb and viscous friction of
    its own beside those of the arm's model.

    Args:
        arm: the arm alone.
        static: of rests, in which inertia and viscous friction do not show.

    Attributes:
        size: number of columns: load, changes in the joints, arm.
        own: (k,) load and changes: what is fitted.
        of_arm: (a,) columns in the order of the arm's covariance; empty if there is none.
        of_joint: for each joint the columns that its torque can depend on.
        names: (k,) of `own`.

    """

    def __init__(self, arm: KnownArm, *, static: bool = False):
        robot = arm.model.robot
        n = robot.n_joints
        self._load = np.arange(STATIC if static else PARAMETERS_PER_LINK)
        self._changes = CHANGES[:AT_REST] if static else CHANGES
        last = PARAMETERS_PER_LINK * (n - 1)
        self._links = RegressorRows(robot.chain, robot.gravity, last + np.arange(PARAMETERS_PER_LINK))
        self._to_link = transformed(np.eye(PARAMETERS_PER_LINK), robot.tip_offset).T[:, self._load]
        self._joints = arm.model.joints
        self._arm = None if arm.covariance is None else arm.columns
        changes = len(self._load) + np.arange(len(self._changes) * n).reshape(n, -1)
        self.own = np.arange(len(self._load) + changes.size)
        self.names = (
            *(LOAD_NAMES[i] for i in self._load),
            *(f"{term} {joint}" for joint in robot.joint_names for term in self._changes),
        )
        beyond = self.own.size
        self.of_arm = np.array([], dtype=int) if self._arm is None else beyond + arm.decided_columns
        self.size = beyond + (0 if self._arm is None else self._arm.size)
        of_arm = [self.of_arm] * n if self._arm is None else [beyond + columns for columns in self._arm.of_joint]
        self.of_joint = [np.concatenate([self._load, changes[j], of_arm[j]]).astype(int) for j in range(n)]

    def rows(self, q: NDArray, qd: NDArray, qdd: NDArray) -> list[NDArray]:
        """For each joint the matrix (N, k_j) from its columns to its torque in motion."""
        directions = [joint.direction(qd[:, j]) for j, joint in enumerate(self._joints)]
        return self._rows((q, qd, qdd), np.stack([np.ones_like(qd), np.transpose(directions), qd]))

    def rest_rows(self, q: NDArray, direction: NDArray) -> list[NDArray]:
        """The same at rest, of friction that has the direction (N, n) of the motion before."""
        still = np.zeros_like(q)
        return self._rows((q, still, still), np.stack([np.ones_like(q), direction]))

    def _rows(self, motion: tuple[NDArray, NDArray, NDArray], changes: NDArray) -> list[NDArray]:
        n_samples, n = motion[0].shape
        matrix = np.zeros((n, PARAMETERS_PER_LINK, n_samples))
        self._links.fill(matrix, *motion)
        arm = [np.empty((n_samples, 0))] * n if self._arm is None else self._arm.rows(*motion)
        return [np.column_stack([matrix[j].T @ self._to_link, changes[:, :, j].T, arm[j]]) for j in range(n)]
