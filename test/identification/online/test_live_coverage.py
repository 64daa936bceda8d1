"""Intervals of a load followed live hold the truth: a small part of `benchmarks/live_load_coverage.py`."""

import numpy as np
import pytest
from live_load_experiments import GAIN_ERROR, draw_live

from dynid_ros.identification import LinkIdentification, OnlineIdentification
from dynid_ros.model.friction import JointFriction

EXPERIMENTS = 6
FRICTION = JointFriction(offset=True, smoothing=0.02)


@pytest.mark.slow
def test_intervals_hold_the_truth_though_friction_is_not_the_models():
    """Errors of the arm, of gains, and of friction that repeats, with motions that dwell and motions that repeat."""
    held = []
    for seed in range(EXPERIMENTS):
        experiment = draw_live("ur5", 24.0, 500 + seed)
        links = LinkIdentification(
            experiment.robot, friction=FRICTION, prior_weight=1.0, torque_gain_error=GAIN_ERROR
        ).fit(experiment.unloaded)
        online = OnlineIdentification(experiment.robot, arm=links, torque_gain_error=GAIN_ERROR)
        for sample in zip(experiment.loaded.time, experiment.loaded.position, experiment.loaded.torque, strict=True):
            online.sample(*sample)
        assert online.changes == []
        low, high = online.estimate().load().confidence_intervals().T
        held += [*((low < experiment.load) & (experiment.load < high))]
        # Nor are they so wide that they say nothing.
        assert high[0] - low[0] < 0.5 * experiment.load[0]
    assert len(held) == 10 * EXPERIMENTS
    assert np.mean(held) > 0.85
