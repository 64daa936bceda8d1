"""Where a long job is, on a terminal."""

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

TICK = 0.5
"""s between two drawings of a line."""


@contextmanager
def progress(n_steps: int) -> Iterator[Callable[[str], None]]:
    """A line on stderr that says which step runs, for how long, and how long it will; nothing without a terminal.

    Who watches already, as a node does, gets the same. Yields a function to call with what begins.
    """
    bar = tqdm(total=n_steps, disable=None, leave=False, bar_format="{desc} {elapsed}")
    with watching(watched() or Watch()) as watch, bar as line, _ticking(line, watch):
        begun = count(1)

        def step(what: str) -> None:
            watch.begin(what, next(begun), n_steps)
            _draw(line, watch)

        yield step


def _draw(line: tqdm, watch: Watch) -> None:
    line.set_description_str(f"{watch}", refresh=False)
    line.refresh()


@contextmanager
def _ticking(line: tqdm, watch: Watch) -> Iterator[None]:
    """Draw the line anew every now and then: a step may take minutes, and is not to look dead."""
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(TICK):
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
    """A line on stderr that says how far a search for a motion is, and how good the best motion so far.

    Ctrl-C ends the search with the best motion so far; pressed once more, it ends the program at once.

    Yields what to hand to the search.
    """
    from dynid_ros.excitation.parallel_search import Enough  # noqa: PLC0415  # only searches need it

    with (
        _first_interrupt() as interrupted,
        tqdm(total=100, disable=None, leave=False, bar_format="{desc} {percentage:3.0f} % {elapsed}") as line,
    ):

        def report(part: float, best: Candidate) -> None:
            line.set_description_str(_told(best), refresh=False)
            line.update(100 * part - line.n)
            line.refresh()
            if interrupted.is_set():
                raise Enough

        yield report


def _told(best: Candidate) -> str:
    if best.is_feasible:
        return f"best so far: {best.value:.4g} (Ctrl-C takes it)"
    return f"none keeps to all limits yet; the nearest exceeds {best.obstacle}"


@contextmanager
def _first_interrupt() -> Iterator[threading.Event]:
    """An event that is set by the first SIGINT; the second does what the first would have done."""
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
