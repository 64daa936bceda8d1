"""The report on flexible joints as a reader gets it: what it says, and what it does not claim."""

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

ROBOT, TRUTH = pa10.single_joint_robot(2), pa10.table_one(2)


@pytest.fixture(name="found", scope="module")
def fixture_found():
    recording = replace(files.with_encoders(), source=HOSTILE)
    result = FlexibleJointIdentification(ROBOT).fit(recording)
    noise = link_noise(ROBOT.joint_names, [recording], [None])
    springs = tuple(measured_springs(result, [["linear"]], noise))
    return replace(result, springs=springs, repeats=(("stiffness joint_2", 11900.0, 0.0123),))


def written(folder, result):
    path = write_result_report(folder / "new" / "report.html", result, {}, ())
    return Page(path.read_text(encoding="utf-8"))


def undecided(result, *terms):
    """As if the data had not told these."""
    at = [result.names.index(f"{term} joint_2") for term in terms]
    covariance = result.covariance.copy()
    covariance[at, at] = result.parameters[at] ** 2
    return replace(result, covariance=covariance)


@pytest.fixture(name="page", scope="module")
def fixture_page(found, tmp_path_factory):
    return written(tmp_path_factory.mktemp("report"), found)


def test_it_is_one_page_that_follows_the_theme(page, found, tmp_path):
    assert_self_contained(page)
    assert_themed(page)
    assert written(tmp_path, found).text == page.text


def test_the_verdict_names_spring_and_resonance(page, found):
    assert "The stiffness of 1 of 1 joints was identified." in page.text
    assert "its link resonates at 7.00 Hz while the motor is held" in page.text
    assert "On the fitted recordings" in page.text
    low, high = map(float, re.search(r"joint_2 \d+ (\d+) to (\d+)", page.text).groups())
    assert low < TRUTH.stiffness * 1.02
    assert high > TRUTH.stiffness * 0.98
    assert high - low == pytest.approx(2 * 1.96 * found.term("stiffness").standard_errors[0], rel=0.1)


def test_sensors_show_the_spring_without_its_law(found):
    """Deflection and torque as measured, beside those without noise."""
    (spring,) = found.springs
    e = fe.single_joint(2)
    motor, _, encoder, _ = e.exact
    prediction = found.runs[0].prediction
    known = np.isfinite(prediction.measured_link[:, 0])
    exact = np.interp(prediction.time[known], e.time, (motor - encoder)[:, 0])
    assert np.std(spring.deflection - exact) < 1.3 * fe.LINK_NOISE
    assert np.std(spring.torque - TRUTH.stiffness * exact) < 0.05 * np.std(spring.torque)
    assert spring.fit.deflection_noise == pytest.approx(fe.LINK_NOISE, rel=0.15)
    rms, r2 = spring_agreement(found, 0, spring)
    assert r2 == pytest.approx(np.corrcoef(spring.deflection, spring.torque)[0, 1] ** 2)
    assert rms == pytest.approx(TRUTH.stiffness * fe.LINK_NOISE, rel=0.1)


def test_what_is_not_decided_is_not_shown(found, tmp_path):
    page = written(tmp_path, undecided(found, "stiffness", "motor_viscous"))
    assert "The stiffness of joint_2 is not determined" in page.text
    assert "0 of 1" in page.text
    assert page.text.count("not determined") >= 3
    split = written(tmp_path, undecided(found, "motor_viscous"))
    assert "does not separate inertia and friction of motor and link for joint_2" in split.text


def test_torsion(tmp_path):
    recordings = [flexible_joint(2e5, seed=seed) for seed in (0, 1)]
    recordings = [replace(one, source=HOSTILE) for one in recordings]
    robot = RobotModel.from_urdf(pa10.single_joint_urdf(1).replace("joint_1", recordings[0].joint_names[0]))
    result = TorsionIdentification().fit(recordings[0])
    shown = {"recordings": recordings[:1], "validate": recordings[1:]}
    path = write_torsion_report(tmp_path / "report.html", replace(result, robot=robot), shown, ())
    page = Page(path.read_text(encoding="utf-8"))
    assert_self_contained(page)
    assert_themed(page)
    stiffness = result.joints[recordings[0].joint_names[0]].stiffness
    assert ("No stiffness is determined." not in page.text) == stiffness.determined
    assert "which was not fitted" in page.text
