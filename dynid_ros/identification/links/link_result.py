"""Result of a link identification: links, friction, intervals, undetermined parameters, URDF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.display import as_fine_as, percent, text_table
from dynid_ros.errors import IdentificationError, ModelError
from dynid_ros.estimation.estimate import CONFIDENCE_LEVEL, MAX_RELATIVE_ERROR, BaseEstimate, half_width
from dynid_ros.estimation.least_squares import standard_errors_of
from dynid_ros.files import write_atomically
from dynid_ros.identification.link_prediction import validate
from dynid_ros.identification.result import Result, unseen_agreement
from dynid_ros.identified.friction import format_of, friction_section
from dynid_ros.identified.gravity import gravity_section
from dynid_ros.identified.gravity_direction import GravityDirection
from dynid_ros.identified.identified_file import FORMATS, as_numbers
from dynid_ros.identified.links import (
    MIN_HIDDEN_PART,
    RESIDUALS_KEY,
    KnownArm,
    LinkModel,
    base_parameters_section,
    links_section,
    signals_section,
)
from dynid_ros.identified.validation import Repeatability, Validation
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import LINK_PARAMETER_NAME, BaseParameters, parameter_table
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, is_possible
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.model.urdf_export import posture_error, urdf_with_inertias
from dynid_ros.recording.recording import RecordingLike, read_all


def _gravity(
    robot: RobotModel, base: BaseParameters, estimate: BaseEstimate, parameters: NDArray, covariance: NDArray | None
) -> dict:
    """Return the moments of the identified links, for gravity compensation.

    The prior draws the moments of "consistent" links towards the URDF, so they have the smaller errors of these links.
    The base parameters decide which moments are known, and have the degrees of freedom.
    """
    gravity = GravityModel(robot)
    moments, free = gravity.project(parameters), gravity.unobservable_axes()
    inertial = base.columns < parameters.size
    # A combination with a rotor inertia says as little of the links' moments as one of no motion.
    combinations = base.combinations[inertial]
    projection = np.pad(gravity.projection, [(0, 0), (0, combinations.shape[1] - parameters.size)])
    shares = np.linalg.lstsq(combinations.T, projection.T, rcond=None)[0].T
    missing = np.abs(shares @ combinations - projection).max(axis=1) > MIN_HIDDEN_PART
    shares[np.abs(shares) < 1e-9] = 0.0
    unknown = missing | (np.abs(shares) @ ~np.isfinite(estimate.values[inertial]) > 0)
    if covariance is None:
        std = standard_errors_of(shares, estimate.covariance[np.ix_(inertial, inertial)])
    else:
        std = standard_errors_of(gravity.projection, covariance)
    dof = np.where(shares != 0.0, estimate.dof[inertial], np.inf).min(axis=1, initial=np.inf)
    std[unknown] = np.nan
    reasons = {
        joint: "its gravity torque is not told from friction and rotor inertia, or this motion does not show it"
        for i, (joint, torque_free) in enumerate(zip(robot.joint_names, free, strict=True))
        if not torque_free and unknown[gravity.columns(i)].any()
    }
    return gravity_section(gravity, moments, std, reasons, dof)


def beyond_the_arm(
    columns: LinkColumns, choice: Sequence[JointFriction], estimate: BaseEstimate, torque_rms: NDArray
) -> NDArray:
    """(k,) bool: the standard error alone would be more torque than the joint ever has; then nothing is known.

    It is the torque of an ordinary motion that counts. In the recording such a parameter may have had no part: dry
    friction of a joint that crept has a coefficient of any size.
    """
    robot, base = columns.robot, columns.whole_base(choice).columns
    parts = columns.random_regressor(choice)
    effect = np.mean([np.mean(part[..., base] ** 2, axis=0) for part in parts], axis=0)
    torque = [part[..., : robot.parameters.size] @ robot.parameters for part in parts]
    nominal = np.sqrt(np.mean(np.concatenate(torque) ** 2, axis=0))
    limit = np.where(np.isfinite(robot.limits.effort), robot.limits.effort, 0.0)
    most = np.maximum.reduce([torque_rms, nominal, limit])
    return np.any(np.sqrt(effect) * np.nan_to_num(estimate.standard_errors) > most[:, None], axis=0)


def drives_in_links(base: BaseParameters) -> list[str]:
    """Return the names of the terms of the drives, as rotor inertias, that torques show only together with links."""
    links = np.array([LINK_PARAMETER_NAME.fullmatch(name) is not None for name in base.names])
    combined = np.any(base.combinations[links[base.columns]] != 0.0, axis=0)
    return [name for name, of_link, shared in zip(base.names, links, combined, strict=True) if shared and not of_link]


def undetermined_remarks(base: BaseParameters, estimate: BaseEstimate) -> list[str]:
    """Return sentences on parameters that no motion shows, and on those that this motion does not determine."""
    remarks = []
    if shared := drives_in_links(base):
        remarks.append(
            f"torques show {', '.join(shared)} only together with links: the links written are as near to the URDF as "
            "the sums allow, and these terms take the rest"
        )
    hidden = [name for name, category in zip(base.names, base.categories, strict=True) if category == "unidentifiable"]
    if hidden:
        remarks.append(
            f"no motion of this arm shows {', '.join(hidden)}: their values follow from the URDF and from the rest"
        )
    undecided = [e for e, value in zip(estimate.expressions, estimate.values, strict=True) if not np.isfinite(value)]
    if undecided:
        remarks.append(f"this motion does not determine {'; '.join(undecided)}: move all joints, faster and further")
    with np.errstate(invalid="ignore"):
        uncertain = estimate.relative_standard_errors > MAX_RELATIVE_ERROR
        weak = [name for name, large in zip(estimate.names, uncertain, strict=True) if large]
    if weak:
        remarks.append(f"standard error above {MAX_RELATIVE_ERROR:.0%} of the value: {', '.join(weak)}")
    return remarks


@dataclass(frozen=True, eq=False, repr=False)
class LinkResult(Result):
    """Links and friction of an arm; see `LinkIdentification`.

    Attributes:
        model: links and friction that predict torques; physically consistent with the estimator "consistent".
        urdf_model: links of the URDF with friction fitted to the same data, for comparison.
        base: structure of the base parameters.
        base_parameters: estimates of the base parameters by the data alone.
        condition_number: condition number of the weighted base regressor with unit columns.
        noise: RMS residual (n,) of each joint by the data alone, N m, which weights the joints.
        residual_rms: RMS residual (n,) of `model` on the fitted data, N m.
        torque_rms: RMS torque (n,) of the fitted data, N m.
        urdf_residual_rms: RMS residual (n,) of `urdf_model` on the fitted data, N m.
        n_samples: number of equations per joint after decimation.
        remarks: sentences on choices and on the result.
        scores: mean logarithm of the squared error on held-out samples, by weight of the prior.
        direction: direction of gravity that was estimated, as in `robot.gravity`; None: it was given.
        base_links: links (10 n,) with the torques of the base parameters; their other parameters are zero.
        links_covariance: covariance (10 n, 10 n) of `parameters` by data and prior; None: by the data alone.
        ranges: smallest and largest recorded position of each joint, rad or m; `robot.posture` has the medians.
        repeatability: difference of torque between repetitions of a motion; None: not measured, or no repetition.
    """

    model: LinkModel
    urdf_model: LinkModel
    base: BaseParameters
    base_parameters: BaseEstimate
    condition_number: float
    noise: NDArray
    residual_rms: NDArray
    torque_rms: NDArray
    urdf_residual_rms: NDArray
    n_samples: int
    sources: tuple[str, ...]
    settings: dict
    remarks: tuple[str, ...]
    scores: Mapping[float, float]
    direction: GravityDirection | None = None
    base_links: NDArray = field(default_factory=lambda: np.zeros(0))
    links_covariance: NDArray | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    repeatability: Repeatability | None = None

    @property
    def robot(self) -> RobotModel:
        """Arm with the parameters of its URDF."""
        return self.model.robot

    @property
    def dof(self) -> NDArray:
        """Degrees of freedom (k,) of the variances of the base parameters."""
        return self.base_parameters.dof

    @property
    def friction(self) -> FrictionModel:
        """Friction model with the chosen terms."""
        return self.model.friction

    @property
    def parameters(self) -> NDArray:
        """Parameters (10 n,) of the links, in the order of `RobotModel.parameters`.

        Undetermined parameters are regularized towards the URDF.
        """
        return self.model.parameters

    @property
    def friction_coefficients(self) -> dict[str, float]:
        """Coefficients by name, such as "coulomb joint_2"."""
        return dict(zip(self.friction.names(self.robot), map(float, self.model.coefficients), strict=True))

    @property
    def missing(self) -> tuple[str, ...]:
        """Sentence on undetermined base parameters and on a motion that would determine them; empty: all are known."""
        undecided = ~np.isfinite(self.base_parameters.values)
        if not undecided.any():
            return ()
        names = [name for name, open_ in zip(self.base_parameters.names, undecided, strict=True) if open_]
        owners = dict(zip(self.friction.names(self.robot), self.friction.keys(self.robot.n_joints), strict=True))
        affected = {j for name in names for j in (owners[name][1] if name in owners else _link_joints(name))}
        joints = ", ".join(joint for j, joint in enumerate(self.robot.joint_names) if j in affected)
        return (
            f"{', '.join(self.sources)}: {len(names)} of {len(undecided)} base parameters are not determined "
            f"({', '.join(names)}), so links are not known and no URDF is written; record half a minute or more in "
            f"which all joints move at once, to both sides, far and fast, {joints} above all: `dynid excite` plans it",
        )

    @property
    def standard_errors(self) -> NDArray:
        """Standard errors (10 n,) of parameters that the data determine individually; NaN for the others."""
        return self._single_parameter_values(self.base_parameters.standard_errors)

    def confidence_intervals(self, level: float = CONFIDENCE_LEVEL) -> NDArray:
        """Return the intervals (10 n, 2) by the data alone; NaN for parameters that are not determined individually."""
        low, high = self.base_parameters.confidence_intervals(level).T
        return np.stack([self._single_parameter_values(low), self._single_parameter_values(high)], axis=1)

    @property
    def known_arm(self) -> KnownArm:
        """Model with its uncertainty, to identify a load from other recordings."""
        return KnownArm.of(self.model, self.base_parameters, ", ".join(self.sources))

    @property
    def r_squared(self) -> NDArray:
        """R² (n,) of the torque about zero by the identified model."""
        return 1 - (self.residual_rms / self.torque_rms) ** 2

    def predict(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> NDArray:
        """Return the sensor torque (N, n), with friction and offsets, of motions (N, n)."""
        return self.model.predict(q, qd, qdd)

    def validate(self, recording: RecordingLike) -> Validation:
        """Compare with a recording that was not fitted; torque and prediction pass the same filter.

        Raises:
            RecordingError: a joint of the robot is not in it.
            IdentificationError: no torque, or too short.
        """
        return validate(self.model, *read_all([recording], self.robot.joint_names))

    def further_lines(self) -> list[str]:
        """Return a table of the base parameters with half 95 % intervals and the values of the URDF."""
        estimate = self.base_parameters
        half = half_width(estimate.standard_errors, estimate.dof)
        columns = zip(estimate.values, half, estimate.nominal, estimate.expressions, strict=True)
        rows = [
            (as_fine_as(value, error), f"{error:.2g}", f"{nominal:.5g}", expression)
            for value, error, nominal, expression in columns
        ]
        return text_table(("estimate", "± 95 %", "URDF", "base parameter"), rows, left=(3,))

    def verdict(self, validations: Sequence[Validation] = ()) -> str:
        """Say how well torque is predicted, and how far the URDF is off."""
        if self.missing:
            count = int(np.isnan(self.base_parameters.values).sum())
            return f"The links are not known: {count} of {self.base.rank} base parameters are not determined."
        worst = float(np.max(self.residual_rms / self.torque_rms))
        agreement = (
            unseen_agreement(validations) or f"the fitted torque is explained within {percent(worst)} of its RMS"
        )
        urdf = self.urdf_residual_rms / self.torque_rms
        good = np.abs(self.base_parameters.relative_standard_errors) <= MAX_RELATIVE_ERROR
        ends = f"{percent(urdf.min())} to {percent(urdf.max())}"
        return (
            f"{agreement[0].upper()}{agreement[1:]}; the URDF is off by {ends}.\n"
            f"{np.count_nonzero(good)} of {len(good)} parameters are known to {percent(MAX_RELATIVE_ERROR)} or better; "
            f"condition number {self.condition_number:.3g}."
        )

    def joint_table(self, validations: Sequence[Validation] = ()) -> list[str]:
        """Return torque, prediction error on the first unseen recording (else on the fitted ones) and friction."""
        error = validations[0].rms if validations else self.residual_rms
        torque = error / validations[0].relative_rms if validations else self.torque_rms
        r2 = validations[0].r2 if validations else self.r_squared
        units = ["N" if prismatic else "N m" for prismatic in self.robot.chain.prismatic]
        kind = "unseen" if validations else "fitted"
        columns = {
            "torque RMS": [f"{value:.3g} {unit}" for value, unit in zip(torque, units, strict=True)],
            f"error, {kind}": [f"{value:.3g}" for value in error],
            "": [percent(value) for value in error / torque],
            "R²": [f"{value:.3f}" for value in r2],
        }
        if self.repeatability is not None:
            columns["× floor"] = [f"{value:.2g}" for value in self.repeatability.ratio]
        columns["friction"] = [self._friction_words(i) for i in range(self.robot.n_joints)]
        rows = list(zip(self.robot.joint_names, *columns.values(), strict=True))
        return text_table(("joint", *columns), rows, left=(0, len(columns)))

    def _friction_words(self, joint: int) -> str:
        """Return the friction of a joint in a few words: dry and viscous torque, and the names of other terms."""
        prismatic = self.robot.chain.prismatic[joint]
        units = {"coulomb": "N" if prismatic else "N m", "viscous": "N s/m" if prismatic else "N m s/rad"}
        values = self._joint_terms(joint)
        words = [
            f"{values[term]:.2g} {unit} {'dry' if term == 'coulomb' else ''}".rstrip()
            for term, unit in units.items()
            if term in values
        ]
        others = [term.replace("_", " ") for term in values if term not in (*units, "offset", "rotor_inertia")]
        return ", ".join([*words, *others]) or "none determined"

    def _joint_terms(self, joint: int) -> dict[str, float]:
        """Return the friction coefficients of a joint that the data determine, by term."""
        estimate = self.base_parameters
        unknown = {name for name, value in zip(estimate.names, estimate.values, strict=True) if np.isnan(value)}
        unknown |= set(drives_in_links(self.base))
        coefficients = self.friction_coefficients
        keys = zip(coefficients, self.friction.keys(self.robot.n_joints), strict=True)
        return {
            term: coefficients[name] for name, (term, owners) in keys if joint == owners[-1] and name not in unknown
        }

    def notes(self) -> list[str]:
        """Return the remarks in order of importance: parameters, URDF, then choices of friction and filters."""
        parameters = undetermined_remarks(self.base, self.base_parameters)
        choices = [remark for remark in self.remarks if remark not in parameters]
        choices.sort(key=lambda remark: remark.startswith("friction of ") or " Hz" in remark)
        weak = self.base_parameters.relative_standard_errors > MAX_RELATIVE_ERROR
        if weak.any():
            parameters[-1] = (
                f"{np.count_nonzero(weak)} parameters are weakly determined and hardly act on the torques above; "
                "`dynid excite --recorded` plans a motion that shows them"
            )
        direction = [] if self.direction is None else [str(self.direction)]
        return [*direction, *self.urdf_remarks, *parameters, *choices]

    def _line(self) -> str:
        found = f"{self.base.rank} base parameters, condition {self.condition_number:.3g}"
        return f"{self.robot.name}, {found}, R² of {min(self.r_squared):.3f} or more"

    def _table(self) -> dict[str, Sequence]:
        estimate = self.base_parameters
        more = {"urdf": estimate.nominal.tolist(), "expression": estimate.expressions}
        return parameter_table(self.robot, estimate.names, estimate.values, estimate) | more

    def sections(self) -> dict:
        """Return the sections of links, friction, base parameters and of the filters that predictions go through."""
        estimate = self.base_parameters
        gravity = _gravity(self.robot, self.base, estimate, self.parameters, self.links_covariance)
        sections: dict = {"gravity": gravity}
        if not self.missing:
            sections["links"] = links_section(self.robot, self.parameters, self.standard_errors)
        sections["friction"] = friction_section(self.robot, self.friction, self.model.coefficients, estimate)
        sections["base_parameters"] = base_parameters_section(
            estimate.expressions, estimate.values, estimate.standard_errors, estimate.nominal, estimate.dof
        )
        sections |= {} if self.missing else self.known_arm.document()
        sections[RESIDUALS_KEY] = dict(zip(self.robot.joint_names, as_numbers(self.residual_rms), strict=True))
        sections["signals"] = signals_section(self.model.signals)
        return sections

    def document(self) -> dict:
        """Return the content of `identified.yaml`; its format depends on the friction terms."""
        is_plain = self.model.signals.driver is None
        file_format = format_of(self.friction, self.robot.n_joints) if is_plain else FORMATS[-1]
        remarks = [*self.remarks, *self.urdf_remarks]
        return super().document() | {"format": file_format, "remarks": remarks}

    @cached_property
    def urdf(self) -> str:
        """URDF of the robot with the identified inertias; nothing else in it changes.

        Raises:
            IdentificationError: links are undetermined, or not physically consistent, as with other estimators than
                "consistent".
            ModelError: the robot does not come from a URDF.
        """
        if self.missing:
            raise IdentificationError(self.missing[0])
        possible = is_possible(self.parameters.reshape(-1, PARAMETERS_PER_LINK))
        if not possible.all():
            names = [name for name, good in zip(self.robot.link_names, possible, strict=True) if not good]
            raise IdentificationError(
                f"no real body has the identified inertia of {', '.join(names)}; "
                "use the estimator 'consistent' for a URDF"
            )
        return urdf_with_inertias(self.robot, self.parameters)

    def write_urdf(self, path: str | Path) -> Path:
        """Write `urdf`; errors as there."""
        return write_atomically(path, self.urdf)

    @cached_property
    def urdf_remarks(self) -> tuple[str, ...]:
        """Sentences on the torque error of the URDF if a gripper on the arm moves."""
        try:
            remark = posture_error(self.robot, self.parameters, self.urdf, self.ranges)
        except (IdentificationError, ModelError):
            return ()
        return (remark,) if remark else ()

    def _single_parameter_values(self, values: NDArray) -> NDArray:
        """Return the values (10 n,) of base parameters that are single link parameters; NaN for the others."""
        found = np.full(self.parameters.size, np.nan)
        for row, column in enumerate(self.base.columns):
            if column < found.size and self.base.categories[column] == "identifiable":
                found[column] = values[row]
        return found


def _link_joints(name: str) -> tuple[int, ...]:
    """Return the joint, counted from 0, that moves the link of a parameter such as "Izz2"."""
    match = LINK_PARAMETER_NAME.fullmatch(name)
    return () if match is None else (int(match[2]) - 1,)
