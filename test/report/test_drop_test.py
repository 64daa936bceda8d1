"""Numbers of the demonstration, worked out by hand."""

import struct
from dataclasses import replace

import numpy as np
import pytest

from dynid_ros.errors import IdentificationError
from dynid_ros.report import Demonstration, write_drop_picture
from dynid_ros.report.plots import SideView

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
