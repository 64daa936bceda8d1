"""Columns of the equations of a load on a wrist sensor: the load's parameters and the sensor's unknowns."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.estimation.rank import column_norms
from dynid_ros.identification.wrench_frame import SENSOR_AXES, TURN
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import LOAD_NAMES, PARAMETERS_PER_LINK, STATIC, transformed
from dynid_ros.signals.low_pass import Motion, central_differences

# Gains of a sensor's axes. All axes measure one mass and one centre, so gains that differ between axes leave residuals
# that would be mistaken for inertia. Readings are Y x + bias + γ Y x with relative errors γ of the gains from a normal
# distribution of known width. This is ridge regression about the load of the previous fit. An error that is common to
# all axes shows in no residual and stays an error of the result.


MAX_ITERATIONS = 5
NOISE_CORRELATION_FACTOR = 2.0
"""Factor of the noise that represents its correlation from sample to sample."""


class Gains(NamedTuple):
    """Errors of the axes' gains, and of deflections of the joints.

    Attributes:
        errors: (6,) relative errors of the axes' gains.
        covariance: (6, 6) of the errors; (6 + n, 6 + n) with the covariance of the joints' deflections, rad², after it.
        load: (10,) or (4,) parameters of the load in the fit that estimated the gains.
    """

    errors: NDArray
    covariance: NDArray
    load: NDArray

    @property
    def values(self) -> NDArray:
        """Expected values (6,) or (6 + n,) of the remaining errors."""
        return np.zeros(len(self.covariance))

    def with_deflections(self, joints: int, size: float) -> Gains:
        """Return them with deflections of the joints of an RMS of `size`, rad.

        Every joint gives way to its torque, so deflections have one sign, and their errors add up: with |N(0, size²)|
        for each, E δ_i δ_j is 2/π of E δ_i².
        """
        alike = 2.0 / np.pi
        moments = size**2 * (alike * np.ones((joints, joints)) + (1.0 - alike) * np.eye(joints))
        return self._replace(covariance=block_diag(self.covariance, moments))

    @classmethod
    def exact(cls, load: NDArray) -> Gains:
        """Return gains without errors."""
        return cls(np.zeros(len(SENSOR_AXES)), np.zeros((len(SENSOR_AXES), len(SENSOR_AXES))), load)

    @property
    def gain_shifts(self) -> None:
        """Effect of these gains on other known coefficients: none."""
        return None


def estimated_gains(problem: WeightedProblem, gain_error: float, n_load: int, deflection: float = 0.0) -> Gains:
    """Estimate gains from equations whose first unknowns are those of the load.

    Deflections of joints are unknowns as well, or they would be mistaken for gains. Their estimates are not used,
    because residuals that are not noise would enter them.

    Args:
        problem: equations of the readings of six axes; its columns after `own` are those of deflections.
        gain_error: standard deviation of the relative errors before the fit.
        n_load: number of the load's parameters.
        deflection: standard deviation of the joints' deflections, rad.
    """
    columns = problem.factors.columns
    assert isinstance(columns, WrenchColumns)
    whole = WeightedProblem(problem.factors, np.concatenate([columns.own, columns.of_arm]))
    fit, noise = problem.weighted()
    parts = [whole.joint(axis) for axis in range(whole.n_joints)]
    n = whole.n_joints
    k = columns.own.size
    load = fit.solution[:n_load]
    right = np.concatenate([own for _, own in parts])
    owner = np.repeat(np.arange(n), [len(own) for _, own in parts])
    measured = np.concatenate([matrix for matrix, _ in parts])
    sizes = np.concatenate([np.full(n, gain_error), np.full(columns.of_arm.size, deflection)])
    for _ in range(MAX_ITERATIONS):
        gains = np.zeros((len(right), n))
        gains[np.arange(len(right)), owner] = measured[:, :n_load] @ load
        matrix = np.hstack([measured[:, :k], gains, measured[:, k:]])
        solution, covariance = _ridge(matrix / noise[owner, None], right / noise[owner], k, sizes)
        squares = np.bincount(owner, (right - matrix @ solution) ** 2, n)
        noise = np.maximum(np.sqrt(squares / max(problem.count() - (k + n) / n, 1.0)), 1e-9 * problem.torque_rms())
        load = solution[:n_load]
    _, covariance = _ridge(matrix / (NOISE_CORRELATION_FACTOR * noise[owner, None]), right, k, sizes)
    own = slice(k, k + n)
    return Gains(solution[own], covariance[own, own], load)


def _ridge(matrix: NDArray, right: NDArray, k: int, sizes: NDArray) -> tuple[NDArray, NDArray]:
    """Return solution and covariance (k + n,) of unknowns; the last n have prior standard deviations `sizes`."""
    prior = np.hstack([np.zeros((len(sizes), k)), np.diag(1.0 / sizes)])
    whole = np.vstack([matrix, prior])
    scale = column_norms(whole)
    inverse = np.linalg.pinv(whole / scale) / scale[:, None]
    return inverse @ np.append(right, np.zeros(len(sizes))), inverse @ inverse.T


# Deflections of elastic joints, which no encoder at the motor shows.


MIN_TORQUE = 1e-3
"""Torque below which a joint is not deflected, N m."""

DIFFERENCE_RAD = 1e-4
"""Step of the finite difference of a wrench by a deflection."""


class Deflections:
    """Deflections of elastic joints by their torques, and the change of a load's wrench by them.

    A joint j is twisted by −δ τ_j / max |τ_j|, where τ is the torque of links and load. The wrench of a load changes by

        D_j = d/dε Y(q + ε s_j, q̇ + ε ṡ_j, q̈ + ε s̈_j) x   with   s_j = −τ_j / max |τ_j|

    per unit of the largest deflection δ.

    Args:
        robot: kinematics, gravity, and nominal parameters of the links.
        load: (10,) or (4,) parameters of the load at the tip.
    """

    def __init__(self, robot: RobotModel, load: NDArray):
        self._robot = robot
        self._load = np.pad(load, (0, PARAMETERS_PER_LINK - len(load)))
        self._parameters = np.nan_to_num(robot.parameters)
        self._parameters[robot.tip_columns] += transformed(self._load, robot.tip_offset)

    def columns(self, motion: Motion, step: float | None = None) -> NDArray:
        """Return the change (N, 6, n) of the wrench on the load per largest deflection of each joint, rad.

        Args:
            motion: motion of the motors.
            step: time between samples, s; None: the arm is at rest in each sample.
        """
        torque = self._robot.inverse_dynamics(*motion, self._parameters)
        largest = np.abs(torque).max(axis=0)
        share = -torque / np.where((largest > MIN_TORQUE) & ~self._robot.chain.prismatic, largest, np.inf)
        still = np.zeros_like(share), np.zeros_like(share)
        rates = still if step is None else central_differences(share, step)
        before = self._robot.wrench_regressor(*motion) @ self._load
        found = np.empty((*before.shape, share.shape[1]))
        for joint in range(share.shape[1]):
            moved = [np.array(values) for values in motion]
            for values, change in zip(moved, (share, *rates), strict=True):
                values[:, joint] += DIFFERENCE_RAD * change[:, joint]
            found[:, :, joint] = (self._robot.wrench_regressor(*moved) @ self._load - before) / DIFFERENCE_RAD
        return found


OF_FORCE = slice(0, 4)
OF_TORQUE = slice(1, 10)
"""Parameters of a load that force and moment depend on."""
LAG_NAME = "lag"


class WrenchColumns:
    """Columns of the wrench that the tip exerts on a load, as a sensor reads it.

    Each recording has a bias and a drift. A sensor whose axes are turned by small angles δ against the tip's reads Y x
    + w × δ, and a sensor whose clock is τ late reads Y x − τ dw/dt. These columns are made of the readings w.

    Args:
        robot: kinematics and gravity.
        recordings: number of recordings.
        static: whether samples are dwells, in which inertia and lag do not act.
        turn: whether the turn of the sensor's axes is an unknown.
        lag: whether the lag of the sensor's clock is an unknown.
        drift: degree of the polynomial of time that the bias follows.

    Attributes:
        own: (k,) fitted columns.
        of_arm: (6,) columns of the remaining errors of the gains, then (n,) of deflections; empty without them.
        deflections: deflections of the joints; None: the joints are stiff.
        gains: errors of the gains for which readings are corrected; None: readings are not corrected.
        names: (k,) names of the fitted columns.
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
        self.recordings = recordings
        self.gains: Gains | None = None
        self.deflections: Deflections | None = None
        self._load = STATIC if static else len(LOAD_NAMES)
        self.turn = turn
        self.lag = lag and not static
        self.drift = drift
        several = [f", recording {number + 1}" if recordings > 1 else "" for number in range(recordings)]
        courses = ["bias", *(f"drift {degree}" for degree in range(1, drift + 1))]
        self.names = (
            *LOAD_NAMES[: self._load],
            *(TURN if self.turn else ()),
            *((LAG_NAME,) if self.lag else ()),
            *(f"{course} of {axis}{which}" for which in several for course in courses for axis in SENSOR_AXES),
        )
        self.own = np.arange(len(self.names))
        self.of_arm = np.array([], dtype=int)
        first = self.own.size - recordings * (drift + 1) * len(SENSOR_AXES)
        common = np.arange(self._load, first)
        self._n_biases = recordings * (drift + 1)
        bias = np.arange(first, self.own.size).reshape(self._n_biases, len(SENSOR_AXES))
        self.of_joint = [
            np.concatenate([self.own[: self._load][self._part(axis)], common, bias[:, axis]])
            for axis in range(len(SENSOR_AXES))
        ]

    def memory(self, _q: NDArray) -> dict:
        """Return no directions: a load has no friction."""
        return {}

    def rows(self, q: NDArray, qd: NDArray, qdd: NDArray, _memory: object = None) -> list[NDArray]:
        """Return for each axis the matrix (N, ·) of the load alone, with the samples of a column adjacent in memory."""
        return self.of_wrench(self.robot.wrench_regressor(q, qd, qdd))

    def of_wrench(self, regressor: NDArray) -> list[NDArray]:
        """Return the matrices of `rows` for a wrench regressor (N, 6, 10)."""
        whole = regressor[:, :, : self._load]
        return [whole[:, axis, self._part(axis)] for axis in range(len(SENSOR_AXES))]

    def with_deflections(self, deflections: Deflections) -> WrenchColumns:
        """Return the columns with unfitted columns of the joints' deflections; call it before `with_gains`."""
        found = copy(self)
        found.deflections = deflections
        found.of_arm = self.own.size + np.arange(self.robot.n_joints)
        found.of_joint = [np.append(own, found.of_arm) for own in self.of_joint]
        return found

    def with_gains(self, gains: Gains) -> WrenchColumns:
        """Return the columns with readings that are rid of errors of the axes' gains."""
        found = copy(self)
        found.gains = gains
        found.of_arm = self.own.size + np.arange(len(SENSOR_AXES) + self.of_arm.size)
        found.of_joint = [
            np.concatenate([of_axis[: of_axis.size - self.of_arm.size], [column], found.of_arm[len(SENSOR_AXES) :]])
            for of_axis, column in zip(self.of_joint, found.of_arm[: len(SENSOR_AXES)], strict=True)
        ]
        return found

    def with_drift(self, degree: int) -> WrenchColumns:
        """Return the columns with a bias that follows a polynomial of time of this degree."""
        static = self._load == STATIC
        return WrenchColumns(self.robot, self.recordings, static=static, turn=self.turn, lag=self.lag, drift=degree)

    @property
    def n_load(self) -> int:
        """Parameters of the load: ten, or the four that act at rest."""
        return self._load

    def with_sensor(
        self,
        load: list[NDArray],
        wrench: NDArray,
        slope: NDArray,
        course: NDArray,
        recording: int,
        *,
        deflected: NDArray | None = None,
    ) -> tuple[list[NDArray], NDArray]:
        """Return complete rows of each axis, and readings (M, 6) corrected for the errors of the gains.

        Args:
            load: rows of the load.
            wrench: (M, 6) readings.
            slope: (M, 6) time derivative of the readings.
            course: (M,) time from −1 to 1 in the recording.
            recording: index of the recording, from 0.
            deflected: (M, 6, n) columns of `deflections`; None: the joints are stiff.
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
            rest = np.zeros((len(wrench), self._n_biases))
            rest[:, recording * size : (recording + 1) * size] = powers
            found.append(np.concatenate([own, shared[:, axis], rest], axis=1))
        joints = np.empty((len(wrench), len(SENSOR_AXES), 0)) if deflected is None else deflected
        if self.gains is None:
            return [np.hstack([rows, joints[:, axis]]) for axis, rows in enumerate(found)], wrench
        loads = np.transpose([own @ self.gains.load[self._part(axis)] for axis, own in enumerate(load)])
        complete = [np.hstack([rows, loads[:, [axis]], joints[:, axis]]) for axis, rows in enumerate(found)]
        return complete, wrench - self.gains.errors * loads

    @staticmethod
    def _part(axis: int) -> slice:
        return OF_FORCE if axis < 3 else OF_TORQUE
