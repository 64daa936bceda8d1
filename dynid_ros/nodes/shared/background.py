"""Long computations beside a node that spins: it stays alive, and its diagnostics go on."""

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

from rclpy.node import Node
from rclpy.task import Future

from dynid_ros.nodes.shared.steady_thread import ended

T = TypeVar("T")
END_TIMEOUT = 5.0
"""How long an end waits for the computation, s."""


class Background:
    """Computes in a thread; coroutines of the node await it.

    A service whose callback awaits belongs in a reentrant callback group, or nothing else is called meanwhile.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._thread: Thread | None = None

    async def result(self, compute: Callable[[], T]) -> T:
        """What `compute` returns or raises."""
        future = Future()

        def work() -> None:
            try:
                future.set_result(compute())
            except BaseException as error:  # whoever awaits gets it
                future.set_exception(error)
            if self._node.executor is not None:
                self._node.executor.wake()  # else the coroutine goes on with the next message or timer

        thread = Thread(target=work, daemon=True)
        thread.start()
        self._thread = thread  # which can be waited for now
        return await future

    def end(self) -> None:
        """Wait for the thread, not for ever."""
        if self._thread is not None:
            ended(self._thread, END_TIMEOUT)
