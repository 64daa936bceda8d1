"""Compare least squares with NumPy, including rank-deficient problems and ridge regression."""

import numpy as np
import pytest
from paper_arms import MIT_CAD, MIT_SINGLES, MIT_SUMS, MIT_ZEROS, columns, mit_arm, mit_motion

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import LinearFit, fit_with_prior, solve, solve_grouped


@pytest.fixture(name="fit")
def fixture_fit() -> LinearFit:
    """Return a fit of three parameters that determines only the sum of the first two, as 5 ± 0.1; units differ."""
    scale = np.array([1000.0, 1000.0, 1.0])
    direction = np.array([0.5, 0.5, 0.0])
    return LinearFit(
        solution=np.array([2.5, 2.5, 7.0]),
        covariance=0.1**2 * np.outer(direction, direction),
        determined=np.array([[1.0, 1.0, 0.0]]) / np.sqrt(2),
        scale=scale,
        condition_number=1.0,
        singular_values=np.ones(3),
    )


def test_combines_determined_parameters_only(fit):
    combinations = [[1, 1, 0], [2, 2, 0], [1, 0, 0], [1, 1, 1e-12], [1, 1, 1e-6], [1, -1, 0], [0, 0, 0]]
    values, errors = fit.combine(combinations)
    np.testing.assert_allclose(values, [5, 10, np.nan, 5, np.nan, np.nan, 0])
    np.testing.assert_allclose(errors, [0.1, 0.2, np.nan, 0.1, np.nan, np.nan, 0])
    assert fit.rank == 1
    assert np.isnan([*fit.values, *fit.standard_errors]).all()


@pytest.fixture(name="regressor", scope="module")
def fixture_regressor():
    """Return the regressor (1800, 30) of the three motions of Atkeson, An and Hollerbach (1986)."""
    return mit_arm().torque_regressor(*mit_motion()).reshape(-1, 30)


@pytest.fixture(name="factor", scope="module")
def fixture_factor(regressor):
    """Return the triangular factor (31, 31) of the motions with torques of the CAD model."""
    return np.linalg.qr(np.column_stack([regressor, regressor @ MIT_CAD]), mode="r")


def test_rank_and_eigenvalues_match_atkeson(regressor, factor):
    for R, z in ((regressor, regressor @ MIT_CAD), (factor[:, :-1], factor[:, -1])):
        for fit in (fit_with_prior(R, z), fit_with_prior(R, z, weight=10.0)):
            assert fit.rank == 15
            eigenvalues = fit.singular_values**2
            assert eigenvalues[14] == pytest.approx(2934.586, abs=1e-3)
            assert eigenvalues[0] == pytest.approx(2532784, abs=0.5)
            assert eigenvalues[15] < 1e-6


def test_ridge_errors_match_atkeson(regressor, factor):
    fit = fit_with_prior(factor[:, :-1], factor[:, -1], weight=10.0)
    errors = MIT_SUMS @ (fit.solution - MIT_CAD)
    expected = [-1.35e-4, 2.6e-5, -1.64e-3, -1.29e-3, 2.05e-4, 2.28e-3]
    np.testing.assert_allclose(errors, expected, rtol=0.007, atol=0)  # the paper prints three digits
    identifiable_zeros = [i for i in columns(MIT_SINGLES) if MIT_CAD[i] == 0]
    assert np.abs(fit.solution[identifiable_zeros]).max() == pytest.approx(9.4e-4, rel=0.005)
    torque = regressor @ MIT_CAD
    residual = np.linalg.norm(regressor @ fit.solution - torque) / np.linalg.norm(torque)
    assert residual == pytest.approx(1.0e-4, rel=0.01)


def test_minimum_norm_recovers_identifiable_parameters(factor):
    for scaled in (False, True):
        fit = fit_with_prior(factor[:, :-1], factor[:, -1], scaled=scaled)
        values, _ = fit.combine(np.concatenate([MIT_SUMS, np.eye(30)[columns(MIT_SINGLES)]]))
        expected = np.concatenate([MIT_SUMS @ MIT_CAD, MIT_CAD[columns(MIT_SINGLES)]])
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scaled", [False, True])
def test_ridge_converges_to_the_minimum_norm_about_its_prior(regressor, scaled):
    prior = np.random.default_rng(1).normal(size=30)
    torque = regressor @ MIT_CAD
    expected = fit_with_prior(regressor, torque, prior, scaled=scaled).solution
    if not scaled:
        np.testing.assert_allclose(
            fit_with_prior(regressor, torque, prior, weight=1e-6).solution, expected, rtol=0, atol=1e-7
        )
    unit = np.linalg.norm(regressor, axis=0) if scaled else np.ones(30)
    unit = np.where(unit > 1e-9, unit, 1.0)
    # The reference is the shortest correction by the pseudo-inverse.
    reference = prior + np.linalg.pinv(regressor / unit, rcond=1e-9) @ (torque - regressor @ prior) / unit
    np.testing.assert_allclose(expected, reference, rtol=0, atol=1e-10)


def test_unidentifiable_parameters_keep_their_prior(regressor):
    nominal = MIT_CAD * np.random.default_rng(2).uniform(0.8, 1.2, 30)
    fit = fit_with_prior(regressor, regressor @ MIT_CAD, nominal)
    np.testing.assert_allclose(fit.solution[columns(MIT_ZEROS)], nominal[columns(MIT_ZEROS)], rtol=0, atol=1e-15)
    np.testing.assert_allclose(MIT_SUMS @ fit.solution, MIT_SUMS @ MIT_CAD, rtol=0, atol=1e-12)


def test_covariance_matches_its_definition():
    matrix = np.random.default_rng(3).normal(size=(20, 4)) @ np.random.default_rng(4).normal(size=(4, 6))
    fit = fit_with_prior(matrix, matrix @ np.ones(6))
    np.testing.assert_allclose(fit.covariance, np.linalg.pinv(matrix.T @ matrix, rcond=1e-9), atol=1e-12)
    full = matrix[:, :4]
    np.testing.assert_allclose(
        fit_with_prior(full, full @ np.ones(4), weight=3.0).covariance,
        np.linalg.inv(full.T @ full + 3 * np.eye(4)),
        atol=1e-12,
    )


def test_ridge_standard_errors_match_the_scatter():
    """The truth is drawn from the prior and noise from the unit normal, so bias towards the prior counts as error."""
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(40, 6)) * [3, 1, 0.3, 0.1, 0.03, 0]
    prior = rng.normal(size=6)
    standardised = []
    for _ in range(400):
        truth = prior + rng.normal(size=6) / np.sqrt(0.5)
        fit = fit_with_prior(matrix, matrix @ truth + rng.normal(size=40), prior, weight=0.5)
        assert np.isnan(fit.values[5])
        standardised.append((fit.values[:5] - truth[:5]) / fit.standard_errors[:5])
    np.testing.assert_allclose(np.std(standardised, axis=0), 1.0, atol=0.12)


def test_scaled_estimates_do_not_depend_on_units():
    rng = np.random.default_rng(6)
    matrix = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 5))
    right = rng.normal(size=30)
    prior = rng.normal(size=5)
    units = np.array([1e-2, 1.0, 1e2, 10.0, 0.1])
    one = fit_with_prior(matrix, right, prior, scaled=True).solution
    other = fit_with_prior(matrix * units, right, prior / units, scaled=True).solution
    np.testing.assert_allclose(other * units, one, rtol=1e-9)


@pytest.mark.parametrize(
    ("R", "z", "options", "message"),
    [
        (np.ones((3, 2)), np.ones(4), {}, r"Regressor \(3, 2\), right-hand side \(4,\)"),
        (np.ones((3, 2)), np.ones(3), {"prior": np.ones(3)}, r"prior \(3,\) do not fit"),
        (np.array([[1.0, 2.0], [np.nan, 1.0]]), np.ones(2), {}, "Regressor: row 1 is not finite"),
        (np.zeros((3, 2)), np.ones(3), {}, "all entries are zero"),
        (np.eye(2), np.ones(2), {"weight": -1.0}, "expected a positive number"),
        (np.eye(2), np.ones(2), {"weight": np.nan}, "expected a positive number"),
    ],
)
def test_refuses_invalid_problems(R, z, options, message):
    with pytest.raises(IdentificationError, match=message):
        fit_with_prior(R, z, **options)


@pytest.fixture(name="problem")
def fixture_problem():
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(60, 4)) * [1, 1e-3, 1e3, 1]
    truth = np.array([1.0, -2e3, 3e-3, 4.0])
    return matrix, truth, rng


def test_solution_and_covariance_match_numpy(problem):
    matrix, truth, rng = problem
    right = matrix @ truth + rng.normal(0, 0.1, 60)
    fit = solve(matrix, right)
    np.testing.assert_allclose(fit.solution, np.linalg.lstsq(matrix, right, rcond=None)[0], rtol=1e-9)
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(matrix.T @ matrix), rtol=1e-6)
    assert fit.rank == 4
    assert np.sum(fit.leverage) == pytest.approx(4)


def test_integer_weights_equal_repeated_rows(problem):
    matrix, truth, rng = problem
    right = matrix @ truth + rng.normal(0, 0.1, 60)
    weights = rng.integers(1, 4, 60)
    repeated = solve(np.repeat(matrix, weights, axis=0), np.repeat(right, weights))
    np.testing.assert_allclose(solve(matrix, right, weights).solution, repeated.solution, rtol=1e-9)


def test_marks_undetermined_columns(problem):
    matrix, truth, _ = problem
    doubled = np.column_stack([matrix, matrix[:, 0] - 2 * matrix[:, 3]])
    fit = solve(doubled, matrix @ truth)
    assert fit.rank == 4
    assert np.isinf(fit.condition_number)
    assert list(np.isinf(fit.inflation)) == [True, False, False, True, True]
    np.testing.assert_allclose(fit.solution[1:3], truth[1:3], rtol=1e-9)


def test_inflation_compares_with_orthogonal_columns():
    angle = np.deg2rad(10)
    t = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    sine = np.sin(t)
    cosine = np.cos(t)
    matrix = np.column_stack([cosine, np.cos(angle) * cosine + np.sin(angle) * sine])
    np.testing.assert_allclose(solve(matrix, cosine).inflation, 1 / np.sin(angle), rtol=1e-9)


def test_estimates_noise_by_group(problem):
    matrix, truth, rng = problem
    matrix = np.vstack([matrix] * 40)
    group = np.arange(len(matrix)) % 2
    right = matrix @ truth + rng.normal(0, np.where(group, 2.0, 0.1))
    fit, sigma = solve_grouped(matrix, right, group)
    np.testing.assert_allclose(sigma, [0.1, 2.0], rtol=0.06)
    assert np.all(np.abs(fit.solution - truth) < 4 * np.sqrt(np.diag(fit.covariance)))


def test_noise_of_a_single_group_matches_the_textbook(problem):
    """The estimate is the residual sum of squares divided by rows minus columns."""
    matrix, truth, rng = problem
    right = matrix @ truth + rng.normal(0, 0.3, 60)
    fit, sigma = solve_grouped(matrix, right, np.zeros(len(matrix), int))
    np.testing.assert_allclose(sigma, np.sqrt(np.sum(fit.residual**2) / 56), rtol=1e-9)


def test_noise_estimates_need_four_degrees_of_freedom():
    """A group of fewer precise rows keeps the noise of the unweighted fit; the large group is noisy."""
    rng = np.random.default_rng(8)
    for count in (4, 5):
        right = np.r_[rng.normal(0, 5.0, 40), 1.0 + rng.normal(0, 0.1, count)]
        group = np.r_[np.zeros(40, int), np.ones(count, int)]
        _, sigma = solve_grouped(np.ones((40 + count, 1)), right, group)
        first = np.sqrt(np.sum((right[40:] - right.mean()) ** 2) / (count - count / (40 + count)))
        assert sigma[1] == pytest.approx(first if count == 4 else right[40:].std(ddof=1), rel=1e-2 * (count == 5))


def test_small_groups_are_not_considered_exact():
    """Two rows with an own unknown could be fitted exactly and would then dominate all other rows."""
    rng = np.random.default_rng(2)
    matrix = np.vstack([np.column_stack([np.ones(50), np.zeros(50)]), [[1, 1], [1, 2]]])
    right = matrix @ [1.0, 3.0] + rng.normal(0, 0.1, 52)
    _, sigma = solve_grouped(matrix, right, np.r_[np.zeros(50, int), 1, 1])
    assert sigma[1] > 1e-3
