"""Findings on the clock of a recording."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.recording import Recording, check

RATE, N = 250, 5000


@pytest.fixture(scope="module")
def sound():
    rng = np.random.default_rng(0)
    time = np.arange(N) / RATE
    phase = np.outer(time, [0.7, 1.7, 2.9])
    position = np.sin(phase) + rng.normal(0, 1e-5, phase.shape)
    torque = planar_arm.holding_torque(np.sin(phase)) + rng.normal(0, 0.05, phase.shape)
    return Recording(planar_arm.JOINTS, time, position, np.full_like(phase, np.nan), torque, source="run")


def stamp_findings(recording, *, motion=False):
    return [finding.severity for finding in check(recording, motion=motion) if finding.kind == "time stamps"]


def test_even_stamps_and_stamps_with_gaps_are_sound(sound):
    kept = np.random.default_rng(1).random(N) > 0.02
    assert stamp_findings(sound) == stamp_findings(sound.slice(kept)) == []


def test_jitter_with_lost_rows_is_mended_and_said(sound):
    rng = np.random.default_rng(2)
    late = replace(sound, time=sound.time + rng.uniform(0, 3e-3, N)).slice(rng.random(N) > 0.01)
    assert stamp_findings(late) == ["warning"]


def test_jitter_of_uneven_sampling_is_an_error(sound):
    rng = np.random.default_rng(3)
    order = np.sort(rng.choice(N, N // 3, replace=False))
    stamps = np.sort(sound.time[order] + rng.normal(0, 6e-3, len(order)))
    stamps = stamps + 1e-9 * np.arange(len(stamps))
    uneven = replace(sound.slice(order), time=stamps)
    assert stamp_findings(uneven, motion=True) == ["error"]
    assert stamp_findings(uneven) == ["warning"]
