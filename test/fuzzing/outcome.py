"""Outcome of one input: a correct result or one clear line, within limits of time and memory."""

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

MAX_PROCESSOR_TIME_S = 2.0
MAX_CLOCK_TIME_S = 60.0
"""Limit of wall-clock time, for busy machines."""
MAX_MEMORY_GROWTH_KB = 300_000
"""Limit of the increase of peak memory by one input."""
PACKAGE = f"{Path(__file__).parents[2]}/"


class TooSlow(BaseException):
    """Input that exceeds its time; no `Exception`, so that readers do not handle it as an error of the input."""


class Nonsense(AssertionError):  # noqa: N818
    """Invalid content that a reader accepted."""


def require(condition: Any, problem: str) -> None:
    """Raise `Nonsense` unless the condition holds."""
    if not condition:
        raise Nonsense(problem)


@dataclass
class Tally:
    """Outcomes of the inputs of one target.

    Attributes:
        failures: number of failures by kind and place.
        examples: first input of each kind, and its traceback.
    """

    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)
    examples: dict[str, tuple[Any, str]] = field(default_factory=dict)

    @property
    def inputs(self) -> int:
        """Number of all inputs."""
        return self.accepted + self.refused + sum(self.failures.values())

    def add(self, read: Callable[[Any], None], data: Any) -> None:
        """Read one input and count its outcome."""
        start_peak = _forget_peak()
        start_time = time.process_time()
        try:
            with _limited():
                read(data)
            self.accepted += 1
        except DynidError as error:
            problem = find_message_problem(str(error))
            if problem:
                self._fail(f"unclear line: {problem}", data, error)
            else:
                self.refused += 1
        except (Exception, TooSlow) as error:
            self._fail(f"{type(error).__name__} at {_place(error)}", data, error)
        self.slowest = max(self.slowest, time.process_time() - start_time)
        growth = _peak() - start_peak
        if growth > MAX_MEMORY_GROWTH_KB:
            self._fail(f"memory: {growth // 1000} MB", data, MemoryError())

    def _fail(self, kind: str, data: Any, error: BaseException) -> None:
        self.failures[kind] += 1
        self.examples.setdefault(kind, (data, "".join(traceback.format_exception(error))))

    def include(self, other: "Tally") -> None:
        """Add the outcomes of another tally."""
        self.accepted += other.accepted
        self.refused += other.refused
        self.slowest = max(self.slowest, other.slowest)
        self.failures.update(other.failures)
        self.examples = {**other.examples, **self.examples}

    def describe_failures(self) -> str:
        """Return the failures with one example each."""
        return "\n".join(
            f"{count} times {kind}: {data!r:.2000}\n{trace}"
            for kind, count in self.failures.items()
            for data, trace in [self.examples.get(kind, ("", ""))]
        )


def find_message_problem(message: str) -> str:
    """Return why a message is not one clear line, or an empty text."""
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
    """Return file and line of the innermost frame of the package, except for `require`."""
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
    """Reset the peak to the current memory and return it in kB; an earlier peak would hide the growth."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


@contextmanager
def _limited() -> Iterator[None]:
    """Raise `TooSlow` in a reader that exceeds its time."""

    def too_slow(*_: object) -> None:
        raise TooSlow(f"more than {MAX_PROCESSOR_TIME_S:g} s")

    clocks = (
        (signal.SIGPROF, signal.ITIMER_PROF, MAX_PROCESSOR_TIME_S),
        (signal.SIGALRM, signal.ITIMER_REAL, MAX_CLOCK_TIME_S),
    )
    for number, timer, seconds in clocks:
        signal.signal(number, too_slow)
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for _, timer, _ in clocks:
            signal.setitimer(timer, 0.0)
