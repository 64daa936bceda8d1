"""Test the reports on flexible joints: verdict, intervals, measured springs and undetermined parameters."""

import re
from dataclasses import replace

import flexible_experiments as fe
import flexible_joint_files as files
import numpy as np
import pa10
import pytest
from html_page import HOSTILE, Page, assert_self_contained, assert_themed
from torsion_recordings import flexible_joint

from dynid_ros.identification.flexible import FlexibleJointIdentification, TorsionIdentification
from dynid_ros.identification.flexible.flexible_result import link_noise, measured_springs
from dynid_ros.model import RobotModel
from dynid_ros.report.flexible_joints import spring_agreement, write_result_report
from dynid_ros.report.torsion import write_result_report as write_torsion_report

ROBOT = pa10.single_joint_robot(2)
TRUTH = pa10.table_one(2)


@pytest.fixture(name="result", scope="module")
def fixture_result():
    recording = replace(files.with_encoders(), source=HOSTILE)
    estimate = FlexibleJointIdentification(ROBOT).fit(recording)
    noise = link_noise(ROBOT.joint_names, [recording], [None])
    springs = tuple(measured_springs(estimate, [["linear"]], noise))
    return replace(estimate, springs=springs, repeats=(("stiffness joint_2", 11900.0, 0.0123),))


def write_page(folder, result):
    path = write_result_report(folder / "new" / "report.html", result, {}, ())
    return Page(path.read_text(encoding="utf-8"))


def widen_variances(result, *terms):
    """Return a copy of the result in which the standard error of these terms equals their value."""
    indices = [result.names.index(f"{term} joint_2") for term in terms]
    covariance = result.covariance.copy()
    covariance[indices, indices] = result.parameters[indices] ** 2
    return replace(result, covariance=covariance)


@pytest.fixture(name="page", scope="module")
def fixture_page(result, tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("report"), result)


def test_page_is_self_contained_themed_and_reproducible(page, result, tmp_path):
    assert_self_contained(page)
    assert_themed(page)
    assert write_page(tmp_path, result).text == page.text


def test_verdict_names_stiffness_and_resonance(page, result):
    assert "The stiffness of 1 of 1 joints was identified." in page.text
    assert "its link resonates at 7.00 Hz while the motor is held" in page.text
    assert "On the fitted recordings" in page.text
    low, high = map(float, re.search(r"joint_2 \d+ (\d+) to (\d+)", page.text).groups())
    assert low < TRUTH.stiffness * 1.02
    assert high > TRUTH.stiffness * 0.98
    assert high - low == pytest.approx(2 * 1.96 * result.term("stiffness").standard_errors[0], rel=0.1)


def test_measured_deflection_and_torque_match_the_noise_free_spring(result):
    (spring,) = result.springs
    experiment = fe.single_joint(2)
    motor, _, encoder, _ = experiment.exact
    prediction = result.runs[0].prediction
    has_encoder = np.isfinite(prediction.measured_link[:, 0])
    exact = np.interp(prediction.time[has_encoder], experiment.time, (motor - encoder)[:, 0])
    assert np.std(spring.deflection - exact) < 1.3 * fe.LINK_NOISE
    assert np.std(spring.torque - TRUTH.stiffness * exact) < 0.05 * np.std(spring.torque)
    assert spring.fit.deflection_noise == pytest.approx(fe.LINK_NOISE, rel=0.15)
    rms, r2 = spring_agreement(result, 0, spring)
    assert r2 == pytest.approx(np.corrcoef(spring.deflection, spring.torque)[0, 1] ** 2)
    assert rms == pytest.approx(TRUTH.stiffness * fe.LINK_NOISE, rel=0.1)


def test_undetermined_stiffness_and_split_are_not_reported(result, tmp_path):
    page = write_page(tmp_path, widen_variances(result, "stiffness", "motor_viscous"))
    assert "The stiffness of joint_2 is not determined" in page.text
    assert "0 of 1" in page.text
    assert page.text.count("not determined") >= 3
    undetermined_split = write_page(tmp_path, widen_variances(result, "motor_viscous"))
    assert "does not separate inertia and friction of motor and link for joint_2" in undetermined_split.text


def test_torsion_report_of_one_motor_encoder(tmp_path):
    recordings = [replace(flexible_joint(2e5, seed=seed), source=HOSTILE) for seed in (0, 1)]
    robot = RobotModel.from_urdf(pa10.single_joint_urdf(1).replace("joint_1", recordings[0].joint_names[0]))
    result = TorsionIdentification().fit(recordings[0])
    data = {"recordings": recordings[:1], "validate": recordings[1:]}
    path = write_torsion_report(tmp_path / "report.html", replace(result, robot=robot), data, ())
    page = Page(path.read_text(encoding="utf-8"))
    assert_self_contained(page)
    assert_themed(page)
    stiffness = result.joints[recordings[0].joint_names[0]].stiffness
    assert ("No stiffness is determined." not in page.text) == stiffness.determined
    assert "which was not fitted" in page.text
