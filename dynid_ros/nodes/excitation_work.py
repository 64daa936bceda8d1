"""Long computations beside a node that spins."""

from collections.abc import Callable
from threading import Event, Thread
from typing import TypeVar

from rclpy.task import Future

from dynid_ros.design.motion_search import Candidate
from dynid_ros.design.parallel_search import Enough, Progress

T = TypeVar("T")
END_TIMEOUT = 5.0
"""How long an end waits for the computation, s."""


class Work:
    """Computes one thing at a time in a thread; coroutines of the node await it.

    Attributes:
        fraction: of a search that is past, 0 to 1.

    """

    def __init__(self) -> None:
        self.fraction = 0.0
        self._enough = Event()
        self._thread: Thread | None = None

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
        future = Future()

        def work() -> None:
            try:
                future.set_result(compute(self._progress))
            except BaseException as error:  # whoever awaits gets it
                future.set_exception(error)

        self._thread = Thread(target=work, daemon=True)
        self._thread.start()
        return await future

    def stop(self) -> None:
        """End a search soon, with the best so far."""
        self._enough.set()

    def end(self) -> None:
        """Stop, and wait for the thread."""
        self.stop()
        if self._thread is not None:
            self._thread.join(END_TIMEOUT)

    def _progress(self, fraction: float, best: Candidate) -> None:
        del best
        self.fraction = fraction
        if self.stopped:
            raise Enough
