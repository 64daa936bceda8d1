"""Test true values of identified parameters, and their comparison with estimates and bounds."""

import numpy as np
import planar_arm
import pytest

from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.identified.identified_file import new_document
from dynid_ros.identified.links import KnownArm, LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.rehearsal.truth_comparison import (
    Check,
    Comparison,
    as_array,
    compare_gravity,
    coverage_check,
    true_base_parameters,
)
from dynid_ros.simulation import Drives, KnownFriction, SimulatedArm

ROBOT = RobotModel.from_urdf(planar_arm.urdf(), tip="link_3")
ROTORS = np.array([0.1, 0.2, 0.05])


def make_known_arm(robot):
    friction = FrictionModel(JointFriction(rotor_inertia=True))
    coefficients = np.zeros(len(friction.names(robot)))
    model = LinkModel(robot, robot.parameters, friction, coefficients, LinkSignals(10.0, 20.0))
    columns = LinkColumns.of(robot, friction)
    arm = KnownArm.__new__(KnownArm)
    object.__setattr__(arm, "model", model)
    object.__setattr__(arm, "columns", columns)
    return arm


def test_nonlinear_friction_has_no_true_coefficients_except_rotors():
    nonlinear = FrictionModel(JointFriction(sliding_length=1e-3))
    n_coefficients = len(nonlinear.names(ROBOT))
    friction = KnownFriction(nonlinear, np.ones(n_coefficients))
    simulated = SimulatedArm(ROBOT, drives=Drives(0.0, 0.0, ROTORS), friction=friction)
    arm = make_known_arm(ROBOT)
    base = arm.columns.whole_base(arm.columns.first)
    names = np.array(base.names)[base.columns]
    true = true_base_parameters(arm, simulated)
    is_friction = np.array([name.startswith(("coulomb", "viscous")) for name in names])
    assert np.isnan(true[is_friction]).all()
    assert is_friction.any()
    assert np.isfinite(true[~is_friction]).all()
    plain = SimulatedArm(ROBOT, drives=Drives(0.5, 0.2, ROTORS))
    with_friction = true_base_parameters(arm, plain)
    np.testing.assert_allclose(with_friction[~is_friction], true[~is_friction], atol=1e-9)
    coulomb = [name.startswith("coulomb") for name in names]
    assert with_friction[coulomb] == pytest.approx(0.5)


def test_gravity_of_a_prismatic_joint_is_compared_by_mass():
    text = planar_arm.urdf().replace(
        'type="revolute"><parent link="base_link"', 'type="prismatic"><parent link="base_link"'
    )
    robot = RobotModel.from_urdf(text, tip="link_3")
    simulated = SimulatedArm(robot)
    document = new_document(robot, (), {})
    document["gravity"] = {
        "joint_1": {"mass": sum(planar_arm.MASS), "std": {"mass": 0.1}, "observable": True},
        **{
            name: {"n_x": moment, "n_y": 0.0, "std": {"n_x": 0.01, "n_y": 0.01}, "observable": True}
            for name, moment in planar_arm.MOMENTS.items()
        },
    }
    model = IdentifiedGravity(robot, document)
    rows = compare_gravity(model, simulated.truth)
    assert rows[0].true == pytest.approx(sum(planar_arm.MASS))
    assert [row.true for row in rows[1:]] == pytest.approx(
        [*(v for m in planar_arm.MOMENTS.values() for v in (m, 0.0))]
    )
    assert all(row.is_covered for row in rows)


def test_null_becomes_nan():
    np.testing.assert_array_equal(as_array([1.0, None]), [1.0, np.nan])


@pytest.mark.parametrize(
    ("check", "passed", "bound"),
    [
        (Check("Mass", 0.5, 1.0, "%"), True, "at most 1 %"),
        (Check("Mass", 1.5, 1.0, "%"), False, "at most 1 %"),
        (Check("Lead", 20.0, 15.0, "cm", at_least=True), True, "at least 15 cm"),
        (Check("Lead", 10.0, 15.0, "cm", at_least=True), False, "at least 15 cm"),
        (Check("Mass", np.nan, 1.0), False, "at most 1"),
        (Check("Mass", np.inf, 1.0), False, "at most 1"),
    ],
)
def test_value_is_checked_against_its_bound(check, passed, bound):
    assert check.passed is passed
    assert check.bound == bound
    assert ("FAILED" in str(check)) is not passed


@pytest.mark.parametrize(
    ("value", "half_width", "covered", "cells"),
    [
        (2.01, 0.02, True, ("2.0000", "2.0100", "0.020", "0.010")),
        (1.95, 0.02, False, ("2.0000", "1.9500", "0.020", "−0.050")),
        (np.nan, np.nan, False, ("2.00", "–", "–", "–")),
    ],
)
def test_comparison_shows_truth_estimate_interval_and_error(value, half_width, covered, cells):
    row = Comparison("Mass", "kg", 2.0, value, half_width)
    assert row.is_covered is covered
    assert row.cells[:4] == cells


def test_coverage_counts_determined_estimates_only():
    rows = [Comparison("m", "kg", 2.0, value, 0.02) for value in (2.01, 1.95, np.nan)]
    assert coverage_check(rows, 40.0).value == 50.0
    assert not coverage_check(rows[2:], 40.0).passed
