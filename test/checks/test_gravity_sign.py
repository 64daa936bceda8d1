"""Test that gravity determines the signs of torques; inertia and friction do where gravity does not act."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("mujoco")
import pushing_servo

from dynid_ros.checks.effort_convention import GravitySigns
from dynid_ros.checks.finding import LOW_PASSED
from dynid_ros.checks.model_faults import PUSHING, check_model
from dynid_ros.checks.motion_samples import motion_samples
from dynid_ros.checks.torque_model import TorqueModel, TorqueProblem
from dynid_ros.model import RobotModel
from dynid_ros.recording import check

SAMPLING_ERRORS = [{"early": pushing_servo.PERIOD_S, "speed": 2.0}, {"push": 0.05}, {"push": 0.2, "coulomb": 0.03}]


def judge_signs(recording, robot):
    return GravitySigns(TorqueProblem(TorqueModel(robot), motion_samples([recording]).thinned(800)))


def reverse_torques(recording, *joints):
    return replace(recording, torque=recording.torque * np.where(np.isin(np.arange(6), joints), -1.0, 1.0))


def test_effort_along_the_velocity_has_no_wrong_sign():
    recording = pushing_servo.simulate_recording(**SAMPLING_ERRORS[2])
    undecided = []
    assert check(recording, pushing_servo.robot(), motion=True, undecided=undecided) == []
    assert PUSHING in undecided


@pytest.mark.parametrize(
    "sampled",
    [SAMPLING_ERRORS[0], *(pytest.param(errors, marks=pytest.mark.slow) for errors in SAMPLING_ERRORS[1:])],
    ids=str,
)
def test_torques_against_gravity_have_the_wrong_sign(sampled):
    robot = pushing_servo.robot()
    recording = pushing_servo.simulate_recording(**sampled)
    (finding,) = check(replace(recording, torque=-recording.torque), robot)
    assert finding.kind == "wrong sign"
    assert finding.message.startswith("effort has the opposite sign of the gravity torque")
    (finding,) = check(reverse_torques(recording, 1), robot)
    assert finding.where == f"servo, joint '{robot.joint_names[1]}'"
    assert finding.message == "its torque has the wrong sign"


def test_gravity_determines_signs_of_loaded_joints():
    robot = pushing_servo.robot()
    recording = pushing_servo.simulate_recording(push=0.2)
    signs = judge_signs(recording, robot)
    assert signs.as_recorded.tolist() == [0, 1, 1, 0, 0, 0]  # the first axis is vertical, the wrist is light
    recorded = np.ones(6)
    reversed_second = np.array([1.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    assert signs.oppose(reversed_second, recorded)
    assert signs.oppose(-recorded, recorded)
    assert not signs.oppose(recorded, recorded)
    assert not signs.oppose(np.array([-1.0, 1.0, 1.0, -1.0, -1.0, -1.0]), recorded)
    assert signs.friction_pushes()
    reversed_signs = judge_signs(reverse_torques(recording, 1), robot)
    assert reversed_signs.as_recorded.tolist() == [0, -1, 1, 0, 0, 0]


@pytest.mark.parametrize("joints", [(), (0,), (1,), (0, 1)])
def test_braking_friction_with_wrong_signs_does_not_push(joints):
    signs = judge_signs(
        reverse_torques(pushing_servo.simulate_recording(push=-0.1, coulomb=0.03), *joints), pushing_servo.robot()
    )
    assert not signs.friction_pushes()


def test_inertia_and_friction_determine_signs_of_vertical_axes():
    robot = pushing_servo.robot()
    recording = pushing_servo.simulate_recording(push=-0.1, coulomb=0.03)
    (finding,) = check(reverse_torques(recording, 0), robot)
    assert finding.where == f"servo, joint '{robot.joint_names[0]}'"
    assert (finding.severity, finding.kind) == ("error", "wrong sign")
    assert "judged by inertia and friction" in str(finding)


@pytest.mark.slow
def test_inertia_and_friction_determine_signs_without_masses():
    chain = pushing_servo.robot().chain
    massless = RobotModel(chain, np.zeros_like(pushing_servo.robot().parameters))
    recording = pushing_servo.simulate_recording(push=-0.1, coulomb=0.03)
    assert judge_signs(recording, massless).as_recorded.tolist() == [0] * 6
    assert check_model([recording], massless) == []
    (finding,) = check_model([replace(recording, torque=-recording.torque)], massless)
    assert finding.message.startswith("all torques have the wrong sign (judged by inertia and friction")


@pytest.mark.parametrize(
    "stall", ["lost", *(pytest.param(stall, marks=pytest.mark.slow) for stall in ("repeated", "paused"))]
)
@pytest.mark.parametrize(
    "effort", [{"push": 0.1}, pytest.param({"push": -0.1, "coulomb": 0.03}, marks=pytest.mark.slow)], ids=str
)
def test_stalls_are_not_mistaken_for_a_low_pass(stall, effort):
    recording = pushing_servo.add_stalls(pushing_servo.simulate_recording(speed=0.5, **effort), stall)
    kinds = {finding.kind for finding in check(recording, pushing_servo.robot(), motion=True)}
    assert LOW_PASSED not in kinds
    assert kinds <= {"position step"} if stall == "repeated" else kinds == {"gaps"}
