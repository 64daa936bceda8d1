"""Khosla and Kanade 1987: the cylindrical robot and the CMU Direct-Drive Arm II, their torques and their ranks."""

import numpy as np
from known_problems import GRAVITY
from paper_arms import (
    cmu_arm,
    cmu_arm_with_wrist,
    column,
    columns,
    cosine_motion,
    cylindrical_robot,
    puma,
    random_motion,
)

from dynid_ros.model import BaseParameters
from dynid_ros.model.inertia import from_center_of_mass, inertia_matrix
from dynid_ros.model.parameter_words import parameter_names

PAPER_CYLINDRICAL = "mcz1 m1 Ixx1 Iyy1 Izz1 mcz2 m2 Ixx2 Iyy2 Izz2 mcz3 m3 Ixx3 Iyy3 Izz3"


def names_of(base: BaseParameters, category: str) -> set[str]:
    return {name for name, own in zip(base.names, base.categories, strict=True) if own == category}


def rows_of(robot, joint: int, motion, listed: str | None = None) -> BaseParameters:
    """What the torque of one joint alone tells, of the parameters listed."""
    regressor, names = robot.torque_regressor(*motion)[:, joint], parameter_names(robot)
    if listed is None:
        return BaseParameters(regressor, names)
    return BaseParameters(regressor[:, columns(listed)], listed.split())


def test_inertia_about_the_link_frame():
    """Eq. 10, repaired: I' = I + m [(sᵀs) E − s sᵀ]."""
    inertia, s, m = np.diag([0.1, 0.2, 0.25]), np.array([0.3, -0.2, 0.5]), 2.5
    expected = inertia + m * (s @ s * np.eye(3) - np.outer(s, s))
    found = from_center_of_mass(m, s, inertia)
    np.testing.assert_allclose(inertia_matrix(found), expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(found[:4], [m, *m * s])


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


def test_cylindrical_robot_torques():
    q, qd, qdd = random_motion(3)
    regressor = cylindrical_robot().torque_regressor(q, qd, qdd)
    (_, _, d), (v1, _, dd), (a1, a2, ddd) = q.T, qd.T, qdd.T
    for joint, name, expected in (
        (2, "m3", ddd - d * v1**2),
        (2, "mcz3", -(v1**2)),
        (1, "m2", a2 + GRAVITY),
        (1, "m3", a2 + GRAVITY),
        (0, "mcz3", 2 * (d * a1 + v1 * dd)),
        (0, "m3", d * (d * a1 + 2 * v1 * dd)),
        (0, "Izz1", a1),
        (0, "Iyy2", a1),
        (0, "Iyy3", a1),
    ):
        np.testing.assert_allclose(regressor[:, joint, column(name)], expected, rtol=0, atol=1e-12)


def test_cylindrical_robot_with_locked_joints_loses_a_moment():
    robot = cylindrical_robot()
    q, qd, qdd = cosine_motion([np.pi / 2, 0.5, 0.5])
    locked = [array * np.array([0.0, 0.0, 1.0]) for array in (q, qd, qdd)]
    link_3 = rows_of(robot, 2, locked)
    assert link_3.rank == 1
    assert link_3.expressions == ("m3",)
    assert link_3.categories[column("mcz3")] == "unidentifiable"
    assert BaseParameters.of_robot(robot, motion=locked).categories[column("mcz3")] == "unidentifiable"
    turning = [q, qd * [1, 0, 1], qdd * [1, 0, 1]]
    assert rows_of(robot, 2, turning, "m3 mcz3").rank == 2


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


def test_cmu_arm_equations():
    """Eqs. 24 to 26, repaired: 2 C3² for 2 C3, a1² for m1, and the terms that eq. 25 drops."""
    q, qd, qdd = random_motion(3)
    (_, s2, s3), (_, c2, c3) = np.sin(q.T), np.cos(q.T)
    (v1, v2, v3), (w1, w2, w3) = qd.T, qdd.T
    a1, a2, d3 = 0.38, 0.32, 0.25
    turn, swing = (v1 + v2) ** 2, a1 * c2 * v1**2 - a1 * s2 * w1 + a2 * (v1 + v2) ** 2
    regressor = cmu_arm().torque_regressor(q, qd, qdd)
    for joint, name, expected in (
        (2, "Ixz3", (1 - 2 * c3**2) * turn),
        (2, "Iyz3", -c3 * (w1 + w2)),
        (2, "Iyy3", w3),
        (2, "Izz3", c3 * s3 * turn),
        (2, "Ixx3", -c3 * s3 * turn),
        (2, "Ixy3", -s3 * (w1 + w2)),
        (2, "mcz3", -d3 * c3 * (w1 + w2) - GRAVITY * s3 + c3 * swing),
        (2, "mcx3", -d3 * s3 * (w1 + w2) + GRAVITY * c3 + s3 * swing),
        (1, "Iyy2", w1 + w2),
        (1, "Izz3", c3**2 * (w1 + w2) - 2 * c3 * s3 * v3 * (v1 + v2)),
        (1, "Ixx3", s3**2 * (w1 + w2) + 2 * c3 * s3 * v3 * (v1 + v2)),
        (1, "mcx2", 2 * a2 * (w1 + w2) + a1 * c2 * w1 + a1 * s2 * v1**2),
        (1, "mcz2", a1 * s2 * w1 - a1 * c2 * v1**2),
        (1, "mcy3", a1 * c2 * v1**2 - a1 * s2 * w1 - 2 * d3 * (w1 + w2)),
        (1, "m2", a1 * a2 * (c2 * w1 + s2 * v1**2) + a2**2 * (w1 + w2)),
        (1, "m3", a1 * d3 * (s2 * w1 - c2 * v1**2) + a1 * a2 * (c2 * w1 + s2 * v1**2) + (a2**2 + d3**2) * (w1 + w2)),
        (0, "Izz1", w1),
        (0, "mcx1", 2 * a1 * w1),
        (0, "m1", a1**2 * w1),
    ):
        np.testing.assert_allclose(
            regressor[:, joint, column(name)], expected, rtol=0, atol=1e-12, err_msg=f"{name}, joint {joint + 1}"
        )


def test_arms_of_six_joints():
    base = cmu_arm_with_wrist().base_parameters()
    assert base.rank == 32
    assert sum(category != "unidentifiable" for category in base.categories) == 47
    assert puma().base_parameters().rank == 36
