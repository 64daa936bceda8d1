"""Slow motion and stiff springs determine only sums of link and motor parameters, and no stiffness."""

import numpy as np
import pytest
from spring_experiments import spring_experiment

from dynid_ros.identification.flexible import FlexibleJointIdentification

pytestmark = pytest.mark.slow

SUMS = ("Iyy1 + motor_inertia joint_{}", "viscous joint_{} + motor_viscous joint_{}")


def true_sums(truth):
    return np.array([truth.inertia + truth.motor_inertia, truth.viscous + truth.motor_viscous])


def estimated_sums(result, joint):
    """Return values and standard errors, (2,) each."""
    by_expression = {entry.expression: entry for entry in result.sums}
    entries = [by_expression[expression.format(joint, joint)] for expression in SUMS]
    return np.array([entry.value for entry in entries]), np.array([entry.standard_error for entry in entries])


@pytest.fixture(scope="module")
def slow():
    """Return truth and result of a motion with two harmonics of 0.2 Hz."""
    experiment = spring_experiment(4, base_frequency=0.2, harmonics=2, seconds=10.0)
    return experiment.truth, FlexibleJointIdentification(experiment.robot).fit(experiment.recording)


@pytest.fixture(scope="module")
def stiff():
    experiment = spring_experiment(2, stiffer=100.0, seconds=6.0)
    return experiment.truth, FlexibleJointIdentification(experiment.robot).fit(experiment.recording)


@pytest.mark.parametrize("fitted", ["by_camera", "by_encoders"])
def test_sums_are_more_precise_than_their_terms(fitted, request):
    experiment, truth, result = request.getfixturevalue(fitted)
    joint = experiment.robot.joint_names[0][-1]
    values, errors = estimated_sums(result, joint)
    np.testing.assert_allclose(values, true_sums(truth), rtol=0.02)
    for part, total in (("motor_inertia", 0), ("motor_viscous", 1)):
        assert errors[total] < result.term(part).standard_errors[0]


def test_slow_motion_determines_sums_but_no_motor_inertia(slow):
    truth, result = slow
    values, errors = estimated_sums(result, 4)
    np.testing.assert_allclose(values, true_sums(truth), rtol=0.05)
    assert (np.abs(values - true_sums(truth)) < 4 * errors).all()
    assert (errors < 0.03 * values).all()
    assert not result.term("motor_inertia").decided[0]
    assert any("motor_inertia" in remark and "sums" in remark for remark in result.remarks)


def test_stiff_joint_determines_sums_but_no_stiffness(stiff):
    truth, result = stiff
    assert not result.term("stiffness").decided[0]
    assert np.isnan(result.stiffness[0])
    index = result.names.index("stiffness joint_2")
    low, high = result.confidence_intervals()[index]
    assert 0.05 * truth.stiffness < low < truth.stiffness
    assert high > 0.5 * truth.stiffness
    assert any("stiffness is not determined" in remark for remark in result.remarks)
    assert "not determined" in result.summary()
    values, errors = estimated_sums(result, 2)
    np.testing.assert_allclose(values, true_sums(truth), rtol=0.03)
    assert (errors < 0.03 * values).all()
