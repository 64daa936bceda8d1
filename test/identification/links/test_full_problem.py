"""All parameters of the links from base parameters: nearest to the prior, whatever the data leave open."""

import numpy as np
import pytest
from link_problems import DenseEquations, chain, wrong
from scipy.optimize import minimize

from dynid_ros.estimation.normal_equations import LinkProblem
from dynid_ros.identification.links.link_regularization import FullProblem
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.inertia import divergence, is_possible
from dynid_ros.model.link_columns import LinkColumns

FRICTION = JointFriction(offset=True)
NOISE = np.array([0.1, 0.2, 0.3])


@pytest.fixture(name="columns", scope="module")
def fixture_columns():
    return LinkColumns(wrong(chain()), [(FRICTION,)] * 3)


def problem_of(columns, lacking=(), **settings) -> tuple[FullProblem, LinkProblem]:
    """Equations of the chain's true links and friction 1, 0.5, 0.2; columns that are `lacking` are zero."""
    equations = DenseEquations(columns, (300,), noise=0.0, **settings)
    equations.solution[: columns.n_inertial] = columns.base.project(chain().parameters)
    equations.solution[columns.n_inertial :] = np.tile([1.0, 0.5, 0.2], 3)
    for j, own in enumerate(columns.of_joint):
        equations.rows[j][:, np.isin(own, lacking)] = 0.0
        equations.torque[:, j] = equations.rows[j] @ equations.solution[own]
    problem = LinkProblem(equations.factors(columns), columns.chosen([0, 0, 0]))
    nonnegative = columns.nonnegative([0, 0, 0])
    return FullProblem(problem, NOISE, columns.robot.parameters, nonnegative), problem


def true_unknowns(columns) -> np.ndarray:
    return np.concatenate([columns.base.project(chain().parameters), np.tile([1.0, 0.5, 0.2], 3)])


def test_reduction_is_that_of_the_base_parameters(columns):
    full, problem = problem_of(columns)
    everything = np.concatenate([chain().parameters, np.tile([1.0, 0.5, 0.2], 3)])
    np.testing.assert_allclose(full.reduce(everything), true_unknowns(columns))
    np.testing.assert_allclose(problem.residual_rms(full.reduce(everything)), 0, atol=1e-8)


def test_nearest_keeps_what_is_known(columns):
    full, _ = problem_of(columns)
    prior = columns.robot.parameters
    found = full.nearest(true_unknowns(columns))
    np.testing.assert_allclose(full.reduce(found), true_unknowns(columns), atol=1e-7)
    np.testing.assert_allclose(
        full.nearest(full.reduce(np.append(prior, np.ones(9))))[:30], prior, rtol=1e-6, atol=1e-9
    )


def test_nearest_has_the_smallest_divergence_to_second_order(columns):
    """A little beside the prior, where the divergence is quadratic, the nearest links are a minimum of it."""
    full, _ = problem_of(columns)
    prior = columns.robot.parameters
    rng = np.random.default_rng(0)
    target = np.append(prior * (1 + 1e-4 * rng.normal(size=30)), np.ones(9))
    found = full.nearest(full.reduce(target))[:30]
    base = columns.base.combinations
    null = np.linalg.svd(base)[2][np.linalg.matrix_rank(base) :].T
    scale = 1e-4 * np.abs(prior).max()

    def distance(steps):
        links = (found + scale * null @ steps).reshape(3, 10)
        return 1e8 * divergence(links, prior.reshape(3, 10)).sum() if is_possible(links).all() else 1e9

    best = minimize(distance, np.zeros(null.shape[1]), method="BFGS")
    assert distance(np.zeros(null.shape[1])) < 1.01 * best.fun + 1e-3


def test_what_the_data_leave_open_stays_at_the_prior(columns):
    """Base parameters that these data do not decide are not zero, as least squares of minimum norm has them."""
    lacking = [0, 4, columns.n_inertial + 1]
    full, problem = problem_of(columns, lacking)
    fit, _ = problem.weighted()
    assert np.all(fit.solution[lacking] == 0)
    found = full.nearest(fit.solution)
    assert found[30 + 1] == 0  # friction has no prior
    nominal = columns.base.project(columns.robot.parameters)
    np.testing.assert_allclose(full.reduce(found)[[0, 4]], nominal[[0, 4]], rtol=0.3, atol=0.1)
    np.testing.assert_allclose(problem.residual_rms(full.reduce(found)), 0, atol=1e-6)
    known = np.setdiff1d(np.arange(len(fit.solution)), lacking)
    np.testing.assert_allclose(full.reduce(found)[known], true_unknowns(columns)[known], atol=1e-6)


def test_friction_that_fits_best_to_given_links(columns):
    full, _ = problem_of(columns)
    found = full.with_links(chain().parameters)
    np.testing.assert_allclose(found, np.append(chain().parameters, np.tile([1.0, 0.5, 0.2], 3)), atol=1e-6)
    wrong_links = full.with_links(columns.robot.parameters)
    np.testing.assert_array_equal(wrong_links[:30], columns.robot.parameters)
    assert np.all(np.delete(wrong_links[30:], [2, 5, 8]) >= 0)  # the offsets may be


def test_consistent_links_near_the_truth(columns):
    full, problem = problem_of(columns)
    solution = full.consistent().solve(1e-3).solution
    assert is_possible(solution[:30].reshape(3, 10)).all()
    np.testing.assert_allclose(problem.residual_rms(full.reduce(solution)), 0, atol=1e-2)
    np.testing.assert_allclose(solution[30:], np.tile([1.0, 0.5, 0.2], 3), atol=1e-3)


def test_an_arm_without_friction():
    columns = LinkColumns(wrong(chain()), [(JointFriction.none(),)] * 3)
    equations = DenseEquations(columns, (300,), noise=0.0)
    problem = LinkProblem(equations.factors(columns), columns.chosen([0, 0, 0]))
    full = FullProblem(problem, NOISE, columns.robot.parameters, columns.nonnegative([0, 0, 0]))
    np.testing.assert_array_equal(full.with_links(chain().parameters), chain().parameters)
    assert full.nearest(equations.solution).shape == (30,)
