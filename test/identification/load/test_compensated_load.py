"""Loads from torques that a driver has compensated by its own model of the arm, in MuJoCo."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from load_experiments import LoadConditions, draw

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import LoadIdentification
from dynid_ros.model.arm import with_payload
from dynid_ros.model.inertia import from_center_of_mass

MASS = 3.0
CENTER = np.array([0.02, -0.01, 0.08])
LOAD = from_center_of_mass(MASS, CENTER, np.diag([0.012, 0.011, 0.006]))
DECLARED = (2.0, 0.0, 0.0, 0.06)
CONDITIONS = LoadConditions("ur10", duration=20.0)


@cache
def experiment():
    return draw(CONDITIONS, np.random.default_rng(5), load=LOAD)


def compensated_recording(declared=(), light=0.01):
    """Return the recording minus the driver's model, which is too light by a fraction and includes a declared load."""
    recording = experiment().loaded
    robot = experiment().robot
    model = with_payload(robot, declared)
    velocity = np.gradient(recording.position, recording.time, axis=0)
    acceleration = np.gradient(velocity, recording.time, axis=0)
    model_torque = model.inverse_dynamics(recording.position, velocity, acceleration)
    model_torque -= light * robot.inverse_dynamics(recording.position, velocity, acceleration)
    return replace(recording, torque=recording.torque - model_torque)


def test_identifies_the_load():
    result = LoadIdentification(experiment().robot).of_compensated().fit(compensated_recording())
    assert result.mass == pytest.approx(MASS, rel=0.02)
    np.testing.assert_allclose(result.center, CENTER, atol=0.01)
    assert any("driver's own model" in remark for remark in result.remarks)


def test_intervals_cover_the_load_with_an_exact_driver_model():
    result = LoadIdentification(experiment().robot).of_compensated().fit(compensated_recording(light=0.0))
    low, high = result.confidence_intervals(0.99).T
    assert np.all((low <= LOAD) & (high >= LOAD))


def test_adds_the_declared_load_and_reports_its_error():
    result = LoadIdentification(experiment().robot).of_compensated(DECLARED).fit(compensated_recording(DECLARED))
    assert result.mass == pytest.approx(MASS, rel=0.02)
    np.testing.assert_allclose(result.center, CENTER, atol=0.01)
    remark = next(remark for remark in result.remarks if "declared to the driver" in remark)
    assert "of this 2 kg" in remark
    assert float(remark.split("off by ")[1].split()[0]) == pytest.approx(1.0, abs=0.06)


def test_suggests_a_declared_load_for_a_negative_mass():
    """The remaining load is negative if more is declared than attached."""
    too_much = (5.0, 0.0, 0.0, 0.06)
    with pytest.raises(IdentificationError, match=r"below zero beyond doubt. Does the driver compensate for a payload"):
        LoadIdentification(experiment().robot).of_compensated().fit(compensated_recording(too_much))
    result = LoadIdentification(experiment().robot).of_compensated(too_much).fit(compensated_recording(too_much))
    assert result.mass == pytest.approx(MASS, rel=0.03)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arm": "unknown"}, "arm is 'unknown'; expected a model of the arm, 'compensated' or None"),
        ({"declared": LOAD}, "give it with the arm 'compensated'"),
    ],
)
def test_refuses_invalid_settings(settings, message):
    with pytest.raises(IdentificationError, match=message):
        LoadIdentification(experiment().robot, **settings)
