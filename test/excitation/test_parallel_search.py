"""Searches end when told to and say what they found; their processes run the search, not the program that asked."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dynid_ros.excitation import parallel_search
from dynid_ros.excitation.fourier_search import Candidate
from dynid_ros.excitation.parallel_search import Enough, best_motion

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


class Improving:
    """A search that makes each start better by 5."""

    def candidate(self, number):
        return Candidate(None, 10.0 + number, -1.0, "", number)

    def improved(self, start, deadline, stopped):
        stopped()
        return replace(start, value=start.value - 5.0)


def test_the_last_that_is_told_is_the_motion_that_is_returned():
    reported = []
    outcome = best_motion(Improving(), seconds=60.0, starts=2, progress=lambda _, best: reported.append(best.value))
    assert reported == [10.0, 5.0, 5.0, 5.0]
    assert outcome.best.value == 5.0
    assert [value for _, value in outcome.history] == [10.0, 5.0]


def test_who_had_enough_is_told_no_more_and_gets_the_best_so_far(monkeypatch):
    monkeypatch.setattr(parallel_search, "TICK", -1.0)
    reported = []

    def progress(part, best):
        reported.append(best.value)
        if len(reported) == 2:
            raise Enough

    outcome = best_motion(Improving(), seconds=60.0, progress=progress)
    assert reported == [10.0, 10.0]
    assert (outcome.starts, outcome.best.value) == (1, 5.0)
