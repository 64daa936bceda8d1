"""Huber's M-estimator against scipy's, and what outliers do to it and to least squares."""

import numpy as np
import pytest
from paper_arms import CMU_TRUTH, cmu_arm, random_motion
from scipy.optimize import least_squares

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation import robust
from dynid_ros.estimation.least_squares import fit_with_prior
from dynid_ros.estimation.robust import huber_weights, solve_robust

NOISE = np.array([1.0, 0.3, 0.05])


@pytest.fixture(name="base", scope="module")
def fixture_base():
    return cmu_arm().base_parameters()


@pytest.fixture(name="regressor", scope="module")
def fixture_regressor(base):
    """(400, 3, 11) of independent columns."""
    return base.reduce(cmu_arm().torque_regressor(*random_motion(3, 400)))


@pytest.fixture(name="truth", scope="module")
def fixture_truth(base):
    return base.project(CMU_TRUTH)


def in_blocks(regressor, torque, size=130):
    return lambda: ((regressor[i : i + size], torque[i : i + size]) for i in range(0, len(torque), size))


def noisy(regressor, truth, rng, share=0.05, offset=30.0):
    """Torques with noise per joint, and a share of outliers about `offset` standard deviations off, to one side."""
    torque = regressor @ truth + NOISE * rng.normal(size=regressor.shape[:2])
    hit = rng.random(torque.shape) < share
    return torque + hit * NOISE * rng.normal(offset, 0.3 * abs(offset), torque.shape), hit


def ordinary(regressor, torque):
    """Least squares with the true noise as weights."""
    rows = (regressor / NOISE[:, None]).reshape(-1, regressor.shape[-1])
    return fit_with_prior(rows, (torque / NOISE).ravel()).solution


def test_weights():
    np.testing.assert_allclose(huber_weights([0.0, -1.0, 1.345, -2.69, 13.45]), [1, 1, 1, 0.5, 0.1])


def test_solution_against_scipy(regressor, truth):
    torque, _ = noisy(regressor, truth, np.random.default_rng(1))
    fit = solve_robust(in_blocks(regressor, torque))
    expected = least_squares(
        lambda x: ((regressor @ x - torque) / fit.noise).ravel(),
        ordinary(regressor, torque),
        loss="huber",
        f_scale=1.345,
        x_scale="jac",
        ftol=1e-12,
        xtol=1e-12,
    ).x
    assert np.max(np.abs(regressor @ (fit.solution - expected)) / fit.noise) < 0.01


def test_five_per_cent_of_outliers_hardly_move_it(regressor, truth):
    rng = np.random.default_rng(2)
    offsets = np.tile(np.eye(3), (len(regressor), 1, 1))  # what one-sided outliers bias most
    regressor, truth = np.concatenate([regressor, offsets], axis=2), np.append(truth, np.zeros(3))
    huber, plain = [], []
    for _ in range(20):
        torque, hit = noisy(regressor, truth, rng)
        fit = solve_robust(in_blocks(regressor, torque))
        huber.append(fit.solution)
        plain.append(ordinary(regressor, torque))
    bias = [
        np.sqrt(np.mean((regressor @ (np.mean(found, axis=0) - truth)) ** 2, axis=0)) / NOISE
        for found in (huber, plain)
    ]
    assert np.all(bias[1] > 1.2)
    assert np.all(bias[0] < bias[1] / 10)
    np.testing.assert_allclose(fit.noise, NOISE, rtol=0.15)
    np.testing.assert_allclose(fit.outliers, hit.mean(axis=0), atol=0.02)


def test_standard_errors_hold_with_outliers_to_both_sides(regressor, truth):
    rng = np.random.default_rng(3)
    standardised = []
    for _ in range(60):
        torque, _ = noisy(regressor, truth, rng, share=0.025, offset=30.0)
        down, _ = noisy(regressor, truth, rng, share=0.025, offset=-30.0)
        first = np.arange(400) % 2 == 0
        torque[first] = down[first]
        fit = solve_robust(in_blocks(regressor, torque))
        standardised.append((fit.values - truth) / fit.standard_errors)
    np.testing.assert_allclose(np.std(standardised), 1.0, atol=0.08)


def test_gaussian_noise_costs_little(regressor, truth):
    rng = np.random.default_rng(4)
    errors = []
    for _ in range(40):
        torque, _ = noisy(regressor, truth, rng, share=0.0)
        solutions = solve_robust(in_blocks(regressor, torque)).solution, ordinary(regressor, torque)
        errors.append([np.mean((regressor @ (x - truth) / NOISE) ** 2) for x in solutions])
    huber, plain = np.mean(errors, axis=0)
    assert 1.0 < huber / plain < 1.12  # 5 % in theory


def test_exact_data_and_a_joint_that_feels_nothing(regressor, truth):
    silent = np.concatenate([regressor, np.zeros((400, 1, regressor.shape[2]))], axis=1)
    fit = solve_robust(in_blocks(silent, silent @ truth))
    np.testing.assert_allclose(fit.solution, truth, rtol=0, atol=1e-9)
    assert np.isfinite(fit.covariance).all()


def test_blocks_that_cannot_be_read_again(regressor):
    torque = regressor @ np.ones(11)
    once = iter([(regressor, torque)])
    with pytest.raises(IdentificationError, match="make the blocks anew at every call"):
        solve_robust(lambda: once)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((np.ones((4, 2, 3)), np.ones((4, 3))), r"regressors \(4, 2, 3\) and torques \(4, 3\) do not fit"),
        ((np.ones((4, 2, 3)), np.full((4, 2), np.nan)), "a block is not finite"),
    ],
)
def test_impossible_problems(block, message):
    with pytest.raises(IdentificationError, match=message):
        solve_robust(lambda: [block])


def test_weights_that_do_not_settle(regressor, truth, monkeypatch):
    monkeypatch.setattr(robust, "MAX_PASSES", 4)
    torque, _ = noisy(regressor, truth, np.random.default_rng(6))
    with pytest.raises(IdentificationError, match="did not settle in 4 passes"):
        solve_robust(in_blocks(regressor, torque))
