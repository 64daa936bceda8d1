"""A small version of benchmarks/sanity_gate.py: sound recordings pass, faults are named."""

import numpy as np
import pytest

pytest.importorskip("mujoco")
from clean_recordings import clean_case
from gate_recordings import sound_case
from recording_faults import FAULTS

from dynid_ros.recording import check

ARMS = ("planar",) * 7 + ("demo",)
CLEAN, EACH = 40, 2
GEOMETRY = (
    *("a position's ratio", "a link's origin", "base tilted by 5°"),
    *("an encoder's zero", "percent of rated", "lag of 20 ms"),
)
"""They matter in few motions of these arms, or in none; quick tests of them are in modules of their own."""
MODEL = (
    *("all torques' signs", "a torque's sign", "a position's sign", "torques swapped", "positions swapped"),
    *("gravity direction", "time lag", "torque low-passed", "all low-passed", "friction drifts"),
)
"""Quick tests of them are in test_model_faults.py."""


def sample(count, quick):
    """Seeds: a few show that it works, all how often."""
    return [pytest.param(seed, marks=[pytest.mark.slow] if seed >= quick else []) for seed in range(count)]


@pytest.mark.parametrize("seed", sample(CLEAN, quick=len(ARMS)))
def test_sound_recordings_pass(seed):
    case = clean_case(np.random.default_rng(seed), ARMS[seed % len(ARMS)])
    assert check(case.recording, case.robot, motion=True) == []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in MODEL))
        for name in FAULTS
        if name not in (*GEOMETRY, "other robot")
    ],
)
@pytest.mark.parametrize("seed", sample(EACH, quick=1))
def test_faults_are_named(name, seed):
    rng = np.random.default_rng([seed, list(FAULTS).index(name)])
    arm = ARMS[int(rng.integers(len(ARMS)))]
    case = None
    while case is None:  # until the fault matters
        case = FAULTS[name].put(clean_case(rng, arm), rng)
    findings = check(case.recording, case.robot, motion=True)
    assert FAULTS[name].found(findings), [str(finding) for finding in findings]
    assert all(finding.fix for finding in findings)


@pytest.mark.slow
@pytest.mark.parametrize("split", ["develop", "held out"])
@pytest.mark.parametrize("seed", range(10))
def test_other_motions_and_friction_pass(split, seed):
    case = sound_case(np.random.default_rng([seed, 7]), split)
    assert check(case.recording, case.robot, motion=True) == [], case.recording.source


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, kind in FAULTS.items() if len(kind.motions) > 1 or name in GEOMETRY])
def test_faults_are_named_on_arms_that_no_threshold_was_chosen_on(name):
    rng = np.random.default_rng([3, list(FAULTS).index(name)])
    case = None
    while case is None:
        case = FAULTS[name].put(sound_case(rng, "held out", str(rng.choice(FAULTS[name].motions))), rng)
    assert FAULTS[name].found(check(case.recording, case.robot, motion=True)), case.recording.source
