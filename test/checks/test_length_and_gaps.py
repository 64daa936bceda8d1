"""Repeated rows, units of time, and findings on the clock of a recording."""

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


STAMPED_RATE, STAMPED = 250, 5000


@pytest.fixture(scope="module")
def sound():
    rng = np.random.default_rng(0)
    time = np.arange(STAMPED) / STAMPED_RATE
    phase = np.outer(time, [0.7, 1.7, 2.9])
    position = np.sin(phase) + rng.normal(0, 1e-5, phase.shape)
    torque = planar_arm.holding_torque(np.sin(phase)) + rng.normal(0, 0.05, phase.shape)
    return Recording(planar_arm.JOINTS, time, position, np.full_like(phase, np.nan), torque, source="run")


def stamp_findings(recording, *, motion=False):
    return [finding.severity for finding in check(recording, motion=motion) if finding.kind == "time stamps"]


def test_even_stamps_and_stamps_with_gaps_are_sound(sound):
    kept = np.random.default_rng(1).random(STAMPED) > 0.02
    assert stamp_findings(sound) == stamp_findings(sound.slice(kept)) == []


def test_jitter_with_lost_rows_is_mended_and_said(sound):
    rng = np.random.default_rng(2)
    late = replace(sound, time=sound.time + rng.uniform(0, 3e-3, STAMPED)).slice(rng.random(STAMPED) > 0.01)
    assert stamp_findings(late) == ["warning"]


def test_jitter_of_uneven_sampling_is_an_error(sound):
    rng = np.random.default_rng(3)
    order = np.sort(rng.choice(STAMPED, STAMPED // 3, replace=False))
    stamps = np.sort(sound.time[order] + rng.normal(0, 6e-3, len(order)))
    stamps = stamps + 1e-9 * np.arange(len(stamps))
    uneven = replace(sound.slice(order), time=stamps)
    assert stamp_findings(uneven, motion=True) == ["error"]
    assert stamp_findings(uneven) == ["warning"]
