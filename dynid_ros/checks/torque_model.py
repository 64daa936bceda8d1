"""Linear torque model of an arm and its drives, fitted to low-passed samples: many hypotheses a second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from dynid_ros.checks.motion_samples import MotionSamples

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

SYSTEMATIC_ERROR = 0.005
"""Errors of sensors and geometry that parameters cannot explain, as a fraction of the arm's largest torque."""
FIRST_NOISE = 0.1
"""Noise of each joint before the first fit, as a fraction of its torque."""
N_REWEIGHTINGS = 4
MAX_TOGETHER = 16
"""Largest number of hypotheses whose normal equations are held in memory together."""
MIN_ROWS = 30
"""Smallest number of moving samples for a joint to be judged."""
RIDGE = 1e-8
"""Ridge of the normal equations with unit columns: parameters without effect stay zero."""
MIN_COLUMN = 1e-12
"""Smallest column with an effect, as a fraction of the largest; smaller ones are rounding errors."""
MAX_PARAMETER = 1e6
"""Largest plausible inertial parameter, kg, kg m or kg m²."""
GENERIC_GRAVITY = (3.1, -4.7, -7.9)
"""Gravity along a direction that is special to no arm, m/s²."""


@dataclass(frozen=True, eq=False)
class TorqueTerms:
    """Columns of a torque model at M samples, and the torques of n joints that they explain.

    Attributes:
        rigid: (M, n, p) columns of parameters of any sign, which the joints share.
        drive: (M, n, k) columns of each joint's own coefficients, which are not negative: friction brakes, rotors have
            mass.
        moving: (M, n) mask of the rows to use.
        torque: (M, n) torques, N m (N).
        prismatic: (n,) mask of the prismatic joints.
    """

    rigid: NDArray
    drive: NDArray
    moving: NDArray
    torque: NDArray
    prismatic: NDArray

    @cached_property
    def equations(self) -> TorqueEquations:
        """Normal equations."""
        return TorqueEquations(self)

    @cached_property
    def fit(self) -> TorqueFit:
        """Least-squares fit."""
        return self.equations.fit()

    def with_rigid(self, columns: NDArray) -> TorqueTerms:
        """Append columns (M, n, c) of shared parameters."""
        return replace(self, rigid=np.concatenate([self.rigid, columns], axis=2))

    def with_drive(self, columns: NDArray) -> TorqueTerms:
        """Append columns (M, n, c) of each joint's own coefficients."""
        return replace(self, drive=np.concatenate([self.drive, columns], axis=2))

    def rows(self, rows: NDArray) -> TorqueTerms:
        """Select samples, by a mask or by their indices."""
        return replace(
            self, rigid=self.rigid[rows], drive=self.drive[rows], moving=self.moving[rows], torque=self.torque[rows]
        )


def own_columns(values: NDArray) -> NDArray:
    """Return columns (M, n, n k) from values (M, n, k) whose coefficients each joint has for itself."""
    m, n, k = values.shape
    columns = np.zeros((m, n, n, k))
    columns[:, range(n), range(n)] = values
    return columns.reshape(m, n, n * k)


@dataclass(frozen=True, eq=False)
class TorqueFit:
    """Result of fitting a hypothesis.

    Attributes:
        rms: (n,) RMS residual, N m; NaN for a joint that is not judged.
        misfits: (n,) half the negative log likelihood per sample of each joint, less that of a constant torque:
            log(rms / variation of the torque), both bounded below by systematic errors. Hypotheses that use other rows,
            or other channels in them, can thus be compared. 0 for a joint that is not judged.
        rigid: (p,) shared parameters.
        offset: (n,) offsets, N m.
        drive: (n, k) coefficients of the drives.
    """

    rms: NDArray
    misfits: NDArray
    rigid: NDArray
    offset: NDArray
    drive: NDArray

    @property
    def misfit(self) -> float:
        """Sum of the misfits of all joints."""
        return float(np.sum(self.misfits))

    def shared_gain(self, other: TorqueFit) -> float:
        """Return the gain of the joint with the second largest gain by the other fit.

        A hypothesis about time must show in more than one joint, whereas friction that the model lacks is one joint's.
        """
        return float(np.sort(self.misfits - other.misfits)[-2]) if len(self.misfits) > 1 else -np.inf


class TorqueEquations:
    """Normal equations of torque = rigid + offset + drive, per joint, for every torque channel in every joint's place.

    Attributes:
        count: (n,) number of rows of each joint.
        size: (n,) standard deviation of each torque channel, N m.
        floor: (n,) systematic error of each joint's torque, N m.
    """

    def __init__(self, terms: TorqueTerms):
        n = terms.torque.shape[1]
        n_rigid = terms.rigid.shape[2]
        k = terms.drive.shape[2]
        size = n_rigid + n + n * k
        self.n = n
        self.n_rigid = n_rigid
        self.count = terms.moving.sum(axis=0)
        self.normal = np.zeros((n, size, size))
        # A reference to `terms`, which keep these equations, would delay the release of both.
        self._moving = terms.moving
        self._prismatic = terms.prismatic
        self._columns = []
        self._places = []
        for j, moving in enumerate(terms.moving.T):
            offset = np.ones((len(moving), 1))
            columns = np.concatenate([terms.rigid[:, j], offset, terms.drive[:, j]], axis=1)[moving]
            drive = n_rigid + n + j * k
            places = np.r_[0:n_rigid, n_rigid + j, drive : drive + k]
            self.normal[j][places[:, None], places] = columns.T @ columns
            self._columns.append(columns)
            self._places.append(places)
        self._set_torque(terms.torque)

    def scaled(self, scales: NDArray) -> TorqueEquations:
        """Return the same equations for the torques times scales (n,)."""
        other = copy(self)
        other.right = self.right * scales[:, None]
        other.square = self.square * scales**2
        other._set_size(self.size * np.abs(scales))
        return other

    def explaining(self, torque: NDArray) -> TorqueEquations:
        """Return the same equations for other torques (M, n)."""
        other = copy(self)
        other._set_torque(torque)
        return other

    def arranged(self, channels: ArrayLike, signs: ArrayLike) -> TorqueEquations:
        """Return the same equations with torque channel `channels[j]` times `signs[j]` as the torque of joint j."""
        order = np.asarray(channels)
        other = copy(self)
        other.right = self.right[:, order] * np.asarray(signs)[:, None]
        other.square = self.square[:, order]
        other.size = self.size[order]
        return other

    def _set_torque(self, torque: NDArray) -> None:
        self.right = np.zeros((self.n, self.n, self.normal.shape[1]))
        for j, (columns, places) in enumerate(zip(self._columns, self._places, strict=True)):
            self.right[j][:, places] = torque[self._moving[:, j]].T @ columns
        self.square = self._moving.T.astype(float) @ torque**2
        self._set_size(torque.std(axis=0))

    def _set_size(self, size: NDArray) -> None:
        self.size = size
        self.floor = self._floor(size[None])[0]

    def _floor(self, size: NDArray) -> NDArray:
        """Return the systematic errors (H, n) of torques with standard deviations (H, n)."""
        kinds = self._prismatic
        same = np.equal(kinds[:, None], kinds)
        largest = np.max(np.where(same, size[:, None, :], 0.0), axis=2)
        return np.maximum(SYSTEMATIC_ERROR * largest, np.finfo(float).tiny)

    @property
    def judged(self) -> NDArray:
        """Indices of the joints with enough moving samples."""
        return np.flatnonzero(self.count >= MIN_ROWS)

    def fit(self) -> TorqueFit:
        """Fit the torques as recorded.

        Each joint has a separate noise, estimated together with the parameters by iterative reweighting.
        """
        return fit_together([self])[0]

    def scale_gains(self, scales: NDArray) -> NDArray:
        """Return the decreases (H,) of the misfit if the torques are multiplied by scales (H, n).

        The allowed systematic error is a fraction of the largest torque. It must be equal in both fits; otherwise a
        smaller torque of the largest joint would seem to improve the fit of all others. The recorded torques therefore
        use the error of the scaled torques, divided by the scales.
        """
        scaled = [self.scaled(one) for one in scales]
        recorded = [copy(self) for _ in scales]
        for one, other, factors in zip(recorded, scaled, scales, strict=True):
            one.floor = other.floor / factors
        misfits = np.array([fit.misfit for fit in fit_together([*recorded, *scaled])])
        return np.subtract(*np.split(misfits, 2))

    def own_rms(self) -> NDArray:
        """Return the RMS residuals (n,) if each joint had separate parameters, N m."""
        rms = np.full(self.n, np.nan)
        for j in self.judged:
            solution = _solve(self.normal[j][None], self.right[j, j][None], self.n_rigid + self.n)[0]
            rest = self.square[j, j] - 2 * solution @ self.right[j, j] + solution @ self.normal[j] @ solution
            rms[j] = np.sqrt(max(0.0, rest) / self.count[j])
        return rms


def fit_together(equations: Iterable[TorqueEquations]) -> list[TorqueFit]:
    """Fit hypotheses that have the same numbers of joints and columns, some at a time."""
    remaining = iter(equations)
    fits: list[TorqueFit] = []
    while block := list(islice(remaining, MAX_TOGETHER)):
        fits += _fit_block(block)
    return fits


def _fit_block(equations: Sequence[TorqueEquations]) -> list[TorqueFit]:
    """Fit H hypotheses about n joints."""
    first = equations[0]
    n = first.n
    n_free = first.n_rigid + n
    joints = np.arange(n)
    shared = all(one.normal is first.normal for one in equations)
    normal = np.stack([one.normal for one in (equations[:1] if shared else equations)])
    right = np.stack([one.right[joints, joints] for one in equations])
    square = np.stack([one.square[joints, joints] for one in equations])
    size = np.stack([one.size for one in equations])
    floor = np.stack([one.floor for one in equations])
    count = np.stack([one.count for one in equations])
    judged = count >= MIN_ROWS
    count = np.maximum(count, 1)
    variance = (FIRST_NOISE * size) ** 2 + floor**2
    for _ in range(N_REWEIGHTINGS):
        weight = np.where(judged, 1 / variance, 0.0)
        total = (weight[:, None] @ normal.reshape(len(normal), n, -1)).reshape(len(weight), *normal.shape[2:])
        solution = _solve(total, (weight[:, None] @ right)[:, 0], n_free)
        image = (normal @ solution[:, None, :, None])[..., 0] - 2 * right
        rest = square + np.sum(image * solution[:, None], axis=2)
        rms = np.where(judged, np.sqrt(np.maximum(0.0, rest) / count), np.nan)
        variance = np.where(judged, rms**2 + floor**2, variance)
    rigid, offset, drive = np.split(solution, [n_free - n, n_free], axis=1)
    mean = right[:, joints, n_free - n + joints] / count
    variation = np.maximum(square / count - mean**2, 0.0) + floor**2
    misfits = np.where(judged, 0.5 * np.log(variance / variation), 0.0)
    fits = zip(rms, misfits, rigid, offset, drive.reshape(len(drive), n, -1), strict=True)
    return [TorqueFit(*values) for values in fits]


def _solve(normal: NDArray, right: NDArray, n_free: int) -> NDArray:
    """Solve normal equations (H, s, s), (H, s) by least squares, with coefficients >= 0 after the free ones."""
    scale = np.sqrt(np.einsum("hss->hs", normal))
    scale[scale <= MIN_COLUMN * scale.max(axis=1, keepdims=True)] = 1.0
    normal = normal / (scale[:, :, None] * scale[:, None, :])
    np.einsum("hss->hs", normal)[:] += RIDGE
    right = right / scale
    free = slice(n_free)
    drive = slice(n_free, None)
    across = normal[:, free, drive]
    eliminated = np.linalg.solve(normal[:, free, free], np.concatenate([across, right[:, free, None]], axis=2))
    back = np.swapaxes(across, 1, 2) @ eliminated
    inner = normal[:, drive, drive] - back[:, :, :-1]
    np.einsum("hss->hs", inner)[:] += 10 * RIDGE  # rounding errors may make it indefinite
    root = np.linalg.cholesky(inner)
    target = np.linalg.solve(root, right[:, drive, None] - back[:, :, -1:])[:, :, 0]
    bounded = np.array([nnls(matrix.T, values)[0] for matrix, values in zip(root, target, strict=True)])
    rigid = eliminated[:, :, -1] - (eliminated[:, :, :-1] @ bounded[:, :, None])[:, :, 0]
    return np.concatenate([rigid, bounded], axis=1) / scale


class TorqueModel:
    """Linear model of an arm and its drives: base parameters, friction, rotors.

    Args:
        robot: robot model.
        braking: whether friction can only brake; False where the recording shows that apparent friction pushes.

    Attributes:
        columns: (p,) inertial parameters whose columns contain everything that torques determine, whatever the
            direction of gravity.
    """

    def __init__(self, robot: RobotModel, braking: bool = True):
        self.robot = robot
        self._braking = braking
        self._falling: NDArray | None = None
        self.columns = self._with_gravity(GENERIC_GRAVITY).base_parameters().columns

    def falling(self, joints: NDArray) -> TorqueModel:
        """Return the same model, except that the torque of these joints (n,) may fall with speed."""
        other = copy(self)
        other._falling = joints
        return other

    def terms(
        self, samples: MotionSamples, order: ArrayLike | None = None, factors: ArrayLike | None = None
    ) -> TorqueTerms:
        """Return the terms with position channel `order[j]` times `factors[j]` as the position of joint j.

        Without `order` and `factors` the positions are as recorded.
        """
        channels = np.arange(self.robot.n_joints) if order is None else np.asarray(order)
        scale = np.ones(len(channels)) if factors is None else np.asarray(factors)
        position = samples.position[:, channels] * scale
        velocity = samples.velocity[:, channels] * scale
        acceleration = samples.acceleration[:, channels] * scale
        direction = samples.direction[:, channels] * scale
        rigid = self.robot.torque_regressor(position, velocity, acceleration)[:, :, self.columns]
        drive = [direction, velocity, acceleration]
        if not self._braking:
            drive += [-direction, -velocity]
        if self._falling is not None:
            drive.append(-velocity * self._falling[channels])
        moving = samples.moving[:, channels]
        return TorqueTerms(rigid, np.stack(drive, axis=2), moving, samples.torque, self.robot.chain.prismatic)

    def weightless_columns(self, samples: MotionSamples) -> NDArray:
        """Return the rigid columns (M, n, p) without gravity."""
        motion = samples.position, samples.velocity, samples.acceleration
        return self._with_gravity(np.zeros(3)).torque_regressor(*motion)[:, :, self.columns]

    def gravity_columns(self, samples: MotionSamples) -> NDArray:
        """Return the rigid columns (3, M, n, p) at rest for gravity of 1 m/s² along x, y and z of the base."""
        return np.array(
            [self._with_gravity(axis).gravity_regressor(samples.position)[:, :, self.columns] for axis in np.eye(3)]
        )

    def plausible_parameters(self, rigid: NDArray) -> NDArray:
        """Return inertial parameters (10 n,) with the same torques as estimated coefficients (p,).

        If few joints move, columns that differ by rounding errors only have arbitrarily large coefficients. They are
        omitted.
        """
        parameters = np.zeros(self.robot.parameters.size)
        parameters[self.columns] = np.where(np.abs(rigid) < MAX_PARAMETER, rigid, 0.0)
        return parameters

    def _with_gravity(self, gravity: ArrayLike) -> RobotModel:
        robot = self.robot
        return type(robot)(robot.chain, robot.parameters, gravity, robot.urdf, robot.posture)


class TorqueProblem:
    """Torque model of a recording and its fit, built once for all checks.

    Args:
        model: linear torque model.
        samples: samples of the motion.

    Attributes:
        terms: columns of the model at the samples.
    """

    def __init__(self, model: TorqueModel, samples: MotionSamples):
        self.model = model
        self.samples = samples
        self.robot = model.robot
        self.terms = model.terms(samples)

    @property
    def equations(self) -> TorqueEquations:
        """Normal equations of the model."""
        return self.terms.equations

    @property
    def fit(self) -> TorqueFit:
        """Least-squares fit of the model."""
        return self.terms.fit

    @cached_property
    def presliding(self) -> TorqueProblem:
        """Problem with additional presliding friction, which the model lacks."""
        problem = copy(self)
        problem.terms = with_presliding(self.terms, self.samples)
        return problem


def with_presliding(
    terms: TorqueTerms, samples: MotionSamples, order: ArrayLike | None = None, factors: ArrayLike | None = None
) -> TorqueTerms:
    """Append presliding friction of each joint, friction that comes later, and friction that differs by direction.

    Args:
        terms: columns of the torque model.
        samples: samples of the motion.
        order: (n,) position channel of each joint; None: its own.
        factors: (n,) factors of the positions; None: ones.
    """
    channels = slice(None) if order is None else np.asarray(order)
    scale = 1.0 if factors is None else np.asarray(factors)[:, None]
    built_up, own = samples.presliding
    own = np.concatenate([own[:, channels, :1] * scale, own[:, channels, 1:]], axis=2)
    return terms.with_rigid(own_columns(own)).with_drive(built_up[:, channels] * scale)
