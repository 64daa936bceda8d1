"""Searches end when told to and say what they found; their processes run the search, not the program that asked."""

import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from dynid_ros.errors import WorkerError
from dynid_ros.excitation import parallel_search
from dynid_ros.excitation.fourier_search import Candidate, Iterate, SearchState
from dynid_ros.excitation.parallel_search import MIN_GRACE_S, Enough, find_best_motion
from dynid_ros.progress import advance

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
    """A search that makes each start better by 5, in one slice."""

    def candidate(self, number):
        return Candidate(None, 10.0 + number, -1.0, "", number)

    def run_slice(self, state):
        if not isinstance(state, SearchState):
            start = state if isinstance(state, Candidate) else self.candidate(state)
            return SearchState(start, Iterate(None))
        advance(0.0)
        return SearchState(replace(state.best, value=state.best.value - 5.0))


def test_the_last_that_is_told_is_the_motion_that_is_returned():
    reported = []
    outcome = find_best_motion(
        Improving(), seconds=60.0, starts=2, progress=lambda _, best: reported.append(best.value)
    )
    assert reported[0] == 10.0
    assert reported[-1] == outcome.best.value == 5.0
    assert reported == sorted(reported, reverse=True)
    assert outcome.starts == 2
    assert [value for _, value in outcome.history] == [10.0, 5.0]


def test_who_had_enough_is_told_no_more_and_gets_the_best_so_far(monkeypatch):
    monkeypatch.setattr(parallel_search, "REPORT_PERIOD_S", -1.0)
    reported = []

    def progress(part, best):
        reported.append(best.value)
        if len(reported) == 3:
            raise Enough

    outcome = find_best_motion(Improving(), seconds=60.0, progress=progress)
    assert reported == [10.0] * 3
    assert (outcome.starts, outcome.best.value) == (1, 10.0)


class Losing(Executor):
    """Threads, of whose calls every third is lost with its worker, once or for good."""

    def __init__(self, for_good=False):
        self.pool, self.made, self.lost, self.for_good = ThreadPoolExecutor(3), 0, set(), for_good

    def submit(self, function, *arguments):
        self.made += 1
        state = arguments[1]
        if self.for_good or (self.made % 3 == 0 and id(state) not in self.lost):
            self.lost.add(id(state))
            future = Future()
            future.set_exception(BrokenExecutor("a worker died"))
            return future
        return self.pool.submit(function, *arguments)


class Ordered(Improving):
    """Makes start k better by k in each of five slices."""

    def run_slice(self, state):
        if not isinstance(state, SearchState):
            return super().run_slice(state)
        best = replace(state.best, value=state.best.value - state.best.number)
        return SearchState(best, None if state.round_number == 4 else Iterate(None), state.round_number + 1)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_executor_finds_the_same_and_a_lost_slice_is_made_again(workers):
    losing = Losing()
    outcome = find_best_motion(Ordered(), seconds=60.0, candidates=2, starts=5, workers=workers, executor=losing)
    assert (outcome.best.number, outcome.best.value, outcome.starts) == (4, 14.0 - 5 * 4, 5)
    assert len(losing.lost) > 0
    assert losing.made == 5 * 6 + len(losing.lost)


def test_what_is_lost_each_time_is_said():
    with pytest.raises(WorkerError, match="lost 3 times"):
        find_best_motion(Ordered(), seconds=60.0, starts=1, workers=2, executor=Losing(for_good=True))


class Slow(Ordered):
    """Takes 0.2 s for a slice; knows when each began."""

    begun: ClassVar = []

    def run_slice(self, state):
        self.begun.append(time.monotonic())
        time.sleep(0.2)
        reached = super().run_slice(state)
        return replace(reached, best=replace(reached.best, value=reached.best.value - 1.0))


def test_time_decides_whether_a_slice_begins_and_those_that_run_are_waited_for():
    Slow.begun.clear()
    begun = time.monotonic()
    outcome = find_best_motion(Slow(), seconds=0.5, starts=1, workers=2, executor=ThreadPoolExecutor(2))
    assert time.monotonic() - begun < 0.5 + MIN_GRACE_S
    assert max(Slow.begun) < begun + 0.5 + 0.1
    assert time.monotonic() >= max(Slow.begun) + 0.2
    assert len(Slow.begun) >= 2
    assert outcome.starts == 1


class Cramped(Improving):
    """Draws random motions slowly, and none is feasible; a search finds one that is."""

    def candidate(self, number):
        time.sleep(0.1)
        return replace(super().candidate(number), excess=0.01)

    def run_slice(self, state):
        reached = super().run_slice(state)
        return reached if reached.iterate is not None else replace(reached, best=replace(reached.best, excess=-1.0))


def test_search_has_its_time_where_random_motions_used_it_up():
    outcome = find_best_motion(Cramped(), seconds=0.2, candidates=4, starts=1)
    assert outcome.best.is_feasible


class Hasty(Improving):
    """Draws random motions for longer than the time of the search; the third round finds the first better motion."""

    def candidate(self, number):
        time.sleep(0.1)
        return super().candidate(number)

    def run_slice(self, state):
        if not isinstance(state, SearchState):
            return super().run_slice(state)
        number = state.round_number + 1
        best = replace(state.best, value=state.best.value - 1.0) if number > 2 else state.best
        return SearchState(best, Iterate(None), number)


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(2)])
def test_a_search_betters_its_random_motion_however_short_the_time(executor):
    outcome = find_best_motion(Hasty(), seconds=0.05, candidates=3, executor=executor)
    assert (outcome.starts, outcome.best.value) == (1, 9.0)


def test_a_search_that_never_betters_its_random_motion_ends():
    outcome = find_best_motion(Ordered(), seconds=1e-9, candidates=1)
    assert (outcome.starts, outcome.best.value) == (1, 10.0)


def test_a_search_without_time_keeps_its_random_motions():
    outcome = find_best_motion(Hasty(), seconds=0.0)
    assert (outcome.starts, outcome.best.value) == (0, 10.0)
