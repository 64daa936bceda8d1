"""Motion from positions, against motion that is known at every time."""

import numpy as np
import pytest
from link_problems import Fourier

from dynid_ros.recording.uniform_motion import joint_motions, moving_rows
from dynid_ros.signals import LowPass, Motion, filtered_motion

RATE = 200.0


def relative(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean((found - true) ** 2, axis=0) / np.mean(true**2, axis=0))


def test_motion_is_known_up_to_the_ends():
    low_pass = LowPass(17.5, RATE)
    truth = Fourier(3)(np.arange(0, 10, 1 / RATE))
    position = truth[0] + 1e-5 * np.random.default_rng(0).normal(size=truth[0].shape)
    (found,) = joint_motions([position], low_pass)
    plain = filtered_motion(position, low_pass)
    ends = np.r_[0 : low_pass.edge, len(position) - low_pass.edge : len(position)]
    for values, true, limit in zip(found, truth, (1e-4, 1e-3, 0.02), strict=True):
        assert np.all(relative(values[low_pass.edge : -low_pass.edge], true[low_pass.edge : -low_pass.edge]) < limit)
    assert np.all(relative(found.velocity[ends], truth[1][ends]) < 0.005)
    assert np.all(relative(found.acceleration[ends], truth[2][ends]) < 0.1)
    assert np.all(relative(plain.acceleration[ends], truth[2][ends]) > 0.15)  # what it would be else


@pytest.mark.parametrize("size", [7, 8, 20, 100])
def test_short_stretches_keep_their_length(size):
    q, qd, _ = Fourier(2, base=0.5)(np.arange(size) / RATE)
    (found,) = joint_motions([q], LowPass(10, RATE))
    assert [values.shape for values in found] == [(size, 2)] * 3
    assert np.all(relative(found.velocity, qd) < 0.1)


def test_a_joint_that_rests_has_no_velocity():
    rng = np.random.default_rng(1)
    q, _, _ = Fourier(3, still=(1,))(np.arange(0, 6, 1 / RATE))
    noisy = q + 1e-4 * rng.normal(size=q.shape)
    found = joint_motions([noisy[:500], noisy[600:]], LowPass(15, RATE))
    for motion in found:
        assert not motion.velocity[:, 1].any()
        assert not motion.acceleration[:, 1].any()
        np.testing.assert_allclose(motion.position[:, 1], q[0, 1], atol=1e-4)
        assert np.ptp(motion.position[:, 1]) == 0
        assert np.all(motion.velocity[:, [0, 2]].std(axis=0) > 0.1)


def test_a_joint_that_moves_in_another_stretch_does_not_rest():
    q, _, _ = Fourier(2)(np.arange(0, 6, 1 / RATE))
    held = q.copy()
    held[:600, 1] = held[600, 1]
    first, second = joint_motions([held[:600], held[600:]], LowPass(15, RATE))
    assert second.velocity[:, 1].std() > 0.1
    np.testing.assert_allclose(first.velocity[:, 1], 0, atol=1e-9)


def test_no_stretches():
    assert joint_motions([], LowPass(15, RATE)) == []


def motion(velocity: np.ndarray) -> Motion:
    return Motion(np.zeros_like(velocity), velocity, np.zeros_like(velocity))


def test_motion_is_under_way_from_start_to_stop():
    time = np.arange(0, 20, 1 / RATE)
    velocity = np.stack([np.sin(5 * time), 1e-3 * np.cos(4 * time), 0 * time], axis=1)
    velocity[(time < 4) | (time > 15)] = 0.0
    velocity[(time > 8) & (time < 9)] = 0.0  # turns round, or rests on its way
    rows = moving_rows(motion(velocity), RATE)
    assert time[rows][0] == pytest.approx(4.0, abs=0.5)
    assert time[rows][-1] == pytest.approx(15.0, abs=0.5)


def test_a_slow_joint_counts_as_much_as_a_fast_one():
    time = np.arange(0, 20, 1 / RATE)
    velocity = np.stack([np.where(time < 10, 2 * np.sin(5 * time), 0), np.where(time > 10, 1e-3, 0)], axis=1)
    rows = moving_rows(motion(velocity), RATE)
    assert time[rows][0] < 0.6
    assert time[rows][-1] == time[-1]


@pytest.mark.parametrize("size", [1, 7, 50])
def test_rows_of_rest_and_of_short_motion(size):
    still = np.zeros((size, 2))
    assert moving_rows(motion(still), RATE) == slice(0, 0)
    assert moving_rows(motion(still + 1.0), RATE) == slice(0, size)
