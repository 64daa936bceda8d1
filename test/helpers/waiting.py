"""Waiting in tests: no longer than it takes, and for as long as a busy machine needs."""

import time
from collections.abc import Callable

NAP = 0.005
"""s."""
PATIENCE = 30.0
"""s of naps: for what takes no time, in this process."""
START_TIME = 120.0
"""s of naps, for a process to start and be found."""


def wait(condition: Callable[[], object], seconds: float = PATIENCE) -> float:
    """Until the condition holds; how long that took, s.

    Time is counted in naps. Where a busy machine lets this thread wait for the processor, a nap takes longer and counts
    as much: so the others, who have to wait too, are given their time, and what is promised is compared with the time
    that the machine gave to this process.
    """
    for nap in range(round(seconds / NAP)):
        if condition():
            return nap * NAP
        time.sleep(NAP)
    raise AssertionError(f"timed out after {seconds:g} s")
