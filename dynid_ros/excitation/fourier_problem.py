"""The best Fourier motion as an optimization problem: variables, constraints and objective."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import null_space

from dynid_ros.errors import TrajectoryError
from dynid_ros.information.criteria import Criterion
from dynid_ros.information.torque_information import InformationSource, MotionWithJerk, Rows, information_matrix
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.workspace import Workspace

DISTANCE_SCALE_M = 0.1
"""Lack of distance, m, that has the same excess as a joint limit that is exceeded by 100 %."""
UNPREDICTED_OBJECTIVE = 1e4
"""Objective of a motion whose torques cannot be predicted: worse than any other, so the search steps back."""


class FourierBasis:
    """Linear map from a vector of optimization variables to the Fourier series that start and end at rest.

    Velocity and acceleration are zero at time 0, so each joint has 2 H - 1 degrees of freedom: the offset, H - 1 of the
    sines and H - 1 of the cosines. The variables are scaled such that each alone takes the joint to one of its limits
    at a value of 1.

    Args:
        limits: limits of the joints, for the scales.
        base_frequency: frequency of the first harmonic, Hz.
        harmonics: number H of harmonics, at least 2.
        samples: number N of samples of a motion, which divide a period into equal parts.
        held: (n,) positions of the joints that do not move, NaN for the others; None: all move.

    Attributes:
        size: length of the vectors, n (2 H - 1).
    """

    def __init__(
        self, limits: MotionLimits, base_frequency: float, harmonics: int, samples: int, held: NDArray | None = None
    ) -> None:
        if harmonics < 2:
            raise TrajectoryError(f"harmonics is {harmonics}; it must be at least 2 to start and end at rest")
        if not (np.isfinite(base_frequency) and base_frequency > 0):
            raise TrajectoryError(f"base_frequency is {base_frequency:g} Hz; it must be positive and finite")
        self._names = limits.joint_names
        self._base_frequency = base_frequency
        order = np.arange(1, harmonics + 1)
        # At time 0 the velocity is Σ sine_k, and the acceleration is proportional to Σ k cosine_k.
        self._sine = null_space(np.ones((1, harmonics)))
        self._cosine = null_space(order[None].astype(float))
        rate = 2 * np.pi * base_frequency * order
        angle = np.outer(np.arange(samples) / (samples * base_frequency), rate)
        sin = np.sin(angle)
        cos = np.cos(angle)
        # Position and its three derivatives (N, 2 H - 2) of each sine and cosine coefficient.
        self._functions = [
            np.hstack([a @ self._sine, b @ self._cosine])
            for a, b in (
                (sin / rate, -cos / rate),
                (cos, sin),
                (-sin * rate, cos * rate),
                (-cos * rate**2, -sin * rate**2),
            )
        ]
        half_range = (limits.upper - limits.lower) / 2
        self._middle = (limits.upper + limits.lower) / 2
        peaks = np.array([np.abs(function).max(axis=0) for function in self._functions[:3]])
        bounds = np.array([half_range, limits.velocity, limits.acceleration])
        # Scales (n, 2 H - 1) of the variables: the offset first, then sines and cosines.
        self._scale = np.column_stack([half_range, np.min(bounds[:, :, None] / peaks[:, None], axis=0)])
        if held is not None:
            moves = np.isnan(held)
            self._middle = np.where(moves, self._middle, held)
            self._scale = np.where(moves[:, None], self._scale, 0.0)
        self.size = self._scale.size

    def motion(self, vector: NDArray) -> MotionWithJerk:
        """Return the motion (N, n) at the samples."""
        coefficients = self._coefficients(vector)
        position, *derivatives = (function @ coefficients[:, 1:].T for function in self._functions)
        return MotionWithJerk(position + coefficients[:, 0], *derivatives)

    def gradient(self, by_motion: MotionWithJerk) -> NDArray:
        """Return the gradient (size,) with respect to the vector from gradients (N, n) with respect to the motion."""
        by_series = sum(by.T @ function for by, function in zip(by_motion, self._functions, strict=True))
        return (np.column_stack([by_motion.position.sum(axis=0), by_series]) * self._scale).ravel()

    def series(self, vector: NDArray) -> FourierSeries:
        """Return the series of a vector."""
        offset, sine, cosine = np.split(self._coefficients(vector), [1, 1 + self._sine.shape[1]], axis=1)
        return FourierSeries(
            self._names, self._base_frequency, offset[:, 0], sine @ self._sine.T, cosine @ self._cosine.T
        )

    def vector(self, series: FourierSeries) -> NDArray:
        """Return the vector (size,) of a series that starts at rest and has this base frequency and these harmonics."""
        offset = series.offset - self._middle
        coefficients = np.column_stack([offset, series.sine @ self._sine, series.cosine @ self._cosine])
        return np.divide(coefficients, self._scale, out=np.zeros_like(self._scale), where=self._scale > 0).ravel()

    def _coefficients(self, vector: NDArray) -> NDArray:
        """Return offset, sine and cosine coefficients (n, 2 H - 1)."""
        coefficients = vector.reshape(self._scale.shape) * self._scale
        coefficients[:, 0] += self._middle
        return coefficients


class MotionConstraints:
    """Constraints of a motion in the form excess <= 0, with gradients.

    The excess over a joint limit is relative to the limit, and the excess of a distance is relative to 0.1 m.

    Args:
        limits: limits of position, velocity, acceleration, jerk and torque.
        workspace: bounds of the links.
        margin: fraction of each joint limit that is kept free.
        clearance: distance kept in addition to that of the workspace, one value or one for each of its distances, m.

    Attributes:
        names: (C,) description of each column of the excess.
    """

    def __init__(
        self, limits: MotionLimits, workspace: Workspace, *, margin: float = 0.0, clearance: ArrayLike = 0.0
    ) -> None:
        self._workspace = workspace
        self._clearance = np.asarray(clearance, dtype=float)
        self._middle = (limits.upper + limits.lower) / 2
        bounds = [(limits.upper - limits.lower) / 2, limits.velocity, limits.acceleration, limits.jerk, limits.torque]
        # An infinite limit gives a scale of zero, and so no excess.
        self._scales = 1.0 / np.array(bounds)
        self._allowed_fraction = 1.0 - margin
        kinds = ("position", "velocity", "acceleration", "jerk", "torque")
        self.names = (*(f"{kind} of joint '{name}'" for kind in kinds for name in limits.joint_names), *workspace.names)

    def excess(self, motion: MotionWithJerk, torque: NDArray) -> NDArray:
        """Compute the excess (N, C) of a motion with nominal torques (N, n), and keep its terms for `gradient`."""
        # Signed fraction (5, N, n) of each limit that the motion uses.
        self._used = np.stack([motion.position - self._middle, *motion[1:], torque]) * self._scales[:, None]
        self._distances = self._workspace.distances(motion.position)
        too_short = (self._clearance - self._distances.room) / DISTANCE_SCALE_M
        return np.hstack([*(np.abs(self._used) - self._allowed_fraction), too_short])

    def excess_at_rest(self, poses: NDArray, torque: NDArray) -> NDArray:
        """Compute the excess (M, C) of an arm that rests at poses (M, n) with holding torques (M, n)."""
        still = np.zeros_like(poses)
        return self.excess(MotionWithJerk(poses, still, still, still), torque)

    def describe_obstacle(self, excess: NDArray) -> str:
        """Describe the constraint that most of the poses with this excess (M, C) violate.

        Poses that violate only one constraint show best which one is in the way, so they are counted if there are any.
        """
        violated = excess > 0
        alone = violated & (violated.sum(axis=1) == 1)[:, None]
        counted = alone if alone.any() else violated
        worst = np.argmax(counted.sum(axis=0))
        how = "forbidden by nothing else" if alone.any() else "forbidden by that among others"
        return f"in the way is {self.names[worst]} ({100 * np.mean(counted[:, worst]):.0f} % of the poses are {how})"

    def gradient(self, weights: NDArray) -> tuple[MotionWithJerk, NDArray]:
        """Return the gradients (N, n) of sum(weights * excess) by the motion and by the torques, for weights (N, C)."""
        kinds, n_samples, n = self._used.shape
        joints = weights[:, : kinds * n].reshape(n_samples, kinds, n).transpose(1, 0, 2)
        by_position, *by_derivatives, by_torque = joints * np.sign(self._used) * self._scales[:, None]
        by_position = by_position + self._distances.gradient(-weights[:, kinds * n :] / DISTANCE_SCALE_M)
        return MotionWithJerk(by_position, *by_derivatives), by_torque


class DesignProblem:
    """Minimization of a criterion of the information of a Fourier motion under constraints.

    Args:
        basis: map from the optimization variables to the motion.
        source: information matrix that a motion yields, and its nominal torques.
        criterion: function of the information matrix to minimize.
        constraints: limits and workspace.
        known: (p, p) integral of earlier information over time, divided by the duration of this motion; None: zero.
    """

    def __init__(
        self,
        basis: FourierBasis,
        source: InformationSource,
        criterion: Criterion,
        constraints: MotionConstraints,
        known: NDArray | None = None,
    ) -> None:
        self._basis = basis
        self._source = source
        self._criterion = criterion
        self._constraints = constraints
        self._known = 0.0 if known is None else known
        self._rows: Rows | None = None

    def evaluate(self, vector: NDArray, sharpness: float) -> tuple[float, NDArray]:
        """Compute the smooth criterion and the excess (N, C), and keep them for `gradient`."""
        motion = self._basis.motion(vector)
        try:
            self._rows = self._source.rows(motion)
        except TrajectoryError:
            self._rows = None
            return UNPREDICTED_OBJECTIVE, np.zeros((1, 1))
        information = information_matrix(self._rows) + self._known
        objective, self._by_information = self._criterion.smooth(information, sharpness)
        return objective, self._constraints.excess(motion, self._rows.torque)

    def gradient(self, by_excess: NDArray) -> NDArray:
        """Return the gradient (size,) of the criterion plus sum(by_excess * excess) at the last evaluated vector."""
        if self._rows is None:
            return np.zeros(self._basis.size)
        # Chain rule: vector -> motion -> regressor and torque -> information and excess.
        by_constraints, by_torque = self._constraints.gradient(by_excess)
        regressor = self._rows.regressor
        by_regressor = (2.0 / regressor.shape[-1]) * np.tensordot(self._by_information, regressor, axes=1)
        by_rows = self._source.gradient(Rows(by_regressor, by_torque))
        return self._basis.gradient(MotionWithJerk(*(a + b for a, b in zip(by_constraints, by_rows, strict=True))))

    def information(self, vector: NDArray) -> NDArray:
        """Return the mean information (p, p) over the samples of a motion, plus the known information."""
        return information_matrix(self._source.rows(self._basis.motion(vector))) + self._known

    def value(self, vector: NDArray) -> float:
        """Return the exact value of the criterion, without smoothing."""
        return self._criterion.value(self.information(vector))
