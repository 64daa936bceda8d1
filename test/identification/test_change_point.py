"""A change of the load is as likely by chance as its probability says."""

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


def grams(rng: np.random.Generator, stretches: int, *, change: float = 0.0) -> np.ndarray:
    """Normal equations (s, 1, k, k + 1) of stretches, in the second half of which the mass is another."""
    truth = rng.normal(size=COLUMNS)
    found = []
    for k in range(stretches):
        matrix = rng.normal(size=(ROWS, COLUMNS))
        load = truth + change * (k >= stretches / 2) * np.eye(COLUMNS)[0]
        # Residuals are alike within a stretch.
        right = matrix @ load + rng.normal(size=ROWS) + matrix @ rng.normal(0.0, 0.2, COLUMNS)
        found.append(matrix.T @ np.column_stack([matrix, right]))
    return np.array(found)[:, None]


def change_of(parts: np.ndarray):
    count = len(parts)

    def gram(joint: int, groups: list[int]) -> tuple[np.ndarray, np.ndarray]:
        whole = parts[groups[0] // 2, joint]
        return whole[:, :-1], whole[:, -1]

    problem = SimpleNamespace(n_joints=1, gram=gram, factors=SimpleNamespace(parts=[None] * count, stretches=[count]))
    return likeliest_change(SimpleNamespace(spans=[(0.0, float(count))]), problem, np.ones(1))


def test_chance_gives_small_probabilities_as_rarely_as_they_say():
    """Ten stretches leave one moment to look at, and few degrees of freedom."""
    rng = np.random.default_rng(0)
    probabilities = [change_of(grams(rng, 2 * MIN_STRETCHES)).probability for _ in range(200)]
    assert np.mean(np.array(probabilities) < 0.05) < 0.08
    assert np.mean(np.array(probabilities) < 0.5) > 0.2


@pytest.mark.parametrize(("change", "seen"), [(0.0, False), (0.05, False), (3.0, True)])
def test_a_change_is_seen_beyond_what_chance_gives(change, seen):
    found = change_of(grams(np.random.default_rng(1), 30, change=change))
    assert (found.probability < MAX_P_VALUE) == seen
    if seen:
        assert found.time == pytest.approx(15.0)


def test_few_stretches_have_the_covariance_of_many():
    """Without s / (s − 1) the covariance of five stretches would be a fifth smaller."""
    rng = np.random.default_rng(2)
    few = np.mean([np.trace(_Part.of(grams(rng, 5)).clustered) for _ in range(200)])
    many = np.mean([np.trace(_Part.of(grams(rng, 40)).clustered) for _ in range(60)])
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
def test_small_changes_do_not_matter(sign, mass, change, shift, matters):
    center = np.array([0.01, -0.02, 0.05])
    moved = center + np.array([0.0, sign * shift, 0.0])
    changed = mass + sign * change
    before, after = (np.array([m, *(m * c)]) for m, c in ((mass, center), (changed, moved)))
    assert LoadChange(0, 1.0, before, after, 0.0).matters is matters


def test_a_covariance_is_no_smaller_than_another_one_in_any_direction():
    rng = np.random.default_rng(3)
    roots = rng.normal(size=(2, 4, 4))
    covariance, least = roots @ np.swapaxes(roots, 1, 2)
    found = _at_least(covariance, least)
    assert min(np.linalg.eigvalsh(found - other)[0] for other in (covariance, least)) > -1e-9
    np.testing.assert_allclose(_at_least(4 * least, least), 4 * least)
    np.testing.assert_allclose(_at_least(0.25 * least, least), least)
