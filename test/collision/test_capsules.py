"""Test the bodies of a robot: shapes of its links, moving fingers, links without shape, and errors."""

import numpy as np
import planar_arm
import pytest

from dynid_ros.collision import Bodies
from dynid_ros.errors import CollisionError
from dynid_ros.model import RobotModel

LIMIT = '<limit lower="{0}" upper="{1}" velocity="1" effort="1"/>'


def write_geometry(inner, tag="collision", origin=""):
    return f"<{tag}>{origin}<geometry>{inner}</geometry></{tag}>"


def write_joint(name, kind, parent, child, inner=""):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inner}</joint>'


def create_robot(links, joints, base="base", tip="arm"):
    """Return a robot with one revolute joint 2.5 m above the world, further links and joints."""
    links = {"world": "", "base": "", "arm": "", **links}
    text = "".join(f'<link name="{name}">{inner}</link>' for name, inner in links.items())
    mount = write_joint("mount", "fixed", "world", "base", '<origin xyz="0 0 2"/>')
    turn_content = f'<origin xyz="0 0 0.5"/><axis xyz="0 0 1"/>{LIMIT.format(-1, 1)}'
    turn = write_joint("turn", "revolute", "base", "arm", turn_content)
    return RobotModel.from_urdf(f'<robot name="r">{text}{mount}{turn}{"".join(joints)}</robot>', base=base, tip=tip)


def contain_points(bodies, link, points):
    """Return a mask (M,) of the points in the link's frame that its capsules contain."""
    of_link = bodies.link == link
    axis = bodies.end[of_link] - bodies.start[of_link]
    offset = np.asarray(points, dtype=float)[:, np.newaxis] - bodies.start[of_link]
    t = np.clip(np.sum(offset * axis, axis=2) / np.maximum(np.sum(axis**2, axis=1), 1e-12), 0, 1)
    return np.any(np.linalg.norm(offset - t[..., np.newaxis] * axis, axis=2) <= bodies.radius[of_link] + 1e-9, axis=1)


def test_capsules_cover_primitives_tightly():
    turned = '<origin xyz="0.1 0 0" rpy="0 1.5707963267948966 0"/>'
    bodies = Bodies.of(
        create_robot({"base": write_geometry('<sphere radius="0.2"/>', "visual"),
               "arm": write_geometry('<cylinder radius="0.05" length="1.0"/>', origin=turned)}, [])
    )  # fmt: skip
    assert bodies.names == ("base",) + ("arm",) * (len(bodies.names) - 1)
    assert bodies.radius[0] == pytest.approx(0.2)
    assert np.all(contain_points(bodies, 0, [[0.6, 0, 0], [-0.4, 0.049, 0], [0.1, 0, 0.05], [0.6, 0, -0.05]]))
    assert not np.any(contain_points(bodies, 0, [[0.1, 0, 0.1], [0.1, 0.1, 0], [0.75, 0, 0], [0, 0, 0.5]]))
    assert bodies.without_shape == bodies.left_out == ()


def test_reads_capsules_and_quaternions_of_urdf_1_1():
    turned = f'<origin xyz="0.1 0 0" quat_xyzw="0 {np.sqrt(0.5)} 0 {np.sqrt(0.5)}"/>'
    bodies = Bodies.of(
        create_robot({"arm": write_geometry('<capsule radius="0.05" length="1.0"/>', origin=turned)}, [])
    )
    arm = bodies.link == 0
    assert bodies.radius[arm] == pytest.approx([0.05])
    # The length of the cylindrical part lies along the x axis of the link.
    ends = np.sort(np.concatenate([bodies.start[arm], bodies.end[arm]]), axis=0)
    assert ends == pytest.approx(np.array([[-0.4, 0, 0], [0.6, 0, 0]]), abs=1e-12)
    several = write_geometry('<capsule radius="0.05" length="1.0"/>') + write_geometry('<box size="1 1 1"/>')
    Bodies.of(create_robot({"arm": several + write_geometry('<sphere radius="0.1"/>')}, []))
    with pytest.raises(CollisionError, match=r"'arm'.*unknown attribute 'rot'"):
        Bodies.of(create_robot({"arm": write_geometry('<sphere radius="0.1"/>', origin='<origin rot="0 0 0"/>')}, []))


def test_prefers_collision_elements():
    both = write_geometry('<sphere radius="0.3"/>', "visual") + write_geometry('<sphere radius="0.1"/>')
    assert Bodies.of(create_robot({"arm": both}, [])).radius[-1] == pytest.approx(0.1)


def test_covers_the_range_of_fingers():
    """A slider moves by 0.2 m and a flap by 1.5 rad, both on a hand that is fixed to the arm."""
    joints = [
        write_joint("hold", "fixed", "arm", "hand", '<origin xyz="0 0 1"/>'),
        write_joint("slide", "prismatic", "hand", "slider", f'<axis xyz="1 0 0"/>{LIMIT.format(0, 0.2)}'),
        write_joint("flap", "revolute", "hand", "flap", f'<axis xyz="0 1 0"/>{LIMIT.format(0, 1.5)}'),
    ]
    reach = write_geometry('<sphere radius="0.01"/>', origin='<origin xyz="0 0 0.3"/>')
    bodies = Bodies.of(
        create_robot({"hand": "", "slider": write_geometry('<sphere radius="0.02"/>'), "flap": reach}, joints)
    )
    angles = np.linspace(0, 1.5, 40)
    arc = np.column_stack([0.31 * np.sin(angles), 0 * angles, 1 + 0.31 * np.cos(angles)])
    assert np.all(contain_points(bodies, 0, arc))
    assert np.all(contain_points(bodies, 0, [[x, 0, 1.02] for x in np.linspace(0, 0.2, 9)]))
    assert set(bodies.names) == {"slider", "flap"}


def test_omits_links_of_unknown_position():
    joints = [write_joint(f"other_{i}", "continuous", f"o{i}" if i else "base", f"o{i + 1}") for i in range(3)]
    ball = write_geometry('<sphere radius="0.1"/>')
    bodies = Bodies.of(create_robot({"arm": ball, **{f"o{i + 1}": ball for i in range(3)}}, joints))
    assert bodies.left_out == ("o2", "o3")
    above = Bodies.of(create_robot({"world": ball, "base": ball, "arm": ball}, []))
    still = above.start[above.link == -1]
    np.testing.assert_allclose(sorted(still[:, 2]), [-2.0, 0.0], atol=1e-9)


def test_links_without_shape_are_lines():
    bare = RobotModel.from_urdf(planar_arm.urdf())
    bodies = Bodies.of(bare)
    assert bodies.without_shape == ("base_link", "link_1", "link_2", "link_3")
    np.testing.assert_array_equal(bodies.radius, 0.0)
    upper = bodies.names.index("link_2")
    np.testing.assert_allclose([bodies.start[upper], bodies.end[upper]], [[0, 0, 0], [planar_arm.LENGTH, 0, 0]])
    rows = [{"a": 0.5, "alpha": 0.0, "d": 0.1, "theta": 0.3, "type": "revolute"}] * 2
    lines = Bodies.of(RobotModel.from_dh(rows))
    np.testing.assert_allclose(lines.start[1:3], [[-0.5, 0, -0.1]] * 2, atol=1e-12)
    np.testing.assert_allclose(lines.end[1:3], 0.0, atol=1e-12)


def test_scales_meshes_and_reports_missing_ones(tmp_path):
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1000 0 0\nv 0 20 0\nf 1 2 3\n")
    mesh = '<mesh filename="a.obj" scale="0.001 0.001 0.001"/>'
    arm = create_robot({"arm": write_geometry(mesh)}, [])
    bodies = Bodies.of(arm, [tmp_path])
    assert np.all(contain_points(bodies, 0, [[0, 0, 0], [1, 0, 0], [0, 0.02, 0]]))
    assert bodies.radius.max() < 0.05
    with pytest.raises(CollisionError, match=r"link 'arm': mesh 'a.obj' is not found .* name the directory .* go on"):
        Bodies.of(arm)
    two_meshes = create_robot(
        {"arm": write_geometry(mesh), "base": write_geometry('<mesh filename="file:///far/b.stl"/>')}, []
    )
    with pytest.raises(CollisionError, match=r"link 'base': mesh 'file:///far/b.stl' .*; link 'arm': mesh 'a.obj' is"):
        Bodies.of(two_meshes)
    without_meshes = Bodies.of(arm, skip_unreadable=True)
    assert "arm" in without_meshes.without_shape
    assert without_meshes.radius[without_meshes.link == 0] == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        ('<box size="1 1"/>', r'<box> has size="1 1"; expected 3'),
        ('<cylinder radius="x" length="1"/>', r'<cylinder> has radius="x"; expected 1'),
        ('<cone radius="1"/>', "geometry <cone> is not known"),
        ("", "<collision> has no geometry"),
    ],
)
def test_refuses_invalid_shapes(inner, message):
    with pytest.raises(CollisionError, match=f"link 'arm': {message}"):
        Bodies.of(create_robot({"arm": write_geometry(inner)}, []))
