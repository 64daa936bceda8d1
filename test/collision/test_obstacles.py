import numpy as np
import pytest
from pinocchio_arm import example_urdf

from dynid_ros.collision import Bodies, Obstacle, read_obstacles
from dynid_ros.collision.obstacles import allowed_pairs, pair_of_links
from dynid_ros.errors import CollisionError
from dynid_ros.model import RobotModel
from dynid_ros.model.link_tree import LinkTree
from dynid_ros.trajectories import Workspace

TABLE = "{name: table, size: [2.0, 1.0, 0.1], position: [0.5, 0.0, -0.05]}"

TWO_ARMS = ("left_gripper", "right_gripper")


def test_boxes_are_read(tmp_path):
    path = tmp_path / "cell.yaml"
    path.write_text(
        f"- {TABLE}\n- {{name: wall, size: [1, 2, 3], position: [0, 4, 0], rpy: [0, 0, 1.5707963267948966]}}"
    )
    table, wall = read_obstacles(path)
    assert (table.name, wall.name) == ("table", "wall")
    np.testing.assert_allclose(table.centre, [0.5, 0, -0.05])
    np.testing.assert_allclose(table.half, [1.0, 0.5, 0.05])
    np.testing.assert_allclose(wall.rotation @ [1, 0, 0], [0, 1, 0], atol=1e-12)
    path.write_text("")
    assert read_obstacles(path) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: table", "expected a list of boxes"),
        ("- table", "entry 1: expected a mapping"),
        ("- {name: table, size: [1, 1, 1]}", "entry 1: 'position' is missing"),
        (f"- {TABLE}\n- {TABLE}", "several are named 'table'"),
        ("- {name: a, size: [1, 1, 1], position: [0, 0, 0], radius: 1}", "key 'radius' is not known"),
        ("- {name: a, size: [1, 0, 1], position: [0, 0, 0]}", r"entry 1 \('a'\): size is .* three sides above zero"),
        ("- {name: a, size: [1, 1], position: [0, 0, 0]}", r"entry 1 \('a'\): size: shape \(2,\)"),
        ("- {name: a, size: [1, 1, x], position: [0, 0, 0]}", r"entry 1 \('a'\).*three numbers"),
        ("- {name: a, size: [1, 1, 1], position: [0, .nan, 0]}", "position: entry 1 is not finite"),
        ("- [", "cannot be read"),
    ],
)
def test_mistakes_are_named(tmp_path, text, message):
    path = tmp_path / "cell.yaml"
    path.write_text(text)
    with pytest.raises(CollisionError, match=f"cell.yaml.*{message}"):
        read_obstacles(path)
    with pytest.raises(CollisionError, match=r"none.yaml': cannot be read"):
        read_obstacles(tmp_path / "none.yaml")


def test_senseless_boxes_are_refused():
    with pytest.raises(CollisionError, match=r"'a': lower corner .* is not below"):
        Obstacle("a", [0, 0, 0], [1, 1, -1])
    with pytest.raises(CollisionError, match=r"'a': pose is not a \(4, 4\) transform"):
        Obstacle("a", [0, 0, 0], [1, 1, 1], 2 * np.eye(4))
    with pytest.raises(CollisionError, match=r"'a', lower corner \(m\)"):
        Obstacle("a", [0, 0], [1, 1, 1])


@pytest.mark.slow  # its meshes take ten seconds
def test_baxter_may_move_where_its_srdf_says_what_touches():
    urdf = example_urdf("baxter_description/urdf/baxter.urdf")
    srdf = example_urdf("baxter_description/srdf/baxter_manipulation.srdf")
    robot = RobotModel.from_urdf(urdf, TWO_ARMS, held={"head_pan": 0.0})
    poses = np.random.default_rng(0).uniform(robot.limits.lower, robot.limits.upper, (2000, robot.n_joints))
    told, untold = (Bodies.of(robot, [urdf.parents[3]], srdf=path) for path in (srdf, None))
    assert frozenset({"head", "torso"}) in told.allowed
    assert not untold.allowed
    refused, allowed = (Workspace(robot, -np.inf, 0.05, bodies) for bodies in (untold, told))
    assert not refused.allowed(poses).any()
    assert 0.1 < allowed.allowed(poses).mean() < 0.9
    # The arms still keep apart from each other.
    assert any("'left_" in name and "'right_" in name for name in allowed.names)
    assert not any({"head", "torso"} == set(name.split("'")[1::2]) for name in allowed.names)


def test_pairs_are_named_by_links():
    links = ["a", "b", "left:b"]
    assert pair_of_links("a:b", links) == {"a", "b"}
    assert pair_of_links(" a:left:b", links) == {"a", "left:b"}
    for wrong in ("a", "a:c", "a:a", ""):
        with pytest.raises(CollisionError, match=r"link:link; the links of the robot are a, b, left:b"):
            pair_of_links(wrong, links)


def test_an_srdf_of_another_robot_is_refused(tmp_path):
    urdf = '<robot name="mine"><link name="a"/><link name="b"/></robot>'
    path = tmp_path / "arm.srdf"
    cases = {
        '<robot name="other"><disable_collisions link1="a" link2="b"/></robot>': "of robot 'other', the URDF of 'mine'",
        '<robot name="mine"><disable_collisions link1="a" link2="c"/></robot>': "c are not in the URDF",
        '<robot name="mine"><disable_collisions link1="a"/></robot>': "lacks link1 or link2",
        '<robot name="mine"><link name="a"/></robot>': "is no SRDF",
        "<robot": "does not parse",
        '<!DOCTYPE robot><robot name="mine"/>': "document type",
    }
    for text, words in cases.items():
        path.write_text(text)
        with pytest.raises(CollisionError, match=words) as error:
            allowed_pairs(path, LinkTree(urdf, "URDF"))
        assert "\n" not in str(error.value)
        assert "arm.srdf" in str(error.value)
    with pytest.raises(CollisionError, match="cannot be read"):
        allowed_pairs(tmp_path / "none.srdf", LinkTree(urdf, "URDF"))
    path.write_text('<robot name="mine"><disable_collisions link1="a" link2="b" reason="Never"/></robot>')
    assert allowed_pairs(path, LinkTree(urdf, "URDF")) == {frozenset("ab")}
