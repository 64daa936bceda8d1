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

from dynid_ros.excitation.fourier_search import Candidate, MotionSearch, SearchState
from dynid_ros.executors import Calls, Processes
from dynid_ros.progress import Cancelled, Watch, watching

TICK = 0.2
"""Time between two reports of progress, s."""
GRACE = 5.0
"""Time for which, or three times that of the longest slice, the last slices are waited for when time is up, s."""

Progress = Callable[[float, Candidate], None]
"""Gets the part of the time that is past, and the best motion so far; what it raises ends the search."""


class Enough(Exception):  # noqa: N818  # no fault
    """Raised by `Progress`, it ends the search with the best motion so far."""


@dataclass
class Outcome:
    """Best motion, and how it came about.

    Attributes:
        best: motion.
        starts: searches that were made.
        history: time (s) and rating of each better motion that keeps to all limits.
    """

    best: Candidate
    starts: int = 0
    history: list[tuple[float, float]] = field(default_factory=list)

    def take(self, candidate: Candidate, seconds: float) -> None:
        """Keep `candidate` if it is better."""
        if candidate.rank() < self.best.rank():
            self.best = candidate
            if candidate.feasible:
                self.history.append((seconds, candidate.value))


def best_motion(
    search: MotionSearch,
    *,
    seconds: float,
    candidates: int = 1,
    starts: int | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """The best of `candidates` random motions, improved from one start after the other.

    Each search is made in slices, and time only decides whether another one begins: what comes of each start depends
    on the seed and the number of the start alone, and on how many slices there was time for. So with `starts` and time
    enough the motion is the same again, however many workers there are, and wherever.

    Args:
        search: what is sought.
        seconds: time for it; 0: the random motions only.
        candidates: random motions drawn first, fewer if time is over and one is feasible; the best are the first
            starts.
        starts: most starts; None: as many as there is time for.
        workers: searches side by side; 1 without an executor: in this process.
        executor: makes the slices; None: processes of this machine.
        progress: gets now and then.

    Raises:
        TrajectoryError: no pose is allowed at all.
        WorkerError: workers are lost, again and again.
    """
    begun = time.monotonic()
    outcome = Outcome(search.candidate(0))
    if outcome.best.feasible:
        outcome.history.append((time.monotonic() - begun, outcome.best.value))
    drawn = [outcome.best]
    while len(drawn) < candidates and not (outcome.best.feasible and 0 < seconds < time.monotonic() - begun):
        drawn.append(search.candidate(len(drawn)))
        outcome.take(drawn[-1], time.monotonic() - begun)
    if seconds <= 0 or starts == 0:
        return outcome

    over = False

    def report() -> bool:
        """Whether to go on."""
        nonlocal over
        if progress is not None and not over:
            try:
                progress(min((time.monotonic() - begun) / seconds, 1.0), outcome.best)
            except Enough:
                over = True
        return not over

    ranked: list[Start] = [*sorted(drawn, key=Candidate.rank)]
    firsts = islice(chain(ranked, count(len(drawn))), starts)
    deadline = begun + seconds
    if executor is not None:
        states = _beside(search, firsts, deadline, report, workers=workers, executor=executor)
    elif workers == 1:
        states = _here(search, firsts, deadline, report)
    else:
        states = _in_processes(search, firsts, deadline, report, workers)
    numbers = set()
    with closing(states):
        for state in states:
            numbers.add(state.best.number)
            outcome.starts = len(numbers)
            outcome.take(state.best, time.monotonic() - begun)
            report()
    return outcome


Start = Candidate | int
"""A motion to start from, or the number of one that is still to be drawn."""


def _here(
    search: MotionSearch, starts: Iterator[Start], deadline: float, report: Callable[[], bool]
) -> Generator[SearchState, None, None]:
    """One slice after the other."""
    for start in starts:
        state: SearchState | Start = start
        while not (isinstance(state, SearchState) and state.over):
            if time.monotonic() > deadline or not report():
                return
            try:
                with watching(_Reporting(report)):
                    state = search.advanced(state)
            except Cancelled:
                return
            yield state


class _Reporting(Watch):
    """Reports now and then, and ends the computation when that says so."""

    def __init__(self, report: Callable[[], bool]) -> None:
        super().__init__()
        self._report, self._reported = report, time.monotonic()

    def _check(self) -> None:
        if time.monotonic() - self._reported > TICK:
            self._reported = time.monotonic()
            if not self._report():
                self.cancel()
        super()._check()


def _in_processes(
    search: MotionSearch, starts: Iterator[Start], deadline: float, report: Callable[[], bool], workers: int
) -> Generator[SearchState, None, None]:
    executor = Processes(workers)
    try:
        yield from _beside(search, starts, deadline, report, workers=workers, executor=executor)
    finally:
        executor.shutdown(cancel_futures=True)


def _beside(
    search: MotionSearch,
    starts: Iterator[Start],
    deadline: float,
    report: Callable[[], bool],
    *,
    workers: int,
    executor: Executor,
) -> Generator[SearchState, None, None]:
    """Slices elsewhere, of as many searches at a time as there are workers."""
    calls: Calls[float] = Calls(executor)
    sent, longest = pickle.dumps(search), 0.0
    begun: deque[SearchState] = deque()
    try:
        while True:
            while len(calls) < workers and time.monotonic() < deadline:
                state = begun.popleft() if begun else next(starts, None)
                if state is None:
                    break
                calls.make(time.monotonic(), _slice, sent, state)
            if not calls:
                return
            for since, future in calls.ended(TICK):
                state = future.result()
                longest = max(longest, time.monotonic() - since)
                if not state.over:
                    begun.append(state)
                yield state
            if not report() or time.monotonic() > deadline + max(GRACE, 3 * longest):
                return
    finally:
        calls.cancel()


_known = threading.local()
"""The search that this thread was sent last, and what it was made of: a search may not be shared by threads."""


def _slice(sent: bytes, state: SearchState | Start) -> SearchState:
    """A slice, by a worker."""
    if getattr(_known, "sent", None) != sent:
        _known.sent, _known.search = sent, pickle.loads(sent)
    return _known.search.advanced(state)
