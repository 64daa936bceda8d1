"""Test the drop test's drift, the stick figure and the picture file against closed forms."""

import struct

import numpy as np
import pytest
from gravity_report_arm import LOWER, UPPER, build_urdf

from dynid_ros.demo.drop_test import DropTest, SideView, write_drop_picture
from dynid_ros.model import RobotModel

ROBOT = RobotModel.from_urdf(build_urdf())


@pytest.mark.parametrize("waist", [0.0, 1.1, -2.0, np.pi])
def test_side_view_shows_true_lengths_for_any_waist_angle(waist):
    shoulder = np.array([0.1, 0.9])
    elbow = np.array([-0.4, 0.6])
    q = np.stack([np.full(2, waist), shoulder, elbow, np.zeros(2)], axis=1)
    sticks = SideView.from_motion(ROBOT, q).sticks(q)
    x = UPPER * np.cos(shoulder)
    z = 0.2 - UPPER * np.sin(shoulder)
    wrist = np.stack([x + LOWER * np.cos(shoulder + elbow), z - LOWER * np.sin(shoulder + elbow)], axis=1)
    np.testing.assert_allclose(sticks[:, 0], 0, atol=1e-12)
    np.testing.assert_allclose(sticks[:, 3], np.stack([x, z], axis=1), atol=1e-12)
    np.testing.assert_allclose(sticks[:, 4], wrist, atol=1e-12)


def test_drift_is_the_largest_distance_from_the_start():
    falling = np.array([[0.5, 0, 1.0], [0.1, 0.001, 1.3], [0.3, 0, 0.2]])
    floating = np.array([[0.5, 0, 1.0], [0.48, 0, 1.04]])
    test = DropTest.from_tracks((np.array([2.0, 3.0, 4.0]), falling), (np.array([2.0, 4.0]), floating))
    assert test.duration == 2.0
    np.testing.assert_allclose(test.compensated[1], [0.49, 0, 1.02])
    np.testing.assert_allclose(test.drift_without, [0.4, 0.001, 0.8])
    np.testing.assert_allclose(test.drift_compensated, [0.02, 0, 0.04])


@pytest.mark.parametrize("factor", [1.0, 0.0])
def test_picture_file_is_reproducible(tmp_path, factor):
    time = np.linspace(0, 5, 51)
    start = np.array([0.2, -0.8, 0.9, 0.1])
    fall = factor * np.stack([0 * time, 1 - np.cos(time), 0.5 * np.tanh(time), 0.1 * time], axis=1)
    test = DropTest(time, start + fall, start + 0.01 * fall)
    path = write_drop_picture(tmp_path / "new" / "drop.png", ROBOT, test)
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (1360, 712)
    assert data == write_drop_picture(tmp_path / "again.png", ROBOT, test).read_bytes()
