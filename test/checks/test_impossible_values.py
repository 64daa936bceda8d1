"""Test checks of impossible values: limits, units, encoder wraps, glitches and huge torques."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.checks.finding import CheckSettings
from dynid_ros.checks.torque_unit import check_values
from dynid_ros.model import RobotModel
from dynid_ros.model.chain import JointLimits
from dynid_ros.recording import Recording

N = 1000


@pytest.fixture(scope="module")
def clean():
    time = np.arange(N) / 100
    q = np.sin(np.outer(time, [0.5, 0.7, 0.9]))
    return Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), 20 * np.cos(q), source="run")


def list_findings(recording, robot):
    findings = check_values(recording, CheckSettings(robot))
    return [(finding.severity, finding.kind, finding.where) for finding in findings]


def test_accepts_sound_values(clean, robot):
    assert list_findings(clean, robot) == []
    assert list_findings(replace(clean, torque=np.full((N, 3), np.nan)), robot) == []


@pytest.mark.parametrize(
    ("factor", "severity", "kind"), [(3.0, "warning", "beyond limits"), (57.3, "error", "absurd value")]
)
@pytest.mark.parametrize("side", [np.maximum, np.minimum])
def test_reports_positions_beyond_either_limit(clean, robot, factor, severity, kind, side):
    position = side(factor * clean.position, 0.0)
    assert [finding[:2] for finding in list_findings(replace(clean, position=position), robot)] == [
        (severity, kind)
    ] * 3


def test_accepts_positions_of_joints_with_an_empty_range(clean, robot):
    """The joint is revolute with limits of 0 and 0, as in URDF files whose author meant continuous."""
    limits = replace(robot.limits, lower=np.array([-2.5, 0.0, -2.5]), upper=np.array([2.5, 0.0, 2.5]))
    unlimited = RobotModel(replace(robot.chain, limits=limits), robot.parameters, robot.gravity)
    assert list_findings(clean, unlimited) == []


def test_reports_placeholder_masses(clean, robot):
    light = RobotModel(robot.chain, 1e-5 * robot.parameters, robot.gravity)
    finding = next(check_values(clean, CheckSettings(light)))
    assert (finding.severity, finding.kind) == ("error", "absurd value")
    assert "% of the samples: far more than an arm as light as the URDF's needs" in finding.message
    assert "the URDF has masses in place of unknown ones" in finding.fix


def test_reports_positions_in_degrees_without_limits(clean, robot):
    unlimited = RobotModel(replace(robot.chain, limits=JointLimits.unlimited(3)), robot.parameters, robot.gravity)
    assert list_findings(replace(clean, position=20.0 * clean.position), unlimited) == []
    assert list_findings(replace(clean, position=57.3 * clean.position), unlimited) == [
        ("error", "absurd value", f"run, joint '{joint}'") for joint in planar_arm.JOINTS
    ]


def test_reports_wrapping_encoders(clean, robot):
    position = clean.position.copy()
    position[500:, 1] -= 2 * np.pi
    (finding,) = check_values(replace(clean, position=position), CheckSettings(robot))
    assert (finding.severity, finding.kind, finding.where) == ("error", "absurd value", "run, joint 'joint_2'")
    assert "jumps 1 times" in finding.message
    assert "t = 4.990 s" in finding.message


@pytest.mark.parametrize("height", [0.5, -3.0, 100.0])
def test_reports_glitches_of_an_encoder(clean, robot, height):
    position = clean.position.copy()
    position[300:302, 0] += height
    assert ("error", "absurd value", "run, joint 'joint_1'") in list_findings(replace(clean, position=position), robot)


def test_another_pose_after_a_pause_is_not_a_glitch(clean, robot):
    time = np.where(np.arange(N) < 500, clean.time, clean.time + 60)
    position = np.where(np.arange(N)[:, None] < 500, clean.position, 0.3)
    assert list_findings(replace(clean, time=time, position=position), robot) == []


@pytest.mark.parametrize(("step", "size"), [(1.0, 0.5), (1e-3, 0.08)])
def test_slow_or_small_oscillations_are_not_glitches(clean, robot, step, size):
    position = clean.position.copy()
    position[:, 0] = size * (np.arange(N) % 2)
    assert list_findings(replace(clean, time=step * np.arange(N), position=position), robot) == []


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_reports_huge_torques(clean, robot, sign):
    torque = clean.torque.copy()
    torque[700, 2] = sign * 1e6
    (finding,) = check_values(replace(clean, torque=torque), CheckSettings(robot))
    assert (finding.severity, finding.kind, finding.where) == ("error", "absurd value", "run, joint 'joint_3'")
    assert f"its torque is {sign * 1e6:.4g} at t = 7.000 s" in finding.message


def test_does_not_judge_torques_of_arms_without_masses(clean, robot):
    massless = RobotModel(robot.chain, np.zeros(30))
    assert list_findings(replace(clean, torque=1e6 * clean.torque), massless) == []
