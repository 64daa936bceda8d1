"""Ranks of the cylindrical robot and the CMU Direct-Drive Arm II, as in Khosla and Kanade (1987)."""

from paper_arms import cmu_arm, cmu_arm_with_wrist, columns, cylindrical_robot, puma, random_motion

from dynid_ros.model import BaseParameters
from dynid_ros.model.base_parameters import parameter_names

PAPER_CYLINDRICAL = "mcz1 m1 Ixx1 Iyy1 Izz1 mcz2 m2 Ixx2 Iyy2 Izz2 mcz3 m3 Ixx3 Iyy3 Izz3"


def names_of(base: BaseParameters, category: str) -> set[str]:
    return {name for name, entry in zip(base.names, base.categories, strict=True) if entry == category}


def joint_base_parameters(robot, joint: int, motion, listed: str | None = None) -> BaseParameters:
    """Return the base parameters, of all or the listed parameters, in the torque of one joint."""
    regressor = robot.torque_regressor(*motion)[:, joint]
    names = parameter_names(robot)
    if listed is None:
        return BaseParameters(regressor, names)
    return BaseParameters(regressor[:, columns(listed)], listed.split())


def test_ranks_of_the_cylindrical_robot():
    robot = cylindrical_robot()
    base = robot.base_parameters()
    assert base.rank == 5
    assert base.expressions == ("Izz1 + Iyy2 + Iyy3", "m2", "m3", "mcx3", "mcz3")
    regressor = robot.torque_regressor(*random_motion(3))[..., columns(PAPER_CYLINDRICAL)]
    assert BaseParameters(regressor, PAPER_CYLINDRICAL.split()).rank == 4


def test_joints_of_the_cylindrical_robot_determine_both_masses():
    """Joint 2 determines m2 + m3; joint 3 determines m3 and a moment that the paper assumes to be zero."""
    motion = random_motion(3)
    assert joint_base_parameters(cylindrical_robot(), 1, motion).expressions == ("m2 + m3",)
    assert joint_base_parameters(cylindrical_robot(), 2, motion).expressions == ("m3", "mcx3", "mcz3")


def test_categories_of_the_cmu_arm():
    base = cmu_arm().base_parameters()
    assert base.rank == 11
    assert sum(category != "unidentifiable" for category in base.categories) == 17
    assert names_of(base, "identifiable") == {"mcx3", "mcz3", "Ixy3", "Ixz3", "Iyy3", "Iyz3"}
    # The 17 parameters of the paper are the 17 columns with an effect.
    paper = "Ixz3 Iyz3 Iyy3 Ixy3 Izz3 Ixx3 mcz3 mcx3 Iyy2 mcx2 mcz2 mcy3 m2 m3 Izz1 mcx1 m1"
    assert names_of(base, "identifiable") | names_of(base, "combined") == set(paper.split())


def test_ranks_of_single_joints_of_the_cmu_arm():
    arm = cmu_arm()
    motion = random_motion(3)
    assert joint_base_parameters(arm, 2, motion).rank == 7
    assert joint_base_parameters(arm, 1, motion, "Iyy2 Izz3 Ixx3 mcx2 mcz2 mcy3 m2 m3").rank == 4
    assert joint_base_parameters(arm, 0, motion, "Izz1 mcx1 m1").rank == 1


def test_ranks_of_arms_with_six_joints():
    base = cmu_arm_with_wrist().base_parameters()
    assert base.rank == 32
    assert sum(category != "unidentifiable" for category in base.categories) == 47
    assert puma().base_parameters().rank == 36
