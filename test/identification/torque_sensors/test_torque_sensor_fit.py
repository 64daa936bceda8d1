"""Degrees of freedom, undetermined directions and local minima of torque sensor fits."""

from types import SimpleNamespace

import numpy as np
import pytest
from torque_sensor_bench import CENTER, MASS, Truth, aslant_robot, experiment
from torque_sensor_experiments import FAST, SensorConditions, draw

from dynid_ros.identification import TorqueSensorCalibration
from dynid_ros.identification.torque_sensors import torque_sensor_fit
from dynid_ros.identification.torque_sensors.torque_sensor_fit import freedoms


@pytest.mark.parametrize(("many", "dof"), [(0.4, 4.0), (0.6, 40.0)])
def test_intervals_use_the_median_degrees_of_freedom(many, dof, monkeypatch):
    """Few unknowns with other degrees of freedom, determined by one rotation, do not affect all intervals."""

    def widening(parts, *_):
        size = len(parts.scale)
        return np.ones(size), np.where(np.arange(size) < many * size, 40.0, 4.0)

    monkeypatch.setattr(torque_sensor_fit, "widening", widening)
    robot = aslant_robot()
    rng = np.random.default_rng(0)
    samples, loaded = experiment(Truth.draw(rng, robot), rng)
    result = TorqueSensorCalibration(robot, MASS, CENTER).fit_samples(samples, loaded)
    assert result.fit.dof == dof


def test_undetermined_directions_are_stated_in_gains():
    """A change ds of a sensitivity s changes the gain 1/s by -ds/s²."""
    model = SimpleNamespace(names=["sensitivity a", "sensitivity b", "offset a"], index=lambda _: np.array([0, 1]))
    direction = np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0)
    fit = SimpleNamespace(values=np.array([2.0, 0.5, 0.0]), scale=np.ones(3), open=direction[:, None])
    (freedom,) = freedoms(model, fit)
    assert freedom.changes == pytest.approx({"gain a": 1.0, "gain b": 16.0})


def test_heavy_friction_causes_no_local_minimum():
    """Friction makes gains of the linear start negative, from where all gains would end with errors of a fifth."""
    trial = draw(SensorConditions("alex", FAST, coulomb=(0.2, 0.9)), 0)
    result = TorqueSensorCalibration(trial.robot, reference_mass=trial.mass).fit_samples(trial.samples, trial.loaded)
    assert np.nanmax(np.abs(result.gain / trial.gain - 1.0)) < 0.05
    low, high = result.confidence_intervals()[: len(trial.gain)].T
    finite = np.isfinite(low)
    assert ((low <= trial.gain) & (trial.gain <= high))[finite].all()
