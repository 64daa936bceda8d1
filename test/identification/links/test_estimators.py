"""Every estimator on the same equations, near the truth and against its definition."""

import numpy as np
import pytest
from link_problems import DenseEquations, chain, wrong

from dynid_ros.estimation.normal_equations import LinkProblem
from dynid_ros.identification.links.link_identification import (
    ESTIMATORS,
    REGULARIZED,
    UNBIASED,
    estimate_all,
    estimate_base,
)
from dynid_ros.identification.links.link_regularization import FullProblem
from dynid_ros.model import BaseParameters, FrictionModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.link_columns import LinkColumns

FRICTION = JointFriction(offset=True)
NOISE = np.array([0.05, 0.2, 0.5])


class Case:
    """Random equations with the structure of the chain, whose URDF is wrong."""

    def __init__(self, seed=0, lacking=()):
        self.robot = wrong(chain())
        self.columns = columns = LinkColumns(self.robot, [(FRICTION,)] * 3)
        self.equations = DenseEquations(columns, (400,), seed=seed, noise=NOISE)
        self.truth = np.concatenate([columns.base.project(chain().parameters), np.tile([1.0, 0.5, 0.2], 3)])
        rng = np.random.default_rng(seed + 100)
        for j, own in enumerate(columns.of_joint):
            self.equations.rows[j][:, np.isin(own, lacking)] = 0.0
            noise = NOISE[j] * rng.normal(size=400)
            self.equations.torque[:, j] = self.equations.rows[j] @ self.truth[own] + noise
        self.problem = LinkProblem(self.equations.factors(columns), columns.chosen([0, 0, 0]))
        self.base = BaseParameters.of_robot(self.robot, FrictionModel(FRICTION))

    def estimate(self, kind):
        return estimate_base(kind, self.problem, self.base, lambda: self.equations.blocks(self.columns))

    def full(self, noise=NOISE):
        return FullProblem(self.problem, noise, self.robot.parameters, self.columns.nonnegative([0, 0, 0]))

    def dense(self):
        return self.equations.dense(np.arange(self.columns.size))


def test_names():
    assert set(ESTIMATORS) == {*UNBIASED, *REGULARIZED}
    assert ESTIMATORS[0] == "consistent"


@pytest.mark.parametrize("kind", UNBIASED)
def test_by_the_data_alone_all_are_near_the_truth(kind):
    case = Case()
    found, noise = case.estimate(kind)
    np.testing.assert_allclose(found.values, case.truth, atol=0.3)
    np.testing.assert_allclose(found.values, found.solution)
    np.testing.assert_allclose(noise, NOISE, rtol=0.15)
    assert 1 < found.condition_number < 100
    if found.covariance is not None:
        errors = (found.values - case.truth) / np.sqrt(np.diag(found.covariance))
        assert 0.5 < np.sqrt(np.mean(errors**2)) < 1.6


@pytest.mark.parametrize("kind", UNBIASED)
def test_what_is_not_decided_is_nan(kind):
    lacking = [3, 17]
    found, _ = Case(lacking=lacking).estimate(kind)
    assert list(np.flatnonzero(np.isnan(found.values))) == lacking
    assert np.isfinite(found.solution).all()
    assert np.isinf(found.condition_number) or kind == "huber"
    if kind == "sequential":
        assert any("no effect on any torque" in remark for remark in found.remarks)


def test_huber_is_not_moved_by_outliers():
    case = Case()
    rows = np.random.default_rng(5).permutation(400)[:20]
    case.equations.torque[rows] += 50.0
    case.problem = LinkProblem(case.equations.factors(case.columns), case.columns.chosen([0, 0, 0]))
    robust, noise = case.estimate("huber")
    weighted, _ = case.estimate("weighted")
    error = [np.linalg.norm(found.solution - case.truth) for found in (robust, weighted)]
    assert error[0] < 0.3 * error[1]
    np.testing.assert_allclose(noise, NOISE, rtol=0.3)
    assert "count less than half: 5." in robust.remarks[0]


def test_error_model_is_the_least_change_of_the_urdf():
    case = Case()
    nominal = case.robot.parameters
    found = estimate_all("error_model", case.full(), nominal, None)
    matrix, torque = case.dense()
    A = np.concatenate([matrix[:, j] / NOISE[j] for j in range(3)]) @ case.full().to_base
    b = np.concatenate([torque[:, j] / NOISE[j] for j in range(3)])
    start = np.append(nominal, np.zeros(9))
    expected = start + np.linalg.lstsq(A, b - A @ start, rcond=1e-8)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_minimum_norm_is_the_pseudo_inverse():
    case = Case()
    found = estimate_all("minimum_norm", case.full(), case.robot.parameters, None)
    matrix, torque = case.dense()
    A = np.concatenate([matrix[:, j] / NOISE[j] for j in range(3)]) @ case.full().to_base
    b = np.concatenate([torque[:, j] / NOISE[j] for j in range(3)])
    np.testing.assert_allclose(found, np.linalg.pinv(A, rcond=1e-8) @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weight", [None, 3.0])
def test_ridge_about_the_urdf_weighs_joints_alike(weight):
    case = Case()
    nominal = case.robot.parameters
    found = estimate_all("ridge", case.full(), nominal, weight)
    matrix, torque = case.dense()
    A = matrix.reshape(-1, matrix.shape[-1]) @ case.full().to_base
    start = np.append(nominal, np.zeros(9))
    damped = A.T @ A + (weight or 10.0) * np.eye(A.shape[1])
    expected = start + np.linalg.solve(damped, A.T @ (torque.ravel() - A @ start))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
