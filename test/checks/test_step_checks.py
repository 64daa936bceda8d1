from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.recording import Recording, check

RATE, N = 200, 4000


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(0)
    time = np.arange(N) / RATE
    q = np.sin(np.outer(time, [0.5, 0.7, 0.9]))
    torque = rng.normal(0, 1.0, q.shape)
    return Recording(planar_arm.JOINTS, time, q + rng.normal(0, 1e-5, q.shape), np.full_like(q, np.nan), torque)


def repeated(recording, share, seed=0):
    """Rows taken from the row before, in all channels."""
    old = np.random.default_rng(seed).random(recording.n_samples) < share
    rows = np.maximum.accumulate(np.where(old, 0, np.arange(recording.n_samples)))
    return replace(recording, position=recording.position[rows], torque=recording.torque[rows])


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_repeated_rows_are_found(clean, share):
    (finding,) = check(repeated(clean, share))
    assert (finding.severity, finding.kind) == ("warning", "repeated rows")
    assert abs(int(finding.message.split(" %")[0]) - 100 * share) <= 2


def test_few_repeated_rows_pass(clean):
    assert check(repeated(clean, 0.01)) == []


def test_coarse_sensors_at_rest_pass(clean):
    still = np.round(np.random.default_rng(1).normal(0, 0.3, (N, 3)))
    assert check(replace(clean, position=1e-4 * still, torque=still)) == []


def test_only_the_moving_part_counts(clean):
    rest = np.arange(N) > N // 2
    values = np.where(rest[:, None], clean.position[N // 2], clean.position)
    torque = np.where(rest[:, None], np.round(clean.torque / 4), clean.torque)
    assert check(replace(clean, position=values, torque=torque)) == []


@pytest.mark.parametrize(("unit", "factor"), [("ms", 1e3), ("µs", 1e6), ("ns", 1e9)])
def test_time_in_another_unit(clean, unit, factor):
    (finding,) = check(replace(clean, time=clean.time * factor))
    assert (finding.severity, finding.kind) == ("error", "absurd value")
    assert finding.message.startswith(f"its samples are {factor / RATE:.3g} s apart, and no joint is faster than ")
    assert finding.fix == f"time must be in s; as {unit} it would make sense: divide it by {factor:g}"


def test_poses_recorded_one_by_one_are_no_time_in_another_unit(clean):
    poses = np.random.default_rng(3).uniform(-1, 1, (40, 3))
    slow = replace(clean, time=30.0 * np.arange(40), position=poses, velocity=0 * poses, torque=poses)
    assert [finding for finding in check(slow) if finding.kind == "absurd value"] == []
