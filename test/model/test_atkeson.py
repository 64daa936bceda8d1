"""Base parameters, tables and torques of the MIT Serial Link Direct Drive Arm (Atkeson, An and Hollerbach 1986)."""

import numpy as np
import pytest
from paper_arms import MIT_CAD, MIT_ESTIMATE, MIT_SINGLES, MIT_ZEROS, columns, mit_arm, mit_motion


@pytest.fixture(scope="module")
def arm():
    return mit_arm()


@pytest.fixture(scope="module")
def base(arm):
    return arm.base_parameters()


def test_categories_of_the_mit_arm_match_the_paper(base):
    assert base.rank == 15
    singles = columns(MIT_SINGLES)
    zeros = columns(MIT_ZEROS)
    assert [i for i, category in enumerate(base.categories) if category == "identifiable"] == sorted(singles)
    assert [i for i, category in enumerate(base.categories) if category == "unidentifiable"] == sorted(zeros)
    assert not base.combinations[:, zeros].any()


def test_expressions_contain_the_base_parameters_of_the_paper(base):
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
        values_in_order = [by_name[name] for name in ("Iyz2", "Iyy3", "Izz2", "Izz1", "Iyy2", "mcy2")]
        np.testing.assert_allclose(values_in_order * np.array([1, -1, 1, 1, -1, -1]), expected, rtol=0, atol=1e-5)


def test_motion_of_the_paper_yields_the_same_base_parameters(arm, base):
    on_moves = type(base).of_robot(arm, motion=mit_motion())
    assert on_moves.expressions == base.expressions
    assert on_moves.categories == base.categories
