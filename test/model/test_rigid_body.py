"""Mass, center of mass and principal axes of a body, with their standard errors."""

import numpy as np
import pytest

from dynid_ros.model.inertia import LoadBody, from_center_of_mass

EDGES = np.array([0.3, 0.1, 0.2])
MASS = 2.0
CENTER = np.array([0.05, -0.03, 0.1])
MOMENTS = MASS / 12 * (np.sum(EDGES**2) - EDGES**2)
AXES = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
BLOCK = from_center_of_mass(MASS, CENTER, AXES @ np.diag(MOMENTS) @ AXES.T)


def spread(scale: float = 1.0) -> np.ndarray:
    """Return a covariance (10, 10) with correlations, of errors of about one percent."""
    size = scale * np.array([0.02, *[0.002] * 3, *[0.0003] * 6])
    half = np.random.default_rng(2).normal(size=(10, 10)) / np.sqrt(10)
    return (size[:, None] * half) @ (size[:, None] * half).T


def test_moments_and_axes_of_a_block():
    body = LoadBody(BLOCK, np.zeros((10, 10)))
    assert body.mass == MASS
    np.testing.assert_allclose(body.center, CENTER, atol=1e-15)
    order = np.argsort(MOMENTS)
    np.testing.assert_allclose(body.moments, MOMENTS[order], rtol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(body.axes * AXES[:, order], axis=0)), 1.0, atol=1e-12)
    assert np.linalg.det(body.axes) == pytest.approx(1.0)
    assert body.alike == []


def test_standard_errors_match_random_draws():
    covariance = spread()
    body = LoadBody(BLOCK, covariance)
    drawn = np.random.default_rng(3).multivariate_normal(BLOCK, covariance, 1000)
    bodies = [LoadBody(x, covariance) for x in drawn]
    turns = [np.array(other.axes.T @ body.axes) for other in bodies]
    signs = [np.sign(np.diag(turn)) for turn in turns]
    angles = [
        [(s[:, None] * turn)[j, i] for i, j in ((1, 2), (0, 2), (0, 1))] for s, turn in zip(signs, turns, strict=True)
    ]
    pairs = (
        (np.std([b.mass for b in bodies]), body.mass_error),
        (np.std([b.center for b in bodies], axis=0), body.center_errors),
        (np.std([b.inertia[np.triu_indices(3)] for b in bodies], axis=0), body.inertia_errors),
        (np.std([b.moments for b in bodies], axis=0), body.moment_errors),
        (np.std(angles, axis=0), body.axis_errors),
    )
    for scatter, expected in pairs:
        np.testing.assert_allclose(scatter, expected, rtol=0.1)


def test_axes_of_similar_moments_are_undetermined():
    rod = from_center_of_mass(MASS, CENTER, np.diag([0.02, 0.02001, 0.001]))
    body = LoadBody(rod, spread())
    assert body.alike == [(1, 2)]
    assert body.axis_errors[0] > 1.0
    assert body.axis_errors[1:].max() < 0.1
    cube = LoadBody(from_center_of_mass(MASS, CENTER, 0.01 * np.eye(3)), spread())
    assert len(cube.alike) == 3


def test_unknown_parameters_stay_unknown():
    static = np.append(BLOCK[:4], np.full(6, np.nan))
    body = LoadBody(static, spread())
    np.testing.assert_allclose(body.center, CENTER)
    assert np.isfinite(body.center_errors).all()
    assert np.isnan(body.moments).all()
    nothing = LoadBody(np.zeros(10), spread())
    assert np.isnan(nothing.center_errors).all()
