"""Intervals of links, springs, loads and gravity, with chosen friction: a small part of `benchmarks/coverage.py`."""

import numpy as np
import pytest
from whole_experiments import ARMS, GAIN_ERROR, draw

from benchmarks.coverage import measure, summarize
from dynid_ros.identification import LinkIdentification

KINDS = ("links", "springs", "loads", "gravity")
"""Kinds of parameters; "gravity" are the moments for gravity compensation. Intervals of gravity in a pose, a sum of
them, are wider."""
SEED = 500
"""Draws that the benchmark does not make."""
EVERY = [(arm, known) for arm in ARMS for known in (True, False)]
FRICTION = ("coulomb", "viscous", "stribeck", "load", "offset", "spring")
"""Terms; which a joint has is chosen anew from each recording, and a coefficient means something beside the others."""


@pytest.mark.slow
def test_intervals_hold_the_truth_whether_the_model_has_the_friction_or_not():
    found = [measure(arm, known, "exact", SEED + k) for arm, known in EVERY for k in range(4)]
    assert not any(one.refused for one in found)
    for kind in KINDS:
        count, held, width = summarize(found, kind)
        assert count >= 30, kind
        assert held >= 0.9, kind
        # Nor are they so wide that they say nothing: 1.96 is what one needs who knows the errors.
        assert width < 4.0, kind


@pytest.mark.slow
def test_two_motions_of_one_arm_agree_on_its_links():
    """Base parameters with friction that is chosen from each: they differ by no more than their intervals say."""
    agree = []
    for arm, known in EVERY:
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
                (value, half), (again, width) = one[name], other[name]
                if np.isfinite(value + again) and name.split()[0] not in FRICTION:
                    agree.append(abs(value - again) <= np.hypot(half, width))
    assert len(agree) > 300
    assert np.mean(agree) >= 0.93
