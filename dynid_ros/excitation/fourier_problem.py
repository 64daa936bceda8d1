"""The best Fourier motion as a problem of minimisation."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import null_space

from dynid_ros.errors import TrajectoryError
from dynid_ros.information.criteria import Criterion
from dynid_ros.information.torque_information import InformationSource, MotionWithJerk, Rows, information
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.workspace import Workspace

# Fourier motions from rest to rest, linear in a vector of numbers that are about 1 where they take all room.


class FourierBasis:
    """All series with `harmonics` of `base_frequency` that have no velocity and no acceleration at time 0.

    Of each joint these have 2 H - 1 degrees of freedom: the offset, H - 1 of the sines and H - 1 of the cosines.

    Args:
        limits: give each number its scale.
        base_frequency: Hz.
        harmonics: H, at least 2.
        samples: N, at which motions are looked at, spread evenly over a period.
        held: (n,) positions of the joints that stand still, whatever their numbers, NaN for the others; None: all move.

    Attributes:
        size: of the vectors, n (2 H - 1).
    """

    def __init__(
        self,
        limits: MotionLimits,
        base_frequency: float,
        harmonics: int,
        samples: int,
        held: NDArray | None = None,
    ) -> None:
        if harmonics < 2:
            raise TrajectoryError(f"harmonics is {harmonics}; it must be at least 2 to start and end at rest")
        if not (np.isfinite(base_frequency) and base_frequency > 0):
            raise TrajectoryError(f"base_frequency is {base_frequency:g} Hz; it must be positive and finite")
        self._names = limits.joint_names
        self._base_frequency = base_frequency
        order = np.arange(1, harmonics + 1)
        # As the velocity is the sum of the sines' coefficients, and the acceleration that of k times the cosines'.
        self._sine = null_space(np.ones((1, harmonics)))
        self._cosine = null_space(order[None].astype(float))
        rate = 2 * np.pi * base_frequency * order
        angle = np.outer(np.arange(samples) / (samples * base_frequency), rate)
        sin, cos = np.sin(angle), np.cos(angle)
        self._functions = [
            np.hstack([a @ self._sine, b @ self._cosine])
            for a, b in (
                (sin / rate, -cos / rate),
                (cos, sin),
                (-sin * rate, cos * rate),
                (-cos * rate**2, -sin * rate**2),
            )
        ]
        half = (limits.upper - limits.lower) / 2
        self._middle = (limits.upper + limits.lower) / 2
        largest = np.array([np.abs(function).max(axis=0) for function in self._functions[:3]])
        room = np.array([half, limits.velocity, limits.acceleration])
        # (n, 2 H - 1): the offset first.
        self._scale = np.column_stack([half, np.min(room[:, :, None] / largest[:, None], axis=0)])
        if held is not None:
            moves = np.isnan(held)
            self._middle = np.where(moves, self._middle, held)
            self._scale = np.where(moves[:, None], self._scale, 0.0)
        self.size = self._scale.size

    def motion(self, vector: NDArray) -> MotionWithJerk:
        """The motion at the samples."""
        coefficients = self._coefficients(vector)
        position, *derivatives = (function @ coefficients[:, 1:].T for function in self._functions)
        return MotionWithJerk(position + coefficients[:, 0], *derivatives)

    def gradient(self, by_motion: MotionWithJerk) -> NDArray:
        """Gradient (size,) of a function with these gradients by the motion."""
        by_series = sum(by.T @ function for by, function in zip(by_motion, self._functions, strict=True))
        return (np.column_stack([by_motion.position.sum(axis=0), by_series]) * self._scale).ravel()

    def series(self, vector: NDArray) -> FourierSeries:
        """The series itself."""
        offset, sine, cosine = np.split(self._coefficients(vector), [1, 1 + self._sine.shape[1]], axis=1)
        sine, cosine = sine @ self._sine.T, cosine @ self._cosine.T
        return FourierSeries(self._names, self._base_frequency, offset[:, 0], sine, cosine)

    def vector(self, series: FourierSeries) -> NDArray:
        """The numbers (size,) of a series that starts at rest and has this base frequency and these harmonics."""
        offset = series.offset - self._middle
        coefficients = np.column_stack([offset, series.sine @ self._sine, series.cosine @ self._cosine])
        return np.divide(coefficients, self._scale, out=np.zeros_like(self._scale), where=self._scale > 0).ravel()

    def _coefficients(self, vector: NDArray) -> NDArray:
        coefficients = vector.reshape(self._scale.shape) * self._scale
        coefficients[:, 0] += self._middle
        return coefficients


# How far a motion exceeds what limits it, as one array with a gradient.


DISTANCE = 0.1
"""A distance this much too short counts as much as a limit passed by its whole, m."""


class MotionRoom:
    """Excess over limits, zero or less where all is well.

    Of joint limits it is a part of the limit, of distances a part of 0.1 m.

    Args:
        limits: of position, velocity, acceleration, jerk and torque.
        workspace: where the links may be.
        margin: part of each joint limit that is kept free.
        clearance: distance kept besides that of the workspace, one value or one for each of its checks, m.

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

    def excess_at_rest(self, poses: NDArray, torque: NDArray) -> NDArray:
        """Excess (M, C) of an arm that rests at poses (M, n), with the torques (M, n) that hold it."""
        still = np.zeros_like(poses)
        return self.excess(MotionWithJerk(poses, still, still, still), torque)

    def obstacle(self, excess: NDArray) -> str:
        """Say what forbids most of the poses with this excess (M, C)."""
        broken = excess > 0
        alone = broken & (broken.sum(axis=1) == 1)[:, None]
        worst = np.argmax(alone.sum(axis=0) if alone.any() else broken.sum(axis=0))
        how = "forbidden by nothing else" if alone.any() else "forbidden by that among others"
        share = np.mean(alone[:, worst] if alone.any() else broken[:, worst])
        return f"in the way is {self.names[worst]} ({100 * share:.0f} % of the poses are {how})"

    def gradient(self, weights: NDArray) -> tuple[MotionWithJerk, NDArray]:
        """Gradients of sum(weights * excess) by the motion and by the torques (N, n); weights (N, C)."""
        kinds, n_samples, n = self._used.shape
        joints = weights[:, : kinds * n].reshape(n_samples, kinds, n).transpose(1, 0, 2)
        by_position, *by_others, by_torque = joints * np.sign(self._used) * self._scales[:, None]
        by_position = by_position + self._distances.gradient(-weights[:, kinds * n :] / DISTANCE)
        return MotionWithJerk(by_position, *by_others), by_torque


WITHOUT_PREDICTION = 1e4
"""The criterion of a motion that the source cannot foresee: worse than any other."""


class DesignProblem:
    """Minimises a criterion of the information of a Fourier motion that keeps to its room.

    Args:
        basis: of the motions.
        source: what a motion excites.
        criterion: how it is rated.
        room: what limits it.
        known: (p, p) information there is already, for a motion of this length; None: none.
    """

    def __init__(
        self,
        basis: FourierBasis,
        source: InformationSource,
        criterion: Criterion,
        room: MotionRoom,
        known: NDArray | None = None,
    ) -> None:
        self._basis, self._source, self._criterion, self._room = basis, source, criterion, room
        self._known = 0.0 if known is None else known
        self._rows: Rows | None = None

    def evaluate(self, vector: NDArray, sharpness: float) -> tuple[float, NDArray]:
        """The smooth criterion, and the excess (N, C); remembered for `gradient`."""
        motion = self._basis.motion(vector)
        try:
            self._rows = self._source.rows(motion)
        except TrajectoryError:
            # Nobody knows what happens there: a step back.
            self._rows = None
            return WITHOUT_PREDICTION, np.zeros((1, 1))
        objective, self._by_information = self._criterion.smooth(information(self._rows) + self._known, sharpness)
        return objective, self._room.excess(motion, self._rows.torque)

    def gradient(self, by_excess: NDArray) -> NDArray:
        """Gradient of the last criterion plus sum(by_excess * excess)."""
        if self._rows is None:
            return np.zeros(self._basis.size)
        by_room, by_torque = self._room.gradient(by_excess)
        regressor = self._rows.regressor
        by_regressor = (2.0 / regressor.shape[-1]) * np.tensordot(self._by_information, regressor, axes=1)
        by_rows = self._source.gradient(Rows(by_regressor, by_torque))
        return self._basis.gradient(MotionWithJerk(*(a + b for a, b in zip(by_room, by_rows, strict=True))))

    def information(self, vector: NDArray) -> NDArray:
        """Information (p, p), with what was known."""
        return information(self._source.rows(self._basis.motion(vector))) + self._known

    def value(self, vector: NDArray) -> float:
        """The criterion itself."""
        return self._criterion.value(self.information(vector))
