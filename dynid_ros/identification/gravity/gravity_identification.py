"""Gravity parameters from static torques (Ma & Hollerbach 1996), one joint at a time or all at once."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import half_width
from dynid_ros.estimation.least_squares import ROUNDING_RANK_TOLERANCE, decompose, solve, solve_grouped
from dynid_ros.identification.gravity.gravity_result import (
    MAXIMUM_INFLATION,
    MOMENT_LABELS,
    GravityResult,
    describe_observability,
)
from dynid_ros.identification.static_samples import (
    HOLD_TOLERANCE,
    Approaches,
    SampleRules,
    Samples,
    rotations,
    slow_samples,
    static_samples,
    with_known_torque,
)
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.recording import Recording
from dynid_ros.settings import check, part, setting

# How uncertain moments are, where residuals are friction that the model lacks.


ALONE = 1e-6
"""Part of what is left of a combination without an angle that counts as none: that angle alone determines it."""


@dataclass(frozen=True)
class LinearEstimate:
    """x = gain b from b = matrix x + noise; k unknowns, m rows.

    Attributes:
        matrix: (m, k).
        gain: (k, m).
        residual: (m,).
        group: (m,) which noise each row has.
        sigma: (G,) standard deviation of each noise.
    """

    matrix: NDArray
    gain: NDArray
    residual: NDArray
    group: NDArray
    sigma: NDArray

    def dof(self) -> NDArray:
        """(k,) degrees of freedom of each variance: its noises are known by a few rows each (Satterthwaite 1946)."""
        leverage = np.einsum("mk,km->m", self.matrix, self.gain)
        own = np.maximum(np.bincount(self.group, 1 - leverage, len(self.sigma)), 1.0)
        parts = self._squares() * self.sigma**2
        total = parts.sum(axis=1)
        return np.where(total > 0, total**2 / np.maximum((parts**2 / own).sum(axis=1), 1e-300), own.sum())

    def covariance(self, joint: NDArray, angle: NDArray) -> NDArray:
        """(k, k) by leaving out one angle of a joint after the other (jackknife by groups, Efron 1982).

        What friction has that no model holds hangs on the angle of its joint, and stays as long as the joint does. So
        all rows (m,) of a joint at one angle count once. What hangs on a single angle has the errors of noise alone.
        """
        scale = np.linalg.norm(self.matrix, axis=0)
        total = np.zeros((len(scale), len(scale)))
        kinds = _angles(joint, angle)
        count = int(kinds.max()) + 1
        for rows in np.split(np.argsort(kinds, kind="stable"), np.cumsum(np.bincount(kinds))[:-1]):
            gain = self.gain[:, rows] * scale[:, None]
            rest = np.eye(len(scale)) - gain @ (self.matrix[rows] / scale)
            inverse = np.linalg.pinv(rest, ALONE)
            moved = inverse @ (gain @ self.residual[rows])
            alone = (gain - inverse @ (rest @ gain)) * self.sigma[self.group[rows]]
            total += (1 - 1 / count) * np.outer(moved, moved) + alone @ alone.T
        return total / np.outer(scale, scale)

    def _squares(self) -> NDArray:
        return np.array([np.bincount(self.group, row**2, len(self.sigma)) for row in self.gain])


def _angles(joint: NDArray, angle: NDArray) -> NDArray:
    """(m,) number of the joint and angle of each row."""
    found = np.zeros(len(joint), int)
    number = -1
    for j in np.unique(joint):
        first = -np.inf
        rows = np.flatnonzero(joint == j)
        for row in rows[np.argsort(angle[rows])]:
            if angle[row] - first > HOLD_TOLERANCE:
                first, number = angle[row], number + 1
            found[row] = number
    return found


ESTIMATORS = ("global", "recursive")
KINDS = ("static", "slow", "both")
SETTINGS = ("estimator", "torque_offset", "samples", "own_torque_only", "torque_gain_error")


@dataclass
class GravityIdentification:
    """Fits τ_j = Y_j(q) n + offset_j + coulomb_j · direction_j + viscous_j · velocity_j to static (or slow) samples.

    Attributes:
        robot: kinematics and gravity; its inertias are not used.
        estimator: "global" fits all joints at once, each weighted by its own noise; "recursive" goes from tip to base,
            each joint from its own torque while it rotates alone, as in the paper.
        torque_offset: estimate a constant sensor offset per joint; False takes the sensors as zeroed.
        samples: "static" takes dwells, "slow" nearly unaccelerated motion, "both" takes both.
        own_torque_only: the global fit sees, as the paper does, only the torque of the joint that rotates.
        torque_gain_error: standard deviation of the relative error of each joint's torque gain. It moves all moments of
            a joint in proportion, so no residual shows it.
        rules: what counts as static and as slow.
    """

    robot: RobotModel
    estimator: str = setting(
        "global", "global: all torques of all poses at once; recursive: from tip to base", choices=ESTIMATORS
    )
    torque_offset: bool = setting(True, "estimate a constant torque sensor offset per joint; else they are zeroed")
    samples: str = setting("static", "static: dwells; slow: slow motion; both", choices=KINDS)
    own_torque_only: bool = False
    torque_gain_error: float = setting(
        0.01,
        "standard deviation of the relative error of each joint's torque gain, which no residual shows",
        least=0,
        symbol="S",
    )
    rules: SampleRules = part(SampleRules)

    def __post_init__(self) -> None:
        check(self, IdentificationError)

    def fit(self, *recordings: Recording) -> GravityResult:
        """Identify from one or more recordings.

        Raises:
            RecordingError: a joint of the model is not in a recording.
            IdentificationError: too few samples; joints that are not observable are named in the result instead.
        """
        if not recordings:
            raise IdentificationError("fit needs at least one recording")
        try:
            return self.fit_samples(self.extract(*recordings), tuple(recording.source for recording in recordings))
        except IdentificationError as error:
            stretches = 0
            if self.samples == "static":
                with suppress(IdentificationError):
                    stretches = len(replace(self, samples="slow").extract(*recordings))
            if not stretches:
                raise
            raise IdentificationError(
                f"{str(error).rstrip('.')}. But it moves slowly, below {self.rules.slow_velocity:g} per s, in "
                f"{stretches} stretches; to identify from these: --samples slow (node: samples: slow)"
            ) from error

    def extract(self, *recordings: Recording) -> Samples:
        """Static and slow samples of the recordings, joints in the model's order.

        Raises:
            RecordingError: a joint of the model is not in a recording.
            IdentificationError: a recording has no torque, or nothing that counts as a sample.
        """
        parts = []
        for recording in recordings:
            selected = with_known_torque(recording.select(self.robot.joint_names))
            wanted = []
            if self.samples in ("static", "both"):
                wanted.append(static_samples(selected, self.rules))
            if self.samples in ("slow", "both"):
                wanted.append(slow_samples(selected, self.rules))
            parts.append(Samples.join(wanted))
        return Samples.join(parts)

    def fit_samples(self, samples: Samples, sources: Sequence[str] = ()) -> GravityResult:
        """Identify from samples that are already extracted.

        Args:
            samples: joints in the model's order, as `extract` gives them.
            sources: names of what they are from, for the report.

        Raises:
            IdentificationError: too few samples, or none that determines any joint's gravity parameters.
        """
        solution = self._solve(samples)
        problem, seen, dof = solution.problem, solution.covariance(), solution.linear.dof()
        shifts = self.torque_gain_error * solution.gain_shifts()
        covariance = seen + shifts.T @ shifts
        # The error of the gains is known itself, and so leaves the more degrees of freedom (Satterthwaite 1946).
        own, total = np.diag(seen), np.diag(covariance)
        dof = dof * np.divide(total, own, out=np.ones_like(own), where=own > 0) ** 2
        half = half_width(np.sqrt(np.diag(covariance)), dof)
        observability = describe_observability(
            self.robot, problem.gravity, problem.names, (solution.inflation, half), samples
        )
        if not any(state.observable for state in observability.values()):
            reasons = "; ".join(f"{joint}: {state.reason}" for joint, state in observability.items())
            raise IdentificationError(f"These samples determine no joint's gravity parameters: {reasons}")
        determined = decompose(problem.matrix, ROUNDING_RANK_TOLERANCE)
        return GravityResult(
            robot=self.robot,
            gravity=problem.gravity,
            names=problem.names,
            values=solution.values,
            covariance=covariance,
            inflation=solution.inflation,
            determined=determined.right,
            scale=determined.scale,
            condition_number=solution.condition_number,
            dof=dof,
            residual_rms=problem.residual_rms(solution.values),
            noise={name: float(s) for name, s in zip(problem.group_names, solution.linear.sigma, strict=True)},
            observability=observability,
            samples=samples,
            sources=tuple(sources),
            settings={name: getattr(self, name) for name in SETTINGS},
            extract=self.extract,
            remarks=self._disagreements(
                samples, dict(zip(problem.names, zip(solution.values, half, strict=True), strict=True))
            ),
        )

    def _solve(self, samples: Samples) -> "_Solution":
        problem = _Problem(self.robot, samples, self)
        if self.estimator == "recursive":
            return _recursive(problem)
        fit, sigma = solve_grouped(problem.matrix, problem.right, problem.group)
        gain = fit.covariance @ (problem.matrix.T / sigma[problem.group] ** 2)
        own = problem.own_inflation(sigma)
        # What a joint's own torque determines does not become less by that of others.
        inflation = np.where(np.isfinite(fit.inflation), np.minimum(fit.inflation, own), np.inf)
        return _Solution(problem, fit.solution, inflation, fit.condition_number, gain, sigma)

    def _disagreements(self, samples: Samples, found: dict[str, tuple[float, float]]) -> tuple[str, ...]:
        """Sentences on values, found with half intervals, that the torque of the turning joint puts outside of both."""
        if self._own_only:
            return ()
        try:
            other = replace(self, estimator="recursive")._solve(samples)
        except IdentificationError:  # no joint turns alone
            return ()
        half = half_width(np.sqrt(np.diag(other.covariance())), other.linear.dof())
        sentences = []
        for name, value, width, inflation in zip(other.problem.names, other.values, half, other.inflation, strict=True):
            label, joint = name.split(" ", 1)
            mine, own_width = found.get(name, (np.nan, np.nan))
            if label in MOMENT_LABELS and inflation <= MAXIMUM_INFLATION and abs(mine - value) > width + own_width:
                sentences.append(
                    f"{joint}: {label} is {mine:.4f} ± {own_width:.4f} by the torques of all joints, {value:.4f} ± "
                    f"{width:.4f} by those of the turning joints alone (estimator recursive): one of the two is wrong; "
                    "check the gains of the torque sensors and the URDF's axes"
                )
        return tuple(sentences)

    @property
    def _own_only(self) -> bool:
        return self.own_torque_only or self.estimator == "recursive"


class _Problem:
    """Rows and columns of the linear problem: a row per sample and joint, a column per unknown."""

    def __init__(self, robot: RobotModel, samples: Samples, settings: GravityIdentification) -> None:
        if len(samples) == 0:
            raise IdentificationError(
                "No static samples: no joint rests long enough, or none moves slowly enough. Record dwells of at least "
                f"{settings.rules.minimum_dwell:g} s, or choose samples='slow'"
            )
        n = robot.n_joints
        self.gravity = GravityModel(robot)
        self.samples = samples
        self.joint = np.tile(np.arange(n), len(samples))
        self.sample = np.repeat(np.arange(len(samples)), n)
        used = np.ones(len(self.gravity.names), bool)
        for i, free in enumerate(self.gravity.unobservable_axes()):
            used[self.gravity.columns(i)] = not free
        blocks = [self.gravity.regressor(samples.position)[:, :, used].reshape(len(self.joint), -1)]
        self.names = [name for name, keep in zip(self.gravity.names, used, strict=True) if keep]
        owner = [i for i in range(n) for c in range(len(used))[self.gravity.columns(i)] if used[c]]
        each = np.tile(np.eye(n), (len(samples), 1))
        extras = {"coulomb": samples.direction.reshape(-1, 1)}
        if settings.torque_offset:
            extras["offset"] = np.ones((len(self.joint), 1))
        if not samples.static.all():
            extras["viscous"] = samples.velocity.reshape(-1, 1)
        for label, factor in extras.items():
            blocks.append(each * factor)
            self.names += [f"{label} {name}" for name in robot.joint_names]
            owner += range(n)
        self.matrix, self.owner = np.hstack(blocks), np.array(owner)
        self.right = samples.torque.reshape(-1)
        known = samples.friction_known[self.sample, self.joint]
        self._keep(known & self._own_rows() if settings._own_only else known)
        if not len(self.right):
            raise IdentificationError("No sample in which friction has a known side: all joints that count are held")
        pairs = Approaches.among(samples, self.sample, self.joint, robot.joint_names)
        self.matrix, self.right = pairs.combine(self.matrix), pairs.combine(self.right)
        self.group, self.group_names = pairs.group, pairs.names

    def _own_rows(self) -> NDArray:
        moving = np.full(len(self.samples), -1)
        for rotation in rotations(self.samples):
            moving[rotation.rows] = rotation.joint
        if not np.any(moving >= 0):
            raise IdentificationError(
                "No single-joint rotation in the samples (at least four dwells between which one joint alone moves); "
                "use estimator='global' with all torques, or run the excitation"
            )
        return moving[self.sample] == self.joint

    def _keep(self, rows: NDArray) -> None:
        self.matrix, self.right = self.matrix[rows], self.right[rows]
        self.joint, self.sample = self.joint[rows], self.sample[rows]
        used = np.any(self.matrix != 0, axis=0)
        self.matrix = self.matrix[:, used]
        self.names = [name for name, keep in zip(self.names, used, strict=True) if keep]
        self.owner = self.owner[used]

    def own_inflation(self, sigma: NDArray) -> NDArray:
        """(k,) by collinearity with the other unknowns of the same joint in its own torque."""
        found = np.full(len(self.names), np.inf)
        for i in range(self.gravity.robot.n_joints):
            rows, own = self.joint == i, self.owner == i
            if rows.any() and own.any():
                weights = 1 / sigma[self.group[rows]] ** 2
                found[own] = solve(self.matrix[np.ix_(rows, own)], self.right[rows], weights).inflation
        return found

    def residual_rms(self, values: NDArray) -> NDArray:
        """(n,) per joint; NaN for a joint without rows."""
        residual = self.right - self.matrix @ values
        n = self.gravity.robot.n_joints
        count = np.bincount(self.joint, minlength=n).astype(float)
        count[count == 0] = np.nan
        return np.sqrt(np.bincount(self.joint, residual**2, n) / count)


@dataclass(frozen=True)
class _Solution:
    """Values (k,), their inflation, the gain (k, m) that made them of the rows, and the noise (G,) of the rows."""

    problem: _Problem
    values: NDArray
    inflation: NDArray
    condition_number: float
    gain: NDArray
    sigma: NDArray

    @property
    def linear(self) -> LinearEstimate:
        """Linear estimate by the rows."""
        problem = self.problem
        residual = problem.right - problem.matrix @ self.values
        return LinearEstimate(problem.matrix, self.gain, residual, problem.group, np.nan_to_num(self.sigma))

    def gain_shifts(self) -> NDArray:
        """(n, k) change of the values per relative error of each joint's torque gain."""
        fitted = self.gain * (self.problem.matrix @ self.values)
        return np.stack(
            [fitted[:, self.problem.joint == j].sum(axis=1) for j in range(self.problem.gravity.robot.n_joints)]
        )

    def covariance(self) -> NDArray:
        """(k, k) of the values, the gains of the torque sensors taken for exact."""
        joint, sample = self.problem.joint, self.problem.sample
        return self.linear.covariance(joint, self.problem.samples.position[sample, joint])


def _recursive(problem: _Problem) -> _Solution:
    """Tip to base: fit joint i's own unknowns, the distal moments being known (eqs 13, 17).

    With x_d distal and x_i own unknowns, x_i = G (b − D x_d).
    """
    k, m = problem.matrix.shape[1], len(problem.right)
    values, gain = np.zeros(k), np.zeros((k, m))
    sigma = np.full(len(problem.group_names), np.nan)
    condition = 1.0
    for i in reversed(range(problem.gravity.robot.n_joints)):
        rows, own = problem.joint == i, np.flatnonzero(problem.owner == i)
        if not rows.any() or not len(own):
            continue
        distal = np.flatnonzero(problem.owner > i)
        if problem.matrix[np.ix_(rows, problem.owner < i)].any():
            joints = problem.gravity.robot.joint_names
            raise IdentificationError(
                f"estimator='recursive' goes from tip to base, but what joint '{joints[i]}' carries moves with one "
                "before it, which it mimics; use estimator='global'"
            )
        matrix, coupling = problem.matrix[np.ix_(rows, own)], problem.matrix[np.ix_(rows, distal)]
        groups, local = np.unique(problem.group[rows], return_inverse=True)
        fit, sigma[groups] = solve_grouped(matrix, problem.right[rows] - coupling @ values[distal], local)
        step = fit.covariance @ (matrix.T / sigma[problem.group[rows]] ** 2)
        values[own] = fit.solution
        gain[np.ix_(own, np.flatnonzero(rows))] = step
        gain[own] -= step @ coupling @ gain[distal]
        condition = max(condition, fit.condition_number)
    return _Solution(problem, values, problem.own_inflation(sigma), condition, gain, sigma)
