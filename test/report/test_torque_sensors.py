"""Test the report of a calibration of torque sensors: numbers of the document, reasons, and readings per joint."""

import numpy as np
import pytest
import torque_sensor_bench as bench
from html_page import Page, assert_readable, assert_self_contained, assert_themed

from dynid_ros.identification import TorqueSensorCalibration
from dynid_ros.report.torque_sensors import torque_sensor_part, write_result_report


@pytest.fixture(name="calibrated", scope="module")
def fixture_calibrated():
    """Return results of an arm with a reference mass and without one."""
    robot = bench.aslant_robot()
    truth = bench.Truth.draw(np.random.default_rng(0), robot)
    results = []
    for settings in ({"reference_mass": bench.MASS}, {}):
        samples, loaded = bench.experiment(truth, np.random.default_rng(1), loaded=bool(settings))
        results.append(TorqueSensorCalibration(robot, **settings).fit_samples(samples, loaded))
    return results


def write_page(result, tmp_path):
    path = write_result_report(tmp_path / "report.html", result, None, ())
    return Page(path.read_text(encoding="utf-8"))


def test_page_has_the_gains_and_a_picture_per_known_joint(calibrated, tmp_path):
    result, _ = calibrated
    page = write_page(result, tmp_path)
    for check in (assert_self_contained, assert_readable, assert_themed):
        check(page)
    labels = [picture["aria-label"] for picture in page.pictures]
    assert "Gains of 6 of 6 torque sensors were found." in page.text
    for joint, gain in zip(result.joint_names, result.gain, strict=True):
        assert f"Readings of {joint} over gravity torque" in labels
        assert f"{joint} {gain:.4f} ± " in page.text


def test_undetermined_gains_have_reasons_instead_of_numbers(calibrated, tmp_path):
    _, result = calibrated
    page = write_page(result, tmp_path)
    assert "Gains of 0 of 6 torque sensors were found." in page.text
    assert "The data do not determine the gain of joint_1" in page.text
    assert "joint_1, gain: " in page.text
    assert not [tile for tile in torque_sensor_part(result.content(())).tiles if tile.label == "Gain, worst joint"]
