"""Sections `links`, `base_parameters` and `signals` of `identified.yaml`, and the arm model that they contain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentifiedFileError, RecordingError
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.files.disk_arrays import new_array, row_blocks
from dynid_ros.identified.friction import friction_model
from dynid_ros.identified.identified_file import (
    DOF,
    Section,
    as_number,
    as_numbers,
    check_same_robot,
    file_of,
    is_numbers,
)
from dynid_ros.identified.validation import read_validations
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import joint_samples
from dynid_ros.model.base_parameters import parameter_names
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.signals.driver_filter import NONE, driver_filter

DRIVER_FILTER_KEY = "torque_filter"
"""Key of the filter that the driver applied to the torque."""
RESIDUALS_KEY = "residual_rms"
"""Key of the RMS residual of the fit by joint, N m or N."""
MIN_HIDDEN_PART = 1e-2
"""Smallest fraction of a moment (kg m per kg m, or m) that counts as hidden from the base parameters.

The structure of an arm hides a whole moment (1). Right angles that are written as 1.571 hide 1e-3.
"""
LINK_ENTRIES = {"mass": slice(0, 1), "mass_moment": slice(1, 4), "inertia": slice(4, 10)}
"""Positions of a link's parameters among ten, by their keys."""


@dataclass(frozen=True, eq=False)
class LinkModel:
    """Model of an arm with identified inertias and friction.

    Attributes:
        robot: kinematics and gravity; its own inertias are not used.
        parameters: (10 n,) inertial parameters of the links.
        friction: friction terms of the joints.
        coefficients: (f,) friction coefficients in the order of `friction.names(robot)`.
        signals: filters that recordings pass before they are compared with the model.
    """

    robot: RobotModel
    parameters: NDArray
    friction: FrictionModel
    coefficients: NDArray
    signals: LinkSignals

    def predict(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, starts: Sequence[int] = ()) -> NDArray:
        """Predict the measured torque (N, n) of a motion, with friction and offsets, N m or N.

        The samples must be consecutive if a friction term depends on earlier motion.

        Args:
            q: (N, n) positions, rad or m.
            qd: (N, n) velocities.
            qdd: (N, n) accelerations.
            starts: indices of samples, other than the first, at which a new stretch of consecutive samples begins.
        """
        q, qd, qdd = joint_samples(self.robot.joint_names, q=q, qd=qd, qdd=qdd)
        memory = self.friction.memory(q, starts)
        torque = new_array(*q.shape)
        for rows in row_blocks(len(q)):
            motion = q[rows], qd[rows], qdd[rows]
            before = {key: direction[rows] for key, direction in memory.items()}
            friction = self.friction.of_motion(self.robot, *motion, before) @ self.coefficients
            torque[rows] = self.robot.inverse_dynamics(*motion, self.parameters) + friction
        return torque

    def predict_recording(self, recording: Recording) -> NDArray:
        """Predict the torque (N, n) of every recorded sample, filtered like the driver's torque and not otherwise.

        Raises:
            IdentificationError: the recording has too few samples, or its rate is too low for the motion's cutoff.
        """
        chosen = recording.select(self.robot.joint_names)
        return self.signals.reported_at_samples(chosen, self.predict(*self.signals.motion_at_samples(chosen)))

    @property
    def joints(self) -> list[JointFriction]:
        """Friction terms of each joint."""
        return list(self.friction.per_joint(self.robot.n_joints))


def links_section(robot: RobotModel, parameters: NDArray, errors: NDArray) -> dict:
    """Return the section `links`, with standard errors, from parameters and errors (10 n,).

    It has mass (kg), mass moment (kg m) and inertia Ixx Ixy Ixz Iyy Iyz Izz (kg m²) about each link's frame.
    """
    section = {}
    for k, link in enumerate(robot.link_names):
        block = slice(PARAMETERS_PER_LINK * k, PARAMETERS_PER_LINK * (k + 1))
        section[link] = {**_link_values(parameters[block]), "std": _link_values(errors[block])}
    return section


def base_parameters_section(
    expressions: Sequence[str], values: NDArray, errors: NDArray, nominal: NDArray, dof: NDArray | None = None
) -> list[dict]:
    """Return the section `base_parameters`; all arrays have the shape (k,), with NaN for unknown numbers.

    Args:
        expressions: linear combinations, such as "Izz1 + Ixx2 + 0.2025 m3"; they may contain friction coefficients.
        values: unregularized estimates.
        errors: standard errors.
        nominal: values of the URDF.
        dof: degrees of freedom of the errors; None: those of the whole file.
    """
    columns = {"value": values, "std": errors, DOF: dof, "urdf": nominal}
    written = {key: as_numbers(column) for key, column in columns.items() if column is not None}
    return [
        {"expression": expression} | {key: column[k] for key, column in written.items()}
        for k, expression in enumerate(expressions)
    ]


def link_model(document: dict, robot: RobotModel) -> LinkModel:
    """Return the model in an `identified.yaml`.

    Raises:
        IdentifiedFileError: the file belongs to another robot, has no links, or is malformed.
    """
    check_same_robot(document, robot)
    links = Section.required(document, "links", "link")
    parameters = np.concatenate([_link_parameters(links, link) for link in robot.link_names])
    friction, coefficients = friction_model(document, robot)
    return LinkModel(robot, parameters, friction, coefficients, _signals(document))


def residual_rms(document: dict, joint_names: Sequence[str]) -> NDArray:
    """Return the largest RMS residual (n,) of the fit and of all validations, N m or N."""
    section = Section.required(document, RESIDUALS_KEY, "link")
    of_fit = np.array([section.number(joint) for joint in joint_names])
    return np.nanmax([of_fit, *(validation.rms for validation in read_validations(document, joint_names))], axis=0)


def signals_section(signals: LinkSignals) -> dict:
    """Return the section `signals`: filters that recordings pass before they are compared with the model."""
    section = {"cutoff": signals.cutoff, "motion_cutoff": signals.motion_cutoff, "reason": signals.reason}
    return section | ({} if signals.driver is None else {DRIVER_FILTER_KEY: str(signals.driver)})


def _signals(document: dict) -> LinkSignals:
    section = Section.required(document, "signals", "link")
    try:
        driver = driver_filter(str(section.get(DRIVER_FILTER_KEY, NONE)))
    except RecordingError as error:
        raise section.error(str(error)) from error
    if isinstance(driver, str):
        raise section.error(f"{DRIVER_FILTER_KEY} is '{driver}', expected the filter that was identified")
    cutoff = section.positive("cutoff")
    motion_cutoff = section.positive("motion_cutoff")
    return LinkSignals(cutoff, motion_cutoff, reason=str(section.get("reason", "")), driver=driver)


def _link_values(values: NDArray) -> dict:
    entry: dict = {key: as_numbers(values[entries]) for key, entries in LINK_ENTRIES.items()}
    return entry | {"mass": as_number(values[0])}


def _link_parameters(links: Section, link: str) -> NDArray:
    entry = links.entry(link, f"link '{link}'")
    values = [entry.get("mass")]
    for key, size in (("mass_moment", 3), ("inertia", 6)):
        values += entry[key] if is_numbers(entry.get(key), size) else [None]
    if not is_numbers(values, PARAMETERS_PER_LINK):
        raise entry.error("expected mass, mass_moment (3) and inertia (6 numbers), all finite")
    return np.array(values, dtype=float)


@dataclass(frozen=True, eq=False)
class KnownArm:
    """Model of an arm with its uncertainty.

    Attributes:
        model: inertias and friction of the arm.
        covariance: (k, k) covariance of base parameters and friction for exact torque gains; None: unknown.
        gain_shifts: (n, k) change of base parameters and friction per relative error of each joint's torque gain.
        source: origin of the model, for messages.
    """

    model: LinkModel
    covariance: NDArray | None = None
    gain_shifts: NDArray | None = None
    source: str = "the arm's model"

    @classmethod
    def of(cls, model: LinkModel, estimate: BaseEstimate, source: str) -> KnownArm:
        """Return the arm of a link identification."""
        covariance = estimate.covariance.copy()
        if estimate.gain_shifts is not None:
            covariance -= estimate.gain_error**2 * estimate.gain_shifts.T @ estimate.gain_shifts
        return cls(model, source=source)._with_errors(estimate.names, covariance, estimate.gain_shifts)

    @property
    def names(self) -> list[str]:
        """Names of the leading parameters (k,), in the order of the covariance."""
        links = np.array(parameter_names(self.model.robot))[self.columns.base.columns]
        names = np.full(self.columns.size, "", dtype=object)
        friction = self.model.friction.names(self.model.robot)
        names[self.columns.chosen(self.columns.first)] = [*links, *friction]
        return list(names[self.decided_columns])

    def _with_errors(self, names: Sequence[str], covariance: NDArray, gain_shifts: NDArray | None) -> KnownArm:
        """Return the arm with the errors of an estimate, whose leading parameters (m,) are `names`.

        A fit leaves out base parameters whose effect is below the noise; their errors are zero here.
        """
        own_names = self.names
        if unknown := set(names) - set(own_names):
            raise IdentifiedFileError(
                f"{self.source}: base_parameters has {', '.join(sorted(unknown))}, which this arm lacks; run the link "
                "identification again"
            )
        indices = [own_names.index(name) for name in names]
        whole = np.zeros((len(own_names), len(own_names)))
        whole[np.ix_(indices, indices)] = covariance
        shifts = None
        if gain_shifts is not None:
            shifts = np.zeros((len(gain_shifts), len(own_names)))
            shifts[:, indices] = gain_shifts
        return replace(self, covariance=whole, gain_shifts=shifts)

    @cached_property
    def columns(self) -> LinkColumns:
        """Columns of base parameters and friction."""
        return LinkColumns.of(self.model.robot, self.model.friction)

    @property
    def decided_columns(self) -> NDArray:
        """Indices (k,) of the determined columns among `columns`, in the order of the covariance."""
        return self.columns.independent(self.columns.first)

    @property
    def terms(self) -> NDArray:
        """Indices (k,) of the determined columns among link parameters followed by friction coefficients."""
        links = self.columns.base.columns
        whole = self.columns.whole_base(self.columns.first).columns
        return np.array([*links, *whole[whole >= self.model.robot.parameters.size]], dtype=int)

    @property
    def values(self) -> NDArray:
        """Base parameters and friction (k,) of the model, in the order of the covariance."""
        whole = self.columns.whole_base(self.columns.first)
        # A rotor inertia that has the same effect as a link parameter is a part of that base parameter.
        values = whole.project(np.concatenate([self.model.parameters, self.model.coefficients]))
        value_of = dict(zip(whole.columns.tolist(), values, strict=True))
        return np.array([value_of[term] for term in self.terms.tolist()])

    def document(self) -> dict:
        """Return entries of `identified.yaml` with the uncertainty, one text per row of each matrix.

        Only the lower triangle of the covariance is written.
        """
        entries = {}
        if self.covariance is not None:
            entries["base_covariance"] = [_text(row[: i + 1]) for i, row in enumerate(self.covariance)]
        if self.gain_shifts is not None:
            entries["base_gain_shifts"] = [_text(row) for row in self.gain_shifts]
        return entries


class Identified(Protocol):
    """Interface of results of a link identification."""

    @property
    def known_arm(self) -> KnownArm:
        """Identified arm with its uncertainty."""


def as_known(arm: KnownArm | LinkModel | Identified) -> KnownArm:
    """Return an arm as a `KnownArm`; the uncertainty of a mere `LinkModel` is unknown."""
    if isinstance(arm, KnownArm):
        return arm
    return KnownArm(arm) if isinstance(arm, LinkModel) else arm.known_arm


def known_arm(document: dict, robot: RobotModel) -> KnownArm:
    """Return the arm in an `identified.yaml`, with its uncertainty if the file has it."""
    model = link_model(document, robot)
    source = file_of(document)
    if "base_covariance" not in document:
        return KnownArm(model, source=source)
    reader = Section(document, source)
    arm = KnownArm(model, source=source)
    # Without a list of base parameters in the file, the covariance is that of all of them.
    names = _leading_names(reader, arm.names) if "base_parameters" in document else arm.names
    size = len(names)
    lower = np.zeros((size, size))
    for i, row in enumerate(reader.rows("base_covariance", range(1, size + 1))):
        lower[i, : i + 1] = row
    if np.any(np.diag(lower) < 0):
        raise reader.error("base_covariance has a negative variance")
    covariance = lower + np.tril(lower, -1).T
    shifts = None
    if "base_gain_shifts" in document:
        shifts = np.array(reader.rows("base_gain_shifts", [size] * robot.n_joints))
    return arm._with_errors(names, covariance, shifts)


def _leading_names(document: Section, known: Sequence[str]) -> list[str]:
    """Return the leading parameter of each entry of `base_parameters`, which must be in `known`, those of the arm."""
    entries = document.get("base_parameters")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise document.error("base_parameters is malformed, expected a list of mappings")
    names = []
    for entry in entries:
        expression = str(entry.get("expression"))
        leading = [name for name in known if expression == name or expression.startswith((f"{name} + ", f"{name} - "))]
        if len(leading) != 1:
            raise document.error(f"base_parameters has '{expression}', which is no base parameter of this arm")
        names += leading
    return names


def _text(row: NDArray) -> str:
    """Return the numbers of a row as text, with blanks between them."""
    return " ".join(f"{value:.6g}" for value in row)
