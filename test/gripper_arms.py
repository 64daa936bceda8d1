"""Provide public arms with grippers and hands, and an arm with its gripper in the middle."""

from pinocchio_arm import example_urdf

from dynid_ros.model import RobotModel

THUMB = {"hand_thumb_abd_joint": 1.1, "hand_thumb_flex_1_joint": 0.6, "hand_index_abd_joint": 0.4}
HAND = {f"left_hand_{finger}_0_joint": 0.7 for finger in ("thumb", "middle", "index")}
PR2_HAND = {
    f"l_gripper_{part}_joint": sign * 0.4
    for part, sign in (
        ("l_finger", 1),
        ("r_finger", 1),
        ("l_finger_tip", 1),
        ("r_finger_tip", 1),
        ("l_parallel_root", 1),
        ("r_parallel_root", -1),
    )
}
GRIPPERS: dict[str, tuple[str | None, str, str | None, dict[str, float]]] = {
    "tiago with hand": ("tiago_description/robots/tiago.urdf", "arm_tool_link", None, THUMB),
    "tiago to its last link": ("tiago_description/robots/tiago.urdf", "arm_7_link", "torso_lift_link", THUMB),
    "panda with fingers": (
        "panda_description/urdf/panda.urdf",
        "panda_hand",
        None,
        {"panda_finger_joint1": 0.03, "panda_finger_joint2": 0.02},
    ),
    "pr2 with gripper": ("pr2_description/urdf/pr2.urdf", "l_wrist_roll_link", "torso_lift_link", PR2_HAND),
    "g1 with hand": ("g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf", "left_wrist_yaw_link", "torso_link", HAND),
    "talos to its elbow": ("talos_data/robots/talos_left_arm.urdf", "arm_left_4_link", None, {"arm_left_6_joint": 0.5}),
    "gripper in the middle": (None, "lower", None, {"slide": 0.3, "other_slide": 0.17}),
}
"""Path (None: `middle_gripper`), tip, base, and positions of the gripper's joints."""
BODY = (
    '<inertial><origin xyz="{x}"/><mass value="{m}"/>'
    '<inertia ixx="{i}" ixy="0" ixz="0" iyy="{i}" iyz="0" izz="{i}"/></inertial>'
)
MIMIC = '<mimic joint="slide" multiplier="0.5" offset="0.02"/>'
"""Mimic joint; Pinocchio treats it as free, so postures include its position."""


def gripper_arm(name: str) -> RobotModel:
    """Return one of `GRIPPERS`."""
    path, tip, base, posture = GRIPPERS[name]
    text = middle_gripper() if path is None else example_urdf(path)
    return RobotModel.from_urdf(text, tip, base, (1.1, -2.3, -9.4) if base is None else (0.0, 0.0, -9.80665), posture)


def middle_gripper() -> str:
    """Return a two-joint arm with a mount on its middle link, a sliding finger with a nail, and a mimicking thumb."""
    return "".join(
        [
            '<robot name="middle"><link name="base"/>',
            _joint("joint_1", "revolute", "base", "upper"),
            _link("upper", 2.0, "0.2 0 0"),
            _joint("mounting", "fixed", "upper", "mount", "0.3 0.1 0"),
            _link("mount", 0.4, "0 0.05 0"),
            _joint("slide", "prismatic", "mount", "finger", "0 0.1 0", "1 0.2 0"),
            _link("finger", 0.8, "0.1 0 0"),
            _joint("nailing", "fixed", "finger", "nail", "0.2 0 0"),
            _link("nail", 0.3, "0 0 0.02"),
            _joint("other_slide", "prismatic", "mount", "thumb", "0 -0.1 0", "-1 0 0", MIMIC),
            _link("thumb", 0.7, "0.1 0 0"),
            _joint("joint_2", "revolute", "upper", "lower", "0.5 0 0"),
            _link("lower", 1.5, "0.25 0 0"),
            "</robot>",
        ]
    )


def _link(name: str, mass: float, x: str) -> str:
    return f'<link name="{name}">{BODY.format(x=x, m=mass, i=0.01 * mass)}</link>'


def _joint(
    name: str, kind: str, parent: str, child: str, where: str = "0 0 0", axis: str = "0 1 0", more: str = ""
) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="{where}"/>'
        f'<axis xyz="{axis}"/><limit lower="-2" upper="2" velocity="3" effort="90"/>{more}</joint>'
    )
