"""From tip to base: Khosla and Kanade 1987, and Monte Carlo."""

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
    """Rows [Y_j τ_j] of each joint, from a motion for each."""
    return [
        np.column_stack([robot.torque_regressor(*motion)[:, j], robot.inverse_dynamics(*motion, truth)[:, j]])
        for j, motion in enumerate(motions)
    ]


def moving(motion, joints) -> list[np.ndarray]:
    """The motion with the joints that are 0 in `joints` locked at zero."""
    return [array * np.array(joints) for array in motion]


def identify(robot, motions, truth) -> SequentialFit:
    factors = [np.linalg.qr(rows, mode="r") for rows in equations(robot, motions, truth)]
    return sequential(factors, parameter_names(robot), [25] * robot.n_joints)


def last_alone(robot, motion, truth) -> SequentialFit:
    """What the torque of the last joint says before those before it are looked at."""
    rows = equations(robot, [motion] * robot.n_joints, truth)
    return sequential([*(own[:0] for own in rows[:-1]), rows[-1]], parameter_names(robot), [0, 0, 25])


@pytest.mark.parametrize("stroke", [0.2, 0.5, 1.3])
def test_cylindrical_robot_table_2(stroke):
    motion = cosine_motion([np.pi / 2, stroke, stroke])
    # The paper's error model: what is fitted is the error of nominal parameters.
    fit = identify(cylindrical_robot(), [motion] * 3, CYLINDRICAL_TRUTH - CYLINDRICAL_NOMINAL)
    inertias = np.isin(np.arange(30), columns("Izz1 Iyy2 Iyy3"))
    found, _ = fit.combine([*np.eye(30)[columns("mcz3 m3 m2")], inertias])
    nominal = [*CYLINDRICAL_NOMINAL[columns("mcz3 m3 m2")], CYLINDRICAL_NOMINAL[inertias].sum()]
    np.testing.assert_allclose(found + nominal, [1.25, 2.5, 5.0, 2.5], rtol=0, atol=1e-12)
    assert fit.ranks == (1, 1, 3)
    assert fit.rank == 5
    # The correction of the sum is shared.
    np.testing.assert_allclose(fit.solution[columns("Izz1 Iyy2 Iyy3")], [0.5 / 3] * 3, rtol=0, atol=1e-12)
    assert fit.reasons["Iyy2"] == "only in combination: Izz1 + Iyy2 + Iyy3"
    assert np.isnan(fit.values[column("Iyy2")])


def test_locked_joints_lose_a_moment():
    """The trap of the off-line procedure: with joints 1 and 2 locked nothing shows m3 s3z on the third link."""
    robot, motion = cylindrical_robot(), cosine_motion([np.pi / 2, 0.5, 0.5])
    fit = identify(robot, [moving(motion, [0, 0, 1])] * 3, CYLINDRICAL_TRUTH)
    assert fit.ranks[2] == 1
    assert fit.values[column("m3")] == pytest.approx(2.5, abs=1e-12)
    assert np.isnan(fit.values[column("mcz3")])
    assert np.isnan(fit.standard_errors[column("mcz3")])
    assert fit.reasons["mcz3"] == "no effect on any torque of these data"


def test_what_locked_joints_lose_a_joint_before_them_can_find():
    """Each joint from its own experiment, joints before it locked: joint 1 then moves with the others free."""
    robot, motion = cylindrical_robot(), cosine_motion([np.pi / 2, 0.5, 0.5])
    motions = [motion, moving(motion, [0, 1, 1]), moving(motion, [0, 0, 1])]
    fit = identify(robot, motions, CYLINDRICAL_TRUTH)
    assert fit.ranks == (2, 1, 1)
    np.testing.assert_allclose(fit.values[columns("mcz3 m3 m2")], [1.25, 2.5, 5.0], rtol=0, atol=1e-12)


def test_joint_1_turning_is_enough_to_show_the_moment():
    robot, motion = cylindrical_robot(), cosine_motion([np.pi / 2, 0.5, 0.5])
    fit = identify(robot, [moving(motion, [1, 0, 1])] * 3, CYLINDRICAL_TRUTH)
    np.testing.assert_allclose(fit.values[columns("mcz3 m3")], [1.25, 2.5], rtol=0, atol=1e-12)


def test_cmu_arm_ranks_from_tip_to_base():
    arm, motion = cmu_arm(), cosine_motion([np.pi / 2] * 3)
    fit = identify(arm, [motion] * 3, CMU_TRUTH)
    # Of the four combinations that joint 2 tells, joint 3 told Izz3 - Ixx3 before.
    assert fit.ranks == (1, 3, 7)
    assert fit.rank == 11
    reasons = last_alone(arm, motion, CMU_TRUTH).reasons
    determined = {name for name in parameter_names(arm)[20:] if name not in reasons}
    assert determined == {"mcx3", "mcz3", "Ixy3", "Ixz3", "Iyy3", "Iyz3"}
    combined = {name for name, why in reasons.items() if why.startswith("only in combination")}
    assert combined == {"Ixx3", "Izz3"}
    assert np.count_nonzero(np.abs(fit.determined).max(axis=0) > 1e-6) == 17


def test_cmu_arm_table_3():
    arm, motion = cmu_arm(), cosine_motion([np.pi / 2] * 3)
    fit = identify(arm, [motion] * 3, CMU_TRUTH)
    own, motion_3 = arm.base_parameters(), arm.torque_regressor(*motion)[:, 2]
    seven = [i for i in own.columns if np.linalg.norm(motion_3[:, i]) > 1e-9]
    singular = fit_with_prior(motion_3[:, seven], np.ones(25)).singular_values
    assert singular[0] / singular[-1] == pytest.approx(1.5e4, rel=0.05)
    found, _ = fit.combine(
        [*np.eye(30)[columns("Ixz3 Iyz3 Iyy3 Ixy3 mcx3 mcz3")], np.eye(30)[column("Izz3")] - np.eye(30)[column("Ixx3")]]
    )
    np.testing.assert_allclose(found, [0.1, 0.15, 0.2, 0.15, 0.49, 0.7, 0.1], rtol=0, atol=1e-9)


def test_cmu_arm_combinations_predict_another_motion():
    arm, motion = cmu_arm(), cosine_motion([np.pi / 2] * 3)
    base = BaseParameters.of_robot(arm, motion=motion)
    other = random_motion(3)
    expected = arm.inverse_dynamics(*other, CMU_TRUTH)
    fit = identify(arm, [motion] * 3, CMU_TRUTH)
    found, _ = fit.combine(base.combinations)
    np.testing.assert_allclose(found, base.project(CMU_TRUTH), rtol=0, atol=5e-11)
    np.testing.assert_allclose(arm.inverse_dynamics(*other, fit.solution), expected, rtol=0, atol=5e-11)


def test_open_directions_end_where_the_fit_of_all_joints_at_once_ends():
    arm, motion = cmu_arm(), random_motion(3)
    rows = equations(arm, [motion] * 3, CMU_TRUTH)
    fit = sequential(rows, parameter_names(arm), [60] * 3)
    together = fit_with_prior(np.concatenate(rows)[:, :-1], np.concatenate(rows)[:, -1])
    np.testing.assert_allclose(fit.solution, together.solution, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(fit.values.nonzero(), together.values.nonzero())


@pytest.mark.parametrize(("noise", "least"), [([2.0, 0.5, 0.1], 0.8), ([0.1, 0.3, 1.0], 0.65)])
def test_errors_are_as_large_as_they_say(noise, least):
    """Over repeated noise. What a noisy wrist got wrong counts as noise of the joints before: errors are too large."""
    arm, motion = cmu_arm(), random_motion(3, 200)
    clean = equations(arm, [motion] * 3, CMU_TRUTH)
    base = arm.base_parameters()
    rng = np.random.default_rng(1)
    standardised, found_noise = [], []
    for _ in range(100):
        noisy = [rows.copy() for rows in clean]
        for rows, sigma in zip(noisy, noise, strict=True):
            rows[:, -1] += sigma * rng.normal(size=len(rows))
        fit = sequential(noisy, parameter_names(arm), [200] * 3)
        values, errors = fit.combine(base.combinations)
        standardised.append((values - base.project(CMU_TRUTH)) / errors)
        found_noise.append(fit.noise)
    spread = np.std(standardised, axis=0)
    assert least < spread.min()
    assert spread.max() < 1.2
    assert np.mean(found_noise, axis=0)[2] == pytest.approx(noise[2], rel=0.03)
    assert np.all(np.mean(found_noise, axis=0) > 0.97 * np.array(noise))


def test_joint_without_torque_leaves_its_link_open():
    arm, motion = cmu_arm(), random_motion(3)
    rows = equations(arm, [motion] * 3, CMU_TRUTH)
    fit = sequential([rows[0][:0], rows[1], rows[2]], parameter_names(arm), [0, 60, 60])
    assert fit.ranks[0] == 0
    assert np.isnan(fit.noise[0])
    assert fit.rank == 10
    assert "Izz1" in fit.reasons


def test_all_parameters_determined():
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
def test_impossible_problems(factors, counts, message):
    with pytest.raises(IdentificationError, match=message):
        sequential(factors, ["m1", "m2", "m3", "m4"], counts)
