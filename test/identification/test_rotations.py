"""Single-joint rotations among samples."""

import known_problems as known
import numpy as np

from dynid_ros.identification.static_samples import Samples, rotations


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


def test_random_poses_are_no_rotation():
    assert rotations(samples_at(np.random.default_rng(2).uniform(-1, 1, (20, 4)))) == []


def test_slow_samples_are_passed_over():
    position = known.single_rotations(np.zeros(3), np.pi, 5, [1])
    assert rotations(samples_at(position, static=np.zeros(len(position), bool))) == []
