"""Which terms are taken for what a torsion is made of, from columns of which it really is."""

from dataclasses import replace

import numpy as np
import pytest

from dynid_ros.identification.flexible.torsion_choice import MAX_OPTIONAL_TERMS, TermChoice, TorsionRows
from dynid_ros.identification.flexible.torsion_terms import Term

N = 3000
NAMES = ("velocity", "torque", "acceleration", "coulomb", "ripple", "stray", "other")


def choice(parts, columns=lambda waves: waves):
    """Of terms whose columns are made of unlike waves, the torsion being a sum of waves, with noise of a thousandth."""
    rng = np.random.default_rng(0)
    time = np.arange(N) / 250
    waves = np.stack([np.sin((1.3 + 1.7 * i) * time + rng.uniform(0, 6)) for i in range(len(NAMES))], axis=1)
    torsion = sum(waves[:, NAMES.index(name)] for name in parts) + 1e-3 * rng.normal(size=N)
    rows = TorsionRows(columns(waves), torsion, np.zeros(N, dtype=int), waves[:, 0], np.gradient(waves[:, 0], time))
    return TermChoice(rows, [Term(name, "rad") for name in NAMES])


def test_only_the_set_with_all_that_there_is_predicts_best():
    parts = ("torque", "coulomb", "stray", "other")
    assert len(parts) == MAX_OPTIONAL_TERMS
    (best,) = choice(parts).best()
    assert set(best.terms) == {"velocity", *parts}
    assert best.held_out_rms == pytest.approx(1e-3, rel=0.1)


@pytest.mark.parametrize("seed", range(12))
def test_a_column_that_others_make_up_for_has_nothing_of_its_own(seed):
    """But for rounding, of either sign."""
    weights = 1e3 * np.random.default_rng(seed).normal(size=3)

    def dependent(waves):
        return np.column_stack([waves[:, 0], waves[:, 2:5] @ weights, waves[:, 2:]])

    assert 0.0 <= choice(("torque",), dependent).own_share(NAMES, 1, 0.0) < 1e-6
    assert choice(("torque",)).own_share(NAMES, 1, 0.0) == pytest.approx(1.0, abs=0.05)


def test_coefficients_do_not_depend_on_the_size_of_columns():
    sizes = np.array([1.0, 1e7, 1e-6, 1.0, 1e-9, 1.0, 1e4])
    plain = choice(("torque", "stray"))
    best = plain.best()
    scaled = choice(("torque", "stray"), lambda waves: waves * sizes).completed(best)
    for small, large in zip(plain.completed(best), scaled, strict=True):
        np.testing.assert_allclose(large.coefficients * sizes, small.coefficients, rtol=1e-9, atol=1e-9)


def test_a_column_of_zeros_has_no_coefficient():
    def column_is_zero(waves):
        return waves * [1, 1, 1, 1, 1, 1, 0]

    parts = ("torque", "coulomb")
    found = choice(parts, column_is_zero).best()[0]
    assert np.isfinite(found.held_out_rms)
    (found,) = choice(parts, column_is_zero).completed([replace(found, terms=NAMES)])
    expected = [float(name in parts) for name in NAMES]
    np.testing.assert_allclose(found.coefficients, expected, atol=0.01)
