"""Test the servo gains, friction and springs of the simulated drives."""

import numpy as np
import pendulum as pendulum_model
import pytest

from dynid_ros.model import RobotModel
from dynid_ros.simulation import Drives, SimulatedArm, Springs
from dynid_ros.simulation.drives import BANDWIDTH, ServoGains
from dynid_ros.simulation.mujoco_model import compile_arm


def test_servo_gains_of_a_pendulum_match_the_closed_form(pendulum):
    """A single joint has stiffness I w² and critical damping."""
    gains = ServoGains.of(compile_arm(pendulum, 0.001), pendulum.limits)
    inertia = pendulum_model.MASS * pendulum_model.LENGTH**2 + 1e-6
    assert gains.stiffness == pytest.approx([inertia * BANDWIDTH**2])
    assert gains.damping == pytest.approx([2.0 * inertia * BANDWIDTH])


@pytest.mark.parametrize("rotor_inertia", [0.0, 0.1])
def test_servo_does_not_oscillate_in_held_out_poses(demo_robot, rotor_inertia):
    """Poles of the dynamics, linearized about poses not used for the gains, lie within 5 % of real."""
    pinocchio = pytest.importorskip("pinocchio")
    model = compile_arm(demo_robot, 0.001)
    Drives(rotor_inertia=rotor_inertia).apply(model)
    gains = ServoGains.of(model, demo_robot.limits)
    reference = pinocchio.buildModelFromXML(demo_robot.urdf)
    reference.armature = np.full(6, rotor_inertia)
    data = reference.createData()
    for pose in np.random.default_rng(99).uniform(demo_robot.limits.lower, demo_robot.limits.upper, (50, 6)):
        mass = pinocchio.crba(reference, data, pose)
        mass = np.triu(mass) + np.triu(mass, 1).T
        inverse = np.linalg.inv(mass)
        system = np.block(
            [[np.zeros((6, 6)), np.eye(6)], [-inverse @ np.diag(gains.stiffness), -inverse @ np.diag(gains.damping)]]
        )
        poles = np.linalg.eigvals(system)
        assert np.all(poles.real < -1.0)
        assert np.all(-poles.real / np.abs(poles) > 0.95)


def test_servo_gains_of_prismatic_joints_without_limits_are_finite():
    limit = '<limit velocity="1" effort="100"/>'
    robot = RobotModel.from_urdf(pendulum_model.urdf(axis="1 0 0", kind="prismatic", limit=limit))
    gains = ServoGains.of(compile_arm(robot, 0.001), robot.limits)
    assert gains.stiffness == pytest.approx([3.0 * BANDWIDTH**2])


def test_spring_torque_has_linear_cubic_dead_zone_and_damping_terms():
    springs = Springs(100.0, np.array([0.0, 1e6, 0.0]), np.array([0.0, 0.0, 0.01]), damping=2.0).of(3)
    torque = springs.torque(np.array([0.02, -0.02, -0.03]), np.array([0.0, 0.5, 0.0]))
    assert torque == pytest.approx([2.0, -2.0 - 8.0 + 1.0, -2.0])


@pytest.mark.parametrize("springs", [Springs(100.0), Springs(100.0, 1e8), Springs(100.0, 1e5, 0.004)])
def test_spring_deflection_inverts_the_torque(springs):
    springs = springs.of(4)
    torque = np.array([-30.0, -0.1, 0.2, 500.0])
    assert springs.torque(springs.deflection(torque), np.zeros(4)) == pytest.approx(torque, rel=1e-9)
    assert springs.deflection(np.zeros(4)).tolist() == [0.0] * 4


def test_settings_override_the_friction_of_the_urdf():
    limit = pendulum_model.LIMIT + '<dynamics friction="0.4" damping="0.7"/>'
    robot = RobotModel.from_urdf(pendulum_model.urdf(limit=limit))
    drives = SimulatedArm(robot).drives
    assert (drives.coulomb.tolist(), drives.viscous.tolist(), drives.rotor_inertia.tolist()) == ([0.4], [0.7], [0.0])
    drives = SimulatedArm(robot, drives=Drives(coulomb=0.0, rotor_inertia=0.2)).drives
    assert (drives.coulomb.tolist(), drives.viscous.tolist(), drives.rotor_inertia.tolist()) == ([0.0], [0.7], [0.2])


def test_scalar_settings_apply_to_all_joints(demo_robot):
    assert np.array_equal(SimulatedArm(demo_robot, drives=Drives(viscous=0.3)).drives.viscous, np.full(6, 0.3))
