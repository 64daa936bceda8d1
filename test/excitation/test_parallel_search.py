"""Test parallel searches: time limits, reports, lost workers and reproducibility."""

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

# A notebook or short script without `if __name__ == "__main__":`.
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
def test_programs_without_a_main_guard_get_a_motion(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = [sys.executable, program, Path(__file__).parents[1]]
    result = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert result.stdout == "the program runs\ndesigned True\n", result.stderr


class ImprovingSearch:
    """Search that improves each start by 5 in one slice."""

    def candidate(self, number):
        return Candidate(None, 10.0 + number, -1.0, "", number)

    def run_slice(self, state):
        if not isinstance(state, SearchState):
            start = state if isinstance(state, Candidate) else self.candidate(state)
            return SearchState(start, Iterate(None))
        advance(0.0)
        return SearchState(replace(state.best, value=state.best.value - 5.0))


def test_last_reported_motion_is_returned():
    reported = []
    outcome = find_best_motion(
        ImprovingSearch(), seconds=60.0, starts=2, progress=lambda _, best: reported.append(best.value)
    )
    assert reported[0] == 10.0
    assert reported[-1] == outcome.best.value == 5.0
    assert reported == sorted(reported, reverse=True)
    assert outcome.starts == 2
    assert [value for _, value in outcome.history] == [10.0, 5.0]


def test_stopped_searches_return_the_best_motion_so_far(monkeypatch):
    monkeypatch.setattr(parallel_search, "REPORT_PERIOD_S", -1.0)
    reported = []

    def stop_after_three_reports(part, best):
        reported.append(best.value)
        if len(reported) == 3:
            raise Enough

    outcome = find_best_motion(ImprovingSearch(), seconds=60.0, progress=stop_after_three_reports)
    assert reported == [10.0] * 3
    assert (outcome.starts, outcome.best.value) == (1, 10.0)


class LosingExecutor(Executor):
    """Executor of threads that loses every third call, once or always."""

    def __init__(self, always=False):
        self.pool = ThreadPoolExecutor(3)
        self.calls = 0
        self.lost = set()
        self.always = always

    def submit(self, function, *arguments):
        self.calls += 1
        state = arguments[1]
        if self.always or (self.calls % 3 == 0 and id(state) not in self.lost):
            self.lost.add(id(state))
            future = Future()
            future.set_exception(BrokenExecutor("a worker died"))
            return future
        return self.pool.submit(function, *arguments)


class GradualSearch(ImprovingSearch):
    """Search that improves start k by k in each of five slices."""

    def run_slice(self, state):
        if not isinstance(state, SearchState):
            return super().run_slice(state)
        best = replace(state.best, value=state.best.value - state.best.number)
        return SearchState(best, None if state.round_number == 4 else Iterate(None), state.round_number + 1)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_repeats_lost_slices_with_the_same_result(workers):
    executor = LosingExecutor()
    outcome = find_best_motion(
        GradualSearch(), seconds=60.0, candidates=2, starts=5, workers=workers, executor=executor
    )
    assert (outcome.best.number, outcome.best.value, outcome.starts) == (4, 14.0 - 5 * 4, 5)
    assert len(executor.lost) > 0
    assert executor.calls == 5 * 6 + len(executor.lost)


def test_reports_slices_that_are_always_lost():
    with pytest.raises(WorkerError, match="lost 3 times"):
        find_best_motion(GradualSearch(), seconds=60.0, starts=1, workers=2, executor=LosingExecutor(always=True))


class SlowSearch(GradualSearch):
    """Search whose slices take 0.2 s; records their start times."""

    start_times: ClassVar = []

    def run_slice(self, state):
        self.start_times.append(time.monotonic())
        time.sleep(0.2)
        state = super().run_slice(state)
        return replace(state, best=replace(state.best, value=state.best.value - 1.0))


def test_starts_no_slice_after_its_time_and_awaits_running_ones():
    SlowSearch.start_times.clear()
    start = time.monotonic()
    outcome = find_best_motion(SlowSearch(), seconds=0.5, starts=1, workers=2, executor=ThreadPoolExecutor(2))
    assert time.monotonic() - start < 0.5 + MIN_GRACE_S
    assert max(SlowSearch.start_times) < start + 0.5 + 0.1
    assert time.monotonic() >= max(SlowSearch.start_times) + 0.2
    assert len(SlowSearch.start_times) >= 2
    assert outcome.starts == 1


class InfeasibleDrawSearch(ImprovingSearch):
    """Search whose slow random motions are infeasible and whose slices find a feasible motion."""

    def candidate(self, number):
        time.sleep(0.1)
        return replace(super().candidate(number), excess=0.01)

    def run_slice(self, state):
        state = super().run_slice(state)
        return state if state.iterate is not None else replace(state, best=replace(state.best, excess=-1.0))


def test_searches_although_random_motions_used_all_time():
    outcome = find_best_motion(InfeasibleDrawSearch(), seconds=0.2, candidates=4, starts=1)
    assert outcome.best.is_feasible


class LateSearch(ImprovingSearch):
    """Search whose random motions take longer than its time; the third round finds the first improvement."""

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
def test_improves_random_motions_in_any_time(executor):
    outcome = find_best_motion(LateSearch(), seconds=0.05, candidates=3, executor=executor)
    assert (outcome.starts, outcome.best.value) == (1, 9.0)


def test_searches_without_improvement_end():
    outcome = find_best_motion(GradualSearch(), seconds=1e-9, candidates=1)
    assert (outcome.starts, outcome.best.value) == (1, 10.0)


def test_searches_without_time_keep_random_motions():
    outcome = find_best_motion(LateSearch(), seconds=0.0)
    assert (outcome.starts, outcome.best.value) == (0, 10.0)
