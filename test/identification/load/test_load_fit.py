"""Intervals of loads from few rests hold the truth as often as they say."""

from types import SimpleNamespace

import numpy as np
import pytest

from dynid_ros.identification.equations import EquationBlock
from dynid_ros.identification.load.load_fit import LoadProblem, fit_rests


@pytest.mark.slow
@pytest.mark.parametrize("rests", [5, 8])
def test_intervals_of_few_rests_allow_for_their_degrees_of_freedom(rests):
    """With the quantiles of a normal distribution five rests would hold the truth in 87 % of cases."""
    rng, truth, draws = np.random.default_rng(rests), np.array([1.0, -0.5]), 600
    columns = SimpleNamespace(
        own=np.arange(2), of_arm=np.array([], dtype=int), of_joint=[np.arange(2)] * 3, names=("m", "mcx")
    )
    held = []
    for _ in range(draws):
        rows = [rng.normal(size=(rests, 2)) for _ in range(3)]
        torque = np.column_stack([matrix @ truth for matrix in rows]) + rng.normal(0.0, [0.1, 0.2, 0.3], (rests, 3))
        block = EquationBlock(0, np.arange(float(rests)), np.zeros(rests), None, rows, torque)
        equations = SimpleNamespace(blocks=lambda _, block=block: [block])
        found = fit_rests(LoadProblem(equations, columns, ("a", "b", "c")))
        low, high = found.estimate.confidence_intervals().T
        held += [*((low <= truth) & (truth <= high))]
    assert 0.92 < np.mean(held) < 0.99
