"""Preparation of recordings for the fit: decimation, moving samples, and compared frequencies."""

from dataclasses import replace

import numpy as np
import pytest
from flexible_experiments import single_joint, single_joint_motion
from pa10 import table_one

from dynid_ros.identification.flexible.runs import highest_line, moving_rows, runs
from dynid_ros.recording import Recording
from dynid_ros.signals import Motion, choose_cutoff

FAST_RATE_HZ = 1000.0


@pytest.fixture(scope="module")
def fast_recording():
    """Return a recording of joint 2 at 1 kHz, 8 s, with noise of motors and torques, and the exact signals."""
    series, links = single_joint_motion(2)[:2]
    row = table_one(2)
    time = np.arange(round(8 * FAST_RATE_HZ)) / FAST_RATE_HZ
    motor, velocity, acceleration = series.at(time)
    link = links.at(time, settled=True)
    torque = row.stiffness * (motor - link) + row.motor_inertia * acceleration + row.motor_viscous * velocity
    rng = np.random.default_rng(0)
    noisy_motor = motor + 2e-4 * rng.standard_normal(motor.shape)
    noisy_torque = torque + 2.0 * rng.standard_normal(torque.shape)
    recording = Recording(
        ("joint_2",), time, noisy_motor, np.full_like(motor, np.nan), noisy_torque, link_position=link
    )
    return recording, motor, torque


def test_decimates_fast_recordings(fast_recording):
    recording, motor, torque = fast_recording
    (run,) = runs(recording, recording.time, recording.link_position, same_clock=True)
    assert run.step == pytest.approx(0.004)
    rows = np.rint(run.time * FAST_RATE_HZ).astype(int)
    np.testing.assert_allclose(run.motor.position, motor[rows], atol=1e-4)
    noise = run.torque - torque[rows]
    # The remaining white noise is the share below the new Nyquist frequency.
    assert 0.35 * 2.0 < noise.std() < 0.55 * 2.0


def test_missing_torques_stay_missing(fast_recording):
    recording, motor, _ = fast_recording
    without = replace(recording, torque=np.full_like(motor, np.nan))
    (run,) = runs(without, recording.time, recording.link_position, same_clock=True)
    assert np.isnan(run.torque).all()
    np.testing.assert_allclose(run.motor.position, motor[np.rint(run.time * FAST_RATE_HZ).astype(int)], atol=1e-4)


def test_finds_the_harmonics_of_a_periodic_motion(fast_recording):
    recording, *_ = fast_recording
    (run,) = runs(recording, recording.time, recording.link_position, same_clock=True)
    np.testing.assert_allclose(run.compared.tones / (2 * np.pi), np.arange(1, 6), rtol=1e-9)
    duration = run.step * (run.compared.window.stop - run.compared.window.start)
    assert duration == pytest.approx(round(duration), abs=run.step)
    assert run.motor_noise == pytest.approx(2e-4 / 2, rel=0.1)


def test_nonperiodic_motion_has_no_lines():
    experiment = single_joint(2)
    time = experiment.time
    rng = np.random.default_rng(1)
    wandering = np.cumsum(np.cumsum(rng.standard_normal((len(time), 1)), axis=0), axis=0)
    wandering *= 0.5 / np.ptp(wandering)
    recording = replace(experiment.recording, position=experiment.motor + wandering)
    (run, *_) = runs(recording, experiment.link_time, experiment.link, same_clock=True)
    assert not len(run.compared.lines)
    assert not len(run.compared.tones)
    assert len(run.compared.bins) > 3


def motion(velocity: np.ndarray) -> Motion:
    return Motion(np.zeros_like(velocity), velocity, np.zeros_like(velocity))


def test_moving_rows_span_from_start_to_stop():
    time = np.arange(0, 20, 1 / FAST_RATE_HZ)
    velocity = np.stack([np.sin(5 * time), 1e-3 * np.cos(4 * time), 0 * time], axis=1)
    velocity[(time < 4) | (time > 15)] = 0.0
    velocity[(time > 8) & (time < 9)] = 0.0  # a reversal, or a rest during the motion
    rows = moving_rows(motion(velocity), FAST_RATE_HZ)
    assert time[rows][0] == pytest.approx(4.0, abs=0.5)
    assert time[rows][-1] == pytest.approx(15.0, abs=0.5)


def test_moving_rows_include_those_of_slow_joints():
    time = np.arange(0, 20, 1 / FAST_RATE_HZ)
    velocity = np.stack([np.where(time < 10, 2 * np.sin(5 * time), 0), np.where(time > 10, 1e-3, 0)], axis=1)
    rows = moving_rows(motion(velocity), FAST_RATE_HZ)
    assert time[rows][0] < 0.6
    assert time[rows][-1] == time[-1]


@pytest.mark.parametrize("size", [1, 7, 50])
def test_moving_rows_of_rest_and_of_short_motion(size):
    still = np.zeros((size, 2))
    assert moving_rows(motion(still), FAST_RATE_HZ) == slice(0, 0)
    assert moving_rows(motion(still + 1.0), FAST_RATE_HZ) == slice(0, size)


@pytest.mark.parametrize("noise_deg", [0.002, 0.02])
@pytest.mark.parametrize("lines", [(1.0, 3.0, 5.0, 7.0, 9.0), (0.4, 6.0, 8.0)])
def test_band_reaches_the_highest_of_few_lines(lines, noise_deg):
    """Between the lines the spectrum falls to the noise level, which is not the end of the motion's band."""
    rng = np.random.default_rng(4)
    time = np.arange(0, 16.0, 0.004)
    motor = sum(0.2 / line * np.sin(2 * np.pi * line * time + rng.uniform(0, 6)) for line in lines)[:, None]
    motor = motor + np.deg2rad(noise_deg) * rng.standard_normal(motor.shape)
    recording = Recording(("joint_1",), time, motor, np.full_like(motor, np.nan), motor.copy(), link_position=motor)
    (run,) = runs(recording, time, motor, same_clock=True)
    assert run.band > 1.2 * lines[-1]


def test_band_of_many_lines_is_that_of_their_spectrum():
    rng = np.random.default_rng(5)
    time = np.arange(0, 16.0, 0.004)
    motor = sum(0.2 / k * np.sin(2 * np.pi * k * time + rng.uniform(0, 6)) for k in range(1, 9))[:, None]
    motor = motor + 1e-4 * rng.standard_normal(motor.shape)
    assert highest_line(motor, 250.0) < choose_cutoff(motor, 250.0).low_pass.cutoff


def test_noise_alone_has_no_lines():
    assert highest_line(np.random.default_rng(6).standard_normal((4000, 2)), 250.0) == 0.0


def test_compared_frequencies_cover_the_motion():
    time = np.arange(0, 16.0, 0.004)
    waves = np.sin(2 * np.pi * 1.03 * time) + 0.05 * np.sin(2 * np.pi * 5.1 * time)
    moving = 0.5 * (np.sin(np.pi * time / 16) ** 2 * waves)[:, None]

    def frequencies(position):
        names = tuple(f"joint_{j}" for j in range(position.shape[1]))
        recording = Recording(names, time, position, np.full_like(position, np.nan), position, link_position=position)
        (run,) = runs(recording, time, position, same_clock=True)
        return run.compared.bins / (run.step * len(run.time))

    compared = frequencies(moving)
    for line in (1.03, 5.1):
        assert np.count_nonzero(np.abs(compared - line) < 0.3) >= 5
    assert not np.any((compared > 5.9) & (compared < 10.0))
    for rest in (0.0, 1.0):
        np.testing.assert_array_equal(frequencies(np.hstack([moving, np.full_like(moving, rest)])), compared)


def test_frequencies_where_noise_exceeds_the_acceleration_are_not_compared():
    """Motors that do not return have positions, but no accelerations, at all frequencies."""
    rng = np.random.default_rng(7)
    time = np.arange(0, 12.0, 0.004)
    waves = sum(0.2 / k**2 * np.sin(2 * np.pi * k * 0.93 * time + rng.uniform(0, 6)) for k in range(1, 9))
    motor = (waves + 0.1 * (time / 12.0) ** 3)[:, None]
    motor = motor + np.deg2rad(0.03) * rng.standard_normal(motor.shape)
    recording = Recording(("joint_1",), time, motor, np.full_like(motor, np.nan), motor, link_position=motor)
    (run,) = runs(recording, time, motor, same_clock=True, band=40.0)
    assert not len(run.compared.lines)
    compared = run.compared.bins / (run.step * len(run.time))
    for k in range(1, 9):
        assert np.abs(compared - 0.93 * k).min() < 0.1
    assert np.mean(compared > 15.0) < 0.1
    (chosen,) = runs(recording, time, motor, same_clock=True)
    assert 0.93 * 8 - 0.1 < chosen.band < 15.0  # the low-pass of the motors ends where their noise begins
