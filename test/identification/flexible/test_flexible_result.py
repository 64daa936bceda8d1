"""How sure a result says it is, and means of repeated ones."""

import re
from dataclasses import replace

import flexible_experiments as experiments
import numpy as np
import pytest
from scipy.stats import norm

from dynid_ros.identification.flexible.flexible_result import remarks
from dynid_ros.model import RobotModel


def with_error_of(result, name, share):
    """The result with another standard error of one parameter, in parts of its value."""
    at, covariance = result.names.index(name), result.covariance.copy()
    covariance[at, at] = (share * result.parameters[at]) ** 2
    return replace(result, covariance=covariance)


def test_intervals_by_normal_errors(by_camera):
    result = by_camera.result
    at = result.names.index("motor_inertia joint_2")
    low, high = result.confidence_intervals(0.9)[at]
    assert (low + high) / 2 == pytest.approx(result.parameters[at])
    assert (high - low) / 2 == pytest.approx(norm.ppf(0.95) * result.standard_errors[at])


def test_interval_of_a_stiffness_is_that_of_its_compliance(by_camera):
    result = with_error_of(by_camera.result, "stiffness joint_2", 0.2)
    at = result.names.index("stiffness joint_2")
    ends = np.sort(1 / result.confidence_intervals()[at])
    compliance = 1 / result.parameters[at]
    np.testing.assert_allclose(ends, compliance * (1 + 0.2 * norm.ppf(0.975) * np.array([-1, 1])))


def test_a_stiffness_that_may_be_infinite(by_camera):
    result = with_error_of(by_camera.result, "stiffness joint_2", 0.8)
    at = result.names.index("stiffness joint_2")
    low, high = result.confidence_intervals()[at]
    assert low == pytest.approx(result.parameters[at] / (1 + 0.8 * norm.ppf(0.975)))
    assert high == np.inf
    assert not result.term("stiffness").decided[0]
    assert np.isnan(result.stiffness[0])
    assert "not determined" in result.summary()


def test_truth_is_within_a_few_standard_errors(by_camera, by_encoders):
    """Of 12 parameters most; encoders' noise, which is taken for motion, costs a few more errors."""
    found = []
    for _, truth, result in (by_camera, by_encoders):
        for name in ("stiffness", "motor_inertia", "motor_viscous", "coulomb", "viscous"):
            term = result.term(name)
            found.append(abs(term.values[0] - getattr(truth, name)) / term.standard_errors[0])
        at = result.names.index("Iyy1")
        found.append(abs(result.parameters[at] - truth.inertia) / result.standard_errors[at])
    assert np.mean(np.array(found) < 2.5) > 0.6
    assert max(found) < 7.0


def test_residuals_are_the_noise_of_the_sensors(by_camera):
    experiment, _, result = by_camera
    assert result.runs[0].link_rms[0] == pytest.approx(experiments.LINK_NOISE, rel=0.15)
    torque_noise = experiments.TORQUE_NOISE * np.sqrt(np.mean(experiment.exact[1] ** 2))
    assert 0.5 * torque_noise < result.residual_rms[0] < 4 * torque_noise


def test_torque_that_is_left_unexplained_is_remarked_on(by_camera):
    result = by_camera.result
    (run,) = result.runs
    size = np.std(run.prediction.measured_torque, axis=0)
    for share, said in ((0.15, []), (0.25, ["25% of the torque of joint_2"])):
        found = remarks(replace(result, runs=(replace(run, torque_rms=share * size),)))
        assert re.findall(r"\d+% of the torque of \w+(?= is left unexplained)", "\n".join(found)) == said


def test_unknown_terms_are_refused(by_camera):
    with pytest.raises(ValueError, match="motor_coulomb"):
        by_camera.result.term("motor_coulomb")


def test_missing_names_joints_whose_stiffness_is_not_known(by_camera):
    result = by_camera.result
    assert result.missing == ()
    (sentence,) = with_error_of(result, "stiffness joint_2", 0.8).missing
    assert "joint_2" in sentence


def test_a_slide_has_newtons_and_metres(by_camera):
    layout = by_camera.result.layout
    chain = replace(layout.robot.chain, prismatic=np.array([True]))
    robot = RobotModel(chain, layout.robot.parameters, layout.robot.gravity)
    result = replace(by_camera.result, layout=replace(layout, robot=robot))
    assert "units of joint_2: k [N/m], J [kg], b [N s/m]" in result.summary()
    assert result._table()["unit"][result.names.index("stiffness joint_2")] == "N/m"
