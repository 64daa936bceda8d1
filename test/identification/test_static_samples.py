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


def samples_at(position, static=None):
    n = len(position)
    zeros = np.zeros_like(position)
    static = np.ones(n, bool) if static is None else static
    return Samples(position, zeros, zeros, zeros, static, np.arange(n, dtype=float), np.zeros(n, int))


def test_finds_each_single_joint_rotation_once():
    holds = np.random.default_rng(1).uniform(-1, 1, (2, 4))
    found_rotations = rotations(samples_at(known.single_rotations(holds, np.pi, 6)))
    assert [rotation.joint for rotation in found_rotations] == [0, 1, 2, 3] * 2
    assert all(len(rotation.rows) == 12 for rotation in found_rotations)


def test_random_poses_and_slow_samples_are_no_rotations():
    assert rotations(samples_at(np.random.default_rng(2).uniform(-1, 1, (20, 4)))) == []
    position = known.single_rotations(np.zeros(3), np.pi, 5, [1])
    assert rotations(samples_at(position, static=np.zeros(len(position), bool))) == []


RATE_HZ = 250.0
DWELL_S = 0.4
TRANSIT_S = 0.5


def stepping(levels, seed=0, noise=2e-5):
    """Return a recording: joint a steps through `levels` (rad) with dwells, joint b rests; torques are 10 a and 3."""
    t = np.arange(0, len(levels) * (DWELL_S + TRANSIT_S), 1 / RATE_HZ)
    phase = t % (DWELL_S + TRANSIT_S)
    step = (t // (DWELL_S + TRANSIT_S)).astype(int)
    s = np.clip((phase - DWELL_S) / TRANSIT_S, 0, 1)
    blend = 10 * s**3 - 15 * s**4 + 6 * s**5
    following = np.append(levels, levels[-1])
    a = levels[step] + blend * (following[step + 1] - levels[step])
    rng = np.random.default_rng(seed)
    position = np.column_stack([a, np.full_like(a, 0.7)]) + rng.normal(0, noise, (len(t), 2))
    torque = np.column_stack([10 * a, np.full_like(a, 3.0)]) + rng.normal(0, 0.1, (len(t), 2))
    return Recording(("a", "b"), t, position, np.full_like(position, np.nan), torque, source="steps")


def test_finds_dwells_with_their_approach_direction():
    levels = np.array([0.0, 0.3, 0.6, 0.3, 0.0])
    samples = static_samples(stepping(levels), SampleRules())
    assert len(samples) == 5
    np.testing.assert_allclose(samples.position[:, 0], levels, atol=1e-4)
    np.testing.assert_allclose(samples.torque, np.column_stack([10 * levels, np.full(5, 3.0)]), atol=0.08)
    assert list(samples.direction[:, 0]) == [0, 1, 1, -1, -1]
    assert not samples.direction[:, 1].any()
    assert samples.static.all()


def test_omits_short_dwells():
    samples = static_samples(stepping(np.array([0.0, 0.3, 0.6])), SampleRules(minimum_dwell=0.6))
    assert len(samples) == 1, "the last rest"


def test_slow_samples_have_low_speed_and_a_direction():
    t = np.arange(0, 20, 1 / RATE_HZ)
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
def test_omits_rests_with_changing_torque(change, kept):
    steady = stepping(np.array([0.0, 0.3, 0.6, 0.3, 0.0]))
    torque = steady.torque.copy()
    loading = (steady.time > 2 * (DWELL_S + TRANSIT_S)) & (steady.time < 2 * (DWELL_S + TRANSIT_S) + DWELL_S)
    torque[loading, 1] += np.linspace(0, change, loading.sum())
    samples = static_samples(replace(steady, torque=torque), SampleRules())
    np.testing.assert_allclose(samples.position[:, 0], [0.0, 0.3, *kept, 0.3, 0.0], atol=1e-4)


def test_cuts_a_long_rest_to_the_usual_length():
    """The servo loads the joint before it leaves a long rest."""
    longer = stepping(np.array([0.0, 0.3, 0.6, 0.6, 0.3, 0.0]))
    departs = 3 * (DWELL_S + TRANSIT_S) + DWELL_S
    loading = (longer.time > departs - TRANSIT_S) & (longer.time < departs)
    torque = longer.torque.copy()
    torque[loading, 0] += np.linspace(0, 5, loading.sum())
    samples = static_samples(replace(longer, torque=torque), SampleRules())
    np.testing.assert_allclose(samples.torque[:, 0], [0.0, 3.0, 6.0, 3.0, 0.0], atol=0.08)


def test_approach_side_of_a_waiting_joint_is_unknown():
    progress = np.linspace(0.0, 1.0, 11)
    first = np.clip(2 * progress, 0.0, 1.0)
    later = np.clip(2 * progress - 1, 0.0, 1.0)
    one_step = np.array([0.0, *np.ones(10)])
    cases = (
        ((first, later), [0, 1]),
        ((-later, first), [-1, 0]),
        ((progress, -progress), [1, -1]),
        ((one_step, 0.0 * progress), [1, 0]),
    )
    for joints, side in cases:
        path = np.column_stack(joints)
        assert side_of_approach(path, path[-1], 0.005).tolist() == side


def test_friction_of_a_repeated_pose_is_known_in_another_recording():
    samples = samples_at(np.full((2, 1), 0.3))
    assert samples.friction_known.ravel().tolist() == [True, False]
    assert replace(samples, part=np.arange(2)).friction_known.all()


def test_rest_with_a_single_sample_does_not_affect_others():
    whole = stepping(np.array([0.0, 0.3, 0.6, 0.3, 0.0]))
    elapsed = whole.time - 2 * (DWELL_S + TRANSIT_S)
    lost = (elapsed > 0.05) & (elapsed < DWELL_S - 0.05)
    lost[np.flatnonzero(lost)[lost.sum() // 2]] = False
    samples = static_samples(whole.slice(~lost), SampleRules())
    np.testing.assert_allclose(samples.position[:, 0], [0.0, 0.3, 0.3, 0.0], atol=1e-4)


def test_refuses_too_few_samples():
    short = stepping(np.array([0.0])).slice(slice(0, 5))
    with pytest.raises(IdentificationError, match="steps: 5 samples"):
        static_samples(short, SampleRules())


def test_joined_samples_have_part_numbers():
    one = static_samples(stepping(np.array([0.0, 0.3])), SampleRules())
    joined = Samples.join([one, one])
    assert list(joined.part) == [0] * len(one) + [1] * len(one)


def test_pairs_approaches_with_the_same_load():
    """Poses are paired only with the same load, and each sample belongs to one pair."""
    position = np.tile([[0.5, -0.2]], (6, 1))
    side = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    samples = replace(samples_at(position), direction=np.column_stack([side, side]))
    sample = np.repeat(np.arange(6), 2)
    joint = np.tile([0, 1], 6)
    loaded = np.array([0, 1, 1, 1, 0, 0])
    pairs = Approaches.among(samples, sample, joint, ("a", "b"), loaded)
    rows = {(int(sample[up]), int(sample[down])) for up, down in zip(pairs.up, pairs.down, strict=True)}
    assert len(pairs.up) == len(set(pairs.up.tolist())) == 4
    assert rows == {(2, 1), (0, 5)} or rows == {(2, 3), (0, 5)}
    assert all(joint[up] == joint[down] for up, down in zip(pairs.up, pairs.down, strict=True))
