"""What hangs where, and what is read of it."""

import numpy as np
import planar_arm
import pytest

from dynid_ros.collision import Bodies
from dynid_ros.errors import CollisionError
from dynid_ros.model import RobotModel

LIMIT = '<limit lower="{0}" upper="{1}" velocity="1" effort="1"/>'


def geometry(inner, tag="collision", origin=""):
    return f"<{tag}>{origin}<geometry>{inner}</geometry></{tag}>"


def joint(name, kind, parent, child, inner=""):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inner}</joint>'


def robot(links, joints, **chain):
    links = {"world": "", "base": "", "arm": "", **links}
    text = "".join(f'<link name="{name}">{inner}</link>' for name, inner in links.items())
    origin = '<origin xyz="0 0 0.5"/>'
    mount = joint("mount", "fixed", "world", "base", '<origin xyz="0 0 2"/>')
    turn = joint("turn", "revolute", "base", "arm", f'{origin}<axis xyz="0 0 1"/>{LIMIT.format(-1, 1)}')
    chain = {"base": "base", "tip": "arm", **chain}
    return RobotModel.from_urdf(f'<robot name="r">{text}{mount}{turn}{"".join(joints)}</robot>', **chain)


def holds(bodies, link, points):
    """Whether the capsules of a link hold points (M, 3) of its frame."""
    mine = bodies.link == link
    along = bodies.end[mine] - bodies.start[mine]
    offset = np.asarray(points, dtype=float)[:, np.newaxis] - bodies.start[mine]
    t = np.clip(np.sum(offset * along, axis=2) / np.maximum(np.sum(along**2, axis=1), 1e-12), 0, 1)
    return np.any(np.linalg.norm(offset - t[..., np.newaxis] * along, axis=2) <= bodies.radius[mine] + 1e-9, axis=1)


def test_primitives_are_covered_where_they_are_and_not_far_beyond():
    turned = '<origin xyz="0.1 0 0" rpy="0 1.5707963267948966 0"/>'
    found = Bodies.of(
        robot({"base": geometry('<sphere radius="0.2"/>', "visual"),
               "arm": geometry('<cylinder radius="0.05" length="1.0"/>', origin=turned)}, [])
    )  # fmt: skip
    assert found.names == ("base",) + ("arm",) * (len(found.names) - 1)
    assert found.radius[0] == pytest.approx(0.2)
    assert np.all(holds(found, 0, [[0.6, 0, 0], [-0.4, 0.049, 0], [0.1, 0, 0.05], [0.6, 0, -0.05]]))
    assert not np.any(holds(found, 0, [[0.1, 0, 0.1], [0.1, 0.1, 0], [0.75, 0, 0], [0, 0, 0.5]]))
    assert found.without_shape == found.left_out == ()


def test_capsule_of_urdf_1_1_turned_by_a_quaternion():
    turned = f'<origin xyz="0.1 0 0" quat_xyzw="0 {np.sqrt(0.5)} 0 {np.sqrt(0.5)}"/>'
    found = Bodies.of(robot({"arm": geometry('<capsule radius="0.05" length="1.0"/>', origin=turned)}, []))
    arm = found.link == 0
    assert found.radius[arm] == pytest.approx([0.05])
    # The length is that of the cylindrical part, along the x axis of the link by now.
    ends = np.sort(np.concatenate([found.start[arm], found.end[arm]]), axis=0)
    assert ends == pytest.approx(np.array([[-0.4, 0, 0], [0.6, 0, 0]]), abs=1e-12)
    several = geometry('<capsule radius="0.05" length="1.0"/>') + geometry('<box size="1 1 1"/>')
    Bodies.of(robot({"arm": several + geometry('<sphere radius="0.1"/>')}, []))
    with pytest.raises(CollisionError, match=r"'arm'.*unknown attribute 'rot'"):
        Bodies.of(robot({"arm": geometry('<sphere radius="0.1"/>', origin='<origin rot="0 0 0"/>')}, []))


def test_collision_elements_come_before_visual_ones():
    both = geometry('<sphere radius="0.3"/>', "visual") + geometry('<sphere radius="0.1"/>')
    assert Bodies.of(robot({"arm": both}, [])).radius[-1] == pytest.approx(0.1)


def test_fingers_are_covered_all_the_way():
    """A slider from 0 to 0.2 m and a flap from 0 to 1.5 rad, both on a hand that is fixed to the arm."""
    joints = [
        joint("hold", "fixed", "arm", "hand", '<origin xyz="0 0 1"/>'),
        joint("slide", "prismatic", "hand", "slider", f'<axis xyz="1 0 0"/>{LIMIT.format(0, 0.2)}'),
        joint("flap", "revolute", "hand", "flap", f'<axis xyz="0 1 0"/>{LIMIT.format(0, 1.5)}'),
    ]
    reach = geometry('<sphere radius="0.01"/>', origin='<origin xyz="0 0 0.3"/>')
    found = Bodies.of(robot({"hand": "", "slider": geometry('<sphere radius="0.02"/>'), "flap": reach}, joints))
    angles = np.linspace(0, 1.5, 40)
    arc = np.column_stack([0.31 * np.sin(angles), 0 * angles, 1 + 0.31 * np.cos(angles)])
    assert np.all(holds(found, 0, arc))
    assert np.all(holds(found, 0, [[x, 0, 1.02] for x in np.linspace(0, 0.2, 9)]))
    assert set(found.names) == {"slider", "flap"}


def test_what_nobody_knows_the_place_of_is_left_out_and_named():
    joints = [joint(f"other_{i}", "continuous", f"o{i}" if i else "base", f"o{i + 1}") for i in range(3)]
    ball = geometry('<sphere radius="0.1"/>')
    found = Bodies.of(robot({"arm": ball, **{f"o{i + 1}": ball for i in range(3)}}, joints))
    assert found.left_out == ("o2", "o3")
    above = Bodies.of(robot({"world": ball, "base": ball, "arm": ball}, []))
    still = above.start[above.link == -1]
    np.testing.assert_allclose(sorted(still[:, 2]), [-2.0, 0.0], atol=1e-9)


def test_links_without_shape_are_lines_and_named():
    bare = RobotModel.from_urdf(planar_arm.urdf())
    found = Bodies.of(bare)
    assert found.without_shape == ("base_link", "link_1", "link_2", "link_3")
    np.testing.assert_array_equal(found.radius, 0.0)
    upper = found.names.index("link_2")
    np.testing.assert_allclose([found.start[upper], found.end[upper]], [[0, 0, 0], [planar_arm.LENGTH, 0, 0]])
    rows = [{"a": 0.5, "alpha": 0.0, "d": 0.1, "theta": 0.3, "type": "revolute"}] * 2
    lines = Bodies.of(RobotModel.from_dh(rows))
    np.testing.assert_allclose(lines.start[1:3], [[-0.5, 0, -0.1]] * 2, atol=1e-12)
    np.testing.assert_allclose(lines.end[1:3], 0.0, atol=1e-12)


def test_meshes_are_scaled_and_missing_ones_named(tmp_path):
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1000 0 0\nv 0 20 0\nf 1 2 3\n")
    mesh = '<mesh filename="a.obj" scale="0.001 0.001 0.001"/>'
    arm = robot({"arm": geometry(mesh)}, [])
    found = Bodies.of(arm, [tmp_path])
    assert np.all(holds(found, 0, [[0, 0, 0], [1, 0, 0], [0, 0.02, 0]]))
    assert found.radius.max() < 0.05
    with pytest.raises(CollisionError, match=r"link 'arm': mesh 'a.obj' is not found .* name the directory .* go on"):
        Bodies.of(arm)
    both = robot({"arm": geometry(mesh), "base": geometry('<mesh filename="file:///far/b.stl"/>')}, [])
    with pytest.raises(CollisionError, match=r"link 'base': mesh 'file:///far/b.stl' .*; link 'arm': mesh 'a.obj' is"):
        Bodies.of(both)
    lined = Bodies.of(arm, skip_unreadable=True)
    assert "arm" in lined.without_shape
    assert lined.radius[lined.link == 0] == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        ('<box size="1 1"/>', r'<box> has size="1 1"; expected 3'),
        ('<cylinder radius="x" length="1"/>', r'<cylinder> has radius="x"; expected 1'),
        ('<cone radius="1"/>', "geometry <cone> is not known"),
        ("", "<collision> has no geometry"),
    ],
)
def test_senseless_shapes_are_named(inner, message):
    with pytest.raises(CollisionError, match=f"link 'arm': {message}"):
        Bodies.of(robot({"arm": geometry(inner)}, []))
