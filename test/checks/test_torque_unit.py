"""Torques of one joint, or of all, in another unit."""

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


def findings_with(case, torque):
    return check(replace(case.recording, torque=torque), case.robot, motion=True)


def scaled(case, joint, factor):
    torque = case.recording.torque.copy()
    torque[:, joint] *= factor
    return torque


def test_a_sound_recording_has_no_unit_to_report(sound):
    assert check(sound.recording, sound.robot, motion=True) == []


@pytest.mark.parametrize(("joint", "factor"), [(0, 0.1), (2, 4.0), (0, 1033.0)])
def test_one_joint_in_another_unit_is_named(sound, joint, factor):
    (finding,) = findings_with(sound, scaled(sound, joint, factor))
    assert finding.kind == "motor current"
    assert f"joint '{sound.robot.joint_names[joint]}'" in finding.where


def test_percent_of_the_rated_torque_in_all_joints(sound):
    findings = findings_with(sound, sound.recording.torque * 100.0 / sound.robot.limits.effort)
    assert [finding.kind for finding in findings] == ["motor current"]
    assert "percent of the rated torque" in findings[0].message


def test_a_torque_far_beyond_its_effort_limit_in_a_joint_of_friction_alone(sound):
    """The last joint's torque is its own friction: no other joint shows its unit."""
    (finding,) = findings_with(sound, scaled(sound, 5, 1033.0))
    assert finding.severity == "error"
    assert f"joint '{sound.robot.joint_names[5]}'" in finding.where
    assert "times the" in finding.message


def test_a_torque_far_beyond_its_effort_limit(sound):
    robot = sound.robot
    limits = replace(robot.limits, effort=np.array([20.0, 30.0, 20.0, 1.0, 1.0, 1.0]))
    weaker = type(robot)(replace(robot.chain, limits=limits), robot.parameters, robot.gravity, robot.urdf)
    (finding,) = check(replace(sound.recording, torque=scaled(sound, 5, 60.0)), weaker, motion=True)
    assert f"joint '{robot.joint_names[5]}'" in finding.where
    assert "effort limit of 1 N m" in finding.message


def test_effort_limits_that_the_arm_itself_exceeds_are_placeholders(sound):
    robot = sound.robot
    limits = replace(robot.limits, effort=np.ones(robot.n_joints))
    placeholder = type(robot)(replace(robot.chain, limits=limits), robot.parameters, robot.gravity, robot.urdf)
    assert check(sound.recording, placeholder, motion=True) == []


def test_one_effort_limit_of_revolute_and_prismatic_joints_is_a_placeholder():
    """The URDF of a MELFA RH-6FRH says 1 for each joint, and has no masses."""
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


def test_a_torque_of_noise_alone_is_no_unit():
    """In rests the first joint, whose axis is vertical, shows noise: any factor would only give it less weight."""
    findings = check(weighed_loads.resting(), weighed_loads.experiment().robot)
    assert not [it for it in findings if it.kind == "motor current"]


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("size", "severity"), [(120.0, None), (200.0, "warning"), (2000.0, "error")])
def test_sizes_count_whichever_way_a_torque_acts(sign, size, severity):
    """Of the three joints, limited to 50 N m, the second has 45 N m."""
    robot = RobotModel.from_urdf(planar_arm.urdf())
    position, still = np.tile([0.0, 0.3, 1.0], (50, 1)), np.zeros((50, 3))
    torque = robot.gravity_torque(position)
    torque[:, :2] = [sign * size, -sign * 45.0]
    findings = list(
        check_torque_sizes(
            robot, SimpleNamespace(position=position, velocity=still, acceleration=still, torque=torque), "run"
        )
    )
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
