"""Coverage of links, springs, loads and gravity, with selected friction: a small part of `benchmarks/coverage.py`."""

import numpy as np
import pytest
from whole_experiments import ARMS, GAIN_ERROR, draw

from benchmarks.coverage import measure, summarize
from dynid_ros.identification import LinkIdentification

KINDS = ("links", "springs", "loads", "gravity")
"""Kinds of parameters; "gravity" are the moments for gravity compensation."""
SEED = 500
"""First seed; the benchmark does not use it."""
CONDITIONS = [(arm, known) for arm in ARMS for known in (True, False)]
FRICTION = ("coulomb", "viscous", "stribeck", "load", "offset", "spring")
"""Friction terms; they are selected for each recording, and the meaning of a coefficient depends on the other terms."""


@pytest.mark.slow
def test_intervals_cover_the_truth_for_friction_inside_and_outside_the_model():
    outcomes = [measure(arm, known, "exact", SEED + k) for arm, known in CONDITIONS for k in range(4)]
    assert not any(outcome.refused for outcome in outcomes)
    for kind in KINDS:
        count, covered, width = summarize(outcomes, kind)
        assert count >= 30, kind
        assert covered >= 0.9, kind
        # The ideal ratio of half width to RMS error is 1.96.
        assert width < 4.0, kind


@pytest.mark.slow
def test_two_motions_of_one_arm_yield_the_same_links():
    """The differences of base parameters, with friction selected for each motion, are within their intervals."""
    agree = []
    for arm, known in CONDITIONS:
        for seed in range(SEED, SEED + 3):
            experiment = draw(arm, seed, known=known)
            results = [
                LinkIdentification(experiment.robot, torque_gain_error=GAIN_ERROR).fit(run).base_parameters
                for run in experiment.unloaded
            ]
            one, other = (
                {name: (sum(ends) / 2, np.ptp(ends) / 2) for name, ends in zip(r.names, intervals, strict=True)}
                for r in results
                for intervals in [r.confidence_intervals(0.95)]
            )
            for name in one.keys() & other.keys():
                (value, half), (other_value, width) = one[name], other[name]
                if np.isfinite(value + other_value) and name.split()[0] not in FRICTION:
                    agree.append(abs(value - other_value) <= np.hypot(half, width))
    assert len(agree) > 300
    assert np.mean(agree) >= 0.93
