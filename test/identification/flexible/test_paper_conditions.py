"""Eqs 3 and 6 of Lightcap and Banks 2007: condition numbers, solutions, and sensitivity to noise."""

import flexible_experiments as experiments
import flexible_motion
import numpy as np
import pa10
import pytest
from lightcap_regressors import regressor_with_stiffness, regressor_without_stiffness
from printed_method import printed_method

from dynid_ros.signals import Motion

MIN_SPEED = 0.02
"""Link velocity above which the experiments' Coulomb friction equals a sign function, rad/s."""


def exact_motion(joint):
    """Return one period of a single joint's link and motor, with the acceleration of eq. 10."""
    row = pa10.table_one(joint)
    series, links = experiments.single_joint_motion(joint)
    time = np.arange(0.0, series.period, 0.004)
    position = links.at(time, True)
    velocity = links.velocity_at(time, True)
    motor = Motion(*series.at(time))
    torque = row.stiffness * (motor.position - position)
    torque += row.gravity_x * np.sin(position) - row.gravity_y * np.cos(position)
    torque -= row.coulomb * np.tanh(velocity / flexible_motion.SMOOTHING) + row.viscous * velocity
    return Motion(position, velocity, torque / row.inertia), motor


def regressors(joint, link, motor):
    """Return the regressors of eqs 3 and 6 in the units of the paper: gravity moments instead of mass moments."""
    robot = pa10.single_joint_robot(joint)
    with_stiffness = regressor_with_stiffness(robot, link, motor).reshape(-1, 8)
    without = regressor_without_stiffness(robot, link, motor).reshape(-1, 7)
    units = np.array([1 / pa10.G, 1 / pa10.G, 1, 1, 1, 1, 1, 1])
    return with_stiffness * units, without * units[:7]


def normalize_columns(matrix):
    return matrix / np.linalg.norm(matrix, axis=0)


def test_eq_6_is_better_conditioned_only_unscaled():
    ratios = []
    scaled_ratios = []
    for joint in range(1, 7):
        with_stiffness, without = regressors(joint, *exact_motion(joint))
        ratios.append(np.linalg.cond(with_stiffness) / np.linalg.cond(without))
        scaled_ratios.append(
            np.linalg.cond(normalize_columns(with_stiffness)) / np.linalg.cond(normalize_columns(without))
        )
    assert min(ratios) > 5
    assert max(ratios) < 52
    assert max(scaled_ratios) < 0.9


@pytest.mark.parametrize("joint", range(1, 7))
def test_both_equations_yield_the_truth_without_noise(joint):
    row = pa10.table_one(joint)
    link, motor = exact_motion(joint)
    certain = np.abs(link.velocity[:, 0]) > MIN_SPEED
    link, motor = (Motion(*(part[certain] for part in motion)) for motion in (link, motor))
    with_stiffness, without = regressors(joint, link, motor)
    torque = row.stiffness * (motor.position - link.position)
    torque += row.motor_inertia * motor.acceleration + row.motor_viscous * motor.velocity
    links = [row.gravity_y, row.gravity_x, row.inertia, row.coulomb, row.viscous]
    motors = [row.motor_inertia, row.motor_viscous]
    by_eq_6 = np.linalg.lstsq(normalize_columns(without), torque[:, 0], rcond=None)[0] / np.linalg.norm(without, axis=0)
    np.testing.assert_allclose(by_eq_6, [*links, *motors], rtol=1e-7, atol=1e-7)
    right = np.hstack([np.zeros_like(torque), torque]).ravel()
    by_eq_3 = np.linalg.lstsq(normalize_columns(with_stiffness), right, rcond=None)[0] / np.linalg.norm(
        with_stiffness, axis=0
    )
    np.testing.assert_allclose(by_eq_3, [*links, row.stiffness, *motors], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("joint", [2, 5])
def test_published_method_estimates_sums_only(joint):
    """Noise and slow motion leave v + b accurate, but not v, b and the stiffness."""
    row = pa10.table_one(joint)
    estimate = printed_method(experiments.single_joint(joint, base_frequency=0.2), cutoff=8.0)
    viscous, motor_viscous = estimate.viscous[0], estimate.motor_viscous[0]
    total = row.viscous + row.motor_viscous
    assert abs(viscous + motor_viscous - total) < 0.1 * total
    assert abs(viscous - row.viscous) > 0.47 * row.viscous
    assert abs(motor_viscous - row.motor_viscous) > 0.47 * row.motor_viscous
    assert abs(estimate.stiffness[0] - row.stiffness) > 0.1 * row.stiffness
