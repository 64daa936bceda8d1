"""Khosla and Kanade 1987: the cylindrical robot and the CMU Direct-Drive Arm II, their torques and their ranks."""

from paper_arms import (
    cmu_arm,
    cmu_arm_with_wrist,
    columns,
    cylindrical_robot,
    puma,
    random_motion,
)

from dynid_ros.model import BaseParameters
from dynid_ros.model.base_parameters import parameter_names

PAPER_CYLINDRICAL = "mcz1 m1 Ixx1 Iyy1 Izz1 mcz2 m2 Ixx2 Iyy2 Izz2 mcz3 m3 Ixx3 Iyy3 Izz3"


def names_of(base: BaseParameters, category: str) -> set[str]:
    return {name for name, own in zip(base.names, base.categories, strict=True) if own == category}


def rows_of(robot, joint: int, motion, listed: str | None = None) -> BaseParameters:
    """What the torque of one joint alone tells, of the parameters listed."""
    regressor, names = robot.torque_regressor(*motion)[:, joint], parameter_names(robot)
    if listed is None:
        return BaseParameters(regressor, names)
    return BaseParameters(regressor[:, columns(listed)], listed.split())


def test_cylindrical_robot_ranks():
    robot = cylindrical_robot()
    base = robot.base_parameters()
    assert base.rank == 5
    assert base.expressions == ("Izz1 + Iyy2 + Iyy3", "m2", "m3", "mcx3", "mcz3")
    regressor = robot.torque_regressor(*random_motion(3))[..., columns(PAPER_CYLINDRICAL)]
    assert BaseParameters(regressor, PAPER_CYLINDRICAL.split()).rank == 4


def test_cylindrical_robot_shows_the_mass_of_both_slides():
    """Joint 2 carries m2 + m3 together; joint 3 tells m3 apart, with a moment that the paper assumes to be zero."""
    motion = random_motion(3)
    assert rows_of(cylindrical_robot(), 1, motion).expressions == ("m2 + m3",)
    assert rows_of(cylindrical_robot(), 2, motion).expressions == ("m3", "mcx3", "mcz3")


def test_cmu_arm_categories():
    base = cmu_arm().base_parameters()
    assert base.rank == 11
    assert sum(category != "unidentifiable" for category in base.categories) == 17
    assert names_of(base, "identifiable") == {"mcx3", "mcz3", "Ixy3", "Ixz3", "Iyy3", "Iyz3"}
    # The 17 of the paper are the 17 columns, which it takes for parameters.
    paper = "Ixz3 Iyz3 Iyy3 Ixy3 Izz3 Ixx3 mcz3 mcx3 Iyy2 mcx2 mcz2 mcy3 m2 m3 Izz1 mcx1 m1"
    assert names_of(base, "identifiable") | names_of(base, "combined") == set(paper.split())


def test_cmu_arm_own_torques():
    arm, motion = cmu_arm(), random_motion(3)
    assert rows_of(arm, 2, motion).rank == 7
    assert rows_of(arm, 1, motion, "Iyy2 Izz3 Ixx3 mcx2 mcz2 mcy3 m2 m3").rank == 4
    assert rows_of(arm, 0, motion, "Izz1 mcx1 m1").rank == 1


def test_arms_of_six_joints():
    base = cmu_arm_with_wrist().base_parameters()
    assert base.rank == 32
    assert sum(category != "unidentifiable" for category in base.categories) == 47
    assert puma().base_parameters().rank == 36
