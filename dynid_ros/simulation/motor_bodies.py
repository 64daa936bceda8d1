"""Motors of flexible joints in a MuJoCo arm: bodies that turn about axes of their own, fixed in the world."""

from collections.abc import Sequence
from xml.etree import ElementTree as ET

MOTOR_OF = "motor of "
INERTIA = "1e-9"
"""kg m^2 and kg, which MuJoCo wants of every body; that of the motor is put in as armature, which knows no gravity."""


def add_motor_links(root: ET.Element, joint_names: Sequence[str]) -> None:
    """Add a motor per joint to a URDF, after all that is there.

    A motor is one coordinate. That of a prismatic joint turns too, one radian for a metre.
    """
    children = {child.get("link") for child in root.iter("child")}
    world = next(link.get("name", "") for link in root.findall("link") if link.get("name") not in children)
    for name in joint_names:
        motor = MOTOR_OF + name
        inertial = ET.SubElement(ET.SubElement(root, "link", name=motor), "inertial")
        ET.SubElement(inertial, "mass", value=INERTIA)
        ET.SubElement(inertial, "inertia", ixx=INERTIA, iyy=INERTIA, izz=INERTIA, ixy="0", ixz="0", iyz="0")
        joint = ET.SubElement(root, "joint", name=motor, type="continuous")
        ET.SubElement(joint, "parent", link=world)
        ET.SubElement(joint, "child", link=motor)
        ET.SubElement(joint, "axis", xyz="0 0 1")
