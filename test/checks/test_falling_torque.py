"""Torque that falls with speed: no friction, no wrong sign; what is wrong besides is still found."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.checks.drift import explains_more, falling_joints
from dynid_ros.checks.finding import Explanation
from dynid_ros.checks.motion_samples import motion_samples
from dynid_ros.checks.torque_model import TorqueModel, TorqueProblem
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording, check

SLOPES = np.array([0.0, 0.0, 8.0])
"""N m s/rad, as a driver that compensates more viscous friction than there is."""


@pytest.fixture(scope="module")
def robot():
    return RobotModel.from_urdf(planar_arm.urdf())


def run(robot, slopes=SLOPES, seed=0):
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, 20.0, 0.01)
    rates, phases = rng.uniform(0.8, 3.0, (3, 2)), rng.uniform(0.0, 6.0, (3, 2))
    angle = time[:, None, None] * rates + phases
    q, qd, qdd = (0.5 * np.sum(rates**d * np.sin(angle + d * np.pi / 2), axis=2) for d in (0, 1, 2))
    torque = robot.inverse_dynamics(q, qd, qdd) + 1.0 * np.tanh(qd / 0.01) + (0.5 - slopes) * qd
    torque += rng.normal(0.0, 0.05, q.shape)
    return Recording(robot.joint_names, time, q, np.full_like(q, np.nan), torque, source="run")


def test_what_falls_is_named_with_its_slope(robot):
    (finding,) = check(run(robot), robot, motion=True)
    assert (finding.severity, finding.kind, finding.where) == ("warning", "falling torque", "run")
    assert "more than its Coulomb friction: 'joint_3' by 7.5 N m s/rad, from 0.13 rad/s on; no friction" in str(finding)


def test_of_an_arm_without_masses_too(robot):
    """Gravity says nothing of the signs then."""
    unknown = RobotModel(robot.chain, 0.0 * robot.parameters, robot.gravity)
    (finding,) = check(run(robot), unknown, motion=True)
    assert finding.kind == "falling torque"


def test_sound_friction_does_not_fall(robot):
    assert check(run(robot, np.zeros(3)), robot, motion=True) == []


@pytest.mark.parametrize(("joint", "slopes"), [(0, np.zeros(3)), (2, np.zeros(3)), (0, SLOPES)])
def test_a_wrong_sign_turns_coulomb_friction_too_and_is_to_be_mended_first(robot, joint, slopes):
    it = run(robot, slopes)
    wrong = replace(it, torque=it.torque * np.where(np.arange(3) == joint, -1.0, 1.0))
    (finding,) = check(wrong, robot, motion=True)
    assert (finding.severity, finding.kind) == ("error", "wrong sign")
    assert finding.where == f"run, joint 'joint_{joint + 1}'"


def test_joints_and_gain(robot):
    falling, gain = falling_joints(TorqueProblem(TorqueModel(robot), motion_samples([run(robot)])))
    assert falling.tolist() == [False, False, True]
    assert explains_more(gain, [])
    assert not explains_more(gain, [Explanation("wrong sign", gain, "", "")])
