"""Weighted non-linear least squares on the readings of torque sensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from dynid_ros.estimation.least_squares import solve, solve_grouped
from dynid_ros.estimation.rank import SENSOR_RANK_TOLERANCE, decompose
from dynid_ros.identification.static_samples import MIN_SINGLE_SAMPLES, Approaches
from dynid_ros.identification.torque_sensors.torque_sensor_model import (
    JOINT_LABELS,
    TorqueSensorModel,
    rotation_of,
    widening,
)

MAX_NOISE_ITERATIONS = 10
NOISE_TOLERANCE = 1e-3
"""Relative change of the noise at which the iteration ends; the standard error of the noise is larger."""
MAX_EVALUATIONS = 200
"""Largest number of evaluations of the readings in a minimisation; ten are common."""
OUTLIER_MADS = 5.0
"""Distance of a pair's difference from the median, in scaled median absolute deviations, above which it is left out."""
MAX_START_INFLATION = 1e3
"""Largest inflation of a gain's standard error with which its linear estimate serves as start, …"""
MIN_SHARE_OF_WEIGHT = 1e-4
"""… and smallest variation of the joint's torque with this gain, as a fraction of the mass's largest torque."""


@dataclass(frozen=True, eq=False)
class TorqueSensorFit:
    """Estimates of the K unknowns of a `TorqueSensorModel`, and the directions that the data leave undetermined.

    Attributes:
        values: (K,) estimates.
        covariance: (K, K) covariance within the determined space, including the uncertainty of known moments; errors
            of the dwells of one rotation may be correlated.
        open: (K, f) orthonormal directions, in unknowns times `scale`, that change no reading.
        scale: (K,) norms of the weighted Jacobian's columns.
        inflation: (K,) factor by which each standard error grows for the other unknowns; infinite if undetermined.
        condition_number: condition number of the column-scaled weighted Jacobian within the determined space.
        dof: degrees of freedom of the covariance, the median over the unknowns.
        residual: (M, n) reading minus model, NaN for missing readings and for those left out.
        noise: standard deviation of a row by joint and kind of sample, in units of the reading.
        left_out: (n,) number of pairs of dwells whose friction contradicts their approaches.
    """

    values: NDArray
    covariance: NDArray
    open: NDArray
    scale: NDArray
    inflation: NDArray
    condition_number: float
    dof: float
    residual: NDArray
    noise: dict[str, float]
    left_out: NDArray


def fit_torque_sensors(model: TorqueSensorModel) -> TorqueSensorFit:
    """Fit the model to all readings that are finite."""
    return _Fit(model).solve()


class _Fit:
    """Iteration of a fit: one row per finite reading, with readings of the two approaches of a pose combined."""

    def __init__(self, model: TorqueSensorModel) -> None:
        self.model = model
        self.sample, self.joint = np.nonzero(np.isfinite(model.samples.torque))
        self.approaches = Approaches.among(
            model.samples, self.sample, self.joint, model.robot.joint_names, model.loaded
        )
        self.kept = np.ones(len(self.sample), bool)
        self.group = self.approaches.group
        self.group_names = self.approaches.names
        self.readings = model.samples.torque[self.sample, self.joint]
        self.spread = np.ones(model.robot.n_joints)
        for j in np.unique(self.joint):
            self.spread[j] = np.std(self.readings[self.joint == j])
        self.spread[self.spread == 0] = 1.0

    def solve(self) -> TorqueSensorFit:
        """Alternate between minimising over the values and estimating the noises, until both converge."""
        sigma = self.spread[self._joint_of_group()]
        values = min((self._minimum(start, sigma) for start in self._starts()), key=lambda x: self._cost(x, sigma))
        for turn in range(MAX_NOISE_ITERATIONS):
            if turn > 0:
                values = self._minimum(values, sigma)
            else:
                self._leave_out(values)
                sigma = sigma[np.unique(self.approaches.group[self.kept])]
            updated = self._noise(values)
            settled = np.allclose(updated, sigma, rtol=NOISE_TOLERANCE, atol=0)
            sigma = updated
            if settled:
                break
        return self._described(values, sigma)

    def _joint_of_group(self) -> NDArray:
        """Return the joint (G,) of each group of rows with equal noise."""
        joints = np.zeros(len(self.group_names), int)
        joints[self.group] = self.joint[self.kept]
        return joints

    def _leave_out(self, values: NDArray) -> None:
        """Leave out pairs of dwells whose difference is far from the joint's friction, which is that of most pairs.

        A joint that swings back after it stopped has friction of the other sign. The difference of a pair shows this
        whatever the gravity torque is, so this selection does not favour the model.
        """
        residual = self.readings - self.model.at(values).readings()[self.sample, self.joint]
        up = self.approaches.up
        down = self.approaches.down
        difference = residual[up] - residual[down]
        joint = self.joint[up]
        for j in np.unique(joint):
            pairs = np.flatnonzero(joint == j)
            deviation = np.abs(difference[pairs] - np.median(difference[pairs]))
            typical = max(1.4826 * float(np.median(deviation)), 1e-6 * self.spread[j])
            outliers = pairs[deviation > OUTLIER_MADS * typical]
            if len(pairs) >= MIN_SINGLE_SAMPLES:
                self.kept[up[outliers]] = False
                self.kept[down[outliers]] = False
        present, self.group = np.unique(self.approaches.group[self.kept], return_inverse=True)
        self.group_names = tuple(self.approaches.names[g] for g in present)

    def _rows(self, values: NDArray) -> NDArray:
        """Return the rows (m, …) of an array (M, n, …), with pairs of approaches combined."""
        return self.approaches.combine(values[self.sample, self.joint])[self.kept]

    def _right(self) -> NDArray:
        """Return the readings (m,), with pairs of approaches combined."""
        return self.approaches.combine(self.readings)[self.kept]

    def _minimum(self, start: NDArray, sigma: NDArray) -> NDArray:
        """Return the values (K,) with the smallest weighted residual."""
        root = 1 / sigma[self.group]
        right = self._right() * root

        def residual(values: NDArray) -> NDArray:
            return self._rows(self.model.at(values).readings()) * root - right

        def jacobian(values: NDArray) -> NDArray:
            return self._rows(self.model.at(values).jacobian()) * root[:, None]

        minimum = least_squares(
            residual, start, jacobian, x_scale="jac", xtol=1e-10, ftol=1e-12, gtol=1e-12, max_nfev=MAX_EVALUATIONS
        )
        return minimum.x

    def _cost(self, values: NDArray, sigma: NDArray) -> float:
        """Return the sum of the squared weighted residuals."""
        residual = (self._right() - self._rows(self.model.at(values).readings())) / sigma[self.group]
        return float(residual @ residual)

    def _noise(self, values: NDArray) -> NDArray:
        """Return the noises (G,) of the groups, from the problem linearised at its minimum."""
        point = self.model.at(values)
        jacobian = self._rows(point.jacobian())
        right = self._right() - self._rows(point.readings()) + jacobian @ values
        return solve_grouped(jacobian, right, self.group)[1]

    def _described(self, values: NDArray, sigma: NDArray) -> TorqueSensorFit:
        """Return the fit with covariance and undetermined directions, from the Jacobian at the minimum."""
        model = self.model
        point = self.model.at(values)
        root = 1 / sigma[self.group]
        weighted = self._rows(point.jacobian()) * root[:, None]
        parts = decompose(weighted, SENSOR_RANK_TOLERANCE)
        half = (parts.right.T * parts.inverse) / parts.scale[:, None]
        misfit = (self._right() - self._rows(point.readings())) * root
        wider, dof = widening(parts, misfit, self._rotation())
        covariance = half @ half.T * np.outer(wider, wider)
        if model.known is not None:
            moments = self._rows(point.moment_jacobian()) * root[:, None]
            moved = -half @ (parts.left.T @ moments)
            covariance = covariance + moved @ model.known.covariance @ moved.T
        _, _, all_directions = np.linalg.svd(parts.right, full_matrices=True)
        undetermined = all_directions[len(parts.right) :].T
        residual = np.full(model.samples.torque.shape, np.nan)
        rows = self.sample[self.kept], self.joint[self.kept]
        residual[rows] = self.readings[self.kept] - point.readings()[rows]
        return TorqueSensorFit(
            values=values,
            covariance=covariance,
            open=undetermined,
            scale=parts.scale,
            inflation=np.where(
                np.linalg.norm(undetermined, axis=1) > 1e-3,
                np.inf,
                np.linalg.norm(parts.right.T * parts.inverse, axis=1),
            ),
            condition_number=parts.condition_number,
            dof=float(np.median(dof)),
            residual=residual,
            noise={name: float(s) for name, s in zip(self.group_names, sigma, strict=True)},
            left_out=np.bincount(self.joint[~self.kept], minlength=model.robot.n_joints) // 2,
        )

    def _rotation(self) -> NDArray:
        """Return the index (m,) of each row's rotation; both rows of a pair have that of the upward approach."""
        rotation = rotation_of(self.model.samples)[self.sample]
        rotation[self.approaches.down] = rotation[self.approaches.up]
        return rotation[self.kept]

    def _starts(self) -> Iterator[NDArray]:
        """Yield starting values (K,): positions as read, gains from linear fits, then a linear fit of all else.

        Friction that differs between dwells biases the gains of the linear start towards zero, and some beyond zero,
        from where the minimisation does not return. So gains of one sign are tried too.
        """
        model = self.model
        values = np.zeros(len(model.names))
        values[model.index("position_gain")] = 1.0
        values[model.index("sensitivity")] = 1.0
        if model.known is not None:
            values[model.index("sensitivity")] = self._sensitivity_from_known(values)
        elif model.mass is not None:
            gain = self._gain_from_mass(values)
            values[model.index("sensitivity")] = 1 / gain
            if np.ptp(np.sign(gain)) > 0:
                same_sign = values.copy()
                same_sign[model.index("sensitivity")] = np.sign(np.median(gain)) / np.abs(gain)
                yield self._with_linear_values(same_sign)
        yield self._with_linear_values(values)

    def _with_linear_values(self, values: NDArray) -> NDArray:
        """Return values (K,) in which all unknowns that act linearly on the readings are fitted."""
        model = self.model
        linear = np.setdiff1d(
            np.arange(len(values)),
            np.concatenate([model.index(label) for label in ("sensitivity", "position_gain", "position_offset")]),
        )
        point = model.at(values)
        jacobian = point.jacobian()[self.sample, self.joint][:, linear]
        right = self.readings - point.readings()[self.sample, self.joint]
        fitted = values.copy()
        fitted[linear] += solve(jacobian, right, 1 / self.spread[self.joint] ** 2).solution
        return fitted

    def _sensitivity_from_known(self, values: NDArray) -> NDArray:
        """Return the sensitivity (n,) of each joint, fitted alone to torques without the unknown part of the load."""
        torque = self.model.at(values).torque
        sensitivity = np.ones(torque.shape[1])
        for j in range(torque.shape[1]):
            rows = self.joint == j
            columns = np.column_stack(
                [torque[self.sample[rows], j], np.ones(rows.sum()), self.model.samples.direction[self.sample[rows], j]]
            )
            fit = solve(columns, self.readings[rows]) if rows.any() else None
            if fit is not None and fit.inflation[0] < MAX_START_INFLATION and fit.solution[0] != 0:
                sensitivity[j] = fit.solution[0]
        return sensitivity

    def _gain_from_mass(self, values: NDArray) -> NDArray:
        """Return the gains (n,) from a linear fit of k v − k b − k f d − Y n − [loaded] Y_c m c = [loaded] Y_m m.

        The unknowns are k, k b, k f, n and the centre c unless it is known; Y_m m is the torque of the mass without c.
        """
        model = self.model
        n = self.model.robot.n_joints
        point = model.at(values)
        rows = point.jacobian()[self.sample, self.joint]
        each = np.zeros((len(self.joint), n))
        each[np.arange(len(self.joint)), self.joint] = 1.0
        sensors = np.hstack([each * self.readings[:, None], -rows[:, model.index("offset")], -rows[:, n * 2 : n * 3]])
        rest = -rows[:, n * (5 if model.positions else 3) :]
        weight = point.torque[self.sample, self.joint]
        fit = solve(np.hstack([sensors, rest]), weight)
        # If a centre can cancel the weight of the mass, gains of zero fit as well: such gains are not used.
        share = np.abs(fit.solution[:n]) * self.spread / max(float(np.abs(weight).max()), 1e-300)
        is_usable = (fit.inflation[:n] < MAX_START_INFLATION) & (share > MIN_SHARE_OF_WEIGHT)
        typical = np.median(fit.solution[:n][is_usable]) if is_usable.any() else max(float(np.std(weight)), 1e-9)
        return np.where(is_usable, fit.solution[:n], typical / (1.0 if is_usable.any() else self.spread))


# Unknowns of torque sensors that the data do not determine, and the reasons in words.


MIN_NULL_SHARE = 1e-3
"""Component of a null direction, in scaled columns, above which the unknown takes part in it."""
MAX_GAIN_ERROR = 0.1
MAX_OFFSET_ERROR = 0.1
MAX_ANGLE_ERROR_RAD = 0.1
MAX_POSITION_GAIN_ERROR = 0.05
"""Largest standard errors of determined unknowns: of a gain relative to it, of an offset relative to the range of the
readings, of a position offset in rad or m, and of a position gain."""
MAX_LISTED_NAMES = 5


@dataclass(frozen=True)
class NullDirection:
    """Simultaneous change of several unknowns that changes no reading.

    Attributes:
        changes: change of each unknown, relative to the first.
    """

    changes: dict[str, float]

    def __str__(self) -> str:
        return ", ".join(f"{name} by {change:+.3g}" for name, change in self.changes.items())


def freedoms(model: TorqueSensorModel, fit: TorqueSensorFit) -> tuple[NullDirection, ...]:
    """Return the undetermined combinations of two or more unknowns, each of few unknowns (by elimination)."""
    alone = _single(fit)
    basis, size, _ = np.linalg.svd(fit.open * ~alone[:, None], full_matrices=False)
    combinations = []
    for direction in _eliminated(basis[:, size > MIN_NULL_SHARE]):
        members = np.flatnonzero(np.abs(direction) > MIN_NULL_SHARE * np.abs(direction).max())
        change = direction / fit.scale
        # Convert changes of sensitivities to changes of gains, 1 / sensitivity.
        sensitivities = model.index("sensitivity")
        change[sensitivities] *= -1 / fit.values[sensitivities] ** 2
        first = members[0]
        relative = {reported(model.names[i]): float(change[i] / change[first]) for i in members}
        combinations.append(NullDirection(relative))
    return tuple(combinations)


def undecided(model: TorqueSensorModel, fit: TorqueSensorFit, std: NDArray) -> dict[str, str]:
    """Return the reason for each undetermined unknown, by its name; `std` (K,) has the standard errors of all."""
    reasons = {}
    combinations = [direction.changes for direction in freedoms(model, fit)]
    takes_part = np.linalg.norm(fit.open, axis=1) > MIN_NULL_SHARE
    single = _single(fit)
    for i, name in enumerate(model.names):
        if single[i]:
            reasons[name] = _without_effect(model, name)
        elif takes_part[i]:
            involved = [changes for changes in combinations if reported(name) in changes]
            others = [other for changes in involved for other in changes if other != reported(name)]
            reasons[name] = f"no reading changes if it changes together with {_listed(others)}; {_way_out(model)}"
        else:
            too_large = _too_large(model, fit, std, i)
            if too_large:
                reasons[name] = f"{too_large}; {_way_out(model)}"
    return reasons


def reported(name: str) -> str:
    """Return the name of an unknown in results, where a sensitivity is reported as a gain."""
    return name.replace("sensitivity ", "gain ", 1)


def _single(fit: TorqueSensorFit) -> NDArray:
    """Return a mask (K,) of the unknowns that have no effect on any reading."""
    return np.linalg.norm(fit.open, axis=1) > 1 - 1e-6


def _eliminated(directions: NDArray) -> list[NDArray]:
    """Return sparse vectors that span directions (K, f): the reduced row echelon form with pivoting."""
    rows = directions.T.copy()
    for r in range(len(rows)):
        remaining = np.abs(rows[r:])
        pick, pivot = np.unravel_index(np.argmax(remaining), remaining.shape)
        rows[[r, r + pick]] = rows[[r + pick, r]]
        rows[r] /= rows[r, pivot]
        for other in range(len(rows)):
            if other != r:
                rows[other] -= rows[other, pivot] * rows[r]
    return list(rows)


def _without_effect(model: TorqueSensorModel, name: str) -> str:
    """Say why an unknown has no effect on any reading."""
    label, joint = name.split(" ", 1)
    if label in JOINT_LABELS[:3] and not np.isfinite(model.samples.torque[:, _joint(model, joint)]).any():
        return "there is no reading of this joint"
    if label == "coulomb":
        return "the direction from which the joint came to rest is not known in any sample"
    if label == "center":
        return "it loads no joint in these poses: hang the mass farther from the last joints' axes, or take other poses"
    if label.startswith("position"):
        return "the joint's position changes no gravity torque"
    return "gravity does not load this joint in these poses; load it, or mount the arm with its axis off the vertical"


def _too_large(model: TorqueSensorModel, fit: TorqueSensorFit, std: NDArray, i: int) -> str:
    """Describe the standard error of an unknown if it is too large; otherwise return an empty string."""
    label, joint = model.names[i].split(" ", 1)
    if label == "sensitivity" and std[i] > MAX_GAIN_ERROR * abs(fit.values[i]):
        return f"its standard error is {std[i] / max(abs(fit.values[i]), 1e-300):.0%} of it"
    if label == "offset":
        spread = model.reading_range[_joint(model, joint)]
        if std[i] > MAX_OFFSET_ERROR * spread:
            return f"its standard error, {std[i]:.3g}, is {std[i] / max(spread, 1e-300):.0%} of the readings' range"
    if label == "position_offset" and std[i] > MAX_ANGLE_ERROR_RAD:
        return f"its standard error is {std[i]:.2g} rad (m)"
    if label == "position_gain" and std[i] > MAX_POSITION_GAIN_ERROR:
        return f"its standard error is {std[i]:.2g}"
    return ""


def _joint(model: TorqueSensorModel, name: str) -> int:
    return model.robot.joint_names.index(name)


def _listed(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    return ", ".join(unique) if len(unique) <= MAX_LISTED_NAMES else f"{len(unique)} others"


def _way_out(model: TorqueSensorModel) -> str:
    """Say how to determine more unknowns."""
    if model.mass is None and model.known is None:
        return "attach a reference mass of known weight and record again, or give the gravity parameters"
    ways = ["turn more joints, each over more of its range and in several poses of the others"]
    if model.mass is not None and model.mass.center is None:
        ways.append("give the mass's centre")
    if model.positions:
        ways.append("take the positions as known")
    return ", or ".join(ways)
