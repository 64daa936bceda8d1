"""Compare the covariance of base parameters with dense formulas, repeated experiments and simulations."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from coverage_experiments import Conditions, draw
from link_problems import DenseEquations, chain
from real_recordings import DATA, MISSING, real_recording, real_robot
from scipy.optimize import nnls
from scipy.stats import t as student_t

from dynid_ros.estimation.covariance import (
    MAX_DOF,
    N_TIME_BLOCKS,
    clustered_covariance,
    covariance_root,
    jackknife,
    jackknife_variance,
    known_errors,
    robust_covariance,
    time_blocks,
    widened,
)
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification import LinkIdentification
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.link_columns import LinkColumns

NOISE_NM = np.array([0.3, 0.1, 0.2])


@pytest.fixture(name="columns", scope="module")
def fixture_columns():
    return LinkColumns(chain(), [(JointFriction(offset=True),)] * 3)


def solve_dense(equations: DenseEquations, noise: np.ndarray = NOISE_NM):
    """Return the problem, weighted rows (n N, k), right-hand side (n N,) ordered by joint, and the solution."""
    columns = equations.columns
    chosen = np.arange(columns.size)
    matrix, torque = equations.dense(chosen)
    rows = np.concatenate([matrix[:, j] / noise[j] for j in range(len(noise))])
    right = np.concatenate([torque[:, j] / noise[j] for j in range(len(noise))])
    return WeightedProblem(equations.factors(columns), chosen), rows, right, np.linalg.lstsq(rows, right)[0]


def vary_parameters(equations: DenseEquations, size: float, rng: np.random.Generator) -> None:
    """Vary parameters by kind of motion and joint, by `size` of their standard errors under white noise."""
    _, rows, _, _ = solve_dense(equations)
    root = np.linalg.cholesky(np.linalg.inv(rows.T @ rows))
    for kind in np.unique(equations.kind):
        samples = equations.kind == kind
        matrix, _ = equations.dense(np.arange(equations.columns.size), samples)
        for joint in range(3):
            equations.torque[samples, joint] += size * matrix[:, joint] @ root @ rng.normal(size=len(root))


def dense_model(rows: np.ndarray, pieces: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the residual covariance before the fit and the residual projection of the fit, both (n N, n N)."""
    basis = np.linalg.qr(rows)[0]
    left = np.eye(len(rows)) - basis @ basis.T
    in_piece = pieces[:, None] == pieces
    inside = in_piece * (basis @ basis.T)
    joints = [pieces // 100 == joint for joint in range(3)]

    def sum_inside(joint: np.ndarray, covariance: np.ndarray) -> float:
        return float(np.sum((inside * (left @ covariance @ left))[np.ix_(joint, joint)]))

    parts = [inside * np.outer(joint, joint) for joint in joints]
    system = np.array([[sum_inside(joint, part) for part in parts] for joint in joints])
    squares = np.array([residual[joint] @ inside[np.ix_(joint, joint)] @ residual[joint] for joint in joints])
    sizes = nnls(system, squares - [sum_inside(joint, np.eye(len(rows))) for joint in joints])[0]
    return np.eye(len(rows)) + sum(size * part for size, part in zip(sizes, parts, strict=True)), left


def raise_to_power(matrix: np.ndarray, exponent: float) -> np.ndarray:
    """Return the power of a symmetric positive definite matrix."""
    values, axes = np.linalg.eigh(matrix)
    return axes * values**exponent @ axes.T


@pytest.mark.parametrize("size", [0.0, 3.0])
def test_robust_covariance_matches_pustejovsky_and_tipton(columns, size):
    equations = DenseEquations(columns, (120,), noise=NOISE_NM)
    vary_parameters(equations, size, np.random.default_rng(1))
    problem, rows, right, solution = solve_dense(equations)
    covariance, dof = robust_covariance(problem, NOISE_NM, NOISE_NM, solution)
    pieces = np.concatenate([equations.kind + 100 * joint for joint in range(3)])
    inverse = np.linalg.inv(rows.T @ rows)
    residual = right - rows @ solution
    model, left = dense_model(rows, pieces, residual)
    after = left @ model @ left
    expected = np.zeros_like(inverse)
    pulls = []
    for piece in np.unique(pieces):
        inside = pieces == piece
        root = raise_to_power(model[np.ix_(inside, inside)], 0.5)
        inverse_root = raise_to_power(root @ after[np.ix_(inside, inside)] @ root, -0.5)
        adjusted = root @ inverse_root @ root @ rows[inside] @ inverse
        score = residual[inside] @ adjusted
        expected += np.outer(score, score)
        pulls.append(left[:, inside] @ adjusted)
    np.testing.assert_allclose(covariance, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    for parameter in range(len(solution)):
        vectors = np.stack([pull[:, parameter] for pull in pulls])
        values = np.linalg.eigvalsh(vectors @ model @ vectors.T)
        assert dof[parameter] == pytest.approx(values.sum() ** 2 / np.sum(values**2), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.0, 3.0])
def test_robust_covariance_is_unbiased(columns, size):
    """Errors are white noise, or additionally differ between kinds of motion."""
    equations = DenseEquations(columns, (150,), noise=0.0)
    exact = equations.torque.copy()
    rng = np.random.default_rng(5)
    variances = []
    errors = []
    for _ in range(100):
        equations.torque = exact + NOISE_NM * rng.normal(size=exact.shape)
        vary_parameters(equations, size, rng)
        problem, _, _, solution = solve_dense(equations)
        variances.append(np.diag(robust_covariance(problem, NOISE_NM, NOISE_NM, solution)[0]))
        errors.append(solution - equations.solution)
    ratio = np.mean(variances, axis=0) / np.mean(np.square(errors), axis=0)
    assert np.mean(ratio) == pytest.approx(1.0, abs=0.1)


def test_repeated_motions_do_not_reduce_standard_errors(columns):
    """Residuals that repeat with the motion are model errors, which repeated motions do not reduce."""
    equations = DenseEquations(columns, (150,), noise=NOISE_NM)
    problem, _, _, solution = solve_dense(equations)
    once, dof = robust_covariance(problem, NOISE_NM, NOISE_NM, solution)
    equations.rows = [np.tile(rows, (2, 1)) for rows in equations.rows]
    equations.torque = np.tile(equations.torque, (2, 1))
    equations.kind = np.tile(equations.kind, 2)
    equations.time = np.linspace(0, 10, 300)
    equations.speed = np.tile(equations.speed, 2)
    equations.owner = np.zeros(300, dtype=int)
    equations.sizes = np.array([300])
    problem, _, _, solution = solve_dense(equations)
    twice, repeated_dof = robust_covariance(problem, NOISE_NM, NOISE_NM, solution)
    np.testing.assert_allclose(np.diag(twice), np.diag(once), rtol=0.15)
    np.testing.assert_allclose(repeated_dof, dof, rtol=0.3)


def test_gain_errors_contribute_their_shift_of_the_estimates(columns):
    equations = DenseEquations(columns, (150,), noise=0.0)
    exact = equations.torque
    shifts = []
    for joint in range(3):
        equations.torque = exact * np.where(np.arange(3) == joint, 1.02, 1.0)
        shifts.append(solve_dense(equations)[-1] - equations.solution)
    equations.torque = exact
    problem, _, _, solution = solve_dense(equations)
    covariance, dof = robust_covariance(problem, NOISE_NM, NOISE_NM, solution, gain_error=0.02)
    expected = np.transpose(shifts) @ shifts
    np.testing.assert_allclose(covariance, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    assert np.all(dof == MAX_DOF)


def test_parameters_of_a_single_kind_of_motion_keep_their_variance(columns):
    equations = DenseEquations(columns, (200,), noise=NOISE_NM)
    parameter = columns.of_joint[0][-1]
    equations.torque[:, 0] -= equations.rows[0][:, -1] * equations.solution[parameter]
    equations.rows[0][:, -1] = 0.0
    equations.rows[0][7, -1] = 1.0
    equations.torque[7, 0] += 5.0
    problem, rows, _, solution = solve_dense(equations)
    covariance, dof = robust_covariance(problem, NOISE_NM, NOISE_NM, solution)
    white = np.linalg.inv(rows.T @ rows)[parameter, parameter]
    assert 0.99 * white < covariance[parameter, parameter] < 4 * white
    assert np.all(dof >= 1)


def test_unidentifiable_parameters_have_zero_covariance(columns):
    equations = DenseEquations(columns, (200,), noise=NOISE_NM)
    for columns_of_joint, rows in zip(columns.of_joint, equations.rows, strict=True):
        rows[:, columns_of_joint == 0] = 0.0
    problem, _, _, solution = solve_dense(equations)
    covariance, dof = robust_covariance(problem, NOISE_NM, NOISE_NM, solution, gain_error=0.01)
    assert np.isfinite(covariance).all()
    assert np.isfinite(dof).all()
    assert not covariance[0].any()
    assert np.all(np.diag(covariance)[1:] > 0)


def test_covariance_scales_with_units(columns):
    """Scaling the parameters scales their covariance."""
    equations = DenseEquations(columns, (150,), noise=NOISE_NM)
    problem, _, _, solution = solve_dense(equations)
    covariance, _ = robust_covariance(problem, NOISE_NM, NOISE_NM, solution, 0.01)
    values = np.linalg.eigvalsh(covariance)
    assert values[0] > -1e-12 * values[-1]
    scale = 10.0 ** np.random.default_rng(0).integers(-3, 4, columns.size)
    equations.rows = [
        rows / scale[columns_of_joint] for columns_of_joint, rows in zip(columns.of_joint, equations.rows, strict=True)
    ]
    problem, _, _, scaled = solve_dense(equations)
    rescaled, _ = robust_covariance(problem, NOISE_NM, NOISE_NM, scaled, 0.01)
    np.testing.assert_allclose(rescaled / np.outer(scale, scale), covariance, rtol=1e-5, atol=1e-7 * covariance.max())


def test_widening_takes_the_larger_errors_and_keeps_correlations():
    covariance = np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.2], [0.0, 0.2, np.nan]])
    result = widened(covariance, np.diag([9.0, 0.5, 1.0]))
    np.testing.assert_allclose(result[:2, :2], [[9.0, 1.5], [1.5, 1.0]])
    assert np.isnan(result[2, 2])


@pytest.mark.slow
def test_intervals_contain_the_truth_of_simulations():
    """benchmarks/link_coverage.py reports the coverage of more than 500 simulations."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(40):
        conditions = Conditions("ur10", 20.0, correlation=float(rng.choice([0.02, 0.1])))
        experiment = draw(conditions, rng)
        identification = LinkIdentification(experiment.robot, conditions.friction, estimator="weighted")
        result = identification.fit(experiment.recording)
        low, high = result.base_parameters.confidence_intervals(0.95).T
        truth = experiment.truth(result.base)
        finite = np.isfinite(truth)
        assert np.count_nonzero(finite) == 36
        inside.append(((low <= truth) & (truth <= high))[finite])
    assert 0.9 < np.mean(inside) < 0.99


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=MISSING)
@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("ur10e", ["20_02_10-30sec_12harm", "20_02_12-40sec_12harm", "20_02_19_14harm50sec"]),
        ("kuka_lwr4", ["measurements_1", "measurements_2"]),
    ],
)
def test_motions_of_a_real_robot_agree_within_their_intervals(name, files):
    """The recordings share the sensors, so gain errors cause no differences."""
    robot = real_robot(name)
    friction = JointFriction(offset=True, rotor_inertia=True, smoothing=0.02)
    agreement = {}
    for errors in ("robust", "white"):
        identification = LinkIdentification(robot, friction, estimator="weighted", errors=errors, torque_gain_error=0.0)
        inside = []
        results = [identification.fit(real_recording(name, file)) for file in files]
        for one, other in combinations(results, 2):
            inertial = one.base.columns < robot.parameters.size
            first = one.base_parameters
            second = other.base_parameters
            squares = np.stack([first.standard_errors**2, second.standard_errors**2])[:, inertial]
            dof = np.stack([first.dof, second.dof])[:, inertial]
            total = squares.sum(axis=0)
            half = student_t.ppf(0.975, total**2 / np.sum(squares**2 / dof, axis=0)) * np.sqrt(total)
            inside.append(np.abs(first.values - second.values)[inertial] < half)
        agreement[errors] = np.mean(inside)
    assert agreement["robust"] > 0.9 > agreement["white"] + 0.03


def test_known_errors_are_subtracted_from_the_residuals():
    """The expected contribution is subtracted, but no variance falls below that of the noise."""
    rng = np.random.default_rng(0)
    kinds = 10
    samples = 40
    size = 4
    noise = 0.5
    rows = rng.normal(size=(kinds, samples, size))
    errors = np.repeat(rng.normal(size=(kinds, 1, 2)), samples, axis=1)
    grams = [matrix.T @ matrix for matrix in rows]
    known_shifts = [matrix.T @ other for matrix, other in zip(rows, errors, strict=True)]
    inverse = np.linalg.inv(sum(grams))
    ratios = []
    for _ in range(200):
        right = errors @ rng.standard_normal(2) + noise * rng.standard_normal((kinds, samples))
        moments = [matrix.T @ b for matrix, b in zip(rows, right, strict=True)]
        pieces = [(0, gram, moment) for gram, moment in zip(grams, moments, strict=True)]
        for shifts in (None, known_shifts):
            covariance, dof = clustered_covariance(pieces, np.array([noise**2]), inverse @ sum(moments), shifts)
            ratios.append(np.diag(covariance) / (noise**2 * np.diag(inverse)))
            assert np.all(np.linalg.eigvalsh(covariance) > 0)
            assert np.all(dof > 0)
    without, counted = np.array(ratios).reshape(200, 2, size).transpose(1, 0, 2)
    assert counted.mean() < 0.5 * without.mean()
    assert np.median(counted) < 2.0
    assert np.all(counted >= 0.999 * np.minimum(without, 1.0))


def test_known_gain_errors_increase_degrees_of_freedom(columns):
    """Satterthwaite (1946): a known part of the variance leaves the other part as uncertain as before."""
    equations = DenseEquations(columns, (120,), noise=NOISE_NM)
    problem, _, _, solution = solve_dense(equations)
    covariance, dof = robust_covariance(problem, NOISE_NM, NOISE_NM, solution)
    with_gains, more_dof = robust_covariance(problem, NOISE_NM, NOISE_NM, solution, 0.05)
    ratio = np.diag(with_gains) / np.diag(covariance)
    assert np.all(ratio >= 1.0)
    assert ratio.max() > 1.5
    np.testing.assert_allclose(more_dof, np.minimum(dof * ratio**2, MAX_DOF), rtol=1e-9)


def test_subtracted_errors_reduce_degrees_of_freedom():
    """The variance that remains after subtraction of a known one is as uncertain as the total was."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(10, 40, 3))
    errors = np.repeat(rng.normal(size=(10, 1, 1)), 40, axis=1)
    right = 0.5 * rng.standard_normal((10, 40)) + errors[..., 0]
    pieces = [(0, matrix.T @ matrix, matrix.T @ b) for matrix, b in zip(rows, right, strict=True)]
    solution = np.linalg.solve(sum(gram for _, gram, _ in pieces), sum(moment for *_, moment in pieces))
    shifts = [matrix.T @ error for matrix, error in zip(rows, errors, strict=True)]
    total, dof = clustered_covariance(pieces, np.array([0.25]), solution, None)
    remaining, fewer_dof = clustered_covariance(pieces, np.array([0.25]), solution, shifts)
    share = np.diag(remaining) / np.diag(total)
    assert share.min() < 0.8
    np.testing.assert_allclose(fewer_dof, dof * share**2, rtol=1e-9)


def test_errors_of_arm_and_gains_shift_the_payload_estimate():
    """A gain error already affected the identification of the arm."""
    rng = np.random.default_rng(0)
    gain_error = 0.02
    A = rng.normal(size=(3, 40, 2))
    B = rng.normal(size=(3, 40, 4))
    torque = rng.normal(size=(3, 40))
    root = rng.normal(size=(4, 4))
    arm = SimpleNamespace(covariance=root @ root.T, gain_shifts=rng.normal(size=(3, 4)), values=rng.normal(size=4))
    total = torque + B @ arm.values

    def fit_load(torque, values):
        return np.linalg.lstsq(A.reshape(-1, 2), (torque - B @ values).ravel())[0]

    estimates = [fit_load(total, arm.values + error) for error in covariance_root(arm.covariance).T]
    for joint, shift in enumerate(arm.gain_shifts):
        scale = 1.0 + gain_error * (np.arange(3) == joint)[:, None]
        estimates.append(fit_load(scale * total, arm.values + gain_error * shift))
    shifts = np.array(estimates) - fit_load(total, arm.values)
    rows = np.concatenate([A, B, torque[..., None]], axis=2)
    covariance = known_errors(np.swapaxes(rows, 1, 2) @ rows, 2, gain_error, arm)
    np.testing.assert_allclose(covariance, shifts.T @ shifts)


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = np.random.default_rng(1).normal(size=(30, 3))
    result = jackknife(lambda kept: values[kept].mean(axis=0), np.arange(30))
    expected = np.cov(values.T) / 30
    np.testing.assert_allclose(result.covariance, expected)
    np.testing.assert_allclose(result.standard_errors**2, np.diag(expected))
    means = np.array([np.delete(values, block, axis=0).mean(axis=0) for block in range(30)])
    np.testing.assert_allclose(jackknife_variance(means - means.mean(axis=0)), np.diag(expected))
    assert result.dof == 29


def test_time_blocks_divide_runs_into_at_least_two():
    runs = np.repeat([0, 1, 2], [700, 20, 280])
    blocks = time_blocks(runs)
    np.testing.assert_array_equal(np.unique(np.diff(blocks)), [0, 1])
    per_run = [len(np.unique(blocks[runs == run])) for run in range(3)]
    assert per_run == [7, 2, 3]
    assert len(np.unique(time_blocks(np.zeros(50, int)))) == N_TIME_BLOCKS
