"""Which samples count as the same kind of motion."""

import numpy as np
import pytest

from dynid_ros.identification.equations import MotionKinds


def motion(time: np.ndarray, n: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity of random harmonics with a period of 10 s."""
    rng = np.random.default_rng(seed)
    rate = 0.2 * np.pi * np.arange(1, 6)
    size, phase = rng.normal(size=(2, 5, n))
    angle = rate[:, None] * time[:, None, None] + phase
    return np.sum(size * np.sin(angle), axis=1), np.sum(size * rate[:, None] * np.cos(angle), axis=1)


def test_repetitions_are_of_the_same_kind():
    first = motion(np.arange(0, 10, 0.03))
    later = motion(np.arange(0, 10, 0.03) + 20)
    kinds = MotionKinds([motion(np.arange(0, 25, 0.03))])
    np.testing.assert_array_equal(kinds.of(*first), kinds.of(*later))


def test_repetitions_in_another_recording_are_too():
    time = np.arange(0, 10, 0.03)
    kinds = MotionKinds([motion(time), motion(time[100:250]), motion(time, seed=1)])
    np.testing.assert_array_equal(kinds.of(*motion(time))[100:250], kinds.of(*motion(time[100:250])))
    assert len(np.intersect1d(kinds.of(*motion(time)), kinds.of(*motion(time, seed=1)))) < 10


def test_kinds_are_stretches_of_time():
    kind = MotionKinds([motion(np.arange(0, 10, 0.03))]).of(*motion(np.arange(0, 10, 0.03)))
    assert len(np.unique(kind)) == 10
    assert np.count_nonzero(np.diff(kind)) < 30, "motion rarely returns to a kind within a period"


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_units_do_not_count(unit):
    time = np.arange(0, 10, 0.03)
    position, velocity = motion(time)
    scale = np.array([1.0, unit, 1.0])
    one = MotionKinds([(position, velocity)]).of(position, velocity)
    other = MotionKinds([(position * scale, velocity * scale)]).of(position * scale, velocity * scale)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("size", [1, 5, 10, 25, 99])
def test_few_samples_make_few_kinds(size):
    one = motion(np.arange(size) * 0.1)
    kind = MotionKinds([one]).of(*one)
    assert len(kind) == size
    assert 1 <= len(np.unique(kind)) <= max(1, size // 10)


def test_joints_at_rest():
    time = np.arange(0, 10, 0.03)
    position, velocity = motion(time)
    position[:, 1], velocity[:, 1] = 0.7, 0.0
    assert len(np.unique(MotionKinds([(position, velocity)]).of(position, velocity))) == 10
    assert np.all(MotionKinds([(0 * position, 0 * velocity)]).of(0 * position, 0 * velocity) == 0)


def test_long_recordings_take_no_longer_to_learn():
    time = np.arange(0, 2000, 0.01)
    position, velocity = motion(time)
    kind = MotionKinds([(position, velocity)]).of(position, velocity)
    assert len(np.unique(kind)) == 10
    assert np.mean(kind[:1000] == kind[-1000:]) > 0.99
