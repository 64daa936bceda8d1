"""Fault detection for wrist force sensors; sound sensors on elastic arms are accepted."""

import re

import numpy as np
import pytest

pytest.importorskip("pinocchio")
from static_wrench_arms import FAULTS, add_fault, held_load

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import LoadIdentification, LoadResult
from dynid_ros.identification.load.driver_settings import driver_settings
from dynid_ros.identification.load.wrench_source import WrenchSource
from dynid_ros.identification.wrench_faults import (
    MAX_NOISE_RATIO,
    MAX_UNEXPLAINED_FRACTION,
    LinearReadings,
    find_faults,
    refuse_unexplained,
)

DEFLECTION = 1e-3
SEEDS = range(300, 304)


def identify_load(fault: str, seed: int) -> LoadResult:
    """Return the load identified with a faulty sensor in static poses."""
    held = held_load(seed, deflection=DEFLECTION)
    rng = np.random.default_rng(seed)
    sensed, readings = add_fault(held, fault, rng)
    return LoadIdentification(held.robot, sensor=WrenchSource(), motion="static").fit(sensed.record(readings, rng))


@pytest.mark.parametrize("seed", SEEDS)
def test_accepts_a_sound_sensor(seed):
    result = identify_load("none", seed)
    assert result.faults == ()
    assert driver_settings(result)


def fault_message(fault: str, seed: int) -> str:
    """Return the remark or the refusal on a faulty sensor."""
    try:
        return identify_load(fault, seed).faults[0]
    except IdentificationError as error:
        return str(error)


@pytest.mark.parametrize("fault", [*FAULTS])
@pytest.mark.parametrize("seed", SEEDS)
def test_names_the_fault(fault, seed):
    assert re.search(FAULTS[fault], fault_message(fault, seed))


def test_refuses_driver_settings_of_a_drifting_sensor():
    results = [
        identify_load("drift", seed) for seed in SEEDS if fault_message("drift", seed).startswith("the sensor's")
    ]
    assert results
    for result in results:
        with pytest.raises(IdentificationError, match="no settings for drivers: the sensor's bias drifts"):
            driver_settings(result)


def static_readings(change: np.ndarray, seed: int = 0) -> LinearReadings:
    """Return the readings of a load of 2 kg in 30 static poses, plus a change (30, 6)."""
    rng = np.random.default_rng(seed)
    gravity = rng.normal(size=(30, 3))
    a = 9.81 * gravity / np.linalg.norm(gravity, axis=1, keepdims=True)
    wrench = np.hstack([2.0 * a, np.cross([0.02, -0.04, 0.2], a)]) + rng.normal(0.0, 0.01, (30, 6)) + change
    empty = np.empty((30, 0))
    return LinearReadings(np.arange(30.0), np.zeros(30), a, (empty, empty), wrench)


def test_refuses_a_jump_of_the_bias_above_a_size():
    jump = (np.arange(30) >= 14)[:, None] * [1.0, 0, 0, 0, 0, 0]
    assert find_faults(static_readings(0.3 * jump), "run", 0.005) is None
    with pytest.raises(IdentificationError, match=r"bias changed at about t = 13\.5 s, force x by 3"):
        find_faults(static_readings(3.0 * jump), "run", 0.005)


@pytest.mark.parametrize(("size", "expected"), [(0.5, "none"), (3.0, "allowed for"), (9.0, "refused")])
def test_models_a_drift_up_to_a_size(size, expected):
    readings = static_readings(size * np.linspace(0.0, 1.0, 30)[:, None] * [0, 0, 1.0, 0, 0, 0])
    if expected == "refused":
        with pytest.raises(IdentificationError, match=r"bias drifts \(force z by 9"):
            find_faults(readings, "run", 0.005)
        return
    drift = find_faults(readings, "run", 0.005)
    assert (drift is not None) == (expected == "allowed for")
    if drift is not None:
        assert drift.sizes[2] == pytest.approx(3.0, abs=0.1)


@pytest.mark.parametrize("axis", range(3))
def test_refuses_gain_differences_above_a_size(axis):
    readings = static_readings(np.zeros((30, 6)))
    readings.wrench[:, axis] *= 1.02
    assert find_faults(readings, "run", 0.005) is None
    readings.wrench[:, axis] *= 0.9 / 1.02
    with pytest.raises(IdentificationError, match=r"reads 0\.90 of what the other axes read"):
        find_faults(readings, "run", 0.005)


def test_refuses_a_load_change_between_poses():
    readings = static_readings(np.zeros((30, 6)))
    readings.wrench[16:] *= 1.5
    with pytest.raises(IdentificationError, match=r"the load changed at about t = 15\.5 s"):
        find_faults(readings, "run", 0.005)


def test_few_poses_or_no_load_have_no_fault():
    readings = static_readings(np.zeros((30, 6)))
    few = LinearReadings(
        readings.time[:5], np.zeros(5), readings.acceleration[:5], (np.empty((5, 0)),) * 2, readings.wrench[:5]
    )
    assert find_faults(few, "run", 0.005) is None
    readings.wrench[:] = np.random.default_rng(1).normal(0.0, 0.01, (30, 6))
    assert find_faults(readings, "run", 0.005) is None


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_refuses_readings_that_no_load_explains(factor):
    size = np.full(6, 2.0)
    noise = np.full(6, 0.01)
    residual = factor * MAX_UNEXPLAINED_FRACTION * size
    noisy = residual / MAX_NOISE_RATIO * 1.25
    refuse_unexplained(residual, size, noisy, "run")
    if factor < 1.0:
        refuse_unexplained(residual, size, noise, "run")
        return
    with pytest.raises(IdentificationError, match="no load explains the readings: a residual of"):
        refuse_unexplained(residual, size, noise, "run")


@pytest.mark.slow
@pytest.mark.parametrize("gain_error", [0.0, 0.005])
def test_intervals_cover_the_load_of_elastic_arms(gain_error):
    covered = []
    for seed in range(400, 420):
        experiment = held_load(seed, 12, DEFLECTION)
        rng = np.random.default_rng(seed)
        recording = experiment.record(experiment.readings(rng, gain_error), rng)
        sensor = WrenchSource(gain_error=gain_error)
        result = LoadIdentification(experiment.robot, sensor=sensor, motion="static").fit(recording)
        low, high = result.confidence_intervals()[:4].T
        covered += [*((low <= experiment.load[:4]) & (experiment.load[:4] <= high))]
    assert np.mean(covered) > 0.88
