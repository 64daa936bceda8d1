"""Wait in tests for a condition, without depending on the load of the computer."""

import time
from collections.abc import Callable

NAP_S = 0.005
"""Period in s with which a condition is checked."""
TIMEOUT_S = 30.0
"""Time in s for events within this process."""
START_TIMEOUT_S = 120.0
"""Time in s for a process to start and be discovered."""


def wait(condition: Callable[[], object], seconds: float = TIMEOUT_S) -> float:
    """Wait until the condition holds; return the counted time in s.

    Time is counted in sleeps of `NAP_S`. On a busy computer a sleep takes longer and counts as much, so other
    threads and processes get their time, and promised times are compared with the time given to this process.
    """
    for n_naps in range(round(seconds / NAP_S)):
        if condition():
            return n_naps * NAP_S
        time.sleep(NAP_S)
    raise AssertionError(f"timed out after {seconds:g} s")
