"""Condition numbers of base regressors with columns that are the same for every motion.

The condition number depends on the choice of the independent columns and on their units; both must be the same wherever
two motions are compared. The columns here are those of the links, without friction, that FIGAROH's QR decomposition
selects on its random motion of seed 0, and that `benchmarks/excitation_peer.py` designs with.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.figaroh import ROBOTS
from dynid_ros.estimation.least_squares import triangular_factor
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import parameter_names, random_motion, regressor_blocks

PINNED: dict[str, str] = {
    "ur10": """
        mcx2 mcz2 Ixy2 Ixz2 Iyy2 Iyz2 Izz2
        mcx3 mcz3 Ixx3 Ixy3 Ixz3 Iyy3 Iyz3 Izz3
        mcx4 Ixy4 Ixz4 Iyz4 Izz4
        mcx5 mcy5 mcz5 Ixx5 Ixy5 Ixz5 Iyy5 Iyz5
        mcx6 mcz6 Ixx6 Ixy6 Ixz6 Iyy6 Iyz6 Izz6""",
    "panda": """
        Izz1
        mcx2 mcy2 Ixx2 Ixy2 Ixz2 Iyz2
        mcx3 mcy3 Ixx3 Ixy3 Ixz3 Iyy3 Iyz3
        mcx4 mcy4 Ixx4 Ixy4 Ixz4 Iyy4 Iyz4
        mcx5 mcy5 Ixx5 Ixy5 Ixz5 Iyy5 Iyz5 Izz5
        mcx6 mcy6 Ixx6 Ixy6 Ixz6 Iyz6
        mcx7 mcy7 Ixx7 Ixy7 Ixz7 Iyy7 Iyz7 Izz7""",
}
"""Base columns by robot of `benchmarks.figaroh`; joints are counted from 1. Joint frames of Pinocchio are link frames
of a URDF, so the columns correspond one to one."""

MIN_RELATIVE_SINGULAR_VALUE = 1e-8
"""Singular values of a base regressor exceed this share of the largest one; those of dependent columns do not."""


class Condition(NamedTuple):
    """Condition numbers of a base regressor with unscaled columns (SI units) and with columns of unit norm."""

    unscaled: float
    scaled: float


def pinned(robot: RobotModel, name: str) -> np.ndarray:
    """Return the indices (rank,) of the pinned columns among the parameters of the links.

    Raises:
    ValueError: the pinned columns are not a base of this robot.
    """
    names = parameter_names(robot)
    columns = np.array([names.index(column) for column in PINNED[name].split()])
    factor = motion_factor(robot, random_motion(robot))
    rank = np.linalg.matrix_rank(factor, tol=MIN_RELATIVE_SINGULAR_VALUE * np.linalg.norm(factor, 2))
    if not len(columns) == rank == np.linalg.matrix_rank(factor[:, columns], tol=MIN_RELATIVE_SINGULAR_VALUE):
        raise ValueError(f"{name}: {len(columns)} pinned columns are not a base of rank {rank}")
    return columns


def motion_factor(robot: RobotModel, motion: Sequence[ArrayLike]) -> np.ndarray:
    """Return the triangular factor R (10 n, 10 n) of the regressor of q, qd and qdd, each (N, n).

    R has the same column norms and condition numbers as the regressor.
    """
    return triangular_factor(regressor_blocks(robot, None, motion))


def condition(factor: np.ndarray, columns: np.ndarray) -> Condition:
    """Return the condition numbers of columns of a regressor or of its triangular factor."""
    base = factor[:, columns]
    return Condition(float(np.linalg.cond(base)), float(np.linalg.cond(base / np.linalg.norm(base, axis=0))))


def score(robot: RobotModel, name: str, motion: Sequence[ArrayLike]) -> Condition:
    """Return the condition numbers of the pinned columns on a motion q, qd and qdd, each (N, n)."""
    return condition(motion_factor(robot, motion), pinned(robot, name))


def read_motion(path: Path, n_joints: int) -> list[np.ndarray]:
    """Return q, qd and qdd, each (N, n), of a CSV file."""
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    if table.shape[1] != 1 + 3 * n_joints:
        raise ValueError(f"{path} has {table.shape[1]} columns; expected t and q, qd, qdd of {n_joints} joints")
    return np.split(table[:, 1:], 3, axis=1)


def load_robot(name: str) -> RobotModel:
    """Return the UR10 or Panda of package example-robot-data."""
    from pinocchio_arm import example_urdf  # noqa: PLC0415  # benchmarks.figaroh appends the folder to sys.path

    path, tip = ROBOTS[name]
    return RobotModel.from_urdf(example_urdf(path), tip=tip)
