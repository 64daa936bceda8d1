"""Test that simulated experiments obey the equations of motion, of one joint and of six."""

import flexible_experiments as experiments
import flexible_motion
import numpy as np
import pa10
import pytest


@pytest.mark.parametrize("joint", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_eq_10_and_pinocchio_agree(joint):
    """Compare LSODA on eq. 10 with Runge-Kutta on articulated bodies."""
    motor, links = experiments.single_joint_motion(joint)
    springs = flexible_motion.Springs.of([pa10.table_one(joint)])
    smoothing = 4e-3
    by_eq_10 = flexible_motion.link_motion(pa10.table_one(joint), motor, smoothing)
    by_pinocchio = flexible_motion.arm_motion(pa10.single_joint_urdf(joint), springs, motor, smoothing)
    time = np.arange(0.0, motor.period, 0.004)
    for settled in (False, True):
        first = by_eq_10.at(time, settled)
        second = by_pinocchio.at(time, settled)
        np.testing.assert_allclose(first, second, atol=2e-6, rtol=0)
    # The effect of smoothing is far below the noise.
    assert np.abs(links.at(time, True) - by_eq_10.at(time, True)).max() < 0.5 * experiments.LINK_NOISE


def test_torque_is_the_sum_of_links_friction_and_motors():
    """Compare the torque with eq. 5, with the links' acceleration by differences."""
    row = pa10.table_one(3)
    motor, links = experiments.single_joint_motion(3)
    experiment = experiments.single_joint(3, noise=0.0)
    step = 1e-3
    (q,) = experiment.exact[2].T
    before, after = (links.at(experiment.time + shift, True)[:, 0] for shift in (-step, step))
    qd = (after - before) / (2 * step)
    qdd = (after - 2 * q + before) / step**2
    _, qd_m, qdd_m = (array[:, 0] for array in motor.at(experiment.time))
    torque = row.inertia * qdd - row.gravity_x * np.sin(q) + row.gravity_y * np.cos(q)
    torque += row.coulomb * np.sign(qd) + row.viscous * qd + row.motor_inertia * qdd_m + row.motor_viscous * qd_m
    steady = np.abs(qd) > 0.05
    assert steady.mean() > 0.8
    np.testing.assert_allclose(torque[steady], experiment.torque[steady, 0], atol=0.005 * np.abs(torque).max())


@pytest.mark.slow
def test_six_joints_obey_pinocchios_inverse_dynamics():
    pin = pytest.importorskip("pinocchio")
    motor, links = experiments.six_joint_motion()
    springs = experiments.arm_springs()
    model = pa10.pinocchio_model(pa10.arm_urdf())
    data = model.createData()
    time = np.arange(0.0, motor.period, 0.01)
    step = 5e-4
    before, q, after = (links.at(time + shift, True) for shift in (-step, 0.0, step))
    qd = (after - before) / (2 * step)
    qdd = (after - 2 * q + before) / step**2
    steady = (np.abs(qd) > 0.05).all(axis=1)
    assert steady.sum() > 50
    moving = np.array([pin.rnea(model, data, *sample) for sample in zip(q, qd, qdd, strict=True)])
    spring = springs.stiffness * (motor.at(time)[0] - q)
    expected = moving + springs.coulomb * np.sign(qd) + springs.viscous * qd
    np.testing.assert_allclose(spring[steady], expected[steady], atol=5e-3 * np.abs(expected).max(axis=0).max())
