"""Provide arms whose rotor inertias are not distinguishable from those of links: SCARA, cylindrical, gantry."""

from urdf_parts import joint, link, robot

from dynid_ros.model import RobotModel

SLIDE = '<limit lower="-0.6" upper="0.6" velocity="1.5" effort="500"/>'
TURN = '<limit lower="-2.6" upper="2.6" velocity="3" effort="200"/>'


def _arm(*joints: tuple[str, str, str]) -> RobotModel:
    parts = [link("link_0")]
    for i, (kind, axis, place) in enumerate(joints, 1):
        limit = SLIDE if kind == "prismatic" else TURN
        content = f'<origin xyz="{place}"/>{limit}'
        parts += [joint(f"joint_{i}", f"link_{i - 1}", f"link_{i}", kind, content, axis), link(f"link_{i}")]
    return RobotModel.from_urdf(robot(*parts))


def scara() -> RobotModel:
    """Return two vertical axes, a vertical slide, and a vertical axis."""
    return _arm(
        ("revolute", "0 0 1", "0 0 0.3"),
        ("revolute", "0 0 1", "0.35 0 0"),
        ("prismatic", "0 0 1", "0.3 0 0.05"),
        ("revolute", "0 0 1", "0 0 -0.1"),
    )


def cylindrical() -> RobotModel:
    """Return a vertical axis, a vertical slide, and a horizontal slide."""
    return _arm(("revolute", "0 0 1", "0 0 0.3"), ("prismatic", "0 0 1", "0 0 0.2"), ("prismatic", "1 0 0", "0.2 0 0"))


def gantry() -> RobotModel:
    """Return three slides."""
    return _arm(("prismatic", "1 0 0", "0 0 1"), ("prismatic", "0 1 0", "0 0 0"), ("prismatic", "0 0 1", "0 0 0"))
