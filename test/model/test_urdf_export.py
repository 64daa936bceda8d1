"""URDFs with replaced inertias: other programs read the parameters, and the rest of the file is unchanged."""

import re

import numpy as np
import pytest
from exported_urdf import assert_parameters, assert_same_torque, draw_parameters
from pinocchio_arm import example_urdf
from random_chains import TIP, random_urdf

from dynid_ros.errors import ModelError
from dynid_ros.files.bounded import share_path
from dynid_ros.model import RobotModel
from dynid_ros.model.urdf_export import urdf_with_inertias

ARMS = {
    "ur10": ("ur_description/urdf/ur10_robot.urdf", "ee_link"),
    "kinova": ("kinova_description/robots/kinova.urdf", "j2s6s200_end_effector"),
    "xarm7": ("xarm_description/urdf/xarm7.urdf", None),
}
WITH_OTHER_JOINTS = {
    "panda with fingers": ("panda_description/urdf/panda.urdf", "panda_hand"),
    "tiago with head": ("tiago_description/robots/tiago_no_hand.urdf", "arm_tool_link"),
    "kinova below its wrist": ("kinova_description/robots/kinova.urdf", "j2s6s200_link_4"),
}
INERTIAL = re.compile(r"<inertial>.*?</inertial>", re.DOTALL)
SMALL = '<mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'

OTHER = np.array([2.0, 0.1, -0.2, 0.3, 1.0, 0.01, -0.02, 1.1, 0.03, 1.2])


def one_link(content: str, head: str = "") -> str:
    """Return a URDF with a base and one link, given by its XML, on the joint `turn`."""
    lines = [
        f'{head}<robot name="r"><!-- a comment -->',
        '  <link name="base"/>',
        content,
        '  <joint type="revolute" name="turn"><parent link="base"/><child link="arm"/>',
        '    <axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>',
        "</robot>",
        "",
    ]
    return "\n".join(lines)


@pytest.mark.parametrize("name", [*ARMS, "demo"])
def test_mujoco_reads_the_exported_parameters(name):
    path, tip = ARMS.get(name, (None, None))
    path = example_urdf(path) if path else share_path("config/demo_arm.urdf")
    robot = RobotModel.from_urdf(path, tip, gravity=(1.1, -2.3, -9.4))
    parameters = draw_parameters(robot)
    urdf = urdf_with_inertias(robot, parameters)
    exported = RobotModel.from_urdf(urdf, tip)
    assert_parameters(exported.parameters, parameters)
    assert exported.kinematics_sha256 == robot.kinematics_sha256
    assert INERTIAL.sub("", urdf) == INERTIAL.sub("", robot.urdf)
    assert_same_torque(urdf, robot, parameters)


def test_exported_random_chains_have_the_parameters():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(1, 8))), TIP, gravity=rng.normal(size=3) * 8)
        parameters = draw_parameters(robot, seed)
        urdf = urdf_with_inertias(robot, parameters)
        assert_parameters(RobotModel.from_urdf(urdf, TIP).parameters, parameters)
        assert_same_torque(urdf, robot, parameters)


@pytest.mark.parametrize("name", WITH_OTHER_JOINTS)
def test_links_beyond_the_chain_keep_their_inertia(name):
    path, tip = WITH_OTHER_JOINTS[name]
    # A fixed antenna of Tiago's base has an inertia that MuJoCo refuses with or without export.
    text = re.sub(r'<inertia ixx="0.00000002371".*/>', SMALL.split("/>")[1] + "/>", example_urdf(path).read_text())
    robot = RobotModel.from_urdf(text, tip)
    parameters = draw_parameters(robot)
    urdf = urdf_with_inertias(robot, parameters)
    assert "with their joints at zero" in urdf
    assert INERTIAL.sub("", urdf) == INERTIAL.sub("", robot.urdf)
    assert_same_torque(urdf, robot, parameters)
    assert_parameters(RobotModel.from_urdf(urdf, tip).parameters, parameters)


def test_export_is_idempotent():
    robot = RobotModel.from_urdf(share_path("config/demo_arm.urdf"))
    parameters = draw_parameters(robot)
    once = urdf_with_inertias(robot, parameters)
    twice = urdf_with_inertias(RobotModel.from_urdf(once), parameters)
    assert twice == once


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('  <link name="arm"/>', '  <link name="arm">\n    NEW\n  </link>'),
        ('  <link name="arm" />', '  <link name="arm">\n    NEW\n  </link>'),
        ("  <link name='arm'></link>", "  <link name='arm'>\n    NEW</link>"),
        ("<!-- --><link name='arm'></link>", "<!-- --><link name='arm'>NEW</link>"),
        (
            '\t<link\n\t\tname="arm" note="/>\'>"\n\t>\n\t\t<visual/> <!-- <inertial/> -->\n\t</link >',
            '\t<link\n\t\tname="arm" note="/>\'>"\n\t>\n\t\tNEW\n\t\t<visual/> <!-- <inertial/> -->\n\t</link >',
        ),
        (
            '  <link name="arm">\n    <visual/>\n    <inertial >OLD</inertial\n >\n  </link>',
            '  <link name="arm">\n    <visual/>\n    NEW\n  </link>',
        ),
        (
            '<x><link name="arm"><inertial>OLD</inertial></link></x><link name="arm"><inertial>OLD</inertial></link>',
            '<x><link name="arm"><inertial>OLD</inertial></link></x><link name="arm">NEW</link>',
        ),
    ],
)
def test_export_changes_inertials_only(content, expected, newline, tmp_path):
    head = "<?xml version='1.0'?>\n"
    before, after = (one_link(x, head).replace("OLD", SMALL).replace("\n", newline) for x in (content, expected))
    path = tmp_path / "arm.urdf"
    path.write_bytes(before.encode())
    urdf = urdf_with_inertias(RobotModel.from_urdf(path), OTHER)
    assert_parameters(RobotModel.from_urdf(urdf).parameters, OTHER)
    new = re.compile(r'<inertial>((?!</inertial>).)*<mass value="2.0"/>.*?</inertial>', re.DOTALL)
    assert new.sub("NEW", urdf) == after
    assert urdf.count("\n") == urdf.count(newline)


@pytest.mark.parametrize("head", ["", '<?xml version="1.0" encoding="ISO-8859-1"?>\n', "<!-- ü -->\n"])
def test_export_keeps_non_ascii_names_and_wrong_declarations(head):
    name, hand = "机械臂 &amp; --ä--- ", "hand-----"
    fixed = f'<joint name="f" type="fixed"><parent link="{name}"/><child link="{hand}"/></joint>'
    body = f"<inertial>{SMALL}</inertial>"
    text = one_link(f"<link name='arm'><!-- größe -->{body}</link>", head=head).replace("'arm'", '"arm"')
    text = text.replace('"arm"', f'"{name}"')
    text = text.replace("</robot>", f'<link name="{hand}">{body}</link>{fixed}</robot>')
    robot = RobotModel.from_urdf(text)
    urdf = urdf_with_inertias(robot, OTHER)
    assert INERTIAL.sub("", urdf) == INERTIAL.sub("", text)
    assert_parameters(RobotModel.from_urdf(urdf).parameters, OTHER)


def test_refuses_export_without_a_urdf():
    robot = RobotModel.from_dh([{"a": 1.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}])
    with pytest.raises(ModelError, match="does not come from a URDF"):
        urdf_with_inertias(robot, np.ones(10))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (np.zeros(10), "link_1"),
        (np.full(10, np.nan), "not finite"),
        (np.ones(9), r"shape \(9,\)"),
        (np.array([1.0, 0, 0, 0, 1.0, 0, 0, 1.0, 0, 2.1]), "link_1"),
    ],
)
def test_refuses_impossible_bodies(parameters, words):
    robot = RobotModel.from_urdf(one_link('<link name="arm"/>').replace('"arm"', '"link_1"'))
    with pytest.raises(ModelError, match=words):
        urdf_with_inertias(robot, parameters)
