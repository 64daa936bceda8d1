"""Search for the best Fourier motion from many random starts in parallel, within a given time."""

import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, count, islice

import numpy as np

from dynid_ros.excitation.fourier_search import Candidate, MotionSearch, SearchState
from dynid_ros.executors import Calls, Processes
from dynid_ros.progress import Cancelled, Watch, watching

REPORT_PERIOD_S = 0.2
MIN_GRACE_S = 5.0
"""Shortest time, s, to wait for running slices after the deadline; at least three times the longest slice."""

Progress = Callable[[float, Candidate], None]
"""Callback with the elapsed fraction of the time and the best motion so far; its exceptions end the search."""
Start = Candidate | int
"""A motion to start from, or the number of a random motion that the search draws first."""


class Enough(Exception):  # noqa: N818  # not an error
    """Request of a `Progress` callback to end the search with the best motion so far."""


@dataclass
class SearchResult:
    """Best motion of a search, and how it was found.

    Attributes:
        best: best motion.
        starts: number of starts that were searched from.
        history: time (s) and value of each better motion that keeps to all limits.
    """

    best: Candidate
    starts: int = 0
    history: list[tuple[float, float]] = field(default_factory=list)

    def offer(self, candidate: Candidate, seconds: float) -> None:
        """Keep `candidate` if it is better."""
        if candidate.rank() < self.best.rank():
            self.best = candidate
            if candidate.is_feasible:
                self.history.append((seconds, candidate.value))


def find_best_motion(
    search: MotionSearch,
    *,
    seconds: float,
    candidates: int = 1,
    starts: int | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> SearchResult:
    """Draw random motions, start a search from one after the other, best first, and return the best motion.

    Each search runs in slices, see `MotionSearch.run_slice`; time only decides whether another slice begins. The result
    of a search depends only on the seed, the number of its start and the number of its slices. With `starts` and enough
    time the best motion is therefore reproducible with any number of workers.

    Args:
        search: optimization problem.
        seconds: time for drawing and search, s; 0: draw only. If no drawn motion is feasible, the time counts from the
            end of drawing. One search continues beyond this time until it finds a better motion than the drawn ones.
        candidates: number of random motions to draw first; drawing stops earlier if time is over and one is feasible.
        starts: largest number of starts; None: as many as time allows.
        workers: number of searches that run in parallel; 1 without an executor: in this process.
        executor: executor of the slices; None: processes of this machine.
        progress: callback, called a few times a second.

    Raises:
        TrajectoryError: no pose is allowed.
        WorkerError: workers are lost repeatedly.
    """
    begin = time.monotonic()
    result = SearchResult(search.candidate(0))
    if result.best.is_feasible:
        result.history.append((time.monotonic() - begin, result.best.value))
    drawn = [result.best]
    while len(drawn) < candidates and not (result.best.is_feasible and 0 < seconds < time.monotonic() - begin):
        drawn.append(search.candidate(len(drawn)))
        result.offer(drawn[-1], time.monotonic() - begin)
    if seconds <= 0 or starts == 0:
        return result

    is_enough = False

    def report() -> bool:
        """Call `progress` and return whether to go on."""
        nonlocal is_enough
        if progress is not None and not is_enough:
            try:
                progress(min((time.monotonic() - begin) / seconds, 1.0), result.best)
            except Enough:
                is_enough = True
        return not is_enough

    ranked: list[Start] = [*sorted(drawn, key=Candidate.rank)]
    queue = islice(chain(ranked, count(len(drawn))), starts)
    deadline = (begin if result.best.is_feasible else time.monotonic()) + seconds
    if executor is not None:
        states = _run_in_executor(search, queue, deadline, report, workers=workers, executor=executor)
    elif workers == 1:
        states = _run_here(search, queue, deadline, report)
    else:
        states = _run_in_processes(search, queue, deadline, report, workers)
    drawn_best = result.best
    latest_states: dict[int, SearchState] = {}

    def keep(state: SearchState) -> None:
        latest_states[state.best.number] = state
        result.starts = len(latest_states)
        result.offer(state.best, time.monotonic() - begin)
        report()

    with closing(states):
        for state in states:
            keep(state)
    # Random motions may be too small to be useful, and a slow machine may not have ended one search in time.
    most_advanced = max(latest_states.values(), key=_progress, default=None)
    if result.best is drawn_best and (most_advanced is None or not most_advanced.has_ended):
        with closing(_run_here(search, iter([most_advanced or ranked[0]]), np.inf, report)) as states:
            for state in states:
                keep(state)
                if result.best is not drawn_best:
                    break
    return result


def _progress(state: SearchState) -> tuple[bool, int, int]:
    """Return a key that is largest for searches that have ended, then for those with most restarts and rounds."""
    return state.has_ended, state.restarts, state.round_number


def _run_here(
    search: MotionSearch, starts: Iterator[Start | SearchState], deadline: float, report: Callable[[], bool]
) -> Generator[SearchState, None, None]:
    """Run the slices of one search after another in this process, and yield the state after each slice."""
    for start in starts:
        state = start
        while not (isinstance(state, SearchState) and state.has_ended):
            if time.monotonic() > deadline or not report():
                return
            try:
                with watching(_ReportingWatch(report)):
                    state = search.run_slice(state)
            except Cancelled:
                return
            yield state


class _ReportingWatch(Watch):
    """Watch that calls `report` at intervals, and cancels the computation when it returns False."""

    def __init__(self, report: Callable[[], bool]) -> None:
        super().__init__()
        self._report = report
        self._last_report = time.monotonic()

    def _check(self) -> None:
        if time.monotonic() - self._last_report > REPORT_PERIOD_S:
            self._last_report = time.monotonic()
            if not self._report():
                self.cancel()
        super()._check()


def _run_in_processes(
    search: MotionSearch, starts: Iterator[Start], deadline: float, report: Callable[[], bool], workers: int
) -> Generator[SearchState, None, None]:
    executor = Processes(workers)
    try:
        yield from _run_in_executor(search, starts, deadline, report, workers=workers, executor=executor)
    finally:
        executor.shutdown(cancel_futures=True)


def _run_in_executor(
    search: MotionSearch,
    starts: Iterator[Start],
    deadline: float,
    report: Callable[[], bool],
    *,
    workers: int,
    executor: Executor,
) -> Generator[SearchState, None, None]:
    """Run the slices of up to `workers` searches in parallel, and yield the state after each slice."""
    calls: Calls[float] = Calls(executor)
    pickled_search = pickle.dumps(search)
    longest_slice = 0.0
    waiting: deque[SearchState] = deque()
    try:
        while True:
            while len(calls) < workers and time.monotonic() < deadline:
                state = waiting.popleft() if waiting else next(starts, None)
                if state is None:
                    break
                calls.make(time.monotonic(), _run_pickled_slice, pickled_search, state)
            if not calls:
                return
            for begin, future in calls.ended(REPORT_PERIOD_S):
                state = future.result()
                longest_slice = max(longest_slice, time.monotonic() - begin)
                if not state.has_ended:
                    waiting.append(state)
                yield state
            if not report() or time.monotonic() > deadline + max(MIN_GRACE_S, 3 * longest_slice):
                return
    finally:
        calls.cancel()


_last_search = threading.local()
"""Search that this thread received last, and its pickle; a search keeps its last motion, so threads cannot share it."""


def _run_pickled_slice(pickled_search: bytes, state: SearchState | Start) -> SearchState:
    """Run a slice in a worker."""
    if getattr(_last_search, "pickle", None) != pickled_search:
        _last_search.pickle = pickled_search
        _last_search.search = pickle.loads(pickled_search)
    return _last_search.search.run_slice(state)
