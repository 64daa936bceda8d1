"""Progress of a long job on a terminal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import FrameType
from typing import TYPE_CHECKING

from tqdm import tqdm

from dynid_ros.progress import Watch, watched, watching

if TYPE_CHECKING:
    from dynid_ros.excitation.fourier_search import Candidate
    from dynid_ros.excitation.parallel_search import Progress

REDRAW_PERIOD_S = 0.5


@contextmanager
def progress(n_steps: int) -> Iterator[Callable[[str], None]]:
    """Show on stderr which step runs, for how long, and how long it will take; nothing without a terminal.

    A watch that exists already, as in a node, follows the steps too. Yields a function that begins a step by its name.
    """
    bar = tqdm(total=n_steps, disable=None, leave=False, bar_format="{desc} {elapsed}")
    with watching(watched() or Watch()) as watch, bar as line, _ticking(line, watch):
        numbers = count(1)

        def step(name: str) -> None:
            watch.begin(name, next(numbers), n_steps)
            _draw(line, watch)

        yield step


def _draw(line: tqdm, watch: Watch) -> None:
    line.set_description_str(f"{watch}", refresh=False)
    line.refresh()


@contextmanager
def _ticking(line: tqdm, watch: Watch) -> Iterator[None]:
    """Redraw the line periodically, so that a step of minutes is seen to run."""
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(REDRAW_PERIOD_S):
            _draw(line, watch)

    if line.disable:
        yield
        return
    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def search_progress() -> Iterator[Progress]:
    """Show on stderr how far the search for a motion is, and how good its best motion is.

    Ctrl-C ends the search with the best motion so far; a second Ctrl-C ends the program at once. Yields the function
    that the search calls.
    """
    from dynid_ros.excitation.parallel_search import Enough  # noqa: PLC0415  # only searches need it

    with (
        _first_interrupt() as interrupted,
        tqdm(total=100, disable=None, leave=False, bar_format="{desc} {percentage:3.0f} % {elapsed}") as line,
    ):

        def report(part: float, best: Candidate) -> None:
            line.set_description_str(_candidate_text(best), refresh=False)
            line.update(100 * part - line.n)
            line.refresh()
            if interrupted.is_set():
                raise Enough

        yield report


def _candidate_text(best: Candidate) -> str:
    if best.is_feasible:
        return f"best so far: {best.value:.4g} (Ctrl-C takes it)"
    return f"none keeps to all limits yet; the nearest exceeds {best.obstacle}"


@contextmanager
def _first_interrupt() -> Iterator[threading.Event]:
    """Yield an event that the first SIGINT sets; the second one has the usual effect."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted  # only the main thread may handle signals
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: FrameType | None) -> None:
        if not interrupted.is_set():
            interrupted.set()
        elif callable(before):
            before(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
