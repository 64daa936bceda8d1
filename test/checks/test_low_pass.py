"""Test detection of low-passed signals, and friction that builds up after a reversal."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import planar_arm
import pytest
from scipy.signal import butter, filtfilt

from dynid_ros.checks.finding import LOW_PASSED
from dynid_ros.checks.low_pass import check_contents, check_steep_end, shows_in_rigid_torques
from dynid_ros.checks.motion_samples import (
    PRESLIDING_DISTANCES,
    TORQUE_CUTOFF_RATIO,
    MotionSamples,
    Stretch,
    motion_samples,
)
from dynid_ros.checks.torque_model import TorqueFit, TorqueTerms, with_presliding
from dynid_ros.identification import LinkIdentification
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.signals import LowPass


@pytest.mark.parametrize(("cutoff", "reported"), [(2.5, True), (None, False)])
def test_reports_signals_without_noise_above_the_motion(cutoff, reported):
    rng = np.random.default_rng(0)
    motion = np.sin(np.outer(np.arange(6000) / 100.0, [3.0, 4.0, 5.0]))
    position = motion + 1e-5 * rng.normal(size=motion.shape)
    torque = motion + 0.1 * rng.normal(size=motion.shape)
    if cutoff:
        position, torque = (LowPass(cutoff, 100.0).filter(values) for values in (position, torque))
    time = np.arange(6000) / 100.0
    recording = Recording(planar_arm.JOINTS, time, position, np.full_like(motion, np.nan), torque, source="run")
    samples = motion_samples([recording])
    assert 0.7 < samples.bandwidth < 2.5
    findings = list(check_contents(samples, "run"))
    assert [finding.kind for finding in findings] == ([LOW_PASSED] if reported else [])


RATE_HZ = 200.0
CUTOFF_HZ = 8.0
ROWS = slice(100, 700, 3)


def test_presliding_friction_matches_dahl_and_is_low_passed():
    """Friction approaches one by exp(-displacement / distance) after each reversal at 0.1 rad/s."""
    time = np.arange(801) / RATE_HZ
    displacement = 0.1 * np.where(time <= 2.0, time, time - 2.0)
    position = np.where(time <= 2.0, displacement, 0.2 - displacement)[:, None]
    still = np.zeros_like(position)
    velocity = np.full_like(position, 0.1)
    stretch = Stretch(0, time, position, velocity, still, still, still, ROWS)
    uniform = SimpleNamespace(segments=[SimpleNamespace(values=np.hstack([position, position]))])
    samples = MotionSamples({0: uniform}, [stretch], CUTOFF_HZ / TORQUE_CUTOFF_RATIO)
    velocity = velocity[ROWS]
    nothing = np.zeros((len(velocity), 1, 0))
    terms = with_presliding(TorqueTerms(nothing, nothing, velocity, velocity, np.zeros(1)), samples)
    for k, distance in enumerate(PRESLIDING_DISTANCES):
        remaining = np.exp(-displacement / distance)
        friction = np.where(time <= 2.0, 1.0 - remaining, 2.0 * remaining - 1.0)
        expected = LowPass(CUTOFF_HZ, RATE_HZ).filter(friction[:, None])[ROWS]
        np.testing.assert_allclose(terms.drive[:, :, k], expected, atol=0.02)
    np.testing.assert_allclose(terms.rigid[:, 0], np.column_stack([np.zeros(len(velocity)), velocity]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("rms", "reported"),
    [([0.1], True), ([1.0], False), ([0.1, 0.1], True), ([0.1, 1.0], False), ([0.1, np.nan], False)],
)
def test_torque_changes_must_show_in_two_joints_or_the_only_one(rms, reported):
    n = len(rms)
    fit = TorqueFit(np.array(rms), np.zeros(n), np.zeros(0), np.zeros(n), np.zeros((n, 0)))
    moving = np.tile(np.isfinite(rms), (50, 1))
    assert shows_in_rigid_torques(np.ones((50, n)), np.zeros((50, n)), fit, moving) is reported


@pytest.mark.parametrize("rate", [25.0, 33.0, 50.0])
def test_half_of_a_low_rate_is_not_a_low_pass(rate):
    """The band of the slow motion ends just below half the rate; noise extends to half the rate."""
    rng = np.random.default_rng(0)
    time = np.arange(0.0, 60.0, 1 / rate)
    q = np.sin(np.outer(time, [1.0, 1.7, 2.9]))
    q[:, 0] += 0.2 * np.sin(2 * np.pi * 4.0 * time)
    torque = planar_arm.holding_torque(q) + rng.normal(0, 0.05, q.shape)
    recording = Recording(planar_arm.JOINTS, time, q + rng.normal(0, 1e-4, q.shape), np.full_like(q, np.nan), torque)
    samples = motion_samples([recording])
    assert list(check_contents(samples, "run")) == []


def zero_phase_recording(cutoff, position_noise=1e-5):
    """Slow motion with little dry friction, whose torques pass a zero-phase Butterworth low-pass of order 5."""
    robot = RobotModel.from_urdf(planar_arm.urdf())
    rng = np.random.default_rng(5)
    time = np.arange(4000) / 200.0
    motion = np.zeros((3, len(time), 3))
    for joint, harmonic in product(range(3), (1, 2, 3, 5)):
        rate = 2 * np.pi * 0.1 * harmonic
        phase = rng.uniform(0.0, 2 * np.pi)
        for order in range(3):
            motion[order, :, joint] += 0.4 / harmonic * rate**order * np.sin(rate * time + phase + order * np.pi / 2)
    torque = robot.inverse_dynamics(*motion) + [0.04, 0.08, 0.04] * np.tanh(motion[1] / 0.002)
    torque += 0.003 * rng.normal(size=torque.shape)
    if cutoff:
        torque = filtfilt(*butter(5, cutoff / 100.0), torque, axis=0)
    position = motion[0] + position_noise * rng.normal(size=torque.shape)
    return robot, Recording(planar_arm.JOINTS, time, position, np.full_like(torque, np.nan), torque, source="run")


@pytest.mark.parametrize(
    ("cutoff", "position_noise", "reported"),
    [(3.0, 1e-5, True), (1.5, 1e-5, True), (None, 1e-5, False), (25.0, 1e-5, False), (3.0, 0.0, False)],
)
def test_reports_torques_that_end_where_positions_have_noise(cutoff, position_noise, reported):
    _, recording = zero_phase_recording(cutoff, position_noise)
    findings = list(check_steep_end(motion_samples([recording]), "run"))
    assert [finding.kind for finding in findings] == ([LOW_PASSED] if reported else [])


def test_links_find_a_zero_phase_filter_far_above_the_motion():
    robot, recording = zero_phase_recording(3.0)
    driver = LinkIdentification(robot).fit(recording).model.signals.driver
    assert driver.zero_phase
    assert driver.cutoff == pytest.approx(2.8, rel=0.15)
    assert LinkIdentification(robot).fit(zero_phase_recording(None)[1]).model.signals.driver is None
