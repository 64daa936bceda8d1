"""Sections `links`, `base_parameters` and `signals` of `identified.yaml`, and the arm that they make with friction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentifiedFileError, RecordingError
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.identified.friction import friction_model
from dynid_ros.identified.identified_file import (
    DOF,
    as_number,
    as_numbers,
    check_same_robot,
    file_of,
    is_number,
    read_finite,
    section_of,
)
from dynid_ros.identified.validation import read_validations
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.signals.driver_filter import NONE, driver_filter


@dataclass(frozen=True, eq=False)
class LinkModel:
    """Inertias and friction of an arm.

    Attributes:
        robot: kinematics and gravity; its own inertias are not used.
        parameters: (10 n,) of the links.
        friction: terms of the joints.
        coefficients: (f,) of friction, in the order of `friction.names(robot)`.
        signals: how recordings are filtered before they are compared; None: they cannot be.
    """

    robot: RobotModel
    parameters: NDArray
    friction: FrictionModel
    coefficients: NDArray
    signals: LinkSignals

    def predict(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, starts: Sequence[int] = ()) -> NDArray:
        """(N, n) torque that the sensors read, friction and offsets included, of motions (N, n) each.

        Where friction has a memory the samples are consecutive.

        Args:
            q: (N, n).
            qd: (N, n).
            qdd: (N, n).
            starts: samples with which a new run begins, besides the first.
        """
        q, qd, qdd = (np.asarray(x, dtype=float) for x in (q, qd, qdd))
        rigid = self.robot.inverse_dynamics(q, qd, qdd, self.parameters)
        memory = self.friction.memory(q, starts)
        return rigid + self.friction.of_motion(self.robot, q, qd, qdd, memory) @ self.coefficients

    def predict_recording(self, recording: Recording) -> NDArray:
        """(N, n) torque at every recorded sample, filtered by nothing but what the driver does.

        Raises:
            IdentificationError: too few samples, or too slow a recording for the motion cut-off.
        """
        own = recording.select(self.robot.joint_names)
        return self.signals.reported_at_samples(own, self.predict(*self.signals.motion_at_samples(own)))

    @property
    def joints(self) -> list[JointFriction]:
        """Friction terms of each joint."""
        return list(self.friction.of(self.robot.n_joints))


DRIVER = "torque_filter"
"""Key of what the driver did to the torque."""
LINK_ENTRIES = (slice(0, 1), slice(1, 4), slice(4, 10))
MISSING = 1e-2
"""Part of a moment (kg m per kg m, or m) that base parameters do not span. What the arm's structure hides has 1; right
angles written as 1.571 leave 1e-3."""


def links_section(robot: RobotModel, parameters: NDArray, errors: NDArray) -> dict:
    """Mass (kg), mass moment (kg m) and inertia Ixx Ixy Ixz Iyy Iyz Izz (kg m²) about each link's frame."""
    section = {}
    for k, link in enumerate(robot.link_names):
        block = slice(PARAMETERS_PER_LINK * k, PARAMETERS_PER_LINK * (k + 1))
        section[link] = {
            **_link_values(parameters[block]),
            "std": _link_values(errors[block]),
        }
    return section


def base_parameters_section(
    expressions: Sequence[str], values: NDArray, errors: NDArray, nominal: NDArray, dof: NDArray | None = None
) -> list[dict]:
    """Section `base_parameters`, from (k,) each; NaN where not known.

    Args:
        expressions: such as "Izz1 + Ixx2 + 0.2025 m3"; friction coefficients may be among them.
        values: by the data alone.
        errors: standard errors.
        nominal: of the URDF.
        dof: degrees of freedom of the errors; None: those of the whole file.
    """
    columns = {"value": values, "std": errors, DOF: dof, "urdf": nominal}
    written = {key: as_numbers(column) for key, column in columns.items() if column is not None}
    return [
        {"expression": expression} | {key: column[k] for key, column in written.items()}
        for k, expression in enumerate(expressions)
    ]


def link_model(document: dict, robot: RobotModel) -> LinkModel:
    """The model that an `identified.yaml` holds.

    Raises:
        IdentifiedFileError: of another robot, without links, or malformed.
    """
    check_same_robot(document, robot)
    links = section_of(document, "links", "link")
    parameters = np.concatenate([_link_parameters(document, links, link) for link in robot.link_names])
    friction, coefficients = friction_model(document, robot)
    return LinkModel(robot, parameters, friction, coefficients, _signals(document))


RESIDUALS = "residual_rms"
"""Key of the RMS by joint, N m, of what the model leaves of the torque that it was fitted to."""


def residual_rms(document: dict, joint_names: Sequence[str]) -> NDArray:
    """(n,) N m (N) of the fit, or of a recording that was not fitted, where it was larger there.

    Raises:
        IdentifiedFileError: the file does not say it.
    """
    section = section_of(document, RESIDUALS, "link")
    fitted = np.array([read_finite(document, section, joint, RESIDUALS) for joint in joint_names])
    return np.nanmax([fitted, *(each.rms for each in read_validations(document, joint_names))], axis=0)


def signals_section(signals: LinkSignals) -> dict:
    """Section `signals`: how recordings are filtered before they are compared with the model."""
    section = {"cutoff": signals.cutoff, "motion_cutoff": signals.motion_cutoff, "reason": signals.reason}
    return section | ({} if signals.driver is None else {DRIVER: str(signals.driver)})


def _signals(document: dict) -> LinkSignals:
    section = section_of(document, "signals", "link")
    cutoffs = {name: read_finite(document, section, name, "signals") for name in ("cutoff", "motion_cutoff")}
    for name, cutoff in cutoffs.items():
        if cutoff <= 0:
            raise IdentifiedFileError(
                f"{file_of(document)}: {name}, signals, is {cutoff:g}, expected a frequency above 0"
            )
    try:
        driver = driver_filter(str(section.get(DRIVER, NONE)))
    except RecordingError as error:
        raise IdentifiedFileError(f"{file_of(document)}: signals, {error}") from error
    if isinstance(driver, str):
        raise IdentifiedFileError(f"{file_of(document)}: signals, {DRIVER} is '{driver}'; expected what was found")
    return LinkSignals(**cutoffs, reason=str(section.get("reason", "")), driver=driver)


def _link_values(values: NDArray) -> dict:
    mass, moment, inertia = (values[entries] for entries in LINK_ENTRIES)
    return {
        "mass": as_number(mass[0]),
        "mass_moment": as_numbers(moment),
        "inertia": as_numbers(inertia),
    }


def _link_parameters(document: dict, links: dict, link: str) -> NDArray:
    entry = links.get(link)
    if not isinstance(entry, dict):
        raise IdentifiedFileError(f"{file_of(document)}: link '{link}' is missing; run the link identification again")
    parts = [[entry.get("mass")], entry.get("mass_moment"), entry.get("inertia")]
    values = [value for part in parts if isinstance(part, list) for value in part]
    if [isinstance(part, list) and len(part) for part in parts] != [1, 3, 6] or not all(map(is_number, values)):
        raise IdentifiedFileError(
            f"{file_of(document)}: link '{link}' needs mass, mass_moment (3) and inertia (6 numbers), all finite"
        )
    return np.array(values, dtype=float)


@dataclass(frozen=True, eq=False)
class KnownArm:
    """Model of an arm and how well it is known: the errors of what it was identified from.

    Attributes:
        model: links and friction.
        covariance: (k, k) of base parameters and friction, the gains of the torque sensors taken for exact; None: not
            known.
        gain_shifts: (n, k) change of base parameters and friction per relative error of each joint's torque gain.
        source: where it comes from, for messages.
    """

    model: LinkModel
    covariance: NDArray | None = None
    gain_shifts: NDArray | None = None
    source: str = "the arm's model"

    @classmethod
    def of(cls, model: LinkModel, estimate: BaseEstimate, source: str) -> KnownArm:
        """The arm that a link identification found."""
        covariance = estimate.covariance.copy()
        if estimate.gain_shifts is not None:
            covariance -= estimate.gain_error**2 * estimate.gain_shifts.T @ estimate.gain_shifts
        return cls(model, covariance, estimate.gain_shifts, source)

    @cached_property
    def columns(self) -> LinkColumns:
        """Columns of base parameters and friction."""
        return LinkColumns.of(self.model.robot, self.model.friction)

    @property
    def decided_columns(self) -> NDArray:
        """(k,) of `columns`, in the order of the covariance."""
        return self.columns.independent(self.columns.first)

    @property
    def terms(self) -> NDArray:
        """(k,) where in the links' parameters, followed by the friction's coefficients, the determined columns are."""
        links, whole = self.columns.base.columns, self.columns.whole_base(self.columns.first).columns
        return np.array([*links, *whole[whole >= self.model.robot.parameters.size]], dtype=int)

    @property
    def values(self) -> NDArray:
        """(k,) base parameters and friction of the model, in the order of the covariance."""
        values = np.zeros(self.columns.size)
        chosen = self.columns.chosen(self.columns.first)
        values[chosen] = [*self.columns.base.project(self.model.parameters), *self.model.coefficients]
        return values[self.decided_columns]

    def document(self) -> dict:
        """Entries of `identified.yaml`: a string for each row of the covariance's lower triangle, and of the shifts."""
        entries = {}
        if self.covariance is not None:
            entries["base_covariance"] = [_text(row[: i + 1]) for i, row in enumerate(self.covariance)]
        if self.gain_shifts is not None:
            entries["base_gain_shifts"] = [_text(row) for row in self.gain_shifts]
        return entries


class Identified(Protocol):
    """Result of a link identification."""

    @property
    def known_arm(self) -> KnownArm:
        """The arm that it found."""


def as_known(arm: KnownArm | LinkModel | Identified) -> KnownArm:
    """An arm as it is known: of a model alone no errors are."""
    if isinstance(arm, KnownArm):
        return arm
    return KnownArm(arm) if isinstance(arm, LinkModel) else arm.known_arm


def known_arm(document: dict, robot: RobotModel) -> KnownArm:
    """The arm that an `identified.yaml` holds; without errors in a file that has none.

    Raises:
        IdentifiedFileError: of another robot, without links, or malformed.
    """
    model, source = link_model(document, robot), file_of(document)
    if "base_covariance" not in document:
        return KnownArm(model, source=source)
    rows = _rows(document, "base_covariance")
    shifts = _rows(document, "base_gain_shifts") if "base_gain_shifts" in document else None
    size = KnownArm(model).decided_columns.size
    if [len(row) for row in rows] != list(range(1, size + 1)):
        raise IdentifiedFileError(
            f"{source}: base_covariance has {len(rows)} rows, which are not the lower triangle of {size} parameters of "
            "links and friction; run the link identification again"
        )
    if shifts is not None and [len(row) for row in shifts] != [size] * robot.n_joints:
        raise IdentifiedFileError(
            f"{source}: base_gain_shifts are not {robot.n_joints} rows of {size}; run the link identification again"
        )
    lower = np.zeros((size, size))
    for i, row in enumerate(rows):
        lower[i, : i + 1] = row
    if np.any(np.diag(lower) < 0):
        raise IdentifiedFileError(f"{source}: base_covariance is no covariance; run the link identification again")
    covariance = lower + np.tril(lower, -1).T
    return KnownArm(model, covariance, None if shifts is None else np.array(shifts), source)


def _text(row: NDArray) -> str:
    return " ".join(f"{value:.6g}" for value in row)


def _rows(document: dict, name: str) -> list[list[float]]:
    """Rows of finite numbers."""
    try:
        values = [[float(number) for number in row.split()] for row in document[name]]
    except (AttributeError, TypeError, ValueError) as error:
        raise IdentifiedFileError(
            f"{file_of(document)}: {name} has no rows of numbers with spaces between; run the link identification again"
        ) from error
    if not all(np.isfinite(row).all() for row in values):
        raise IdentifiedFileError(
            f"{file_of(document)}: {name} has numbers that are not finite; run the link identification again"
        )
    return values
