"""Covariance of base parameters against dense formulas, repeated experiments and simulations."""

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
    known_errors,
    robust_covariance,
    time_blocks,
    widened,
)
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification import LinkIdentification
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.link_columns import LinkColumns

NOISE = np.array([0.3, 0.1, 0.2])


@pytest.fixture(name="columns", scope="module")
def fixture_columns():
    return LinkColumns(chain(), [(JointFriction(offset=True),)] * 3)


def solved(equations: DenseEquations, noise: np.ndarray = NOISE):
    """Problem, rows (n N, k) and right-hand side (n N,) divided by noise, joint by joint, and the solution."""
    columns = equations.columns
    chosen = np.arange(columns.size)
    matrix, torque = equations.dense(chosen)
    rows = np.concatenate([matrix[:, j] / noise[j] for j in range(len(noise))])
    right = np.concatenate([torque[:, j] / noise[j] for j in range(len(noise))])
    return WeightedProblem(equations.factors(columns), chosen), rows, right, np.linalg.lstsq(rows, right)[0]


def varied(equations: DenseEquations, size: float, rng: np.random.Generator) -> None:
    """Let parameters differ by kind of motion and joint, by `size` of their standard errors under white noise."""
    _, rows, _, _ = solved(equations)
    root = np.linalg.cholesky(np.linalg.inv(rows.T @ rows))
    for kind in np.unique(equations.kind):
        samples = equations.kind == kind
        matrix, _ = equations.dense(np.arange(equations.columns.size), samples)
        for joint in range(3):
            equations.torque[samples, joint] += size * matrix[:, joint] @ root @ rng.normal(size=len(root))


def dense_model(rows: np.ndarray, pieces: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Covariance of the residuals before the fit, and what the fit leaves of a residual, (n N, n N) each."""
    basis = np.linalg.qr(rows)[0]
    left = np.eye(len(rows)) - basis @ basis.T
    same = pieces[:, None] == pieces
    inside = same * (basis @ basis.T)
    joints = [pieces // 100 == joint for joint in range(3)]

    def of(joint: np.ndarray, covariance: np.ndarray) -> float:
        return float(np.sum((inside * (left @ covariance @ left))[np.ix_(joint, joint)]))

    parts = [inside * np.outer(joint, joint) for joint in joints]
    system = np.array([[of(joint, part) for part in parts] for joint in joints])
    found = np.array([residual[joint] @ inside[np.ix_(joint, joint)] @ residual[joint] for joint in joints])
    sizes = nnls(system, found - [of(joint, np.eye(len(rows))) for joint in joints])[0]
    return np.eye(len(rows)) + sum(size * part for size, part in zip(sizes, parts, strict=True)), left


def power(matrix: np.ndarray, exponent: float) -> np.ndarray:
    values, axes = np.linalg.eigh(matrix)
    return axes * values**exponent @ axes.T


@pytest.mark.parametrize("size", [0.0, 3.0])
def test_as_pustejovsky_and_tipton_write_it(columns, size):
    equations = DenseEquations(columns, (120,), noise=NOISE)
    varied(equations, size, np.random.default_rng(1))
    problem, rows, right, solution = solved(equations)
    covariance, dof = robust_covariance(problem, NOISE, NOISE, solution)
    pieces = np.concatenate([equations.kind + 100 * joint for joint in range(3)])
    inverse = np.linalg.inv(rows.T @ rows)
    residual = right - rows @ solution
    model, left = dense_model(rows, pieces, residual)
    after = left @ model @ left
    expected, pulls = np.zeros_like(inverse), []
    for piece in np.unique(pieces):
        own = pieces == piece
        root = power(model[np.ix_(own, own)], 0.5)
        adjusted = root @ power(root @ after[np.ix_(own, own)] @ root, -0.5) @ root @ rows[own] @ inverse
        score = residual[own] @ adjusted
        expected += np.outer(score, score)
        pulls.append(left[:, own] @ adjusted)
    np.testing.assert_allclose(covariance, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    for parameter in range(len(solution)):
        vectors = np.stack([pull[:, parameter] for pull in pulls])
        values = np.linalg.eigvalsh(vectors @ model @ vectors.T)
        assert dof[parameter] == pytest.approx(values.sum() ** 2 / np.sum(values**2), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.0, 3.0])
def test_is_the_true_covariance_on_average(columns, size):
    """Of white noise, and of errors that differ from kind to kind."""
    equations = DenseEquations(columns, (150,), noise=0.0)
    exact, rng = equations.torque.copy(), np.random.default_rng(5)
    found, errors = [], []
    for _ in range(100):
        equations.torque = exact + NOISE * rng.normal(size=exact.shape)
        varied(equations, size, rng)
        problem, _, _, solution = solved(equations)
        found.append(np.diag(robust_covariance(problem, NOISE, NOISE, solution)[0]))
        errors.append(solution - equations.solution)
    ratio = np.mean(found, axis=0) / np.mean(np.square(errors), axis=0)
    assert np.mean(ratio) == pytest.approx(1.0, abs=0.1)


def test_repetition_is_no_evidence(columns):
    """Residuals that repeat with the motion are what the model lacks: measured twice, it is not known better."""
    equations = DenseEquations(columns, (150,), noise=NOISE)
    problem, _, _, solution = solved(equations)
    once, dof = robust_covariance(problem, NOISE, NOISE, solution)
    equations.rows = [np.tile(rows, (2, 1)) for rows in equations.rows]
    equations.torque, equations.kind = np.tile(equations.torque, (2, 1)), np.tile(equations.kind, 2)
    equations.time, equations.speed = np.linspace(0, 10, 300), np.tile(equations.speed, 2)
    equations.owner, equations.sizes = np.zeros(300, dtype=int), np.array([300])
    problem, _, _, solution = solved(equations)
    twice, same = robust_covariance(problem, NOISE, NOISE, solution)
    np.testing.assert_allclose(np.diag(twice), np.diag(once), rtol=0.15)
    np.testing.assert_allclose(same, dof, rtol=0.3)


def test_gain_errors_move_estimates_as_they_are_said_to(columns):
    equations = DenseEquations(columns, (150,), noise=0.0)
    exact, moved = equations.torque, []
    for joint in range(3):
        equations.torque = exact * np.where(np.arange(3) == joint, 1.02, 1.0)
        moved.append(solved(equations)[-1] - equations.solution)
    equations.torque = exact
    problem, _, _, solution = solved(equations)
    covariance, dof = robust_covariance(problem, NOISE, NOISE, solution, gain_error=0.02)
    expected = np.transpose(moved) @ moved
    np.testing.assert_allclose(covariance, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    assert np.all(dof == MAX_DOF)


def test_what_one_kind_of_motion_decides_alone_is_not_exact(columns):
    equations = DenseEquations(columns, (200,), noise=NOISE)
    alone = columns.of_joint[0][-1]
    equations.torque[:, 0] -= equations.rows[0][:, -1] * equations.solution[alone]
    equations.rows[0][:, -1] = 0.0
    equations.rows[0][7, -1] = 1.0
    equations.torque[7, 0] += 5.0
    problem, rows, _, solution = solved(equations)
    covariance, dof = robust_covariance(problem, NOISE, NOISE, solution)
    white = np.linalg.inv(rows.T @ rows)[alone, alone]
    assert 0.99 * white < covariance[alone, alone] < 4 * white
    assert np.all(dof >= 1)


def test_nothing_is_said_of_what_is_open(columns):
    equations = DenseEquations(columns, (200,), noise=NOISE)
    for own, rows in zip(columns.of_joint, equations.rows, strict=True):
        rows[:, own == 0] = 0.0
    problem, _, _, solution = solved(equations)
    covariance, dof = robust_covariance(problem, NOISE, NOISE, solution, gain_error=0.01)
    assert np.isfinite(covariance).all()
    assert np.isfinite(dof).all()
    assert not covariance[0].any()
    assert np.all(np.diag(covariance)[1:] > 0)


def test_covariance_of_other_parameters_is_theirs(columns):
    """Parameters in other units or combinations have the covariance that follows."""
    equations = DenseEquations(columns, (150,), noise=NOISE)
    problem, _, _, solution = solved(equations)
    covariance, _ = robust_covariance(problem, NOISE, NOISE, solution, 0.01)
    values = np.linalg.eigvalsh(covariance)
    assert values[0] > -1e-12 * values[-1]
    scale = 10.0 ** np.random.default_rng(0).integers(-3, 4, columns.size)
    equations.rows = [rows / scale[own] for own, rows in zip(columns.of_joint, equations.rows, strict=True)]
    problem, _, _, scaled = solved(equations)
    found, _ = robust_covariance(problem, NOISE, NOISE, scaled, 0.01)
    np.testing.assert_allclose(found / np.outer(scale, scale), covariance, rtol=1e-5, atol=1e-7 * covariance.max())


def test_widened_errors_are_the_larger_ones_and_correlations_stay():
    own = np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.2], [0.0, 0.2, np.nan]])
    found = widened(own, np.diag([9.0, 0.5, 1.0]))
    np.testing.assert_allclose(found[:2, :2], [[9.0, 1.5], [1.5, 1.0]])
    assert np.isnan(found[2, 2])


@pytest.mark.slow
def test_intervals_hold_the_truth_of_simulations():
    """The full figure, of more than 500 simulations, is that of benchmarks/link_coverage.py."""
    rng = np.random.default_rng(0)
    held = []
    for _ in range(40):
        conditions = Conditions("ur10", 20.0, correlation=float(rng.choice([0.02, 0.1])))
        experiment = draw(conditions, rng)
        identification = LinkIdentification(experiment.robot, conditions.friction, estimator="weighted")
        result = identification.fit(experiment.recording)
        low, high = result.base_parameters.confidence_intervals(0.95).T
        truth = experiment.truth(result.base)
        known = np.isfinite(truth)
        assert np.count_nonzero(known) == 36
        held.append(((low <= truth) & (truth <= high))[known])
    assert 0.9 < np.mean(held) < 0.99


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
    """The same sensors in all recordings: their gain errors do not tell them apart."""
    robot, friction = real_robot(name), JointFriction(offset=True, rotor_inertia=True, smoothing=0.02)
    agree = {}
    for errors in ("robust", "white"):
        identification = LinkIdentification(robot, friction, estimator="weighted", errors=errors, torque_gain_error=0.0)
        held = []
        for one, other in combinations([identification.fit(real_recording(name, f)) for f in files], 2):
            inertial = one.base.columns < robot.parameters.size
            first, second = one.base_parameters, other.base_parameters
            squares = np.stack([first.standard_errors**2, second.standard_errors**2])[:, inertial]
            dof = np.stack([first.dof, second.dof])[:, inertial]
            total = squares.sum(axis=0)
            half = student_t.ppf(0.975, total**2 / np.sum(squares**2 / dof, axis=0)) * np.sqrt(total)
            held.append(np.abs(first.values - second.values)[inertial] < half)
        agree[errors] = np.mean(held)
    assert agree["robust"] > 0.9 > agree["white"] + 0.03


def test_errors_that_are_known_do_not_count_again_in_the_residuals():
    """What they are expected to show is subtracted, but nothing falls below the noise."""
    rng = np.random.default_rng(0)
    kinds, samples, size, noise = 10, 40, 4, 0.5
    rows = rng.normal(size=(kinds, samples, size))
    errors = np.repeat(rng.normal(size=(kinds, 1, 2)), samples, axis=1)
    grams = [matrix.T @ matrix for matrix in rows]
    known = [matrix.T @ other for matrix, other in zip(rows, errors, strict=True)]
    inverse, found = np.linalg.inv(sum(grams)), []
    for _ in range(200):
        right = errors @ rng.standard_normal(2) + noise * rng.standard_normal((kinds, samples))
        moments = [matrix.T @ b for matrix, b in zip(rows, right, strict=True)]
        pieces = [(0, gram, moment) for gram, moment in zip(grams, moments, strict=True)]
        for errors_known in (None, known):
            covariance, dof = clustered_covariance(pieces, np.array([noise**2]), inverse @ sum(moments), errors_known)
            found.append(np.diag(covariance) / (noise**2 * np.diag(inverse)))
            assert np.all(np.linalg.eigvalsh(covariance) > 0)
            assert np.all(dof > 0)
    without, counted = np.array(found).reshape(200, 2, size).transpose(1, 0, 2)
    assert counted.mean() < 0.5 * without.mean()
    assert np.median(counted) < 2.0
    assert np.all(counted >= 0.999 * np.minimum(without, 1.0))


def test_what_is_known_of_gains_adds_degrees_of_freedom(columns):
    """Satterthwaite (1946): a part of the variance that is known leaves the other part as uncertain as it was."""
    equations = DenseEquations(columns, (120,), noise=NOISE)
    problem, _, _, solution = solved(equations)
    seen, dof = robust_covariance(problem, NOISE, NOISE, solution)
    gained, more = robust_covariance(problem, NOISE, NOISE, solution, 0.05)
    ratio = np.diag(gained) / np.diag(seen)
    assert np.all(ratio >= 1.0)
    assert ratio.max() > 1.5
    np.testing.assert_allclose(more, np.minimum(dof * ratio**2, MAX_DOF), rtol=1e-9)


def test_what_is_counted_elsewhere_takes_degrees_of_freedom():
    """A variance that is left after subtraction of a known one is as uncertain as the whole was."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(10, 40, 3))
    errors = np.repeat(rng.normal(size=(10, 1, 1)), 40, axis=1)
    right = 0.5 * rng.standard_normal((10, 40)) + errors[..., 0]
    pieces = [(0, matrix.T @ matrix, matrix.T @ b) for matrix, b in zip(rows, right, strict=True)]
    solution = np.linalg.solve(sum(gram for _, gram, _ in pieces), sum(moment for *_, moment in pieces))
    known = [matrix.T @ error for matrix, error in zip(rows, errors, strict=True)]
    (whole, dof), (left, fewer) = (clustered_covariance(pieces, np.array([0.25]), solution, k) for k in (None, known))
    share = np.diag(left) / np.diag(whole)
    assert share.min() < 0.8
    np.testing.assert_allclose(fewer, dof * share**2, rtol=1e-9)


def test_errors_of_an_arm_and_of_gains_move_a_load_as_they_are_said_to():
    """A gain that is off was so too when the arm was identified, which has its error."""
    rng, gain_error = np.random.default_rng(0), 0.02
    A, B, torque = rng.normal(size=(3, 40, 2)), rng.normal(size=(3, 40, 4)), rng.normal(size=(3, 40))
    root = rng.normal(size=(4, 4))
    arm = SimpleNamespace(covariance=root @ root.T, gain_shifts=rng.normal(size=(3, 4)), values=rng.normal(size=4))
    whole = torque + B @ arm.values

    def load(torque, values):
        return np.linalg.lstsq(A.reshape(-1, 2), (torque - B @ values).ravel())[0]

    moves = [load(whole, arm.values + error) for error in covariance_root(arm.covariance).T]
    for joint, shift in enumerate(arm.gain_shifts):
        scale = 1.0 + gain_error * (np.arange(3) == joint)[:, None]
        moves.append(load(scale * whole, arm.values + gain_error * shift))
    moves = np.array(moves) - load(whole, arm.values)
    rows = np.concatenate([A, B, torque[..., None]], axis=2)
    found = known_errors(np.swapaxes(rows, 1, 2) @ rows, 2, gain_error, arm)
    np.testing.assert_allclose(found, moves.T @ moves)


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = np.random.default_rng(1).normal(size=(30, 1))
    found = jackknife(lambda kept: values[kept].mean(axis=0), np.arange(30))
    np.testing.assert_allclose(found.standard_errors, values.std(ddof=1) / np.sqrt(30))
    assert found.dof == 29


def test_blocks_of_time_are_stretches_of_one_run_each_of_which_has_two_at_least():
    runs = np.repeat([0, 1, 2], [700, 20, 280])
    blocks = time_blocks(runs)
    np.testing.assert_array_equal(np.unique(np.diff(blocks)), [0, 1])
    per_run = [len(np.unique(blocks[runs == run])) for run in range(3)]
    assert per_run == [7, 2, 3]
    assert len(np.unique(time_blocks(np.zeros(50, int)))) == N_TIME_BLOCKS
