"""Sections of `identified.yaml` that links fill, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError, ModelError
from dynid_ros.estimation.estimate import KEY, BaseEstimate
from dynid_ros.identification.identified_file import DIRECTIONS, check_same_robot, file_of, is_number
from dynid_ros.identification.links.model import LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters
from dynid_ros.model.friction import COUPLING_TERMS, FrictionModel, JointFriction
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.recording.uniform_motion import LinkSignals

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


def gravity_section(robot: RobotModel, base: BaseParameters, estimate: BaseEstimate, parameters: NDArray) -> dict:
    """Moments of the identified links, for gravity compensation."""
    gravity = GravityModel(robot)
    moments, free = gravity.project(parameters), gravity.unobservable_axes()
    inertial = base.columns < parameters.size
    combinations = base.combinations[inertial][:, : parameters.size]
    shares = np.linalg.lstsq(combinations.T, gravity.projection.T, rcond=None)[0].T
    missing = np.abs(shares @ combinations - gravity.projection).max(axis=1) > MISSING
    shares[np.abs(shares) < 1e-9] = 0.0
    unknown = missing | (np.abs(shares) @ ~np.isfinite(estimate.values[inertial]) > 0)
    std = np.sqrt(np.einsum("ij,jk,ik->i", shares, estimate.covariance[np.ix_(inertial, inertial)], shares))
    freedom = np.where(shares != 0.0, estimate.freedom[inertial], np.inf).min(axis=1, initial=np.inf)
    section = {}
    for i, joint in enumerate(robot.joint_names):
        columns = range(len(moments))[gravity.columns(i)]
        labels = [gravity.names[c].split()[0] for c in columns]
        observable = not free[i] and not any(unknown[c] for c in columns)
        section[joint] = {
            **{label: float(moments[c]) for label, c in zip(labels, columns, strict=True)},
            "std": {label: _number(np.nan if unknown[c] else std[c]) for label, c in zip(labels, columns, strict=True)},
            KEY: {label: _number(freedom[c]) for label, c in zip(labels, columns, strict=True)},
            "observable": observable,
        }
        if free[i]:
            section[joint] |= {"torque_free": True, "reason": "gravity never loads this joint"}
        elif not observable:
            section[joint] |= {"torque_free": False, "reason": "the motion does not show its gravity torque"}
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


def _section(document: dict, name: str) -> dict:
    section = document.get(name)
    if not isinstance(section, dict):
        raise IdentifiedFileError(f"{file_of(document)} has no section '{name}'; run the link identification")
    return section


def _finite(document: dict, entry: dict, label: str, where: str) -> float:
    value = entry.get(label)
    if not is_number(value):
        raise IdentifiedFileError(f"{file_of(document)}: {label}, {where}, is {value!r}, expected a number")
    return float(value)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
