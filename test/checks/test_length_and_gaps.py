"""Test checks of repeated rows, the unit of time and time stamps."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.recording import Recording, check

RATE_HZ = 200
N = 4000


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(0)
    time = np.arange(N) / RATE_HZ
    q = np.sin(np.outer(time, [0.5, 0.7, 0.9]))
    torque = rng.normal(0, 1.0, q.shape)
    return Recording(planar_arm.JOINTS, time, q + rng.normal(0, 1e-5, q.shape), np.full_like(q, np.nan), torque)


def repeat_rows(recording, share, seed=0):
    """Return the recording where a share of rows repeats the previous row in all channels."""
    old = np.random.default_rng(seed).random(recording.n_samples) < share
    rows = np.maximum.accumulate(np.where(old, 0, np.arange(recording.n_samples)))
    return replace(recording, position=recording.position[rows], torque=recording.torque[rows])


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_reports_repeated_rows(clean, share):
    (finding,) = check(repeat_rows(clean, share))
    assert (finding.severity, finding.kind) == ("warning", "repeated rows")
    assert abs(int(finding.message.split(" %")[0]) - 100 * share) <= 2


def test_accepts_few_repeated_rows(clean):
    assert check(repeat_rows(clean, 0.01)) == []


def test_accepts_coarse_sensors_at_rest(clean):
    still = np.round(np.random.default_rng(1).normal(0, 0.3, (N, 3)))
    assert check(replace(clean, position=1e-4 * still, torque=still)) == []


def test_accepts_repeated_rows_at_rest(clean):
    rest = np.arange(N) > N // 2
    values = np.where(rest[:, None], clean.position[N // 2], clean.position)
    torque = np.where(rest[:, None], np.round(clean.torque / 4), clean.torque)
    assert check(replace(clean, position=values, torque=torque)) == []


@pytest.mark.parametrize(("unit", "factor"), [("ms", 1e3), ("µs", 1e6), ("ns", 1e9)])
def test_reports_time_in_another_unit(clean, unit, factor):
    (finding,) = check(replace(clean, time=clean.time * factor))
    assert (finding.severity, finding.kind) == ("error", "absurd value")
    assert finding.message.startswith(f"its samples are {factor / RATE_HZ:.3g} s apart, and no joint is faster than ")
    assert finding.fix == f"time must be in s; as {unit} it would make sense: divide it by {factor:g}"


def test_slowly_recorded_poses_are_not_time_in_another_unit(clean):
    poses = np.random.default_rng(3).uniform(-1, 1, (40, 3))
    slow = replace(clean, time=30.0 * np.arange(40), position=poses, velocity=0 * poses, torque=poses)
    assert [finding for finding in check(slow) if finding.kind == "absurd value"] == []


STAMPED_RATE_HZ = 250
STAMPED_SAMPLES = 5000


@pytest.fixture(scope="module")
def sound():
    rng = np.random.default_rng(0)
    time = np.arange(STAMPED_SAMPLES) / STAMPED_RATE_HZ
    phase = np.outer(time, [0.7, 1.7, 2.9])
    position = np.sin(phase) + rng.normal(0, 1e-5, phase.shape)
    torque = planar_arm.holding_torque(np.sin(phase)) + rng.normal(0, 0.05, phase.shape)
    return Recording(planar_arm.JOINTS, time, position, np.full_like(phase, np.nan), torque, source="run")


def list_stamp_findings(recording, *, motion=False):
    return [finding.severity for finding in check(recording, motion=motion) if finding.kind == "time stamps"]


def test_accepts_regular_stamps_with_gaps(sound):
    kept = np.random.default_rng(1).random(STAMPED_SAMPLES) > 0.02
    assert list_stamp_findings(sound) == list_stamp_findings(sound.slice(kept)) == []


def test_warns_about_jitter_with_lost_rows(sound):
    rng = np.random.default_rng(2)
    late = replace(sound, time=sound.time + rng.uniform(0, 3e-3, STAMPED_SAMPLES)).slice(
        rng.random(STAMPED_SAMPLES) > 0.01
    )
    assert list_stamp_findings(late) == ["warning"]


def test_jitter_of_irregular_sampling_is_an_error_for_motion(sound):
    rng = np.random.default_rng(3)
    order = np.sort(rng.choice(STAMPED_SAMPLES, STAMPED_SAMPLES // 3, replace=False))
    stamps = np.sort(sound.time[order] + rng.normal(0, 6e-3, len(order)))
    stamps = stamps + 1e-9 * np.arange(len(stamps))
    uneven = replace(sound.slice(order), time=stamps)
    assert list_stamp_findings(uneven, motion=True) == ["error"]
    assert list_stamp_findings(uneven) == ["warning"]
