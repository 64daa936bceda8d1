"""What becomes of one input: a right result, or one clear line; within bounds of time and memory."""

import re
import resource
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynid_ros.errors import MAX_MESSAGE_LENGTH, DynidError

PATIENCE = 2.0
"""s of the processor for one input, and …"""
ENDLESS = 60.0
"""… s by the clock, on a busy machine."""
MEMORY = 300_000
"""kB by which one input may raise what the process holds, at any moment."""
PACKAGE = f"{Path(__file__).parents[2]}/"


class TooSlow(BaseException):
    """No `Exception`: nothing on the way may take it for a fault of the input."""


class Nonsense(AssertionError):  # noqa: N818
    """Something was accepted and read as what it cannot be."""


def require(condition: Any, what: str) -> None:
    """Complain of a result."""
    if not condition:
        raise Nonsense(what)


@dataclass
class Tally:
    """Outcomes of the inputs of one target.

    Attributes:
        failures: by kind and place, how often.
        examples: the first input of each.
    """

    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)
    examples: dict[str, tuple[Any, str]] = field(default_factory=dict)

    @property
    def inputs(self) -> int:
        """All of them."""
        return self.accepted + self.refused + sum(self.failures.values())

    def add(self, read: Callable[[Any], None], data: Any) -> None:
        """Read one input and note what comes of it."""
        before = _forget_peak()
        start = time.process_time()
        try:
            with _limited():
                read(data)
            self.accepted += 1
        except DynidError as error:
            problem = unclear(str(error))
            if problem:
                self._fail(f"unclear line: {problem}", data, error)
            else:
                self.refused += 1
        except (Exception, TooSlow) as error:
            self._fail(f"{type(error).__name__} at {_place(error)}", data, error)
        self.slowest = max(self.slowest, time.process_time() - start)
        grown = _peak() - before
        if grown > MEMORY:
            self._fail(f"memory: {grown // 1000} MB", data, MemoryError())

    def _fail(self, kind: str, data: Any, error: BaseException) -> None:
        self.failures[kind] += 1
        self.examples.setdefault(kind, (data, "".join(traceback.format_exception(error))))

    def include(self, other: "Tally") -> None:
        """Add the outcomes of another."""
        self.accepted += other.accepted
        self.refused += other.refused
        self.slowest = max(self.slowest, other.slowest)
        self.failures.update(other.failures)
        self.examples = {**other.examples, **self.examples}

    def document(self) -> dict[str, Any]:
        """Plain data of which the same is made again, inputs as text."""
        examples = {kind: (repr(data), trace) for kind, (data, trace) in self.examples.items()}
        return {**vars(self), "examples": examples}

    def told(self) -> str:
        """The failures, an example of each."""
        return "\n".join(
            f"{count} times {kind}: {data!r:.2000}\n{trace}"
            for kind, count in self.failures.items()
            for data, trace in [self.examples.get(kind, ("", ""))]
        )


def unclear(message: str) -> str:
    """Why a message is not one clear line; empty if it is."""
    if len(message) > MAX_MESSAGE_LENGTH + 10:
        return "endless"
    if len(message.split()) < 4:
        return "says nothing"
    if not message.isprintable():
        return "no printable line"
    if re.search(
        r"NoneType|object has no attribute|not subscriptable|unhashable|Traceback|unexpected keyword", message
    ):
        return f"Python's own words: {message}"
    return ""


def _place(error: BaseException) -> str:
    """The last line of the package on the way of an error; of nonsense the line that judges."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(PACKAGE) and frame.name != require.__name__
    ]
    ours = [frame for frame in frames if "/.venv" not in frame.filename] or frames
    return f"{ours[-1].filename.removeprefix(PACKAGE)}:{ours[-1].lineno}" if ours else "?"


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _forget_peak() -> int:
    """Start the peak anew from what is held now: a process that was once larger would hide what one input takes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


@contextmanager
def _limited() -> Iterator[None]:
    """Raises `TooSlow` in what takes too long."""

    def too_slow(*_: object) -> None:
        raise TooSlow(f"more than {PATIENCE:g} s")

    clocks = ((signal.SIGPROF, signal.ITIMER_PROF, PATIENCE), (signal.SIGALRM, signal.ITIMER_REAL, ENDLESS))
    for number, timer, seconds in clocks:
        signal.signal(number, too_slow)
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for _, timer, _ in clocks:
            signal.setitimer(timer, 0.0)
