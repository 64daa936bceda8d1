"""Progress of a long computation, and the way to cancel it.

Numerics call `advance` and `each`; they know neither terminals nor nodes. The calls do nothing without a watch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from dynid_ros.errors import DynidError

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

T = TypeVar("T")
MIN_FINISHED_PART = 0.02
"""Smallest part of a step that allows an estimate of the remaining time."""


class Cancelled(DynidError):  # noqa: N818  # no fault
    """The computation was ended on request."""


class Watch:
    """Progress of the computation in one thread; other threads may read it, and cancel.

    Attributes:
        what: name of the present step.
        number, count: index of this step, and number of steps.
        part: finished part of this step, 0 to 1; 0 for a step without progress.
        seconds: time since this step began, s.

    Args:
        cancelled: event that cancels the computation; None: only `cancel` does.
    """

    def __init__(self, cancelled: threading.Event | Event | None = None) -> None:
        self.what = ""
        self.number = 0
        self.count = 0
        self.part = 0.0
        self._begun = time.monotonic()
        self._range = (0.0, 1.0)
        self._cancelled = cancelled or threading.Event()

    @property
    def seconds(self) -> float:
        """See the class."""
        return time.monotonic() - self._begun

    @property
    def whole(self) -> float:
        """Finished part of all steps, 0 to 1; all steps count alike, whatever time they take."""
        return (self.number - 1 + self.part) / self.count if self.count else 0.0

    @property
    def remaining(self) -> float | None:
        """Time that this step will still take if it goes on as it went so far, s; None: not known."""
        return self.seconds * (1.0 - self.part) / self.part if self.part >= MIN_FINISHED_PART else None

    def cancel(self) -> None:
        """Have the computation end, with `Cancelled`, at its next step."""
        self._cancelled.set()

    def begin(self, what: str, number: int, count: int) -> None:
        """Begin a step, the first one with number 1."""
        self._check()
        self.what = what
        self.number = number
        self.count = count
        self.part = 0.0
        self._begun = time.monotonic()
        self._range = (0.0, 1.0)

    def __str__(self) -> str:
        if not self.what:
            return "starting"
        remaining = (
            "" if self.remaining is None else f", {100 * self.part:.0f} %, some {_duration(self.remaining)} left"
        )
        return f"{self.what} ({self.number} of {self.count}){remaining}"

    def _advance(self, part: float) -> None:
        self._check()
        first, last = self._range
        self.part = max(self.part, first + (last - first) * min(max(part, 0.0), 1.0))

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled(f"cancelled while {self.what or 'starting'}")


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


def watched() -> Watch | None:
    """Return the watch of the computation that runs in this thread."""
    return _watch.get()


@contextmanager
def watching(watch: Watch) -> Iterator[Watch]:
    """Let `watch` follow what runs inside, in this thread."""
    token = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(token)


def advance(part: float) -> None:
    """Report that a part, 0 to 1, of the present step is done; inside `each`, of its present item.

    Raises:
        Cancelled: the watch cancelled the computation.
    """
    if (watch := _watch.get()) is not None:
        watch._advance(part)


def each(items: Sequence[T]) -> Iterator[T]:
    """Go through `items`, each an equal part of the present step; see `advance`."""
    if (watch := _watch.get()) is None:
        yield from items
        return
    first, last = watch._range
    for number, item in enumerate(items):
        size = (last - first) / len(items)
        watch._range = first + number * size, first + (number + 1) * size
        watch._advance(0.0)
        try:
            yield item
        finally:
            watch._range = (first, last)
    watch._advance(1.0)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100.0 else f"{seconds / 60.0:.0f} min"
