"""Export to SDFormat: links with inertials, joints with limits, damping, friction and springs; no shapes."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from dynid_ros.export.exported_arm import Export, ExportedArm, Motion
from dynid_ros.export.exported_urdf import exported_urdf
from dynid_ros.export.held_friction import HeldFriction
from dynid_ros.files import write_atomically
from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.urdf import Joint, Link, pose, roll_pitch_yaw

FORMAT_NAME = "SDF"
SDF_VERSION = "1.9"
JOINT_TYPES = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "fixed": "fixed"}
"""Joint type in SDF for each in URDF. Gazebo treats `continuous` joints as fixed, so they become revolute joints
without limits.
"""
WORLD = "world"
FRAME_MASS_KG = 1e-6
EMPTY_INERTIA = [1e-12, 0.0, 0.0, 1e-12, 0.0, 1e-12]
"""Mass, and inertia (kg m^2), that replace zero for the base and for moving links, because SDF does not allow zero."""


def write(arm: ExportedArm, output: Path, motion: Motion) -> Export:
    """Write a model whose root link is fixed to the world.

    Raises:
        ModelError: no URDF can have the links.
    """
    friction = HeldFriction.of(arm, ("spring",), motion)
    urdf, remarks = exported_urdf(arm, friction)
    text, left_out = sdf_text(arm, urdf, friction)
    remarks += [f"{FORMAT_NAME} has no links {', '.join(left_out)}: they move freely"] if left_out else []
    remarks += friction.remarks(FORMAT_NAME, arm.robot.joint_names) + arm.beside(FORMAT_NAME, motion)
    remarks.append("no shapes: nothing is seen and nothing collides; join it with those of your model")
    holds = ("inertials of the links, limits, damping, friction and springs of the joints",)
    files = {"sdf": write_atomically(output, text)}
    return Export("sdf", files, holds, tuple(remarks), {"friction": friction.document(arm.robot.joint_names)})


def sdf_text(arm: ExportedArm, urdf: str, friction: HeldFriction) -> tuple[str, list[str]]:
    """Return the text of the model, and the names of links that are not in it."""
    tree = LinkTree(urdf, "URDF")
    places = {joint: i for i, joint in enumerate(arm.robot.joint_names)}
    model = ET.Element("model", name=tree.name)
    waiting = list(tree.roots)
    reached = set()
    while waiting:
        name = waiting.pop(0)
        reached.add(name)
        waiting += [joint.child for joint in tree.child_joints[name] if joint.type in JOINT_TYPES]
        joint = tree.parent_joint.get(name)
        if joint is None:
            _add_root(model, tree.links[name])
        elif joint.type == "fixed" and joint.parent != WORLD and not _mass(tree.links[name]):
            # A body without mass cannot be a link in SDF, but a frame may be the parent of a joint.
            frame = ET.SubElement(model, "frame", name=name, attached_to=joint.parent)
            ET.SubElement(frame, "pose").text = _placement(joint)
        else:
            _add_link(model, tree.links[name], joint)
            _add_joint(model, joint, friction, places.get(joint.name))
    document = ET.Element("sdf", version=SDF_VERSION)
    document.append(model)
    ET.indent(document)
    text = f'<?xml version="1.0"?>\n{ET.tostring(document, encoding="unicode")}\n'
    return text, [name for name in tree.links if name not in reached]


def _mass(link: Link) -> float:
    return 0.0 if link.inertial is None else link.inertial.mass


def _add_root(model: ET.Element, link: Link) -> None:
    """Add the fixed root link; a URDF's `world` link exists in SDF already and appears in joints only."""
    if link.name == WORLD:
        return
    _add_link(model, link, None)
    joint = ET.SubElement(model, "joint", name=f"{WORLD} to {link.name}", type="fixed")
    ET.SubElement(joint, "parent").text = WORLD
    ET.SubElement(joint, "child").text = link.name


def _add_link(model: ET.Element, link: Link, joint: Joint | None) -> None:
    element = ET.SubElement(model, "link", name=link.name)
    if joint is not None:
        ET.SubElement(element, "pose", relative_to=joint.name).text = "0 0 0 0 0 0"
    inertial = ET.SubElement(element, "inertial")
    mass = FRAME_MASS_KG
    inertia = EMPTY_INERTIA
    where = np.eye(4)
    if link.inertial is not None and link.inertial.mass > 0.0:
        mass = link.inertial.mass
        inertia = list(link.inertial.inertia or EMPTY_INERTIA)
        where = pose(link.inertial.origin, f"link '{link.name}'")
    ET.SubElement(inertial, "pose").text = _pose(where)
    ET.SubElement(inertial, "mass").text = _number(mass)
    matrix = ET.SubElement(inertial, "inertia")
    for name, value in zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), inertia, strict=True):
        ET.SubElement(matrix, name).text = _number(value)


def _add_joint(model: ET.Element, joint: Joint, friction: HeldFriction, place: int | None) -> None:
    element = ET.SubElement(model, "joint", name=joint.name, type=JOINT_TYPES[joint.type])
    frame = "__model__" if joint.parent == WORLD else joint.parent
    ET.SubElement(element, "pose", relative_to=frame).text = _placement(joint)
    ET.SubElement(element, "parent").text = joint.parent
    ET.SubElement(element, "child").text = joint.child
    if joint.type == "fixed":
        return
    axis = ET.SubElement(element, "axis")
    direction = np.array(list(joint.axis))
    ET.SubElement(axis, "xyz").text = _numbers(direction / np.linalg.norm(direction))
    limit = ET.SubElement(axis, "limit")
    if joint.limit is not None:
        values = {"lower": joint.limit.lower, "upper": joint.limit.upper} if joint.type != "continuous" else {}
        for name, value in {**values, "effort": joint.limit.effort, "velocity": joint.limit.velocity}.items():
            ET.SubElement(limit, name).text = _number(value)
    if place is not None:
        dynamics = ET.SubElement(axis, "dynamics")
        for name, part in (
            ("damping", friction.viscous),
            ("friction", friction.coulomb),
            ("spring_reference", friction.rest),
            ("spring_stiffness", friction.spring),
        ):
            ET.SubElement(dynamics, name).text = _number(part[place])


def _placement(joint: Joint) -> str:
    return _pose(pose(joint.origin, f"joint '{joint.name}'"))


def _pose(transform: NDArray) -> str:
    """Format a pose as position, m, and roll, pitch, yaw about fixed axes, rad."""
    return _numbers([*transform[:3, 3], *roll_pitch_yaw(transform[:3, :3])])


def _numbers(values: object) -> str:
    return " ".join(map(_number, np.asarray(values, dtype=float).tolist()))


def _number(value: float) -> str:
    return repr(float(value))
