"""Inertial parameters, against sums over point masses and bodies of known shape."""

import numpy as np
import pytest
from consistency_problems import random_link, sum_point_masses
from hypothesis import given, strategies as st
from scipy.spatial.transform import Rotation

from dynid_ros.model.inertia import (
    Body,
    central_moments,
    divergence,
    from_center_of_mass,
    from_log_cholesky,
    inertial_parameters,
    is_possible,
    log_cholesky,
    parameter_spread,
    possible_prior,
    pseudo_inertia,
    transformed,
)


@pytest.fixture(name="rng")
def fixture_rng():
    return np.random.default_rng(0)


def test_pseudo_inertia_of_point_masses(rng):
    masses = rng.uniform(0.1, 1, 9)
    points = rng.normal(size=(9, 3))
    homogeneous = np.column_stack([points, np.ones(9)])
    link = sum_point_masses(masses, points)
    np.testing.assert_allclose(pseudo_inertia(link), homogeneous.T @ (masses[:, None] * homogeneous), atol=1e-13)
    np.testing.assert_allclose(central_moments(link), np.cov(points.T, aweights=masses, ddof=0) * masses.sum())


def test_pseudo_inertia_is_invertible(rng):
    links = rng.normal(size=(3, 5, 10))
    np.testing.assert_allclose(inertial_parameters(pseudo_inertia(links)), links, atol=1e-14)


def test_log_cholesky_is_invertible(rng):
    links = np.array([random_link(rng) for _ in range(50)])
    coordinates = log_cholesky(links)
    np.testing.assert_allclose(np.exp(2 * coordinates[:, 0]), links[:, 0])
    np.testing.assert_allclose(coordinates[:, 7:], links[:, 1:4] / links[:, :1])
    np.testing.assert_allclose(from_log_cholesky(coordinates), links, rtol=1e-9, atol=1e-12)


@given(st.lists(st.floats(-2, 2), min_size=10, max_size=10))
def test_every_log_cholesky_point_is_a_possible_body(coordinates):
    assert is_possible(from_log_cholesky(np.array(coordinates)))


def test_refuses_log_cholesky_of_an_impossible_body():
    with pytest.raises(np.linalg.LinAlgError):
        log_cholesky(from_center_of_mass(1.0, np.zeros(3), np.diag([1.0, 1.0, 3.0])))


@pytest.mark.parametrize(
    ("principal", "possible"),
    [
        ([1.0, 1.0, 1.9], True),
        ([1.0, 1.0, 2.0], False),  # a plate without thickness
        ([1.0, 1.0, 2.1], False),  # violates the triangle inequality, though positive definite
        ([0.0, 1.0, 1.0], False),  # a rod without thickness
        ([0.0, 0.0, 0.0], False),
        ([-1.0, 1.0, 1.0], False),
        ([np.nan, 1.0, 1.0], False),
    ],
)
def test_possible_inertias_satisfy_the_triangle_inequality(rng, principal, possible):
    for turn in Rotation.random(50, random_state=rng).as_matrix():
        inertia = turn @ np.diag(np.array(principal) * 1e-3) @ turn.T
        assert is_possible(from_center_of_mass(2.0, np.array([0.3, -0.2, 0.5]), inertia)) == possible


@pytest.mark.parametrize("mass", [0.0, -1.0, np.inf])
def test_detects_impossible_masses(rng, mass):
    link = random_link(rng)
    far = np.concatenate([link[:1], 10 * link[1:4], link[4:]])
    link[0] = mass
    assert not is_possible(link)
    assert not is_possible(far), "the inertia is too small for such a distant center"


def test_divergence_is_independent_of_the_frame(rng):
    link = random_link(rng)
    prior = random_link(rng)
    ratio = np.linalg.solve(pseudo_inertia(prior), pseudo_inertia(link))
    expected = np.trace(ratio) - 4 - np.log(np.linalg.det(ratio))
    np.testing.assert_allclose(divergence(link, prior), expected)
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    pose[:3, 3] = rng.normal(size=3)
    np.testing.assert_allclose(divergence(transformed(link, pose), transformed(prior, pose)), expected, rtol=1e-6)
    assert divergence(link, link) == pytest.approx(0, abs=1e-12)


def test_spread_is_the_inverse_hessian_of_the_divergence(rng):
    links = np.concatenate([random_link(rng) for _ in range(2)])
    hessian = np.linalg.inv(parameter_spread(links))
    size = np.sqrt(1 / np.diag(hessian))  # a step of each parameter with unit effect

    def total(steps):
        return divergence((links + size * steps).reshape(2, 10), links.reshape(2, 10)).sum()

    # Central differences of the divergence, whose minimum of zero is at the links themselves.
    step = 1e-3
    axes = np.eye(20)
    differences = np.array(
        [
            [
                (total(step * (a + b)) - total(step * (a - b)) - total(step * (b - a)) + total(-step * (a + b))) / 4
                for a in axes
            ]
            for b in axes
        ]
    )
    np.testing.assert_allclose(differences / step**2, hessian * np.outer(size, size), atol=1e-4)
    assert not parameter_spread(links)[:10, 10:].any()


def test_spread_scales_with_the_link_and_its_frame(rng):
    """The spread of mass and moments about the principal axes is about their own size in every frame."""
    link = random_link(rng)
    deviation = np.sqrt(np.diag(parameter_spread(link)))
    assert deviation[0] == pytest.approx(link[0])
    np.testing.assert_allclose(parameter_spread(7 * link), 49 * parameter_spread(link), rtol=1e-9)
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    pose[:3, 3] = rng.normal(size=3)
    to_other = transformed(np.eye(10), pose).T
    other = parameter_spread(transformed(link, pose))
    np.testing.assert_allclose(other, to_other @ parameter_spread(link) @ to_other.T, rtol=1e-6, atol=1e-9)


def test_possible_prior_keeps_possible_links(rng):
    links = np.array([random_link(rng) for _ in range(3)])
    kept, changes = possible_prior(links.ravel(), ["a", "b", "c"])
    np.testing.assert_array_equal(kept, links.ravel())
    assert not changes


def test_possible_prior_repairs_and_reports_links(rng):
    good = random_link(rng)
    empty = np.zeros(10)
    center = np.array([0.1, 0.0, -0.2])
    point = from_center_of_mass(2.0, center, np.zeros((3, 3)))
    plate = from_center_of_mass(good[0] / 2, center, np.diag([1.0, 2.0, 3.5]))
    links, changes = possible_prior(np.concatenate([good, empty, point, plate]), ["good", "empty", "point", "plate"])
    links = links.reshape(4, 10)
    assert is_possible(links).all()
    assert [change.split(":")[0] for change in changes] == ["empty", "point", "plate"]
    np.testing.assert_array_equal(links[0], good)
    assert links[1, 0] == min(good[0] / 2, 2.0)
    np.testing.assert_allclose(links[2, :4], point[:4])
    # The inertia is that of a steel ball: 2/5 m r² about each axis.
    radius = (2.0 / 8000 * 3 / (4 * np.pi)) ** (1 / 3)
    np.testing.assert_allclose(
        links[2], from_center_of_mass(2.0, center, 0.4 * 2.0 * radius**2 * np.eye(3)), atol=1e-12
    )
    # Only the impossible direction has changed.
    before = central_moments(plate)
    after = central_moments(links[3])
    np.testing.assert_allclose(after[:2, :2], before[:2, :2], atol=1e-12)
    assert before[2, 2] < 0 < after[2, 2] < 1e-2


def test_possible_prior_of_an_arm_without_inertials():
    links, changes = possible_prior(np.zeros(20), ["a", "b"])
    assert is_possible(links.reshape(2, 10)).all()
    np.testing.assert_array_equal(links[[0, 10]], 1.0)
    assert len(changes) == 2


def test_transformed_body_equals_transformed_point_masses():
    rng = np.random.default_rng(0)
    masses = rng.uniform(0.1, 1.0, 8)
    points = rng.normal(size=(8, 3))
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    transform = np.eye(4)
    transform[:3, :3] = rotation * np.linalg.det(rotation)
    transform[:3, 3] = rng.normal(size=3)
    moved = points @ transform[:3, :3].T + transform[:3, 3]
    np.testing.assert_allclose(
        transformed(sum_point_masses(masses, points), transform), sum_point_masses(masses, moved), atol=1e-13
    )


def test_body_with_negligible_mass_has_no_center():
    body = Body.of(np.array([1e-320, 1.0, 0.0, 0.0, 0.1, 0.0, 0.0, 0.1, 0.0, 0.1]))
    assert body.mass == 1e-320
    assert np.isnan([*body.centre, *body.inertia]).all()
