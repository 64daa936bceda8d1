"""Bodies that loads can be."""

import numpy as np

from dynid_ros.identification.load_result import possible_load
from dynid_ros.model.inertia import from_center_of_mass, is_possible

LOAD = from_center_of_mass(2.0, np.array([0.02, 0.05, 0.1]), np.diag([0.01, 0.012, 0.004]))


def test_load_that_is_well_known_stays_what_it_is():
    found = possible_load(LOAD, np.diag((1e-4 * np.abs(LOAD) + 1e-6) ** 2))
    np.testing.assert_allclose(found, LOAD, rtol=1e-3, atol=1e-5)


def test_impossible_estimates_become_bodies_within_their_errors():
    rng = np.random.default_rng(0)
    error = np.array([0.02, *[0.003] * 3, *[0.02] * 6])
    outside = 0
    for _ in range(50):
        estimate = LOAD + error * rng.standard_normal(10)
        outside += not is_possible(estimate)
        found = possible_load(estimate, np.diag(error**2))
        assert is_possible(found)
        assert np.abs((found - estimate) / error).max() < 4.0
    assert outside > 25  # such errors hide the inertia


def test_static_estimate_gets_the_inertia_of_a_ball():
    found = possible_load(LOAD[:4], np.diag([1e-6] * 4))
    np.testing.assert_allclose(found[:4], LOAD[:4], atol=2e-3)
    assert is_possible(found)


def test_open_directions_are_as_in_the_ball():
    # Mass and the first moment are only known together.
    covariance = np.diag([1e-6] * 4)
    covariance[0] = covariance[:, 0] = 0.0
    found = possible_load(LOAD[:4], covariance)
    assert is_possible(found)
    np.testing.assert_allclose(found[1:4], LOAD[1:4], atol=5e-3)
