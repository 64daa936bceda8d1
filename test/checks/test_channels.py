"""Faults of a wrist sensor's readings."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.checks.channels import check_wrench, require_sound
from dynid_ros.errors import RecordingError
from dynid_ros.recording import Recording, WrenchSeries, check

RATE, N = 200, 4000
RATES = np.array([0.5, 0.7, 0.9])


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(0)
    time = np.arange(N) / RATE
    phase = np.outer(time, RATES)
    q, qd = np.sin(phase), RATES * np.cos(phase)
    noise = rng.normal(size=(3, *q.shape))
    return Recording(planar_arm.JOINTS, time, q + 1e-5 * noise[0], qd + 0.003 * noise[1], noise[2], source="run")


def changed_channel_checks(recording, name, joint, values):
    array = getattr(recording, name).copy()
    array[:, joint] = values
    return replace(recording, **{name: array})


def the_finding(recording):
    (finding,) = check(recording)
    return finding


@pytest.mark.parametrize(("channel", "limit"), [("position", 0.9), ("position", -0.8), ("velocity", 0.6)])
def test_clipped_channels_are_found(clean, channel, limit):
    values = getattr(clean, channel)[:, 1]
    clipped = np.minimum(values, limit) if limit > 0 else np.maximum(values, limit)
    finding = the_finding(changed_channel_checks(clean, channel, 1, clipped))
    assert (finding.severity, finding.kind, finding.where) == ("warning", "clipped channel", "run, joint 'joint_2'")
    assert f"its {channel} is cut off at {limit:g}: {np.sum(clipped == limit)} samples" in finding.message


def test_cruise_at_a_constant_speed_is_not_clipped():
    time = np.arange(N) / RATE
    speed = np.clip(3 * np.sin(0.6 * time), -1, 1)  # exactly at its limit, and so is the motion
    q = np.outer(np.cumsum(speed) / RATE, [1.0, 0.8, 0.6])
    qd = np.outer(speed, [1.0, 0.8, 0.6])
    torque = np.random.default_rng(0).normal(size=q.shape)
    assert check(Recording(planar_arm.JOINTS, time, q, qd, torque)) == []


def test_dwell_at_the_end_of_a_motion_is_not_clipped():
    time = np.arange(N) / RATE
    s = np.clip((time % 5) / 3, 0, 1)
    forth = 10 * s**3 - 15 * s**4 + 6 * s**5
    path = np.where(time % 10 < 5, forth, 1 - forth)
    torque = np.random.default_rng(0).normal(size=(N, 3))
    q = np.outer(path, [1.0, -0.8, 0.6])
    assert check(Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), torque)) == []


def test_a_joint_that_creeps_from_its_rest_is_not_clipped(clean):
    """It leaves an extreme within a sample, but at a hundredth of its speed, as any arm can."""
    before, after = np.maximum(5.0 - clean.time, 0.0), np.maximum(clean.time - 6.0, 0.0)
    q = clean.position.copy()
    q[:, 1] = 0.05 * before**2 + 0.02 * after + 0.02 * after**2 - 1.0
    assert check(replace(clean, position=q, velocity=np.full_like(q, np.nan))) == []


def test_a_move_of_all_joints_that_ends_is_not_clipped():
    """Rounded, and still braking: it stops from one sample to the next, and all others with it."""
    time = np.arange(N) / RATE
    s = np.minimum(time / 15.0, 1.0)
    path = s**2 - 0.5 * s**3
    q = np.round(np.outer(path, [1.0, -0.8, 0.6]), 5)
    torque = np.random.default_rng(0).normal(size=(N, 3))
    assert check(Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), torque)) == []


@pytest.mark.parametrize(
    ("gain", "said"), [(-1.0, "-1 times it"), (np.rad2deg(1.0), "57 times it"), (0.5, "0.5 times")]
)
def test_velocities_of_another_unit_or_sign_are_found(clean, gain, said):
    finding = the_finding(changed_channel_checks(clean, "velocity", 2, gain * clean.velocity[:, 2]))
    assert (finding.severity, finding.kind) == ("warning", "velocity")
    assert said in finding.message


def test_of_two_samples_no_velocities_are_told(clean):
    assert "only 2 samples" in the_finding(clean.slice(slice(0, 80, 40))).message


def test_of_a_joint_that_stands_the_velocity_is_not_looked_at(clean):
    stands = changed_channel_checks(clean, "position", 0, 0.3 + 1e-5 * np.sin(np.arange(N)))
    assert not [
        finding
        for finding in check(changed_channel_checks(stands, "velocity", 0, 0.0))
        if "velocity" in finding.message
    ]


def test_velocity_of_another_joint_is_found(clean):
    finding = the_finding(changed_channel_checks(clean, "velocity", 2, clean.velocity[:, 0]))
    assert "its velocity is not that of its position" in finding.message


TIME = np.arange(0.0, 10.0, 0.01)
MOTION = np.sin(TIME)[:, None] * np.ones(2)
RECORDING = Recording(("a", "b"), TIME, MOTION, MOTION, MOTION)


def sound(rate: float = 100.0) -> WrenchSeries:
    time = np.arange(0.0, 10.0, 1 / rate)
    shape = 10 * np.sin(np.outer(time, [1.0, 1.3, 0.7, 2.0, 0.4, 1.1]))
    values = np.round(shape + np.random.default_rng(0).normal(0, 0.05, shape.shape), 2)
    return WrenchSeries(time, values[:, :3], values[:, 3:], "tool0")


def changed(column: int, rows: slice, value: float) -> WrenchSeries:
    series = sound()
    values = np.hstack([series.force, series.torque])
    values[rows, column] = value
    return replace(series, force=values[:, :3], torque=values[:, 3:])


def findings(series: WrenchSeries, **settings: object) -> list[str]:
    return [
        f"{one.severity}, {one.kind}: {one.message}" for one in check_wrench(series, RECORDING, "run, /ft", **settings)
    ]


@pytest.mark.parametrize("rate", [20.0, 100.0, 500.0])
def test_sound_readings_have_no_faults(rate):
    assert findings(sound(rate)) == []
    assert findings(sound(rate), sensor_range=np.full(6, 50.0)) == []
    require_sound(sound(rate), RECORDING, "run, /ft")


def test_sensor_slower_than_its_topic_is_sound():
    series = sound(20.0)
    repeated = WrenchSeries(TIME[:1000], np.repeat(series.force, 5, axis=0), np.repeat(series.torque, 5, axis=0))
    assert findings(repeated) == []


def test_stuck_at_an_extreme():
    series = sound()
    high = replace(series, force=np.minimum(series.force, 8.0))
    assert findings(high)[0].startswith("error, clipped channel: force x is saturated: ")
    low = replace(series, torque=np.maximum(series.torque, -7.0))
    assert "torque x is saturated" in findings(low)[0]
    assert "at -7" in findings(low)[0]


def test_beyond_the_range_that_is_given():
    assert findings(sound(), sensor_range=[100, 100, 100, 100, 9, 100])[0].startswith(
        "error, clipped channel: torque y is saturated: "
    )


def test_frozen_while_the_arm_moves():
    series = sound()
    rows = slice(300, 350)
    force, torque = series.force.copy(), series.torque.copy()
    force[rows], torque[rows] = force[300], torque[300]
    stuck = replace(series, force=force, torque=torque)
    assert "stay the same from 3.000 to 3.490 s while the arm moves" in findings(stuck)[0]
    still = replace(RECORDING, position=np.zeros_like(MOTION))
    assert list(check_wrench(stuck, still, "run")) == []
    dead = replace(series, force=0 * force, torque=0 * torque)
    assert findings(dead) == ["error, constant channel: all its readings are the same"]
    assert findings(changed(4, slice(None), 0.0)) == ["error, constant channel: torque y is 0 in all readings"]


def test_readings_that_are_missing():
    assert findings(changed(1, slice(100, 120), np.nan)) == [
        "warning, missing torque: 20 of 1000 readings are not finite, first at t = 1.000 s"
    ]
    require_sound(changed(1, slice(100, 120), np.nan), RECORDING, "run, /ft")
    with pytest.raises(RecordingError, match="run, /ft: 0 finite readings of 1000 are too few"):
        require_sound(changed(1, slice(None), np.nan), RECORDING, "run, /ft")
    empty = WrenchSeries(np.empty(0), np.empty((0, 3)), np.empty((0, 3)))
    assert "0 finite readings of 0" in findings(empty)[0]


def test_clocks_that_do_not_fit():
    series = sound()
    assert "time does not increase" in findings(replace(series, time=series.time[::-1]))[0]
    for away in (1e9, -1e9, 10.0, -10.0):
        assert "are not of the time of the joint states" in findings(replace(series, time=series.time + away))[0]
    for aside in (5.0, -5.0):
        assert findings(replace(series, time=series.time + aside)) == []


@pytest.mark.parametrize("size", [0.0, 1e-308, 1e-39, 1e-12])
def test_torques_that_are_practically_zero_in_all_joints_are_none(clean, size):
    finding = the_finding(replace(clean, torque=size * clean.torque))
    assert (finding.severity, finding.kind) == ("error", "missing torque")


@pytest.mark.parametrize("size", [1e-308, 1e-20, 1e-9])
def test_a_torque_that_is_practically_zero_in_one_joint_is_named(clean, size):
    finding = the_finding(changed_channel_checks(clean, "torque", 1, size * clean.torque[:, 1]))
    assert (finding.kind, finding.where) == ("constant channel", "run, joint 'joint_2'")
