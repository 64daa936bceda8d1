"""Compare Huber's M-estimator with SciPy and with least squares under outliers."""

import numpy as np
import pytest
from paper_arms import CMU_TRUTH, cmu_arm, random_motion
from scipy.optimize import least_squares

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation import robust
from dynid_ros.estimation.least_squares import fit_with_prior
from dynid_ros.estimation.robust import huber_weights, solve_robust

NOISE_NM = np.array([1.0, 0.3, 0.05])


@pytest.fixture(name="base", scope="module")
def fixture_base():
    return cmu_arm().base_parameters()


@pytest.fixture(name="regressor", scope="module")
def fixture_regressor(base):
    """Return a regressor (400, 3, 11) of independent columns."""
    return base.reduce(cmu_arm().torque_regressor(*random_motion(3, 400)))


@pytest.fixture(name="truth", scope="module")
def fixture_truth(base):
    return base.project(CMU_TRUTH)


def split_blocks(regressor, torque, size=130):
    """Return a function that iterates over blocks of samples."""
    return lambda: ((regressor[i : i + size], torque[i : i + size]) for i in range(0, len(torque), size))


def simulate_torque(regressor, truth, rng, share=0.05, offset=30.0):
    """Return torques with noise by joint and one-sided outliers of about `offset` deviations, and the outlier mask."""
    torque = regressor @ truth + NOISE_NM * rng.normal(size=regressor.shape[:2])
    hit = rng.random(torque.shape) < share
    return torque + hit * NOISE_NM * rng.normal(offset, 0.3 * abs(offset), torque.shape), hit


def fit_least_squares(regressor, torque):
    """Return the least-squares solution weighted by the true noise."""
    rows = (regressor / NOISE_NM[:, None]).reshape(-1, regressor.shape[-1])
    return fit_with_prior(rows, (torque / NOISE_NM).ravel()).solution


def test_huber_weights_decrease_beyond_the_threshold():
    np.testing.assert_allclose(huber_weights([0.0, -1.0, 1.345, -2.69, 13.45]), [1, 1, 1, 0.5, 0.1])


def test_robust_solution_matches_scipy(regressor, truth):
    torque, _ = simulate_torque(regressor, truth, np.random.default_rng(1))
    fit = solve_robust(split_blocks(regressor, torque))
    expected = least_squares(
        lambda x: ((regressor @ x - torque) / fit.noise).ravel(),
        fit_least_squares(regressor, torque),
        loss="huber",
        f_scale=1.345,
        x_scale="jac",
        ftol=1e-12,
        xtol=1e-12,
    ).x
    assert np.max(np.abs(regressor @ (fit.solution - expected)) / fit.noise) < 0.01


def test_outliers_bias_huber_less_than_a_tenth_of_least_squares(regressor, truth):
    rng = np.random.default_rng(2)
    offsets = np.tile(np.eye(3), (len(regressor), 1, 1))  # one-sided outliers bias offsets most
    regressor = np.concatenate([regressor, offsets], axis=2)
    truth = np.append(truth, np.zeros(3))
    huber = []
    plain = []
    for _ in range(20):
        torque, hit = simulate_torque(regressor, truth, rng)
        fit = solve_robust(split_blocks(regressor, torque))
        huber.append(fit.solution)
        plain.append(fit_least_squares(regressor, torque))
    bias = [
        np.sqrt(np.mean((regressor @ (np.mean(solutions, axis=0) - truth)) ** 2, axis=0)) / NOISE_NM
        for solutions in (huber, plain)
    ]
    assert np.all(bias[1] > 1.2)
    assert np.all(bias[0] < bias[1] / 10)
    np.testing.assert_allclose(fit.noise, NOISE_NM, rtol=0.15)
    np.testing.assert_allclose(fit.outliers, hit.mean(axis=0), atol=0.02)


def test_standard_errors_match_the_scatter_with_two_sided_outliers(regressor, truth):
    rng = np.random.default_rng(3)
    standardised = []
    for _ in range(60):
        torque, _ = simulate_torque(regressor, truth, rng, share=0.025, offset=30.0)
        down, _ = simulate_torque(regressor, truth, rng, share=0.025, offset=-30.0)
        first = np.arange(400) % 2 == 0
        torque[first] = down[first]
        fit = solve_robust(split_blocks(regressor, torque))
        standardised.append((fit.values - truth) / fit.standard_errors)
    np.testing.assert_allclose(np.std(standardised), 1.0, atol=0.08)


def test_efficiency_under_gaussian_noise_is_near_95_percent(regressor, truth):
    rng = np.random.default_rng(4)
    errors = []
    for _ in range(40):
        torque, _ = simulate_torque(regressor, truth, rng, share=0.0)
        solutions = solve_robust(split_blocks(regressor, torque)).solution, fit_least_squares(regressor, torque)
        errors.append([np.mean((regressor @ (x - truth) / NOISE_NM) ** 2) for x in solutions])
    huber, plain = np.mean(errors, axis=0)
    assert 1.0 < huber / plain < 1.12  # 5 % in theory


def test_fits_exact_data_with_a_joint_without_torque(regressor, truth):
    silent = np.concatenate([regressor, np.zeros((400, 1, regressor.shape[2]))], axis=1)
    fit = solve_robust(split_blocks(silent, silent @ truth))
    np.testing.assert_allclose(fit.solution, truth, rtol=0, atol=1e-9)
    assert np.isfinite(fit.covariance).all()


def test_refuses_blocks_that_cannot_be_read_again(regressor):
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
def test_refuses_invalid_blocks(block, message):
    with pytest.raises(IdentificationError, match=message):
        solve_robust(lambda: [block])


def test_reports_weights_that_do_not_converge(regressor, truth, monkeypatch):
    monkeypatch.setattr(robust, "MAX_PASSES", 4)
    torque, _ = simulate_torque(regressor, truth, np.random.default_rng(6))
    with pytest.raises(IdentificationError, match="did not settle in 4 passes"):
        solve_robust(split_blocks(regressor, torque))
