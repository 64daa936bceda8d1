"""Output of a command on a terminal: progress of its steps, then one screen of verdict, table, remarks and files."""

from __future__ import annotations

import signal
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from tqdm import tqdm

from dynid_ros.progress import Watch, watched, watching

if TYPE_CHECKING:
    from dynid_ros.excitation.fourier_search import Candidate
    from dynid_ros.excitation.parallel_search import Progress

MAX_LINES = 25
MAX_REMARKS = 3
MAX_LINE_WIDTH = 160
"""Largest number of characters in a line, as a wide terminal has."""

REDRAW_PERIOD_S = 0.5
"""Period at which the progress line is redrawn, s."""


@dataclass(frozen=True)
class Screen:
    """Output of a command on one screen, or in full with `--verbose`.

    Attributes:
        verdict: one or two sentences: action, recordings, and whether the result is good enough.
        table: lines of a table; the headings come first.
        remarks: sentences in order of importance; only the first three are printed.
        files: written files.
        details: complete text for `--verbose`; empty: it consists of verdict, table, remarks and files.
    """

    verdict: Sequence[str]
    table: Sequence[str] = ()
    remarks: Sequence[str] = ()
    files: Sequence[Path] = ()
    details: str = ""

    def full(self) -> str:
        """Return the complete text, for `--verbose`."""
        if self.details:
            return self.details
        files = [f"wrote {', '.join(map(str, self.files))}"] if self.files else []
        return "\n".join([*self.verdict, *self.table, *self.remarks, *files])

    @classmethod
    def from_lines(cls, text: str) -> Screen:
        """Return the screen of a text: its first line is the verdict; a last line "wrote …" names the file."""
        lines = text.splitlines()
        if lines and lines[-1].startswith("wrote "):
            return cls(lines[:1] if len(lines) > 1 else (), lines[1:-1], (), [Path(lines[-1].removeprefix("wrote "))])
        return cls(lines[:1], lines[1:])

    def text(self) -> str:
        """Return at most `MAX_LINES` lines.

        Long lines are wrapped if all of them fit, and shortened otherwise. If there are still too many lines, the last
        rows of the table are replaced by their number.
        """
        lines = self._lines(_wrapped, self.table)
        if len(lines) > MAX_LINES:
            lines = self._lines(_shortened, self.table)
        if len(lines) > MAX_LINES:
            excess = len(lines) - MAX_LINES + 1
            lines = self._lines(_shortened, [*self.table[:-excess], f"… {excess} more rows: --verbose"])
        return "\n".join(lines)

    def _lines(self, fit: Callable[[str], list[str]], table: Sequence[str]) -> list[str]:
        """Return verdict, table, remarks and files; `fit` returns the lines of a row or a remark."""
        verdict = [line for sentence in self.verdict for line in _wrapped(sentence)]
        rows = [line for row in table for line in fit(row)]
        remarks = [line for remark in self.remarks[:MAX_REMARKS] for line in fit(f"  {remark}")]
        if len(self.remarks) > MAX_REMARKS:
            remarks.append(f"  {len(self.remarks) - MAX_REMARKS} more: --verbose")
        tail = ["Remarks", *remarks] if remarks else []
        tail += [f"wrote {', '.join(map(str, self.files))}"] if self.files else []
        return [*verdict, *(["", *rows, ""] if rows else []), *tail]


def _wrapped(line: str) -> list[str]:
    """Wrap a line into lines of at most `MAX_LINE_WIDTH` characters; all but the first are indented."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, MAX_LINE_WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [line]


def _shortened(line: str) -> list[str]:
    """Return a line without its middle if it is too long, since the end of a remark often contains the remedy."""
    if len(line) <= MAX_LINE_WIDTH:
        return [line]
    head = MAX_LINE_WIDTH * 6 // 10
    tail = MAX_LINE_WIDTH * 4 // 10 - 3
    return [f"{line[:head].rstrip()} … {line[-tail:].lstrip()}"]


@contextmanager
def progress(n_steps: int) -> Iterator[Callable[[str], None]]:
    """Show on stderr the present step, its duration and the remaining time; show nothing without a terminal.

    An existing `Watch`, such as that of a node, follows the steps too. The context yields a function that begins a step
    by its name.
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
    """Redraw the line periodically, to show that a long step is still running."""
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
    """Show on stderr the progress of the search for a motion, and the criterion of its best motion.

    Ctrl-C ends the search with the best motion so far; a second Ctrl-C ends the program at once. The context yields
    the function to which the search reports.
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
    """Yield an event that is set by the first SIGINT; a second SIGINT has the usual effect."""
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
