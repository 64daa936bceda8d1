"""Base and tip link of the groups of an SRDF."""

import pytest
from pinocchio_arm import example_urdf
from urdf_parts import joint, link, robot

from dynid_ros.errors import ModelError
from dynid_ros.model.arm import arm_from_urdf
from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.srdf import chain_ends

LINKS = ("world", "base", "l1", "l2", "l3", "tool0", "camera", "finger_1", "finger_2")
JOINTS = (
    ("mount", "fixed", "world", "base"),
    ("j1", "revolute", "base", "l1"),
    ("j2", "revolute", "l1", "l2"),
    ("j3", "revolute", "l2", "l3"),
    ("flange", "fixed", "l3", "tool0"),
    ("eye", "fixed", "l3", "camera"),
    ("grip_1", "prismatic", "tool0", "finger_1"),
    ("grip_2", "prismatic", "tool0", "finger_2"),
)
URDF = robot(*map(link, LINKS), *(joint(name, parent, child, kind) for name, kind, parent, child in JOINTS))
TREE = LinkTree(URDF, "URDF")
GROUPS = """<robot name="arm">
  <virtual_joint name="virtual" type="fixed" parent_frame="map" child_link="world"/>
  <group name="chain"><chain base_link="base" tip_link="tool0"/></group>
  <group name="nested"><group name="chain"/></group>
  <group name="joints"><joint name="virtual"/><joint name="j2"/><joint name="j1"/><joint name="j3"/></group>
  <group name="flanged"><joint name="j2"/><joint name="j3"/><joint name="flange"/></group>
  <group name="links"><link name="base"/><link name="l1"/><link name="l2"/><link name="l3"/><link name="tool0"/></group>
  <group name="frames"><link name="l1"/><link name="tool0"/><link name="camera"/></group>
  <group name="hand"><joint name="grip_1"/><joint name="grip_2"/></group>
  <group name="whole"><group name="chain"/><group name="hand"/></group>
  <group name="extended"><chain base_link="base" tip_link="tool0"/><joint name="grip_2"/></group>
  <group name="gap"><joint name="j1"/><joint name="j3"/></group>
  <group name="still"><link name="base"/></group>
  <group name="endless"><group name="endless"/></group>
  <group name="upside_down"><chain base_link="tool0" tip_link="base"/></group>
  <group name="misspelt"><joint name="j9"/></group>
  <group name="elsewhere"><chain base_link="base" tip_link="hook"/></group>
  <disable_collisions link1="l1" link2="l2" reason="Adjacent"/>
</robot>"""


@pytest.fixture(name="srdf")
def fixture_srdf(tmp_path):
    path = tmp_path / "arm.srdf"
    path.write_text(GROUPS)
    return path


@pytest.mark.parametrize(
    ("group", "ends"),
    [
        ("chain", ("base", "tool0")),
        ("nested", ("base", "tool0")),
        ("joints", ("base", "l3")),
        ("flanged", ("l1", "tool0")),
        ("links", ("base", "tool0")),
        ("frames", ("base", "l1")),
        ("extended", ("base", "finger_2")),
    ],
)
def test_chain_group_has_base_and_tip(srdf, group, ends):
    assert chain_ends(TREE, srdf=srdf, group=group) == ends
    arm, remark = arm_from_urdf(URDF, srdf=srdf, group=group)
    assert (arm.base, arm.tip, remark) == (*ends, "")


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("hand", ["no chain", "grip_"]),
        ("whole", ["no chain", "grip_"]),
        ("gap", ["no chain", "lacks j2"]),
        ("still", ["no joint that moves", "chain"]),
        ("endless", ["itself"]),
        ("upside_down", ["'tool0' to 'base'"]),
        ("misspelt", ["joint 'j9'", "not in the URDF"]),
        ("elsewhere", ["link 'hook'", "not in the URDF"]),
        ("arms", ["no group 'arms'", "chain, nested, joints"]),
    ],
)
def test_refuses_other_groups_in_one_line(srdf, group, words):
    with pytest.raises(ModelError) as error:
        chain_ends(TREE, srdf=srdf, group=group)
    for word in ["arm.srdf", *words]:
        assert word in str(error.value)
    assert "\n" not in str(error.value)


def test_group_excludes_base_and_tip_and_needs_a_file(srdf):
    for ends in ({"base": "base"}, {"tip": "tool0"}):
        with pytest.raises(ModelError, match="leave out"):
            chain_ends(TREE, srdf=srdf, group="chain", **ends)
    with pytest.raises(ModelError, match="needs the SRDF"):
        chain_ends(TREE, group="chain")
    assert chain_ends(TREE, "base", "l1", srdf=srdf) == ("base", "l1")


def test_refuses_an_srdf_of_another_robot(srdf):
    with pytest.raises(ModelError, match="of robot 'arm', the URDF of 'mine'"):
        chain_ends(LinkTree(URDF.replace('name="arm"', 'name="mine"'), "URDF"), srdf=srdf, group="chain")


@pytest.mark.parametrize(
    ("urdf", "srdf", "group", "ends"),
    [
        ("pr2_description/urdf/pr2.urdf", "pr2_description/srdf/pr2.srdf", "right_arm", ("torso_lift_link", 7)),
        ("panda_description/urdf/panda.urdf", "panda_description/srdf/panda.srdf", "arm", ("panda_link0", 7)),
        ("talos_data/robots/talos_reduced.urdf", "talos_data/srdf/talos.srdf", "l_arm", ("torso_2_link", 7)),
        ("xarm_description/urdf/xarm7.urdf", "xarm_description/srdf/xarm7.srdf", "xarm7", ("link_base", 7)),
    ],
)
def test_groups_of_public_robots(urdf, srdf, group, ends):
    arm, _ = arm_from_urdf(example_urdf(urdf), srdf=example_urdf(srdf), group=group)
    assert (arm.base, arm.n_joints) == ends
