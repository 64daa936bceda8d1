"""Export of a URDF with other inertias or friction: these elements are replaced, every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from xml.parsers import expat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import ModelError
from dynid_ros.model.arrays import finite_vector
from dynid_ros.model.base_parameters import random_motion
from dynid_ros.model.inertia import (
    PARAMETERS_PER_LINK,
    inertia_matrix,
    is_possible,
    possible_prior,
    pseudo_inertia,
    skew,
)
from dynid_ros.model.link_tree import CarriedLink, LinkTree
from dynid_ros.model.robot import RobotModel

_START_TAG = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")
_END_TAG = re.compile(rb"</[^>]*>")
_TAG_NAME = re.compile(rb"<([^\s/>]+)")


def replace_inertials(text: str, elements: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a URDF with other `<inertial>` elements for some links; all other bytes stay.

    A tree of elements would lose comments and formatting, so the elements are found in the text and replaced there.

    Args:
        text: text of a valid URDF.
        elements: children of the new `<inertial>` by link; a link without an `<inertial>` gets one.
    """

    def element(children: Sequence[str], margin: bytes, step: bytes) -> bytes:
        inner = b"".join(margin + step + child.encode() for child in children)
        return b"<inertial>" + inner + margin + b"</inertial>"

    return _replaced(
        text, _Places("link", "inertial"), {link: partial(element, children) for link, children in elements.items()}
    )


def replace_dynamics(text: str, damping: Mapping[str, float], friction: Mapping[str, float]) -> str:
    """Return the text of a URDF with other `<dynamics>` elements for some joints; all other bytes stay.

    Args:
        text: text of a valid URDF.
        damping: damping by joint, N m s/rad or N s/m.
        friction: Coulomb friction of the same joints, N m or N.
    """
    elements = {
        joint: f'<dynamics damping="{_number(damping[joint])}" friction="{_number(friction[joint])}"/>'.encode()
        for joint in damping
    }
    written = {joint: partial(lambda element, *_: element, element) for joint, element in elements.items()}
    return _replaced(text, _Places("joint", "dynamics"), written)


class _Places:
    """Byte ranges of the start tags of a robot's links or joints, and of the first child of one tag in each.

    Args:
        parent: tag of the links or joints.
        child: tag of the child.
    """

    def __init__(self, parent: str, child: str):
        self.child = child
        self._outer = ["robot", parent]
        self._path: list[str] = []
        self._name = ""
        self._begin = -1

    def of(self, data: bytes, names: Mapping[str, object]) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and name of each parent's child, or of its start tag if it has no child."""
        self._data = data
        self._parents: dict[str, tuple[int, int]] = {}
        self._children: dict[str, tuple[int, int]] = {}
        # The text is UTF-8, although its declaration may differ.
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.Parse(data, True)
        for name in names:
            yield (*self._children.get(name, self._parents[name]), name)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._path.append(tag)
        index = self._parser.CurrentByteIndex
        if self._path == self._outer:
            self._name = attributes["name"]
            self._parents[self._name] = (index, _end_of(_START_TAG, self._data, index))
        elif self._path == [*self._outer, self.child] and self._name not in self._children:
            self._begin = index

    def _end(self, tag: str) -> None:  # noqa: ARG002 - expat gives it
        if self._path == [*self._outer, self.child] and self._name not in self._children:
            # The index is the end of <inertial/>, but the start of the end tag of <inertial>...</inertial>.
            index = self._parser.CurrentByteIndex
            empty = _end_of(_START_TAG, self._data, self._begin) == index
            self._children[self._name] = (self._begin, index if empty else _end_of(_END_TAG, self._data, index))
        self._path.pop()


def _replaced(text: str, places: _Places, elements: Mapping[str, Callable[[bytes, bytes], bytes]]) -> str:
    """Return the text with other children, made by functions of the margin of their lines and an indentation step."""
    data = text.encode()
    pieces: list[bytes] = []
    done = 0
    for start, stop, name in sorted(places.of(data, elements)):
        pieces += [data[done:start], _replacement(data, slice(start, stop), elements[name], places.child.encode())]
        done = stop
    return b"".join([*pieces, data[done:]]).decode()


def _end_of(tag: re.Pattern[bytes], data: bytes, index: int) -> int:
    found = tag.match(data, index)
    return found.end() if found else index


def _replacement(data: bytes, cut: slice, element: Callable[[bytes, bytes], bytes], child: bytes) -> bytes:
    old = data[cut]
    start = cut.start
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    line = data[data.rfind(b"\n", 0, start) + 1 : start]
    # If the old element shares its line with others, so does the new one.
    margin = newline + line if not line.strip() else b""
    step = (b"\t" if b"\t" in line else b"  ") if margin else b""
    if old.startswith(b"<" + child):
        return element(margin, step)
    name = _TAG_NAME.match(old)
    tag = old[:-2].rstrip() + b">" if old.endswith(b"/>") else old
    end = margin + b"</" + (name[1] if name else b"") + b">" if old.endswith(b"/>") else b""
    return tag + margin + step + element(margin + step if margin else b"", step) + end


SOURCE = "URDF"
MAX_TORQUE_ERROR = 1e-9
"""Largest error of the file's torque, relative to the model's largest torque; a larger error exceeds rounding."""
MIN_GRAVITY_FRACTION = 1e-3
"""Fraction of the torque of motion below which gravity is compared with this fraction instead of with itself."""
SMALLEST_FLOAT = np.finfo(float).tiny
MIN_FINGER_MASS_KG = 1e-6
"""Mass of a finger without mass in the URDF, because simulators refuse massless bodies."""


def urdf_with_inertias(robot: RobotModel, parameters: ArrayLike) -> str:
    """Return the text of the robot's URDF with the inertias of `parameters` (10 m,); all other bytes stay.

    The parameters of a link include all that its joint carries up to the next joint of the chain:

    - Links that are fixed to the link become part of it and lose their mass.
    - Links that move on it by joints outside the chain (the fingers of a gripper) keep their inertia, which is
      subtracted from the link with these joints at `robot.posture`. If no possible body would be left, they keep a
      fraction of their inertia only.

    Comments in the file state this. Gravity and inverse dynamics of the text are compared with those of the parameters.

    Raises:
        ModelError: the robot does not come from a URDF; the parameters have another size, are not finite or not those
        of
            possible bodies; or the text has another torque than the parameters.
    """
    if robot.urdf is None:
        raise ModelError(
            f"{robot.name}: the model does not come from a URDF, which is needed to write one; "
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
    tree = robot.tree
    elements: dict[str, list[str]] = {}
    for link, lump in lumps.items():
        carried = [part for part in tree.carried(link, robot.link_names, robot.posture) if part.name != link]
        fixed = [part for part in carried if not part.joints and tree.links[part.name].inertial is not None]
        moving = [part for part in carried if part.joints and part.own.any()]
        names = [link, *(part.name for part in [*fixed, *moving])]
        elements |= dict(zip(names, _inertials(lump, fixed, moving), strict=False))
    urdf = replace_inertials(robot.urdf, elements)
    _check(robot, values, urdf)
    return urdf


def with_possible_hand(robot: RobotModel) -> tuple[RobotModel, list[str]]:
    """Return the robot with possible inertias for moving links outside the arm, such as fingers, also of another arm.

    The parameters of the arm, which include the links beyond it, stay: the carrying link loses the inertia that a
    finger gains.

    Returns:
        The robot, with another URDF, and one sentence for each changed link.
    """
    if robot.urdf is None:
        return robot, []
    tree = robot.tree
    elements: dict[str, list[str]] = {}
    remarks = []
    for link in (*tree.roots, *robot.link_names):
        for part in tree.carried(link, robot.link_names, robot.posture):
            if part.name == link or not part.joints or is_possible(part.own):
                continue
            body = part.own.copy()
            body[0] = max(body[0], MIN_FINGER_MASS_KG)
            body, changes = possible_prior(body, [part.name])
            elements[part.name] = _inertial(body, "replaces the inertia of the URDF, which no body can have")
            remarks += changes
    text = replace_inertials(robot.urdf, elements) if elements else robot.urdf
    return RobotModel(robot.chain, robot.parameters, robot.gravity, text, robot.posture), remarks


def posture_error(
    robot: RobotModel, parameters: ArrayLike, urdf: str, ranges: Mapping[str, tuple[float, float]]
) -> str:
    """Return a sentence about the torque error of an exported URDF if joints outside the chain move, or an empty text.

    Args:
        robot: the arm with its other joints at the posture of `parameters`.
        parameters: (10 n,) of the model.
        urdf: text of `urdf_with_inertias`.
        ranges: lowest and highest position of joints, rad or m; missing joints move within their limits.
    """
    tree = LinkTree(urdf, SOURCE)
    parts = [part for link in robot.link_names for part in tree.carried(link, robot.link_names, robot.posture)]
    moving = {
        joint for part in parts if part.own.any() for joint in part.joints if tree.driver(joint) not in robot.held
    }
    joints = sorted({joint if joint in ranges else tree.driver(joint) for joint in moving})
    ends = {joint: ranges[joint] if joint in ranges else tree.reach(joint) for joint in joints}
    joints = [joint for joint in joints if ends[joint][0] < ends[joint][1]]
    if not joints:
        return ""
    elsewhere = [[tree.parameters(robot.chain, robot.posture | {j: end}) for end in ends[j]] for j in joints]
    q, qd, qdd = random_motion(robot)
    words = []
    for what, motion in (("gravity torque", (q, 0 * q, 0 * q)), ("torque of motion", (q, qd, qdd))):
        model = robot.inverse_dynamics(*motion, parameters)
        torques = np.array([[robot.inverse_dynamics(*motion, x) for x in of_joint] for of_joint in elsewhere])
        errors = np.abs(torques - model).max(axis=1).sum(axis=0).max(axis=0)
        worst = int(errors.argmax())
        share = errors[worst] / max(np.abs(model).max(), SMALLEST_FLOAT)
        words.append(f"{what} by up to {errors[worst]:.2g} ({share:.2g} of the largest) at {robot.joint_names[worst]}")
    where = ", ".join(f"{joint} at {robot.posture.get(joint, 0.0):.3g}" for joint in joints)
    unknown = [joint for joint in joints if joint not in ranges]
    span = f"; not recorded, assumed within their limits: {', '.join(unknown)}" if unknown else ""
    return f"identified.urdf has the model's torque with {where}. Their motion changes {', '.join(words)}{span}"


def _check(robot: RobotModel, parameters: NDArray, urdf: str) -> None:
    """Compare the torque of the written URDF with that of the model.

    Raises:
        ModelError: the torques differ by more than rounding.
    """
    read = RobotModel.from_urdf(urdf, robot.tip, robot.base, robot.gravity, robot.posture, held=robot.held)
    q, qd, qdd = random_motion(robot)
    largest = np.abs(robot.inverse_dynamics(q, qd, qdd, parameters)).max()
    for what, motion in (("gravity", (q, 0 * q, 0 * q)), ("inverse dynamics", (q, qd, qdd))):
        model = robot.inverse_dynamics(*motion, parameters)
        error = np.abs(read.inverse_dynamics(*motion) - model).max()
        scale = max(np.abs(model).max(), MIN_GRAVITY_FRACTION * largest)
        if not error <= MAX_TORQUE_ERROR * scale:
            raise ModelError(
                f"{robot.name}: {what} of the URDF to be written is off by {error:.3g} of {scale:.3g} N m, so it is "
                "not written; this is a fault of this program: please report it with the URDF"
            )


def _inertials(lump: NDArray, fixed: Sequence[CarriedLink], moving: Sequence[CarriedLink]) -> Iterator[list[str]]:
    """Yield the elements of a link, of the links fixed to it and of those that move on it; their sum is `lump`."""
    remarks = [f"includes what is fixed to this link: {', '.join(part.name for part in fixed)}"] if fixed else []
    share = 1.0
    if moving:
        together = np.sum([part.parameters for part in moving], axis=0)
        if not is_possible(lump - together):
            # Half of the largest share of `together` that leaves a possible body of the lump.
            inverse = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(lump)))
            share = float(0.5 / np.linalg.eigvalsh(inverse @ pseudo_inertia(together) @ inverse.T)[-1])
        names = ", ".join(part.name for part in moving)
        joints = {joint: at for part in moving for joint, at in part.joints.items() if at}
        held = " except " + ", ".join(f"{joint} {at:.6g}" for joint, at in joints.items()) if joints else ""
        remarks.append(f"without the links that move on this link, subtracted with their joints at zero{held}: {names}")
        lump = lump - share * together
    yield _inertial(lump, *remarks)
    for _ in fixed:
        yield _inertial(np.zeros(PARAMETERS_PER_LINK), "part of the link that it is fixed to")
    if share < 1.0:
        remark = f"{share:.3g} of its inertia, because no body would be left of the carrying link with all of it"
        for part in moving:
            yield _inertial(share * part.own, remark)


def _inertial(parameters: NDArray, *remarks: str) -> list[str]:
    """Return the children of `<inertial>`: remarks, centre of mass, and inertia about it in the axes of the link."""
    mass = parameters[0]
    moment = parameters[1:4]
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
    """Return the text without double hyphens, which XML forbids in comments."""
    return re.sub("-(?=-)", "- ", text)
