"""Test the choice of a driver's low-pass by cross-validation, with linear models of three joints."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dynid_ros.estimation.cross_validation import FoldGrams
from dynid_ros.estimation.normal_equations import NormalEquations
from dynid_ros.signals.driver_filter import DriverFilter, Passage, choose_driver_filter

RATE_HZ = 50.0
N_JOINTS = 3
BANDWIDTH_HZ = 3.0
NOISE_NM = 0.02
START = DriverFilter(1.0, order=2)


class LinearJoints:
    """Joints whose torque is a sum of smooth columns and of one with reversals, like friction."""

    def __init__(self, joint_drivers, *, of_friction_alone=False):
        rng = np.random.default_rng(0)
        time = np.arange(2000) / RATE_HZ
        frequencies = rng.uniform(0.2, BANDWIDTH_HZ, (N_JOINTS, 1, 4, 5))
        phases = rng.uniform(0, 6, frequencies.shape)
        smooth = np.sin(2 * np.pi * frequencies * time[:, None, None] + phases).sum(axis=-1)
        self.columns = np.concatenate([smooth, np.sign(smooth[:, :, :1])], axis=2)
        self.torque = np.array(
            [
                self.filter_columns(columns, Passage(driver, of_friction_alone)) @ rng.uniform(0.5, 1.0, 5)
                for columns, driver in zip(self.columns, joint_drivers, strict=True)
            ]
        ).T
        self.torque += rng.normal(0.0, NOISE_NM, self.torque.shape)

    def filter_columns(self, columns, passage):
        filtered = columns if passage.driver is None else passage.driver.filter(columns, RATE_HZ)
        return np.hstack([columns[:, :4], filtered[:, 4:]]) if passage.of_friction_alone else filtered

    def grams(self, passage):
        rows = [self.filter_columns(columns, passage) for columns in self.columns]
        size = 5 * N_JOINTS
        factors = NormalEquations(SimpleNamespace(of_joint=np.arange(size).reshape(N_JOINTS, 5)), [len(self.torque)])
        for group, part in enumerate(np.split(np.arange(len(self.torque)), 20)):
            factors.add(2 * group, [row[part] for row in rows], self.torque[part])
        return FoldGrams(factors, np.full(N_JOINTS, NOISE_NM))

    def losses(self, passages):
        size = 5 * N_JOINTS
        columns = np.arange(size)
        no_penalty = np.zeros((size, size))
        unbounded = np.zeros(size, dtype=bool)
        return [self.grams(passage).losses(columns, no_penalty, np.zeros(size), unbounded) for passage in passages]

    def choose(self):
        return choose_driver_filter(self.losses, self.grams(Passage()), BANDWIDTH_HZ, START)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("zero_phase", [False, True])
def test_chooses_the_true_filter_of_all_joints(order, zero_phase):
    truth = DriverFilter(1.3, order, zero_phase=zero_phase)
    choice = LinearJoints([truth] * N_JOINTS).choose()
    assert replace(choice.driver, cutoff=truth.cutoff) == truth
    assert choice.driver.cutoff == pytest.approx(truth.cutoff, rel=0.03)
    assert choice.gain > 0.5


def test_chooses_zero_phase_filters_above_the_motion():
    truth = DriverFilter(6.0, 4, zero_phase=True)
    driver = LinearJoints([truth] * N_JOINTS).choose().driver
    assert driver.zero_phase
    assert driver.cutoff == pytest.approx(truth.cutoff, rel=0.1)


def test_does_not_choose_causal_filters_above_the_motion():
    assert LinearJoints([DriverFilter(6.0, 1)] * N_JOINTS).choose() is None


def test_chooses_delay_and_low_pass_together():
    """Another order with another delay may have the same effect."""
    truth = DriverFilter(1.3, 2, delay=0.05)
    joints = LinearJoints([truth] * N_JOINTS)
    chosen = joints.choose().driver
    columns = joints.columns[0]
    error = chosen.filter(columns, RATE_HZ) - truth.filter(columns, RATE_HZ)
    assert np.sqrt(np.mean(error**2)) < 0.05 * np.sqrt(np.mean(truth.filter(columns, RATE_HZ) ** 2))
    assert not chosen.zero_phase


@pytest.mark.parametrize(
    ("drivers", "of_friction_alone"),
    [
        ([None] * N_JOINTS, False),
        ([DriverFilter(1.3, 2)] * N_JOINTS, True),
        ([DriverFilter(1.3, 2), None, None], False),
        ([DriverFilter(delay=0.02)] * N_JOINTS, False),
    ],
    ids=["no filter", "presliding friction", "one joint", "delay"],
)
def test_does_not_choose_filters_for_other_causes(drivers, of_friction_alone):
    assert LinearJoints(drivers, of_friction_alone=of_friction_alone).choose() is None
