"""Linear torque models held against a few hundred low-passed samples: least squares, many hypotheses a second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline
from scipy.optimize import nnls

from dynid_ros.errors import RecordingError
from dynid_ros.recording.recording import Recording, practically_zero
from dynid_ros.signals import LowPass, Resampled, choose_cutoff, filtered_motion, fresh_times, resample

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel


MAX_SAMPLES = 800
"""Number of samples that suffices to prefer one hypothesis to another."""
SHARE = 0.99
"""Part of the acceleration that the low-pass of the positions keeps: more lets noise in."""
CUTOFFS = (0.5, 12.0)
"""Bounds of its cut-off, Hz: arms are not excited beyond."""
WIDER = 3.0
"""Torques hold products of motions: their cut-off is so many times higher."""
FASTEST = 0.2
"""Highest cut-off of the positions, in parts of the rate."""
REVERSAL = 0.005
"""Speed within which friction reverses, rad/s or m/s."""
PRESLIDING_DISTANCES = (0.003, 0.02)
"""Distances over which friction may build up after a reversal, rad or m."""
FRICTION_STEP_S = 0.01
"""Friction is followed at steps of this time, s."""
ROUNDING = 1e-9
RESTING = (0.001, 0.02)
"""A joint rests below this speed, rad/s or m/s, and below this part of its highest."""


GAIN_ERROR = 0.02
"""Standard deviation of the relative error of a joint's torque gain."""
DELAY_ERROR_S = 0.004
"""Standard deviation of the delay of the torques: filters in the drives of sound recordings make up to 7 ms."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Samples without a gap at a uniform rate, of one recording; rows of its arrays are (N, n).

    Attributes:
        part: which recording.
        time: (N,) s.
        position, velocity, acceleration: low-passed.
        torque, direction: low-passed less; direction is the sign of the velocity.
        kept: the samples to use, without the ends that the low-pass spoils.
    """

    part: int
    time: NDArray
    position: NDArray
    velocity: NDArray
    acceleration: NDArray
    torque: NDArray
    direction: NDArray
    kept: slice


class MotionSamples:
    """M samples of n joints from all stretches.

    Attributes:
        uniform: the recordings that they come from, by their index; values are positions and torques (N, 2 n).
        stretches: of them, low-passed.
        bandwidth: cut-off of the positions, Hz.
        time: (M,) on the clock of each recording, s.
        part: (M,) which recording.
        position, velocity, acceleration, torque, direction: (M, n); see `Stretch`. A torque that was not recorded is 0.
        alive: (M, n) True where the torque is neither missing nor a constant.
        moving: (M, n) True where it is alive and friction is not that of rest.
    """

    def __init__(self, uniform: Mapping[int, Resampled], stretches: Sequence[Stretch], bandwidth: float):
        self.uniform = uniform
        self.stretches = tuple(stretches)
        self.bandwidth = bandwidth
        self.time = self._kept("time")
        self.part = np.repeat([s.part for s in stretches], [len(s.time[s.kept]) for s in stretches])
        self.position, self.velocity, self.acceleration, self.torque, self.direction = (
            self._kept(name) for name in ("position", "velocity", "acceleration", "torque", "direction")
        )
        speed = np.abs(self.velocity)
        alive = {part: _alive(recording) for part, recording in uniform.items()}
        self.alive = np.array([alive[part] for part in self.part])
        self.moving = self.alive & (speed > np.maximum(RESTING[0], RESTING[1] * speed.max(axis=0)))

    def __len__(self) -> int:
        return len(self.time)

    def thinned(self, limit: int) -> MotionSamples:
        """About `limit` of them at most, evenly."""
        factor = -(-len(self) // limit)
        stretches = [replace(s, kept=slice(s.kept.start, s.kept.stop, s.kept.step * factor)) for s in self.stretches]
        return MotionSamples(self.uniform, stretches, self.bandwidth)

    def wide(self, rate: float) -> LowPass:
        """The low-pass of torques and directions at this rate, Hz."""
        return _low_passes(self.bandwidth, rate)[1]

    def delayed_torque(self, lag: float) -> NDArray:
        """(M, n) torque `lag` s later."""
        return np.concatenate(
            [
                spline(np.clip(s.time[s.kept] + lag, s.time[0], s.time[-1]))
                for s, spline in zip(self.stretches, self._splines, strict=True)
            ]
        )

    def disturbed_torques(self) -> list[NDArray]:
        """Return torques (M, n) with one systematic error each: of the gain of a joint, or of a common delay."""
        joints = np.arange(self.torque.shape[1])
        gains = [np.where(joints == j, 1.0 + GAIN_ERROR, 1.0) for j in joints]
        return [*(self.torque * gain for gain in gains), self.delayed_torque(DELAY_ERROR_S)]

    def shifted(self, values: NDArray, lag: float) -> NDArray:
        """(M, n) from values (M, n) at these samples: `lag` s later, linearly in between."""
        return np.concatenate(
            [
                np.column_stack([np.interp(time + lag, time, column) for column in part.T])
                for time, part in self.by_stretch(values)
            ]
        )

    def by_stretch(self, values: NDArray) -> Iterator[tuple[NDArray, NDArray]]:
        """Times (K,) of the samples of each stretch, s, and what belongs to them of values (M, …)."""
        first = 0
        for s in self.stretches:
            time = s.time[s.kept]
            yield time, values[first : first + len(time)]
            first += len(time)

    @cached_property
    def presliding(self) -> tuple[NDArray, NDArray]:
        """Friction that the model lacks: presliding friction (M, n, 2), and later friction and speed (M, n, 2)."""
        built_up = np.stack([self._dahl(distance) for distance in PRESLIDING_DISTANCES], axis=2)
        # The derivative of the direction is the change of friction that comes later.
        later = np.concatenate([np.gradient(s.direction, s.time, axis=0)[s.kept] for s in self.stretches])
        return built_up, np.stack([later, np.abs(self.velocity)], axis=2)

    def _dahl(self, distance: float) -> NDArray:
        """Return Dahl's friction (M, n) of unit size, low-passed as the torques are."""
        parts = []
        for stretch in self.stretches:
            step = float(stretch.time[1] - stretch.time[0])
            every = max(1, round(FRICTION_STEP_S / step))
            moves = np.diff(stretch.position[::every], axis=0, prepend=stretch.position[:1])
            direction, forget = np.sign(moves), np.exp(-np.abs(moves) / distance)
            friction = np.zeros_like(moves)
            now = np.zeros(moves.shape[1])
            for k in range(len(moves)):
                now = direction[k] + (now - direction[k]) * forget[k]
                friction[k] = now
            even = np.column_stack([np.interp(stretch.time, stretch.time[::every], column) for column in friction.T])
            parts.append(self.wide(1 / step).filter(even)[stretch.kept])
        return np.concatenate(parts)

    @cached_property
    def _splines(self) -> list[CubicSpline]:
        return [CubicSpline(s.time, s.torque) for s in self.stretches]

    def _kept(self, name: str) -> NDArray:
        return np.concatenate([getattr(s, name)[s.kept] for s in self.stretches])


def motion_samples(recordings: Sequence[Recording]) -> MotionSamples | None:
    """Samples of all recordings in which something moves; None if nothing does.

    Positions are low-passed to the band of the motion, torques and the directions of friction to a wider one, all
    without phase. Recordings share the filters.
    """
    uniform: dict[int, Resampled] = {}
    cutoffs = []
    for i, part in enumerate(recordings):
        try:
            uniform[i] = _uniform(part)
            longest = max((s.values for s in uniform[i].segments), key=len)
            cutoffs.append(choose_cutoff(longest[:, : part.n_joints], uniform[i].rate, SHARE).low_pass.cutoff)
        except RecordingError:  # too short, or nothing moves
            uniform.pop(i, None)
    if not uniform:
        return None
    cutoff = float(np.clip(max(cutoffs), *CUTOFFS))
    stretches = [stretch for i, part in uniform.items() for stretch in _stretches(i, part, cutoff)]
    return MotionSamples(uniform, stretches, cutoff) if stretches else None


def _uniform(recording: Recording) -> Resampled:
    """Resample positions and torques (N, 2 n) to a uniform grid; a torque that was not measured is 0.

    Raises:
        RecordingError: too few samples without a gap.
    """
    measured = np.isfinite(recording.torque).any(axis=0) & ~practically_zero(recording.torque)
    torque = np.where(measured, recording.torque, 0.0)
    values = np.hstack([recording.position, torque])
    time, fresh = fresh_times(recording.time, recording.position, values)
    return resample(time[fresh], values[fresh])


def _alive(uniform: Resampled) -> NDArray:
    """(n,) False for torques that are constant, but for the rounding of splines."""
    torque = np.concatenate([np.hsplit(segment.values, 2)[1] for segment in uniform.segments])
    return np.ptp(torque, axis=0) > ROUNDING * np.abs(torque).max(axis=0)


def _stretches(part: int, uniform: Resampled, cutoff: float) -> Iterator[Stretch]:
    narrow, wide = _low_passes(cutoff, uniform.rate)
    for segment in uniform.segments:
        try:
            kept = narrow.kept(len(segment.time))
        except RecordingError:
            continue
        n = segment.values.shape[1] // 2
        motion = filtered_motion(segment.values[:, :n], narrow)
        direction = np.tanh(motion.velocity / REVERSAL)
        torque, direction = np.split(wide.filter(np.hstack([segment.values[:, n:], direction])), 2, axis=1)
        kept = slice(kept.start, kept.stop, wide.decimation)
        yield Stretch(part, segment.time, *motion, torque, direction, kept)


def _low_passes(cutoff: float, rate: float) -> tuple[LowPass, LowPass]:
    """Those of the positions and of the torques."""
    narrow = LowPass(min(cutoff, FASTEST * rate), rate)
    return narrow, LowPass(min(WIDER * narrow.cutoff, 2 * FASTEST * rate), rate)


SYSTEMATIC = 0.005
"""Errors of sensors and geometry that no parameter accounts for, as a part of the arm's largest torque."""
FIRST_GUESS = 0.1
"""Noise of each joint before the first fit, as a part of its torque."""
ROUNDS = 4
ENOUGH_ROWS = 30
"""A joint with fewer moving samples is not judged."""
RIDGE = 1e-8
"""Added to the normal equations with unit columns: parameters without effect stay zero."""
NOTHING = 1e-12
"""Columns smaller than this part of the largest are rounding."""
MAX_PARAMETER = 1e6
"""Largest plausible inertial parameter, kg, kg m or kg m²."""
GENERIC_GRAVITY = (3.1, -4.7, -7.9)


@dataclass(frozen=True, eq=False)
class Terms:
    """Columns of a torque model.

    Attributes:
        rigid: (M, n, p) for parameters of any sign, shared by the joints.
        drive: (M, n, k) for coefficients that are not negative, each joint its own: friction brakes, rotors have mass.
        moving: (M, n) rows to use.
    """

    rigid: NDArray
    drive: NDArray
    moving: NDArray


def with_presliding(
    terms: Terms, samples: MotionSamples, order: ArrayLike | None = None, signs: ArrayLike | None = None
) -> Terms:
    """Return the terms with presliding friction of each joint, friction that comes later, and by direction.

    Args:
        terms: regressors of the torque model.
        samples: samples of the motion.
        order: (n,) position channel of each joint; None: its own.
        signs: (n,) factors of the positions; None: ones.
    """
    order = slice(None) if order is None else np.asarray(order)
    factors = 1.0 if signs is None else np.asarray(signs)[:, None]
    built_up, own = samples.presliding
    own = np.concatenate([own[:, order, :1] * factors, own[:, order, 1:]], axis=2)
    rigid = np.concatenate([terms.rigid, own_columns(own)], axis=2)
    return Terms(rigid, np.concatenate([terms.drive, built_up[:, order] * factors], axis=2), terms.moving)


def own_columns(values: NDArray) -> NDArray:
    """(M, n, n k) from (M, n, k): coefficients that each joint has for itself."""
    m, n, k = values.shape
    columns = np.zeros((m, n, n, k))
    columns[:, range(n), range(n)] = values
    return columns.reshape(m, n, n * k)


@dataclass(frozen=True, eq=False)
class TorqueFit:
    """What a hypothesis leaves.

    Attributes:
        rms: (n,) of the residual, N m; NaN for a joint that is not judged.
        misfits: (n,) half the negative log likelihood per sample of each joint, less that of a constant torque:
            log(rms / variation of the torque), both bounded below by systematic errors. So hypotheses that use other
            rows, or other channels in them, can be compared. 0 for a joint that is not judged.
        offset: (n,) N m.
        drive: (n, k) coefficients of the drive.
        rigid: (p,) parameters.
    """

    rms: NDArray
    misfits: NDArray
    rigid: NDArray
    offset: NDArray
    drive: NDArray

    @property
    def misfit(self) -> float:
        """Sum over the joints."""
        return float(np.sum(self.misfits))

    def shared_gain(self, other: TorqueFit) -> float:
        """What the joint gains that gains most but one: a hypothesis on time must show in more than one joint.

        Friction that the model lacks is one joint's own.
        """
        return float(np.sort(self.misfits - other.misfits)[-2]) if len(self.misfits) > 1 else -np.inf


class TorqueEquations:
    """Normal equations of torque = rigid + offset + drive, per joint, for every torque channel in every joint's place.

    Args:
        terms: of the model.
        torque: (M, n) N m, one column per channel.
        prismatic: (n,) which joints are.
    """

    def __init__(self, terms: Terms, torque: NDArray, prismatic: NDArray):
        n_rigid, k = terms.rigid.shape[2], terms.drive.shape[2]
        self.n = n = torque.shape[1]
        self._terms, self._prismatic = terms, np.asarray(prismatic)
        size = n_rigid + n + n * k
        self.n_rigid, self.count = n_rigid, terms.moving.sum(axis=0)
        self.normal = np.zeros((n, size, size))
        self._columns = []
        for j in range(n):
            columns = np.zeros((len(torque), size))
            columns[:, :n_rigid] = terms.rigid[:, j]
            columns[:, n_rigid + j] = 1.0
            columns[:, n_rigid + n + j * k : n_rigid + n + (j + 1) * k] = terms.drive[:, j]
            columns = columns[terms.moving[:, j]]
            self.normal[j] = columns.T @ columns
            self._columns.append(columns)
        self._explain(torque)

    def explaining(self, torque: NDArray) -> TorqueEquations:
        """The same model of other torques (M, n)."""
        other = copy(self)
        other._explain(torque)
        return other

    def _explain(self, torque: NDArray) -> None:
        moving = self._terms.moving
        self.right = np.array([(columns.T @ torque[moving[:, j]]).T for j, columns in enumerate(self._columns)])
        self.square = np.array([np.sum(torque[moving[:, j]] ** 2, axis=0) for j in range(self.n)])
        self.size = torque.std(axis=0)
        kinds = self._prismatic
        largest = np.array([np.max(self.size, where=np.equal(kinds, kind), initial=0.0) for kind in kinds])
        self.floor = np.maximum(SYSTEMATIC * largest, np.finfo(float).tiny)

    @property
    def judged(self) -> NDArray:
        """Indices of the joints with enough moving samples."""
        return np.flatnonzero(self.count >= ENOUGH_ROWS)

    def fit(self, channels: ArrayLike | None = None, signs: ArrayLike | None = None) -> TorqueFit:
        """Fit with torque channel `channels[j]` times `signs[j]` as the torque of joint j; None: as it is.

        Each joint has a noise of its own, estimated together with the parameters.
        """
        joints = np.arange(self.n)
        order = joints if channels is None else np.asarray(channels)
        right = self.right[joints, order] * (np.ones(self.n) if signs is None else np.asarray(signs))[:, None]
        square = self.square[joints, order]
        judged, count = self.judged, np.maximum(self.count, 1)
        variance = (FIRST_GUESS * self.size[order]) ** 2 + self.floor**2
        rms = np.full(self.n, np.nan)
        for _ in range(ROUNDS):
            weight = 1 / variance[judged]
            solution = self._solve(np.tensordot(weight, self.normal[judged], 1), weight @ right[judged])
            rest = square - 2 * right @ solution + (self.normal @ solution) @ solution
            rms[judged] = np.sqrt(np.maximum(0.0, rest) / count)[judged]
            variance = np.where(np.isnan(rms), variance, rms**2 + self.floor**2)
        rigid, offset, drive = np.split(solution, [self.n_rigid, self.n_rigid + self.n])
        mean = right[:, self.n_rigid :][joints, joints] / count
        variation = np.maximum(square / count - mean**2, 0.0) + self.floor**2
        misfits = np.where(np.isnan(rms), 0.0, 0.5 * np.log(variance / variation))
        return TorqueFit(rms, misfits, rigid, offset, drive.reshape(self.n, -1))

    def own_rms(self) -> NDArray:
        """(n,) residual if each joint had parameters of its own: what sharing them cannot spoil, N m."""
        rms = np.full(self.n, np.nan)
        for j in self.judged:
            solution = self._solve(self.normal[j], self.right[j, j])
            rest = self.square[j, j] - 2 * solution @ self.right[j, j] + solution @ self.normal[j] @ solution
            rms[j] = np.sqrt(max(0.0, rest) / self.count[j])
        return rms

    def _solve(self, normal: NDArray, right: NDArray) -> NDArray:
        """Least squares from normal equations, the drive's part not negative."""
        scale = np.sqrt(np.diag(normal))
        scale[scale <= NOTHING * scale.max()] = 1.0
        normal = normal / (scale * scale[:, None])
        normal.flat[:: len(scale) + 1] += RIDGE
        right = right / scale
        free, drive = slice(self.n_rigid + self.n), slice(self.n_rigid + self.n, None)
        across = normal[free, drive]
        eliminated = np.linalg.solve(normal[free, free], np.column_stack([across, right[free]]))
        inner = normal[drive, drive] - across.T @ eliminated[:, :-1]
        inner.flat[:: len(inner) + 1] += 10 * RIDGE  # what rounding may take away
        root = np.linalg.cholesky(inner)
        bounded = nnls(root.T, np.linalg.solve(root, right[drive] - across.T @ eliminated[:, -1]))[0]
        return np.concatenate([eliminated[:, -1] - eliminated[:, :-1] @ bounded, bounded]) / scale


class TorqueModel:
    """The linear model of an arm and its drives on samples of motion: base parameters, friction, rotors.

    Args:
        robot: the arm.
        braking: friction can only brake; False where the recording shows that what looks like friction pushes.
    """

    def __init__(self, robot: RobotModel, braking: bool = True):
        self.robot, self._braking = robot, braking
        self._falling: NDArray | None = None
        # Whatever the direction of gravity, these columns hold all that torques can determine.
        self.columns = self._under(GENERIC_GRAVITY).base_parameters().columns

    def falling(self, joints: NDArray) -> TorqueModel:
        """The same model, but that the torque of these joints (n,) may fall with speed."""
        other = copy(self)
        other._falling = joints
        return other

    def _under(self, gravity: ArrayLike) -> RobotModel:
        robot = self.robot
        return type(robot)(robot.chain, robot.parameters, gravity, robot.urdf, robot.posture)

    def terms(self, samples: MotionSamples, joints: ArrayLike | None = None, signs: ArrayLike | None = None) -> Terms:
        """Columns with position channel `joints[j]` times `signs[j]` as the position of joint j; None: as it is."""
        motion = (samples.position, samples.velocity, samples.acceleration, samples.direction)
        order = np.arange(self.robot.n_joints) if joints is None else np.asarray(joints)
        factor = np.ones(len(order)) if signs is None else np.asarray(signs)
        q, qd, qdd, direction = (array[:, order] * factor for array in motion)
        rigid = self.robot.torque_regressor(q, qd, qdd)[:, :, self.columns]
        drive = [direction, qd, qdd] if self._braking else [direction, qd, qdd, -direction, -qd]
        if self._falling is not None:
            drive.append(-qd * self._falling[order])
        return Terms(rigid, np.stack(drive, axis=2), samples.moving[:, order])

    def rigid_without_gravity(self, samples: MotionSamples) -> NDArray:
        """(M, n, p) of the rigid part, weightless."""
        motion = samples.position, samples.velocity, samples.acceleration
        return self._under(np.zeros(3)).torque_regressor(*motion)[:, :, self.columns]

    def rigid_of_gravity(self, samples: MotionSamples) -> NDArray:
        """(3, M, n, p) of the rigid part at rest, for 1 m/s^2 along x, y and z of the base."""
        return np.array(
            [self._under(axis).gravity_regressor(samples.position)[:, :, self.columns] for axis in np.eye(3)]
        )


def plausible_parameters(model: TorqueModel, rigid: NDArray) -> NDArray:
    """Return inertial parameters (10 n,) with the same torques as estimated coefficients (p,) of the model.

    If few joints move, columns that differ by rounding errors only have arbitrarily large coefficients. They are
    omitted.
    """
    parameters = np.zeros(model.robot.parameters.size)
    parameters[model.columns] = np.where(np.abs(rigid) < MAX_PARAMETER, rigid, 0.0)
    return parameters


class TorqueProblem:
    """Torque equations of a recording, which every check of the model shares.

    Args:
        model: linear torque model.
        samples: samples of the motion.

    Attributes:
        terms: regressors of the model at the samples.
    """

    def __init__(self, model: TorqueModel, samples: MotionSamples):
        self.model = model
        self.samples = samples
        self.robot = model.robot
        self.terms = model.terms(samples)

    def equations_with(self, terms: Terms) -> TorqueEquations:
        """Return the normal equations of the recorded torques with other regressors."""
        return TorqueEquations(terms, self.samples.torque, self.robot.chain.prismatic)

    @cached_property
    def equations(self) -> TorqueEquations:
        """Normal equations of the model."""
        return self.equations_with(self.terms)

    @cached_property
    def fit(self) -> TorqueFit:
        """Least-squares fit of the model."""
        return self.equations.fit()

    @cached_property
    def presliding(self) -> TorqueProblem:
        """The same problem with presliding friction, which the model lacks."""
        problem = copy(self)
        for name in ("equations", "fit"):
            problem.__dict__.pop(name, None)
        problem.terms = with_presliding(self.terms, self.samples)
        return problem
