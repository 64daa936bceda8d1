"""Arms with rotors whose inertia no torque tells from that of links: a SCARA arm, and a gantry."""

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
    """Two upright axes, a vertical slide, an upright axis."""
    return _arm(
        ("revolute", "0 0 1", "0 0 0.3"),
        ("revolute", "0 0 1", "0.35 0 0"),
        ("prismatic", "0 0 1", "0.3 0 0.05"),
        ("revolute", "0 0 1", "0 0 -0.1"),
    )


def cylindrical() -> RobotModel:
    """An upright axis, a vertical slide, a horizontal slide."""
    return _arm(("revolute", "0 0 1", "0 0 0.3"), ("prismatic", "0 0 1", "0 0 0.2"), ("prismatic", "1 0 0", "0.2 0 0"))


def gantry() -> RobotModel:
    """Three slides."""
    return _arm(("prismatic", "1 0 0", "0 0 1"), ("prismatic", "0 1 0", "0 0 0"), ("prismatic", "0 0 1", "0 0 0"))
