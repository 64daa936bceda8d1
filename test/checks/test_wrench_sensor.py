"""Test detection of faulty readings of a force/torque sensor."""

from dataclasses import replace

import numpy as np
import pytest

from dynid_ros.checks.channels import check_wrench, require_sound
from dynid_ros.errors import RecordingError
from dynid_ros.recording import Recording, WrenchSeries

TIME_S = np.arange(0.0, 10.0, 0.01)
MOTION = np.sin(TIME_S)[:, None] * np.ones(2)
RECORDING = Recording(("a", "b"), TIME_S, MOTION, MOTION, MOTION)


def create_readings(rate: float = 100.0) -> WrenchSeries:
    """Return sound readings at a rate in Hz."""
    time = np.arange(0.0, 10.0, 1 / rate)
    shape = 10 * np.sin(np.outer(time, [1.0, 1.3, 0.7, 2.0, 0.4, 1.1]))
    values = np.round(shape + np.random.default_rng(0).normal(0, 0.05, shape.shape), 2)
    return WrenchSeries(time, values[:, :3], values[:, 3:], "tool0")


def change_readings(column: int, rows: slice, value: float) -> WrenchSeries:
    series = create_readings()
    values = np.hstack([series.force, series.torque])
    values[rows, column] = value
    return replace(series, force=values[:, :3], torque=values[:, 3:])


def list_findings(series: WrenchSeries, **settings: object) -> list[str]:
    findings = check_wrench(series, RECORDING, "run, /ft", **settings)
    return [f"{finding.severity}, {finding.kind}: {finding.message}" for finding in findings]


@pytest.mark.parametrize("rate", [20.0, 100.0, 500.0])
def test_sound_readings_have_no_findings(rate):
    assert list_findings(create_readings(rate)) == []
    assert list_findings(create_readings(rate), sensor_range=np.full(6, 50.0)) == []
    require_sound(create_readings(rate), RECORDING, "run, /ft")


def test_accepts_sensors_slower_than_their_topic():
    series = create_readings(20.0)
    repeated = WrenchSeries(TIME_S[:1000], np.repeat(series.force, 5, axis=0), np.repeat(series.torque, 5, axis=0))
    assert list_findings(repeated) == []


def test_reports_saturated_readings():
    series = create_readings()
    high = replace(series, force=np.minimum(series.force, 8.0))
    assert list_findings(high)[0].startswith("error, clipped channel: force x is saturated: ")
    low = replace(series, torque=np.maximum(series.torque, -7.0))
    assert "torque x is saturated" in list_findings(low)[0]
    assert "at -7" in list_findings(low)[0]


def test_reports_readings_beyond_the_sensor_range():
    assert list_findings(create_readings(), sensor_range=[100, 100, 100, 100, 9, 100])[0].startswith(
        "error, clipped channel: torque y is saturated: "
    )


def test_reports_readings_frozen_during_motion():
    series = create_readings()
    rows = slice(300, 350)
    force = series.force.copy()
    torque = series.torque.copy()
    force[rows] = force[300]
    torque[rows] = torque[300]
    stuck = replace(series, force=force, torque=torque)
    assert "stay the same from 3.000 to 3.490 s while the arm moves" in list_findings(stuck)[0]
    still = replace(RECORDING, position=np.zeros_like(MOTION))
    assert list(check_wrench(stuck, still, "run")) == []
    dead = replace(series, force=0 * force, torque=0 * torque)
    assert list_findings(dead) == ["error, constant channel: all its readings are the same"]
    assert list_findings(change_readings(4, slice(None), 0.0)) == [
        "error, constant channel: torque y is 0 in all readings"
    ]


def test_reports_missing_readings():
    assert list_findings(change_readings(1, slice(100, 120), np.nan)) == [
        "warning, missing torque: 20 of 1000 readings are not finite, first at t = 1.000 s"
    ]
    require_sound(change_readings(1, slice(100, 120), np.nan), RECORDING, "run, /ft")
    with pytest.raises(RecordingError, match="run, /ft: 0 finite readings of 1000 are too few"):
        require_sound(change_readings(1, slice(None), np.nan), RECORDING, "run, /ft")
    empty = WrenchSeries(np.empty(0), np.empty((0, 3)), np.empty((0, 3)))
    assert "0 finite readings of 0" in list_findings(empty)[0]


def test_reports_clocks_that_do_not_match():
    series = create_readings()
    assert "time does not increase" in list_findings(replace(series, time=series.time[::-1]))[0]
    for away in (1e9, -1e9, 10.0, -10.0):
        assert "are not of the time of the joint states" in list_findings(replace(series, time=series.time + away))[0]
    for aside in (5.0, -5.0):
        assert list_findings(replace(series, time=series.time + aside)) == []
