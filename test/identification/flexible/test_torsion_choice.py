"""Selection of torsion terms, from columns with known contributions to the torsion."""

from dataclasses import replace

import numpy as np
import pytest

from dynid_ros.identification.flexible.torsion_choice import MAX_OPTIONAL_TERMS, TermChoice, TorsionRows
from dynid_ros.identification.flexible.torsion_terms import Term

N_SAMPLES = 3000
NAMES = ("velocity", "torque", "acceleration", "coulomb", "ripple", "stray", "other")


def select_terms(parts, columns=lambda waves: waves):
    """Return the selection for a torsion that is a sum of the waves `parts`, with noise of a thousandth."""
    rng = np.random.default_rng(0)
    time = np.arange(N_SAMPLES) / 250
    waves = np.stack([np.sin((1.3 + 1.7 * i) * time + rng.uniform(0, 6)) for i in range(len(NAMES))], axis=1)
    torsion = sum(waves[:, NAMES.index(name)] for name in parts) + 1e-3 * rng.normal(size=N_SAMPLES)
    rows = TorsionRows(
        columns(waves), torsion, np.zeros(N_SAMPLES, dtype=int), waves[:, 0], np.gradient(waves[:, 0], time)
    )
    return TermChoice(rows, [Term(name, "rad") for name in NAMES])


def test_selects_the_complete_set_of_terms():
    parts = ("torque", "coulomb", "stray", "other")
    assert len(parts) == MAX_OPTIONAL_TERMS
    (best,) = select_terms(parts).best()
    assert set(best.terms) == {"velocity", *parts}
    assert best.held_out_rms == pytest.approx(1e-3, rel=0.1)


@pytest.mark.parametrize("seed", range(12))
def test_dependent_column_has_no_share(seed):
    """The share of a linear combination of other columns is zero up to rounding."""
    weights = 1e3 * np.random.default_rng(seed).normal(size=3)

    def dependent(waves):
        return np.column_stack([waves[:, 0], waves[:, 2:5] @ weights, waves[:, 2:]])

    assert 0.0 <= select_terms(("torque",), dependent).own_share(NAMES, 1, 0.0) < 1e-6
    assert select_terms(("torque",)).own_share(NAMES, 1, 0.0) == pytest.approx(1.0, abs=0.05)


def test_coefficients_are_independent_of_column_scaling():
    sizes = np.array([1.0, 1e7, 1e-6, 1.0, 1e-9, 1.0, 1e4])
    plain = select_terms(("torque", "stray"))
    best = plain.best()
    scaled = select_terms(("torque", "stray"), lambda waves: waves * sizes).completed(best)
    for small, large in zip(plain.completed(best), scaled, strict=True):
        np.testing.assert_allclose(large.coefficients * sizes, small.coefficients, rtol=1e-9, atol=1e-9)


def test_zero_column_has_zero_coefficient():
    def column_is_zero(waves):
        return waves * [1, 1, 1, 1, 1, 1, 0]

    parts = ("torque", "coulomb")
    selection = select_terms(parts, column_is_zero).best()[0]
    assert np.isfinite(selection.held_out_rms)
    (selection,) = select_terms(parts, column_is_zero).completed([replace(selection, terms=NAMES)])
    expected = [float(name in parts) for name in NAMES]
    np.testing.assert_allclose(selection.coefficients, expected, atol=0.01)
