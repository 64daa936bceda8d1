"""Times of reception that do not jump when the computer's clock is set."""

import time

JUMP = 50_000_000
"""ns by which a clock is set and not just kept right."""


class ReceptionTime:
    """Goes on by the clock of the start, whatever is done to it later.

    A bag is read in the order of these times. Where the clock is set back in a recording, messages would be read in
    another order than they came in.
    """

    def __init__(self) -> None:
        self._start = self._now = self._before = _offset()
        self._last: dict[str, int] = {}

    @property
    def jump(self) -> float:
        """How far the computer's clock has been set since the start, s."""
        return (self._now - self._start) * 1e-9

    def look(self) -> bool:
        """See whether the clock has been set since the last look; look often."""
        now = _offset()
        if abs(now - self._now) <= JUMP:
            return False
        self._before, self._now = self._now, now
        return True

    def of(self, topic: str, received: int) -> int:
        """Time of a message, ns: `received` by the computer's clock, which may have been set just before or after."""
        expected = time.monotonic_ns() + self._start
        times = (received - self._now + self._start, received - self._before + self._start)
        found = min(times, key=lambda candidate: abs(candidate - expected))
        self._last[topic] = found = max(found, self._last.get(topic, found))
        return found


def _offset() -> int:
    """From the clock that cannot be set to the one that can, ns; the largest, since a pause between both lessens it."""
    return max(time.time_ns() - time.monotonic_ns() for _ in range(3))
