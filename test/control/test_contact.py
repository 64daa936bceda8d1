"""Test contact detection: rates of false alarms, calibration, and pushes."""

import math

import numpy as np
import pytest
from helpers.known_arm import BANDWIDTH, build_model, make_motion
from planar_arm import urdf as planar_urdf

from dynid_ros.control.contact import ALARM_HOLD_S, ContactMonitor, normal_level, tail_level, tail_levels
from dynid_ros.control.external_torque import MomentumObserver, TorqueUncertainty
from dynid_ros.errors import ControlError
from dynid_ros.identified.links import KnownArm
from dynid_ros.model import RobotModel

RATE_HZ = 250.0
NOISE_NM = 0.3


def draw_filtered_noise(duration: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return times, and noise of unit variance after the observer's low-pass filter."""
    time = np.arange(0.0, duration, 1 / RATE_HZ)
    decay = math.exp(-BANDWIDTH / RATE_HZ)
    drive = math.sqrt(1 - decay**2) * np.random.default_rng(seed).standard_normal(len(time))
    values = np.empty(len(time))
    value = 0.0
    for k, step in enumerate(drive.tolist()):
        value = decay * value + step
        values[k] = value
    return time, values


def count_alarms(time: np.ndarray, ratio: np.ndarray, level: float) -> int:
    above = time[ratio > level]
    return 0 if not len(above) else 1 + int(np.sum(np.diff(above) > ALARM_HOLD_S))


def test_levels_of_normal_noise_give_the_requested_rate():
    time, values = draw_filtered_noise(4000.0, 0)
    # A sampled process has fewer clumps than a continuous one, by exp(-0.58 b √(2 bandwidth dt)).
    n_alarms = count_alarms(time, np.abs(values), normal_level(0.05, BANDWIDTH))
    assert 0.25 * 200 < n_alarms < 0.55 * 200


@pytest.mark.parametrize("rate", [0.05, 0.01])
def test_levels_of_a_recording_give_the_requested_rate(rate):
    counts = []
    for seed in range(5):
        time, learnt = draw_filtered_noise(600.0, seed)
        level = tail_level(time, np.abs(learnt) ** 1.5, rate)  # a distribution that is not normal
        time, judged = draw_filtered_noise(2000.0, 100 + seed)
        counts.append(count_alarms(time, np.abs(judged) ** 1.5, level))
    assert np.mean(counts) == pytest.approx(rate * 2000.0, rel=0.3)


def make_monitor(rate: float = 60.0) -> tuple[ContactMonitor, KnownArm]:
    arm = KnownArm(build_model(RobotModel.from_urdf(planar_urdf())))
    return ContactMonitor(MomentumObserver(arm.model, BANDWIDTH), TorqueUncertainty(arm, [NOISE_NM] * 3), rate), arm


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_push_is_contact_at_its_joint_and_ends_after_the_hold(sign):
    monitor, arm = make_monitor()
    time, q, qd, qdd = make_motion(3, 4.0)
    pushed = (time > 1.0) & (time < 1.5)
    torque = arm.model.predict(q, qd, qdd) - sign * 5.0 * np.outer(pushed, [0, 0, 1])
    samples = zip(time, q.tolist(), qd.tolist(), torque.tolist(), strict=True)
    reports = [monitor.update(*sample) for sample in samples]
    in_contact = np.array([bool(report.contact) for report in reports])
    contacts = {report.contact for report in reports}
    assert contacts == {(), ("joint_3",)} or len(contacts) == 2
    start, end = time[in_contact][[0, -1]]
    assert 1.0 < start < 1.05
    assert 1.5 + ALARM_HOLD_S < end < 1.6 + ALARM_HOLD_S
    assert all(math.isinf(bound) for bound in reports[0].threshold)
    assert all(0.0 < bound < 5.0 for bound in reports[-1].threshold)


def test_calibration_uses_a_recording_without_contact():
    monitor, arm = make_monitor(60.0)
    time, q, qd, qdd = make_motion(3, 240.0)
    time, q, qd, qdd = (series[::4] for series in (time, q, qd, qdd))
    torque = arm.model.predict(q, qd, qdd) + np.random.default_rng(0).normal(0, 3.0, q.shape)
    by_model = monitor.levels.copy()
    monitor.calibrate(time, q, qd, torque)
    assert monitor.calibrated
    assert np.all(monitor.levels != by_model)
    with pytest.raises(ControlError, match="recording without contact is"):
        monitor.calibrate(time[:300], q[:300], qd[:300], torque[:300])


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_invalid_alarm_rate_is_refused(rate):
    with pytest.raises(ControlError, match="false_alarms_per_hour"):
        make_monitor(rate)


def test_false_alarms_are_shared_by_the_joints():
    monitor, _ = make_monitor(60.0)
    assert monitor.levels == pytest.approx([normal_level(1 / 60 / 3, BANDWIDTH)] * 3)


def test_levels_of_correlated_joints_are_lower():
    """Alarms of all joints coincide for equal errors of three joints."""
    time, values = draw_filtered_noise(600.0, 0)
    alone = tail_level(time, np.abs(values), 0.05)
    assert tail_levels(time, np.abs(np.outer(values, [1.0, 2.0, 3.0])), 0.05) == pytest.approx(
        alone * np.array([1.0, 2.0, 3.0])
    )
