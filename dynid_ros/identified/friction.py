"""Section `friction` of `identified.yaml`: coefficients of each joint, and what its dry friction and offset make up.

Of a joint with an offset Coulomb friction alone is not found: an offset looks like friction that differs by direction.
Then the file has the torques of both directions as well, which the data do determine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError, ModelError
from dynid_ros.identified.identified_file import (
    DOF,
    FORMATS,
    as_number,
    file_of,
    read_finite,
    section_of,
)
from dynid_ros.identified.joint_friction import DIRECTIONS, OWN, harmonics_of
from dynid_ros.model.friction import COUPLING_TERMS, SHAPES, FrictionModel, JointFriction
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.robot import RobotModel

if TYPE_CHECKING:
    from dynid_ros.estimation.estimate import BaseEstimate

COMMON_TERMS = ("coulomb", "viscous", "offset", "rotor_inertia")
LOADS = "load_parameters"
"""Key of the parameters of each link, a line of text each, whose torque makes up the terms `load`."""
NEW = ("load", *OWN)
"""Terms that readers of the first format do not know; nor do they know these shapes."""
NEW_SHAPES = ("sliding_length", "saturation_velocity")


def friction_section(robot: RobotModel, model: FrictionModel, coefficients: NDArray, estimate: BaseEstimate) -> dict:
    """Coefficients by joint with their standard errors, and the shape of the terms.

    Args:
        robot: the arm.
        model: terms of the joints.
        coefficients: (f,) in the order of `model.names(robot)`.
        estimate: what the data alone say of them.
    """
    values = dict(zip(model.names(robot), coefficients, strict=True))
    # The error of a combination, as of an offset with a rotor inertia, is not that of its coefficient.
    errors = {name: estimate.standard_errors[place] for name, place in estimate.alone.items()}
    dof = {name: estimate.dof[place] for name, place in estimate.alone.items()}
    found = dict(zip(estimate.names, estimate.values, strict=True))
    section: dict = {}
    for joint, friction in zip(robot.joint_names, model.of(robot.n_joints), strict=True):
        # What the data do not determine is no coefficient, though the model needs some number in its place.
        own = {term: as_number(values[f"{term} {joint}"]) for term in friction.terms}
        own |= {term: None for term in own if np.isnan(found.get(f"{term} {joint}", 0.0))}
        entry: dict = {term: own.get(term) for term in COMMON_TERMS}
        if friction.asymmetric:
            for term in ("coulomb", "viscous"):
                ways = [own.get(f"{term}_positive"), own.get(f"{term}_negative")]
                entry[term] = float(np.mean(known)) if len(known := [w for w in ways if w is not None]) == 2 else None
        entry |= own
        entry |= {name: getattr(friction, name) for name in SHAPES}
        entry["terms"] = list(friction.terms)
        entry["std"] = {term: as_number(errors.get(f"{term} {joint}", np.nan)) for term in own}
        entry[DOF] = {term: as_number(dof.get(f"{term} {joint}", np.nan)) for term in own}
        for name, numbers in dry_torques(own, joint, estimate).items():
            entry[name], entry["std"][name], entry[DOF][name] = map(as_number, numbers)
        section[joint] = entry
    if model.coupled:
        pairs = [(robot.joint_names[i], robot.joint_names[j]) for i, j in model.coupled]
        section["coupled"] = [
            {"joints": [i, j], **{term: float(values[f"{term} {i} {j}"]) for term in COUPLING_TERMS}} for i, j in pairs
        ]
    if model.needs_load:
        loads = robot.parameters if model.load_parameters is None else model.load_parameters
        section[LOADS] = [" ".join(f"{v!r}" for v in row) for row in loads.reshape(-1, PARAMETERS_PER_LINK).tolist()]
    return section


def format_of(model: FrictionModel, n_joints: int) -> str:
    """The oldest format of `identified.yaml` that holds a model: its readers know all its terms."""
    joints = model.of(n_joints)
    new = any(term.startswith(NEW) for joint in joints for term in joint.terms)
    return FORMATS[new or any(getattr(joint, shape) for joint in joints for shape in NEW_SHAPES)]


def dry_torques(own: dict, joint: str, estimate: BaseEstimate) -> dict[str, tuple[float, float, float]]:
    """Coulomb friction and offset together in each direction of motion, standard error, degrees of freedom.

    Only of joints with an offset.

    Args:
        own: coefficients by term, None for those that the data do not determine.
        joint: whose they are.
        estimate: by the data.
    """
    own = {term: value for term, value in own.items() if value is not None}
    if "offset" not in own:
        return {}
    index, found = estimate.alone, {}
    for name, sign in zip(DIRECTIONS, (1.0, -1.0), strict=True):
        side = name.removeprefix("torque_")
        signs = {"offset": 1.0, "coulomb": sign, f"coulomb_{side}": sign}
        terms = [term for term in own if term in signs]
        places = [index.get(f"{term} {joint}", -1) for term in terms]
        factor = np.array([signs[term] for term in terms])
        error = dof = np.nan
        if min(places) >= 0 and np.isfinite(estimate.values[places]).all():
            error = float(np.sqrt(max(factor @ estimate.covariance[np.ix_(places, places)] @ factor, 0.0)))
            dof = float(estimate.dof[places].min())
        found[name] = (float(factor @ [own[term] for term in terms]), error, dof)
    return found if len(terms) > 1 else {}


def friction_model(document: dict, robot: RobotModel) -> tuple[FrictionModel, NDArray]:
    """Terms of the joints, and their coefficients (f,).

    Raises:
        IdentifiedFileError: the section is missing or malformed, or a coefficient of it is not known.
    """
    section = section_of(document, "friction", "link")
    joints, coefficients = [], []
    for joint in robot.joint_names:
        entry = section.get(joint)
        if not isinstance(entry, dict) or not isinstance(entry.get("terms"), list):
            raise IdentifiedFileError(
                f"{file_of(document)}: friction of joint '{joint}' is missing; run the link identification again"
            )
        joints.append(_joint_friction(document, joint, entry))
        where = f"friction of joint '{joint}'"
        coefficients += [read_finite(document, entry, term, where) for term in joints[-1].terms]
    pairs = section.get("coupled", [])
    if not isinstance(pairs, list):
        raise IdentifiedFileError(f"{file_of(document)}: friction: coupled is {pairs!r}, expected a list of pairs")
    coupled = []
    for entry in pairs:
        coupled.append(_pair(document, robot, entry))
        coefficients += [read_finite(document, entry, term, "coupled friction") for term in COUPLING_TERMS]
    loads = _load_parameters(document, robot, section.get(LOADS)) if any(joint.load for joint in joints) else None
    return FrictionModel(joints, coupled, loads), np.array(coefficients)


def _load_parameters(document: dict, robot: RobotModel, rows: object) -> NDArray:
    try:
        loads = np.array([[float(number) for number in str(row).split()] for row in rows])  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        loads = np.empty(0)
    if loads.shape != (robot.n_links, PARAMETERS_PER_LINK) or not np.isfinite(loads).all():
        raise IdentifiedFileError(
            f"{file_of(document)}: friction: {LOADS} are not {robot.n_links} lines of {PARAMETERS_PER_LINK} numbers; "
            "run the link identification again"
        )
    return loads.ravel()


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
    # Files of old versions have no other shapes than these, which all have.
    given = [name for name in SHAPES if name in ("smoothing", "dead_zone") or entry.get(name) is not None]
    switches = ("coulomb", "viscous", "offset", "rotor_inertia", "load", "spring")
    chosen: dict[str, Any] = {name: name in plain for name in switches}
    try:
        chosen |= {name: read_finite(document, entry, name, where) for name in given}
        chosen["harmonics"] = tuple(harmonics_of(document, joint, terms))
        friction = JointFriction(
            asymmetric=plain != terms,
            **chosen,
        )
    except ModelError as error:
        raise IdentifiedFileError(f"{file_of(document)}: {where}: {error}") from error
    if list(friction.terms) != terms:
        raise IdentifiedFileError(f"{file_of(document)}: {where} has terms {terms}, expected {list(friction.terms)}")
    return friction
