"""Searches from many starts side by side, for as long as there is time."""

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
"""Time for which the last slices are waited for when time is up; three times the longest slice where that is more."""

Progress = Callable[[float, Candidate], None]
"""Callback with the elapsed fraction of the time and the best motion so far; an exception that it raises ends it."""
Start = Candidate | int
"""A motion to start from, or the number of a motion that is still to be drawn."""


class Enough(Exception):  # noqa: N818  # no fault
    """Request of a `Progress` callback to end the search with the best motion so far."""


@dataclass
class SearchResult:
    """Best motion of a search, and how it was found.

    Attributes:
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
    """Draw random motions, improve them from one start after the other, and return the best motion.

    Each search runs in slices, and time only decides whether another slice begins. The result of each start depends on
    the seed, the number of the start and the number of its slices alone. With `starts` and enough time the motion is
    therefore reproducible, however many workers there are.

    Args:
        search: the problem.
        seconds: time for the search; 0: the random motions only. Where no random motion is feasible, the search from
            them gets that time too. One search goes on until it has found a better motion than the random ones,
            even if that needs more time.
        candidates: number of random motions drawn first, fewer if time is over and one is feasible; the best are the
            first starts.
        starts: largest number of starts; None: as many as time allows.
        workers: number of searches side by side; 1 without an executor: in this process.
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
    furthest: dict[int, SearchState] = {}

    def keep(state: SearchState) -> None:
        furthest[state.best.number] = state
        result.starts = len(furthest)
        result.offer(state.best, time.monotonic() - begin)
        report()

    with closing(states):
        for state in states:
            keep(state)
    # Random motions may be too small to be of use, and a busy or slow machine may have had no time for more.
    last = max(furthest.values(), key=_progress, default=None)
    if result.best is drawn_best and (last is None or not last.has_ended):
        with closing(_run_here(search, iter([last or ranked[0]]), np.inf, report)) as states:
            for state in states:
                keep(state)
                if result.best is not drawn_best:
                    break
    return result


def _progress(state: SearchState) -> tuple[bool, int, int]:
    """Return a key for sorting: searches that have ended first, then by the number of rounds."""
    return state.has_ended, state.restarts, state.round_number


def _run_here(
    search: MotionSearch, starts: Iterator[Start | SearchState], deadline: float, report: Callable[[], bool]
) -> Generator[SearchState, None, None]:
    """Run one slice after the other."""
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
    """Watch that reports now and then, and cancels the computation when the report returns False."""

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
    """Run slices of as many searches at a time as there are workers."""
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
"""The search that this thread received last, and its pickle; threads may not share a search."""


def _run_pickled_slice(pickled_search: bytes, state: SearchState | Start) -> SearchState:
    """Run a slice in a worker."""
    if getattr(_last_search, "pickle", None) != pickled_search:
        _last_search.pickle = pickled_search
        _last_search.search = pickle.loads(pickled_search)
    return _last_search.search.run_slice(state)
