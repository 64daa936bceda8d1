"""Static and slow samples of synthetic motion with known dwells."""

from dataclasses import replace

import known_problems as known
import numpy as np
import pytest

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.static_samples import (
    Approaches,
    SampleRules,
    Samples,
    rotations,
    side_of_approach,
    slow_samples,
    static_samples,
)
from dynid_ros.recording import Recording

# Single-joint rotations among samples.


def samples_at(position, static=None):
    n = len(position)
    zeros = np.zeros_like(position)
    static = np.ones(n, bool) if static is None else static
    return Samples(position, zeros, zeros, zeros, static, np.arange(n, dtype=float), np.zeros(n, int))


def test_each_rotation_is_found_once():
    holds = np.random.default_rng(1).uniform(-1, 1, (2, 4))
    found = rotations(samples_at(known.single_rotations(holds, np.pi, 6)))
    assert [rotation.joint for rotation in found] == [0, 1, 2, 3] * 2
    assert all(len(rotation.rows) == 12 for rotation in found)


def test_random_poses_and_slow_samples_are_no_rotation():
    assert rotations(samples_at(np.random.default_rng(2).uniform(-1, 1, (20, 4)))) == []
    position = known.single_rotations(np.zeros(3), np.pi, 5, [1])
    assert rotations(samples_at(position, static=np.zeros(len(position), bool))) == []


RATE = 250.0
DWELL = 0.4
TRANSIT = 0.5


def stepping(levels, seed=0, noise=2e-5):
    """Joint a steps through `levels` (rad) and rests at each, joint b stays; torque is 10 a + noise, and 3."""
    t = np.arange(0, len(levels) * (DWELL + TRANSIT), 1 / RATE)
    phase, step = t % (DWELL + TRANSIT), (t // (DWELL + TRANSIT)).astype(int)
    s = np.clip((phase - DWELL) / TRANSIT, 0, 1)
    blend = 10 * s**3 - 15 * s**4 + 6 * s**5
    following = np.append(levels, levels[-1])
    a = levels[step] + blend * (following[step + 1] - levels[step])
    rng = np.random.default_rng(seed)
    position = np.column_stack([a, np.full_like(a, 0.7)]) + rng.normal(0, noise, (len(t), 2))
    torque = np.column_stack([10 * a, np.full_like(a, 3.0)]) + rng.normal(0, 0.1, (len(t), 2))
    return Recording(("a", "b"), t, position, np.full_like(position, np.nan), torque, source="steps")


def test_dwells_are_found_with_their_approach():
    levels = np.array([0.0, 0.3, 0.6, 0.3, 0.0])
    samples = static_samples(stepping(levels), SampleRules())
    assert len(samples) == 5
    np.testing.assert_allclose(samples.position[:, 0], levels, atol=1e-4)
    np.testing.assert_allclose(samples.torque, np.column_stack([10 * levels, np.full(5, 3.0)]), atol=0.08)
    assert list(samples.direction[:, 0]) == [0, 1, 1, -1, -1]
    assert not samples.direction[:, 1].any()
    assert samples.static.all()


def test_a_dwell_too_short_is_left_out():
    found = static_samples(stepping(np.array([0.0, 0.3, 0.6])), SampleRules(minimum_dwell=0.6))
    assert len(found) == 1, "the last rest"


def test_slow_samples_are_slow_and_know_their_direction():
    t = np.arange(0, 20, 1 / RATE)
    position = np.column_stack([2.0 * np.sin(0.4 * t), np.full_like(t, 0.1)])
    recording = Recording(("a", "b"), t, position, np.full_like(position, np.nan), position * 5)
    rules = SampleRules(slow_velocity=0.6, slow_acceleration=0.3)
    samples = slow_samples(recording, rules)
    assert len(samples) > 20
    assert np.all(np.abs(samples.velocity) < 0.6)
    expected = 0.8 * np.cos(0.4 * samples.time)
    np.testing.assert_allclose(samples.velocity[:, 0], expected, atol=1e-2)
    steady = np.abs(expected) > 0.1
    assert np.all(samples.direction[steady, 0] == np.sign(expected[steady]))
    assert not samples.direction[:, 1].any()
    assert np.abs(0.32 * np.sin(0.4 * samples.time)).max() < 0.31


@pytest.mark.parametrize(("change", "kept"), [(0.1, [0.6]), (0.4, []), (4.0, [])])
def test_a_rest_whose_torque_still_changes_is_left_out(change, kept):
    steady = stepping(np.array([0.0, 0.3, 0.6, 0.3, 0.0]))
    torque = steady.torque.copy()
    loading = (steady.time > 2 * (DWELL + TRANSIT)) & (steady.time < 2 * (DWELL + TRANSIT) + DWELL)
    torque[loading, 1] += np.linspace(0, change, loading.sum())
    samples = static_samples(replace(steady, torque=torque), SampleRules())
    np.testing.assert_allclose(samples.position[:, 0], [0.0, 0.3, *kept, 0.3, 0.0], atol=1e-4)


def test_a_rest_that_is_longer_than_most_is_cut_to_the_usual_length():
    """The servo loads the joint before it departs."""
    longer = stepping(np.array([0.0, 0.3, 0.6, 0.6, 0.3, 0.0]))
    departs = 3 * (DWELL + TRANSIT) + DWELL
    loading = (longer.time > departs - TRANSIT) & (longer.time < departs)
    torque = longer.torque.copy()
    torque[loading, 0] += np.linspace(0, 5, loading.sum())
    samples = static_samples(replace(longer, torque=torque), SampleRules())
    np.testing.assert_allclose(samples.torque[:, 0], [0.0, 3.0, 6.0, 3.0, 0.0], atol=0.08)


def test_the_side_of_a_joint_that_waits_for_others_is_not_known():
    way = np.linspace(0.0, 1.0, 11)
    first, later = np.clip(2 * way, 0.0, 1.0), np.clip(2 * way - 1, 0.0, 1.0)
    for joints, side in (((first, later), [0, 1]), ((-later, first), [-1, 0]), ((way, -way), [1, -1])):
        path = np.column_stack(joints)
        assert side_of_approach(path, path[-1], 0.005).tolist() == side


def test_in_another_recording_a_joint_came_to_its_place_anew():
    samples = samples_at(np.full((2, 1), 0.3))
    assert samples.friction_known.ravel().tolist() == [True, False]
    assert replace(samples, part=np.arange(2)).friction_known.all()


def test_a_rest_of_which_one_sample_was_not_lost_spoils_no_other():
    whole = stepping(np.array([0.0, 0.3, 0.6, 0.3, 0.0]))
    since = whole.time - 2 * (DWELL + TRANSIT)
    lost = (since > 0.05) & (since < DWELL - 0.05)
    lost[np.flatnonzero(lost)[lost.sum() // 2]] = False
    samples = static_samples(whole.slice(~lost), SampleRules())
    np.testing.assert_allclose(samples.position[:, 0], [0.0, 0.3, 0.3, 0.0], atol=1e-4)


def test_too_few_samples_say_so():
    short = stepping(np.array([0.0])).slice(slice(0, 5))
    with pytest.raises(IdentificationError, match="steps: 5 samples"):
        static_samples(short, SampleRules())


def test_joined_parts_are_numbered():
    one = static_samples(stepping(np.array([0.0, 0.3])), SampleRules())
    both = Samples.join([one, one])
    assert list(both.part) == [0] * len(one) + [1] * len(one)


def test_approaches_are_paired_within_a_state():
    """Poses with and without a load are another's pose no more; each sample is in one pair."""
    position = np.tile([[0.5, -0.2]], (6, 1))
    side = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    samples = replace(samples_at(position), direction=np.column_stack([side, side]))
    sample, joint = np.repeat(np.arange(6), 2), np.tile([0, 1], 6)
    loaded = np.array([0, 1, 1, 1, 0, 0])
    pairs = Approaches.among(samples, sample, joint, ("a", "b"), loaded)
    found = {(int(sample[up]), int(sample[down])) for up, down in zip(pairs.up, pairs.down, strict=True)}
    assert len(pairs.up) == len(set(pairs.up.tolist())) == 4
    assert found == {(2, 1), (0, 5)} or found == {(2, 3), (0, 5)}
    assert all(joint[up] == joint[down] for up, down in zip(pairs.up, pairs.down, strict=True))
