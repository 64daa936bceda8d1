"""Uncertainty of flexible-joint results: intervals, remarks and undetermined stiffnesses."""

import re
from dataclasses import replace

import flexible_experiments as experiments
import numpy as np
import pytest
from scipy.stats import norm

from dynid_ros.identification.flexible.flexible_result import remarks
from dynid_ros.model import RobotModel


def with_relative_error(result, name, fraction):
    """Return the result with another standard error of one parameter, as a fraction of its value."""
    index = result.names.index(name)
    covariance = result.covariance.copy()
    covariance[index, index] = (fraction * result.parameters[index]) ** 2
    return replace(result, covariance=covariance)


def test_intervals_are_normal(by_camera):
    result = by_camera.result
    index = result.names.index("motor_inertia joint_2")
    low, high = result.confidence_intervals(0.9)[index]
    assert (low + high) / 2 == pytest.approx(result.parameters[index])
    assert (high - low) / 2 == pytest.approx(norm.ppf(0.95) * result.standard_errors[index])


def test_interval_of_a_stiffness_is_symmetric_in_compliance(by_camera):
    result = with_relative_error(by_camera.result, "stiffness joint_2", 0.2)
    index = result.names.index("stiffness joint_2")
    ends = np.sort(1 / result.confidence_intervals()[index])
    compliance = 1 / result.parameters[index]
    np.testing.assert_allclose(ends, compliance * (1 + 0.2 * norm.ppf(0.975) * np.array([-1, 1])))


def test_possibly_infinite_stiffness_is_undetermined(by_camera):
    result = with_relative_error(by_camera.result, "stiffness joint_2", 0.8)
    index = result.names.index("stiffness joint_2")
    low, high = result.confidence_intervals()[index]
    assert low == pytest.approx(result.parameters[index] / (1 + 0.8 * norm.ppf(0.975)))
    assert high == np.inf
    assert not result.term("stiffness").decided[0]
    assert np.isnan(result.stiffness[0])
    assert "not determined" in result.summary()
    assert any("its stiffness is not determined" in remark for remark in remarks(result))


def test_errors_are_within_a_few_standard_errors(by_camera, by_encoders):
    """Encoder noise, which looks like motion, adds a few standard errors to 12 errors that are mostly small."""
    ratios = []
    for _, truth, result in (by_camera, by_encoders):
        for name in ("stiffness", "motor_inertia", "motor_viscous", "coulomb", "viscous"):
            term = result.term(name)
            ratios.append(abs(term.values[0] - getattr(truth, name)) / term.standard_errors[0])
        index = result.names.index("Iyy1")
        ratios.append(abs(result.parameters[index] - truth.inertia) / result.standard_errors[index])
    assert np.mean(np.array(ratios) < 2.5) > 0.6
    assert max(ratios) < 7.0


def test_residuals_equal_the_sensor_noise(by_camera):
    experiment, _, result = by_camera
    assert result.runs[0].link_rms[0] == pytest.approx(experiments.LINK_NOISE, rel=0.15)
    torque_noise = experiments.TORQUE_NOISE * np.sqrt(np.mean(experiment.exact[1] ** 2))
    assert 0.5 * torque_noise < result.residual_rms[0] < 4 * torque_noise


def test_remarks_on_unexplained_torque(by_camera):
    result = by_camera.result
    (run,) = result.runs
    size = np.std(run.prediction.measured_torque, axis=0)
    for fraction, expected in ((0.15, []), (0.25, ["25% of the torque of joint_2"])):
        sentences = "\n".join(remarks(replace(result, runs=(replace(run, torque_rms=fraction * size),))))
        assert re.findall(r"\d+% of the torque of \w+(?= is left unexplained)", sentences) == expected


def test_refuses_unknown_terms(by_camera):
    with pytest.raises(ValueError, match="motor_coulomb"):
        by_camera.result.term("motor_coulomb")


def test_missing_names_joints_with_undetermined_stiffness(by_camera):
    result = by_camera.result
    assert result.missing == ()
    (sentence,) = with_relative_error(result, "stiffness joint_2", 0.8).missing
    assert "joint_2" in sentence


def test_prismatic_joint_has_units_of_newton_and_metre(by_camera):
    layout = by_camera.result.layout
    chain = replace(layout.robot.chain, prismatic=np.array([True]))
    robot = RobotModel(chain, layout.robot.parameters, layout.robot.gravity)
    result = replace(by_camera.result, layout=replace(layout, robot=robot))
    assert "units of joint_2: k [N/m], J [kg], b [N s/m]" in result.summary()
    assert result._table()["unit"][result.names.index("stiffness joint_2")] == "N/m"
