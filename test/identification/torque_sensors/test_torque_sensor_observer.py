"""Torque sensors watched while the arm works: what drifted, since when, and how often it cries wolf."""

from dataclasses import replace

import numpy as np
import pytest
import torque_sensor_bench as bench
from torque_sensor_bench import Truth, aslant_robot, recording as bench_recording

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.static_samples import SampleRules, Samples, static_samples
from dynid_ros.identification.torque_sensors.sensor_drift import N_COLUMNS, DriftWindows
from dynid_ros.identification.torque_sensors.torque_sensor_observer import (
    MAX_REST_S,
    SampleStream,
    TorqueSensorObserver,
)
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.identified.torque_sensors import TorqueSensors
from dynid_ros.simulation import SimulatedArm

# Rests cut out of a stream are those of the whole recording, each once.


RULES = SampleRules()


def streamed(recording, every, slow=False):
    stream, parts = SampleStream(recording.joint_names, RULES, slow), []
    for m in range(recording.n_samples):
        stream.add(recording.time[m], recording.position[m], recording.torque[m])
        if m % every == 0 and (found := stream.take()) is not None:
            parts.append(found)
    return Samples.join(parts)


def work():
    rng = np.random.default_rng(0)
    return bench.recording(bench.Truth.draw(rng, bench.aslant_robot()), rng).slice(slice(3000))


def test_each_rest_comes_once_and_as_a_whole():
    recording = work()
    whole = static_samples(recording, RULES)
    for every in (7, 100, 950):
        found = streamed(recording, every)
        assert len(whole) - 12 <= len(found) <= len(whole)
        for m in range(len(found)):
            (same,) = np.flatnonzero(np.abs(whole.time - found.time[m]) < 0.05)
            np.testing.assert_allclose(found.position[m], whole.position[same], atol=1e-6)
            if m:
                np.testing.assert_array_equal(found.direction[m], whole.direction[same])


def test_messages_that_come_late_or_are_lost():
    recording = work()
    kept = np.random.default_rng(1).random(recording.n_samples) > 0.3
    found = streamed(recording.slice(kept), 50)
    assert len(found) > 20
    assert np.isfinite(found.torque).all()
    stream = SampleStream(recording.joint_names, RULES)
    for time in (0.0, 0.1, 0.05, 0.1):
        stream.add(time, recording.position[0], recording.torque[0])
    assert stream.take() is None


def test_arm_that_rests_for_long_is_not_forgotten():
    recording = work().slice(slice(600))
    rows = np.minimum(np.arange(12_000), recording.n_samples - 1)
    # It rests in the last place for nearly two minutes.
    waiting = replace(
        recording,
        time=0.01 * np.arange(len(rows)),
        **{name: getattr(recording, name)[rows] for name in ("position", "velocity", "torque")},
    )
    found = streamed(waiting, 100)
    late = found.time[found.time > 10]
    assert 2 <= len(late) <= 120 / MAX_REST_S + 1


def test_slow_motion_counts_if_wanted():
    time = 0.01 * np.arange(9000)
    position = np.tile(0.3 * np.sin(0.2 * time)[:, None], (1, 6))
    recording = replace(
        work().slice(slice(1)),
        time=time,
        position=position,
        velocity=np.full_like(position, np.nan),
        torque=np.ones_like(position),
    )
    found = streamed(recording, 100, slow=True)
    slow = found.take(np.flatnonzero(~found.static))
    assert 40 <= len(slow) <= 90
    np.testing.assert_array_equal(slow.direction[:, 0], np.sign(0.06 * np.cos(0.2 * slow.time)))
    assert streamed(recording, 100).static.all(), "where it reverses, it rests"


PERIOD = 10.0
NOISE = 0.0007
MANY = 10_000  # degrees of freedom of a noise that is known


@pytest.fixture(name="work", scope="module")
def fixture_work():
    """Function that makes dwells of an arm at work; torques by MuJoCo, readings = sensitivity · torque + offset."""
    robot = aslant_robot()
    poses = np.random.default_rng(1).uniform(-1.5, 1.5, (400, 6))
    torques = SimulatedArm(robot).truth.gravity_torque(poses)
    size = robot.limits.effort

    def work(rng, count, sensitivity=1.0, offset=0.0, start=0.0):
        chosen = rng.integers(0, len(poses), count)
        direction = rng.choice([-1.0, 1.0], (count, 6))
        readings = sensitivity * (torques[chosen] + 0.02 * size * direction) + offset
        return Samples(
            position=poses[chosen],
            velocity=np.zeros((count, 6)),
            torque=readings + rng.normal(0, NOISE, direction.shape) * size,
            direction=direction,
            static=np.ones(count, bool),
            time=start + PERIOD * np.arange(count),
            part=np.zeros(count, int),
        )

    return work


def gravity(rng=None, relative=0.003):
    exact = KnownGravity.of_urdf(aslant_robot())
    std = relative * np.abs(exact.moments)
    error = 0.0 if rng is None else std * rng.normal(0, 1, len(std))
    return KnownGravity(exact.moments + error, np.diag(std**2))


def test_drifts_are_found_named_and_dated(work):
    rng = np.random.default_rng(2)
    observer = TorqueSensorObserver(aslant_robot(), gravity(rng))
    assert observer.update(work(rng, 150)) == []
    assert observer.learned
    sensitivity, offset = np.ones(6), np.zeros(6)
    sensitivity[2], offset[4] = 1 / 1.03, 0.25
    raised = observer.update(work(rng, 60, sensitivity, offset, start=1500.0))
    assert {alarm.joint for alarm in raised} == {"joint_3", "joint_5"}
    found = {alarm.joint: alarm for alarm in observer.alarms}
    assert found["joint_3"].cause == "gain"
    assert abs(found["joint_3"].gain_change - 0.03) < 3 * found["joint_3"].gain_std < 0.03
    assert found["joint_5"].cause == "offset"
    assert abs(found["joint_5"].offset_change - 0.25) < 3 * found["joint_5"].offset_std < 0.1
    for alarm in found.values():
        assert abs(alarm.since - 1500.0) <= 3 * PERIOD
        assert alarm.time - 1500.0 <= 20 * PERIOD
    assert "'joint_3' drifted: gain by +" in str(found["joint_3"])
    assert found["joint_3"].document()["cause"] == "gain"


def test_estimates_follow_and_become_the_reference(work):
    rng = np.random.default_rng(3)
    observer = TorqueSensorObserver(aslant_robot(), gravity(), memory=40)
    observer.update(work(rng, 100))
    observer.update(work(rng, 200, sensitivity=1 / 0.97, offset=0.3, start=1000.0))
    assert len(observer.alarms) == 6
    np.testing.assert_allclose(observer.gain, 0.97, rtol=0.005)
    np.testing.assert_allclose(observer.offset, 0.3, atol=0.05)
    accepted = observer.accept()
    np.testing.assert_allclose(accepted.gain, 0.97, rtol=0.005)
    assert observer.alarms == ()
    assert observer.update(work(rng, 100, sensitivity=1 / 0.97, offset=0.3, start=3000.0)) == []


def test_without_samples_there_is_nothing_to_accept(work):
    sensors = replace(TorqueSensors.ideal(aslant_robot().joint_names), gain=np.full(6, 1 / 1.1), offset=np.full(6, 2.0))
    observer = TorqueSensorObserver(aslant_robot(), gravity(), sensors, reference_std=np.full((6, 2), 1e-3))
    with pytest.raises(IdentificationError, match="nothing to accept: no gain and no offset is known yet"):
        observer.accept()
    assert observer.update(work(np.random.default_rng(4), 200, sensitivity=1.1, offset=2.0)) == []
    np.testing.assert_allclose(observer.accept().gain, 1 / 1.1, rtol=0.005)


def test_calibrated_reference_is_no_drift(work):
    rng = np.random.default_rng(4)
    sensors = replace(TorqueSensors.ideal(aslant_robot().joint_names), gain=np.full(6, 1 / 1.1), offset=np.full(6, 2.0))
    observer = TorqueSensorObserver(aslant_robot(), gravity(), sensors)
    assert observer.update(work(rng, 200, sensitivity=1.1, offset=2.0)) == []
    assert TorqueSensorObserver(aslant_robot(), gravity()).update(work(rng, 200, sensitivity=1.1, offset=2.0))


def undisturbed(rng, windows, steps, n_moments, reference):
    """Statistics (steps, n) without drift: only noise, friction, and errors of reference and moments, as stated."""
    n = windows.n_joints
    wrong, moments = rng.normal(0, 1, (n, 2)) * reference, rng.normal(0, 1, n_moments)
    found = []
    for _ in range(steps):
        rows = np.stack([rng.uniform(-3, 3, n), np.ones(n), rng.choice([-1.0, 1.0], n), np.zeros(n)], axis=1)
        effect = 0.2 * rng.normal(0, 1, (n, n_moments))
        error = rng.normal(0, 1, n) + np.sum(rows[:, :2] * wrong, axis=1) + 3.0 * rows[:, 2] + effect @ moments
        found.append(windows.add(rows, error, effect))
    return np.array(found)


@pytest.mark.slow
def test_false_alarms_in_a_long_run_are_as_rare_as_stated():
    """Every sample above the threshold is counted; the rate is an upper bound, so fewer are right."""
    steps, rate = 12_000, 0.02
    windows = DriftWindows(np.zeros((3, 2, 2)), 0, rate, MANY)
    above = np.any(undisturbed(np.random.default_rng(5), windows, steps, 0, 0.0) > windows.threshold, axis=1)
    blocks = above.reshape(12, -1).mean(axis=1)  # long windows rise and fall slowly
    assert 0.05 * rate <= above.mean() <= rate + 2 * blocks.std() / np.sqrt(11)


def test_errors_of_reference_and_moments_raise_no_more_alarms():
    rng, rate, above = np.random.default_rng(6), 0.1, []
    for _ in range(150):
        windows = DriftWindows(np.tile(0.09 * np.eye(2), (3, 1, 1)), 4, rate, MANY)
        above.append(np.any(undisturbed(rng, windows, 40, 4, 0.3)[-1] > windows.threshold))
    assert np.mean(above) <= rate + 2 * np.sqrt(rate / 150)
    exact = DriftWindows(np.zeros((3, 2, 2)), 4, rate, MANY)
    assert np.any(undisturbed(rng, exact, 256, 4, 0.3)[-1] > exact.threshold), "the stated errors do matter"
    assert DriftWindows(np.zeros((3, 2, 2)), 4, rate, dof=26).threshold > exact.threshold


def test_threshold_is_not_just_high(work):
    """With reference and moments exact a drift of three standard errors of a long window is found."""
    rng = np.random.default_rng(6)
    exact = KnownGravity.of_urdf(aslant_robot())
    observer = TorqueSensorObserver(aslant_robot(), exact, learning=100)
    sensitivity = np.ones(6)
    sensitivity[1] = 1.001
    observer.update(work(rng, 400, sensitivity))
    assert [alarm.joint for alarm in observer.alarms] == ["joint_2"]


def test_windows_count_as_one_sum_would():
    rng = np.random.default_rng(7)
    windows = DriftWindows(np.zeros((1, 2, 2)), 0, 0.01, MANY)
    rows, error = rng.normal(0, 1, (300, 1, N_COLUMNS)), rng.normal(0, 1, (300, 1))
    statistics = [windows.add(a, e, np.zeros((1, 0)))[0] for a, e in zip(rows, error, strict=True)]
    expected = []
    for length in (8, 16, 32, 64, 128, 256):
        solved, *_ = np.linalg.lstsq(rows[-length:, 0], error[-length:, 0], rcond=None)
        covariance = np.linalg.inv(rows[-length:, 0].T @ rows[-length:, 0])[:2, :2]
        expected.append(solved[:2] @ np.linalg.solve(covariance, solved[:2]))
    assert abs(statistics[-1] - max(expected)) < 1e-4 * max(expected)


def test_friction_that_changes_is_no_drift(work):
    rng = np.random.default_rng(8)
    observer = TorqueSensorObserver(aslant_robot(), gravity())
    observer.update(work(rng, 100))
    warm = work(rng, 200, start=1000.0)
    warm = replace(warm, torque=warm.torque - 0.01 * warm.direction * aslant_robot().limits.effort)
    assert observer.update(warm) == []


def test_dwell_of_unknown_approach_says_nothing(work):
    rng = np.random.default_rng(9)
    observer = TorqueSensorObserver(aslant_robot(), gravity())
    observer.update(work(rng, 100))
    odd = work(rng, 50, offset=5.0, start=1000.0)
    assert observer.update(replace(odd, direction=0 * odd.direction)) == []


def test_recordings_are_cut_into_dwells():
    rng, robot = np.random.default_rng(10), aslant_robot()
    truth = Truth.draw(rng, robot)
    observer = TorqueSensorObserver(robot, gravity(), learning=12)
    observer.update(static_samples(bench_recording(truth, rng), RULES))
    assert {alarm.joint for alarm in observer.alarms} == set(robot.joint_names)
    sensors = replace(TorqueSensors.ideal(robot.joint_names), gain=truth.gain, offset=truth.offset)
    calibrated = TorqueSensorObserver(robot, gravity(), sensors, learning=12)
    assert calibrated.update(static_samples(bench_recording(truth, rng), RULES)) == []
    assert calibrated.learned


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"learning": 3}, "learning is 3"),
        ({"memory": 1.0}, "memory is 1"),
        ({"memory": np.inf}, "memory is inf"),
        ({"false_alarm_rate": 0.0}, "false_alarm_rate is 0"),
    ],
)
def test_settings_that_make_no_sense(settings, words):
    with pytest.raises(IdentificationError, match=words):
        TorqueSensorObserver(aslant_robot(), gravity(), **settings)


def test_moments_of_another_robot():
    with pytest.raises(IdentificationError, match="2 moments"):
        TorqueSensorObserver(aslant_robot(), KnownGravity(np.zeros(2), np.zeros((2, 2))))


@pytest.mark.parametrize(("relative", "told"), [(0.09, True), (0.11, False)])
def test_a_gain_is_told_where_its_error_is_below_a_tenth(relative, told, monkeypatch):
    """The estimates are sensitivities s, with the gain 1/s and its error σ/s²."""
    observer = TorqueSensorObserver(aslant_robot(), gravity())
    sensitivity, offset = np.full(6, 2.0), np.zeros(6)
    std = np.stack([relative * sensitivity, np.full(6, 0.3)], axis=1)
    monkeypatch.setattr(observer, "_estimates", lambda: (np.stack([sensitivity, offset], axis=1), std))
    np.testing.assert_array_equal(observer.gain, np.full(6, 0.5 if told else np.nan))
    np.testing.assert_allclose(observer.standard_errors, np.tile([relative / 2.0, 0.3], (6, 1)))


def test_accepting_keeps_the_errors_of_what_is_not_known(monkeypatch):
    before = np.tile([0.02, 0.5], (6, 1))
    sensors = TorqueSensors.ideal(aslant_robot().joint_names)
    observer = TorqueSensorObserver(aslant_robot(), gravity(), sensors, reference_std=before)
    found = np.tile([0.01, 0.1], (6, 1))
    found[0] = 0.5, 1e9
    monkeypatch.setattr(observer, "_estimates", lambda: (np.tile([1.0, 0.0], (6, 1)), found))
    observer.accept()
    np.testing.assert_allclose(observer._reference_std, [before[0], *found[1:]])
