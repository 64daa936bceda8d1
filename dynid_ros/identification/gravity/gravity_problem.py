"""Linear problem of gravity identification, its solution and the covariance of the solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import LinearEstimate
from dynid_ros.estimation.least_squares import solve, solve_grouped
from dynid_ros.estimation.rank import ROUNDING_RANK_TOLERANCE, column_norms, null_space
from dynid_ros.identification.gravity.gravity_result import (
    TURNS,
    count_angles,
    required_angles,
)
from dynid_ros.identification.gravity_direction import turn_information, turn_torques
from dynid_ros.identification.static_samples import HOLD_TOLERANCE, Approaches, Samples, rotations
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel, turn_axes

if TYPE_CHECKING:
    from dynid_ros.identification.gravity.gravity_identification import GravityIdentification


def angle_groups(joint: NDArray, angle: NDArray) -> NDArray:
    """Return the index (m,) of a group for each row: rows of one joint at one angle form a group.

    Unmodelled friction depends on the angle of its joint and stays constant while the joint rests there. So the
    residuals of a group are correlated.
    """
    group = np.zeros(len(joint), int)
    number = -1
    for j in np.unique(joint):
        first = -np.inf
        rows = np.flatnonzero(joint == j)
        for row in rows[np.argsort(angle[rows])]:
            if angle[row] - first > HOLD_TOLERANCE:
                first = angle[row]
                number = number + 1
            group[row] = number
    return group


class GravityProblem:
    """Linear problem of gravity identification: a row per sample and joint, a column per unknown.

    With `moments` (k,), the last two unknowns are turns of gravity, linearised about these moments.

    Attributes:
        matrix: (m, k) columns of the unknowns.
        right: (m,) torques, N m or N.
        names: names (k,) of the unknowns.
        owner: (k,) index of each unknown's joint; n for a turn of gravity.
        samples: samples from which the rows follow.
        joint, sample: (m,) indices of each row's joint and sample.
        group: (m,) index of each row's noise in `group_names`.
        group_names: names of the noises, by joint and kind of sample.
    """

    def __init__(
        self, robot: RobotModel, samples: Samples, settings: GravityIdentification, moments: NDArray | None = None
    ) -> None:
        if len(samples) == 0:
            raise IdentificationError(
                "No static samples: no joint rests long enough, or none moves slowly enough. Record dwells of at least "
                f"{settings.rules.minimum_dwell:g} s, or, with samples slow, motion below "
                f"{settings.rules.slow_velocity:g} per s; what moves faster shows gravity with the links"
            )
        n = robot.n_joints
        self.gravity = GravityModel(robot)
        self.samples = samples
        self.joint = np.tile(np.arange(n), len(samples))
        self.sample = np.repeat(np.arange(len(samples)), n)
        used = np.ones(len(self.gravity.names), bool)
        for i, free in enumerate(self.gravity.unobservable_axes()):
            used[self.gravity.columns(i)] = not free
        regressor = self.gravity.regressor(samples.position)
        if moments is not None and not used.all():
            # Even a small tilt loads a joint whose axis is parallel to gravity, through moments that are unknown.
            across = np.cross(turn_axes(robot.gravity)[0], robot.gravity)
            regressor[:, :, ~used] = GravityModel(robot.with_gravity(across)).regressor(samples.position)[:, :, ~used]
            used[:] = True
        blocks = [regressor[:, :, used].reshape(len(self.joint), -1)]
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
        if moments is not None:
            blocks.append(turn_torques(robot, moments, samples.position).reshape(-1, 2))
            self.names += TURNS
            owner += [n, n]
        self.matrix = np.hstack(blocks)
        self.owner = np.array(owner)
        self.right = samples.torque.reshape(-1)
        rows = samples.friction_known[self.sample, self.joint]
        self._keep(rows & self._own_rows() if settings.own_only else rows)
        if not len(self.right):
            raise IdentificationError("No sample in which friction has a known side: all joints that count are held")
        pairs = Approaches.among(samples, self.sample, self.joint, robot.joint_names)
        self.matrix = pairs.combine(self.matrix)
        self.right = pairs.combine(self.right)
        self.group = pairs.group
        self.group_names = pairs.names

    def _own_rows(self) -> NDArray:
        """Return a mask (m,) of the rows whose joint rotates alone in their sample."""
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
        """Drop all other rows, and unknowns that the remaining rows do not contain."""
        self.matrix = self.matrix[rows]
        self.right = self.right[rows]
        self.joint = self.joint[rows]
        self.sample = self.sample[rows]
        used = np.any(self.matrix != 0, axis=0) | (self.owner == self.gravity.robot.n_joints)
        self.matrix = self.matrix[:, used]
        self.names = [name for name, keep in zip(self.names, used, strict=True) if keep]
        self.owner = self.owner[used]

    def own_inflation(self, sigma: NDArray) -> NDArray:
        """Return the inflation (k,) of standard errors if each joint is fitted alone, to its own torque."""
        inflation = np.full(len(self.names), np.inf)
        for i in range(self.gravity.robot.n_joints):
            rows = self.joint == i
            unknowns = self.owner == i
            if rows.any() and unknowns.any():
                weights = 1 / sigma[self.group[rows]] ** 2
                inflation[unknowns] = solve(self.matrix[np.ix_(rows, unknowns)], self.right[rows], weights).inflation
        return inflation

    def residual_rms(self, values: NDArray) -> NDArray:
        """Return the RMS residual (n,) of each joint; NaN for a joint without rows."""
        residual = self.right - self.matrix @ values
        n = self.gravity.robot.n_joints
        count = np.bincount(self.joint, minlength=n).astype(float)
        count[count == 0] = np.nan
        return np.sqrt(np.bincount(self.joint, residual**2, n) / count)


@dataclass(frozen=True)
class GravitySolution:
    """Solution of a gravity problem with k unknowns and m rows.

    Attributes:
        problem: rows and columns.
        values: (k,) estimates of the unknowns.
        inflation: (k,) factor by which collinearity inflates each standard error; infinite for an undetermined unknown.
        condition_number: condition number of the column-scaled weighted problem.
        gain: (k, m) matrix that maps the rows to the values.
        sigma: (G,) standard deviation of each noise of the rows.
        null_space: (k, r) directions along which the estimator leaves the unknowns undetermined.
        dependence: (n, n) mask of the undetermined moments of joint j on which the estimate of joint i depends.
    """

    problem: GravityProblem
    values: NDArray
    inflation: NDArray
    condition_number: float
    gain: NDArray
    sigma: NDArray
    null_space: NDArray
    dependence: NDArray

    def determined(self, scale: NDArray) -> NDArray:
        """Return an orthonormal basis (r, k) of the determined combinations, in columns divided by `scale` (k,)."""
        left, singular, _ = np.linalg.svd(self.null_space * scale[:, None])
        rank = int(np.sum(singular > ROUNDING_RANK_TOLERANCE * singular.max(initial=0.0)))
        return left[:, rank:].T

    @property
    def moments(self) -> NDArray:
        """Moments (k,) of the gravity model; zero for moments without effect on any torque."""
        estimates = dict(zip(self.problem.names, self.values, strict=True))
        gravity = self.problem.gravity
        idle = np.zeros(len(gravity.names), bool)
        for i, free in enumerate(gravity.unobservable_axes()):
            idle[gravity.columns(i)] = free
        return np.where(idle, 0.0, [estimates.get(name, 0.0) for name in gravity.names])

    @property
    def linear(self) -> LinearEstimate:
        """Linear estimate: how the values follow from the rows, and their residuals."""
        problem = self.problem
        residual = problem.right - problem.matrix @ self.values
        return LinearEstimate(problem.matrix, self.gain, residual, problem.group, np.nan_to_num(self.sigma))

    def turn_information(self) -> NDArray:
        """Return the information (2, 2) on the two turns of gravity, which are the last unknowns."""
        weighted = self.problem.matrix / self.sigma[self.problem.group][:, None]
        return turn_information(weighted[:, :-2], weighted[:, -2:])

    def joint_noise(self) -> NDArray:
        """Return the noise (n,) of each joint's torque, N m; infinite for a joint without rows."""
        squares = self.sigma[self.problem.group] ** 2
        n = self.problem.gravity.robot.n_joints
        count = np.bincount(self.problem.joint, minlength=n)
        total = np.bincount(self.problem.joint, squares, n)
        return np.sqrt(np.divide(total, count, out=np.full(n, np.inf), where=count > 0))

    def gain_shifts(self) -> NDArray:
        """Return the change (n, k) of the values per relative error of each joint's torque gain."""
        fitted = self.gain * (self.problem.matrix @ self.values)
        return np.stack(
            [fitted[:, self.problem.joint == j].sum(axis=1) for j in range(self.problem.gravity.robot.n_joints)]
        )

    def covariance(self) -> NDArray:
        """Return the covariance (k, k) of the values for exact gains of the torque sensors."""
        joint = self.problem.joint
        sample = self.problem.sample
        return self.linear.covariance(angle_groups(joint, self.problem.samples.position[sample, joint]))


DEPENDENCE_TOLERANCE = 1e-6
"""Effect of a distal moment on a joint's unknowns, in columns of unit norm, below which it is rounding."""


def recursive(problem: GravityProblem) -> GravitySolution:
    """Fit from tip to base: the unknowns x_i of joint i, with the distal moments x_d known by then (eqs 13, 17).

    x_i = G (b − D x_d), where D are the columns of x_d in the torque b of joint i. An undetermined x_d enters as zero,
    and unknowns that depend on it through G D are undetermined as well.
    """
    k = problem.matrix.shape[1]
    m = len(problem.right)
    n = problem.gravity.robot.n_joints
    values = np.zeros(k)
    gain = np.zeros((k, m))
    inflation = np.full(k, np.inf)
    unobservable = np.ones(k, bool)
    null = np.zeros((k, 0))
    dependence = np.zeros((n, n), bool)
    sigma = np.full(len(problem.group_names), np.nan)
    condition = 1.0
    moments = np.isin(problem.names, problem.gravity.names)
    for i in reversed(range(n)):
        rows = problem.joint == i
        own = np.flatnonzero(problem.owner == i)
        if not rows.any() or not len(own):
            null = np.hstack([null, np.eye(k)[:, own]])
            continue
        distal = np.flatnonzero(problem.owner > i)
        if problem.matrix[np.ix_(rows, problem.owner < i)].any():
            joints = problem.gravity.robot.joint_names
            raise IdentificationError(
                f"estimator='recursive' goes from tip to base, but what joint '{joints[i]}' carries moves with one "
                "before it, which it mimics; use estimator='global'"
            )
        matrix = problem.matrix[np.ix_(rows, own)]
        coupling = problem.matrix[np.ix_(rows, distal)]
        groups, local = np.unique(problem.group[rows], return_inverse=True)
        fit, sigma[groups] = solve_grouped(matrix, problem.right[rows] - coupling @ values[distal], local)
        step = fit.covariance @ (matrix.T / sigma[problem.group[rows]] ** 2)
        passed = step @ coupling  # G D
        values[own] = fit.solution
        gain[np.ix_(own, np.flatnonzero(rows))] = step
        gain[own] -= passed @ gain[distal]
        condition = max(condition, fit.condition_number)
        null[own] -= passed @ null[distal]
        undetermined = null_space(matrix)
        null = np.hstack([null, np.eye(k)[:, own] @ undetermined])
        # Scale columns to unit norm, so that the tolerance has no unit.
        effect = np.abs(passed) * column_norms(matrix)[:, None] / column_norms(coupling)
        depends = (effect > DEPENDENCE_TOLERANCE) & unobservable[distal] & moments[distal]
        # Errors of determined distal moments, even large ones, inflate the standard errors of this joint.
        noise = np.nan_to_num(sigma[problem.group])
        passed_on = np.linalg.norm(gain[own] * noise, axis=1) / np.maximum(
            np.linalg.norm(step * noise[rows], axis=1), 1e-300
        )
        inflation[own] = np.where(depends.any(axis=1), np.inf, fit.inflation * np.maximum(passed_on, 1.0))
        dependence[i, problem.owner[distal[depends.any(axis=0)]]] = True
        undetermined_moment = not np.isfinite(inflation[own][moments[own]]).all()
        few = count_angles(problem.samples, i) < required_angles(problem.names)
        unobservable[own] = undetermined_moment or (few and problem.gravity.robot.joint_types[i] == "revolute")
    return GravitySolution(problem, values, inflation, condition, gain, sigma, null, dependence)
