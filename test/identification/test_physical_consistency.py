"""Physically consistent least squares, against the semidefinite program and the definition of the objective."""

import numpy as np
import pytest
from consistency_problems import (
    ROBOTS,
    hostile_data,
    is_consistent,
    objective,
    random_data,
    random_link,
    robot_data,
    sdp_objective,
)
from pinocchio_arm import example_urdf

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation import interior_point
from dynid_ros.identification.physical_consistency import ConsistentProblem, solve_consistent, solve_together
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import is_possible, possible_prior


@pytest.fixture(name="rng")
def fixture_rng():
    return np.random.default_rng(0)


def solve_data(data, weight):
    return solve_consistent(data.R, data.z, data.prior, weight, nonnegative=data.nonnegative)


def load_robot(name):
    urdf, tip = ROBOTS[name]
    return RobotModel.from_urdf(example_urdf(urdf), tip=tip)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # the semidefinite solver repeats inaccurate solutions
@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 40))])
def test_random_problem_equals_the_semidefinite_program(seed):
    rng = np.random.default_rng(seed)
    data = random_data(rng, 1 + seed % 3)
    weight = 10 ** rng.uniform(-4, 2)
    data, weight = random_data(rng, 1 + seed % 3), 10 ** rng.uniform(-4, 2)
    fit = solve_data(data, weight)
    assert fit.objective == pytest.approx(sdp_objective(data, weight), rel=1e-6)
    assert fit.objective == pytest.approx(objective(data, weight, fit.solution), rel=1e-9)
    assert 0 <= fit.optimum.gap <= 1e-7 * fit.objective
    assert is_consistent(data, fit.solution)


@pytest.mark.parametrize("weight", [1e-4, 1.0])
@pytest.mark.parametrize("name", ROBOTS)
def test_robot_equals_the_semidefinite_program(rng, name, weight):
    data = robot_data(load_robot(name), rng)
    fit = solve_data(data, weight)
    assert fit.objective == pytest.approx(sdp_objective(data, weight), rel=1e-6)
    assert is_consistent(data, fit.solution)


def test_solution_without_information_is_the_prior(rng):
    prior = np.concatenate([random_link(rng), random_link(rng)])
    fit = solve_consistent(np.zeros((5, 23)), np.ones(5), prior, 1e-3, nonnegative=[21])
    np.testing.assert_allclose(fit.solution[:20], prior, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(fit.solution[20:], 0.0)
    assert fit.objective == pytest.approx(2.5)


def test_solution_of_informative_data_is_the_truth(rng):
    prior, true = random_link(rng), random_link(rng)
    x = np.concatenate([true, [0.7, -0.3]])
    R = rng.normal(size=(500, 12)) * 1e4
    fit = solve_consistent(R, R @ x, prior, 1e-4, nonnegative=[10])
    np.testing.assert_allclose(fit.solution, x, rtol=1e-4, atol=1e-7)


def test_negative_friction_becomes_zero(rng):
    prior = random_link(rng)
    R = rng.normal(size=(300, 12)) * 100
    fit = solve_consistent(R, R @ np.concatenate([prior, [-1.0, -2.0]]), prior, 1.0, nonnegative=[10])
    assert fit.solution[10] == 0.0
    assert fit.solution[11] < -1.0


def test_compressed_data_have_the_same_solution(rng):
    prior = random_link(rng)
    R = rng.normal(size=(300, 13)) * 30
    z = R @ np.concatenate([random_link(rng), rng.uniform(0, 1, 3)]) + rng.normal(size=300)
    triangle = np.linalg.qr(np.column_stack([R, z]), mode="r")
    tall = solve_consistent(R, z, prior, 0.1, nonnegative=[10, 11])
    compressed = solve_consistent(triangle[:-1, :-1], triangle[:-1, -1], prior, 0.1, nonnegative=[10, 11])
    np.testing.assert_allclose(compressed.solution, tall.solution, rtol=1e-5, atol=1e-7)
    assert tall.objective == pytest.approx(compressed.objective + 0.5 * triangle[-1, -1] ** 2)


def test_undetermined_free_parameters_have_minimum_norm(rng):
    prior = random_link(rng)
    R = rng.normal(size=(40, 12))
    R[:, 11] = R[:, 10]
    fit = solve_consistent(R, R @ np.concatenate([prior, [3.0, 1.0]]), prior, 1.0)
    np.testing.assert_allclose(fit.solution[10:], [2.0, 2.0], rtol=1e-6)


def test_warm_start_needs_fewer_iterations(rng):
    data = robot_data(load_robot("ur10"), rng)
    problem = ConsistentProblem(data.R, data.z, data.prior, data.nonnegative)
    warm_iterations = 0
    cold_iterations = 0
    previous = None
    for weight in np.geomspace(1e2, 1e-3, 11):
        cold = problem.solve(weight)
        previous = problem.solve(weight, previous)
        assert previous.objective == pytest.approx(cold.objective, rel=1e-8)
        warm_iterations += previous.optimum.iterations
        cold_iterations += cold.optimum.iterations
    assert warm_iterations < cold_iterations


def test_joint_solution_equals_single_ones_with_fewer_newton_systems(rng, monkeypatch):
    data = robot_data(load_robot("ur10"), rng)
    rows = [slice(None), slice(0, 70), slice(10, 84), slice(20, 60)]
    problems = [ConsistentProblem(data.R[part], data.z[part], data.prior, data.nonnegative) for part in rows]
    systems = []
    step = interior_point._Scaled.step
    monkeypatch.setattr(interior_point._Scaled, "step", lambda self: systems.append(len(self.level)) or step(self))
    alone = [problem.solve(1.0) for problem in problems]
    n_alone = len(systems)
    together = solve_together(problems, 1.0, [None] * len(problems))
    assert len(systems) - n_alone < n_alone / 2
    for one, other in zip(alone, together, strict=True):
        assert other.objective == pytest.approx(one.objective, rel=1e-9)
        np.testing.assert_allclose(other.solution, one.solution, rtol=1e-5, atol=1e-6 * np.abs(one.solution).max())
    with pytest.raises(IdentificationError):
        solve_together(problems, -1.0, [None] * len(problems))


def test_objective_is_independent_of_units(rng):
    """Kilogram and gram give the same fit."""
    data = random_data(rng, 1)
    units = np.array([1e3] + [1e5] * 3 + [1e7] * 6)  # g, g cm, g cm²
    scaled = solve_consistent(
        np.hstack([data.R[:, :10] / units, data.R[:, 10:]]),
        data.z,
        data.prior * units,
        0.01,
        nonnegative=data.nonnegative,
    )
    assert scaled.objective == pytest.approx(solve_data(data, 0.01).objective, rel=1e-8)


@pytest.mark.slow
def test_hostile_data_are_fitted_consistently_or_refused():
    rng = np.random.default_rng(1)
    refused = []
    for _ in range(100):
        data, weight = hostile_data(rng)
        try:
            fit = solve_data(data, weight)
        except IdentificationError:
            refused.append(weight / np.sum(data.z**2))
        else:
            assert is_consistent(data, fit.solution)
    # Refused weights are near the limit of double precision for the data.
    assert len(refused) < 20
    assert max(refused, default=0.0) < 1e-11


def test_refuses_impossible_prior_and_names_the_link(rng):
    prior = np.concatenate([random_link(rng), np.zeros(10)])
    with pytest.raises(IdentificationError, match=r"forearm.*possible_prior"):
        solve_consistent(np.eye(20), np.ones(20), prior, 1.0, link_names=["upper_arm", "forearm"])
    repaired, changes = possible_prior(prior, ["upper_arm", "forearm"])
    assert len(changes) == 1
    fit = solve_consistent(np.eye(20), np.ones(20), repaired, 1.0)
    assert is_possible(fit.solution.reshape(-1, 10)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({"weight": weight}, "expected a positive number") for weight in (0.0, -1.0, np.nan, np.inf)),
        *(({"nonnegative": [column]}, "10 to 11") for column in (3, 12, -1)),
        ({"R": np.where(np.arange(144).reshape(12, 12) == 86, np.nan, np.eye(12))}, "row 7"),
        ({"z": np.ones(11)}, "expected"),
        ({"R": np.ones((12, 9))}, "expected"),
        ({"prior": np.ones(13)}, "expected"),
        ({"prior": np.ones(0)}, "expected"),
    ],
)
def test_refuses_impossible_problems(rng, change, message):
    arguments = {"R": np.eye(12), "z": np.ones(12), "prior": random_link(rng), "weight": 1.0, **change}
    with pytest.raises(IdentificationError, match=message):
        solve_consistent(**arguments)
