"""Where residuals take the links' motion from."""

import numpy as np
import pytest

from dynid_ros.identification.flexible.run_residuals import NODES, interpolation

QUINTIC = np.polynomial.Polynomial([0.3, -1.0, 0.7, 0.2, -0.5, 0.1])


@pytest.mark.parametrize("n_samples", [NODES, 20])
def test_interpolation_is_exact_from_the_first_sample_to_the_last(n_samples):
    """Six nodes carry a polynomial of degree 5; at the ends they are the six outermost."""
    start, step = -0.4, 0.25
    at = start + step * np.linspace(0.0, n_samples - 1.0, 101)
    first, weights = interpolation(start, step, n_samples, at)
    assert first[0] == 0
    assert first[-1] == n_samples - NODES
    samples = QUINTIC(start + step * np.arange(n_samples))
    found = np.sum(weights * samples[first[:, None] + np.arange(NODES)], axis=1)
    np.testing.assert_allclose(found, QUINTIC(at), atol=1e-12 * np.abs(samples).max())


def test_interpolation_takes_the_samples_around():
    first, _ = interpolation(0.0, 1.0, 20, np.array([9.0, 9.5, 9.99]))
    assert first.tolist() == [7, 7, 7]
