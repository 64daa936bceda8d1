"""Test detection of load changes: p-values of random changes, and the smallest size that matters."""

from types import SimpleNamespace

import numpy as np
import pytest

from dynid_ros.identification.change_point import (
    MAX_P_VALUE,
    MIN_STRETCHES,
    LoadChange,
    _at_least,
    _Part,
    likeliest_change,
)

COLUMNS, ROWS = 6, 40


def normal_equations(rng: np.random.Generator, stretches: int, *, change: float = 0.0) -> np.ndarray:
    """Return normal equations (s, 1, k, k + 1) of segments; the mass changes after half of them."""
    truth = rng.normal(size=COLUMNS)
    parts = []
    for k in range(stretches):
        matrix = rng.normal(size=(ROWS, COLUMNS))
        load = truth + change * (k >= stretches / 2) * np.eye(COLUMNS)[0]
        # Residuals are correlated within a segment.
        right = matrix @ load + rng.normal(size=ROWS) + matrix @ rng.normal(0.0, 0.2, COLUMNS)
        parts.append(matrix.T @ np.column_stack([matrix, right]))
    return np.array(parts)[:, None]


def detect_change(parts: np.ndarray):
    """Return the most likely change among segments."""
    count = len(parts)

    def gram(joint: int, groups: list[int]) -> tuple[np.ndarray, np.ndarray]:
        whole = parts[groups[0] // 2, joint]
        return whole[:, :-1], whole[:, -1]

    problem = SimpleNamespace(n_joints=1, gram=gram, factors=SimpleNamespace(parts=[None] * count, stretches=[count]))
    return likeliest_change(SimpleNamespace(spans=[(0.0, float(count))]), problem, np.ones(1))


def test_p_values_without_a_change_are_at_least_nominal():
    """Ten segments leave one possible time of a change, and few degrees of freedom."""
    rng = np.random.default_rng(0)
    p_values = [detect_change(normal_equations(rng, 2 * MIN_STRETCHES)).probability for _ in range(200)]
    assert np.mean(np.array(p_values) < 0.05) < 0.08
    assert np.mean(np.array(p_values) < 0.5) > 0.2


@pytest.mark.parametrize(("change", "detected"), [(0.0, False), (0.05, False), (3.0, True)])
def test_detects_a_change_that_exceeds_the_noise(change, detected):
    change_point = detect_change(normal_equations(np.random.default_rng(1), 30, change=change))
    assert (change_point.probability < MAX_P_VALUE) == detected
    if detected:
        assert change_point.time == pytest.approx(15.0)


def test_covariance_of_few_segments_is_unbiased():
    """The covariance of five segments would be a fifth too small without the factor s / (s - 1)."""
    rng = np.random.default_rng(2)
    few = np.mean([np.trace(_Part.of(normal_equations(rng, 5)).clustered) for _ in range(200)])
    many = np.mean([np.trace(_Part.of(normal_equations(rng, 40)).clustered) for _ in range(60)])
    assert 5 * few / (40 * many) == pytest.approx(0.98, abs=0.08)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    ("mass", "change", "shift", "matters"),
    [
        (2.0, 0.055, 0.0, False),
        (2.0, 0.07, 0.0, True),
        (0.3, 0.045, 0.0, False),
        (0.3, 0.06, 0.0, True),
        (2.0, 0.0, 0.0035, False),
        (2.0, 0.0, 0.0045, True),
        (0.02, 0.0, 0.1, False),
    ],
)
def test_change_matters_above_a_size(sign, mass, change, shift, matters):
    center = np.array([0.01, -0.02, 0.05])
    moved = center + np.array([0.0, sign * shift, 0.0])
    changed = mass + sign * change
    before = np.array([mass, *(mass * center)])
    after = np.array([changed, *(changed * moved)])
    assert LoadChange(0, 1.0, before, after, 0.0).matters is matters


def test_covariance_has_a_lower_bound_in_every_direction():
    rng = np.random.default_rng(3)
    roots = rng.normal(size=(2, 4, 4))
    covariance, least = roots @ np.swapaxes(roots, 1, 2)
    bounded = _at_least(covariance, least)
    assert min(np.linalg.eigvalsh(bounded - other)[0] for other in (covariance, least)) > -1e-9
    np.testing.assert_allclose(_at_least(4 * least, least), 4 * least)
    np.testing.assert_allclose(_at_least(0.25 * least, least), least)
