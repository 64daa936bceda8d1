"""Links and joints of a URDF: what a model needs of its text, and the numbers of each element."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from dynid_ros.errors import ModelError
from dynid_ros.files import MEGABYTE, read_bytes, require_name
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "unknown")


@dataclass(frozen=True)
class Origin:
    """Shift, m, and turn, rad: roll, pitch and yaw about the fixed axes."""

    xyz: Iterable[float] = (0.0, 0.0, 0.0)
    rpy: Iterable[float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Inertial:
    """Mass, kg; moments Ixx, Ixy, Ixz, Iyy, Iyz, Izz about the centre of mass, kg m^2, and where that is."""

    mass: float
    inertia: Iterable[float] | None = None
    origin: Origin | None = None


@dataclass(frozen=True)
class Link:
    """A link and its mass, if it has one."""

    name: str
    inertial: Inertial | None = None


@dataclass(frozen=True)
class Limit:
    """Limits of a joint, rad or m, and N m or N."""

    effort: float
    velocity: float
    lower: float = 0.0
    upper: float = 0.0


@dataclass(frozen=True)
class Mimic:
    """The joint that another one follows: multiplier · position + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Joint:
    """A joint between two links, by their names."""

    name: str
    type: str
    parent: str
    child: str
    origin: Origin | None = None
    axis: Iterable[float] = (1.0, 0.0, 0.0)
    limit: Limit | None = None
    mimic: Mimic | None = None


@dataclass
class Urdf:
    """Links and joints in the order of the text; names may repeat."""

    name: str
    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)


LARGEST = 1e6
"""m, rad, kg or kg m^2: no arm has more, and the products of what it has stay numbers."""
SHORTEST_AXIS = 1e-9


def pose(origin: Origin | None, where: str) -> np.ndarray:
    """Transform (4, 4) of an origin: Rz(yaw) Ry(pitch) Rx(roll), shifted by xyz.

    Args:
        origin: the element; None: no shift and no turn.
        where: what to call the element that it belongs to in an error, here and below.

    Raises:
        ModelError: a number is not finite, or beyond all arms.
    """
    transform = np.eye(4)
    if origin is not None:
        angles = _finite(origin.rpy, "rpy", where)
        (cr, cp, cy), (sr, sp, sy) = np.cos(angles), np.sin(angles)
        transform[:3, :3] = [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
        transform[:3, 3] = _finite(origin.xyz, "xyz", where)
    return transform


def axis_rotation(joint: Joint, where: str) -> np.ndarray:
    """Transform (4, 4) that turns z into the axis of the joint; no turn for an axis along z.

    Raises:
        ModelError: the axis is zero, not finite, or beyond all arms.
    """
    axis = _finite(joint.axis, "axis", where)
    length = np.linalg.norm(axis)
    if length < SHORTEST_AXIS:
        shown = " ".join(f"{value:g}" for value in axis)
        raise ModelError(f"{where}: axis is {shown}; give the direction that the joint moves about or along")
    # The shortest turn is not defined for -z: an axis that points down is reached by way of half a turn about x.
    flip = np.diag([1.0, -1.0, -1.0] if axis[2] < 0.0 else [1.0, 1.0, 1.0])
    x, y, z = flip @ axis / length
    transform = np.eye(4)
    transform[:3, :3] = flip @ [
        [1.0 - x * x / (1.0 + z), -x * y / (1.0 + z), x],
        [-x * y / (1.0 + z), 1.0 - y * y / (1.0 + z), y],
        [-x, -y, z],
    ]
    return transform


def displacement(joint: Joint, position: float, where: str) -> np.ndarray:
    """Transform (4, 4) of a joint's child by its position, rad or m; none for a joint that has not one position.

    Raises:
        ModelError: as `axis_rotation`.
    """
    transform = np.eye(4)
    if joint.type not in ("revolute", "continuous", "prismatic"):
        return transform
    turn = axis_rotation(joint, where)
    if joint.type == "prismatic":
        transform[:3, 3] = position * turn[:3, 2]
        return transform
    sine, cosine = math.sin(position), math.cos(position)
    transform[:2, :2] = [[cosine, -sine], [sine, cosine]]
    return turn @ transform @ turn.T


def inertial_parameters(inertial: Inertial | None, where: str) -> np.ndarray:
    """Parameters (10,) of a link about its frame: none means no mass, no inertia a point mass.

    Moments of inertia are taken as they are, though no body may have them: that a URDF's lie is why it is read here.

    Raises:
        ModelError: the mass is negative, or a number is not finite or beyond all arms.
    """
    parameters = np.zeros(PARAMETERS_PER_LINK)
    if inertial is None:
        return parameters
    parameters[0] = _finite([inertial.mass], "mass", where)[0]
    if parameters[0] < 0.0:
        raise ModelError(f"{where}: mass is {parameters[0]:g} kg; expected zero or more")
    if inertial.inertia is not None:
        parameters[4:] = _finite(inertial.inertia, "inertia", where)
    return transformed(parameters, pose(inertial.origin, where))


def joint_limits(joint: Joint, where: str) -> tuple[float, float, float, float]:
    """Lower and upper position, velocity and effort; infinite where there are none.

    Raises:
        ModelError: a limit is NaN, or the lower is above the upper.
    """
    lower, upper, velocity, effort = -math.inf, math.inf, math.inf, math.inf
    if joint.limit is not None:
        velocity, effort = joint.limit.velocity, joint.limit.effort
        if joint.type != "continuous":
            lower, upper = joint.limit.lower, joint.limit.upper
    if any(math.isnan(limit) for limit in (lower, upper, velocity, effort)):
        raise ModelError(f"{where}: a limit is NaN; give numbers")
    if lower > upper:
        raise ModelError(f"{where}: lower limit {lower:g} is above upper limit {upper:g}; correct them")
    return lower, upper, velocity, effort


def _finite(values: Iterable[float], what: str, where: str) -> np.ndarray:
    array = np.array(values, dtype=float)
    if not (np.abs(array) <= LARGEST).all():
        raise ModelError(f"{where}: {what} is {' '.join(map(str, array))}; expected finite numbers up to {LARGEST:g}")
    return array


LARGEST_FILE = 50 * MEGABYTE
XACRO = ".xacro"

# Elements and attributes that are read; others (gazebo, ros2_control, transmissions, …) may hold anything.
CHILDREN: dict[str, tuple[str, ...]] = {
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "axis", "parent", "child", "limit", "mimic"),
}
REQUIRED = {("inertial", "mass"), ("joint", "parent"), ("joint", "child")}
# Attributes, with how many numbers each holds; None for text.
ATTRIBUTES: dict[str, dict[str, int | None]] = {
    "link": {"name": None},
    "joint": {"name": None, "type": None},
    "origin": {"xyz": 3, "rpy": 3},
    "mass": {"value": 1},
    "inertia": {"ixx": 1, "ixy": 1, "ixz": 1, "iyy": 1, "iyz": 1, "izz": 1},
    "axis": {"xyz": 3},
    "parent": {"link": None},
    "child": {"link": None},
    "limit": {"lower": 1, "upper": 1, "velocity": 1, "effort": 1},
    "mimic": {"joint": None, "multiplier": 1, "offset": 1},
}
QUARTER = math.pi / 4
FEWEST_DECIMALS = 4
"""1.57 may be meant as it is, 1.5708 is not."""
BEFORE_TEXT = "\ufeff \t\r\n"
OPTIONAL = {"xyz", "rpy", "lower", "upper", "multiplier", "offset"}


def is_urdf_text(path_or_xml: str) -> bool:
    """Whether it is the text of a URDF, or some other XML, and no path."""
    return path_or_xml.lstrip(BEFORE_TEXT).startswith("<")


def urdf_text(path_or_xml: str | Path) -> tuple[str, str]:
    """Return the text of a URDF and what to call it in an error, from a path or from the text itself.

    Macros can run code, so only a file whose name ends in `.xacro` is expanded.

    Raises:
        ModelError: the file cannot be read, or not be expanded where its name ends in `.xacro`.
    """
    if isinstance(path_or_xml, str) and is_urdf_text(path_or_xml):
        return _with_namespaces(path_or_xml.lstrip(BEFORE_TEXT)), "URDF text"
    if not str(path_or_xml).strip():
        raise ModelError("URDF: got an empty string; give the path of a URDF file or its text")
    path = Path(path_or_xml)
    if path.suffix == XACRO:
        return _expanded(path), f"URDF '{path}'"
    try:
        # Not read_text, which would change the ends of lines: an export keeps every byte that it need not change.
        text = read_bytes(path, LARGEST_FILE, pipes=True).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"URDF '{path}': not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise ModelError(
            f"URDF '{path}': cannot be read ({error.strerror}); give a path or the text of a URDF"
        ) from error
    return _with_namespaces(text), f"URDF '{path}'"


_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"""<[A-Za-z_](?:[^<>"']|"[^"]*"|'[^']*')*>""")
_QUOTED = re.compile(r""""[^"]*"|'[^']*'""")
_PREFIX = re.compile(r"[<\s]([A-Za-z_][\w.-]*):")
_ROBOT = re.compile(r"<robot(?=[\s>])")


def _with_namespaces(text: str) -> str:
    """Declare the prefixes that lack a declaration, such as drake's, which ROS and others read without."""
    names = {name for tag in _TAG.findall(_COMMENT.sub("", text)) for name in _PREFIX.findall(_QUOTED.sub("", tag))}
    missing = sorted(name for name in names - {"xml", "xmlns"} if f"xmlns:{name}" not in text)
    if not missing:
        return text
    return _ROBOT.sub("<robot" + "".join(f' xmlns:{name}="urn:{name}"' for name in missing), text, count=1)


def _expanded(path: Path) -> str:
    """URDF text of a file of macros, with the defaults of its arguments."""
    try:
        import xacro  # noqa: PLC0415 - only such files need it
    except ImportError as error:
        raise ModelError(
            f"URDF '{path}': it is to be expanded by xacro, which is not installed: pip install xacro, or install "
            "ros-<distribution>-xacro"
        ) from error
    try:
        return xacro.process_file(str(path)).toxml()
    except Exception as error:  # whatever expressions and packages in it raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(
            f"URDF '{path}': xacro cannot expand it ({reason}); expand it yourself, with the arguments that it needs: "
            f"xacro {path.name} name:=value > arm.urdf"
        ) from error


def parse_urdf(text: str, source: str, *, meant_angles: bool = False) -> Urdf:
    """Links and joints of a URDF.

    Args:
        text: the URDF.
        source: what to call it in an error.
        meant_angles: take an angle that is a rounded multiple of π/4, such as 1.5708, as that multiple.

    Raises:
        ModelError: not well-formed XML, a document type declaration, xacro that was not expanded, not a URDF, a link or
            joint that lacks something or has text where numbers belong, a name with control characters.
    """
    root = xml_root(text, source)
    if root.tag != "robot":
        raise ModelError(f"{source}: the root element is <{root.tag}>; a URDF has <robot>")
    if any("xacro" in element.tag.partition("}")[0] for element in root.iter() if "}" in element.tag):
        raise ModelError(
            f"{source}: it holds xacro macros, which are expanded only where the file's name ends in {XACRO}, because "
            "they can run code; rename it, or expand it yourself: xacro arm.urdf.xacro > arm.urdf"
        )
    urdf = Urdf(require_name(root.get("name") or "robot", f"{source}: the robot", ModelError))
    for element in root:
        if element.tag in ("link", "joint"):
            where = f"{source}, {element.tag} '{element.get('name', '')}'"
            values = _values(element, where, meant_angles)
            require_name(values["name"], f"{source}: a {element.tag}", ModelError)
            if element.tag == "link":
                urdf.links.append(Link(values["name"], _inertial(values.get("inertial"))))
            else:
                urdf.joints.append(_joint(values, where))
    return urdf


def xml_root(text: str, source: str) -> ET.Element:
    """Root of an XML text.

    Raises:
        ModelError: not well-formed XML, or a document type declaration.
    """
    try:
        return ET.fromstring(text, parser=ET.XMLParser(target=_Builder(source)))
    except ET.ParseError as error:
        raise ModelError(f"{source}, line {error.position[0]}: XML does not parse ({error}); correct it") from error
    except ValueError as error:
        raise ModelError(f"{source}: XML does not parse ({error}); correct it") from error


def _inertial(values: dict[str, Any] | None) -> Inertial | None:
    if values is None:
        return None
    inertia = list(values["inertia"].values()) if "inertia" in values else None
    return Inertial(values["mass"]["value"], inertia, _made(Origin, values, "origin"))


def _joint(values: dict[str, Any], where: str) -> Joint:
    if values["type"] not in JOINT_TYPES:
        raise ModelError(f"{where}: its type is '{values['type']}'; expected one of {', '.join(JOINT_TYPES)}")
    parent, child = values["parent"]["link"], values["child"]["link"]
    parts = {name: _made(kind, values, name) for name, kind in (("origin", Origin), ("limit", Limit), ("mimic", Mimic))}
    axis = {"axis": values["axis"]["xyz"]} if "axis" in values else {}
    return Joint(values["name"], values["type"], parent, child, **axis, **parts)


def _made(kind: type, values: dict[str, Any], name: str) -> Any:
    return kind(**values[name]) if name in values else None


def _values(element: ET.Element, where: str, meant_angles: bool) -> dict[str, Any]:
    """Attributes of an element as text, a number or a list of numbers, and the values of its children by their tags."""
    values: dict[str, Any] = {}
    for name, numbers in ATTRIBUTES.get(element.tag, {}).items():
        if name in element.attrib:
            text = element.attrib[name]
            values[name] = text if numbers is None else _numbers(text, numbers)
            if values[name] is None:
                expected = "a number" if numbers == 1 else f"{numbers} numbers"
                raise ModelError(f'{where}: <{element.tag}> has {name}="{text}"; expected {expected}')
            if name == "rpy" and meant_angles:
                values[name] = [float(_meant(word)) for word in text.split()]
        elif name not in OPTIONAL or element.tag == "axis":
            raise ModelError(f"{where}: <{element.tag}> has no attribute '{name}'; add it")
    for tag in CHILDREN.get(element.tag, ()):
        child = element.find(tag)
        if child is not None:
            values[tag] = _values(child, where, meant_angles)
        elif (element.tag, tag) in REQUIRED:
            raise ModelError(f"{where}: <{element.tag}> has no <{tag}>; add it")
    return values


def _numbers(text: str, count: int) -> float | list[float] | None:
    """A number, or a list where there are several; None: the text is something else."""
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError:
        return None
    if len(numbers) != count:
        return None
    return numbers if count > 1 else numbers[0]


def _meant(angle: str) -> str:
    """The multiple of π/4 that an angle is, rounded to its decimals, of which there are at least four; else itself."""
    if not math.isfinite(float(angle)):
        return angle
    digits = Decimal(angle)
    decimals = -int(digits.as_tuple().exponent)
    quarters = round(float(digits) / QUARTER)
    if decimals < FEWEST_DECIMALS or round(quarters * QUARTER, decimals) != round(float(digits), decimals):
        return angle
    return repr(quarters * QUARTER)


class _Builder(ET.TreeBuilder):
    """Refuses document type declarations: the entities that they declare can fill the memory or read files."""

    def __init__(self, source: str):
        super().__init__()
        self.source = source

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:  # noqa: ARG002
        raise ModelError(f"{self.source}: it has a document type declaration (<!DOCTYPE {name}>); remove it")
