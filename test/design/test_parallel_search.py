"""Processes that search run the search, not the program that asked for it."""

import subprocess
import sys
from pathlib import Path

import pytest

# As a notebook or a script of five lines: no `if __name__ == "__main__":`.
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
print("the program runs", flush=True)
from command_line import URDF
from dynid_ros.excitation import FourierExcitation
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits

robot = RobotModel.from_urdf(URDF)
settings = {"candidates": 2, "starts": 2, "design_time": 60.0, "criterion": "condition"}
plan = FourierExcitation(robot, MotionLimits.of(robot, 5.0), harmonics=2, workers=2, **settings).plan()
print("designed", plan.value > 0)
"""


@pytest.mark.slow
def test_a_program_without_a_main_guard_gets_its_motion(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = [sys.executable, program, Path(__file__).parents[1]]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "the program runs\ndesigned True\n", done.stderr
