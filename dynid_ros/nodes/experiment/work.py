"""Long computations of the excitation node, which can be ended early."""

from collections.abc import Callable
from threading import Event
from typing import TypeVar

from rclpy.node import Node

from dynid_ros.excitation.fourier_search import Candidate
from dynid_ros.excitation.parallel_search import Enough, Progress
from dynid_ros.nodes.shared.background import Background

T = TypeVar("T")


class Work:
    """Computes one thing at a time in a thread; coroutines of the node await it.

    Attributes:
        fraction: of a search that is past, 0 to 1.

    """

    def __init__(self, node: Node) -> None:
        self.fraction = 0.0
        self._enough = Event()
        self._background = Background(node)

    @property
    def stopped(self) -> bool:
        """Whether the computation was, or is to be, ended early."""
        return self._enough.is_set()

    def begin(self) -> None:
        """Forget that the last one was stopped."""
        self._enough.clear()
        self.fraction = 0.0

    async def result(self, compute: Callable[[Progress], T]) -> T:
        """What `compute` returns or raises; it is handed a `Progress` which ends a search that is stopped."""
        return await self._background.result(lambda: compute(self._progress))

    def stop(self) -> None:
        """End a search soon, with the best so far."""
        self._enough.set()

    def end(self) -> None:
        """Stop, and wait for the thread."""
        self.stop()
        self._background.end()

    def _progress(self, fraction: float, best: Candidate) -> None:
        del best
        self.fraction = fraction
        if self.stopped:
            raise Enough
