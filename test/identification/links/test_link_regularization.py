"""Regularization of link parameters towards the URDF, and the choice of its weight."""

import numpy as np
import pytest
from link_problems import DenseEquations, Drive, Fourier, chain, distort, record, ur10
from scipy.optimize import minimize

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification.equations import LinkEquations
from dynid_ros.identification.links import link_regularization as prior_weight
from dynid_ros.identification.links.link_regularization import DEFAULT_WEIGHT, PRIOR_WEIGHTS, FullProblem, choose_weight
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.inertia import divergence, is_possible, parameter_spread
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording.uniform_motion import LinkSignals

PRIOR_WEIGHT_FRICTION = JointFriction(offset=True, smoothing=0.02)


def full_problem(nominal, recordings) -> FullProblem:
    columns = LinkColumns(nominal, [(PRIOR_WEIGHT_FRICTION,)] * nominal.n_joints)
    factors = LinkEquations(LinkSignals(7.0, 17.5), recordings).factors(columns)
    everything = WeightedProblem(factors, columns.chosen(columns.first))
    nonnegative = columns.nonnegative(columns.first)
    return FullProblem(everything, everything.weighted()[1], nominal.parameters, nonnegative)


def run(robot, duration, noise, seed=0):
    return record(robot, Fourier(robot.n_joints, seed, size=0.6), Drive(), duration=duration, noise=noise, seed=seed)


def test_weight_is_large_for_a_true_urdf_and_poor_data():
    choice = choose_weight(full_problem(ur10(), [run(ur10(), 5.0, 5.0)]))
    assert choice.weight >= 1e3
    assert choice.scores[1e5] == min(choice.scores.values())
    assert list(choice.scores) == list(PRIOR_WEIGHTS)


def test_weight_is_small_for_a_wrong_urdf_and_rich_data():
    nominal = distort(ur10())
    choice = choose_weight(full_problem(nominal, [run(ur10(), 20.0, 0.05), run(ur10(), 20.0, 0.05, 1)]))
    assert choice.weight <= 1e3
    assert choice.scores[1.0] < choice.scores[1e5] - 0.5


def test_weight_is_the_middle_of_nearly_optimal_weights():
    choice = choose_weight(full_problem(distort(chain()), [run(chain(), 20.0, 1.0)]))
    best = min(choice.scores.values())
    near = [weight for weight, score in choice.scores.items() if score <= best + 0.05]
    assert choice.weight == sorted(near)[len(near) // 2]
    assert max(near) > choice.weight > min(near)


def test_chosen_weight_predicts_better_than_extreme_weights():
    nominal = distort(ur10(), 0.15)
    recordings = [run(ur10(), 6.0, 2.0)]
    full = full_problem(nominal, recordings)
    other = full_problem(nominal, [run(ur10(), 20.0, 0.0, 7)])
    chosen = choose_weight(full).weight
    fits = [full.consistent().solve(weight) for weight in (PRIOR_WEIGHTS[0], chosen, 1e-4)]
    errors = [np.log(other.problem.residual_rms(full.reduce(fit.solution))).mean() for fit in fits]
    assert errors[1] <= min(errors) + 0.05


def test_weight_is_the_default_for_few_samples():
    choice = choose_weight(full_problem(chain(), [run(chain(), 0.9, 0.1)]))
    assert (choice.weight, choice.scores) == (DEFAULT_WEIGHT, {})


@pytest.mark.slow
def test_skips_weights_that_rounding_makes_unsolvable(monkeypatch):
    full = full_problem(distort(chain()), [run(chain(), 10.0, 0.1)])
    expected = choose_weight(full)
    solve_together = prior_weight.solve_together

    def limited(problems, weight, *args):
        if weight < 50:
            return [IdentificationError("rounding hides the rest")] * len(problems)
        return solve_together(problems, weight, *args)

    monkeypatch.setattr(prior_weight, "solve_together", limited)
    choice = choose_weight(full)
    assert list(choice.scores) == [1e5, 1e4, 1e3, 1e2]
    assert all(choice.scores[weight] == pytest.approx(expected.scores[weight]) for weight in choice.scores)
    assert choice.weight >= 100


FRICTION = JointFriction(offset=True)
NOISE = np.array([0.1, 0.2, 0.3])


@pytest.fixture(name="columns", scope="module")
def fixture_columns():
    return LinkColumns(distort(chain()), [(FRICTION,)] * 3)


def problem_of(columns, lacking=(), **settings) -> tuple[FullProblem, WeightedProblem]:
    """Return equations of the chain's true links with friction 1, 0.5, 0.2; `lacking` columns are zero."""
    equations = DenseEquations(columns, (300,), noise=0.0, **settings)
    equations.solution[: columns.n_inertial] = columns.base.project(chain().parameters)
    equations.solution[columns.n_inertial :] = np.tile([1.0, 0.5, 0.2], 3)
    for j, column_indices in enumerate(columns.of_joint):
        equations.rows[j][:, np.isin(column_indices, lacking)] = 0.0
        equations.torque[:, j] = equations.rows[j] @ equations.solution[column_indices]
    problem = WeightedProblem(equations.factors(columns), columns.chosen(columns.first))
    nonnegative = columns.nonnegative(columns.first)
    return FullProblem(problem, NOISE, columns.robot.parameters, nonnegative), problem


def true_unknowns(columns) -> np.ndarray:
    return np.concatenate([columns.base.project(chain().parameters), np.tile([1.0, 0.5, 0.2], 3)])


def test_reduction_equals_the_base_parameters(columns):
    full, problem = problem_of(columns)
    everything = np.concatenate([chain().parameters, np.tile([1.0, 0.5, 0.2], 3)])
    np.testing.assert_allclose(full.reduce(everything), true_unknowns(columns))
    np.testing.assert_allclose(problem.residual_rms(full.reduce(everything)), 0, atol=1e-8)


def test_nearest_links_keep_the_base_parameters(columns):
    full, _ = problem_of(columns)
    prior = columns.robot.parameters
    solution = full.nearest(true_unknowns(columns))
    np.testing.assert_allclose(full.reduce(solution), true_unknowns(columns), atol=1e-7)
    np.testing.assert_allclose(
        full.nearest(full.reduce(np.append(prior, np.ones(9))))[:30], prior, rtol=1e-6, atol=1e-9
    )


def test_nearest_links_minimize_the_divergence(columns):
    """Near the prior the divergence is quadratic, and the nearest links are its minimum."""
    full, _ = problem_of(columns)
    prior = columns.robot.parameters
    rng = np.random.default_rng(0)
    target = np.append(prior * (1 + 1e-4 * rng.normal(size=30)), np.ones(9))
    solution = full.nearest(full.reduce(target))[:30]
    base = columns.base.combinations
    null = np.linalg.svd(base)[2][np.linalg.matrix_rank(base) :].T
    scale = 1e-4 * np.abs(prior).max()

    def distance(steps):
        links = (solution + scale * null @ steps).reshape(3, 10)
        return 1e8 * divergence(links, prior.reshape(3, 10)).sum() if is_possible(links).all() else 1e9

    best = minimize(distance, np.zeros(null.shape[1]), method="BFGS")
    assert distance(np.zeros(null.shape[1])) < 1.01 * best.fun + 1e-3


def test_undetermined_parameters_stay_at_the_prior(columns):
    """Undetermined base parameters are not zero, unlike in least squares of minimum norm."""
    lacking = [0, 4, columns.n_inertial + 1]
    full, problem = problem_of(columns, lacking)
    fit, _ = problem.weighted()
    assert np.all(fit.solution[lacking] == 0)
    solution = full.nearest(fit.solution)
    assert solution[30 + 1] == 0  # friction has no prior
    nominal = columns.base.project(columns.robot.parameters)
    np.testing.assert_allclose(full.reduce(solution)[[0, 4]], nominal[[0, 4]], rtol=0.3, atol=0.1)
    np.testing.assert_allclose(problem.residual_rms(full.reduce(solution)), 0, atol=1e-6)
    determined = np.setdiff1d(np.arange(len(fit.solution)), lacking)
    np.testing.assert_allclose(full.reduce(solution)[determined], true_unknowns(columns)[determined], atol=1e-6)


def test_covariance_is_between_those_of_data_and_prior(columns):
    full, problem = problem_of(columns)
    matrix, _ = problem.stacked(NOISE)
    by_data = np.linalg.inv(matrix.T @ matrix)
    n_base = columns.n_inertial
    to_base = full.to_base[:n_base, : full.prior.size]
    loose, chosen, tight = (full.covariance(weight, by_data) for weight in (1e-6, 10.0, 1e12))
    np.testing.assert_allclose(np.diag(to_base @ loose @ to_base.T), np.diag(by_data)[:n_base], rtol=0.02)
    np.testing.assert_allclose(np.diag(tight), np.diag(parameter_spread(full.prior)) / 1e12, rtol=0.02)
    assert np.all(np.diag(to_base @ chosen @ to_base.T) < 1.02 * np.diag(by_data)[:n_base])


def test_fits_friction_to_fixed_links(columns):
    full, _ = problem_of(columns)
    solution = full.with_links(chain().parameters)
    np.testing.assert_allclose(solution, np.append(chain().parameters, np.tile([1.0, 0.5, 0.2], 3)), atol=1e-6)
    wrong_links = full.with_links(columns.robot.parameters)
    np.testing.assert_array_equal(wrong_links[:30], columns.robot.parameters)
    assert np.all(np.delete(wrong_links[30:], [2, 5, 8]) >= 0)  # offsets may be negative


def test_consistent_links_are_near_the_truth(columns):
    full, problem = problem_of(columns)
    solution = full.consistent().solve(1e-3).solution
    assert is_possible(solution[:30].reshape(3, 10)).all()
    np.testing.assert_allclose(problem.residual_rms(full.reduce(solution)), 0, atol=1e-2)
    np.testing.assert_allclose(solution[30:], np.tile([1.0, 0.5, 0.2], 3), atol=1e-3)


def test_regularizes_an_arm_without_friction():
    columns = LinkColumns(distort(chain()), [(JointFriction.none(),)] * 3)
    equations = DenseEquations(columns, (300,), noise=0.0)
    problem = WeightedProblem(equations.factors(columns), columns.chosen(columns.first))
    full = FullProblem(problem, NOISE, columns.robot.parameters, columns.nonnegative(columns.first))
    np.testing.assert_array_equal(full.with_links(chain().parameters), chain().parameters)
    assert full.nearest(equations.solution).shape == (30,)
