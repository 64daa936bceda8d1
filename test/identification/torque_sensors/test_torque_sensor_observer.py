"""Observation of torque sensors at work: causes and dates of drifts, and rate of false alarms."""

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

RULES = SampleRules()


def stream_samples(recording, every, slow=False):
    """Return the samples of a stream of the recording, read every `every` messages."""
    stream = SampleStream(recording.joint_names, RULES, slow)
    parts = []
    for m in range(recording.n_samples):
        stream.add(recording.time[m], recording.position[m], recording.torque[m])
        samples = stream.take() if m % every == 0 else None
        if samples is not None:
            parts.append(samples)
    return Samples.join(parts)


def record_work():
    rng = np.random.default_rng(0)
    return bench.recording(bench.Truth.draw(rng, bench.aslant_robot()), rng).slice(slice(3000))


def test_stream_yields_each_rest_once():
    recording = record_work()
    whole = static_samples(recording, RULES)
    for every in (7, 100, 950):
        samples = stream_samples(recording, every)
        assert len(whole) - 12 <= len(samples) <= len(whole)
        for m in range(len(samples)):
            (index,) = np.flatnonzero(np.abs(whole.time - samples.time[m]) < 0.05)
            np.testing.assert_allclose(samples.position[m], whole.position[index], atol=1e-6)
            if m:
                np.testing.assert_array_equal(samples.direction[m], whole.direction[index])


def test_stream_tolerates_late_and_lost_messages():
    recording = record_work()
    kept = np.random.default_rng(1).random(recording.n_samples) > 0.3
    samples = stream_samples(recording.slice(kept), 50)
    assert len(samples) > 20
    assert np.isfinite(samples.torque).all()
    stream = SampleStream(recording.joint_names, RULES)
    for time in (0.0, 0.1, 0.05, 0.1):
        stream.add(time, recording.position[0], recording.torque[0])
    assert stream.take() is None


def test_long_rest_yields_repeated_samples():
    recording = record_work().slice(slice(600))
    rows = np.minimum(np.arange(12_000), recording.n_samples - 1)
    # The arm rests in its last pose for nearly two minutes.
    waiting = replace(
        recording,
        time=0.01 * np.arange(len(rows)),
        **{name: getattr(recording, name)[rows] for name in ("position", "velocity", "torque")},
    )
    samples = stream_samples(waiting, 100)
    late = samples.time[samples.time > 10]
    assert 2 <= len(late) <= 120 / MAX_REST_S + 1


def test_slow_motion_yields_samples_on_request():
    time = 0.01 * np.arange(9000)
    position = np.tile(0.3 * np.sin(0.2 * time)[:, None], (1, 6))
    recording = replace(
        record_work().slice(slice(1)),
        time=time,
        position=position,
        velocity=np.full_like(position, np.nan),
        torque=np.ones_like(position),
    )
    samples = stream_samples(recording, 100, slow=True)
    slow = samples.take(np.flatnonzero(~samples.static))
    assert 40 <= len(slow) <= 90
    np.testing.assert_array_equal(slow.direction[:, 0], np.sign(0.06 * np.cos(0.2 * slow.time)))
    assert stream_samples(recording, 100).static.all(), "it rests where it reverses"


PERIOD_S = 10.0
RELATIVE_NOISE = 0.0007
MANY_DOF = 10_000  # degrees of freedom of a known noise


@pytest.fixture(name="work", scope="module")
def fixture_work():
    """Return a function that yields dwells of a working arm: torques by MuJoCo, sensitivity · torque + offset."""
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
            torque=readings + rng.normal(0, RELATIVE_NOISE, direction.shape) * size,
            direction=direction,
            static=np.ones(count, bool),
            time=start + PERIOD_S * np.arange(count),
            part=np.zeros(count, int),
        )

    return work


def gravity(rng=None, relative=0.003):
    exact = KnownGravity.of_urdf(aslant_robot())
    std = relative * np.abs(exact.moments)
    error = 0.0 if rng is None else std * rng.normal(0, 1, len(std))
    return KnownGravity(exact.moments + error, np.diag(std**2))


def test_detects_drifts_with_cause_and_date(work):
    rng = np.random.default_rng(2)
    observer = TorqueSensorObserver(aslant_robot(), gravity(rng))
    assert observer.update(work(rng, 150)) == []
    assert observer.learned
    sensitivity = np.ones(6)
    offset = np.zeros(6)
    sensitivity[2] = 1 / 1.03
    offset[4] = 0.25
    raised = observer.update(work(rng, 60, sensitivity, offset, start=1500.0))
    assert {alarm.joint for alarm in raised} == {"joint_3", "joint_5"}
    alarms = {alarm.joint: alarm for alarm in observer.alarms}
    assert alarms["joint_3"].cause == "gain"
    assert abs(alarms["joint_3"].gain_change - 0.03) < 3 * alarms["joint_3"].gain_std < 0.03
    assert alarms["joint_5"].cause == "offset"
    assert abs(alarms["joint_5"].offset_change - 0.25) < 3 * alarms["joint_5"].offset_std < 0.1
    for alarm in alarms.values():
        assert abs(alarm.since - 1500.0) <= 3 * PERIOD_S
        assert alarm.time - 1500.0 <= 20 * PERIOD_S
    assert "'joint_3' drifted: gain by +" in str(alarms["joint_3"])
    assert alarms["joint_3"].document()["cause"] == "gain"


def test_estimates_follow_a_drift_and_become_the_reference(work):
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


def test_refuses_to_accept_without_samples(work):
    sensors = replace(TorqueSensors.ideal(aslant_robot().joint_names), gain=np.full(6, 1 / 1.1), offset=np.full(6, 2.0))
    observer = TorqueSensorObserver(aslant_robot(), gravity(), sensors, reference_std=np.full((6, 2), 1e-3))
    with pytest.raises(IdentificationError, match="nothing to accept: no gain and no offset is known yet"):
        observer.accept()
    assert observer.update(work(np.random.default_rng(4), 200, sensitivity=1.1, offset=2.0)) == []
    np.testing.assert_allclose(observer.accept().gain, 1 / 1.1, rtol=0.005)


def test_calibrated_sensors_have_no_drift(work):
    rng = np.random.default_rng(4)
    sensors = replace(TorqueSensors.ideal(aslant_robot().joint_names), gain=np.full(6, 1 / 1.1), offset=np.full(6, 2.0))
    observer = TorqueSensorObserver(aslant_robot(), gravity(), sensors)
    assert observer.update(work(rng, 200, sensitivity=1.1, offset=2.0)) == []
    assert TorqueSensorObserver(aslant_robot(), gravity()).update(work(rng, 200, sensitivity=1.1, offset=2.0))


def undisturbed_statistics(rng, windows, steps, n_moments, reference):
    """Return statistics (steps, n) without drift: noise, friction, and stated errors of reference and moments."""
    n = windows.n_joints
    wrong = rng.normal(0, 1, (n, 2)) * reference
    moments = rng.normal(0, 1, n_moments)
    statistics = []
    for _ in range(steps):
        rows = np.stack([rng.uniform(-3, 3, n), np.ones(n), rng.choice([-1.0, 1.0], n), np.zeros(n)], axis=1)
        effect = 0.2 * rng.normal(0, 1, (n, n_moments))
        error = rng.normal(0, 1, n) + np.sum(rows[:, :2] * wrong, axis=1) + 3.0 * rows[:, 2] + effect @ moments
        statistics.append(windows.add(rows, error, effect))
    return np.array(statistics)


@pytest.mark.slow
def test_rate_of_false_alarms_is_at_most_the_nominal_one():
    """Every sample above the threshold counts; the nominal rate is an upper bound."""
    steps = 12_000
    rate = 0.02
    windows = DriftWindows(np.zeros((3, 2, 2)), 0, rate, MANY_DOF)
    above = np.any(undisturbed_statistics(np.random.default_rng(5), windows, steps, 0, 0.0) > windows.threshold, axis=1)
    blocks = above.reshape(12, -1).mean(axis=1)  # long windows rise and fall slowly
    assert 0.05 * rate <= above.mean() <= rate + 2 * blocks.std() / np.sqrt(11)


def test_errors_of_reference_and_moments_cause_no_alarms():
    rng = np.random.default_rng(6)
    rate = 0.1
    above = []
    for _ in range(150):
        windows = DriftWindows(np.tile(0.09 * np.eye(2), (3, 1, 1)), 4, rate, MANY_DOF)
        above.append(np.any(undisturbed_statistics(rng, windows, 40, 4, 0.3)[-1] > windows.threshold))
    assert np.mean(above) <= rate + 2 * np.sqrt(rate / 150)
    exact = DriftWindows(np.zeros((3, 2, 2)), 4, rate, MANY_DOF)
    assert np.any(undisturbed_statistics(rng, exact, 256, 4, 0.3)[-1] > exact.threshold), "the stated errors do matter"
    assert DriftWindows(np.zeros((3, 2, 2)), 4, rate, dof=26).threshold > exact.threshold


def test_detects_a_small_drift_with_an_exact_reference(work):
    """The drift is three standard errors of a long window."""
    rng = np.random.default_rng(6)
    exact = KnownGravity.of_urdf(aslant_robot())
    observer = TorqueSensorObserver(aslant_robot(), exact, learning=100)
    sensitivity = np.ones(6)
    sensitivity[1] = 1.001
    observer.update(work(rng, 400, sensitivity))
    assert [alarm.joint for alarm in observer.alarms] == ["joint_2"]


def test_window_statistics_equal_those_of_one_fit():
    rng = np.random.default_rng(7)
    windows = DriftWindows(np.zeros((1, 2, 2)), 0, 0.01, MANY_DOF)
    rows = rng.normal(0, 1, (300, 1, N_COLUMNS))
    error = rng.normal(0, 1, (300, 1))
    statistics = [windows.add(a, e, np.zeros((1, 0)))[0] for a, e in zip(rows, error, strict=True)]
    expected = []
    for length in (8, 16, 32, 64, 128, 256):
        solved, *_ = np.linalg.lstsq(rows[-length:, 0], error[-length:, 0], rcond=None)
        covariance = np.linalg.inv(rows[-length:, 0].T @ rows[-length:, 0])[:2, :2]
        expected.append(solved[:2] @ np.linalg.solve(covariance, solved[:2]))
    assert abs(statistics[-1] - max(expected)) < 1e-4 * max(expected)


def test_friction_change_is_no_drift(work):
    rng = np.random.default_rng(8)
    observer = TorqueSensorObserver(aslant_robot(), gravity())
    observer.update(work(rng, 100))
    warm = work(rng, 200, start=1000.0)
    warm = replace(warm, torque=warm.torque - 0.01 * warm.direction * aslant_robot().limits.effort)
    assert observer.update(warm) == []


def test_dwells_with_unknown_approach_are_ignored(work):
    rng = np.random.default_rng(9)
    observer = TorqueSensorObserver(aslant_robot(), gravity())
    observer.update(work(rng, 100))
    odd = work(rng, 50, offset=5.0, start=1000.0)
    assert observer.update(replace(odd, direction=0 * odd.direction)) == []


def test_observes_dwells_of_a_recording():
    rng = np.random.default_rng(10)
    robot = aslant_robot()
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
def test_refuses_invalid_settings(settings, words):
    with pytest.raises(IdentificationError, match=words):
        TorqueSensorObserver(aslant_robot(), gravity(), **settings)


def test_refuses_moments_of_another_robot():
    with pytest.raises(IdentificationError, match="2 moments"):
        TorqueSensorObserver(aslant_robot(), KnownGravity(np.zeros(2), np.zeros((2, 2))))


@pytest.mark.parametrize(("relative", "determined"), [(0.09, True), (0.11, False)])
def test_gain_is_stated_for_errors_below_a_tenth(relative, determined, monkeypatch):
    """The estimates are sensitivities s with standard error σ; the gain is 1/s with the error σ/s²."""
    observer = TorqueSensorObserver(aslant_robot(), gravity())
    sensitivity = np.full(6, 2.0)
    offset = np.zeros(6)
    std = np.stack([relative * sensitivity, np.full(6, 0.3)], axis=1)
    monkeypatch.setattr(observer, "_estimates", lambda: (np.stack([sensitivity, offset], axis=1), std))
    np.testing.assert_array_equal(observer.gain, np.full(6, 0.5 if determined else np.nan))
    np.testing.assert_allclose(observer.standard_errors, np.tile([relative / 2.0, 0.3], (6, 1)))


def test_accepting_keeps_errors_of_undetermined_estimates(monkeypatch):
    before = np.tile([0.02, 0.5], (6, 1))
    sensors = TorqueSensors.ideal(aslant_robot().joint_names)
    observer = TorqueSensorObserver(aslant_robot(), gravity(), sensors, reference_std=before)
    std = np.tile([0.01, 0.1], (6, 1))
    std[0] = 0.5, 1e9
    monkeypatch.setattr(observer, "_estimates", lambda: (np.tile([1.0, 0.0], (6, 1)), std))
    observer.accept()
    np.testing.assert_allclose(observer._reference_std, [before[0], *std[1:]])
