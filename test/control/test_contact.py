"""Contact or not: rates of false alarms that were asked for, and files that say enough for it."""

import math

import numpy as np
import pytest
from helpers.known_arm import BANDWIDTH, model_of, motion
from planar_arm import urdf as planar_urdf

from dynid_ros.control.contact import ALARM_HOLD_S, ContactMonitor, normal_level, tail_level, tail_levels
from dynid_ros.control.external_torque import MomentumObserver, TorqueUncertainty
from dynid_ros.errors import ControlError
from dynid_ros.identified.links import KnownArm
from dynid_ros.model import RobotModel

RATE, NOISE = 250.0, 0.3


def filtered(duration: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Times, and noise of unit variance through the observer's low-pass."""
    time = np.arange(0.0, duration, 1 / RATE)
    kept = math.exp(-BANDWIDTH / RATE)
    drive = math.sqrt(1 - kept**2) * np.random.default_rng(seed).standard_normal(len(time))
    values = np.empty(len(time))
    value = 0.0
    for k, step in enumerate(drive.tolist()):
        value = kept * value + step
        values[k] = value
    return time, values


def alarms(time: np.ndarray, ratio: np.ndarray, level: float) -> int:
    above = time[ratio > level]
    return 0 if not len(above) else 1 + int(np.sum(np.diff(above) > ALARM_HOLD_S))


def test_levels_of_normal_noise_give_the_rate_that_was_asked_for():
    time, values = filtered(4000.0, 0)
    # Of a process in samples there are fewer clumps than of one in continuous time, by exp(-0.58 b √(2 bandwidth dt)).
    found = alarms(time, np.abs(values), normal_level(0.05, BANDWIDTH))
    assert 0.25 * 200 < found < 0.55 * 200


@pytest.mark.parametrize("rate", [0.05, 0.01])
def test_levels_of_a_recording_give_the_rate_that_was_asked_for(rate):
    counts = []
    for seed in range(5):
        time, learnt = filtered(600.0, seed)
        level = tail_level(time, np.abs(learnt) ** 1.5, rate)  # whatever the distribution
        time, judged = filtered(2000.0, 100 + seed)
        counts.append(alarms(time, np.abs(judged) ** 1.5, level))
    assert np.mean(counts) == pytest.approx(rate * 2000.0, rel=0.3)


def monitor(rate: float = 60.0) -> tuple[ContactMonitor, KnownArm]:
    arm = KnownArm(model_of(RobotModel.from_urdf(planar_urdf())))
    return ContactMonitor(MomentumObserver(arm.model, BANDWIDTH), TorqueUncertainty(arm, [NOISE] * 3), rate), arm


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_push_is_contact_at_its_joint_and_ends_after_the_hold(sign):
    watch, arm = monitor()
    time, q, qd, qdd = motion(3, 4.0)
    pushed = (time > 1.0) & (time < 1.5)
    torque = arm.model.predict(q, qd, qdd) - sign * 5.0 * np.outer(pushed, [0, 0, 1])
    found = [watch.update(*each) for each in zip(time, q.tolist(), qd.tolist(), torque.tolist(), strict=True)]
    touched = np.array([bool(each.contact) for each in found])
    assert {each.contact for each in found} == {(), ("joint_3",)} or len({each.contact for each in found}) == 2
    began, ended = time[touched][[0, -1]]
    assert 1.0 < began < 1.05
    assert 1.5 + ALARM_HOLD_S < ended < 1.6 + ALARM_HOLD_S
    assert all(math.isinf(bound) for bound in found[0].threshold)
    assert all(0.0 < bound < 5.0 for bound in found[-1].threshold)


def test_calibration_takes_what_work_without_contact_leaves():
    watch, arm = monitor(60.0)
    time, q, qd, qdd = motion(3, 240.0)
    time, q, qd, qdd = (part[::4] for part in (time, q, qd, qdd))
    torque = arm.model.predict(q, qd, qdd) + np.random.default_rng(0).normal(0, 3.0, q.shape)
    by_model = watch.levels.copy()
    watch.calibrate(time, q, qd, torque)
    assert watch.calibrated
    assert np.all(watch.levels != by_model)
    with pytest.raises(ControlError, match="recording without contact is"):
        watch.calibrate(time[:300], q[:300], qd[:300], torque[:300])


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_a_rate_that_no_threshold_has_is_refused(rate):
    with pytest.raises(ControlError, match="false_alarms_per_hour"):
        monitor(rate)


def test_each_joint_has_its_share_of_the_false_alarms():
    watch, _ = monitor(60.0)
    assert watch.levels == pytest.approx([normal_level(1 / 60 / 3, BANDWIDTH)] * 3)


def test_levels_of_joints_that_alarm_together_are_lower():
    """Of three joints that err alike an alarm of one is an alarm of all."""
    time, values = filtered(600.0, 0)
    alone = tail_level(time, np.abs(values), 0.05)
    assert tail_levels(time, np.abs(np.outer(values, [1.0, 2.0, 3.0])), 0.05) == pytest.approx(
        alone * np.array([1.0, 2.0, 3.0])
    )
