"""Choice of the tip link of real and constructed arms without a configured tip."""

import pytest
from pinocchio_arm import example_urdf
from urdf_parts import joint, link, robot

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel
from dynid_ros.model.arm import arm_from_urdf

SHORT = '<limit lower="0" upper="0.04" velocity="1" effort="1"/>'
LONG = '<limit lower="0" upper="0.4" velocity="1" effort="1"/>'
MIMIC = '<mimic joint="joint_1"/>'
ARM = (*map(link, ("base", "a", "b", "c")), joint("joint_1", "base", "a"), joint("joint_2", "a", "b"))


@pytest.mark.parametrize(
    ("path", "tip", "fingers"),
    [
        ("panda_description/urdf/panda.urdf", "panda_link8", "panda_finger_joint1, panda_finger_joint2"),
        ("kinova_description/robots/kinova.urdf", "j2s6s200_end_effector", ""),
        ("ur_description/urdf/ur10_robot.urdf", "tool0", ""),
        ("so_arm_description/urdf/so101.urdf", "gripper_link", "gripper"),
        ("z1_description/urdf/z1.urdf", "link06", "jointGripper"),
        ("talos_data/robots/talos_left_arm.urdf", "arm_left_7_link", "gripper_left_joint"),
        ("xarm_description/urdf/xarm7.urdf", "link_eef", ""),
        ("finger_edu_description/robots/finger_edu.urdf", "finger_tip_link", ""),
    ],
)
def test_finds_the_flange_of_real_arms(path, tip, fingers):
    model, remark = arm_from_urdf(example_urdf(path))
    assert model.tip == tip
    assert remark.endswith(fingers)
    assert not fingers or "belong to a hand" in remark
    assert not set(fingers.split(", ")) & set(model.joint_names)


@pytest.mark.parametrize(
    "path",
    [
        "tiago_description/robots/tiago.urdf",
        "baxter_description/urdf/baxter.urdf",
        "pr2_description/urdf/pr2.urdf",
        "allegro_hand_description/urdf/allegro_left_hand.urdf",
        "centauro_description/urdf/centauro.urdf",
    ],
)
def test_refuses_robots_with_several_arms(path):
    with pytest.raises(ModelError, match="several links end a chain"):
        arm_from_urdf(example_urdf(path))


@pytest.mark.parametrize(
    ("last", "tip", "n_joints"),
    [
        ((), "b", 2),  # c is a leaf without a joint
        ((joint("slide", "b", "c", "prismatic", SHORT),), "b", 2),
        ((joint("quill", "b", "c", "prismatic", LONG),), "c", 3),
        ((joint("unlimited", "b", "c", "prismatic", '<limit velocity="1" effort="1"/>'),), "c", 3),
        ((joint("follower", "b", "c", content=MIMIC),), "b", 2),
        ((joint("Left_Finger", "b", "c"),), "b", 2),
        ((joint("wrist", "b", "c"),), "c", 3),
        ((joint("to_tool0", "b", "c", "fixed"),), "c", 2),
    ],
)
def test_last_joint_belongs_to_the_arm_or_the_hand(last, tip, n_joints):
    parts = ARM if last else [part for part in ARM if 'link name="c"' not in part]
    model, remark = arm_from_urdf(robot(*parts, *last))
    assert (model.tip, model.n_joints) == (tip, n_joints)
    assert bool(remark) == (tip == "b" and bool(last))


def test_prismatic_joint_before_fingers_belongs_to_the_arm():
    fingers = (link("l"), link("r"), joint("left", "c", "l"), joint("right", "c", "r"))
    model, remark = arm_from_urdf(robot(*ARM, joint("slide", "b", "c", "prismatic", SHORT), *fingers))
    assert (model.tip, model.n_joints) == ("c", 3)
    assert remark.endswith("left, right")


def test_refuses_a_branch_with_as_many_joints_as_the_arm():
    parts = [*ARM, joint("other", "base", "c")]
    with pytest.raises(ModelError, match="choose one as tip"):
        arm_from_urdf(robot(*parts))


def test_passes_balancers_that_mimic_the_arm():
    piston = (link("cylinder"), link("piston"), joint("rod", "base", "cylinder", content=MIMIC))
    slide = joint("rod_slide", "cylinder", "piston", "prismatic", MIMIC)
    model, remark = arm_from_urdf(robot(*ARM, *piston, slide, joint("to_tool0", "b", "c", "fixed")))
    assert (model.tip, model.n_joints) == ("b", 2)
    assert "hand" not in remark


def test_prefers_tool_frames_of_the_last_link():
    frames = [link(name, "") for name in ("left_tool0", "ft_frame", "mytool0")]
    joints = [joint(f"to_{name}", "b", name, "fixed") for name in ("left_tool0", "ft_frame", "mytool0")]
    arm = [part for part in ARM if 'link name="c"' not in part]
    assert arm_from_urdf(robot(*arm, *frames, *joints))[0].tip == "left_tool0"
    assert arm_from_urdf(robot(*arm, *frames[1:], *joints[1:]))[0].tip == "b"  # no frame is named after a tool


def test_models_of_arms_with_several_leaves_end_at_the_flange():
    model = RobotModel.from_urdf(example_urdf("ur_description/urdf/ur10_robot.urdf"))
    assert (model.tip, model.n_joints) == ("tool0", 6)


def test_uses_configured_base_and_tip():
    text = robot(*ARM, joint("slide", "b", "c", "prismatic", SHORT))
    model, remark = arm_from_urdf(text, tip="c")
    assert (model.n_joints, remark) == (3, "")
    assert RobotModel.from_urdf(text).tip == "c"  # the only leaf
    for links in ({"tip": "nowhere"}, {"base": "nowhere"}, {"base": "c"}):
        with pytest.raises(ModelError):
            arm_from_urdf(text, **links)


def test_finds_the_flange_of_long_chains():
    count = 1200
    links = [link(f"l{i}", "") for i in range(count + 2)]
    fixed = [joint(f"f{i}", f"l{i}", f"l{i + 1}", "fixed") for i in range(1, count)]
    arm = (joint("first", "l0", "l1"), joint("last", f"l{count}", f"l{count + 1}"))
    assert arm_from_urdf(robot(*links, *fixed, *arm))[0].joint_names == ("first", "last")
