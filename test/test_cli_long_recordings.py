"""Test memory and time of commands on long recordings."""

import sys
from pathlib import Path

import pytest

from dynid_ros.model import RobotModel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.long_recordings import COMMANDS, measure, urdf, write_recording

MAX_GROWTH_MB = 100.0
"""Largest growth of memory for three more minutes at 1 kHz, which are 90 MB of signals."""
MAX_TIME_RATIO = 3.2
"""Largest ratio of added times for 2 N and N samples: 2 in linear time, 4 in quadratic time."""
MIN_ADDED_S = 1.0
"""Smallest added time in s in the ratio."""
TIMEOUT_S = 1200
"""Timeout in s on a busy machine."""


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    (tmp_path / "arm.urdf").write_text(urdf())
    return tmp_path


def write(folder, minutes, rate=1000.0):
    robot = RobotModel.from_urdf(folder / "arm.urdf")
    write_recording(robot, 60 * minutes, rate, folder / "run.npz")


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_S)
def test_memory_does_not_grow_with_the_recording(folder):
    peaks = {}
    commands = ("check", "links", "validate")
    for minutes in (2, 5):
        write(folder, minutes)
        peaks[minutes] = [measure(COMMANDS[command], folder)[0] for command in commands]
    for command, before, after in zip(commands, peaks[2], peaks[5], strict=True):
        assert after < before + MAX_GROWTH_MB, command


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_S)
def test_time_is_linear_in_the_recording(folder):
    seconds = []
    commands = [command for command in COMMANDS if command != "servos"]
    for minutes in (1, 2, 4):
        write(folder, minutes, rate=250.0)
        seconds.append([measure(COMMANDS[command], folder)[1] for command in commands])
    for command, first, second, third in zip(commands, *seconds, strict=True):
        assert third - second < MAX_TIME_RATIO * max(second - first, MIN_ADDED_S), command
