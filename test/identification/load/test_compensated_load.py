"""Loads from what a driver's own model of the arm leaves of MuJoCo's torques."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from load_experiments import LoadConditions, draw

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import LoadIdentification
from dynid_ros.model.arm import with_payload
from dynid_ros.model.inertia import from_center_of_mass

MASS, CENTER = 3.0, np.array([0.02, -0.01, 0.08])
LOAD = from_center_of_mass(MASS, CENTER, np.diag([0.012, 0.011, 0.006]))
DECLARED = (2.0, 0.0, 0.0, 0.06)
CONDITIONS = LoadConditions("ur10", duration=20.0)


@cache
def experiment():
    return draw(CONDITIONS, np.random.default_rng(5), load=LOAD)


def left(declared=(), light=0.01):
    """As the driver reports it: less its model of the arm, too light by a part, and less what was declared to it."""
    recording, robot = experiment().loaded, experiment().robot
    own = with_payload(robot, declared)
    velocity = np.gradient(recording.position, recording.time, axis=0)
    acceleration = np.gradient(velocity, recording.time, axis=0)
    own_torque = own.inverse_dynamics(recording.position, velocity, acceleration)
    own_torque -= light * robot.inverse_dynamics(recording.position, velocity, acceleration)
    return replace(recording, torque=recording.torque - own_torque)


def test_three_kilograms_are_found():
    found = LoadIdentification(experiment().robot).of_compensated().fit(left())
    assert found.mass == pytest.approx(MASS, rel=0.02)
    np.testing.assert_allclose(found.center, CENTER, atol=0.01)
    assert any("driver's own model" in remark for remark in found.remarks)


def test_intervals_hold_the_load_where_the_driver_knows_its_arm():
    found = LoadIdentification(experiment().robot).of_compensated().fit(left(light=0.0))
    low, high = found.confidence_intervals(0.99).T
    assert np.all((low <= LOAD) & (high >= LOAD))


def test_what_was_declared_to_the_driver_is_added_and_its_error_is_told():
    found = LoadIdentification(experiment().robot).of_compensated(DECLARED).fit(left(DECLARED))
    assert found.mass == pytest.approx(MASS, rel=0.02)
    np.testing.assert_allclose(found.center, CENTER, atol=0.01)
    remark = next(remark for remark in found.remarks if "declared to the driver" in remark)
    assert "of this 2 kg" in remark
    assert float(remark.split("off by ")[1].split()[0]) == pytest.approx(1.0, abs=0.06)


def test_more_declared_than_there_is_asks_for_it():
    """Of what is left alone the load is lighter than nothing."""
    too_much = (5.0, 0.0, 0.0, 0.06)
    with pytest.raises(IdentificationError, match=r"below zero beyond doubt. Does the driver compensate for a payload"):
        LoadIdentification(experiment().robot).of_compensated().fit(left(too_much))
    found = LoadIdentification(experiment().robot).of_compensated(too_much).fit(left(too_much))
    assert found.mass == pytest.approx(MASS, rel=0.03)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"arm": "unknown"}, "arm is 'unknown'; expected a model of the arm, 'compensated' or None"),
        ({"declared": LOAD}, "give it with the arm 'compensated'"),
    ],
)
def test_what_cannot_be_is_refused(settings, said):
    with pytest.raises(IdentificationError, match=said):
        LoadIdentification(experiment().robot, **settings)
