"""What a fit of torque sensors says of its degrees of freedom, and of what it leaves open."""

from types import SimpleNamespace

import numpy as np
import pytest
from torque_sensor_bench import CENTER, MASS, Truth, aslant_robot, experiment
from torque_sensor_experiments import FAST, SensorConditions, draw

from dynid_ros.identification import TorqueSensorCalibration
from dynid_ros.identification.torque_sensors import torque_sensor_fit
from dynid_ros.identification.torque_sensors.torque_sensor_fit import freedoms


@pytest.mark.parametrize(("many", "dof"), [(0.4, 4.0), (0.6, 40.0)])
def test_intervals_are_those_of_the_median_degrees_of_freedom(many, dof, monkeypatch):
    """The few unknowns that one rotation decides do not widen all intervals, nor do the others narrow them."""

    def widening(parts, *_):
        size = len(parts.scale)
        return np.ones(size), np.where(np.arange(size) < many * size, 40.0, 4.0)

    monkeypatch.setattr(torque_sensor_fit, "widening", widening)
    robot, rng = aslant_robot(), np.random.default_rng(0)
    samples, loaded = experiment(Truth.draw(rng, robot), rng)
    result = TorqueSensorCalibration(robot, MASS, CENTER).fit_samples(samples, loaded)
    assert result.fit.dof == dof


def test_open_combinations_are_given_in_gains():
    """A sensitivity that changes by ds changes its gain 1/s by -ds/s²."""
    model = SimpleNamespace(names=["sensitivity a", "sensitivity b", "offset a"], index=lambda _: np.array([0, 1]))
    direction = np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0)
    fit = SimpleNamespace(values=np.array([2.0, 0.5, 0.0]), scale=np.ones(3), open=direction[:, None])
    (only,) = freedoms(model, fit)
    assert only.changes == pytest.approx({"gain a": 1.0, "gain b": 16.0})


def test_heavy_friction_leads_to_no_wrong_minimum():
    """It draws gains of the linear start below zero, from where all gains end up a fifth off."""
    trial = draw(SensorConditions("alex", FAST, coulomb=(0.2, 0.9)), 0)
    result = TorqueSensorCalibration(trial.robot, reference_mass=trial.mass).fit_samples(trial.samples, trial.loaded)
    assert np.nanmax(np.abs(result.gain / trial.gain - 1.0)) < 0.05
    low, high = result.confidence_intervals()[: len(trial.gain)].T
    known = np.isfinite(low)
    assert ((low <= trial.gain) & (trial.gain <= high))[known].all()
