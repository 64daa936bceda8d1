"""Section `friction` of `identified.yaml`: friction terms and coefficients of each joint.

If a joint has an offset, the data do not separate its Coulomb friction from it: an offset looks like friction that
depends on direction. The data do determine the dry torque of both directions, so the file has these torques too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ModelError
from dynid_ros.identified.identified_file import DOF, FORMATS, Section, as_number
from dynid_ros.identified.joint_friction import DIRECTIONS, harmonics_of
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.friction_terms import COUPLING_TERMS, SHAPE_PARAMETERS, TERM_FLAGS, term_family
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.robot import RobotModel

if TYPE_CHECKING:
    from dynid_ros.estimation.estimate import BaseEstimate

COMMON_TERMS = ("coulomb", "viscous", "offset", "rotor_inertia")
LOAD_PARAMETERS_KEY = "load_parameters"
"""Key of the link parameters from which the torque in the terms `load` follows, one line of text per link."""
FIRST_FORMAT_TERMS = frozenset({"coulomb", "viscous", "stribeck", "offset", "rotor_inertia"})
"""Families of the terms of the first format."""
SECOND_FORMAT_SHAPES = ("sliding_length", "saturation_velocity")
"""Shape parameters that only the second format has."""


def friction_section(robot: RobotModel, model: FrictionModel, coefficients: NDArray, estimate: BaseEstimate) -> dict:
    """Return the section: coefficients of each joint with standard errors, and shape parameters of the terms.

    Args:
        robot: the arm.
        model: friction terms of the joints.
        coefficients: (f,) in the order of `model.names(robot)`.
        estimate: unregularized estimate from the data.
    """
    values = dict(zip(model.names(robot), coefficients, strict=True))
    # Only terms that are base parameters by themselves have an error: that of a combination, such as an offset with a
    # rotor inertia, is not the error of its coefficient.
    errors = {name: estimate.standard_errors[place] for name, place in estimate.alone.items()}
    dof = {name: estimate.dof[place] for name, place in estimate.alone.items()}
    estimates = dict(zip(estimate.names, estimate.values, strict=True))
    section: dict = {}
    for joint, friction in zip(robot.joint_names, model.per_joint(robot.n_joints), strict=True):
        # An undetermined coefficient is null in the file, although the model has a number for it.
        written = {term: as_number(values[f"{term} {joint}"]) for term in friction.terms}
        written |= {term: None for term in written if np.isnan(estimates.get(f"{term} {joint}", 0.0))}
        entry: dict = {term: written.get(term) for term in COMMON_TERMS}
        if friction.asymmetric:
            for term in ("coulomb", "viscous"):
                positive = written.get(f"{term}_positive")
                negative = written.get(f"{term}_negative")
                entry[term] = None if positive is None or negative is None else (positive + negative) / 2
        entry |= written
        entry |= {name: getattr(friction, name) for name in SHAPE_PARAMETERS}
        entry["terms"] = list(friction.terms)
        entry["std"] = {term: as_number(errors.get(f"{term} {joint}", np.nan)) for term in written}
        entry[DOF] = {term: as_number(dof.get(f"{term} {joint}", np.nan)) for term in written}
        for name, numbers in dry_torques(written, joint, estimate).items():
            entry[name], entry["std"][name], entry[DOF][name] = map(as_number, numbers)
        section[joint] = entry
    if model.coupled:
        pairs = [(robot.joint_names[i], robot.joint_names[j]) for i, j in model.coupled]
        section["coupled"] = [
            {"joints": [i, j], **{term: float(values[f"{term} {i} {j}"]) for term in COUPLING_TERMS}} for i, j in pairs
        ]
    if model.needs_load:
        loads = robot.parameters if model.load_parameters is None else model.load_parameters
        rows = loads.reshape(-1, PARAMETERS_PER_LINK).tolist()
        section[LOAD_PARAMETERS_KEY] = [" ".join(map(repr, row)) for row in rows]
    return section


def format_of(model: FrictionModel, n_joints: int) -> str:
    """Return the oldest format of `identified.yaml` whose readers know all terms of the model."""
    joints = model.per_joint(n_joints)
    has_new_terms = any(term_family(term) not in FIRST_FORMAT_TERMS for joint in joints for term in joint.terms)
    has_new_shapes = any(getattr(joint, shape) for joint in joints for shape in SECOND_FORMAT_SHAPES)
    return FORMATS[has_new_terms or has_new_shapes]


def dry_torques(own: dict, joint: str, estimate: BaseEstimate) -> dict[str, tuple[float, float, float]]:
    """Return offset plus signed Coulomb friction in each direction, with standard error and degrees of freedom.

    The result is empty for a joint without an offset.

    Args:
        own: coefficients of the joint by term; None for an undetermined coefficient.
        joint: name of the joint.
        estimate: unregularized estimate from the data.
    """
    own = {term: value for term, value in own.items() if value is not None}
    if "offset" not in own:
        return {}
    index = estimate.alone
    torques = {}
    for name, sign in zip(DIRECTIONS, (1.0, -1.0), strict=True):
        side = name.removeprefix("torque_")
        signs = {"offset": 1.0, "coulomb": sign, f"coulomb_{side}": sign}
        terms = [term for term in own if term in signs]
        columns = [index.get(f"{term} {joint}", -1) for term in terms]
        factor = np.array([signs[term] for term in terms])
        error = np.nan
        dof = np.nan
        if min(columns) >= 0 and np.isfinite(estimate.values[columns]).all():
            error = float(np.sqrt(max(factor @ estimate.covariance[np.ix_(columns, columns)] @ factor, 0.0)))
            dof = float(estimate.dof[columns].min())
        torques[name] = (float(factor @ [own[term] for term in terms]), error, dof)
    return torques if len(terms) > 1 else {}


def friction_model(document: dict, robot: RobotModel) -> tuple[FrictionModel, NDArray]:
    """Return the friction terms of the joints and their coefficients (f,)."""
    section = Section.required(document, "friction", "link")
    joints: list[JointFriction] = []
    coefficients: list[float] = []
    for joint in robot.joint_names:
        entry = section.joint(joint)
        if not isinstance(entry.get("terms"), list):
            raise entry.error(f"terms is {entry.get('terms')!r}, expected a list")
        joints.append(_joint_friction(document, joint, entry))
        coefficients += [entry.number(term) for term in joints[-1].terms]
    pairs = section.get("coupled", [])
    if not isinstance(pairs, list):
        raise section.error(f"coupled is {pairs!r}, expected a list of pairs")
    coupled = []
    for pair in pairs:
        coupled.append(_pair(section, robot, pair))
        reader = Section(pair, f"{section.place}: coupled joints")
        coefficients += [reader.number(term) for term in COUPLING_TERMS]
    loads = _load_parameters(section, robot) if any(joint.load for joint in joints) else None
    return FrictionModel(joints, coupled, loads), np.array(coefficients)


def _load_parameters(section: Section, robot: RobotModel) -> NDArray:
    """Return the link parameters (10 n,) from which the torque in the terms `load` follows."""
    rows = section.rows(LOAD_PARAMETERS_KEY, [PARAMETERS_PER_LINK] * robot.n_links)
    return np.array(rows, dtype=float).ravel()


def _pair(section: Section, robot: RobotModel, entry: object) -> tuple[int, int]:
    """Return the indices of two coupled joints."""
    names = entry.get("joints") if isinstance(entry, dict) else None
    if not isinstance(names, list) or len(names) != 2 or names[0] == names[1]:
        raise section.error(f"coupled is {entry!r}, expected two joints")
    try:
        return robot.joint_names.index(names[0]), robot.joint_names.index(names[1])
    except ValueError as error:
        raise section.error(f"coupled joints are {names}; the robot has {', '.join(robot.joint_names)}") from error


def _joint_friction(document: dict, joint: str, entry: Section) -> JointFriction:
    """Return the friction terms of a joint."""
    terms = [str(term) for term in entry["terms"]]
    plain = [term.removesuffix("_positive").removesuffix("_negative") for term in terms]
    # Files of any age must have the shapes smoothing and dead_zone; old files lack the other shapes.
    shapes = [name for name in SHAPE_PARAMETERS if name in ("smoothing", "dead_zone") or entry.get(name) is not None]
    chosen: dict[str, Any] = {name: name in plain for name in TERM_FLAGS}
    try:
        chosen |= {name: entry.number(name) for name in shapes}
        chosen["harmonics"] = tuple(harmonics_of(document, joint, terms))
        friction = JointFriction(**chosen | {"asymmetric": plain != terms})
    except ModelError as error:
        raise entry.error(str(error)) from error
    if list(friction.terms) != terms:
        raise entry.error(f"terms are {terms}, expected {list(friction.terms)}")
    return friction
