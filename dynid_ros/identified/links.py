"""A model of links and friction that predicts torques."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentifiedFileError, ModelError
from dynid_ros.estimation.estimate import KEY, BaseEstimate
from dynid_ros.identified.identified_file import (
    DIRECTIONS,
    _finite,
    _number,
    _section,
    check_same_robot,
    file_of,
    is_number,
)
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import COUPLING_TERMS, FrictionModel, JointFriction
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals


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

    def predict(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> NDArray:
        """(N, n) torque that the sensors read, friction and offsets included, of motions (N, n) each."""
        q, qd, qdd = (np.asarray(x, dtype=float) for x in (q, qd, qdd))
        rigid = self.robot.inverse_dynamics(q, qd, qdd, self.parameters)
        return rigid + self.friction.regressor(qd, qdd) @ self.coefficients

    def predict_recording(self, recording: Recording) -> NDArray:
        """(N, n) torque at every recorded sample, not filtered.

        Raises:
            IdentificationError: too few samples, or too slow a recording for the motion cut-off.

        """
        return self.predict(*self.signals.motion_at_samples(recording.select(self.robot.joint_names)))

    @property
    def joints(self) -> list[JointFriction]:
        """Friction terms of each joint."""
        return list(self.friction.of(self.robot.n_joints))


# Sections of `identified.yaml` that links fill, and back.


SHAPES = ("smoothing", "dead_zone", "stribeck_velocity")
LINK_ENTRIES = (slice(0, 1), slice(1, 4), slice(4, 10))
MISSING = 1e-2
"""Part of a moment (kg m per kg m, or m) that base parameters do not span. What the arm's structure hides has 1; right
angles written as 1.571 leave 1e-3."""
COMMON_TERMS = ("coulomb", "viscous", "offset", "rotor_inertia")


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


def friction_section(model: LinkModel, estimate: BaseEstimate) -> dict:
    """Coefficients by joint with their standard errors, and the shape of the terms."""
    robot = model.robot
    values = dict(zip(model.friction.names(robot), model.coefficients, strict=True))
    errors = dict(zip(estimate.names, estimate.standard_errors, strict=True))
    freedom = dict(zip(estimate.names, estimate.freedom, strict=True))
    found = dict(zip(estimate.names, estimate.values, strict=True))
    section: dict = {}
    for joint, friction in zip(robot.joint_names, model.joints, strict=True):
        # What the data do not decide is no coefficient, though the model needs some number in its place.
        own = {term: _number(values[f"{term} {joint}"]) for term in friction.terms}
        own |= {term: None for term in own if np.isnan(found.get(f"{term} {joint}", 0.0))}
        entry: dict = {term: own.get(term) for term in COMMON_TERMS}
        if friction.asymmetric:
            for term in ("coulomb", "viscous"):
                ways = [own.get(f"{term}_positive"), own.get(f"{term}_negative")]
                entry[term] = float(np.mean(known)) if len(known := [w for w in ways if w is not None]) == 2 else None
        entry |= own
        entry |= {name: getattr(friction, name) for name in SHAPES}
        entry["terms"] = list(friction.terms)
        entry["std"] = {term: _number(errors.get(f"{term} {joint}", np.nan)) for term in own}
        entry[KEY] = {term: _number(freedom.get(f"{term} {joint}", np.nan)) for term in own}
        for name, (value, error, count) in dry_torques(own, joint, estimate).items():
            entry[name], entry["std"][name], entry[KEY][name] = _number(value), _number(error), _number(count)
        section[joint] = entry
    if model.friction.coupled:
        section["coupled"] = [
            {
                "joints": [robot.joint_names[i], robot.joint_names[j]],
                **{
                    term: float(values[f"{term} {robot.joint_names[i]} {robot.joint_names[j]}"])
                    for term in COUPLING_TERMS
                },
            }
            for i, j in model.friction.coupled
        ]
    return section


def dry_torques(own: dict, joint: str, estimate: BaseEstimate) -> dict[str, tuple[float, float, float]]:
    """Coulomb friction and offset together in each direction of motion, standard error, degrees of freedom.

    Of joints with an offset alone: it looks like friction that differs by direction, and only their sum is found.

    Args:
        own: coefficients by term, None for those that the data do not decide.
        joint: whose they are.
        estimate: by the data.

    """
    own = {term: value for term, value in own.items() if value is not None}  # what the data do not decide is not there
    if "offset" not in own:
        return {}
    index, found = {name: i for i, name in enumerate(estimate.names)}, {}
    for name, sign in zip(DIRECTIONS, (1.0, -1.0), strict=True):
        side = name.removeprefix("torque_")
        signs = {"offset": 1.0, "coulomb": sign, f"coulomb_{side}": sign}
        terms = [term for term in own if term in signs]
        places = [index.get(f"{term} {joint}", -1) for term in terms]
        factor = np.array([signs[term] for term in terms])
        error = freedom = np.nan
        if min(places) >= 0 and np.isfinite(estimate.values[places]).all():
            error = float(np.sqrt(max(factor @ estimate.covariance[np.ix_(places, places)] @ factor, 0.0)))
            freedom = float(estimate.freedom[places].min())
        found[name] = (float(factor @ [own[term] for term in terms]), error, freedom)
    return found if len(terms) > 1 else {}


def link_model(document: dict, robot: RobotModel) -> LinkModel:
    """The model that an `identified.yaml` holds.

    Raises:
        IdentifiedFileError: of another robot, without links, or malformed.

    """
    check_same_robot(document, robot)
    links = _section(document, "links")
    parameters = np.concatenate([_link_parameters(document, links, link) for link in robot.link_names])
    section = _section(document, "friction")
    joints, coefficients = [], []
    for joint in robot.joint_names:
        entry = section.get(joint)
        if not isinstance(entry, dict) or not isinstance(entry.get("terms"), list):
            raise IdentifiedFileError(
                f"{file_of(document)}: friction of joint '{joint}' is missing; run the link identification again"
            )
        joints.append(_joint_friction(document, joint, entry))
        coefficients += [_finite(document, entry, term, f"friction of joint '{joint}'") for term in joints[-1].terms]
    coupled = []
    pairs = section.get("coupled", [])
    if not isinstance(pairs, list):
        raise IdentifiedFileError(f"{file_of(document)}: friction: coupled is {pairs!r}, expected a list of pairs")
    for entry in pairs:
        coupled.append(_pair(document, robot, entry))
        coefficients += [_finite(document, entry, term, "coupled friction") for term in COUPLING_TERMS]
    signals = _section(document, "signals")
    cutoffs = {name: _finite(document, signals, name, "signals") for name in ("cutoff", "motion_cutoff")}
    for name, cutoff in cutoffs.items():
        if cutoff <= 0:
            raise IdentifiedFileError(
                f"{file_of(document)}: {name}, signals, is {cutoff:g}, expected a frequency above 0"
            )
    return LinkModel(
        robot,
        parameters,
        FrictionModel(joints, coupled),
        np.array(coefficients),
        LinkSignals(**cutoffs, reason=str(signals.get("reason", ""))),
    )


def _pair(document: dict, robot: RobotModel, entry: object) -> tuple[int, int]:
    names = entry.get("joints") if isinstance(entry, dict) else None
    if not isinstance(names, list) or len(names) != 2 or names[0] == names[1]:
        raise IdentifiedFileError(f"{file_of(document)}: friction: coupled joints {entry!r}: not two joints")
    try:
        return robot.joint_names.index(names[0]), robot.joint_names.index(names[1])
    except ValueError as error:
        raise IdentifiedFileError(
            f"{file_of(document)}: friction: coupled joints {names}; the robot has {', '.join(robot.joint_names)}"
        ) from error


def _joint_friction(document: dict, joint: str, entry: dict) -> JointFriction:
    where = f"friction of joint '{joint}'"
    terms = [str(term) for term in entry["terms"]]
    plain = [term.removesuffix("_positive").removesuffix("_negative") for term in terms]
    stribeck = None if entry.get("stribeck_velocity") is None else _finite(document, entry, "stribeck_velocity", where)
    try:
        friction = JointFriction(
            coulomb="coulomb" in plain,
            viscous="viscous" in plain,
            offset="offset" in plain,
            rotor_inertia="rotor_inertia" in plain,
            asymmetric=plain != terms,
            smoothing=_finite(document, entry, "smoothing", where),
            dead_zone=_finite(document, entry, "dead_zone", where),
            stribeck_velocity=stribeck,
        )
    except ModelError as error:
        raise IdentifiedFileError(f"{file_of(document)}: {where}: {error}") from error
    if list(friction.terms) != terms:
        raise IdentifiedFileError(f"{file_of(document)}: {where} has terms {terms}, expected {list(friction.terms)}")
    return friction


def _link_values(values: NDArray) -> dict:
    mass, moment, inertia = (values[entries] for entries in LINK_ENTRIES)
    return {
        "mass": _number(mass[0]),
        "mass_moment": [_number(v) for v in moment],
        "inertia": [_number(v) for v in inertia],
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


# An arm whose links and friction are known, and how well.


@dataclass(frozen=True, eq=False)
class KnownArm:
    """Model of an arm and the errors of what it was identified from.

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
        return LinkColumns(self.model.robot, [(joint,) for joint in self.model.joints], self.model.friction.coupled)

    @property
    def decided_columns(self) -> NDArray:
        """(k,) of `columns`, in the order of the covariance."""
        return self.columns.independent([0] * self.model.robot.n_joints)

    @property
    def terms(self) -> NDArray:
        """(k,) where in the links' parameters, followed by the friction's coefficients, the decided columns are."""
        links, whole = self.columns.base.columns, self.columns.whole_base([0] * self.model.robot.n_joints).columns
        return np.array([*links, *whole[whole >= self.model.robot.parameters.size]], dtype=int)

    @property
    def values(self) -> NDArray:
        """(k,) base parameters and friction of the model, in the order of the covariance."""
        values = np.zeros(self.columns.size)
        chosen = self.columns.chosen([0] * self.model.robot.n_joints)
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
