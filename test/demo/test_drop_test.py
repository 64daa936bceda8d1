"""Numbers of the demonstration, worked out by hand."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from html_page import Page, assert_self_contained, assert_themed
from pictures import unrendered

from dynid_ros.demo.drop_test import Demonstration, SideView, write_drop_picture, write_drop_report
from dynid_ros.errors import IdentificationError
from dynid_ros.report.gravity import write_gravity_report

# The stick figure against geometry by hand, and the picture file.


@pytest.mark.parametrize("waist", [0.0, 1.1, -2.0, np.pi])
def test_side_view_shows_true_lengths_whichever_way_the_arm_faces(arm, robot, waist):
    upper, lower = arm.reach
    shoulder, elbow = np.array([0.1, 0.9]), np.array([-0.4, 0.6])
    q = np.stack([np.full(2, waist), shoulder, elbow, np.zeros(2)], axis=1)
    sticks = SideView.of(robot, q).sticks(q)
    x = upper * np.cos(shoulder)
    z = 0.2 - upper * np.sin(shoulder)
    wrist = np.stack([x + lower * np.cos(shoulder + elbow), z - lower * np.sin(shoulder + elbow)], axis=1)
    np.testing.assert_allclose(sticks[:, 0], 0, atol=1e-12)
    np.testing.assert_allclose(sticks[:, 3], np.stack([x, z], axis=1), atol=1e-12)
    np.testing.assert_allclose(sticks[:, 4], wrist, atol=1e-12)


def test_png(tmp_path, robot, demonstration):
    path = write_drop_picture(tmp_path / "new" / "drop.png", robot, demonstration)
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (1360, 712)
    assert data == write_drop_picture(tmp_path / "again.png", robot, demonstration).read_bytes()


def test_arm_that_keeps_still_can_be_drawn(tmp_path, robot, demonstration):
    still = np.zeros_like(demonstration.position_with)
    demonstration = replace(demonstration, position_without=still, position_with=still)
    assert write_drop_picture(tmp_path / "still.png", robot, demonstration).stat().st_size > 1000


@pytest.fixture(name="small")
def fixture_small():
    return Demonstration(
        joint_names=("a", "b", "c"),
        moments=np.zeros(6),
        poses=np.zeros((2, 3)),
        gravity_torque=np.array([[3.0, 1e-15, -10.0], [-4.0, 0.0, 8.0]]),
        identified_torque=np.array([[3.3, 0.0, np.nan], [-4.4, 0.0, 8.0]]),
        time=np.array([2.0, 3.0, 4.5]),
        position_without=np.array([[0.5, 0, 1.0], [0.1, 0.001, 1.3], [0.3, 0, 0.2]]),
        position_with=np.array([[0.5, 0, 1.0], [0.51, 0.001, 1.0], [0.48, 0, 1.04]]),
    )


def test_torque_errors(small):
    np.testing.assert_array_equal(small.largest_torque, [4, 0, 10])
    np.testing.assert_allclose(small.torque_rms, [np.sqrt((0.3**2 + 0.4**2) / 2), 7e-16, np.nan], atol=1e-15)
    np.testing.assert_allclose(small.relative_rms, [small.torque_rms[0] / 4, np.nan, np.nan])
    np.testing.assert_allclose(small.relative_worst, [0.1, np.nan, np.nan])


def test_drift_is_the_farthest_from_the_start(small):
    assert small.duration == 2.5
    np.testing.assert_allclose(small.drift_without, [0.4, 0.001, 0.8])
    np.testing.assert_allclose(small.drift_with, [0.02, 0.001, 0.04])
    np.testing.assert_allclose(small.drift_ratios, [0.05, np.nan, 0.05])
    assert small.drift_ratio == pytest.approx(0.05)


def test_no_ratio_where_friction_holds_the_arm(small):
    held = replace(small, position_without=np.repeat(small.position_without[:1], 3, axis=0))
    assert np.isnan(held.drift_ratio)
    assert np.isnan(held.drift_ratios).all()


@pytest.mark.parametrize("field", ["gravity_torque", "identified_torque", "position_without", "position_with", "poses"])
def test_wrong_shape_is_named(small, field):
    with pytest.raises(IdentificationError, match=field):
        replace(small, **{field: np.zeros((2, 5))})


def test_empty_drop_test_is_refused(small):
    empty = np.zeros((0, 3))
    with pytest.raises(IdentificationError, match="not empty"):
        replace(small, time=np.zeros(0), position_without=empty, position_with=empty)


# The report.


@pytest.fixture(name="demonstrated", scope="module")
def fixture_demonstrated(tmp_path_factory, robot, result, samples, demonstration):
    """Text of the page with a demonstration."""
    path = tmp_path_factory.mktemp("demonstrated") / "report.html"
    return write_drop_report(path, robot, result.document(), samples, demonstration).read_text(encoding="utf-8")


def test_truth_and_drop_test_only_with_a_demonstration(tmp_path, robot, document, samples, demonstrated):
    plain = Page(write_gravity_report(tmp_path / "report.html", robot, document, samples).read_text(encoding="utf-8"))
    page = Page(demonstrated)
    assert_self_contained(page)
    assert_themed(page)
    for words in (
        "Drop test",
        "100 fresh poses",
        "true; 6 of 6 intervals hold it",
        "true −0.0",
        "without compensation",
    ):
        assert words not in plain.text
        assert words in page.text


@pytest.fixture(name="read")
def fixture_read(tmp_path):
    def read(*content):
        return Page(write_drop_report(tmp_path / "new" / "report.html", *content).read_text(encoding="utf-8"))

    with unrendered():
        yield read


def test_same_input_same_file(tmp_path, robot, document, samples, demonstration, demonstrated):
    again = write_drop_report(tmp_path / "again", robot, document, samples, demonstration)
    assert again.read_text(encoding="utf-8") == demonstrated
    assert [path.name for path in tmp_path.iterdir()] == ["again"], "no temporary file is left"


def test_demonstration_in_numbers(read, robot, document, samples, demonstration):
    page = read(robot, document, samples, replace(demonstration, verdict=("It floats.",)))
    shoulder = np.rad2deg(1 - np.cos(demonstration.time)).max()
    assert f"shoulder {shoulder:.0f}° {shoulder / 100:.2f}° 1.0 %" in page.text
    assert "waist < 0.01° < 0.01° –" in page.text
    error = demonstration.identified_torque - demonstration.gravity_torque
    rms, largest = np.sqrt(np.mean(error[:, 1] ** 2)), np.abs(demonstration.gravity_torque[:, 1]).max()
    assert f"shoulder {largest:.1f} N m {rms:.5f} N m {100 * rms / largest:.3f} %" in page.text
    assert f"drift by up to {shoulder:.0f}° in 5 s without gravity compensation" in page.text
    assert "It floats." in page.text


def test_truth_outside_an_interval_is_counted(read, robot, document, samples, demonstration):
    moments = demonstration.moments.copy()
    moments[3] += 1.0
    page = read(robot, document, samples, replace(demonstration, moments=moments))
    assert "5 of 6 intervals hold it" in page.text


def test_arm_that_friction_holds(read, robot, document, samples, demonstration):
    still = np.repeat(demonstration.position_with[:1], len(demonstration.time), axis=0)
    page = read(robot, document, samples, replace(demonstration, position_without=still))
    assert "friction alone holds the arm" in page.text
    assert "elbow < 0.01° 0.286° –" in page.text


def test_demonstration_of_another_robot(tmp_path, robot, document, samples, demonstration):
    other = replace(demonstration, joint_names=("a", "b", "c", "d"))
    with pytest.raises(IdentificationError, match="of the robot in the report"):
        write_drop_report(tmp_path / "r.html", robot, document, samples, other)
