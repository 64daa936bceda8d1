"""Test obstacles from files, and allowed pairs of links from options and SRDF files."""

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


def test_reads_boxes(tmp_path):
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
def test_reports_mistakes_in_obstacle_files(tmp_path, text, message):
    path = tmp_path / "cell.yaml"
    path.write_text(text)
    with pytest.raises(CollisionError, match=f"cell.yaml.*{message}"):
        read_obstacles(path)
    with pytest.raises(CollisionError, match=r"none.yaml': cannot be read"):
        read_obstacles(tmp_path / "none.yaml")


def test_refuses_invalid_boxes():
    with pytest.raises(CollisionError, match=r"'a': lower corner .* is not below"):
        Obstacle("a", [0, 0, 0], [1, 1, -1])
    with pytest.raises(CollisionError, match=r"'a': pose is not a \(4, 4\) transform"):
        Obstacle("a", [0, 0, 0], [1, 1, 1], 2 * np.eye(4))
    with pytest.raises(CollisionError, match=r"'a', lower corner \(m\)"):
        Obstacle("a", [0, 0], [1, 1, 1])


@pytest.mark.slow  # reading the meshes takes ten seconds
def test_srdf_of_baxter_allows_touching_links():
    urdf = example_urdf("baxter_description/urdf/baxter.urdf")
    srdf = example_urdf("baxter_description/srdf/baxter_manipulation.srdf")
    robot = RobotModel.from_urdf(urdf, TWO_ARMS, held={"head_pan": 0.0})
    poses = np.random.default_rng(0).uniform(robot.limits.lower, robot.limits.upper, (2000, robot.n_joints))
    with_srdf = Bodies.of(robot, [urdf.parents[3]], srdf=srdf)
    without_srdf = Bodies.of(robot, [urdf.parents[3]])
    assert frozenset({"head", "torso"}) in with_srdf.allowed
    assert not without_srdf.allowed
    workspace = Workspace(robot, -np.inf, 0.05, with_srdf)
    assert not Workspace(robot, -np.inf, 0.05, without_srdf).allowed(poses).any()
    assert 0.1 < workspace.allowed(poses).mean() < 0.9
    # The arms still keep apart.
    assert any("'left_" in name and "'right_" in name for name in workspace.names)
    assert not any({"head", "torso"} == set(name.split("'")[1::2]) for name in workspace.names)


def test_reads_pairs_of_links():
    links = ["a", "b", "left:b"]
    assert pair_of_links("a:b", links) == {"a", "b"}
    assert pair_of_links(" a:left:b", links) == {"a", "left:b"}
    for wrong in ("a", "a:c", "a:a", ""):
        with pytest.raises(CollisionError, match=r"link:link; the links of the robot are a, b, left:b"):
            pair_of_links(wrong, links)


def test_refuses_malformed_srdf_files(tmp_path):
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
    for text, message in cases.items():
        path.write_text(text)
        with pytest.raises(CollisionError, match=message) as error:
            allowed_pairs(path, LinkTree(urdf, "URDF"))
        assert "\n" not in str(error.value)
        assert "arm.srdf" in str(error.value)
    with pytest.raises(CollisionError, match="cannot be read"):
        allowed_pairs(tmp_path / "none.srdf", LinkTree(urdf, "URDF"))
    path.write_text('<robot name="mine"><disable_collisions link1="a" link2="b" reason="Never"/></robot>')
    assert allowed_pairs(path, LinkTree(urdf, "URDF")) == {frozenset("ab")}
