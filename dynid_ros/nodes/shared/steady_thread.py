"""Timers and threads at a steady pace, whatever happens to the computer's clock, and methods under a lock."""

import time
import traceback
from collections.abc import Callable
from functools import wraps
from threading import Thread, current_thread
from typing import Any, TypeVar, cast

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.timer import Timer

F = TypeVar("F", bound=Callable[..., Any])
THREAD_END_TIMEOUT_S = 5.0


def locked(method: F) -> F:
    """Return the method under the attribute `lock` of its object, for objects that several threads use."""

    @wraps(method)
    def call(owner: Any, *arguments: Any) -> Any:
        with owner.lock:
            return method(owner, *arguments)

    return cast(F, call)


def steady_timer(node: Node, period: float, action: Callable[[], None]) -> Timer:
    """Create a timer with the steady clock: simulated time may stand still, and the computer's clock may be set."""
    return node.create_timer(period, action, clock=Clock(clock_type=ClockType.STEADY_TIME))


class SteadyThread:
    """Thread that calls `action` periodically until it is ended.

    A timer of an executor is not enough. The executor sleeps in the middleware, which waits by the wall clock where it
    was built for an old C library, as in the wheels. If that clock is set back, a pending wait takes as much longer.
    `time.sleep` uses the steady clock; whether waits of `threading` do depends on the version of Python.

    Args:
        node: node whose log receives exceptions of `action`; an exception ends the thread.
        action: function that returns soon.
        period: time between two calls, s.

    Attributes:
        failure: exception of `action`; None without one.
    """

    def __init__(self, node: Node, action: Callable[[], None], period: float) -> None:
        self.failure: Exception | None = None
        self._node = node
        self._action = action
        self._period = period
        self._ending = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether `action` may still be called or running; a call may hang in the middleware."""
        return self._thread.is_alive()

    def end(self) -> None:
        """Stop calling, and wait a limited time for a running call."""
        self._ending = True
        if self._thread is not current_thread():
            wait_for_end(self._thread, THREAD_END_TIMEOUT_S)

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


def wait_for_end(thread: Thread, timeout: float) -> bool:
    """Wait at most `timeout` s for the end of a thread and return whether it has ended."""
    deadline = time.monotonic() + timeout
    while thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.005)
    return not thread.is_alive()
