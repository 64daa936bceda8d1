"""A URDF with other inertias."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import ModelError
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, inertia_matrix, skew, transformed
from dynid_ros.model.pseudo_inertia import is_possible
from dynid_ros.model.robot import RobotModel
from dynid_ros.model.samples import finite_vector
from dynid_ros.model.urdf import LinkTree
from dynid_ros.model.urdf_document import parse_urdf
from dynid_ros.model.urdf_elements import inertial_parameters, pose
from dynid_ros.model.urdf_inertials import replace_inertials

SOURCE = "URDF"


def urdf_with_inertias(robot: RobotModel, parameters: ArrayLike) -> str:
    """Text of the robot's URDF with the inertias of `parameters` (10 n,); nothing else in it changes.

    The parameters of a link are of all that its joint carries up to the next joint of the chain:

    - what is fixed to the link becomes part of it, and keeps no mass of its own;
    - what hangs on it by joints that are not of the chain (the fingers of a gripper) keeps its inertia, which is taken
      off the link with these joints at zero, so that a simulation does not count it twice; where no possible body would
      be left, it is not taken off.

    Comments in the file say so. `RobotModel` leaves out what hangs on the chain by other joints, so of such a robot it
    reads the smaller inertias.

    Raises:
        ModelError: the robot does not come from a URDF; the parameters are of another size, not finite, or not those of
            possible bodies.

    """
    if robot.urdf is None:
        raise ModelError(
            f"{robot.name}: it does not come from a URDF, so there is none to write into; "
            "save identified.yaml instead, or make the model with RobotModel.from_urdf"
        )
    values = finite_vector(parameters, robot.parameters.size, "parameters (ten per link)")
    lumps = dict(zip(robot.link_names, values.reshape(-1, PARAMETERS_PER_LINK), strict=True))
    impossible = [link for link, lump in lumps.items() if not is_possible(lump)]
    if impossible:
        raise ModelError(
            f"{robot.name}: no real body has the inertia given for link(s) {', '.join(impossible)}, and no simulator "
            "accepts it; give physically possible parameters"
        )
    tree = LinkTree(parse_urdf(robot.urdf, SOURCE), SOURCE)
    elements = {}
    for link, lump in lumps.items():
        carried = list(_carried(tree, link, robot.link_names))
        fixed = [part.link for part in carried if not part.moving and tree.links[part.link].inertial is not None]
        moving = [part for part in carried if part.moving and part.parameters.any()]
        elements[link] = _main_inertial(lump, fixed, moving)
        elements |= {part: _inertial(np.zeros(PARAMETERS_PER_LINK), f"part of link {link}") for part in fixed}
    return replace_inertials(robot.urdf, elements)


@dataclass(frozen=True, eq=False)
class _Part:
    """A link that another carries: its parameters (10,) in that one's frame, joints at zero; whether it moves in it."""

    link: str
    parameters: NDArray
    moving: bool


def _carried(
    tree: LinkTree, link: str, chain: Sequence[str], placement: NDArray | None = None, moving: bool = False
) -> Iterator[_Part]:
    """What hangs on a link but for the links of the chain."""
    placement = np.eye(4) if placement is None else placement
    for joint in tree.child_joints[link]:
        if joint.child in chain or joint.type == "floating":
            continue
        there = placement @ pose(joint.origin, f"{SOURCE}, joint '{joint.name}'")
        moves = moving or joint.type != "fixed"
        own = inertial_parameters(tree.links[joint.child].inertial, f"{SOURCE}, link '{joint.child}'")
        yield _Part(joint.child, transformed(own, there), moves)
        yield from _carried(tree, joint.child, chain, there, moves)


def _main_inertial(lump: NDArray, fixed: Sequence[str], moving: Sequence[_Part]) -> list[str]:
    remarks = [f"includes what is fixed to this link: {', '.join(fixed)}"] if fixed else []
    if moving:
        names = ", ".join(part.link for part in moving)
        rest = lump - sum(part.parameters for part in moving)
        if is_possible(rest):
            lump = rest
            remarks.append(f"without what moves on this link, taken off with its joints at zero: {names}")
        else:
            remarks.append(f"with what moves on this link, which counts twice as no body would be left: {names}")
    return _inertial(lump, *remarks)


def _inertial(parameters: NDArray, *remarks: str) -> list[str]:
    """Children of `<inertial>`: remarks, centre of mass, and inertia about it in axes parallel to the link's."""
    mass, moment = parameters[0], parameters[1:4]
    center = moment / mass if mass else moment
    inertia = inertia_matrix(parameters) + mass * skew(center) @ skew(center)
    numbers = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), inertia[np.triu_indices(3)], strict=True)
    entries = " ".join(f'{name}="{_number(value)}"' for name, value in numbers)
    return [
        *(f"<!-- {_without_double_hyphens(remark)} -->" for remark in remarks),
        f'<origin xyz="{" ".join(map(_number, center))}" rpy="0 0 0"/>',
        f'<mass value="{_number(mass)}"/>',
        f"<inertia {entries}/>",
    ]


def _number(value: float) -> str:
    return repr(float(value))


def _without_double_hyphens(text: str) -> str:
    """XML forbids them in comments."""
    return re.sub("-(?=-)", "- ", text)
