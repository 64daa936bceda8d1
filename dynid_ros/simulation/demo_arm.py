"""The arm that the demo simulates: six joints, the proportions of a PA10-class arm."""

import xml.etree.ElementTree as ET
from collections.abc import Collection

from dynid_ros.files.share import share_path


def demo_arm_urdf(moving: Collection[str] = ()) -> str:
    """Text of its URDF.

    Args:
        moving: joints that move, the others being held where they are zero; none: all move.

    Raises:
        DynidError: the package is installed without its `config` folder.

    """
    text = share_path("config/demo_arm.urdf").read_text(encoding="utf-8")
    if not moving:
        return text
    root = ET.fromstring(text)
    for joint in root.iter("joint"):
        if joint.get("name") not in moving:
            joint.set("type", "fixed")
    return ET.tostring(root, encoding="unicode")
