"""The stick figure against geometry by hand, and the picture file."""

import struct
from dataclasses import replace

import numpy as np
import pytest

from dynid_ros.report import write_drop_picture
from dynid_ros.report.plots import SideView


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
