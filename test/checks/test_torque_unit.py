"""Test detection of torques in another unit, of one joint or all joints."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import planar_arm
import pytest
import weighed_loads
from gate_recordings import sound_case
from slide_arms import scara

from dynid_ros.checks.torque_unit import check_torque_sizes
from dynid_ros.model import RobotModel
from dynid_ros.recording import check


@pytest.fixture(scope="module")
def sound():
    return sound_case(np.random.default_rng([7, 4]), "develop", "fourier", "ur3", "coulomb")


def find_faults(case, torque):
    return check(replace(case.recording, torque=torque), case.robot, motion=True)


def scale_torque(case, joint, factor):
    torque = case.recording.torque.copy()
    torque[:, joint] *= factor
    return torque


def test_sound_torques_have_no_findings(sound):
    assert check(sound.recording, sound.robot, motion=True) == []


@pytest.mark.parametrize(("joint", "factor"), [(0, 0.1), (2, 4.0), (0, 1033.0)])
def test_reports_the_joint_of_another_unit(sound, joint, factor):
    (finding,) = find_faults(sound, scale_torque(sound, joint, factor))
    assert finding.kind == "motor current"
    assert f"joint '{sound.robot.joint_names[joint]}'" in finding.where


def test_reports_percent_of_the_rated_torque(sound):
    findings = find_faults(sound, sound.recording.torque * 100.0 / sound.robot.limits.effort)
    assert [finding.kind for finding in findings] == ["motor current"]
    assert "percent of the rated torque" in findings[0].message


def test_reports_huge_torques_of_joints_with_friction_only(sound):
    """The torque of the last joint is its own friction, so no other joint determines its unit."""
    (finding,) = find_faults(sound, scale_torque(sound, 5, 1033.0))
    assert finding.severity == "error"
    assert f"joint '{sound.robot.joint_names[5]}'" in finding.where
    assert "times the" in finding.message


def test_reports_torques_far_beyond_the_effort_limit(sound):
    robot = sound.robot
    limits = replace(robot.limits, effort=np.array([20.0, 30.0, 20.0, 1.0, 1.0, 1.0]))
    weaker = type(robot)(replace(robot.chain, limits=limits), robot.parameters, robot.gravity, robot.urdf)
    (finding,) = check(replace(sound.recording, torque=scale_torque(sound, 5, 60.0)), weaker, motion=True)
    assert f"joint '{robot.joint_names[5]}'" in finding.where
    assert "effort limit of 1 N m" in finding.message


def test_ignores_effort_limits_below_gravity(sound):
    robot = sound.robot
    limits = replace(robot.limits, effort=np.ones(robot.n_joints))
    placeholder = type(robot)(replace(robot.chain, limits=limits), robot.parameters, robot.gravity, robot.urdf)
    assert check(sound.recording, placeholder, motion=True) == []


def test_ignores_equal_limits_of_revolute_and_prismatic_joints():
    """The URDF of a MELFA RH-6FRH has limits of 1 for each joint and no masses."""
    robot = scara()
    limits = replace(robot.limits, effort=np.ones(robot.n_joints))
    placeholder = RobotModel(replace(robot.chain, limits=limits), 0.0 * robot.parameters, robot.gravity)
    time = np.arange(0.0, 10.0, 0.01)
    position = 0.1 * np.sin(np.outer(time, [1.0, 1.3, 1.7, 2.1]))
    torque = np.array([12.0, 5.0, 35.0, 0.3]) * np.cos(np.outer(time, [1.0, 1.3, 1.7, 2.1]))
    rest = np.zeros_like(position)
    samples = SimpleNamespace(position=position, velocity=rest, acceleration=rest, torque=torque)
    assert list(check_torque_sizes(placeholder, samples, "run")) == []
    limits = replace(limits, effort=np.array([10.0, 10.0, 50.0, 0.05]))
    described = RobotModel(replace(robot.chain, limits=limits), robot.parameters, robot.gravity)
    (finding,) = check_torque_sizes(described, samples, "run")
    assert robot.joint_names[3] in finding.where
    assert "placeholder" in finding.fix


def test_noise_is_not_mistaken_for_another_unit():
    """Only noise shows in the first, vertical joint at rest: any factor would only reduce its weight."""
    findings = check(weighed_loads.record_rests(), weighed_loads.experiment().robot)
    assert not [finding for finding in findings if finding.kind == "motor current"]


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("size", "severity"), [(120.0, None), (200.0, "warning"), (2000.0, "error")])
def test_judges_torques_of_either_sign(sign, size, severity):
    """The three joints are limited to 50 N m; the second has 45 N m."""
    robot = RobotModel.from_urdf(planar_arm.urdf())
    position = np.tile([0.0, 0.3, 1.0], (50, 1))
    still = np.zeros((50, 3))
    torque = robot.gravity_torque(position)
    torque[:, :2] = [sign * size, -sign * 45.0]
    samples = SimpleNamespace(position=position, velocity=still, acceleration=still, torque=torque)
    findings = check_torque_sizes(robot, samples, "run")
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
