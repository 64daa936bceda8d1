"""Compare the arm with a payload with Pinocchio and closed forms, and check that picking it up keeps the state."""

import carried_loads
import numpy as np
import pytest
from carried_loads import LoadedArm
from pendulum import LENGTH, MASS
from scipy.special import ellipk

from dynid_ros.errors import DynidError
from dynid_ros.simulation import Drives, SimulatedArm, WrenchSensor, record, simulate

G = 9.80665
START = np.array([0.0, 0.5, 1.0, 0.0, 0.8, 0.0])
ROTORS = [0.8, 0.8, 0.4, 0.04, 0.04, 0.02]
LOAD = carried_loads.parameters()
POINT_LOAD = np.array([2.0, 0.6, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0 * 0.09, 0.0, 2.0 * 0.09])
"""Point mass of 2 kg at 0.3 m along x."""


@pytest.fixture
def reference(demo_robot):
    return LoadedArm(demo_robot.urdf, demo_robot.tip, demo_robot.gravity)


def random_motion(seed, n=40):
    """Return random positions, velocities and accelerations, an array (3, n, 6)."""
    return np.random.default_rng(seed).uniform(-2.0, 2.0, (3, n, 6))


def test_torque_with_payload_matches_pinocchio(demo_robot, reference):
    arm = SimulatedArm(demo_robot, drives=Drives(rotor_inertia=ROTORS))
    arm.attach_load(LOAD)
    motion = random_motion(1)
    expected = [reference.inverse_dynamics(*sample) for sample in zip(*motion, strict=True)]
    np.testing.assert_allclose(arm.truth.drive_torque(*motion), expected + np.array(ROTORS) * motion[2], atol=1e-9)
    gravity = [reference.gravity_torque(q) for q in motion[0]]
    np.testing.assert_allclose(arm.truth.gravity_torque(motion[0]), gravity, atol=1e-9)


def test_true_wrench_matches_pinocchio(demo_robot, reference):
    arm = SimulatedArm(demo_robot)
    arm.attach_load(LOAD)
    motion = random_motion(2)
    expected = [reference.wrench(*sample) for sample in zip(*motion, strict=True)]
    np.testing.assert_allclose(arm.truth.wrench(*motion), expected, atol=1e-10)


def test_simulated_torque_and_wrench_match_pinocchio(demo_robot, reference, trajectory):
    """Acceleration follows from finite differences; samples near reversals of friction are left out."""
    arm = SimulatedArm(demo_robot, drives=Drives(rotor_inertia=ROTORS))
    arm.attach_load(LOAD)
    recording = simulate(arm, trajectory, rate=1000.0, wrench_topic="/wrist")
    wrench = np.hstack([recording.wrench.force, recording.wrench.torque])
    moving = np.flatnonzero(np.all(np.abs(recording.velocity) > 0.05, axis=1))[1:-1]
    assert len(moving) > 1500
    for i in moving[::20]:
        q = recording.position[i]
        qd = recording.velocity[i]
        qdd = (recording.position[i + 1] - 2 * q + recording.position[i - 1]) / 1e-6
        drive = reference.inverse_dynamics(q, qd, qdd) + np.array(ROTORS) * qdd
        friction = arm.drives.coulomb * np.sign(qd) + arm.drives.viscous * qd
        assert recording.torque[i] == pytest.approx(drive + friction, abs=0.02)
        assert wrench[i] == pytest.approx(reference.wrench(q, qd, qdd), abs=0.005)
    assert np.ptp(wrench, axis=0).min() > 0.5


def test_detaching_the_payload_restores_torque_and_wrench(demo_robot, trajectory):
    arm = SimulatedArm(demo_robot, wrench_sensor=WrenchSensor(np.arange(6.0), np.zeros(6), np.full(6, np.inf)))
    before = record(arm, trajectory, wrench_topic="/wrist")
    assert np.array_equal(np.hstack([before.wrench.force, before.wrench.torque]), np.tile(np.arange(6.0), (751, 1)))
    arm.attach_load(LOAD)
    assert not np.allclose(record(arm, trajectory).torque, before.torque, atol=1.0)
    arm.detach_load()
    assert np.array_equal(record(arm, trajectory).torque, before.torque)
    assert not record(arm, trajectory).wrenches


def test_attaching_and_detaching_keeps_position_and_velocity(demo_robot):
    arm = SimulatedArm(demo_robot, start=START)
    arm.release()
    arm.step(0.2)
    for change in (lambda: arm.attach_load(LOAD), arm.detach_load):
        position = arm.position
        velocity = arm.velocity
        change()
        assert np.array_equal(arm.position, position)
        assert np.array_equal(arm.velocity, velocity)
        arm.step(0.001)
        assert arm.position == pytest.approx(position, abs=0.002 * np.abs(velocity).max())
        assert arm.velocity == pytest.approx(velocity, abs=0.1)


def test_pendulum_period_matches_the_elliptic_integral(pendulum):
    """Both swings begin at the turning point: with the payload I = m l² + 2 kg (0.3 m)² and the moment is m l + 0.6."""
    start = np.pi / 2 - 1.0
    arm = SimulatedArm(pendulum, start=[start], timestep=0.0005)
    arm.attach_load(POINT_LOAD)
    arm.release()
    rate = np.sqrt((MASS * LENGTH + 0.6) * G / (MASS * LENGTH**2 + POINT_LOAD[7]))
    period = 4.0 / rate * ellipk(np.sin(0.5) ** 2)
    alone = 4.0 * np.sqrt(LENGTH / G) * ellipk(np.sin(0.5) ** 2)
    assert alone - period > 0.1
    arm.step(round(period / 0.0005) * 0.0005)
    assert arm.position == pytest.approx([start], abs=2e-3)
    arm.detach_load()
    arm.step(round(alone / 0.0005) * 0.0005)
    assert arm.position == pytest.approx([start], abs=4e-3)


@pytest.mark.parametrize("rotors", [0.0, ROTORS])
def test_servo_holds_a_payload_missing_from_its_model(demo_robot, rotors):
    """The loaded arm settles slightly below its set-point; its torque equals gravity of arm and payload."""
    arm = SimulatedArm(demo_robot, start=START, drives=Drives(coulomb=0.0, rotor_inertia=rotors))
    arm.attach_load(LOAD)
    arm.step(3.0)
    assert arm.velocity == pytest.approx(np.zeros(6), abs=1e-5)
    assert 1e-3 < np.abs(arm.position - START).max() < 0.1
    assert arm.torque == pytest.approx(arm.truth.gravity_torque(arm.position)[0], abs=1e-3)


def test_reset_keeps_the_payload_and_attaching_replaces_it(pendulum):
    arm = SimulatedArm(pendulum)
    arm.attach_load(POINT_LOAD)
    arm.reset()
    assert arm.truth.load == pytest.approx(POINT_LOAD)
    arm.attach_load(2 * POINT_LOAD)
    assert arm.truth.load == pytest.approx(2 * POINT_LOAD)
    assert arm.truth.gravity_torque([0.0]) == pytest.approx(np.array([[-(MASS * LENGTH + 1.2) * G]]))


def test_true_parameters_of_the_arm_exclude_the_payload(demo_robot):
    arm = SimulatedArm(demo_robot)
    parameters = arm.truth.parameters
    moments = arm.truth.gravity_moments()
    masses = arm.truth.carried_masses
    arm.attach_load(LOAD)
    assert np.array_equal(arm.truth.parameters, parameters)
    assert np.array_equal(arm.truth.gravity_moments(), moments)
    assert np.array_equal(arm.truth.carried_masses, masses)
    assert arm.truth.load == pytest.approx(LOAD, abs=1e-12)
    arm.detach_load()
    assert arm.truth.load.tolist() == [0.0] * 10


def test_keeps_the_payload_when_it_refuses_an_impossible_one(demo_robot):
    arm = SimulatedArm(demo_robot)
    arm.attach_load(LOAD)
    with pytest.raises(DynidError, match="mass is -3"):
        arm.attach_load(-LOAD)
    assert arm.truth.load == pytest.approx(LOAD, abs=1e-12)
