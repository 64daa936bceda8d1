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
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording, check

RATE = 500
N = 10 * RATE


@pytest.fixture(scope="module")
def robot():
    return RobotModel.from_urdf(planar_arm.urdf())


@pytest.fixture(scope="module")
def clean(robot):
    """Slow sinusoids with Coulomb friction and sensor noise."""
    rng = np.random.default_rng(0)
    time = np.arange(N) / RATE
    frequency = np.array([0.5, 0.7, 0.9])
    phase = np.outer(time, frequency)
    q, qd = 1.2 * np.sin(phase), 1.2 * frequency * np.cos(phase)
    torque = robot.inverse_dynamics(q, qd, -(frequency**2) * q) + 0.5 * np.sign(qd) + rng.normal(0, 0.05, q.shape)
    return Recording(planar_arm.JOINTS, time, q + rng.normal(0, 1e-5, q.shape), qd, torque, source="run")


def changed(recording, name, rows, joint, value):
    array = getattr(recording, name).copy()
    array[rows, joint] = value
    return replace(recording, **{name: array})


def sampled_at(recording, time):
    channels = np.hstack([recording.position, recording.velocity, recording.torque])
    position, velocity, torque = np.hsplit(CubicSpline(recording.time, channels)(time), 3)
    return replace(recording, time=time, position=position, velocity=velocity, torque=torque)


def sound_recordings(clean):
    rng = np.random.default_rng(1)
    nothing = np.full((N, 3), np.nan)
    yield "clean", clean
    yield "no velocity recorded", replace(clean, velocity=nothing)
    yield "small jitter", replace(clean, time=clean.time + rng.uniform(0, 0.3 / RATE, N))
    uneven = np.cumsum(rng.choice([0.3, 1.0, 6.0], N // 2, p=[0.5, 0.4, 0.1])) / RATE
    yield "uneven sampling", sampled_at(clean, uneven)
    held = np.repeat(np.arange(0, N, 2), 2)
    yield "rows repeated with new stamps", replace(clean, position=clean.position[held], torque=clean.torque[held])
    yield "quantised torque", replace(clean, torque=np.round(clean.torque * 4) / 4)
    pose = np.tile([0.3, -1.0, 0.4], (300, 1))
    still = Recording(planar_arm.JOINTS, np.arange(300) / RATE, pose, 0 * pose, planar_arm.holding_torque(pose))
    yield "one pose without noise", still
    q = np.repeat(rng.uniform(-1, 1, (6, 3)), 300, axis=0)
    torque = planar_arm.holding_torque(q) + np.array([1.0, 0.0, 0.0]) * q
    yield (
        "poses without noise",
        Recording(planar_arm.JOINTS, np.arange(len(q)) / RATE, q, np.full_like(q, np.nan), torque),
    )


def test_sound_recordings_pass(clean, robot):
    for label, recording in sound_recordings(clean):
        assert check(recording, robot) == [], label
        assert check(recording) == [], label


def test_joints_are_matched_by_name(clean, robot):
    assert check(clean.select(clean.joint_names[::-1]), robot) == []
    with pytest.raises(RecordingError, match=r"run lacks joint\(s\) joint_3"):
        check(clean.select(["joint_1", "joint_2"]), robot)


def without(recording, *lost):
    keep = np.ones(N, bool)
    for rows in lost:
        keep[rows] = False
    return recording.slice(keep)


def with_irregular_clock(recording):
    step = np.random.default_rng(2).uniform(0.3, 1.6, N) / RATE
    step[300] = 0.06
    return sampled_at(recording, np.cumsum(step))


def clipped(recording, joint, low, high, offset=0.0):
    return changed(recording, "torque", ALL, joint, np.clip(recording.torque[:, joint] + offset, low, high))


ALL = slice(None)
FAULTS = {
    "9 samples": (lambda it: it.slice(slice(0, 9)), "error", "only 9 samples"),
    "99 samples": (lambda it: it.slice(slice(0, 99)), "warning", "only 99 samples"),
    "truncated": (lambda it: replace(it, truncated=True), "warning", "cut off: 10.0 s could be read"),
    "one lost sample": (
        lambda it: without(it, 1000),
        "warning",
        "1 gaps, about 1 samples lost; the longest is 4 ms at t = 1.998 s",
    ),
    "longer gaps": (
        lambda it: without(it, slice(100, 110), slice(2000, 2050)),
        "warning",
        "2 gaps, about 60 samples lost; the longest is 102 ms at t = 3.998 s",
    ),
    "gap of an irregular clock": (with_irregular_clock, "warning", "1 gaps"),
    "no torque": (lambda it: changed(it, "torque", ALL, ALL, np.nan), "error", "no torque was recorded for any joint"),
    "no torque of one joint": (lambda it: changed(it, "torque", ALL, 1, np.nan), "error", "run, joint 'joint_2'"),
    "some torques missing": (
        lambda it: changed(it, "torque", slice(250, 300), 2, np.nan),
        "warning",
        "joint 'joint_3': its torque is NaN in 50 of 5000 samples, first at sample 250, t = 0.500 s",
    ),
    "torque of zeros": (lambda it: changed(it, "torque", ALL, 0, 0.0), "warning", "'joint_1': its torque is 0 in all"),
    "constant torque": (lambda it: changed(it, "torque", ALL, 0, 3.25), "warning", "'joint_1': its torque is 3.25 in"),
    "velocity of zeros": (lambda it: changed(it, "velocity", ALL, 2, 0.0), "warning", "'joint_3': it moved, but its"),
    "stuck encoder": (
        lambda it: changed(it, "position", ALL, 2, 0.7),
        "error",
        "'joint_3': its position is 0.7 in all",
    ),
    "cut off above": (
        lambda it: clipped(it, 2, -np.inf, 2.0, 3.5),
        "warning",
        "'joint_3': its torque is cut off at 2:",
    ),
    "cut off below": (lambda it: clipped(it, 1, -12.0, np.inf), "warning", "'joint_2': its torque is cut off at -12:"),
}


@pytest.mark.parametrize(("fault", "severity", "said"), FAULTS.values(), ids=FAULTS)
def test_each_fault_has_one_finding(clean, robot, fault, severity, said):
    (finding,) = check(fault(clean), robot if "torque" in said and "cut off" not in said else None)
    assert finding.severity == severity
    assert said in str(finding)
    assert finding.fix


def test_positions_in_degrees(clean, robot):
    findings = check(replace(clean, position=np.rad2deg(clean.position), velocity=np.rad2deg(clean.velocity)), robot)
    assert sum("but its limits are -2.5 to 2.5; positions must be in rad" in str(finding) for finding in findings) == 3


def test_every_kind_is_documented():
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


def test_a_new_check_is_one_file(tmp_path, monkeypatch):
    (tmp_path / "toy_check.py").write_text(TOY_CHECK, encoding="utf-8")
    monkeypatch.setattr(dynid_ros.checks, "__path__", [*dynid_ros.checks.__path__, str(tmp_path)])
    monkeypatch.setattr(finding, "RECORDING_CHECKS", registered := list(finding.RECORDING_CHECKS))
    monkeypatch.setattr(all_checks, "RECORDING_CHECKS", registered)
    time = np.arange(5) / 10
    position = np.zeros((5, 3))
    five = Recording(planar_arm.JOINTS, time, position, position, position + 1.0, source="run")
    assert [found.kind for found in check(five)] == ["too short", "toy"]
    assert [found.kind for found in check(five.slice(slice(0, 4)))] == ["too short"]
    del sys.modules["dynid_ros.checks.toy_check"]
