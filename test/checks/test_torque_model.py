"""Test fits of the linear torque model of the checks."""

import gc
import weakref
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from dynid_ros.checks.torque_model import SYSTEMATIC_ERROR, TorqueTerms, fit_together

M = 400
N = 3
P = 6
K = 2
REVOLUTE = np.zeros(N, bool)


@pytest.fixture(scope="module")
def problem():
    """Return terms, true parameters (rigid, offsets, drive coefficients) and noise."""
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(M, N, P))
    drives = rng.normal(size=(M, N, K))
    moving = rng.random((M, N)) > 0.2
    rigid = rng.normal(size=P)
    offset = rng.normal(size=N)
    drive = rng.uniform(0.5, 1.0, (N, K))
    noise = np.array([0.05, 0.1, 0.3])
    torque = columns @ rigid + offset + np.einsum("mjk,jk->mj", drives, drive)
    torque = torque + noise * rng.normal(size=torque.shape)
    return TorqueTerms(columns, drives, moving, torque, REVOLUTE), (rigid, offset, drive), noise


def test_fit_recovers_truth_and_noise(problem):
    terms, (rigid, offset, drive), noise = problem
    fit = terms.fit
    np.testing.assert_allclose(fit.rigid, rigid, atol=0.02)
    np.testing.assert_allclose(fit.offset, offset, atol=0.06)
    np.testing.assert_allclose(fit.drive, drive, atol=0.06)
    np.testing.assert_allclose(fit.rms, noise, rtol=0.1)


def test_hypotheses_are_freed_without_garbage_collection(problem):
    terms = replace(problem[0])
    equations = weakref.ref(terms.equations)
    gc.disable()
    try:
        del terms
        assert equations() is None
    finally:
        gc.enable()


def test_fit_equals_weighted_bounded_least_squares(problem):
    """Friction of one drive has the wrong sign, so its coefficient is zero; the reference is SciPy's solver."""
    terms, (_, _, drive), _ = problem
    pushing = terms.torque - 2 * drive[1, 0] * terms.drive[:, :, 0] * [0, 1, 0]
    equations = replace(terms, torque=pushing).equations
    fit = equations.fit()
    joint_columns = np.zeros((M, N, N * (1 + K)))
    for j in range(N):
        joint_columns[:, j, j] = 1.0
        joint_columns[:, j, N + j * K : N + (j + 1) * K] = terms.drive[:, j]
    weights = (terms.moving / np.hypot(fit.rms, equations.floor))[:, :, None]
    rows = (np.concatenate([terms.rigid, joint_columns], axis=2) * weights).reshape(M * N, -1)
    lower = np.r_[np.full(P + N, -np.inf), np.zeros(N * K)]
    reference = lsq_linear(rows, (pushing * weights[:, :, 0]).ravel(), (lower, np.inf), tol=1e-14).x
    assert fit.drive[1, 0] == 0.0
    solution = np.concatenate([fit.rigid, fit.offset, fit.drive.ravel()])
    np.testing.assert_allclose(solution, reference, atol=2e-3)


def test_rearranged_channels_and_signs_restore_the_fit(problem):
    terms, _, _ = problem
    mixed = replace(terms, torque=terms.torque[:, [1, 0, 2]] * [1, 1, -1]).equations
    np.testing.assert_allclose(mixed.arranged([1, 0, 2], [1, 1, -1]).fit().rms, terms.fit.rms, rtol=1e-6)
    assert mixed.fit().misfit > terms.fit.misfit + 3


def test_joint_fits_equal_separate_fits(problem):
    terms, _, _ = problem
    rare = terms.moving & (np.arange(M) < 20)[:, None]
    models = [terms, replace(terms, torque=-terms.torque), terms.rows(slice(0, 60)), replace(terms, moving=rare)]
    for model, fit in zip(models, fit_together(model.equations for model in models), strict=True):
        np.testing.assert_allclose(fit.rms, model.fit.rms, rtol=1e-9)
        np.testing.assert_allclose(fit.misfits, model.fit.misfits, rtol=1e-9)
        np.testing.assert_allclose(fit.drive, model.fit.drive, rtol=1e-7, atol=1e-9)


def test_does_not_judge_joints_that_hardly_move(problem):
    terms, _, _ = problem
    moving = terms.moving.copy()
    moving[20:, 1] = False
    equations = replace(terms, moving=moving).equations
    assert list(equations.judged) == [0, 2]
    assert np.isnan(equations.fit().rms[1])
    assert np.isnan(equations.own_rms()[1])


def test_columns_without_effect_keep_the_fit(problem):
    terms, _, noise = problem
    more = terms.with_rigid(terms.rigid[:, :, :2]).with_rigid(np.zeros((M, N, 1)))
    np.testing.assert_allclose(more.fit.rms, noise, rtol=0.1)


def test_gains_of_scales_equal_separate_fits(problem):
    equations = problem[0].equations
    scales = np.random.default_rng(1).uniform(0.2, 5.0, (7, N))
    expected = []
    for row in scales:
        scaled = equations.scaled(row)
        recorded = copy(equations)
        recorded.floor = scaled.floor / row
        expected.append(recorded.fit().misfit - scaled.fit().misfit)
    np.testing.assert_allclose(equations.scale_gains(scales), expected, rtol=1e-9)


def test_separate_parameters_by_joint_fit_no_worse(problem):
    terms, _, _ = problem
    assert np.all(terms.equations.own_rms() <= terms.fit.rms * (1 + 1e-6))


def test_forces_and_torques_have_separate_floors(problem):
    terms, _, _ = problem
    scaled = terms.torque * [100.0, 1.0, 1.0]
    floor = replace(terms, torque=scaled, prismatic=np.array([True, False, False])).equations.floor
    np.testing.assert_allclose(floor[0], SYSTEMATIC_ERROR * scaled[:, 0].std())
    np.testing.assert_allclose(floor[1:], SYSTEMATIC_ERROR * scaled[:, 1:].std(axis=0).max())
