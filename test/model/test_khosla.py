"""Khosla and Kanade 1987: the cylindrical robot and the CMU Direct-Drive Arm II, by their error model."""

import numpy as np
import pytest
from known_problems import GRAVITY
from paper_arms import cmu_arm, cmu_arm_with_wrist, column, columns, cosine_motion, cylindrical_robot, parameters, puma

from dynid_ros.model import BaseParameters
from dynid_ros.model.base_parameters import parameter_names

PAPER_CYLINDRICAL = "mcz1 m1 Ixx1 Iyy1 Izz1 mcz2 m2 Ixx2 Iyy2 Izz2 mcz3 m3 Ixx3 Iyy3 Izz3"
CYLINDRICAL_TRUTH = parameters(3, m3=2.5, mcz3=1.25, m2=5.0, Izz1=0.9, Iyy2=0.8, Iyy3=0.8)
CYLINDRICAL_NOMINAL = parameters(3, m3=0.9, mcz3=0.27, m2=2.1, Izz1=0.7, Iyy2=0.7, Iyy3=0.6)

CMU_TRUTH = parameters(  # Table 3; Izz3 - Ixx3 is 0.1
    3,
    **{"Ixz3": 0.1, "Iyz3": 0.15, "Iyy3": 0.2, "Ixy3": 0.15, "Izz3": 0.3, "Ixx3": 0.2, "mcx3": 0.49, "mcz3": 0.7},
    **{"Iyy2": 0.5, "mcx2": 1.1, "mcz2": 0.55, "mcy3": 0.525, "m2": 5.5, "m3": 3.5},
    **{"Izz1": 1.3, "mcx1": 2.7, "m1": 13.5},
)
CMU_NOMINAL = parameters(
    3,
    **{"Iyy2": 0.3, "Ixx3": 0.05, "Izz3": 0.1, "mcx2": 0.4, "mcy3": 0.2, "m2": 4.0, "m3": 2.0},
    **{"Izz1": 1.0, "m1": 10.0},
)


def random_motion(n: int, samples: int = 60) -> np.ndarray:
    return np.random.default_rng(11).uniform(-3.0, 3.0, (3, samples, n))


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


@pytest.mark.parametrize("stroke", [0.2, 0.5, 1.3])
def test_cylindrical_robot_table_2(stroke):
    robot, motion = cylindrical_robot(), cosine_motion([np.pi / 2, stroke, stroke])
    regressor = robot.torque_regressor(*motion)
    estimate = CYLINDRICAL_NOMINAL.copy()
    for joint, listed in ((2, "m3 mcz3"), (1, "m2"), (0, "Izz1")):
        error = robot.inverse_dynamics(*motion, CYLINDRICAL_TRUTH)[:, joint] - regressor[:, joint] @ estimate
        estimate[columns(listed)] += np.linalg.lstsq(regressor[:, joint, columns(listed)], error, rcond=None)[0]
    found = [estimate[column(name)] for name in ("mcz3", "m3", "m2")]
    np.testing.assert_allclose(found, [1.25, 2.5, 5.0], rtol=0, atol=1e-12)
    assert estimate[columns("Izz1 Iyy2 Iyy3")].sum() == pytest.approx(2.5, abs=1e-12)


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


def test_cmu_arm_table_3():
    arm, motion = cmu_arm(), cosine_motion([np.pi / 2] * 3)
    regressor, torque = arm.torque_regressor(*motion), arm.inverse_dynamics(*motion, CMU_TRUTH)
    link_3 = rows_of(arm, 2, motion)
    own = link_3.reduce(regressor[:, 2])
    singular = np.linalg.svd(own, compute_uv=False)
    assert singular[0] / singular[-1] == pytest.approx(1.5e4, rel=0.05)
    correction = np.linalg.lstsq(own, torque[:, 2] - regressor[:, 2] @ CMU_NOMINAL, rcond=None)[0]
    found = dict(zip(link_3.expressions, link_3.project(CMU_NOMINAL) + correction, strict=True))
    expected = {"Ixz3": 0.1, "Iyz3": 0.15, "Iyy3": 0.2, "Ixy3": 0.15, "Izz3 - Ixx3": 0.1, "mcx3": 0.49, "mcz3": 0.7}
    assert found == pytest.approx(expected, abs=1e-9)


def test_cmu_arm_combinations_predict_another_motion():
    arm, motion = cmu_arm(), cosine_motion([np.pi / 2] * 3)
    base = BaseParameters.of_robot(arm, motion=motion)
    assert base.expressions == arm.base_parameters().expressions
    rows = base.reduce(arm.torque_regressor(*motion)).reshape(-1, base.rank)
    scale = np.linalg.norm(rows, axis=0)
    estimate = np.linalg.lstsq(rows / scale, arm.inverse_dynamics(*motion, CMU_TRUTH).ravel(), rcond=None)[0] / scale
    np.testing.assert_allclose(estimate, base.project(CMU_TRUTH), rtol=0, atol=1e-11)
    other = random_motion(3)
    predicted = base.reduce(arm.torque_regressor(*other)) @ estimate
    expected = arm.inverse_dynamics(*other, CMU_TRUTH)
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=6e-13)


def test_arms_of_six_joints():
    base = cmu_arm_with_wrist().base_parameters()
    assert base.rank == 32
    assert sum(category != "unidentifiable" for category in base.categories) == 47
    assert puma().base_parameters().rank == 36
