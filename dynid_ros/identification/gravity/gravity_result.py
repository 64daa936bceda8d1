"""Result of a gravity identification: moments, offsets and friction, with their observability."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.display import percent, text_table
from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import CONFIDENCE_LEVEL, half_width, interval
from dynid_ros.estimation.least_squares import standard_errors_of
from dynid_ros.estimation.rank import within
from dynid_ros.identification.gravity_direction import turn_torques
from dynid_ros.identification.result import Result, unseen_agreement
from dynid_ros.identification.static_samples import SampleRules, Samples, extract_samples
from dynid_ros.identified.gravity import gravity_section
from dynid_ros.identified.gravity_direction import GravityDirection
from dynid_ros.identified.joint_friction import DIRECTIONS, joint_friction_entry
from dynid_ros.identified.validation import Repeatability, Validation, unit_of_joints, validate_torque
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import parameter_table
from dynid_ros.model.gravity import GravityModel
from dynid_ros.recording.recording import Recordings, read_all

MAX_INFLATION = 30.0
"""Largest inflation of a standard error by collinearity. With an unknown torque offset, a joint exceeds it if it turns
by less than about 45 degrees (60 degrees: inflation 17, 30 degrees: 65)."""


@dataclass(frozen=True)
class Observability:
    """Observability of the moment of a joint.

    Attributes:
        observable: whether the samples determine the moment.
        reason: cause and remedy if the moment is not observable.
        torque_free: whether gravity never loads the joint, so that its moment does not matter.
    """

    observable: bool
    reason: str = ""
    torque_free: bool = False


def describe_observability(
    robot: RobotModel,
    gravity: GravityModel,
    names: list[str],
    errors: tuple[NDArray, NDArray, NDArray],
    samples: Samples,
) -> dict[str, Observability]:
    """Return the observability of the moment of each joint.

    Args:
        robot: the arm.
        gravity: gravity model with the moments.
        names: names (k,) of the fitted unknowns.
        errors: inflation (k,) of the standard errors, infinite for undetermined unknowns; half 95 % intervals (k,); and
            mask (n, n) of the joints j on whose unobservable moment the estimate of joint i depends.
        samples: fitted samples.
    """
    worst, wide = (dict(zip(names, values, strict=True)) for values in errors[:2])
    dependence = errors[2]
    # Largest torque per moment; it is small for an axis that is nearly parallel to gravity.
    weight = np.linalg.norm(robot.gravity) * gravity.loads()
    parallel = gravity.unobservable_axes()
    states = {}
    for i, joint in enumerate(robot.joint_names):
        if parallel[i]:
            how = "parallel" if robot.joint_types[i] == "revolute" else "square"
            reason = f"axis {how} to gravity in every pose: its gravity torque is zero"
            states[joint] = Observability(False, reason, torque_free=True)
            continue
        factor = max(worst.get(gravity.names[c], np.inf) for c in columns_of(gravity, i))
        revolute = robot.joint_types[i] == "revolute"
        angles = count_angles(samples, i)
        needed = required_angles(names)
        width = max(wide.get(gravity.names[c], np.inf) for c in columns_of(gravity, i))
        vague = width * weight[i] > np.abs(samples.torque[:, i]).max()
        if factor <= MAX_INFLATION and (angles >= needed or not revolute) and not vague:
            states[joint] = Observability(True)
            continue
        span = float(np.ptp(samples.position[:, i]))
        if dependence[i].any():
            first = dependence[i] & ~dependence.any(axis=1)
            others = [f"'{robot.joint_names[j]}'" for j in np.flatnonzero(first if first.any() else dependence[i])]
            reason = f"it depends on the moment of {', '.join(others)}, which is not observable"
        elif not samples.friction_known[:, i].any():
            reason = "it is held in all samples by unknown stiction; turn it, or let it approach its position anew"
        elif not revolute:
            reason = (
                "the weight that it carries cannot be distinguished from its torque offset; tilt its axis, "
                "or zero the sensor and set torque_offset to false"
            )
        elif angles < needed:
            reason = f"only {angles} different angle(s) in the samples; at least {needed} are needed for its sinusoid"
        elif span < np.deg2rad(60):
            reason = (
                f"its angle spans only {np.rad2deg(span):.0f} degrees; "
                "at least about 60 are needed to distinguish its moment from its torque offset"
            )
        elif factor <= MAX_INFLATION:
            reason = f"its moment is known to ± {width:.2g} kg m only, which is more than all of its torque; add poses"
        else:
            reason = (
                "its moment cannot be distinguished from those of other joints in these poses; "
                "add poses of the proximal joints with its axis horizontal"
            )
        states[joint] = Observability(False, reason)
    return states


ANGLE_STEP_RAD = np.deg2rad(2)
"""Angle below which two angles of a joint count as equal."""


def count_angles(samples: Samples, joint: int) -> int:
    """Return the number of different angles of a joint in the samples."""
    return len(np.unique(np.round(samples.position[:, joint] / ANGLE_STEP_RAD)))


def required_angles(names: Sequence[str]) -> int:
    """Return the number of angles that a sinusoid needs: one more than its unknowns."""
    return 4 if any(name.startswith("offset ") for name in names) else 3


def columns_of(gravity: GravityModel, joint: int) -> range:
    """Return the columns of the moments of a joint."""
    return range(len(gravity.names))[gravity.columns(joint)]


def moment_joints(gravity: GravityModel) -> dict[str, str]:
    """Return the joint of each moment, by the name of the moment."""
    joints = gravity.robot.joint_names
    return {gravity.names[c]: joint for i, joint in enumerate(joints) for c in columns_of(gravity, i)}


TURNS = ["turn 1", "turn 2"]
"""Names of the rotations of gravity about its two axes, if they were fitted."""
MAX_UNDETERMINED_FRACTION = 1e-6
"""Length of a row outside the determined space, as a fraction of its length, up to which its torque is determined."""


@dataclass(frozen=True, repr=False)
class GravityResult(Result):
    """Moments n_x, n_y (kg m, in the joint frame) per joint with offset and friction; see `GravityIdentification`.

    Attributes:
        robot: the arm, with the direction of gravity that was used.
        gravity: gravity model of the moments.
        names: names of all k unknowns, e.g. "n_x joint_2", "offset joint_2".
        values, covariance: estimates of all unknowns, in that order, and their covariance.
        inflation: (k,) factor by which collinearity inflates each standard error.
        determined: orthonormal basis (r, k) of the determined space, in columns divided by `scale`.
        scale: (k,) norms of the problem's columns.
        condition_number: condition number of the column-scaled weighted problem.
        dof: degrees of freedom (k,) of each variance.
        residual_rms: RMS residual (n,) of the fitted rows, N m.
        noise: standard deviation of a row by joint and kind of sample, N m.
        observability: observability of each joint's moment, by name of the joint.
        samples: fitted samples.
        sources: names of the recordings.
        settings: settings of the identification, as plain data.
        rules: criteria for static and for slow samples.
        direction: direction of gravity that was estimated, as in `robot.gravity`; None: it was given.
        remarks: sentences on contradictions in the data.
        repeatability: difference of torque between repetitions of a motion; None: not measured, or no repetition.
    """

    robot: RobotModel
    gravity: GravityModel
    names: list[str]
    values: NDArray
    covariance: NDArray
    inflation: NDArray
    determined: NDArray
    scale: NDArray
    condition_number: float
    dof: NDArray
    residual_rms: NDArray
    noise: dict[str, float]
    observability: dict[str, Observability]
    samples: Samples
    sources: tuple[str, ...]
    settings: dict
    rules: SampleRules
    direction: GravityDirection | None = None
    remarks: tuple[str, ...] = ()
    repeatability: Repeatability | None = None

    @property
    def parameters(self) -> NDArray:
        """Moments (k,) in the order of `gravity.names`; NaN if undetermined."""
        return self._pick(self.gravity.names, self.values)

    @property
    def standard_errors(self) -> NDArray:
        """Standard errors (k,) of `parameters`."""
        return self._pick(self.gravity.names, np.sqrt(np.diag(self.covariance)))

    def confidence_intervals(self, level: float = CONFIDENCE_LEVEL) -> NDArray:
        """Return the intervals (k, 2) by Student's t."""
        return interval(self.parameters, self.standard_errors, self._pick(self.gravity.names, self.dof), level)

    @property
    def missing(self) -> tuple[str, ...]:
        """Sentences on undetermined moments of joints that gravity loads, with a remedy."""
        return tuple(
            f"gravity of {joint} is not known: {state.reason}"
            for joint, state in self.observability.items()
            if not (state.observable or state.torque_free)
        )

    def per_joint(self, label: str) -> tuple[NDArray, NDArray]:
        """Return value and standard error (n,) of "offset", "coulomb" or "viscous"; NaN if undetermined."""
        names = [f"{label} {joint}" for joint in self.robot.joint_names]
        return self._pick(names, self.values), self._pick(names, np.sqrt(np.diag(self.covariance)))

    def predict(self, q: NDArray) -> NDArray:
        """Return the gravity torque (N, n) at positions (N, n); NaN if it depends on undetermined moments."""
        return self._evaluate(self._gravity_rows(q))

    def predict_samples(self, samples: Samples) -> NDArray:
        """Return the sensor torque (M, n): gravity, offset, and friction if its direction is known.

        A joint that never moved may have a determined torque, but no determined gravity torque because of its offset.
        """
        rows = self._gravity_rows(samples.position)
        extras = {"offset": np.ones_like(samples.position), "coulomb": samples.direction, "viscous": samples.velocity}
        for label, factor in extras.items():
            for i, joint in enumerate(self.robot.joint_names):
                if f"{label} {joint}" in self.names:
                    rows[:, i, self.names.index(f"{label} {joint}")] = factor[:, i]
        return self._evaluate(rows)

    def validate(self, *recordings: Recordings) -> Validation:
        """Compare predictions, with friction and offset, with the samples of recordings that were not fitted.

        Raises:
            IdentificationError: the recordings have no samples of the kind that was fitted.
        """
        given = read_all(recordings, self.robot.joint_names)
        samples = extract_samples(given, self.robot.joint_names, self.settings["samples"], self.rules)
        name = ", ".join(recording.source for recording in given)
        if not len(samples):
            kind = self.settings["samples"]
            raise IdentificationError(
                f"{name}: nothing to validate gravity on: it has no stretch that counts with samples {kind}; validate "
                "on a recording with dwells, or, for slow motion, identify with samples 'both'"
            )
        return self.validate_samples(samples, name)

    def validate_samples(self, samples: Samples, name: str = "") -> Validation:
        """Compare predictions with the torques of extracted samples."""
        unit = unit_of_joints(self.robot.chain.prismatic, "N m", "N")
        return validate_torque(name, self.robot.joint_names, samples.torque, self.predict_samples(samples), unit)

    def friction_torque(self) -> tuple[NDArray, NDArray]:
        """Return torque minus gravity (n, 2) of each joint moving upwards and downwards, and the standard errors.

        These are sums of offset and Coulomb friction. The data determine the sums even where friction that depends on
        the direction cannot be distinguished from a sensor offset. NaN if undetermined.
        """
        rows = np.zeros((self.robot.n_joints, 2, len(self.names)))
        for i, joint in enumerate(self.robot.joint_names):
            for label, signs in (("offset", (1.0, 1.0)), ("coulomb", (1.0, -1.0))):
                if f"{label} {joint}" in self.names:
                    rows[i, :, self.names.index(f"{label} {joint}")] = signs
            rows[i] *= f"coulomb {joint}" in self.names
        values = rows @ self.values
        errors = standard_errors_of(rows, self.covariance)
        largest = np.abs(self.samples.torque).max(axis=0)[:, None]
        unknown = ~self._is_determined(rows) | ~rows.any(axis=2) | (errors > largest)
        values[unknown], errors[unknown] = np.nan, np.nan
        return values, errors

    def verdict(self, validations: Sequence[Validation] = ()) -> str:
        """Say how many joints are observable, and how accurately torque is predicted."""
        loaded = [state for state in self.observability.values() if not state.torque_free]
        known = sum(state.observable for state in loaded)
        largest = np.abs(self.samples.torque).max(axis=0)
        worst = float(np.max(self.residual_rms / np.where(largest > 0, largest, np.nan), initial=0.0))
        fit = f"the fitted torque is explained within {percent(worst)} of the largest of each joint"
        observable = "all" if known == len(loaded) else f"{known} of {len(loaded)}"
        return f"Gravity of {observable} joints that it loads is observable; {unseen_agreement(validations) or fit}."

    def joint_table(self, _validations: Sequence[Validation] = ()) -> list[str]:
        """Return moments with 95 % intervals, torque minus gravity by direction, and residual."""
        half = half_width(1.0, self._pick(self.gravity.names, self.dof))
        value = self.parameters
        error = self.standard_errors
        rows = []
        for i, joint in enumerate(self.robot.joint_names):
            moments = [f"{value[c]:+.4f} ± {half[c] * error[c]:.4f}" for c in columns_of(self.gravity, i)]
            if not self.observability[joint].observable:
                moments = ["not observable"]
            friction = ("–" if np.isnan(torque) else f"{torque:+.3f}" for torque in self.friction_torque()[0][i])
            rows.append([joint, *[*moments, ""][:2], *friction, f"{self.residual_rms[i]:.3f}"])
        return text_table(("joint", "n_x [kg m]", "n_y [kg m]", "moving up", "and down", "rms [N m]"), rows)

    def notes(self) -> list[str]:
        """Return the remarks, then why joints are not observable."""
        direction = [] if self.direction is None else [str(self.direction)]
        reasons = [f"{joint}: {state.reason}" for joint, state in self.observability.items() if not state.observable]
        return [*direction, *self.remarks, *reasons]

    def _table(self) -> dict[str, Sequence]:
        return parameter_table(self.robot, self.gravity.names, self.parameters, self)

    def sections(self) -> dict:
        """Return the sections `gravity` and `friction`."""
        value = self.parameters
        error = self.standard_errors
        dof = self._pick(self.gravity.names, self.dof)
        reasons = {joint: state.reason for joint, state in self.observability.items() if not state.observable}
        return {
            "gravity": gravity_section(self.gravity, value, error, reasons, dof),
            "friction": {joint: self._friction_entry(i) for i, joint in enumerate(self.robot.joint_names)},
        }

    def _friction_entry(self, i: int) -> dict:
        """Return the friction of a joint; torques by direction have the smaller degrees of freedom of their parts."""
        terms = ("coulomb", "viscous", "offset")
        dofs = self._pick([f"{term} {self.robot.joint_names[i]}" for term in terms], self.dof)
        entries = {}
        for term, dof in zip(terms, dofs, strict=True):
            values, errors = self.per_joint(term)
            entries[term] = (values[i], errors[i], dof)
        values, errors = (column[i] for column in self.friction_torque())
        both = np.fmin(dofs[0], dofs[2])
        by_direction = {name: (v, e, both) for name, v, e in zip(DIRECTIONS, values, errors, strict=True)}
        return joint_friction_entry(entries | by_direction)

    def _pick(self, names: tuple[str, ...] | list[str], values: NDArray) -> NDArray:
        """Return the values of some unknowns by name; NaN if undetermined."""
        index = {
            name: i
            for i, name in enumerate(self.names)
            if self.inflation[i] <= MAX_INFLATION and self._is_trusted(name)
        }
        return np.array([values[index[name]] if name in index else np.nan for name in names])

    def _is_trusted(self, name: str) -> bool:
        joint = moment_joints(self.gravity).get(name)
        return joint is None or self.observability[joint].observable

    def _gravity_rows(self, q: NDArray) -> NDArray:
        """Return the rows (N, n, k) of the gravity torque in the columns of `names`."""
        full = self.gravity.regressor(q)
        rows = np.zeros((*full.shape[:2], len(self.names)))
        for column, name in enumerate(self.gravity.names):
            if name in self.names:
                rows[..., self.names.index(name)] = full[..., column]
        if TURNS[0] in self.names:
            rows[..., -2:] = turn_torques(self.robot, np.nan_to_num(self.parameters), q)
        return rows

    def _evaluate(self, rows: NDArray) -> NDArray:
        """Return the torques of rows (…, k); NaN if undetermined."""
        torque = rows @ self.values
        # If only noise moves a joint, its moments have errors that exceed its largest torque: count as undetermined.
        vague = standard_errors_of(rows, self.covariance) > np.abs(self.samples.torque).max(axis=0)
        torque[vague | ~self._is_determined(rows)] = np.nan
        return torque

    def _is_determined(self, rows: NDArray) -> NDArray:
        """Return a mask (…) of the rows (…, k) that lie in the space spanned by the data."""
        return within(rows / self.scale, self.determined, MAX_UNDETERMINED_FRACTION)
