"""Rests cut out of a stream are those of the whole recording, each once."""

from dataclasses import replace

import numpy as np
import torque_sensor_bench as bench

from dynid_ros.identification.static_samples import SampleRules, Samples, static_samples
from dynid_ros.identification.torque_sensors.torque_sensor_observer import LONGEST_REST, SampleStream

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
    assert 2 <= len(late) <= 120 / LONGEST_REST + 1


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
    assert streamed(recording, 100).static.all(), "where it turns round, it rests"
