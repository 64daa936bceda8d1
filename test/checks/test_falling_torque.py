"""Test detection of torque that decreases with speed, and of other faults in such recordings."""

from dataclasses import replace

import numpy as np
import pytest

from dynid_ros.checks.drift import explains_more, falling_joints
from dynid_ros.checks.finding import Explanation
from dynid_ros.checks.motion_samples import motion_samples
from dynid_ros.checks.torque_model import TorqueModel, TorqueProblem
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording, check

SLOPES_NM_S_PER_RAD = np.array([0.0, 0.0, 8.0])
"""Slopes by a driver that overcompensates viscous friction."""


def create_recording(robot, slopes=SLOPES_NM_S_PER_RAD, seed=0):
    """Return a recording whose torques decrease with speed by the slopes."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, 20.0, 0.01)
    rates = rng.uniform(0.8, 3.0, (3, 2))
    phases = rng.uniform(0.0, 6.0, (3, 2))
    angle = time[:, None, None] * rates + phases
    q, qd, qdd = (0.5 * np.sum(rates**d * np.sin(angle + d * np.pi / 2), axis=2) for d in (0, 1, 2))
    torque = robot.inverse_dynamics(q, qd, qdd) + 1.0 * np.tanh(qd / 0.01) + (0.5 - slopes) * qd
    torque += rng.normal(0.0, 0.05, q.shape)
    return Recording(robot.joint_names, time, q, np.full_like(q, np.nan), torque, source="run")


def test_reports_joint_and_slope_of_falling_torque(robot):
    (finding,) = check(create_recording(robot), robot, motion=True)
    assert (finding.severity, finding.kind, finding.where) == ("warning", "falling torque", "run")
    assert "'joint_3' by 7.5 N m s/rad, from 0.13 rad/s on" in str(finding)


def test_reports_falling_torque_without_masses(robot):
    """Gravity does not determine the signs without masses."""
    unknown = RobotModel(robot.chain, 0.0 * robot.parameters, robot.gravity)
    (finding,) = check(create_recording(robot), unknown, motion=True)
    assert finding.kind == "falling torque"


def test_accepts_sound_friction(robot):
    assert check(create_recording(robot, np.zeros(3)), robot, motion=True) == []


@pytest.mark.parametrize(("joint", "slopes"), [(0, np.zeros(3)), (2, np.zeros(3)), (0, SLOPES_NM_S_PER_RAD)])
def test_wrong_signs_take_precedence_over_falling_torque(robot, joint, slopes):
    recording = create_recording(robot, slopes)
    wrong = replace(recording, torque=recording.torque * np.where(np.arange(3) == joint, -1.0, 1.0))
    (finding,) = check(wrong, robot, motion=True)
    assert (finding.severity, finding.kind) == ("error", "wrong sign")
    assert finding.where == f"run, joint 'joint_{joint + 1}'"


def test_falling_torque_competes_with_other_explanations(robot):
    falling, gain = falling_joints(TorqueProblem(TorqueModel(robot), motion_samples([create_recording(robot)])))
    assert falling.tolist() == [False, False, True]
    assert explains_more(gain, [])
    assert not explains_more(gain, [Explanation("wrong sign", gain, "", "")])
