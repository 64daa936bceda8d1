"""The report on flexible joints as a reader gets it: what it says, and what it does not claim."""

from dataclasses import replace

import flexible_experiments as fe
import flexible_joint_files as files
import numpy as np
import pa10
import pytest
from html_page import HOSTILE, Page, assert_self_contained, assert_themed
from torsion_recordings import flexible_joint

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible import FlexibleJointIdentification, TorsionIdentification
from dynid_ros.identification.flexible.flexible_result import link_noise, measured_springs
from dynid_ros.model import RobotModel
from dynid_ros.report.flexible_joints import joint_rows, spring_agreement, write_flexible_report
from dynid_ros.report.plots import shown_rows
from dynid_ros.report.torsion import write_torsion_report

ROBOT, TRUTH = pa10.single_joint_robot(2), pa10.table_one(2)


@pytest.fixture(name="found", scope="module")
def fixture_found():
    recording = replace(files.with_encoders(), source=HOSTILE)
    result = FlexibleJointIdentification(ROBOT).fit(recording)
    noise = link_noise(ROBOT.joint_names, [recording], [None])
    return result, measured_springs(result, [["linear"]], noise)


def written(folder, *content, **more):
    return Page(write_flexible_report(folder / "new" / "report.html", *content, **more).read_text(encoding="utf-8"))


def undecided(result, *terms):
    """As if the data had not told these."""
    at = [result.names.index(f"{term} joint_2") for term in terms]
    covariance = result.covariance.copy()
    covariance[at, at] = result.parameters[at] ** 2
    return replace(result, covariance=covariance)


@pytest.fixture(name="page", scope="module")
def fixture_page(found, tmp_path_factory):
    return written(tmp_path_factory.mktemp("report"), *found, repeats=[("stiffness joint_2", 11900.0, 0.0123)])


def test_it_is_one_page_that_follows_the_theme(page, found, tmp_path):
    assert_self_contained(page)
    assert_themed(page)
    assert written(tmp_path, *found, repeats=[("stiffness joint_2", 11900.0, 0.0123)]).text == page.text


def test_the_verdict_names_spring_and_resonance(page, found):
    result, _ = found
    assert "The stiffness of joint joint_2 was identified." in page.text
    assert "swings at 7.00 Hz while its motor is held" in page.text
    assert "another recording would show how it predicts" in page.text
    assert "1 of 1" in page.text
    (row,) = joint_rows(result)
    low, high = (float(end) for end in row[1].below[0].split(" to "))
    assert low < TRUTH.stiffness * 1.02
    assert high > TRUTH.stiffness * 0.98
    assert high - low == pytest.approx(2 * 1.96 * result.term("stiffness").standard_errors[0], rel=0.1)


def test_sensors_show_the_spring_without_its_law(found):
    """Deflection and torque as measured, beside those without noise."""
    result, (spring,) = found
    e = fe.single_joint(2)
    motor, _, encoder, _ = e.exact
    prediction = result.runs[0].prediction
    known = np.isfinite(prediction.measured_link[:, 0])
    exact = np.interp(prediction.time[known], e.time, (motor - encoder)[:, 0])
    assert np.std(spring.deflection - exact) < 1.3 * fe.LINK_NOISE
    assert np.std(spring.torque - TRUTH.stiffness * exact) < 0.05 * np.std(spring.torque)
    assert spring.fit.deflection_noise == pytest.approx(fe.LINK_NOISE, rel=0.15)
    rms, r2 = spring_agreement(result, 0, spring)
    assert r2 == pytest.approx(np.corrcoef(spring.deflection, spring.torque)[0, 1] ** 2)
    assert rms == pytest.approx(TRUTH.stiffness * fe.LINK_NOISE, rel=0.1)


def test_what_is_not_decided_is_not_shown(found, tmp_path):
    result, springs = found
    page = written(tmp_path, undecided(result, "stiffness", "motor_viscous"), springs)
    assert "The stiffness of joint_2 is not determined" in page.text
    assert "0 of 1" in page.text
    assert page.text.count("not determined") >= 4
    split = written(tmp_path, undecided(result, "motor_viscous"), springs)
    assert "Of joint_2 the motion does not distinguish motor from link" in split.text


def test_repeats_and_sums(page):
    assert "Repetitions" in page.text
    assert "1.2 %" in page.text
    assert "motor_inertia joint_2" in page.text
    assert "Motion capture" not in page.text


def test_the_longest_stretch_is_shown(found):
    result, _ = found
    prediction = result.runs[0].prediction
    time = prediction.time.copy()
    time[:300] -= 5.0
    rows = shown_rows(time)
    assert rows.start >= 300
    assert rows.stop <= len(time)
    assert rows.stop - rows.start <= 360


def test_springs_of_other_joints_are_refused(found, tmp_path):
    result, (spring,) = found
    with pytest.raises(IdentificationError, match="springs of elbow; expected joint_2"):
        write_flexible_report(tmp_path / "r.html", result, [replace(spring, joint="elbow")])


def test_torsion(tmp_path):
    recordings = [flexible_joint(2e5, seed=seed) for seed in (0, 1)]
    recordings = [replace(one, source=HOSTILE) for one in recordings]
    robot = RobotModel.from_urdf(pa10.single_joint_urdf(1).replace("joint_1", recordings[0].joint_names[0]))
    result = TorsionIdentification().fit(recordings[0])
    path = write_torsion_report(tmp_path / "report.html", robot, result, recordings[:1], recordings[1:])
    page = Page(path.read_text(encoding="utf-8"))
    assert_self_contained(page)
    assert_themed(page)
    stiffness = result.joints[recordings[0].joint_names[0]].stiffness
    assert ("is determined" in page.text) == stiffness.determined
    assert "which was not fitted" in page.text
