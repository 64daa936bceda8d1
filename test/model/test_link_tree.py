"""URDF parser: supported elements, and one clear error for each fault."""

import contextlib
import math
import os
import sys
import threading
import time

import numpy as np
import pytest
from pinocchio_arm import example_urdf
from scipy.spatial.transform import Rotation
from urdf_parts import joint, link, robot

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel
from dynid_ros.model.arm import arm_from_urdf
from dynid_ros.model.urdf_export import urdf_with_inertias

TWO_JOINTS = robot(
    link("base"), link("a"), link("b"), joint("joint_1", "base", "a"), joint("joint_2", "a", "b", axis="0 1 0")
)
NO_PRODUCTS = 'ixy="0" ixz="0" iyz="0"'


def assert_refused(xml: str, *words: str, **links: str) -> None:
    with pytest.raises(ModelError) as error:
        RobotModel.from_urdf(xml, **links)
    message = str(error.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_reads_text_and_files_alike(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(TWO_JOINTS)
    from_text, from_path, from_name = (RobotModel.from_urdf(source) for source in (TWO_JOINTS, path, str(path)))
    assert from_text.urdf == from_path.urdf == from_name.urdf == TWO_JOINTS
    assert from_text.urdf_sha256 == from_path.urdf_sha256
    assert from_text.name == "arm"
    assert (from_text.base, from_text.tip) == ("base", "b")
    assert from_text.joint_names == ("joint_1", "joint_2")
    assert from_text.link_names == ("a", "b")


def test_text_may_start_with_declaration_byte_order_mark_and_comments():
    text = '\ufeff <?xml version="1.0" encoding="utf-8"?>\n<!-- | from arm.urdf.xacro | -->\n' + TWO_JOINTS
    assert RobotModel.from_urdf(text).n_joints == 2


def test_foreign_elements_cause_no_output(capfd):
    foreign = (
        '<material name="grey"><color rgba="1 1 1 1"/></material><gazebo reference="a"><mu1>1</mu1></gazebo>'
        '<transmission name="t"><type>x</type><joint name="joint_1"/></transmission><transmission/>'
        '<ros2_control name="s" type="system"><hardware><plugin>p</plugin></hardware>'
        '<joint name="joint_1"><command_interface name="effort"/></joint></ros2_control>'
    )
    visual = '<visual><geometry><mesh filename="x"/></geometry></visual><self_collide/>'
    visual += '<inertial><mass value="1"/></inertial>'
    limit = '<limit lower="-1" upper="1" velocity="1" effort="1" a:b="3"/><property/><dynamics damping="1"/>'
    text = robot(foreign, link("base", visual), link("a", visual), joint("joint_1", "base", "a", content=limit))
    assert RobotModel.from_urdf(text.replace("<robot", '<robot version="1.0" xmlns:xacro="x"')).parameters[0] == 1.0
    assert capfd.readouterr() == ("", "")


def test_accepts_undeclared_prefixes(tmp_path):
    """ROS reads URDFs with Drake's elements without a declaration."""
    text = robot(
        "<!-- <a:b> --><drake:x/>",
        link("base"),
        link("a"),
        joint("joint_1", "base", "a", content='<limit drake:y="1" lower="-1" upper="1" velocity="1" effort="1"/>'),
    )
    (tmp_path / "arm.urdf").write_text(text)
    model = RobotModel.from_urdf(tmp_path / "arm.urdf")
    assert model.n_joints == RobotModel.from_urdf(text).n_joints == 1
    read = RobotModel.from_urdf(urdf_with_inertias(model, 2 * model.parameters))
    np.testing.assert_allclose(read.parameters, 2 * model.parameters)
    declared = text.replace("<robot", '<robot xmlns:drake="http://drake.mit.edu"', 1)
    assert RobotModel.from_urdf(declared).urdf == declared


def test_real_urdfs_cause_no_output(capfd):
    for path, tip in (
        ("tiago_description/robots/tiago.urdf", "wrist_ft_link"),
        ("pr2_description/urdf/pr2.urdf", "r_gripper_palm_link"),
        ("baxter_description/urdf/baxter.urdf", "left_wrist"),
        ("talos_data/robots/talos_full_v2.urdf", "wrist_left_ft_tool_link"),
    ):
        assert RobotModel.from_urdf(example_urdf(path), tip=tip).n_joints >= 7
    assert capfd.readouterr() == ("", "")


def test_fixed_joints_are_merged():
    mount = '<origin xyz="0 0 0.5" rpy="0 0 1.5707963267948966"/>'
    text = robot(
        *(link(name) for name in ("world", "base", "a", "bracket", "tool")),
        joint("to_base", "world", "base", "fixed", mount),
        joint("joint_1", "base", "a"),
        joint("to_bracket", "a", "bracket", "fixed", '<origin xyz="0 0.3 0"/>'),
        joint("to_tool", "a", "tool", "fixed", '<origin xyz="0.2 0 0"/>'),
    )
    model = RobotModel.from_urdf(text, tip="tool")
    assert (model.n_joints, model.tip, model.link_names) == (1, "tool", ("a",))
    # Three bodies of 2 kg with their centres at (0.1, 0, 0), (0.1, 0.3, 0) and (0.3, 0, 0).
    np.testing.assert_allclose(model.parameters[:4], [6.0, 1.0, 0.6, 0.0], atol=1e-15)
    np.testing.assert_allclose(model.parameters[9], 3.0 + 2.0 * (0.01 + 0.1 + 0.09), atol=1e-15)
    np.testing.assert_allclose(model.tip_offset[:3, 3], [0.2, 0.0, 0.0])
    pose = model.forward_kinematics([[0.0]])[0, 0]
    np.testing.assert_allclose(pose, [[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0.5], [0, 0, 0, 1]], atol=1e-15)


def test_last_link_carries_links_of_other_moving_joints():
    text = robot(
        *(link(name) for name in ("base", "a", "finger")),
        link("tool", ""),
        joint("joint_1", "base", "a"),
        joint("flange", "a", "tool", "fixed"),
        joint("grip", "tool", "finger", "prismatic", '<mimic joint="lead" multiplier="2" offset="0.1"/>'),
    )
    # Two bodies of 2 kg with their centres 0.1 m along x, and the finger shifted along z of the tool.
    for posture, shift in (({}, 0.1), ({"lead": 0.2}, 0.5), ({"lead": 0.2, "grip": 0.3}, 0.3)):
        model = RobotModel.from_urdf(text, tip="tool", posture=posture)
        np.testing.assert_allclose(model.parameters[:4], [4.0, 0.4, 0.0, 2.0 * shift], atol=1e-15)


def test_reads_limits():
    text = robot(
        *(link(name) for name in "abcd"),
        joint("joint_1", "a", "b"),
        joint("joint_2", "b", "c", "continuous"),
        joint("joint_3", "c", "d", "prismatic").replace('<limit lower="-1" upper="2" velocity="3" effort="4"/>', ""),
    )
    limits = RobotModel.from_urdf(text).limits
    np.testing.assert_array_equal(limits.lower, [-1, -math.inf, -math.inf])
    np.testing.assert_array_equal(limits.upper, [2, math.inf, math.inf])
    np.testing.assert_array_equal(limits.velocity, [3, 3, math.inf])
    np.testing.assert_array_equal(limits.effort, [4, 4, math.inf])
    assert RobotModel.from_urdf(text).joint_types == ["revolute", "revolute", "prismatic"]


def test_reads_limits_of_urdf_1_2():
    text = robot(*(link(name) for name in "abcd"), *(joint(f"joint_{a}", a, b) for a, b in ("ab", "bc", "cd")))
    for name, added in (("a", 'acceleration="5" deceleration="4" jerk="30"'), ("b", 'acceleration="0" jerk="0"')):
        start, marker, end = text.partition(f'"joint_{name}"')
        text = start + marker + end.replace('effort="4"', f'effort="4" {added}', 1)
    limits = RobotModel.from_urdf(text).limits
    np.testing.assert_array_equal(limits.acceleration, [4, math.inf, math.inf])
    np.testing.assert_array_equal(limits.jerk, [30, math.inf, math.inf])
    short = text.replace('velocity="3" effort="4"', "")
    assert_refused(short, "limit", "velocity")
    limits = RobotModel.from_urdf(short.replace("<robot ", '<robot version="1.2" ')).limits
    np.testing.assert_array_equal([limits.velocity, limits.effort], np.full((2, 3), math.inf))


def test_quaternions_equal_roll_pitch_and_yaw():
    frames = []
    angles = (0.3, -0.7, 2.1)
    # The quaternion is not normalized.
    quaternion = 2 * Rotation.from_euler("xyz", angles).as_quat()
    for turn in ('rpy="{} {} {}"'.format(*angles), 'quat_xyzw="{} {} {} {}"'.format(*map(repr, quaternion.tolist()))):
        origin = f'<origin xyz="0.1 0.2 0.3" {turn}/>'
        inertial = f'<inertial>{origin}<mass value="2"/><inertia ixx="1" iyy="2" izz="2.5" {NO_PRODUCTS}/></inertial>'
        text = robot(link("base"), link("a", inertial), joint("joint_1", "base", "a", content=origin))
        model = RobotModel.from_urdf(text)
        frames.append(np.append(model.forward_kinematics(np.full((1, 1), 0.4)), model.parameters))
    np.testing.assert_allclose(frames[1], frames[0], rtol=0, atol=1e-12)


def test_axis_is_normalized_and_defaults_to_x():
    text = robot(link("a"), link("b"), joint("joint_1", "a", "b", axis="0 -3 4"))
    axis = RobotModel.from_urdf(text).joint_axes([[0.3]])[0, 0]
    np.testing.assert_allclose(axis, [0.0, -0.6, 0.8], atol=1e-15)
    text = text.replace('<axis xyz="0 -3 4"/>', "")
    np.testing.assert_allclose(RobotModel.from_urdf(text).joint_axes([[0.3]])[0, 0], [1.0, 0.0, 0.0], atol=1e-15)


@pytest.mark.parametrize("axis", ["0 0 -1", "1e-9 0 -1", "1 0 0", "0 -1 0", "-1 2 -0.1"])
def test_axis_does_not_rotate_the_link_frame(axis):
    text = robot(link("a"), link("b"), joint("joint_1", "a", "b", axis=axis))
    np.testing.assert_allclose(RobotModel.from_urdf(text).forward_kinematics([[0.0]])[0, 0], np.eye(4), atol=1e-15)


def test_link_without_inertial_has_no_mass():
    text = robot(link("a"), link("b", ""), joint("joint_1", "a", "b"))
    np.testing.assert_array_equal(RobotModel.from_urdf(text).parameters, np.zeros(10))


def test_refuses_malformed_xml(tmp_path):
    path = tmp_path / "broken.urdf"
    path.write_text(robot(link("a")).replace("</robot>", "\n\n<link>"))
    assert_refused(path, str(path), "line 3", "does not parse")
    assert_refused("<robot", "URDF text", "line 1")


def test_refuses_unreadable_files(tmp_path):
    assert_refused(tmp_path / "none.urdf", "none.urdf", "No such file")
    assert_refused(tmp_path, "cannot be read")
    assert_refused("", "empty")
    assert_refused("x" * 5000, "cannot be read")
    assert_refused("a\0b", "cannot be read")
    latin = tmp_path / "latin.urdf"
    latin.write_bytes(TWO_JOINTS.replace("arm", "bras levé").encode("latin-1"))
    assert_refused(latin, "latin.urdf", "UTF-8")


def test_refuses_other_documents():
    assert_refused("<sdf/>", "<sdf>", "<robot>")
    assert_refused("<robot/>", "no links")
    assert_refused('<robot name="x" xmlns:xacro="http://wiki.ros.org/xacro"><xacro:arm/></robot>', "xacro")


def test_refuses_unknown_links():
    assert_refused(TWO_JOINTS, "tip link 'c'", "'base', 'a', 'b'", tip="c")
    assert_refused(TWO_JOINTS, "base link 'c'", "'base', 'a', 'b'", base="c")
    assert_refused(TWO_JOINTS, "'base' is not below base link 'a'", "'b'", tip="base", base="a")
    assert_refused(TWO_JOINTS, "no moving joint", tip="base")
    assert_refused(TWO_JOINTS.replace('<child link="b"/>', '<child link="c"/>'), "'joint_2'", "child link 'c'")
    assert_refused(TWO_JOINTS.replace('<parent link="a"/>', '<parent link="c"/>'), "'joint_2'", "parent link 'c'")


def test_refuses_ambiguous_leaves_or_roots():
    parts = (link("base"), link("a"), link("b"), joint("joint_1", "base", "a"))
    assert_refused(robot(*parts, joint("joint_2", "base", "b")), "'a', 'b'", "tip")
    assert_refused(robot(*parts), "'base', 'b'", "base")
    assert RobotModel.from_urdf(robot(*parts), base="base").n_joints == 1


def test_refuses_closed_loops():
    parts = [*map(link, "abc"), joint("joint_1", "a", "b"), joint("joint_2", "b", "c")]
    assert_refused(robot(*parts, joint("joint_3", "a", "c")), "'joint_2'", "'joint_3'", "link 'c'", "closed loop")
    assert_refused(robot(*parts, joint("joint_3", "c", "a")), "'a', 'b', 'c'", "closed loop", base="a", tip="c")
    assert_refused(robot(*parts, link("d"), joint("joint_3", "d", "d")), "'d'", "closed loop")


def test_refuses_repeated_names():
    assert_refused(TWO_JOINTS.replace("joint_2", "joint_1"), "joints", "'joint_1'")
    assert_refused(TWO_JOINTS.replace("</robot>", link("a") + "</robot>"), "links", "'a'")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('<parent link="a"/>', "", ("joint_2", "parent")),
        ('<child link="b"/>', "", ("joint_2", "child")),
        *(
            ('"joint_2" type="revolute"', f'"joint_2" type="{kind}"', ("joint_2", kind))
            for kind in ("floating", "planar", "hinge")
        ),
        ('name="joint_2" ', "", ("joint", "name")),
        ('<axis xyz="0 1 0"/>', '<axis xyz="0 0 0"/>', ("joint_2", "0 0 0")),
        ('<axis xyz="0 1 0"/>', '<axis xyz="0 nan 0"/>', ("joint_2", "axis", "finite")),
        ('<axis xyz="0 1 0"/>', '<axis xyz="0 1"/>', ("joint_2", "<axis>", "xyz", "3 numbers")),
        ('<axis xyz="0 1 0"/>', "<axis/>", ("joint_2", "<axis>", "xyz")),
        ('<mass value="2"/>', "", ("base", "mass")),
        ('<mass value="2"/>', "<mass/>", ("base", "<mass>", "value")),
        ('<axis xyz="0 1 0"/>', '<origin xyz="inf 0 0"/>', ("joint_2", "xyz", "finite")),
        ('<mass value="2"/>', '<mass value="-2"/>', ("link 'a'", "mass", "-2")),
        ('<mass value="2"/>', '<mass value="nan"/>', ("link 'a'", "mass", "finite")),
        ('<mass value="2"/>', '<mass value="two"/>', ("base", "<mass>", "two")),
        ('ixy="0"', 'ixy="inf"', ("link 'a'", "inertia", "finite")),
        ('lower="-1"', 'lower="3"', ("joint_1", "lower limit 3", "upper limit 2")),
        ('velocity="3"', 'velocity="nan"', ("joint_1", "limit", "NaN")),
        ('velocity="3"', "", ("limit", "velocity")),
        ('velocity="3"', 'velocity="3" accelaration="2"', ("joint_1", "limit", "accelaration", "acceleration")),
        ('<axis xyz="0 1 0"/>', '<origin rpz="0 1 0"/>', ("joint_2", "origin", "rpz")),
        ('<axis xyz="0 1 0"/>', '<origin rpy="0 1 0" quat_xyzw="0 0 0 1"/>', ("joint_2", "rpy", "quat_xyzw")),
        ('<axis xyz="0 1 0"/>', '<origin quat_xyzw="0 0 0"/>', ("joint_2", "quat_xyzw", "4 numbers")),
        ('<axis xyz="0 1 0"/>', '<origin quat_xyzw="0 0 0 0"/>', ("joint_2", "quat_xyzw", "zero")),
        ('<mass value="2"/>', '<mass value="5_0"/>', ("base", "<mass>", "5_0")),
        ('<mass value="2"/>', '<mass value="\u0665"/>', ("base", "<mass>", "\u0665")),
        ("<robot ", '<robot version="new" ', ("version", "new")),
    ],
)
def test_refuses_wrong_elements(old, new, words):
    assert old in TWO_JOINTS
    assert_refused(TWO_JOINTS.replace(old, new), *words)


@pytest.mark.parametrize("read", [RobotModel.from_urdf, lambda path: arm_from_urdf(path)[0]])
def test_reads_a_pipe_once(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(TWO_JOINTS,))
    writer.start()
    assert read(tmp_path / "pipe").joint_names == ("joint_1", "joint_2")
    writer.join()


MACROS = """<robot name="m" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:property name="half" value="0.5"/>
<link name="a"/><link name="b"><inertial><mass value="${2 * half}"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0"
izz="0.1"/></inertial></link><joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""


@pytest.mark.parametrize("comment", ["<!--" * 50_000, "<!--" + "x" * 200_000 + "-->", "<!--" + "<a '" * 50_000 + "-->"])
def test_reads_long_comments_fast(comment):
    start = time.process_time()
    for text in (comment + TWO_JOINTS, TWO_JOINTS.replace("<link", comment + "<link", 1)):
        with contextlib.suppress(ModelError):
            RobotModel.from_urdf(text)
    assert time.process_time() - start < 5.0


def test_expands_macros_with_xacro(tmp_path):
    pytest.importorskip("xacro")
    path = tmp_path / "arm.xacro"
    path.write_text(MACROS)
    assert RobotModel.from_urdf(path).parameters[0] == 1.0
    path.write_text(MACROS.replace("half}", "whole}"))
    with pytest.raises(ModelError, match=r"xacro cannot expand it .*whole.*; expand it yourself"):
        RobotModel.from_urdf(path)


def test_refuses_macros_in_a_urdf_file(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(MACROS)
    with pytest.raises(ModelError, match=r"ends in \.xacro"):
        RobotModel.from_urdf(path)


@pytest.mark.parametrize("name", ["line&#10;break", "tab&#9;ulator", "next&#x85;line", "line&#x2028;separator"])
@pytest.mark.parametrize("replaced", ['name="arm"', 'name="joint_1"', 'link name="a"'])
def test_refuses_names_with_control_characters(name, replaced):
    assert replaced in TWO_JOINTS
    with pytest.raises(ModelError, match="control character"):
        RobotModel.from_urdf(TWO_JOINTS.replace(replaced, f'{replaced.partition("=")[0]}="{name}"'))


def test_refuses_macros_without_xacro(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(ModelError, match=r"arm.xacro.*not installed: pip install xacro"):
        RobotModel.from_urdf(tmp_path / "arm.xacro")


def test_macros_in_comments_need_no_xacro(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    path = tmp_path / "arm.urdf"
    path.write_text(TWO_JOINTS.replace("</robot>", '<!-- <xacro:gripper name="${name}"/> --></robot>'))
    assert RobotModel.from_urdf(path).n_joints == 2
