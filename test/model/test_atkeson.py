"""Atkeson, An and Hollerbach 1986: the MIT Serial Link Direct Drive Arm, its categories, tables and estimates."""

import numpy as np
import pytest
from known_problems import GRAVITY
from paper_arms import (
    MIT_CAD,
    MIT_COMBINATIONS,
    MIT_ESTIMATE,
    MIT_L2,
    MIT_SINGLES,
    MIT_ZEROS,
    column,
    columns,
    mit_arm,
    mit_motion,
    parameters,
)

SUMS = np.array([parameters(3, **terms) for terms in MIT_COMBINATIONS.values()])


@pytest.fixture(scope="module")
def arm():
    return mit_arm()


@pytest.fixture(scope="module")
def base(arm):
    return arm.base_parameters()


@pytest.fixture(scope="module")
def regressor(arm):
    """(1800, 30) of the paper's three moves."""
    return arm.torque_regressor(*mit_motion()).reshape(-1, 30)


def test_categories(base):
    assert base.rank == 15
    singles, zeros = columns(MIT_SINGLES), columns(MIT_ZEROS)
    assert [i for i, category in enumerate(base.categories) if category == "identifiable"] == sorted(singles)
    assert [i for i, category in enumerate(base.categories) if category == "unidentifiable"] == sorted(zeros)
    assert not base.combinations[:, zeros].any()


def test_row_space(base):
    truth = np.concatenate([np.eye(30)[columns(MIT_SINGLES)], SUMS])
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


def test_excitation_of_the_three_moves(regressor):
    eigenvalues = np.linalg.eigvalsh(regressor.T @ regressor)
    assert eigenvalues[15] == pytest.approx(2934.586, abs=1e-3)
    assert eigenvalues[-1] == pytest.approx(2532784, abs=0.5)
    assert eigenvalues[14] < 1e-6


def test_ridge_on_torques_without_noise(regressor):
    torque = regressor @ MIT_CAD
    estimate = np.linalg.solve(regressor.T @ regressor + 10.0 * np.eye(30), regressor.T @ torque)
    errors = SUMS @ (estimate - MIT_CAD)
    expected = [-1.35e-4, 2.6e-5, -1.64e-3, -1.29e-3, 2.05e-4, 2.28e-3]
    np.testing.assert_allclose(errors, expected, rtol=0.007, atol=0)  # as far as they are printed
    identifiable_zeros = [i for i in columns(MIT_SINGLES) if MIT_CAD[i] == 0]
    assert np.abs(estimate[identifiable_zeros]).max() == pytest.approx(9.4e-4, rel=0.005)
    residual = np.linalg.norm(regressor @ estimate - torque) / np.linalg.norm(torque)
    assert residual == pytest.approx(1.0e-4, rel=0.01)


def test_reduced_set_returns_the_truth(base, regressor):
    estimate = np.linalg.lstsq(base.reduce(regressor), regressor @ MIT_CAD, rcond=None)[0]
    np.testing.assert_allclose(estimate, base.project(MIT_CAD), rtol=0, atol=1e-12)
    sums = np.linalg.lstsq(base.combinations.T, SUMS.T, rcond=None)[0].T
    np.testing.assert_allclose(sums @ estimate, SUMS @ MIT_CAD, rtol=0, atol=1e-12)


def test_the_paper_s_own_motion_shows_the_same(arm, base):
    on_moves = type(base).of_robot(arm, motion=mit_motion())
    assert on_moves.expressions == base.expressions
    assert on_moves.categories == base.categories


def test_appendix_torque_of_joint_3(arm):
    """Appendix I, n3, with the one repair that it needs; θ̇² is v²."""
    q, qd, qdd = np.random.default_rng(3).uniform(-3.0, 3.0, (3, 50, 3))
    (_, s2, s3), (_, c2, c3) = np.sin(q.T), np.cos(q.T)
    (v1, v2, _), (a1, a2, a3) = qd.T, qdd.T
    coefficients = {
        "mcx3": -GRAVITY * s2 * s3 - MIT_L2 * a1 * s3 * c2 - MIT_L2 * v1**2 * c3,
        "mcy3": MIT_L2 * v1**2 * s3 - MIT_L2 * a1 * c2 * c3 - GRAVITY * s2 * c3,
        "Ixx3": v1 * v2 * s2 + (v1**2 - v2**2) * s3 * c3 - v1**2 * s3 * c3 * c2**2 - 2 * v1 * v2 * s2 * c3**2,
        "Ixy3": v2**2
        - v1**2
        + v1**2 * c2**2
        + 4 * v1 * v2 * s2 * s3 * c3
        + 2 * (v1**2 - v2**2) * c3**2
        - 2 * v1**2 * c2**2 * c3**2,
        "Ixz3": a2 * s3 - v1**2 * s2 * s3 * c2 + a1 * s2 * c3 + 2 * v1 * v2 * c2 * c3,
        "Iyz3": a2 * c3 - a1 * s2 * s3 - 2 * v1 * v2 * s3 * c2 - v1**2 * s2 * c2 * c3,
        "Izz3": a3 + v1 * v2 * s2 - a1 * c2,
    }
    own = arm.torque_regressor(q, qd, qdd)[:, 2]
    for name, expected in coefficients.items():
        np.testing.assert_allclose(own[:, column(name)], expected, rtol=0, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(own[:, column("Iyy3")], -coefficients["Ixx3"], rtol=0, atol=1e-12)
    rest = [i for i in range(30) if i not in {*map(column, coefficients), column("Iyy3")}]
    assert np.abs(own[:, rest]).max() < 1e-12
