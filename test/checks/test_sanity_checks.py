"""Run a small version of benchmarks/sanity_gate.py: sound recordings pass and faults are reported."""

import numpy as np
import pytest

pytest.importorskip("mujoco")
from clean_recordings import clean_case
from gate_recordings import sound_case
from recording_faults import FAULTS

from dynid_ros.recording import check

ARMS = ("planar",) * 7 + ("demo",)
N_CLEAN_SEEDS = 40
N_FAULT_SEEDS = 2
GEOMETRY_FAULTS = (
    *("a position's ratio", "a link's origin", "base tilted by 5°"),
    *("an encoder's zero", "percent of rated", "lag of 20 ms"),
)
"""Faults that matter in few motions of these arms; separate modules test them quickly."""
MODEL_FAULTS = (
    *("all torques' signs", "a torque's sign", "a position's sign", "torques swapped", "positions swapped"),
    *("gravity direction", "time lag", "torque low-passed", "all low-passed", "friction drifts"),
)
"""Faults that test_model_faults.py tests quickly."""


def list_seeds(count, quick):
    """Return seeds as parameters; all are slow except the first `quick` ones."""
    return [pytest.param(seed, marks=[pytest.mark.slow] if seed >= quick else []) for seed in range(count)]


@pytest.mark.parametrize("seed", list_seeds(N_CLEAN_SEEDS, quick=4))
def test_sound_recordings_have_no_findings(seed):
    case = clean_case(np.random.default_rng(seed), ARMS[seed % len(ARMS)])
    assert check(case.recording, case.robot, motion=True) == []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in MODEL_FAULTS else [])
        for name in FAULTS
        if name not in (*GEOMETRY_FAULTS, "other robot")
    ],
)
@pytest.mark.parametrize("seed", list_seeds(N_FAULT_SEEDS, quick=1))
def test_reports_faults(name, seed):
    rng = np.random.default_rng([seed, list(FAULTS).index(name)])
    arm = ARMS[int(rng.integers(len(ARMS)))]
    case = None
    while case is None:  # the fault has no effect in some motions
        case = FAULTS[name].put(clean_case(rng, arm), rng)
    findings = check(case.recording, case.robot, motion=True)
    assert FAULTS[name].found(findings), [str(finding) for finding in findings]
    assert all(finding.fix for finding in findings)


@pytest.mark.slow
@pytest.mark.parametrize("split", ["develop", "held out"])
@pytest.mark.parametrize("seed", range(10))
def test_other_motions_and_friction_have_no_findings(split, seed):
    case = sound_case(np.random.default_rng([seed, 7]), split)
    assert check(case.recording, case.robot, motion=True) == [], case.recording.source


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, kind in FAULTS.items() if len(kind.motions) > 1 or name in GEOMETRY_FAULTS]
)
def test_reports_faults_of_held_out_arms(name):
    rng = np.random.default_rng([3, list(FAULTS).index(name)])
    case = None
    while case is None:
        case = FAULTS[name].put(sound_case(rng, "held out", str(rng.choice(FAULTS[name].motions))), rng)
    assert FAULTS[name].found(check(case.recording, case.robot, motion=True)), case.recording.source
