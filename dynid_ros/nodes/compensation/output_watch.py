"""Compares the torques that a controller puts out with those that were sent to it."""

from collections import deque
from collections.abc import Sequence

WINDOW = 0.1
"""s for which a command may be on its way; what is put out lies between the commands of that time."""
GRACE = 0.1
"""s for which it may lie elsewhere."""
PART = 0.05
"""Of a joint's torque limit, by which it may."""
SAMPLES = 3
"""Least number of samples that must agree; two may be of one late moment each."""


class OutputWatch:
    """Knows commands and outputs of one controller, each (n,) N m (N), and says when they part.

    Args:
        names: of the joints.
        limits: (n,) torque limits.

    """

    def __init__(self, names: Sequence[str], limits: Sequence[float]) -> None:
        self._names = list(names)
        self._allowed = [PART * limit for limit in limits]
        self._sent: deque[tuple[float, list[float]]] = deque()
        self._apart: tuple[float, int] | None = None  # since when, and in how many samples

    def sent(self, time: float, torque: Sequence[float]) -> None:
        """Take note of a command."""
        self._sent.append((time, list(torque)))
        self._forget(time)

    def clear(self) -> None:
        """Forget all commands, as nothing is commanded."""
        self._sent.clear()
        self._apart = None

    def seen(self, time: float, output: Sequence[float]) -> str:
        """Take what is put out now; what is wrong in words, empty: nothing, or not for long enough."""
        self._forget(time)
        problem = self._difference(output) if self._sent else ""
        if not problem:
            self._apart = None
            return ""
        since, count = self._apart or (time, 0)
        self._apart = since, count + 1
        return problem if time - since >= GRACE and count + 1 >= SAMPLES else ""

    def _forget(self, time: float) -> None:
        """Keep the commands of the last while, and the one that was in force when it began."""
        while len(self._sent) > 1 and self._sent[1][0] <= time - WINDOW:
            self._sent.popleft()

    def _difference(self, output: Sequence[float]) -> str:
        if len(output) != len(self._names):
            return f"it has {len(output)} efforts for {len(self._names)} joints"
        commands = [torque for _, torque in self._sent]
        for i, (name, value, allowed) in enumerate(zip(self._names, output, self._allowed, strict=True)):
            column = [torque[i] for torque in commands]
            if not min(column) - allowed <= value <= max(column) + allowed:
                return f"joint '{name}' gets {value:.3g} N m (N), not the {column[-1]:.3g} that were sent"
        return ""
