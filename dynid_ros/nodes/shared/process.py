"""Start and end of a node's process, and services that answer instead of raising."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, Protocol, TypeVar, cast

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from std_srvs.srv import Trigger

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.steady_thread import SteadyThread, ended

# Long computations beside a node that spins: it stays alive, and its diagnostics go on.


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


BEAT = 0.1
"""s after which an executor is woken at the latest: it would sleep for as long as the computer's clock was set back."""
PATIENCE = 1.0
"""s for which an executor's end is waited for."""
DESTROY_TIMEOUT = 10
"""s in which the middleware is to let go of a node, whose own work is done."""


@contextmanager
def ros_process(
    arguments: list[str] | None = None, signals: SignalHandlerOptions = SignalHandlerOptions.ALL
) -> Iterator[None]:
    """Rclpy from start to end; SIGINT and SIGTERM end it quietly, a `DynidError` with one line and exit code 2."""
    try:
        rclpy.init(args=arguments, signal_handler_options=signals)
    except rclpy_implementation.RCLError as error:  # a parameter file that cannot be read
        print(f"error: {' '.join(str(error).partition(', at /')[0].split())}", file=sys.stderr)
        sys.exit(2)
    try:
        yield
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except rclpy_implementation.RCLError:
        # a callback that was publishing when the signal came; anything else is a fault
        if rclpy.ok():
            raise
    except TypeError as error:
        # what the conversion of a message makes of a signal that comes meanwhile
        if not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise
    except DynidError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    finally:
        rclpy.try_shutdown()
        signal.alarm(0)


def _destroy(node: Any) -> None:
    """Destroy it; where the middleware does not come back from that, the process ends by SIGALRM.

    Fast DDS was seen to spin there, holding the interpreter, when many nodes end at once on a busy machine: no thread
    of Python could end it.
    """
    signal.alarm(DESTROY_TIMEOUT)
    node.destroy_node()


def run(make_node: Callable[[], Node], arguments: list[str] | None = None) -> None:
    """Make the node and spin it until the process is to end."""
    with ros_process(arguments):
        node = make_node()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        beat = SteadyThread(node, executor.wake, BEAT)
        try:
            while executor.context.ok():
                executor.spin_once()
        finally:
            beat.end()
            _destroy(node)


class UndisturbedNode(Protocol):
    """A node with work that must not wait for its executor.

    Attributes:
        steady: does that work.
    """

    steady: SteadyThread

    def end(self) -> None:
        """Bring that work to its end; called again, do nothing."""

    def destroy_node(self) -> None:
        """As of all nodes, and `end`."""


def run_undisturbed(
    make_node: Callable[[], UndisturbedNode],
    arguments: list[str] | None = None,
    *,
    turn: Callable[[Any, SingleThreadedExecutor], object] = lambda _, executor: executor.spin_once(timeout_sec=BEAT),
    wake: Callable[[Any], object] = lambda _: None,
    interruptible: bool = False,
) -> None:
    """The same, but neither a callback nor the end of the node is interrupted, however often the process is signalled.

    The node spins in a thread; this one waits for the signals, by a steady clock: the executor may sleep in the
    middleware for as long as the computer's clock was set back, unless it is woken.

    Args:
        make_node: makes the node.
        arguments: of ROS.
        turn: called again and again in the thread; raises what ends the process.
        wake: ends a wait of `turn` that is not the executor's.
        interruptible: signals interrupt `make_node`, which may wait for something.
    """
    ending: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    made = not interruptible

    def interrupted(number: int, _frame: object) -> None:
        ending.append(number)
        if not made:
            raise KeyboardInterrupt

    for number in numbers:
        signal.signal(number, interrupted)
    with ros_process(arguments, SignalHandlerOptions.NO):
        node = make_node()
        made = True
        executor = SingleThreadedExecutor()
        executor.add_node(cast(Node, node))
        failures: list[BaseException] = []

        def spin() -> None:
            try:
                while not ending:
                    turn(node, executor)
            except BaseException as error:  # raised again where the process ends
                if not ending:
                    failures.append(error)

        thread = Thread(target=spin, daemon=True)
        thread.start()
        try:
            while not ending and thread.is_alive() and node.steady.failure is None:
                time.sleep(BEAT)
                executor.wake()
                wake(node)
        finally:
            ending.append(0)
            node.end()
            node.steady.end()
            executor.wake()
            wake(node)
            if not ended(thread, PATIENCE) or node.steady.is_alive:
                # one waits in the middleware, whose objects must not be destroyed under it
                sys.stderr.flush()
                os._exit(int(bool(failures or node.steady.failure)))
            _destroy(node)
            for number in numbers:
                signal.signal(number, signal.SIG_IGN)  # handlers end before the process does
        for error in [*failures, *filter(None, [node.steady.failure])]:
            raise error


def answer(node: Node, action: Callable[[], str]) -> Callable[[Trigger.Request, Trigger.Response], Trigger.Response]:
    """Service callback for `action`: its text is the message; what it raises becomes `success = False`, logged."""

    def callback(_request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with _refusals(node, response):
            response.message = _one_line(action())
        return response

    return callback


def answer_later(
    node: Node, action: Callable[[], Awaitable[str]], at_once: Callable[[], bool] = lambda: False
) -> Callable[[Trigger.Request, Trigger.Response], Awaitable[Trigger.Response]]:
    """The same for a coroutine; give its service a reentrant callback group, or nothing else is called meanwhile.

    Where `at_once`, the answer is that it began, unless it was refused or is done; its topics tell the rest.
    """

    async def callback(_request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        answered = False

        async def watched() -> str:
            try:
                return await action()
            except Exception as error:
                if not answered:
                    raise
                node.get_logger().error(str(error) if isinstance(error, DynidError) else traceback.format_exc())
                return ""

        with _refusals(node, response):
            if not at_once() or node.executor is None:
                response.message = _one_line(await action())
                return response
            task = node.executor.create_task(watched)
            task()  # up to where it waits for the first time
            answered = True
            response.message = _one_line(task.result()) if task.done() else "begun; ~/state says how it ends"
        return response

    return callback


def _one_line(text: str) -> str:
    """Join the lines of an answer: a terminal shows it as one line, with escaped line breaks."""
    return "; ".join(line.strip().rstrip(";") for line in text.splitlines() if line.strip())


@contextmanager
def _refusals(node: Node, response: Trigger.Response) -> Iterator[None]:
    try:
        yield
        response.success = True
    except DynidError as error:
        response.message = _one_line(str(error))
        response.success = False
        node.get_logger().error(str(error))
    except Exception as error:  # a fault of this package; what holds an arm must not end by it
        response.message = _one_line(f"unexpected {type(error).__name__}: {error}; the node's log has more")
        response.success = False
        node.get_logger().error(traceback.format_exc())
