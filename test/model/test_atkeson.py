"""Atkeson, An and Hollerbach 1986: categories, tables and torques of the MIT Serial Link Direct Drive Arm; loads."""

import numpy as np
import pytest
from known_problems import GRAVITY
from paper_arms import (
    MIT_CAD,
    MIT_COMBINATIONS,
    MIT_ESTIMATE,
    MIT_L2,
    MIT_SINGLES,
    MIT_SUMS,
    MIT_ZEROS,
    columns,
    mit_arm,
    mit_motion,
    parameters,
)

from dynid_ros.model import RobotModel


@pytest.fixture(scope="module")
def arm():
    return mit_arm()


@pytest.fixture(scope="module")
def base(arm):
    return arm.base_parameters()


def test_categories(base):
    assert base.rank == 15
    singles, zeros = columns(MIT_SINGLES), columns(MIT_ZEROS)
    assert [i for i, category in enumerate(base.categories) if category == "identifiable"] == sorted(singles)
    assert [i for i, category in enumerate(base.categories) if category == "unidentifiable"] == sorted(zeros)
    assert not base.combinations[:, zeros].any()


def test_row_space(base):
    truth = np.concatenate([np.eye(30)[columns(MIT_SINGLES)], MIT_SUMS])
    projectors = [rows.T @ np.linalg.pinv(rows.T) for rows in (base.combinations, truth)]
    assert np.abs(projectors[0] - projectors[1]).max() < 1e-10


def test_expressions_keep_the_parameters_that_the_paper_keeps(base):
    # Section 4.2.1: without m3, m3c_z3, Ixx3 and Ixx2 there remain Iyz2, Iyy3, Izz2, Izz1, Iyy2 and m2c_y2.
    assert set(base.columns) == set(columns(f"{MIT_SINGLES} Iyz2 Iyy3 Izz2 Izz1 Iyy2 mcy2"))
    assert base.expressions == (
        "Izz1 + Ixx2 + Ixx3 + 0.2025 m3",
        "mcx2",
        "mcy2 - mcz3",
        "Ixy2",
        "Ixz2",
        "Iyy2 - Ixx2 - Ixx3",
        "Iyz2 + 0.45 mcz3",
        "Izz2 + Ixx3",
        "mcx3",
        "mcy3",
        "Ixy3",
        "Ixz3",
        "Iyy3 - Ixx3",
        "Iyz3",
        "Izz3",
    )


def test_table_5_follows_from_tables_3_and_4(base):
    for values, expected in (
        (MIT_CAD, [-1.35654, -0.2735, 0.8632, 12.81627, 0.4147, -3.0813]),
        (MIT_ESTIMATE, [-1.05892, -0.3691, 0.7082, 15.40291, 0.4709, -1.6863]),
    ):
        by_name = dict(zip((base.names[i] for i in base.columns), base.project(values), strict=True))
        found = [by_name[name] for name in ("Iyz2", "Iyy3", "Izz2", "Izz1", "Iyy2", "mcy2")]
        np.testing.assert_allclose(found * np.array([1, -1, 1, 1, -1, -1]), expected, rtol=0, atol=1e-5)


def test_the_paper_s_own_motion_shows_the_same(arm, base):
    on_moves = type(base).of_robot(arm, motion=mit_motion())
    assert on_moves.expressions == base.expressions
    assert on_moves.categories == base.categories


def test_appendix_1(arm):
    """All 45 coefficients of the closed-form torques, the print repaired; `v` and `a` are speeds and accelerations."""
    q, qd, qdd = np.random.default_rng(3).uniform(-3.0, 3.0, (3, 50, 3))
    (_, s2, s3), (_, c2, c3) = np.sin(q.T), np.cos(q.T)
    (v1, v2, v3), (a1, a2, a3) = qd.T, qdd.T
    zero, g, l2 = np.zeros(50), GRAVITY, MIT_L2
    coefficients = {  # in n1, n2 and n3
        "SP1": (a2 * c2 - v2**2 * s2, a1 * c2, zero),
        "SP2": (
            a1 * c2**2
            - a1
            - v2 * v3 * s2
            - 2 * v1 * v2 * s2 * c2
            - 2 * v1 * v3 * s3 * c3
            + a2 * s2 * s3 * c3
            + v2**2 * s3 * c2 * c3
            + 2 * v1 * v3 * s3 * c2**2 * c3
            + a1 * c3**2
            + 2 * v2 * v3 * s2 * c3**2
            + 2 * v1 * v2 * s2 * c2 * c3**2
            - a1 * c2**2 * c3**2,
            v1**2 * s2 * c2
            - v1 * v3 * s2
            + 2 * v2 * v3 * s3 * c3
            + a1 * s2 * s3 * c3
            - a2 * c3**2
            + 2 * v1 * v3 * s2 * c3**2
            - v1**2 * s2 * c2 * c3**2,
            v1 * v2 * s2 + (v1**2 - v2**2) * s3 * c3 - v1**2 * s3 * c3 * c2**2 - 2 * v1 * v2 * s2 * c3**2,
        ),
        "SP3": (zero, a2, zero),
        "SP4": (a1, zero, zero),
        "SP5": (2 * v1 * v2 * s2 * c2 - a1 * c2**2, -(v1**2) * s2 * c2, zero),
        "SP6": (zero, g * s2, zero),
        "mcx2": (zero, g * c2, zero),
        "Ixy2": (2 * a1 * s2 * c2 - 2 * v1 * v2 + 4 * v1 * v2 * c2**2, v1**2 - 2 * v1**2 * c2**2, zero),
        "Ixz2": (a2 * s2 + v2**2 * c2, a1 * s2, zero),
        "mcx3": (
            l2 * (2 * a1 * s3 + 2 * v2 * v3 * s2 * s3 - a3 * s3 * c2 + 2 * v1 * v3 * c3 - a2 * s2 * c3)
            - l2 * (v2**2 + v3**2) * c2 * c3,
            g * c2 * c3 - l2 * a1 * s2 * c3,
            -g * s2 * s3 - l2 * a1 * s3 * c2 - l2 * v1**2 * c3,
        ),
        "mcy3": (
            l2 * (a2 * s2 * s3 - 2 * v1 * v3 * s3 + (v2**2 + v3**2) * s3 * c2)
            + l2 * (2 * a1 * c3 + 2 * v2 * v3 * s2 * c3 - a3 * c2 * c3),
            l2 * a1 * s2 * s3 - g * s3 * c2,
            l2 * v1**2 * s3 - l2 * a1 * c2 * c3 - g * s2 * c3,
        ),
        "Ixy3": (
            2 * v1 * v3
            - a2 * s2
            - v2**2 * c2
            - 2 * v1 * v3 * c2**2
            - 2 * a1 * s3 * c3
            - 4 * v2 * v3 * s2 * s3 * c3
            - 4 * v1 * v2 * s2 * s3 * c2 * c3
            + 2 * a1 * s3 * c2**2 * c3
            - 4 * v1 * v3 * c3**2
            + 2 * a2 * s2 * c3**2
            + 2 * v2**2 * c2 * c3**2
            + 4 * v1 * v3 * c2**2 * c3**2,
            2 * a2 * s3 * c3
            - 2 * v2 * v3
            - a1 * s2
            - 4 * v1 * v3 * s2 * s3 * c3
            + 2 * v1**2 * s2 * s3 * c2 * c3
            + 4 * v2 * v3 * c3**2
            + 2 * a1 * s2 * c3**2,
            v2**2
            - v1**2
            + v1**2 * c2**2
            + 4 * v1 * v2 * s2 * s3 * c3
            + 2 * (v1**2 - v2**2) * c3**2
            - 2 * v1**2 * c2**2 * c3**2,
        ),
        "Ixz3": (
            (v2**2 - v3**2) * s2 * s3
            - a2 * s3 * c2
            + 2 * v1 * v3 * s2 * s3 * c2
            + 2 * v1 * v2 * c3
            + a3 * s2 * c3
            - 2 * a1 * s2 * c2 * c3
            - 4 * v1 * v2 * c2**2 * c3,
            a3 * s3 - a1 * s3 * c2 + (v3**2 - v1**2) * c3 - 2 * v1 * v3 * c2 * c3 + 2 * v1**2 * c2**2 * c3,
            a2 * s3 - v1**2 * s2 * s3 * c2 + a1 * s2 * c3 + 2 * v1 * v2 * c2 * c3,
        ),
        "Iyz3": (
            2 * a1 * s2 * s3 * c2
            - 2 * v1 * v2 * s3
            - a3 * s2 * s3
            + 4 * v1 * v2 * s3 * c2**2
            + (v2**2 - v3**2) * s2 * c3
            - a2 * c2 * c3
            + 2 * v1 * v3 * s2 * c2 * c3,
            (v1**2 - v3**2) * s3 + 2 * v1 * v3 * s3 * c2 - 2 * v1**2 * s3 * c2**2 + a3 * c3 - a1 * c2 * c3,
            a2 * c3 - a1 * s2 * s3 - 2 * v1 * v2 * s3 * c2 - v1**2 * s2 * c2 * c3,
        ),
        "Izz3": (
            v2 * v3 * s2 - a3 * c2 - 2 * v1 * v2 * s2 * c2 + a1 * c2**2,
            v1**2 * s2 * c2 - v1 * v3 * s2,
            a3 + v1 * v2 * s2 - a1 * c2,
        ),
    }
    rows = [parameters(3, **MIT_COMBINATIONS.get(name, {name: 1.0})) for name in coefficients]
    expected = np.einsum("cjn,cp->njp", np.array(list(coefficients.values())), rows)
    np.testing.assert_allclose(arm.torque_regressor(q, qd, qdd), expected, rtol=0, atol=2e-12)


def test_load_shows_mass_and_moment_at_rest_and_all_in_motion():
    """Section 2.1, by an arm whose six joints move its last link every way: their torques are the load's wrench."""
    text = '<robot name="load"><link name="base"/>'
    for i in range(6):
        text += (
            f'<link name="{i}"/><joint name="{i}" type="{"prismatic" if i < 3 else "revolute"}">'
            f'<parent link="{i - 1 if i else "base"}"/><child link="{i}"/>'
            f'<axis xyz="{["1 0 0", "0 1 0", "0 0 1"][i % 3]}"/>'
            '<limit lower="-9" upper="9" effort="9" velocity="9"/></joint>'
        )
    free = RobotModel.from_urdf(text + "</robot>")
    q, qd, qdd = np.random.default_rng(4).uniform(-1.0, 1.0, (3, 2, 6))
    for samples, at_rest, in_motion in ((1, 3, 6), (2, 4, 10)):
        still = free.gravity_regressor(q[:samples])[..., -10:].reshape(-1, 10)
        moving = free.torque_regressor(q[:samples], qd[:samples], qdd[:samples])[..., -10:].reshape(-1, 10)
        assert np.linalg.matrix_rank(still) == at_rest
        assert np.linalg.matrix_rank(moving) == in_motion
