"""Searches from many starts side by side, for as long as there is time."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, count, islice
from multiprocessing.synchronize import Event
from types import ModuleType

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.fourier_search import Candidate, MotionSearch

TICK = 0.2
"""Time between two reports of progress, s."""
SILENCE = "ignore:resource_tracker:UserWarning"
"""For the process of multiprocessing that cleans up: of what two Ctrl-C end at once it would say that it was leaked."""

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
    progress: Progress | None = None,
) -> Outcome:
    """The best of `candidates` random motions, improved from one start after the other.

    What comes of each start depends on the seed and the number of the start alone, unless time ends it. So with
    `starts` and time enough the motion is the same again, however many workers there are.

    Args:
        search: what is sought.
        seconds: time for it; 0: the random motions only.
        candidates: random motions drawn first; the best are the first starts.
        starts: most starts; None: as many as there is time for.
        workers: processes; 1: this one.
        progress: gets now and then.

    Raises:
        TrajectoryError: no pose is allowed at all; or the processes cannot be started.
    """
    begun = time.monotonic()
    drawn = [search.candidate(number) for number in range(candidates)]
    outcome = Outcome(min(drawn, key=Candidate.rank))
    if outcome.best.feasible:
        outcome.history.append((time.monotonic() - begun, outcome.best.value))
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

    run = _here if workers == 1 else _beside
    deadline = begun + seconds
    for candidate in run(search, _starts(drawn, starts), deadline, report, workers):
        outcome.starts += 1
        outcome.take(candidate, time.monotonic() - begun)
        report()
    return outcome


Start = Candidate | int
"""A motion to start from, or the number of one that is still to be drawn."""


def _starts(drawn: list[Candidate], most: int | None) -> Iterator[Start]:
    ranked: list[Start] = [*sorted(drawn, key=Candidate.rank)]
    return islice(chain(ranked, count(len(drawn))), most)


def _improved(search: MotionSearch, start: Start, deadline: float, stopped: Callable[[], bool]) -> Candidate:
    return search.improved(search.candidate(start) if isinstance(start, int) else start, deadline, stopped)


def _here(
    search: MotionSearch, starts: Iterator[Start], deadline: float, report: Callable[[], bool], workers: int
) -> Iterator[Candidate]:
    """One search after the other."""
    del workers
    reported, going = time.monotonic(), True

    def stopped() -> bool:
        nonlocal reported, going
        if time.monotonic() - reported > TICK:
            reported = time.monotonic()
            going = report()
        return not going

    for start in starts:
        if time.monotonic() > deadline or not report():
            return
        yield _improved(search, start, deadline, stopped)


def _beside(
    search: MotionSearch, starts: Iterator[Start], deadline: float, report: Callable[[], bool], workers: int
) -> Iterator[Candidate]:
    """Searches in other processes, as many at a time as there are workers."""
    if SILENCE not in sys.warnoptions:
        sys.warnoptions.append(SILENCE)
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    with _one_thread_each(), ProcessPoolExecutor(workers, context, _prepare, (search, stop)) as pool:
        try:
            pending: set[Future[Candidate]] = set()
            while True:
                while len(pending) < workers and time.monotonic() < deadline:
                    start = next(starts, None)
                    if start is None:
                        break
                    with _without_interrupts(), _without_main():
                        pending.add(pool.submit(_work, start, deadline))
                if not pending:
                    return
                done, pending = wait(pending, TICK, FIRST_COMPLETED)
                if not report():
                    stop.set()
                    starts = iter(())
                for future in done:
                    yield future.result()
        except BrokenProcessPool as error:
            raise TrajectoryError(
                "the processes that search for a motion ended; is there memory enough for them? Or set workers to 1"
            ) from error
        finally:
            stop.set()


_search: MotionSearch
_stop: Event


def _prepare(search: MotionSearch, stop: Event) -> None:
    """In each process: what is sought, and when to give up; interrupts are left to the process that asked."""
    global _search, _stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _search, _stop = search, stop


def _work(start: Start, deadline: float) -> Candidate:
    return _improved(_search, start, deadline, _stop.is_set)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes started now never hear SIGINT: one that it ends while it starts up would leave the pool waiting."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """Processes started now do not import the program: one without a main guard would run anew in each.

    What they need is this package. While such a process ran the program, the one that started it would wait for ever
    for its memory of the search to be read.
    """
    program = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started now keep BLAS to one thread: with more, the workers would wait for each other."""
    before = dict(os.environ)
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
