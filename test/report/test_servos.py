"""Test the report of servos: parameters over the gain and in torque, tiles, and following errors."""

import pytest
from html_page import Page, assert_readable, assert_self_contained, assert_themed
from servo_arms import motion, one, record

from dynid_ros.identification import ServoIdentification
from dynid_ros.report.servos import write_result_report


@pytest.fixture(name="arm", scope="module")
def fixture_arm():
    return one(seed=5)


@pytest.fixture(name="recording", scope="module")
def fixture_recording(arm):
    return record(arm, motion(arm, 8.0, 50.0))


@pytest.mark.parametrize("known", [True, False])
def test_page_shows_torque_only_for_known_gains(arm, recording, known, tmp_path):
    settings = {"stiffness": arm.per_joint("stiffness"), "damping": [0.1]} if known else {}
    result = ServoIdentification(arm.robot, **settings).fit(recording)
    shown = {"recordings": (recording,)}
    path = write_result_report(tmp_path / "report.html", result, shown, [result.validate(recording)])
    page = Page(path.read_text(encoding="utf-8"))
    for check in (assert_self_contained, assert_readable, assert_themed):
        check(page)
    assert f"1 servo were identified from commands and positions; {'all' if known else 'none'} of them" in page.text
    assert ("Parameters in torque" in page.text) is known
    delay = 1e3 * result.joints["lift"].over_gain["delay"][0]
    assert f"{delay:.1f}" in page.text
