"""Test the feed-forward of a planned motion: plans that are used or fade, and the tracking error of arms."""

from dataclasses import replace

import demo_arm_model
import numpy as np
import planar_arm
import pytest
from helpers.floating_arm import ROTOR_PER_EFFORT, STRANGERS

from dynid_ros.control import GravityCompensator, JointBrake, JointSettings, LoadedGravity, Timing
from dynid_ros.control.added_torques import FADE_OUT_S, MAX_PLAN_AGE_S, PlannedMotion
from dynid_ros.control.descent import ArmHold
from dynid_ros.control.joint_states import JointMotion
from dynid_ros.control.motion_torque import MotionTorque
from dynid_ros.identified.links import LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.gravity import GravityModel
from dynid_ros.simulation import Drives, Sensors, SimulatedArm

PERIOD_S = 0.004
AMPLITUDE_RAD = 0.3


@pytest.fixture
def joints():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    return JointSettings.from_robot(robot, fault_ramp_time=0.5, planned_scale=[1.0])


def plan_motion(time):
    """Return position, velocity and acceleration of a plan."""
    angle = np.array([1.0, 2.0, 3.0]) * time
    rates = np.array([1.0, 2.0, 3.0])
    return (
        (AMPLITUDE_RAD * np.sin(angle)).tolist(),
        (AMPLITUDE_RAD * rates * np.cos(angle)).tolist(),
        (-AMPLITUDE_RAD * rates**2 * np.sin(angle)).tolist(),
    )


def constant_torque(_q, _v, _a, _gravity):
    return [1.0, 2.0, 400.0]


class Plan:
    """Plan that is reported and used once per period."""

    def __init__(self, joints):
        self.planned = PlannedMotion(joints)
        self.time = 10.0

    def run(self, seconds, change=lambda *sample: sample, offset=0.0):
        """Run the plan with this change of each report and this distance of the arm; return torques (N, n)."""
        torques = []
        for _ in range(round(seconds / PERIOD_S)):
            self.time += PERIOD_S
            sample = change(*plan_motion(self.time))
            if sample is not None:
                self.planned.report(self.time, *sample, stamp=self.time)
            position = np.array(plan_motion(self.time)[0]) + offset
            torques.append(self.planned.torque(self.time, position.tolist(), [0.0] * 3, constant_torque, 0.006))
        return np.array(torques)


def test_plan_fades_in_without_steps_and_is_limited(joints):
    torques = Plan(joints).run(1.0)
    limits = np.array(joints.planned_torque)
    assert torques[-1] == pytest.approx([1.0, 2.0, limits[2]])
    assert np.abs(np.diff(torques, axis=0)).max() < 0.05 * limits[2]


FAULTS = {
    "silence": lambda q, v, a: None,
    "nan": lambda q, v, a: ([np.nan, *q[1:]], v, a),
    "velocity nan": lambda q, v, a: (q, [np.nan, *v[1:]], a),
    "beyond limits": lambda q, v, a: ([9.0, *q[1:]], v, a),
    "degrees per second": lambda q, v, a: (q, np.rad2deg(v).tolist(), a),
    "other direction": lambda q, v, a: (q, [-value for value in v], a),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_plan_fades_out_and_recovers(joints, fault):
    plan = Plan(joints)
    before = plan.run(1.0)[-1]
    faded = plan.run(MAX_PLAN_AGE_S + FADE_OUT_S + 0.3, FAULTS[fault])
    assert not faded[-1].any()
    assert plan.planned.problem
    assert not plan.planned.moves
    assert np.abs(np.diff(faded, axis=0)).max() < 0.05 * np.abs(before).max()
    assert plan.run(1.0)[-1] == pytest.approx(before)


def test_jump_of_the_plan_fades_the_torque(joints):
    plan = Plan(joints)
    before = plan.run(1.0)[-1]
    jumped = plan.run(0.02, lambda q, v, a: ([q[0] + 0.05, *q[1:]], v, a))
    assert abs(jumped[-1][1]) < abs(before[1])


def test_plan_far_from_the_arm_fades_out(joints):
    plan = Plan(joints)
    plan.run(1.0)
    assert not plan.run(0.5, offset=0.3)[-1].any()
    assert "its plan at" in plan.planned.problem


def test_missing_accelerations_are_differentiated(joints):
    accelerations = []

    def torque(_q, _v, a, _gravity):
        accelerations.append(a)
        return [0.0] * 3

    plan = PlannedMotion(joints)
    for k in range(200):
        time = k * PERIOD_S
        q, v, a = plan_motion(time)
        plan.report(time, q, v, [np.nan] * 3, time)
        plan.torque(time, q, [0.0] * 3, torque, 0.0)
    assert accelerations[-1] == pytest.approx(a, abs=0.02)


def test_motion_torque_includes_links_load_and_friction():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    rng = np.random.default_rng(0)
    q, v, a = rng.uniform(-1.0, 1.0, (3, 3))
    terms = JointFriction(rotor_inertia=True, load=True, offset=True, spring=True, stribeck_velocity=0.1)
    friction = FrictionModel(terms)
    coefficients = rng.uniform(0.1, 1.0, len(friction.names(robot)))
    model = LinkModel(robot, robot.parameters, friction, coefficients, None)
    load = np.zeros(30)
    load[20:] = [1.0, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.02, 0.0, 0.02]
    gravity = robot.gravity_torque(q, robot.parameters + load)
    torque = MotionTorque(model).carrying(load)(q.tolist(), v.tolist(), a.tolist(), gravity.tolist())
    inverse_dynamics = robot.inverse_dynamics(q, v, a, robot.parameters + load)
    acting = np.array([term not in ("offset", "spring") for term, _ in friction.keys(3)])
    expected = friction.regressor(v[None], a[None], q[None], inverse_dynamics[None])[0] @ (coefficients * acting)
    assert torque == pytest.approx(inverse_dynamics - gravity + expected, rel=1e-9)


def tracking_error(robot, start, drives, model, speed, *, follows):
    """Return the RMS tracking errors (n,) in rad of a stiff servo without model at full speed of all joints."""
    rng = np.random.default_rng(1)
    sensors = Sensors.draw(robot.limits.effort, rng, velocity_noise=1e-3, position_noise=2e-5)
    arm = SimulatedArm(robot, start=start, drives=drives, sensors=sensors, servo_model=False)
    gravity_model = GravityModel(robot)
    gravity = LoadedGravity(gravity_model, gravity_model.project(model.parameters)).moving(MotionTorque(model))
    scale = [1.0] if follows else [0.0]
    joints = JointSettings.from_robot(robot, fault_ramp_time=0.5, planned_scale=scale, planned_limit=0.8)
    compensator = GravityCompensator(gravity, joints, Timing(ramp_time=0.5))
    free_range = np.minimum(np.asarray(robot.limits.upper) - start, start - np.asarray(robot.limits.lower))
    amplitude = np.minimum(0.6, 0.9 * free_range)
    rates = np.minimum(speed * np.asarray(robot.limits.velocity) / amplitude, 5.0)

    def plan(time):
        elapsed = max(time - 1.5, 0.0)
        phase = 0.5 * elapsed**2 if elapsed < 1.0 else elapsed - 0.5  # the speed increases for one second
        return start + amplitude * np.sin(rates * phase)

    def reference(time, h=1e-4):
        before, now, after = (plan(time + shift) for shift in (-h, 0.0, h))
        return np.array([now, (after - before) / (2 * h), (after - 2 * now + before) / h**2])

    errors = []
    for k in range(1, round(5.0 / PERIOD_S)):
        clock = 100.0 + k * PERIOD_S
        position, velocity, _ = arm.measure()
        compensator.plan.report(clock, *reference(arm.time).tolist(), stamp=arm.time)
        torque = compensator.update(clock, position.tolist(), clock, None, velocity.tolist())
        if k == 20:
            compensator.enable(clock)
        if torque is not None:
            arm.add_effort(torque)
        arm.track(reference(arm.time + PERIOD_S), PERIOD_S)
        arm.step(PERIOD_S)
        if arm.time > 2.5:
            errors.append(arm.position - plan(arm.time))
    assert not compensator.fault_reason
    return np.sqrt(np.mean(np.square(errors), axis=0))


def build_inaccurate_model(robot, drives, error, seed=0):
    """Return a model whose friction and rotor inertias have a relative error."""
    rng = np.random.default_rng(seed)
    friction = FrictionModel(JointFriction(rotor_inertia=True))
    truth = np.stack([drives.coulomb, drives.viscous, drives.rotor_inertia], axis=1).ravel()
    factors = 1.0 + error * rng.standard_normal(truth.shape)
    return LinkModel(robot, robot.parameters, friction, truth * factors, None)


def test_feedforward_reduces_the_tracking_error_to_a_fifth():
    robot = demo_arm_model.demo_robot()
    start = np.array([0.0, 0.5, 1.0, 0.0, 0.8, 0.0])
    drives = Drives(rotor_inertia=[0.8, 0.8, 0.4, 0.04, 0.04, 0.02])
    model = build_inaccurate_model(robot, SimulatedArm(robot, drives=drives).drives, 0.1)
    without, planned = (tracking_error(robot, start, drives, model, 1.0, follows=follows) for follows in (False, True))
    assert np.all(planned < 0.2 * without)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xarm7", "ur5", "z1"])
def test_feedforward_reduces_the_tracking_error_of_other_arms(name):
    stranger = STRANGERS[name]
    robot = stranger.robot()
    effort = np.asarray(robot.limits.effort)
    coulomb = stranger.coulomb * effort
    drives = Drives(coulomb, 0.5 * coulomb, ROTOR_PER_EFFORT * effort)
    model = build_inaccurate_model(robot, drives, 0.1)
    errors = [
        tracking_error(robot, np.array(stranger.pose), drives, model, 0.5, follows=follows) for follows in (False, True)
    ]
    assert np.linalg.norm(errors[1]) < 0.2 * np.linalg.norm(errors[0])


def test_planned_speed_is_not_braked(joints):
    """The brake acts on the speed above that of the plan."""
    moving = JointMotion(3)
    moving.velocity = [1.0, 0.0, 0.0]
    braked = replace(joints, speed_limit=(0.5,) * 3, brake=JointBrake((0.01,) * 3, (5.0,) * 3, (5.0,) * 3))
    torques = [
        ArmHold(3).torque(0.0, [0.0] * 3, moving, braked, brakes=False, scale=1.0, planned=[speed, 0.0, 0.0])
        for speed in (0.0, 1.0)
    ]
    assert torques[0] is not None
    assert torques[0][0] < 0.0
    assert torques[1] is None
