"""Sequential estimation from tip to base, against Khosla and Kanade (1987) and by Monte Carlo simulation."""

import numpy as np
import pytest
from paper_arms import (
    CMU_TRUTH,
    CYLINDRICAL_NOMINAL,
    CYLINDRICAL_TRUTH,
    cmu_arm,
    column,
    columns,
    cosine_motion,
    cylindrical_robot,
    random_motion,
)

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import fit_with_prior
from dynid_ros.identification.links.link_estimators import SequentialFit, sequential
from dynid_ros.model import BaseParameters
from dynid_ros.model.base_parameters import parameter_names


def equations(robot, motions, truth) -> list[np.ndarray]:
    """Return the rows [Y_j τ_j] of each joint j, from one motion per joint."""
    return [
        np.column_stack([robot.torque_regressor(*motion)[:, j], robot.inverse_dynamics(*motion, truth)[:, j]])
        for j, motion in enumerate(motions)
    ]


def lock_joints(motion, joints) -> list[np.ndarray]:
    """Return the motion with the joints whose entry of `joints` is 0 locked at zero."""
    return [array * np.array(joints) for array in motion]


def identify(robot, motions, truth) -> SequentialFit:
    factors = [np.linalg.qr(rows, mode="r") for rows in equations(robot, motions, truth)]
    return sequential(factors, parameter_names(robot), [25] * robot.n_joints)


def identify_last_joint(robot, motion, truth) -> SequentialFit:
    """Return the estimate from the torque of the last joint only."""
    rows = equations(robot, [motion] * robot.n_joints, truth)
    return sequential([*(joint_rows[:0] for joint_rows in rows[:-1]), rows[-1]], parameter_names(robot), [0, 0, 25])


@pytest.mark.parametrize("stroke", [0.2, 0.5, 1.3])
def test_identifies_table_2_of_the_cylindrical_robot(stroke):
    motion = cosine_motion([np.pi / 2, stroke, stroke])
    # In the paper's error model, the errors of the nominal parameters are fitted.
    fit = identify(cylindrical_robot(), [motion] * 3, CYLINDRICAL_TRUTH - CYLINDRICAL_NOMINAL)
    inertias = np.isin(np.arange(30), columns("Izz1 Iyy2 Iyy3"))
    correction, _ = fit.combine([*np.eye(30)[columns("mcz3 m3 m2")], inertias])
    nominal = [*CYLINDRICAL_NOMINAL[columns("mcz3 m3 m2")], CYLINDRICAL_NOMINAL[inertias].sum()]
    np.testing.assert_allclose(correction + nominal, [1.25, 2.5, 5.0, 2.5], rtol=0, atol=1e-12)
    assert fit.ranks == (1, 1, 3)
    assert fit.rank == 5
    # The correction of the sum is distributed equally.
    np.testing.assert_allclose(fit.solution[columns("Izz1 Iyy2 Iyy3")], [0.5 / 3] * 3, rtol=0, atol=1e-12)
    assert fit.reasons["Iyy2"] == "only in combination: Izz1 + Iyy2 + Iyy3"
    assert np.isnan(fit.values[column("Iyy2")])


def test_locked_proximal_joints_hide_a_moment():
    """Locking joints 1 and 2 leaves m3 s3z without effect on any torque, a weakness of the published procedure."""
    robot = cylindrical_robot()
    motion = cosine_motion([np.pi / 2, 0.5, 0.5])
    fit = identify(robot, [lock_joints(motion, [0, 0, 1])] * 3, CYLINDRICAL_TRUTH)
    assert fit.ranks[2] == 1
    assert fit.values[column("m3")] == pytest.approx(2.5, abs=1e-12)
    assert np.isnan(fit.values[column("mcz3")])
    assert np.isnan(fit.standard_errors[column("mcz3")])
    assert fit.reasons["mcz3"] == "no effect on any torque of these data"


def test_proximal_joint_determines_a_hidden_moment():
    """Each joint has its own experiment with locked proximal joints; all joints move in the experiment of joint 1."""
    robot = cylindrical_robot()
    motion = cosine_motion([np.pi / 2, 0.5, 0.5])
    motions = [motion, lock_joints(motion, [0, 1, 1]), lock_joints(motion, [0, 0, 1])]
    fit = identify(robot, motions, CYLINDRICAL_TRUTH)
    assert fit.ranks == (2, 1, 1)
    np.testing.assert_allclose(fit.values[columns("mcz3 m3 m2")], [1.25, 2.5, 5.0], rtol=0, atol=1e-12)


def test_motion_of_joint_1_determines_the_moment():
    robot = cylindrical_robot()
    motion = cosine_motion([np.pi / 2, 0.5, 0.5])
    fit = identify(robot, [lock_joints(motion, [1, 0, 1])] * 3, CYLINDRICAL_TRUTH)
    np.testing.assert_allclose(fit.values[columns("mcz3 m3")], [1.25, 2.5], rtol=0, atol=1e-12)


def test_ranks_of_the_cmu_arm():
    arm = cmu_arm()
    motion = cosine_motion([np.pi / 2] * 3)
    fit = identify(arm, [motion] * 3, CMU_TRUTH)
    # Joint 2 determines four combinations, of which joint 3 has already determined Izz3 - Ixx3.
    assert fit.ranks == (1, 3, 7)
    assert fit.rank == 11
    reasons = identify_last_joint(arm, motion, CMU_TRUTH).reasons
    determined = {name for name in parameter_names(arm)[20:] if name not in reasons}
    assert determined == {"mcx3", "mcz3", "Ixy3", "Ixz3", "Iyy3", "Iyz3"}
    combined = {name for name, why in reasons.items() if why.startswith("only in combination")}
    assert combined == {"Ixx3", "Izz3"}
    assert np.count_nonzero(np.abs(fit.determined).max(axis=0) > 1e-6) == 17


def test_identifies_table_3_of_the_cmu_arm():
    arm = cmu_arm()
    motion = cosine_motion([np.pi / 2] * 3)
    fit = identify(arm, [motion] * 3, CMU_TRUTH)
    last_rows = arm.torque_regressor(*motion)[:, 2]
    seven = [i for i in arm.base_parameters().columns if np.linalg.norm(last_rows[:, i]) > 1e-9]
    singular = fit_with_prior(last_rows[:, seven], np.ones(25)).singular_values
    assert singular[0] / singular[-1] == pytest.approx(1.5e4, rel=0.05)
    values, _ = fit.combine(
        [*np.eye(30)[columns("Ixz3 Iyz3 Iyy3 Ixy3 mcx3 mcz3")], np.eye(30)[column("Izz3")] - np.eye(30)[column("Ixx3")]]
    )
    np.testing.assert_allclose(values, [0.1, 0.15, 0.2, 0.15, 0.49, 0.7, 0.1], rtol=0, atol=1e-9)


def test_combinations_of_the_cmu_arm_predict_another_motion():
    arm = cmu_arm()
    motion = cosine_motion([np.pi / 2] * 3)
    base = BaseParameters.of_robot(arm, motion=motion)
    other = random_motion(3)
    expected = arm.inverse_dynamics(*other, CMU_TRUTH)
    fit = identify(arm, [motion] * 3, CMU_TRUTH)
    values, _ = fit.combine(base.combinations)
    np.testing.assert_allclose(values, base.project(CMU_TRUTH), rtol=0, atol=5e-11)
    np.testing.assert_allclose(arm.inverse_dynamics(*other, fit.solution), expected, rtol=0, atol=5e-11)


def test_solution_equals_that_of_all_joints_together():
    arm = cmu_arm()
    motion = random_motion(3)
    rows = equations(arm, [motion] * 3, CMU_TRUTH)
    fit = sequential(rows, parameter_names(arm), [60] * 3)
    together = fit_with_prior(np.concatenate(rows)[:, :-1], np.concatenate(rows)[:, -1])
    np.testing.assert_allclose(fit.solution, together.solution, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(fit.values.nonzero(), together.values.nonzero())


@pytest.mark.parametrize(("noise", "least"), [([2.0, 0.5, 0.1], 0.8), ([0.1, 0.3, 1.0], 0.65)])
def test_standard_errors_match_the_scatter(noise, least):
    """Errors of a noisy wrist count as noise of the proximal joints, so that standard errors are too large."""
    arm = cmu_arm()
    motion = random_motion(3, 200)
    clean = equations(arm, [motion] * 3, CMU_TRUTH)
    base = arm.base_parameters()
    rng = np.random.default_rng(1)
    standardized = []
    estimated_noise = []
    for _ in range(100):
        noisy = [rows.copy() for rows in clean]
        for rows, sigma in zip(noisy, noise, strict=True):
            rows[:, -1] += sigma * rng.normal(size=len(rows))
        fit = sequential(noisy, parameter_names(arm), [200] * 3)
        values, errors = fit.combine(base.combinations)
        standardized.append((values - base.project(CMU_TRUTH)) / errors)
        estimated_noise.append(fit.noise)
    spread = np.std(standardized, axis=0)
    assert least < spread.min()
    assert spread.max() < 1.2
    assert np.mean(estimated_noise, axis=0)[2] == pytest.approx(noise[2], rel=0.03)
    assert np.all(np.mean(estimated_noise, axis=0) > 0.97 * np.array(noise))


def test_joint_without_torque_leaves_its_link_undetermined():
    arm = cmu_arm()
    motion = random_motion(3)
    rows = equations(arm, [motion] * 3, CMU_TRUTH)
    fit = sequential([rows[0][:0], rows[1], rows[2]], parameter_names(arm), [0, 60, 60])
    assert fit.ranks[0] == 0
    assert np.isnan(fit.noise[0])
    assert fit.rank == 10
    assert "Izz1" in fit.reasons


def test_determined_parameters_need_no_reasons():
    rows = np.column_stack([np.eye(3, 2), [1.0, 2.0, 0.0]])
    fit = sequential([rows], ["a", "b"], [3])
    np.testing.assert_allclose(fit.values, [1.0, 2.0])
    assert fit.reasons == {}


@pytest.mark.parametrize(
    ("factors", "counts", "message"),
    [
        ([np.ones((4, 3))], [4], r"Joint 1: equations of shape \(4, 3\); expected \(m, 5\)"),
        ([np.full((4, 5), np.nan)], [4], "Joint 1: its equations are not finite"),
        ([np.eye(5)], [4, 4], "2 row counts for the factors of 1 joints"),
        ([np.eye(5)], [4], "Joint 1: 4 samples for 4 unknown combinations"),
        ([np.zeros((4, 5))], [4], "No joint's torque determines any combination"),
    ],
)
def test_refuses_impossible_problems(factors, counts, message):
    with pytest.raises(IdentificationError, match=message):
        sequential(factors, ["m1", "m2", "m3", "m4"], counts)
