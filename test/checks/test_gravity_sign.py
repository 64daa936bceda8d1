"""Signs are those of gravity, whatever looks like friction; upright axes have no more than inertia and friction."""

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

SAMPLED = [{"early": pushing_servo.PERIOD_S, "speed": 2.0}, {"push": 0.05}, {"push": 0.2, "coulomb": 0.03}]


def judged(it, robot):
    return GravitySigns(TorqueProblem(TorqueModel(robot), motion_samples([it]).thinned(800)))


def turned(it, *joints):
    return replace(it, torque=it.torque * np.where(np.isin(np.arange(6), joints), -1.0, 1.0))


def test_effort_that_pushes_along_the_velocity_has_no_wrong_sign():
    it = pushing_servo.simulate_recording(**SAMPLED[2])
    undecided = []
    assert check(it, pushing_servo.robot(), motion=True, undecided=undecided) == []
    assert PUSHING in undecided


@pytest.mark.parametrize(
    "sampled", [SAMPLED[0], *(pytest.param(each, marks=pytest.mark.slow) for each in SAMPLED[1:])], ids=str
)
def test_torques_against_gravity_have_the_wrong_sign_whatever_they_push(sampled):
    robot, it = pushing_servo.robot(), pushing_servo.simulate_recording(**sampled)
    (finding,) = check(replace(it, torque=-it.torque), robot)
    assert finding.kind == "wrong sign"
    assert finding.message.startswith("effort has the opposite sign of the gravity torque")
    (finding,) = check(turned(it, 1), robot)
    assert finding.where == f"servo, joint '{robot.joint_names[1]}'"
    assert finding.message == "its torque has the wrong sign"


def test_signs_are_those_of_gravity_where_it_shows():
    robot, it = pushing_servo.robot(), pushing_servo.simulate_recording(push=0.2)
    signs = judged(it, robot)
    assert signs.as_recorded.tolist() == [0, 1, 1, 0, 0, 0]  # the first axis is upright, a wrist is light
    same, other = np.ones(6), np.array([1.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    assert signs.oppose(other, same)
    assert signs.oppose(-same, same)
    assert not signs.oppose(same, same)
    assert not signs.oppose(np.array([-1.0, 1.0, 1.0, -1.0, -1.0, -1.0]), same)
    assert signs.friction_pushes()
    reversed_signs = judged(turned(it, 1), robot)
    assert reversed_signs.as_recorded.tolist() == [0, -1, 1, 0, 0, 0]


@pytest.mark.parametrize("joints", [(), (0,), (1,), (0, 1)])
def test_friction_that_brakes_but_for_wrong_signs_does_not_push(joints):
    signs = judged(turned(pushing_servo.simulate_recording(push=-0.1, coulomb=0.03), *joints), pushing_servo.robot())
    assert not signs.friction_pushes()


def test_an_upright_axis_is_judged_by_inertia_and_friction_and_says_so():
    robot, it = pushing_servo.robot(), pushing_servo.simulate_recording(push=-0.1, coulomb=0.03)
    (finding,) = check(turned(it, 0), robot)
    assert finding.where == f"servo, joint '{robot.joint_names[0]}'"
    assert (finding.severity, finding.kind) == ("error", "wrong sign")
    assert "its torque has the wrong sign (judged by inertia and friction: gravity hardly shows in it)" in str(finding)


@pytest.mark.slow
def test_without_gravity_all_signs_are_judged_by_inertia_and_friction():
    chain = pushing_servo.robot().chain
    massless = RobotModel(chain, np.zeros_like(pushing_servo.robot().parameters))
    it = pushing_servo.simulate_recording(push=-0.1, coulomb=0.03)
    assert judged(it, massless).as_recorded.tolist() == [0] * 6
    assert check_model([it], massless) == []
    (finding,) = check_model([replace(it, torque=-it.torque)], massless)
    assert finding.message == (
        "all torques have the wrong sign (judged by inertia and friction: gravity hardly shows in them)"
    )


@pytest.mark.parametrize(
    "how", ["lost", *(pytest.param(how, marks=pytest.mark.slow) for how in ("repeated", "paused"))]
)
@pytest.mark.parametrize(
    "effort", [{"push": 0.1}, pytest.param({"push": -0.1, "coulomb": 0.03}, marks=pytest.mark.slow)], ids=str
)
def test_stalls_of_the_machine_are_no_low_pass(how, effort):
    it = pushing_servo.add_stalls(pushing_servo.simulate_recording(speed=0.5, **effort), how)
    kinds = {finding.kind for finding in check(it, pushing_servo.robot(), motion=True)}
    assert LOW_PASSED not in kinds
    assert kinds <= {"position step"} if how == "repeated" else kinds == {"gaps"}
