"""Columns of the equations of a load on a wrist sensor: its parameters, and what is unknown of the sensor."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.least_squares import column_norms
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification.wrench_frame import AXES
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import LOAD_NAMES, STATIC

# Gains of a sensor's axes, as far as a load shows them.
# All axes feel one mass and one centre: gains that differ from axis to axis leave residuals, and would be taken for
# inertia. Readings are Y x + bias + γ Y x with relative errors γ of the gains, drawn from a normal distribution of
# known width: ridge regression, about the load of the fit before. What all axes have in common no load shows; it
# stays an error of the result.


ROUNDS = 5
CORRELATED = 2.0
"""Factor of the noise that stands for its correlation from sample to sample."""


class Gains(NamedTuple):
    """Relative errors (6,) of the axes' gains, their covariance (6, 6), and the load (10,) or (4,) of that fit."""

    errors: NDArray
    covariance: NDArray
    load: NDArray

    @property
    def values(self) -> NDArray:
        """(6,) of the columns of what is left of the errors."""
        return np.zeros(len(self.errors))

    @property
    def gain_shifts(self) -> None:
        """Nothing else was found with these gains."""
        return None


def estimated_gains(problem: WeightedProblem, gain_error: float, n_load: int) -> Gains:
    """Gains of a problem whose first unknowns are those of the load.

    Args:
        problem: of the readings of six axes.
        gain_error: standard deviation of the relative errors before the readings were seen.
        n_load: number of the load's parameters.
    """
    fit, noise = problem.weighted()
    parts = [problem.joint(axis) for axis in range(problem.n_joints)]
    n, k = problem.n_joints, problem.n_unknowns
    load, right = fit.solution[:n_load], np.concatenate([own for _, own in parts])
    owner = np.repeat(np.arange(n), [len(own) for _, own in parts])
    for _ in range(ROUNDS):
        gains = np.zeros((len(right), n))
        gains[np.arange(len(right)), owner] = np.concatenate([matrix[:, :n_load] @ load for matrix, _ in parts])
        matrix = np.hstack([np.concatenate([matrix for matrix, _ in parts]), gains])
        solution, covariance = _ridge(matrix / noise[owner, None], right / noise[owner], k, gain_error)
        squares = np.bincount(owner, (right - matrix @ solution) ** 2, n)
        noise = np.maximum(np.sqrt(squares / max(problem.count() - (k + n) / n, 1.0)), 1e-9 * problem.torque_rms())
        load = solution[:n_load]
    _, covariance = _ridge(matrix / (CORRELATED * noise[owner, None]), right, k, gain_error)
    return Gains(solution[k:], covariance[k:, k:], load)


def _ridge(matrix: NDArray, right: NDArray, k: int, size: float) -> tuple[NDArray, NDArray]:
    """Solution (k + n,) and covariance of unknowns of which the last n are drawn with a standard deviation `size`."""
    n = matrix.shape[1] - k
    prior = np.hstack([np.zeros((n, k)), np.eye(n) / size])
    whole = np.vstack([matrix, prior])
    scale = column_norms(whole)
    inverse = np.linalg.pinv(whole / scale) / scale[:, None]
    return inverse @ np.append(right, np.zeros(n)), inverse @ inverse.T


OF_FORCE, OF_TORQUE = slice(0, 4), slice(1, 10)
"""Parameters of a load that force and moment depend on."""
TURN = ("turn x", "turn y", "turn z")
LAG = "lag"


class WrenchColumns:
    """Columns of the wrench that the tip exerts on a load, as a sensor reads it.

    A bias and its drift differ from one recording to the next. A sensor whose axes are turned by small angles δ against
    the tip's reads Y x + w × δ, and one whose clock is τ late reads Y x − τ dw/dt: columns made of the readings w.

    Args:
        robot: kinematics and gravity.
        recordings: how many there are.
        static: of dwells, in which inertia does not show, nor a lag.
        turn: whether the sensor's axes may be turned.
        lag: whether its clock may be late.
        drift: degree of the polynomial of time that the bias follows.

    Attributes:
        own: (k,) what is fitted.
        of_arm: (6,) columns of what is left of the gains' errors; empty where they are not estimated.
        gains: errors of the axes' gains that readings are rid of; None: they are taken as they are.
        names: (k,) of `own`.
        of_joint: for each axis the columns that it can depend on.
    """

    def __init__(
        self,
        robot: RobotModel,
        recordings: int = 1,
        *,
        static: bool = False,
        turn: bool = True,
        lag: bool = True,
        drift: int = 0,
    ):
        self.robot = robot
        self.gains: Gains | None = None
        self._load = STATIC if static else len(LOAD_NAMES)
        self.turn, self.lag, self.drift = turn, lag and not static, drift
        several = [f", recording {number + 1}" if recordings > 1 else "" for number in range(recordings)]
        self.names = (
            *LOAD_NAMES[: self._load],
            *(TURN if self.turn else ()),
            *((LAG,) if self.lag else ()),
            *(f"{_bias(degree)} of {axis}{which}" for which in several for degree in range(drift + 1) for axis in AXES),
        )
        self.own = np.arange(len(self.names))
        self.of_arm = np.array([], dtype=int)
        first = self.own.size - recordings * (drift + 1) * len(AXES)
        common = np.arange(self._load, first)
        bias = np.arange(first, self.own.size).reshape(recordings * (drift + 1), len(AXES))
        self.of_joint = [
            np.concatenate([self.own[: self._load][self._part(axis)], common, bias[:, axis]])
            for axis in range(len(AXES))
        ]

    def memory(self, _q: NDArray) -> dict:
        """Nothing: a load has no friction."""
        return {}

    def rows(self, q: NDArray, qd: NDArray, qdd: NDArray, _memory: object = None) -> list[NDArray]:
        """For each axis the matrix (N, ·) of the load alone, samples next to each other in memory."""
        return self.of_wrench(self.robot.wrench_regressor(q, qd, qdd))

    def of_wrench(self, regressor: NDArray) -> list[NDArray]:
        """As `rows`, of a wrench regressor (N, 6, 10)."""
        whole = regressor[:, :, : self._load]
        return [whole[:, axis, self._part(axis)] for axis in range(len(AXES))]

    def with_gains(self, gains: Gains) -> WrenchColumns:
        """The same with readings that are rid of errors of the axes' gains."""
        found = copy(self)
        found.gains = gains
        found.of_arm = self.own.size + np.arange(len(AXES))
        found.of_joint = [np.append(own, column) for own, column in zip(self.of_joint, found.of_arm, strict=True)]
        return found

    @property
    def n_load(self) -> int:
        """Parameters of the load: ten, or the four that act at rest."""
        return self._load

    def with_sensor(
        self, load: list[NDArray], wrench: NDArray, slope: NDArray, course: NDArray, recording: int
    ) -> tuple[list[NDArray], NDArray]:
        """Complete rows of each axis, and readings (M, 6) rid of errors of the gains.

        Args:
            load: rows of the load.
            wrench: (M, 6) as read.
            slope: (M, 6) its derivative.
            course: (M,) from −1 to 1 in the time of the recording.
            recording: counted from 0.
        """
        common = []
        if self.turn:
            # w × e_k of force and of torque: (M, 6, 3).
            parts = wrench.reshape(-1, 2, 1, 3)
            common.append(np.swapaxes(np.cross(parts, np.eye(3)), 2, 3).reshape(-1, 6, 3))
        if self.lag:
            common.append(-slope[:, :, None])
        shared = np.concatenate(common, axis=2) if common else np.empty((len(wrench), 6, 0))
        powers = course[:, None] ** np.arange(self.drift + 1)
        size = self.drift + 1
        found = []
        for axis, own in enumerate(load):
            rest = np.zeros((len(wrench), self.of_joint[axis].size - own.shape[1] - shared.shape[2]))
            rest[:, recording * size : (recording + 1) * size] = powers
            found.append(np.concatenate([own, shared[:, axis], rest], axis=1))
        if self.gains is None:
            return found, wrench
        loads = [own @ self.gains.load[self._part(axis)] for axis, own in enumerate(load)]
        for rows, own in zip(found, loads, strict=True):
            rows[:, -1] = own
        return found, wrench - self.gains.errors * np.transpose(loads)

    @staticmethod
    def _part(axis: int) -> slice:
        return OF_FORCE if axis < 3 else OF_TORQUE


def _bias(degree: int) -> str:
    return f"drift {degree}" if degree else "bias"
