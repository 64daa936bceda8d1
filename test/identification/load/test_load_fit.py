"""Coverage of load intervals from few static poses."""

from types import SimpleNamespace

import numpy as np
import pytest

from dynid_ros.identification.equations import EquationBlock
from dynid_ros.identification.load.load_fit import LoadProblem, fit_rests


@pytest.mark.slow
@pytest.mark.parametrize("rests", [5, 8])
def test_intervals_of_few_static_poses_have_nominal_coverage(rests):
    """Quantiles of the normal distribution would give a coverage of 87 % for five poses."""
    rng = np.random.default_rng(rests)
    truth = np.array([1.0, -0.5])
    columns = SimpleNamespace(
        own=np.arange(2), of_arm=np.array([], dtype=int), of_joint=[np.arange(2)] * 3, names=("m", "mcx")
    )
    covered = []
    for _ in range(600):
        rows = [rng.normal(size=(rests, 2)) for _ in range(3)]
        torque = np.column_stack([matrix @ truth for matrix in rows]) + rng.normal(0.0, [0.1, 0.2, 0.3], (rests, 3))
        block = EquationBlock(0, np.arange(float(rests)), np.zeros(rests), None, rows, torque)
        equations = SimpleNamespace(blocks=lambda _, block=block: [block])
        fit = fit_rests(LoadProblem(equations, columns, ("a", "b", "c")))
        low, high = fit.estimate.confidence_intervals().T
        covered += [*((low <= truth) & (truth <= high))]
    assert 0.92 < np.mean(covered) < 0.99
