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
from dynid_ros.recording import Finding, Recording, check

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


def the_finding(recording, robot=None, severity="warning") -> Finding:
    (finding,) = check(recording, robot)
    assert finding.severity == severity
    assert finding.fix
    return finding


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


@pytest.mark.parametrize(("n", "severity"), [(9, "error"), (99, "warning")])
def test_few_samples(clean, n, severity):
    assert f"only {n} samples" in str(the_finding(clean.slice(slice(0, n)), severity=severity))


def test_truncated(clean):
    assert "cut off: 10.0 s could be read" in str(the_finding(replace(clean, truncated=True)))


def test_one_lost_sample_of_a_regular_clock(clean):
    keep = np.arange(N) != 1000
    assert "1 gaps, about 1 samples lost; the longest is 4 ms at t = 1.998 s" in str(the_finding(clean.slice(keep)))


def test_longer_gaps(clean):
    keep = np.ones(N, bool)
    keep[100:110] = keep[2000:2050] = False
    assert "2 gaps, about 60 samples lost; the longest is 102 ms at t = 3.998 s" in str(the_finding(clean.slice(keep)))


def test_gap_of_an_irregular_clock(clean):
    rng = np.random.default_rng(2)
    step = rng.uniform(0.3, 1.6, N) / RATE
    step[300] = 0.06
    assert "1 gaps" in str(the_finding(sampled_at(clean, np.cumsum(step))))


def test_no_torque_at_all(clean, robot):
    nothing = replace(clean, torque=np.full((N, 3), np.nan))
    assert "no torque was recorded for any joint" in str(the_finding(nothing, robot, "error"))


def test_no_torque_of_one_joint(clean, robot):
    finding = the_finding(changed(clean, "torque", slice(None), 1, np.nan), robot, "error")
    assert finding.where == "run, joint 'joint_2'"


def test_some_torques_missing(clean, robot):
    finding = the_finding(changed(clean, "torque", slice(250, 300), 2, np.nan), robot)
    assert "joint 'joint_3': its torque is NaN in 50 of 5000 samples, first at sample 250, t = 0.500 s" in str(finding)


@pytest.mark.parametrize("value", [0.0, 3.25])
def test_dead_torque_channel(clean, value):
    finding = the_finding(changed(clean, "torque", slice(None), 0, value))
    assert f"joint 'joint_1': its torque is {value:g} in all samples, though the arm moved" in str(finding)


def test_velocity_of_zeros(clean):
    finding = the_finding(changed(clean, "velocity", slice(None), 2, 0.0))
    assert "joint 'joint_3': it moved, but its velocity is 0 in all samples" in str(finding)


def test_stuck_encoder(clean):
    finding = the_finding(changed(clean, "position", slice(None), 2, 0.7), severity="error")
    assert "joint 'joint_3': its position is 0.7 in all samples, though it has a velocity" in str(finding)


@pytest.mark.parametrize(("low", "high", "limit"), [(-np.inf, 2.0, "2"), (-12.0, np.inf, "-12")])
def test_clipped_torque(clean, low, high, limit):
    joint = 2 if np.isfinite(high) else 1
    clipped = replace(clean, torque=clean.torque.copy())
    values = clipped.torque[:, joint] + (3.5 if joint == 2 else 0.0)
    finding = the_finding(changed(clean, "torque", slice(None), joint, np.clip(values, low, high)))
    assert f"its torque is cut off at {limit}: " in str(finding)
    assert finding.where == f"run, joint '{planar_arm.JOINTS[joint]}'"


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
