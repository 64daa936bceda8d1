"""Memory of commands on long recordings."""

import sys
from pathlib import Path

import pytest

from dynid_ros.model import RobotModel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.long_recordings import COMMANDS, measure, urdf, write_recording

MAX_GROWTH_MB = 100.0
"""Largest growth of the memory for three minutes more at 1 kHz, which are 90 MB of positions, velocities, torques."""


@pytest.mark.slow
def test_memory_of_check_hardly_grows_with_the_recording(tmp_path):
    (tmp_path / "arm.urdf").write_text(urdf())
    robot = RobotModel.from_urdf(tmp_path / "arm.urdf")
    peaks = []
    for minutes in (2, 5):
        write_recording(robot, 60 * minutes, 1000.0, tmp_path / "run.npz")
        peaks.append(measure(COMMANDS["check"], tmp_path)[0])
    assert peaks[1] < peaks[0] + MAX_GROWTH_MB
