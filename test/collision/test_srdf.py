"""Links that an SRDF lets touch, and SRDFs that are none of this robot."""

import numpy as np
import pytest
from pinocchio_arm import example_urdf

from dynid_ros.collision import Bodies
from dynid_ros.collision.srdf import allowed_pairs, pair_of_links
from dynid_ros.errors import CollisionError
from dynid_ros.model import RobotModel
from dynid_ros.model.link_tree import LinkTree
from dynid_ros.trajectories import Workspace

TWO_ARMS = ("left_gripper", "right_gripper")


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
