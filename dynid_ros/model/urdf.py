"""Links and joints of a URDF: parsing of the text, and transforms and parameters of each element."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from dynid_ros.errors import ModelError
from dynid_ros.files import require_name
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.urdf_text import XACRO

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "unknown")


@dataclass(frozen=True)
class Origin:
    """Translation, m, and rotation: roll, pitch and yaw about fixed axes, rad, or a quaternion x, y, z, w."""

    xyz: Iterable[float] = (0.0, 0.0, 0.0)
    rpy: Iterable[float] = (0.0, 0.0, 0.0)
    quat_xyzw: Iterable[float] | None = None


@dataclass(frozen=True)
class Inertial:
    """Mass, kg; moments Ixx, Ixy, Ixz, Iyy, Iyz, Izz about the centre of mass, kg m²; pose of the centre of mass."""

    mass: float
    inertia: Iterable[float] | None = None
    origin: Origin | None = None


@dataclass(frozen=True)
class Link:
    """A link and its inertial element, if it has one."""

    name: str
    inertial: Inertial | None = None


@dataclass(frozen=True)
class Limit:
    """Limits of a joint in rad or m, s, and N m or N; `acceleration` and later fields exist since URDF 1.2."""

    effort: float = math.inf
    velocity: float = math.inf
    lower: float = 0.0
    upper: float = 0.0
    acceleration: float = math.inf
    deceleration: float = math.inf
    jerk: float = math.inf


@dataclass(frozen=True)
class Mimic:
    """Rule of a joint that follows another one: multiplier · position + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Joint:
    """A joint between two links."""

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


MAX_MAGNITUDE = 1e6
"""Largest accepted length, angle, mass or inertia in SI units; products of accepted numbers do not overflow."""
MIN_AXIS_LENGTH = 1e-9
MIN_QUATERNION_LENGTH = 1e-9
GIMBAL_LOCK_COSINE = 1e-6
"""Cosine of the pitch below which roll and yaw turn about one axis."""


def pose(origin: Origin | None, where: str) -> np.ndarray:
    """Return the transform (4, 4) of an origin: Rz(yaw) Ry(pitch) Rx(roll), or of the quaternion, translated by xyz.

    Args:
        origin: the element; None: the identity.
        where: name of the parent element in errors, here and below.

    Raises:
        ModelError: a number is not finite or above `MAX_MAGNITUDE`, or the quaternion is zero.
    """
    transform = np.eye(4)
    if origin is not None:
        if origin.quat_xyzw is not None:
            transform[:3, :3] = _quaternion_rotation(_finite(origin.quat_xyzw, "quat_xyzw", where), where)
        else:
            angles = _finite(origin.rpy, "rpy", where)
            (cr, cp, cy), (sr, sp, sy) = np.cos(angles), np.sin(angles)
            transform[:3, :3] = [
                [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                [-sp, cp * sr, cp * cr],
            ]
        transform[:3, 3] = _finite(origin.xyz, "xyz", where)
    return transform


def _quaternion_rotation(quaternion: np.ndarray, where: str) -> np.ndarray:
    """Return the rotation (3, 3) of a quaternion x, y, z, w of any length above zero."""
    length = np.linalg.norm(quaternion)
    if length < MIN_QUATERNION_LENGTH:
        raise ModelError(f"{where}: quat_xyzw is zero; give the four numbers x y z w of a unit quaternion")
    x, y, z, w = quaternion / length
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def roll_pitch_yaw(rotation: np.ndarray) -> tuple[float, float, float]:
    """Return the angles about fixed axes, rad, of a rotation (3, 3); with the pitch at ±π/2 the roll is zero."""
    cosine = math.hypot(rotation[0, 0], rotation[1, 0])
    pitch = math.atan2(-rotation[2, 0], cosine)
    if cosine > GIMBAL_LOCK_COSINE:
        roll = math.atan2(rotation[2, 1], rotation[2, 2])
        return roll, pitch, math.atan2(rotation[1, 0], rotation[0, 0])
    return 0.0, pitch, math.atan2(-rotation[0, 1], rotation[1, 1])


def axis_rotation(joint: Joint, where: str) -> np.ndarray:
    """Return the transform (4, 4) that turns z into the axis of the joint.

    Raises:
        ModelError: the axis is zero, not finite or above `MAX_MAGNITUDE`.
    """
    axis = _finite(joint.axis, "axis", where)
    length = np.linalg.norm(axis)
    if length < MIN_AXIS_LENGTH:
        shown = " ".join(f"{value:g}" for value in axis)
        raise ModelError(f"{where}: axis is {shown}; give the direction that the joint moves about or along")
    # The shortest turn is undefined for -z, so an axis that points down is reached after half a turn about x.
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
    """Return the transform (4, 4) of a joint's child at a position, rad or m; the identity for other kinds of joints.

    Raises:
        ModelError: see `axis_rotation`.
    """
    transform = np.eye(4)
    if joint.type not in ("revolute", "continuous", "prismatic"):
        return transform
    turn = axis_rotation(joint, where)
    if joint.type == "prismatic":
        transform[:3, 3] = position * turn[:3, 2]
        return transform
    sine = math.sin(position)
    cosine = math.cos(position)
    transform[:2, :2] = [[cosine, -sine], [sine, cosine]]
    return turn @ transform @ turn.T


def inertial_parameters(inertial: Inertial | None, where: str) -> np.ndarray:
    """Return the parameters (10,) of a link about its frame; a link without an inertia is a point mass.

    Moments of inertia that no body can have are accepted, because identification corrects them.

    Raises:
        ModelError: the mass is negative, or a number is not finite or above `MAX_MAGNITUDE`.
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


def joint_limits(joint: Joint, where: str) -> tuple[float, float, float, float, float, float]:
    """Return lower and upper position, velocity, effort, acceleration and jerk; infinite without a limit.

    The acceleration is the smaller of the limits of acceleration and deceleration.

    Raises:
        ModelError: a limit is NaN, or the lower limit is above the upper one.
    """
    limit = joint.limit or Limit(lower=-math.inf, upper=math.inf)
    lower, upper = (-math.inf, math.inf) if joint.type == "continuous" else (limit.lower, limit.upper)
    if any(math.isnan(value) for value in vars(limit).values()):
        raise ModelError(f"{where}: a limit is NaN; give numbers")
    if lower > upper:
        raise ModelError(f"{where}: lower limit {lower:g} is above upper limit {upper:g}; correct them")
    # Exporters write zero for a limit that was not entered.
    acceleration = min((x for x in (limit.acceleration, limit.deceleration) if x > 0.0), default=math.inf)
    jerk = limit.jerk if limit.jerk > 0.0 else math.inf
    return lower, upper, limit.velocity, limit.effort, acceleration, jerk


def _finite(values: Iterable[float], what: str, where: str) -> np.ndarray:
    array = np.array(values, dtype=float)
    if not (np.abs(array) <= MAX_MAGNITUDE).all():
        raise ModelError(
            f"{where}: {what} is {' '.join(map(str, array))}; expected finite numbers up to {MAX_MAGNITUDE:g}"
        )
    return array


# Elements and attributes that are read; others (gazebo, ros2_control, transmissions, …) are ignored.
CHILDREN: dict[str, tuple[str, ...]] = {
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "axis", "parent", "child", "limit", "mimic"),
}
REQUIRED = {("inertial", "mass"), ("joint", "parent"), ("joint", "child")}
# Attributes with their count of numbers; None for text.
ATTRIBUTES: dict[str, dict[str, int | None]] = {
    "link": {"name": None},
    "joint": {"name": None, "type": None},
    "origin": {"xyz": 3, "rpy": 3, "quat_xyzw": 4},
    "mass": {"value": 1},
    "inertia": {"ixx": 1, "ixy": 1, "ixz": 1, "iyy": 1, "iyz": 1, "izz": 1},
    "axis": {"xyz": 3},
    "parent": {"link": None},
    "child": {"link": None},
    "limit": dict.fromkeys(("lower", "upper", "velocity", "effort", "acceleration", "deceleration", "jerk"), 1),
    "mimic": {"joint": None, "multiplier": 1, "offset": 1},
}
CLOSED = ("origin", "limit")
"""Elements whose unknown attributes would change the model, so that they are refused."""
MEANT_ANGLES = ((math.pi / 2, 2), (math.pi / 4, 3))
"""Angles whose multiples are recognized from so many decimals on: 1.57 is a right angle."""
MAX_DECIMALS = 12
OPTIONAL = frozenset(
    {"xyz", "rpy", "quat_xyzw", "lower", "upper", "acceleration", "deceleration", "jerk", "multiplier", "offset"}
)
OPTIONAL_LIMITS_SINCE = (1, 2)
"""Version of URDF from which on effort and velocity may be left out."""


def parse_urdf(text: str, source: str, *, meant_angles: bool = False) -> Urdf:
    """Return the links and joints of a URDF.

    Args:
        text: the URDF.
        source: name of the URDF in errors.
        meant_angles: whether a rounded multiple of π/4, such as 1.571, becomes that multiple.

    Raises:
        ModelError: the text is not well-formed XML, has a document type declaration or unexpanded xacro, is not a URDF,
            or has a link or joint with a missing part, text in place of numbers, or control characters in its name.
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
    reader = _ElementReader(meant_angles, _version(root, source) >= OPTIONAL_LIMITS_SINCE)
    for element in root:
        if element.tag in ("link", "joint"):
            where = f"{source}, {element.tag} '{element.get('name', '')}'"
            values = reader.values(element, where)
            require_name(values["name"], f"{source}: a {element.tag}", ModelError)
            if element.tag == "link":
                urdf.links.append(Link(values["name"], _inertial(values.get("inertial"))))
            else:
                urdf.joints.append(_joint(values, where))
    return urdf


def xml_root(text: str, source: str) -> ET.Element:
    """Return the root of an XML text.

    Raises:
        ModelError: the text is not well-formed XML or has a document type declaration.
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
    return Inertial(values["mass"]["value"], inertia, _build(Origin, values, "origin"))


def _joint(values: dict[str, Any], where: str) -> Joint:
    if values["type"] not in JOINT_TYPES:
        raise ModelError(f"{where}: its type is '{values['type']}'; expected one of {', '.join(JOINT_TYPES)}")
    kinds = {"origin": Origin, "limit": Limit, "mimic": Mimic}
    parts = {name: _build(kind, values, name) for name, kind in kinds.items()}
    axis = {"axis": values["axis"]["xyz"]} if "axis" in values else {}
    parent = values["parent"]["link"]
    child = values["child"]["link"]
    return Joint(values["name"], values["type"], parent, child, **axis, **parts)


def _build(kind: type, values: dict[str, Any], name: str) -> Any:
    return kind(**values[name]) if name in values else None


def _version(root: ET.Element, source: str) -> tuple[int, int]:
    """Return the version of URDF of a file, major and minor; 1.0 without a version."""
    major, dot, minor = root.get("version", "1.0").strip().partition(".")
    if not (major.isdecimal() and major.isascii() and (minor.isdecimal() and minor.isascii() if dot else True)):
        raise ModelError(f'{source}: <robot> has version="{root.get("version")}"; expected one such as 1.2')
    return int(major), int(minor or 0)


def read_origin(element: ET.Element | None, where: str) -> Origin | None:
    """Return the origin of an element; None without an element.

    Raises:
        ModelError: an attribute is unknown or not valid.
    """
    return None if element is None else Origin(**_ElementReader().values(element, where))


@dataclass(frozen=True)
class _ElementReader:
    """Reader of the elements of a URDF.

    Attributes:
        meant_angles: whether rounded right angles become right angles.
        optional_limits: whether limits may lack effort and velocity.
    """

    meant_angles: bool = False
    optional_limits: bool = False

    def values(self, element: ET.Element, where: str) -> dict[str, Any]:
        """Return attributes as text, a number or a list of numbers, and the values of children by their tags."""
        values: dict[str, Any] = {}
        known = ATTRIBUTES.get(element.tag, {})
        self._check_attributes(element, known, where)
        for name, numbers in known.items():
            if name in element.attrib:
                text = element.attrib[name]
                values[name] = text if numbers is None else read_numbers(text, numbers)
                if values[name] is None:
                    expected = "a number" if numbers == 1 else f"{numbers} numbers"
                    raise ModelError(f'{where}: <{element.tag}> has {name}="{text}"; expected {expected}')
                if numbers == 1:
                    values[name] = values[name][0]
                if name == "rpy" and self.meant_angles:
                    values[name] = [meant_angle(word) for word in text.split()]
            elif not self._is_optional(element.tag, name):
                raise ModelError(f"{where}: <{element.tag}> has no attribute '{name}'; add it")
        for tag in CHILDREN.get(element.tag, ()):
            child = element.find(tag)
            if child is not None:
                values[tag] = self.values(child, where)
            elif (element.tag, tag) in REQUIRED:
                raise ModelError(f"{where}: <{element.tag}> has no <{tag}>; add it")
        return values

    def _is_optional(self, tag: str, name: str) -> bool:
        if tag == "limit" and name in ("effort", "velocity"):
            return self.optional_limits
        return name in OPTIONAL and tag != "axis"

    @staticmethod
    def _check_attributes(element: ET.Element, known: Collection[str], where: str) -> None:
        """Refuse unknown attributes without a namespace, and two rotations."""
        if element.tag not in CLOSED:
            return
        unknown = [name for name in element.attrib if name not in known and "}" not in name]
        if unknown:
            raise ModelError(
                f"{where}: <{element.tag}> has the unknown attribute '{unknown[0]}'; expected {', '.join(known)}"
            )
        if "rpy" in element.attrib and "quat_xyzw" in element.attrib:
            raise ModelError(f"{where}: <{element.tag}> has both rpy and quat_xyzw; give one of them")


def read_numbers(text: str, count: int) -> list[float] | None:
    """Return `count` numbers of an attribute; None if the text has another form."""
    # Python accepts 5_0 and digits of other scripts, unlike other parsers of URDFs.
    if not text.isascii() or "_" in text:
        return None
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError:
        return None
    return numbers if len(numbers) == count else None


def meant_angle(written: str) -> float:
    """Return the multiple of π/4 that an angle is, rounded or truncated to its decimals; else the angle itself.

    Multiples of π/2 are recognized from two decimals on, others from three. The result differs from the written angle
    by less than one unit of the last decimal.
    """
    value = float(written)
    if not math.isfinite(value):
        return value
    decimals = min(-int(Decimal(written).as_tuple().exponent), MAX_DECIMALS)
    for step, fewest in MEANT_ANGLES:
        exact = round(value / step) * step
        if decimals >= fewest:
            cut_off = math.copysign(math.floor(abs(exact) * 10**decimals) / 10**decimals, exact)
            if round(exact, decimals) == round(value, decimals) or abs(value - cut_off) < 0.1 * 10**-decimals:
                return exact
    return value


class _Builder(ET.TreeBuilder):
    """Builder that refuses document type declarations, whose entities can fill the memory or read files."""

    def __init__(self, source: str):
        super().__init__()
        self.source = source

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:  # noqa: ARG002
        raise ModelError(f"{self.source}: it has a document type declaration (<!DOCTYPE {name}>); remove it")
