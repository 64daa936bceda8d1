"""Repeatability of torques: its interval, with a shifted clock, and refusal of motions that are not repeated."""

import time
from dataclasses import replace

import link_experiment as known
import numpy as np
import pytest
from scipy.signal import lfilter

from dynid_ros.identification.repeated_motion import measure_repeatability
from dynid_ros.identified.links import LinkModel
from dynid_ros.identified.validation import floor_interval, read_repeatability
from dynid_ros.model.friction import FrictionModel
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals

SIGNALS = LinkSignals(7.0, 17.5)
ROBOT, TRUTH = known.build_planar()
NOISE = np.array([0.05, 0.2, 0.1])
LOADED = TRUTH.copy()
LOADED[20:] += [0.5, 0.1, 0, 0, 0.02, 0, 0, 0.02, 0, 0.02]
RATE_HZ = 100.0
NOISE_CORRELATION_S = 0.3


def run(seed, *, shift=0.0, speed=1.0, duration=20.0, links=TRUTH, coulomb=(1.0, 1.0, 1.0), noise=NOISE, period=40.0):
    """Return a recording of sums of sines with coloured noise, from rest to rest, `shift` s later on its own clock."""
    time = np.arange(0, duration + 4, 1 / RATE_HZ)
    phase = speed * (time - shift)
    rng = np.random.default_rng(7)
    motion = np.zeros((3, len(time), 3))
    for harmonic in range(2, 12):
        w = 2 * np.pi * harmonic / period
        angle = w * phase[:, None] + rng.uniform(0, 2 * np.pi, 3)
        size = rng.uniform(-0.6, 0.6, 3) / harmonic**0.5
        motion += size * np.stack([np.sin(angle), speed * w * np.cos(angle), -((speed * w) ** 2) * np.sin(angle)])
    q, qd, qdd = motion
    torque = ROBOT.inverse_dynamics(q, qd, qdd, links) + 0.5 * qd + np.array(coulomb) * np.tanh(qd / 0.05)
    keep = np.exp(-1 / (NOISE_CORRELATION_S * RATE_HZ))
    white = np.random.default_rng(seed).normal(size=(len(time) + 1000, 3))
    coloured = lfilter([np.sqrt(1 - keep**2)], [1, -keep], white, axis=0)[1000:]
    return Recording(ROBOT.joint_names, time, q, qd, torque + noise * coloured, source=f"run_{seed}.csv")


def filtered_noise():
    """Return the RMS (3,) of the noise after the low-pass."""
    keep = np.exp(-1 / (NOISE_CORRELATION_S * RATE_HZ))
    frequency = np.linspace(0, RATE_HZ / 2, 20001)
    from dynid_ros.signals import LowPass  # noqa: PLC0415

    power = (1 - keep**2) / np.abs(1 - keep * np.exp(-2j * np.pi * frequency / RATE_HZ)) ** 2
    return NOISE * np.sqrt(np.mean(power * LowPass(7.0, RATE_HZ).gain(frequency) ** 2))


def test_floor_of_two_shifted_runs_is_the_noise():
    measured = measure_repeatability(ROBOT, SIGNALS, [run(1), run(2, shift=1.2345)])
    assert measured.seconds > 15
    low, high = floor_interval(measured.floor, measured.dof).T
    assert np.all((low < filtered_noise()) & (filtered_noise() < high))
    assert np.all(high / low < 3)
    noise = (measured.floor / run(1).torque.std(axis=0)) ** 2
    np.testing.assert_allclose(1 - measured.explainable, noise, rtol=0.2)


@pytest.mark.slow
def test_intervals_of_the_floor_have_nominal_coverage():
    truth = filtered_noise()
    inside = []
    for seed in range(100):
        measured = measure_repeatability(ROBOT, SIGNALS, [run(2 * seed), run(2 * seed + 1, shift=0.5)])
        low, high = floor_interval(measured.floor, measured.dof).T
        inside.append((low < truth) & (truth < high))
    assert 0.89 <= np.mean(inside) <= 0.985


def test_periods_of_one_recording_are_repetitions():
    measured = measure_repeatability(ROBOT, SIGNALS, [run(3, duration=36.0, period=10.0)])
    assert measured.seconds > 15
    np.testing.assert_allclose(measured.floor, filtered_noise(), rtol=0.4)


def test_residual_of_the_true_model_is_the_floor():
    friction = replace(known.FRICTION, offset=False)
    model = LinkModel(ROBOT, TRUTH, FrictionModel(friction), np.tile([1.0, 0.5], 3), SIGNALS)
    measured = measure_repeatability(ROBOT, SIGNALS, [run(1), run(2, shift=0.3)], model, judged=[1])
    assert measured.total_interval[0] < 1.0 < measured.total_interval[1]


@pytest.mark.parametrize(
    "other", [{"speed": 1.05}, {"links": LOADED}, {"period": 35.0}], ids=["faster", "loaded", "another motion"]
)
def test_different_speed_load_or_motion_is_no_repetition(other):
    assert measure_repeatability(ROBOT, SIGNALS, [run(1), run(2, **other)]) is None


def test_copy_of_a_recording_is_no_repetition():
    one = run(1)
    assert measure_repeatability(ROBOT, SIGNALS, [one, replace(one, source="copy.csv")]) is None


def test_single_change_of_friction_has_few_degrees_of_freedom():
    """A change of temperature does not predict the next one, however long the runs are."""
    measured = measure_repeatability(ROBOT, SIGNALS, [run(1), run(2, coulomb=(1.0, 2.0, 1.0))])
    assert np.isnan(measured.floor[1]) or measured.drift[1] > 0.9
    assert measured.dof[1] < 5 < measured.dof[0]


def test_document_is_read_back():
    measured = measure_repeatability(ROBOT, SIGNALS, [run(1), run(2, shift=0.3)])
    restored = read_repeatability({"repeatability": measured.document()}, ROBOT.joint_names)
    np.testing.assert_allclose(restored.floor, measured.floor)
    assert restored.document() == measured.document()
    assert read_repeatability({}, ROBOT.joint_names) is None


@pytest.mark.slow
def test_an_hour_takes_less_than_a_minute():
    """Only ten of sixty minutes are compared."""
    begin = time.process_time()
    measured = measure_repeatability(ROBOT, SIGNALS, [run(1, duration=3596.0, period=10.0)])
    assert measured.seconds < 600
    assert time.process_time() - begin < 60
