"""Estimates of on-line identification at one instant.

Friction that a model lacks is similar in neighbouring samples, and again when the motion repeats. The scatter between
kinds of motion therefore gives the error of a parameter (`estimation.covariance`). A batch fit clusters the samples
after the whole motion. Here each equation joins the nearest of 40 small kinds. The two nearest kinds are merged when a
new kind is needed, and the small kinds are merged to ten when errors are requested (clustering features: Zhang,
Ramakrishnan and Livny 1996, "BIRCH"; the nearest kind adds least to the sum of squares, Ward 1963).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import MAX_DOF, clustered_covariance, covariance_root
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.estimation.rank import half_inverse
from dynid_ros.estimation.recursive_least_squares import SquareRootInformation
from dynid_ros.identification.equations import MAX_KINDS
from dynid_ros.identification.load_result import LoadResult
from dynid_ros.identification.online.online_equations import LinkRows, LoadRows
from dynid_ros.identification.physical_consistency import ConsistentFit, ConsistentProblem
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import possible_prior

N_SMALL_KINDS = 40
"""Number of small kinds between which samples are distributed as they arrive."""

MAX_WAITING = 16
"""Number of instants whose equations are multiplied together, at a third of the cost of single products."""

REFRESH_BLOCKS = 16
"""Number of instants after which the scales of positions and velocities are updated."""

MIN_WEIGHT = 1e-100
"""Weight of the oldest sums, by forgetting, below which all sums are rescaled."""


class KindSums:
    """Normal equations of each joint in each kind of motion.

    Args:
        n_joints: number n of joints.
        size: number k of parameters.
        considered: number c of further right-hand sides, see `SquareRootInformation`.
    """

    def __init__(self, n_joints: int, size: int, considered: int = 0):
        self._n_states = 2 * n_joints
        self._counts = np.zeros(N_SMALL_KINDS)
        self._middles = np.zeros((N_SMALL_KINDS, self._n_states))
        self._grams = np.zeros((N_SMALL_KINDS, n_joints, size + 1, size + 1 + considered))
        # Equations wait in a buffer, so that those of the same kind are multiplied together.
        self._waiting = np.empty((MAX_WAITING, n_joints, size + 1 + considered))
        self._labels = np.empty(MAX_WAITING, dtype=int)
        self._n_waiting = 0
        self._weights = np.zeros((N_SMALL_KINDS, n_joints))
        # Forgetting scales all sums alike: one common factor shrinks instead, and new equations are divided by it.
        self._kept = 1.0
        self._total = 0.0
        self._mean = np.zeros(self._n_states)
        self._square = np.zeros(self._n_states)
        self._scale = np.ones(self._n_states)
        self._used = 0
        self._nearest = 0.0

    def add(
        self, state: NDArray, rows: NDArray, weights: NDArray, keep: float = 1.0, considered: NDArray | None = None
    ) -> None:
        """Add the equations of one instant.

        Args:
            state: (2 n,) positions and velocities.
            rows: (n, k + 1) matrix [A b].
            weights: (n,) relative weights of the joints' equations.
            keep: share of all earlier equations that remains.
            considered: (n, c) other right-hand sides; None: there are none.
        """
        self._total += 1.0
        change = state - self._mean
        self._mean += change / self._total
        self._square += change * (state - self._mean)
        if self._total % REFRESH_BLOCKS == 1.0:
            deviation = np.sqrt(self._square / self._total)
            self._scale = np.where(deviation > 0.0, deviation, 1.0)
        kind = self._place(state)
        self._kept *= keep
        if self._kept < MIN_WEIGHT:
            self._level()
        self._counts[kind] += 1.0
        self._middles[kind] += (state - self._middles[kind]) / self._counts[kind]
        self._weights[kind] += weights / self._kept
        waiting = self._waiting[self._n_waiting]
        scale = 1.0 / math.sqrt(self._kept)
        np.multiply(rows, scale, out=waiting[:, : rows.shape[1]])
        if considered is not None:
            np.multiply(considered, scale, out=waiting[:, rows.shape[1] :])
        self._labels[self._n_waiting] = kind
        self._n_waiting += 1
        if self._n_waiting == MAX_WAITING:
            self._multiply()

    def forget(self, first: int, R: NDArray, z: NDArray, considered: NDArray | None = None) -> None:
        """Forget the first parameters, as `SquareRootInformation.forget` does; call this before that method.

        Args:
            first: number of parameters to forget.
            R: (k, k) triangular factor of all equations.
            z: (k,) right-hand side.
            considered: (k, c) further right-hand sides; None: there are none.
        """
        self._multiply()
        others = R[:, :0] if considered is None else considered
        rest = np.column_stack([R[:, first:], z, others])[:first]
        T = np.eye(self._grams.shape[-1])
        T[:, :first] = 0.0
        T[:first, first:] = -np.linalg.solve(R[:first, :first], rest)
        used = self._grams[: self._used]
        kept = slice(0, len(z) + 1)
        used[:] = T[kept, kept].T @ used @ T

    def kinds(self) -> tuple[NDArray, NDArray]:
        """Return the sums of each joint in each of at most ten kinds, and the weights of these sums.

        Returns:
            Sums (K, n, k + 1, k + 1 + c) of [A b]ᵀ [A b C], where C are the further right-hand sides, and sums (K, n)
            of the weights of the equations.
        """
        self._level()
        used = slice(0, self._used)
        counts = self._counts[used].copy()
        middles = self._middles[used].copy()
        grams = self._grams[used].copy()
        weights = self._weights[used].copy()
        while len(counts) > MAX_KINDS:
            one, other, _ = _closest(counts, middles / self._scale)
            _merge(one, other, counts, middles, grams, weights)
            counts, middles, grams, weights = (np.delete(x, other, axis=0) for x in (counts, middles, grams, weights))
        return grams, weights

    def _place(self, state: NDArray) -> int:
        """Return the index of the kind that a state (2 n,) joins, after a merger if the state needs a new kind."""
        if self._used < N_SMALL_KINDS:
            self._used += 1
            if self._used == N_SMALL_KINDS:
                self._nearest = _closest(self._counts + 1e-9, self._middles / self._scale)[2]
            return self._used - 1
        distance = (((self._middles - state) / self._scale) ** 2).sum(axis=1)
        cost = distance * self._counts / (self._counts + 1.0)
        kind = int(cost.argmin())
        if cost[kind] <= self._nearest:
            return kind
        one, other, self._nearest = _closest(self._counts, self._middles / self._scale)
        if cost[kind] <= self._nearest:
            return kind
        _merge(one, other, self._counts, self._middles, self._grams, self._weights)
        labels = self._labels[: self._n_waiting]
        labels[labels == other] = one
        self._counts[other] = self._middles[other] = self._grams[other] = self._weights[other] = 0.0
        return other

    def _multiply(self) -> None:
        """Add the waiting equations to the sums of their kinds."""
        labels = self._labels[: self._n_waiting]
        size = self._grams.shape[2]
        for kind in set(labels.tolist()):
            rows = self._waiting[: self._n_waiting][labels == kind].transpose(1, 0, 2)
            self._grams[kind] += rows[:, :, :size].transpose(0, 2, 1) @ rows
        self._n_waiting = 0

    def _level(self) -> None:
        """Apply the common factor of forgetting to all sums."""
        self._multiply()
        self._grams *= self._kept
        self._weights *= self._kept
        self._kept = 1.0


def _merge(one: int, other: int, counts: NDArray, middles: NDArray, *sums: NDArray) -> None:
    """Add one kind to another in place."""
    total = counts[one] + counts[other]
    middles[one] = (counts[one] * middles[one] + counts[other] * middles[other]) / total
    counts[one] = total
    for values in sums:
        values[one] += values[other]


def _closest(counts: NDArray, middles: NDArray) -> tuple[int, int, float]:
    """Return the two kinds whose merger adds least to the sum of squares, and the added sum."""
    squares = (middles**2).sum(axis=1)
    distance = np.maximum(squares[:, None] + squares - 2.0 * middles @ middles.T, 0.0)
    cost = distance * counts[:, None] * counts / (counts[:, None] + counts)
    cost[np.diag_indices(len(counts))] = np.inf
    one, other = divmod(int(cost.argmin()), len(counts))
    return one, other, float(cost[one, other])


MAX_STANDARD_ERROR = 100.0
"""Standard error, in SI units, above which a parameter counts as undetermined: 100 kg, 100 kg m."""

INITIAL_DOF = 4.0
"""Weight of the stated noise of each joint, as a number of equations."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OnlineEstimate(BaseEstimate):
    """Estimate of the parameters at one time; undetermined `values` are NaN.

    The covariance allows for residuals that are correlated wherever the motion is similar (`estimation.covariance`),
    for wrong gains of the torque sensors, and for the errors of the arm's model.

    Attributes:
        robot: the arm.
        time: time of the last equation, s.
        solution: (k,) solution of the equations, which has a number for undetermined parameters too.
        inflation: (k,) variances from the residuals, relative to those for white unit noise.
        condition_number: condition number of the equations with unit columns, within the determined space.
        n_equations: number of equations of each joint since the start or the last change of the load.
        residual_rms: (n,) RMS innovation after the low-pass, N m.
        signal_rms: (n,) RMS of the fitted signal, N m.
        rows: equations of the arm, which name the parameters.
        factor: triangular factor (k, k) and right-hand side (k,) of the equations.
    """

    robot: RobotModel
    time: float
    solution: NDArray
    inflation: NDArray
    condition_number: float
    n_equations: int
    residual_rms: NDArray
    signal_rms: NDArray
    rows: LoadRows | LinkRows
    factor: tuple[NDArray, NDArray]

    @property
    def decided(self) -> NDArray:
        """Mask (k,) of the parameters that the equations determine."""
        return np.isfinite(self.values)

    @property
    def rank(self) -> int:
        """Number of parameters that the equations determine."""
        return int(np.sum(self.decided))

    def load(self) -> LoadResult:
        """Return the result of a load identification, which has the parameters of a physically consistent body too.

        Raises:
            IdentificationError: links are estimated, not a load.
        """
        if not isinstance(self.rows, LoadRows):
            raise IdentificationError("this estimate is of the links; estimate a load with target='load'")
        return LoadResult(
            robot=self.robot,
            estimate=self,
            solution=self.solution,
            condition_number=self.condition_number if self.decided.all() else np.inf,
            channels=self.robot.joint_names,
            residual_rms=self.residual_rms,
            signal_rms=self.signal_rms,
            n_samples=self.n_equations,
            sources=("on-line",),
            settings={"method": "online", "time": float(self.time)},
        )

    def consistent_links(self, weight: float = 1.0) -> ConsistentFit:
        """Return physically consistent parameters of all links, by least squares with an entropic prior at the URDF.

        Args:
            weight: weight of the prior, relative to the cost of the equations in units of the estimated noise.

        Raises:
            IdentificationError: a load is estimated, not the links; or the problem is not solvable with this weight.
        """
        if not isinstance(self.rows, LinkRows):
            raise IdentificationError("this estimate is of a load; see load()")
        prior, _ = possible_prior(self.robot.parameters, self.robot.link_names)
        R, z = self.factor
        noise = np.sqrt(np.nanmedian(self.inflation)) if np.isfinite(self.inflation).any() else 1.0
        matrix = R @ self.rows.base.combinations
        return ConsistentProblem(matrix / noise, z / noise, prior, link_names=self.robot.link_names).solve(weight)


def online_estimate(
    robot: RobotModel,
    rows: LoadRows | LinkRows,
    state: SquareRootInformation,
    kinds: KindSums,
    *,
    gain_error: float,
    time: float,
    n_equations: int,
    residual_rms: NDArray,
    signal_rms: NDArray,
) -> OnlineEstimate:
    """Return the solution of the equations of `state`, with errors from the residuals in `kinds` of motion."""
    R, z = state.factor
    solution = state.solution
    half = np.linalg.solve(R, np.eye(state.size))
    systematic = systematic_errors(rows, gain_error)
    random, white, dof = _residual_covariance(kinds, solution, None if rows.known is None else systematic)
    with np.errstate(divide="ignore", invalid="ignore"):
        inflation = np.diag(random) / white
        # `state` and `kinds` forget old equations differently: scale the errors to the information of `state`.
        scale = np.nan_to_num(np.linalg.norm(half, axis=1) / np.sqrt(white), posinf=0.0)
        random = random * np.outer(scale, scale)
        # At least the stated noise counts here: residuals of zero do not make an undetermined parameter determined.
        undetermined = ~(np.linalg.norm(half, axis=1) * np.sqrt(np.maximum(inflation, 1.0)) < MAX_STANDARD_ERROR)
        shifts = state.responses @ systematic
        covariance = random + shifts @ shifts.T
        # Systematic errors are known exactly: only the share of the random variance is uncertain (Satterthwaite).
        dof = np.minimum(dof * np.nan_to_num(np.diag(covariance) / np.diag(random), nan=1.0) ** 2, MAX_DOF)
    nominal = np.full(state.size, np.nan)
    if isinstance(rows, LinkRows):
        inertial = np.arange(len(rows.base.names)) < robot.parameters.size
        padded = np.zeros(len(rows.base.names))
        padded[inertial] = robot.parameters
        nominal[: rows.n_inertial] = rows.base.project(padded)[: rows.n_inertial]
    return OnlineEstimate(
        names=rows.names,
        expressions=rows.names,
        values=np.where(undetermined, np.nan, solution),
        covariance=covariance,
        nominal=nominal,
        dof=np.maximum(dof, 1.0),
        robot=robot,
        time=time,
        solution=solution,
        inflation=inflation,
        condition_number=state.decomposition().condition_number,
        n_equations=n_equations,
        residual_rms=residual_rms,
        signal_rms=signal_rms,
        rows=rows,
        factor=(R, z),
    )


def _residual_covariance(
    kinds: KindSums, solution: NDArray, systematic: NDArray | None
) -> tuple[NDArray, NDArray, NDArray]:
    """Return the covariance (k, k) from the residuals, variances (k,) for white unit noise, and dof (k,)."""
    sums, weights = kinds.kinds()
    size = len(solution)
    equations = sums[..., : size + 1]
    whole = equations.sum(axis=0)
    half = half_inverse(whole[:, :-1, :-1].sum(axis=0))
    taken = np.einsum("kr,njk,jr->n", half, whole[:, :-1, :-1], half)
    signed = np.append(solution, -1.0)
    squares = np.maximum(signed @ whole @ signed, 0.0)
    noise = (squares + INITIAL_DOF) / (np.maximum(weights.sum(axis=0) - taken, 0.0) + INITIAL_DOF)
    grams = [(j, gram[:-1, :-1], gram[:-1, -1]) for kind in equations for j, gram in enumerate(kind)]
    errors = None
    if systematic is not None:
        errors = list((sums[..., :-1, size + 1 :] @ systematic).reshape(len(grams), size, -1))
    covariance, dof = clustered_covariance(grams, noise, solution, errors)
    return covariance, np.sum(half**2, axis=1), dof


def systematic_errors(rows: LoadRows | LinkRows, gain_error: float) -> NDArray:
    """Return the coefficients (c, m) of the columns of `OnlineRows.considered`, for m independent unit errors.

    The errors are those of the arm's model and of the gains. The arm's model was identified with the same gains, so an
    error of a gain shifts its parameters too.
    """
    known = rows.known
    n = len(rows.stiction)
    gains = gain_error * np.eye(n)
    if known is None or known.covariance is None:
        return gains
    of_arm = covariance_root(known.covariance)
    shifts = np.zeros((len(of_arm), n)) if known.gain_shifts is None else -gain_error * known.gain_shifts.T
    return np.block([[of_arm, shifts], [np.zeros((n, len(of_arm))), gains]])
