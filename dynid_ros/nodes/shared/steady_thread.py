"""Work at a pace that no setting of the computer's clock changes."""

import time
import traceback
from collections.abc import Callable
from threading import Thread, current_thread

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.timer import Timer

PATIENCE = 5.0
"""s for which the end of a thread is waited for."""


def steady_timer(node: Node, period: float, action: Callable[[], None]) -> Timer:
    """Timer of the node by the steady clock: simulated time may stand still, the computer's clock may be set."""
    return node.create_timer(period, action, clock=Clock(clock_type=ClockType.STEADY_TIME))


class SteadyThread:
    """Calls `action` at a steady pace, in a thread of its own, until it is ended.

    A timer of an executor is not enough: the executor sleeps in the middleware, whose waits are by the wall clock where
    it was built for an old C library, as in the wheels; a wait that is under way while that clock is set back takes as
    much longer. `time.sleep` is by the steady clock; of waits with a timeout in `threading` that depends on the Python.

    Args:
        node: its log gets what `action` raises, which ends the thread.
        action: returns soon.
        period: s from one call to the next.

    Attributes:
        failure: what `action` raised; None: nothing.
    """

    def __init__(self, node: Node, action: Callable[[], None], period: float) -> None:
        self.failure: Exception | None = None
        self._node, self._action, self._period = node, action, period
        self._ending = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether it may call `action`, or has not returned from it: one may be kept by the middleware."""
        return self._thread.is_alive()

    def end(self) -> None:
        """Call no more, and wait for a call that is under way, not for ever."""
        self._ending = True
        if self._thread is not current_thread():
            ended(self._thread, PATIENCE)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ending:
            try:
                self._action()
            except Exception as error:
                if self._node.context.ok() and not self._ending:
                    self.failure = error
                    self._node.get_logger().error(traceback.format_exc())
                return
            due = max(due + self._period, time.monotonic())
            time.sleep(max(due - time.monotonic(), 0.0))


def ended(thread: Thread, patience: float) -> bool:
    """Whether a thread ends within so many seconds."""
    deadline = time.monotonic() + patience
    while thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.005)
    return not thread.is_alive()
