"""Run all checks on sound recordings of a planar arm, and on one recording for each fault."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import planar_arm
import pytest
from scipy.interpolate import CubicSpline

import dynid_ros.checks
from dynid_ros.checks import all_checks, finding
from dynid_ros.errors import RecordingError
from dynid_ros.recording import Recording, check

RATE_HZ = 500
N = 10 * RATE_HZ


@pytest.fixture(scope="module")
def clean(robot):
    """Return slow sinusoids with Coulomb friction and sensor noise."""
    rng = np.random.default_rng(0)
    time = np.arange(N) / RATE_HZ
    frequency = np.array([0.5, 0.7, 0.9])
    phase = np.outer(time, frequency)
    q = 1.2 * np.sin(phase)
    qd = 1.2 * frequency * np.cos(phase)
    torque = robot.inverse_dynamics(q, qd, -(frequency**2) * q) + 0.5 * np.sign(qd) + rng.normal(0, 0.05, q.shape)
    return Recording(planar_arm.JOINTS, time, q + rng.normal(0, 1e-5, q.shape), qd, torque, source="run")


def change_samples(recording, name, rows, joint, value):
    array = getattr(recording, name).copy()
    array[rows, joint] = value
    return replace(recording, **{name: array})


def resample(recording, time):
    channels = np.hstack([recording.position, recording.velocity, recording.torque])
    position, velocity, torque = np.hsplit(CubicSpline(recording.time, channels)(time), 3)
    return replace(recording, time=time, position=position, velocity=velocity, torque=torque)


def create_sound_recordings(clean):
    rng = np.random.default_rng(1)
    no_velocity = np.full((N, 3), np.nan)
    yield "clean", clean
    yield "no velocity recorded", replace(clean, velocity=no_velocity)
    yield "small jitter", replace(clean, time=clean.time + rng.uniform(0, 0.3 / RATE_HZ, N))
    uneven = np.cumsum(rng.choice([0.3, 1.0, 6.0], N // 2, p=[0.5, 0.4, 0.1])) / RATE_HZ
    yield "uneven sampling", resample(clean, uneven)
    repeated = np.repeat(np.arange(0, N, 2), 2)
    yield (
        "rows repeated with new stamps",
        replace(clean, position=clean.position[repeated], torque=clean.torque[repeated]),
    )
    yield "quantised torque", replace(clean, torque=np.round(clean.torque * 4) / 4)
    pose = np.tile([0.3, -1.0, 0.4], (300, 1))
    still = Recording(planar_arm.JOINTS, np.arange(300) / RATE_HZ, pose, 0 * pose, planar_arm.holding_torque(pose))
    yield "one pose without noise", still
    q = np.repeat(rng.uniform(-1, 1, (6, 3)), 300, axis=0)
    torque = planar_arm.holding_torque(q) + np.array([1.0, 0.0, 0.0]) * q
    yield (
        "poses without noise",
        Recording(planar_arm.JOINTS, np.arange(len(q)) / RATE_HZ, q, np.full_like(q, np.nan), torque),
    )


def test_sound_recordings_have_no_findings(clean, robot):
    for label, recording in create_sound_recordings(clean):
        assert check(recording, robot) == [], label
        assert check(recording) == [], label


def test_matches_joints_of_recording_and_robot_by_name(clean, robot):
    assert check(clean.select(clean.joint_names[::-1]), robot) == []
    with pytest.raises(RecordingError, match=r"run lacks joint\(s\) joint_3"):
        check(clean.select(["joint_1", "joint_2"]), robot)


def drop_rows(recording, *gaps):
    keep = np.ones(N, bool)
    for rows in gaps:
        keep[rows] = False
    return recording.slice(keep)


def use_irregular_clock(recording):
    """Return the recording with irregular time steps and one gap."""
    step = np.random.default_rng(2).uniform(0.3, 1.6, N) / RATE_HZ
    step[300] = 0.06
    return resample(recording, np.cumsum(step))


def clip_torque(recording, joint, low, high, offset=0.0):
    return change_samples(recording, "torque", ALL, joint, np.clip(recording.torque[:, joint] + offset, low, high))


ALL = slice(None)
FAULTS = {
    "9 samples": (lambda recording: recording.slice(slice(0, 9)), "error", "only 9 samples"),
    "99 samples": (lambda recording: recording.slice(slice(0, 99)), "warning", "only 99 samples"),
    "truncated": (lambda recording: replace(recording, truncated=True), "warning", "cut off: 10.0 s could be read"),
    "one lost sample": (
        lambda recording: drop_rows(recording, 1000),
        "warning",
        "1 gaps, about 1 samples lost; the longest is 4 ms at t = 1.998 s",
    ),
    "longer gaps": (
        lambda recording: drop_rows(recording, slice(100, 110), slice(2000, 2050)),
        "warning",
        "2 gaps, about 60 samples lost; the longest is 102 ms at t = 3.998 s",
    ),
    "gap of an irregular clock": (use_irregular_clock, "warning", "1 gaps"),
    "no torque": (
        lambda recording: change_samples(recording, "torque", ALL, ALL, np.nan),
        "error",
        "no torque was recorded for any joint",
    ),
    "no torque of one joint": (
        lambda recording: change_samples(recording, "torque", ALL, 1, np.nan),
        "error",
        "run, joint 'joint_2'",
    ),
    "some torques missing": (
        lambda recording: change_samples(recording, "torque", slice(250, 300), 2, np.nan),
        "warning",
        "joint 'joint_3': its torque is NaN in 50 of 5000 samples, first at sample 250, t = 0.500 s",
    ),
    "torque of zeros": (
        lambda recording: change_samples(recording, "torque", ALL, 0, 0.0),
        "warning",
        "'joint_1': its torque is 0 in all",
    ),
    "constant torque": (
        lambda recording: change_samples(recording, "torque", ALL, 0, 3.25),
        "warning",
        "'joint_1': its torque is 3.25 in",
    ),
    "velocity of zeros": (
        lambda recording: change_samples(recording, "velocity", ALL, 2, 0.0),
        "warning",
        "'joint_3': it moved, but its",
    ),
    "stuck encoder": (
        lambda recording: change_samples(recording, "position", ALL, 2, 0.7),
        "error",
        "'joint_3': its position is 0.7 in all",
    ),
    "cut off above": (
        lambda recording: clip_torque(recording, 2, -np.inf, 2.0, 3.5),
        "warning",
        "'joint_3': its torque is cut off at 2:",
    ),
    "cut off below": (
        lambda recording: clip_torque(recording, 1, -12.0, np.inf),
        "warning",
        "'joint_2': its torque is cut off at -12:",
    ),
}


@pytest.mark.parametrize(("fault", "severity", "message"), FAULTS.values(), ids=FAULTS)
def test_each_fault_has_one_finding(clean, robot, fault, severity, message):
    (finding,) = check(fault(clean), robot if "torque" in message and "cut off" not in message else None)
    assert finding.severity == severity
    assert message in str(finding)
    assert finding.fix


def test_reports_positions_in_degrees(clean, robot):
    findings = check(replace(clean, position=np.rad2deg(clean.position), velocity=np.rad2deg(clean.velocity)), robot)
    assert sum("but its limits are -2.5 to 2.5; positions must be in rad" in str(finding) for finding in findings) == 3


def test_documents_all_kinds_of_findings():
    """Kinds are the constants of type Final in the modules of the checks."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "checks.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in Path(finding.__file__).parent.glob("*.py")]
    kinds = re.findall(r'^[A-Z_]+: Final = "([a-z -]+)"', "\n".join(sources), re.MULTILINE)
    assert set(re.findall(r"^\| `([a-z -]+)` \|", page, re.MULTILINE)) == set(kinds)


TOY_CHECK = '''
from dynid_ros.checks.finding import Finding, recording_check

@recording_check(rank=100)
def check_round_numbers(recording, settings):
    """Yield a warning for a recording of exactly five samples."""
    if recording.n_samples == 5:
        yield Finding("warning", recording.source, "it has five samples", "record another number", "toy")
'''


def test_finds_new_checks_by_their_file(tmp_path, monkeypatch):
    (tmp_path / "toy_check.py").write_text(TOY_CHECK, encoding="utf-8")
    monkeypatch.setattr(dynid_ros.checks, "__path__", [*dynid_ros.checks.__path__, str(tmp_path)])
    monkeypatch.setattr(finding, "RECORDING_CHECKS", registered := list(finding.RECORDING_CHECKS))
    monkeypatch.setattr(all_checks, "RECORDING_CHECKS", registered)
    time = np.arange(5) / 10
    position = np.zeros((5, 3))
    recording = Recording(planar_arm.JOINTS, time, position, position, position + 1.0, source="run")
    assert [result.kind for result in check(recording)] == ["too short", "toy"]
    assert [result.kind for result in check(recording.slice(slice(0, 4)))] == ["too short"]
    del sys.modules["dynid_ros.checks.toy_check"]
