"""Ctrl-C at a terminal: the first ends a command in order, the second at once."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

INTERRUPTED = 130
"""Exit code of a process that SIGINT ended, as shells have it."""


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Let the first SIGINT end the work tidily, once the yielded function was called; else exit at once.

    The first SIGINT calls the previous handler, which raises KeyboardInterrupt, so that files and the terminal are left
    tidy. A thread counts the signals: handlers run only when the main thread reaches them, count two quick signals
    as one, and errors that they raise during imports may be lost. So the handler raises nothing until then.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None  # only the main thread may handle signals
        return
    allowed = [0]
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    threading.Thread(target=_count_interrupts, args=(reading, allowed), daemon=True).start()
    handler = signal.signal(signal.SIGINT, lambda *_: None)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def started() -> None:
        allowed.append(1)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    try:
        yield started
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGINT, handler)
        os.close(writing)


def uninterruptible() -> None:
    """Leave all signals to their handlers from now on, inside `interruptible`."""
    signal.set_wakeup_fd(-1)


def _count_interrupts(reading: int, allowed: list[int]) -> None:
    """End at once at more interrupts than the last number of `allowed`."""
    interrupts = 0
    while received := os.read(reading, 1):
        interrupts += received[0] == signal.SIGINT
        if interrupts > allowed[-1]:
            _end_at_once()
    os.close(reading)


def _end_at_once() -> NoReturn:
    """End this process as interrupted, and those that it started: nothing is waited for."""
    if "multiprocessing" in sys.modules:
        for child in sys.modules["multiprocessing"].active_children():
            child.kill()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        print(file=sys.stderr, flush=True)  # behind a line of progress
    os._exit(INTERRUPTED)
