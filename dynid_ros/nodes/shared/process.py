"""A node's process: start and end, ROS domain, timers and threads, work in the background, callbacks of services.

A simulated arm has the topics of a robot: joint states and commands. A program that starts one must therefore not use
the ROS domain of its caller, on which the driver of a robot may run.
"""

import os
import random
import signal
import socket
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from hashlib import sha256
from pathlib import Path
from threading import Thread, current_thread
from typing import Any, Protocol, TypeVar, cast

import rclpy
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rclpy.timer import Timer

from dynid_ros.errors import DynidError

DOMAINS = range(1, 101)
"""Domains whose ports Linux does not assign to other connections (ROS 2, "The ROS_DOMAIN_ID")."""
N_PARTICIPANTS = 20
"""Number of participants of a domain whose ports are checked."""
DISCOVERY_VARIABLES = ("ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER")
"""Environment variables that let ROS 2 find other machines or domains."""
THREAD_END_TIMEOUT_S = 5.0
COMPUTATION_END_TIMEOUT_S = 5.0
WAKE_PERIOD_S = 0.1
"""Longest sleep of an executor; without it, a clock that was set back would prolong the sleep."""
EXECUTOR_END_TIMEOUT_S = 1.0
DESTROY_TIMEOUT = 10
"""Longest time for the middleware to destroy a node, whole s."""

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


@contextmanager
def alone(output: Path, domain: str = "") -> Iterator[None]:
    """Keep the processes that the block starts on this machine, on an unused ROS domain and in an unused folder.

    Args:
        output: folder of the results.
        domain: number of the domain; empty: a free one.
    """
    with claim(f"folder {sha256(str(output).encode()).hexdigest()}") as is_unused:
        if not is_unused:
            text = f"{output}: another demo or guide writes there now; wait, or choose another folder with --output"
            raise DynidError(text)
        with _claim_domain(domain) if domain else own_domain() as number:
            for variable in DISCOVERY_VARIABLES:
                os.environ.pop(variable, None)
            os.environ |= {"ROS_DOMAIN_ID": number, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
            yield


@contextmanager
def own_domain() -> Iterator[str]:
    """Claim an unused domain for the block, and yield its number as text."""
    for domain in random.sample(DOMAINS, len(DOMAINS)):
        with claim(f"domain {domain}") as ours:
            if ours and not in_use(domain):
                yield str(domain)
                return
    raise DynidError(f"all ROS domains from {DOMAINS[0]} to {DOMAINS[-1]} are in use; wait until one is free")


@contextmanager
def claim(what: str) -> Iterator[bool]:
    """Claim a name for the block, and yield whether no other process has it.

    The name is an abstract address of a socket, which Linux frees when the process ends, even if it is killed.
    """
    if sys.platform != "linux":
        yield True
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as name:
        try:
            name.bind(f"\0dynid_ros {what}")
        except OSError:
            yield False
        else:
            yield True


def in_use(domain: int) -> bool:
    """Return whether a participant on this machine has one of the first ports of a domain (RTPS 2.2, 9.6.1.1).

    Several ports are checked: a process numbers its participants across all domains, and a participant takes the next
    port if the first one is just being checked by another process.
    """
    for participant in range(N_PARTICIPANTS):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
            try:
                port.bind(("", 7400 + 250 * domain + 10 + 2 * participant))
            except OSError:
                return True
    return False


@contextmanager
def _claim_domain(domain: str) -> Iterator[str]:
    """Claim the domain with a number for the block."""
    if not domain.isdecimal() or int(domain) not in DOMAINS:
        raise DynidError(f"ROS domain '{domain}': expected a number from {DOMAINS[0]} to {DOMAINS[-1]}")
    with claim(f"domain {domain}") as is_ours:
        if not is_ours or in_use(int(domain)):
            raise DynidError(
                f"somebody is on ROS domain {domain} of this machine, perhaps a robot's driver; choose another one "
                "(`ros2 daemon stop` ends what the ros2 commands leave behind)"
            )
        yield domain


def locked(method: F) -> F:
    """Return a method that holds the attribute `lock` of its object, for objects that several threads use."""

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

    A timer of an executor does not suffice. The executor sleeps in the middleware, which waits by the wall clock if it
    was built for an old C library, as in the wheels. If that clock is set back, a pending wait takes longer by the same
    time. `time.sleep` uses the steady clock; for waits of `threading` that depends on the version of Python.

    Args:
        node: node whose log receives exceptions of `action`; an exception ends the thread.
        action: function that is called, and returns soon.
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


class Background:
    """Computation in a thread, awaited by coroutines of the node, which meanwhile continues to spin.

    A service whose callback awaits belongs in a reentrant callback group; otherwise no other callback runs meanwhile.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._thread: Thread | None = None

    async def result(self, compute: Callable[[], T]) -> T:
        """Return the result of `compute`, or raise its exception."""
        future = Future()

        def work() -> None:
            try:
                future.set_result(compute())
            except BaseException as error:
                future.set_exception(error)
            if self._node.executor is not None:
                self._node.executor.wake()  # otherwise the coroutine continues with the next message or timer

        thread = Thread(target=work, daemon=True)
        thread.start()
        self._thread = thread  # `end` can wait for it from now on
        return await future

    def end(self) -> None:
        """Wait a limited time for the thread."""
        if self._thread is not None:
            wait_for_end(self._thread, COMPUTATION_END_TIMEOUT_S)


@contextmanager
def ros_process(
    arguments: list[str] | None = None, signals: SignalHandlerOptions = SignalHandlerOptions.ALL
) -> Iterator[None]:
    """Run rclpy; SIGINT and SIGTERM end the process quietly, a `DynidError` ends it with one line and exit code 2."""
    try:
        rclpy.init(args=arguments, signal_handler_options=signals)
    except rclpy_implementation.RCLError as error:  # an unreadable parameter file
        print(f"error: {' '.join(str(error).partition(', at /')[0].split())}", file=sys.stderr)
        sys.exit(2)
    try:
        yield
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except rclpy_implementation.RCLError:
        if rclpy.ok():  # otherwise a callback was publishing when the signal came
            raise
    except TypeError as error:
        # A signal during the conversion of a message appears as this error.
        if not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise
    except DynidError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    finally:
        rclpy.try_shutdown()
        signal.alarm(0)


def _destroy(node: Any) -> None:
    """Destroy the node; if the middleware hangs, SIGALRM ends the process.

    Fast DDS may hang there with the interpreter locked when many nodes end at once on a busy machine. No thread of
    Python could then end the process.
    """
    signal.alarm(DESTROY_TIMEOUT)
    node.destroy_node()


def run(make_node: Callable[[], Node], arguments: list[str] | None = None) -> None:
    """Create the node and spin it until the process is to end."""
    with ros_process(arguments):
        node = make_node()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        waker = SteadyThread(node, executor.wake, WAKE_PERIOD_S)
        try:
            while executor.context.ok():
                executor.spin_once()
        finally:
            waker.end()
            _destroy(node)


class UndisturbedNode(Protocol):
    """Node with work that must not wait for its executor.

    Attributes:
        steady: thread that does the work.
    """

    steady: SteadyThread

    def end(self) -> None:
        """Finish the work; do nothing if it is finished."""

    def destroy_node(self) -> None:
        """Finish the work and destroy the node."""


def run_undisturbed(
    make_node: Callable[[], UndisturbedNode],
    arguments: list[str] | None = None,
    *,
    turn: Callable[[Any, SingleThreadedExecutor], object] = lambda _, executor: executor.spin_once(
        timeout_sec=WAKE_PERIOD_S
    ),
    wake: Callable[[Any], object] = lambda _: None,
    interruptible: bool = False,
) -> None:
    """Create the node and spin it; signals interrupt neither a callback nor the end of the node.

    The node spins in a thread. The main thread waits for signals with the steady clock and wakes the executor, which
    may otherwise sleep longer in the middleware if the computer's clock was set back.

    Args:
        make_node: function that creates the node.
        arguments: arguments of ROS.
        turn: called repeatedly in the thread; an exception ends the process.
        wake: ends a wait of `turn` outside the executor.
        interruptible: whether signals interrupt `make_node`, which may wait.
    """
    ending: list[int] = []  # received signals, or 0; not empty once the process is to end
    numbers = (signal.SIGINT, signal.SIGTERM)
    is_uninterruptible = not interruptible

    def on_signal(number: int, _frame: object) -> None:
        ending.append(number)
        if not is_uninterruptible:
            raise KeyboardInterrupt

    for number in numbers:
        signal.signal(number, on_signal)
    with ros_process(arguments, SignalHandlerOptions.NO):
        node = make_node()
        is_uninterruptible = True
        executor = SingleThreadedExecutor()
        executor.add_node(cast(Node, node))
        failures: list[BaseException] = []

        def spin() -> None:
            try:
                while not ending:
                    turn(node, executor)
            except BaseException as error:  # raised again by the main thread
                if not ending:
                    failures.append(error)

        # Spin until a signal arrives or a thread fails. Then end the work, the threads and the node, in this order.
        thread = Thread(target=spin, daemon=True)
        thread.start()
        try:
            while not ending and thread.is_alive() and node.steady.failure is None:
                time.sleep(WAKE_PERIOD_S)
                executor.wake()
                wake(node)
        finally:
            ending.append(0)
            node.end()
            node.steady.end()
            executor.wake()
            wake(node)
            if not wait_for_end(thread, EXECUTOR_END_TIMEOUT_S) or node.steady.is_alive:
                # A thread hangs in the middleware, whose objects must not be destroyed then: end without cleanup.
                sys.stderr.flush()
                os._exit(int(bool(failures or node.steady.failure)))
            _destroy(node)
            for number in numbers:
                signal.signal(number, signal.SIG_IGN)  # Python removes its handlers before the process ends
        for error in [*failures, *filter(None, [node.steady.failure])]:
            raise error


def answer(node: Node, action: Callable[[], str], off: Callable[[], str] | None = None) -> Callable[[Any, Any], Any]:
    """Return a service callback that answers with the text of an action.

    An exception becomes `success = False` and a line in the log.

    Args:
        node: node of the service.
        action: action of a `Trigger`, or of a `SetBool` with true.
        off: action of a `SetBool` with false; None for a `Trigger`.
    """

    def callback(request: Any, response: Any) -> Any:
        with _refusals(node, response):
            chosen = action if off is None or request.data else off
            response.message = _one_line(chosen())
        return response

    return callback


def answer_later(
    node: Node, action: Callable[[], Awaitable[str]], at_once: Callable[[], bool] = lambda: False
) -> Callable[[Any, Any], Awaitable[Any]]:
    """Return a `Trigger` callback that answers with the text of a coroutine; see `answer` for exceptions.

    The service belongs in a reentrant callback group.

    Args:
        node: node of the service.
        action: coroutine.
        at_once: returns whether to answer as soon as the coroutine waits for the first time; topics of the node then
            report its end.
    """

    async def callback(_request: Any, response: Any) -> Any:
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
            task()  # runs until the coroutine waits for the first time
            answered = True
            response.message = (
                _one_line(task.result()) if task.done() else "The work has begun; ~/state reports its end."
            )
        return response

    return callback


def _one_line(text: str) -> str:
    """Return the lines of an answer as one line, because `ros2 service call` shows line breaks as escape sequences."""
    return "; ".join(line.strip().rstrip(";") for line in text.splitlines() if line.strip())


@contextmanager
def _refusals(node: Node, response: Any) -> Iterator[None]:
    """Set `success` of the response, and turn an exception of the block into a message and a line in the log."""
    try:
        yield
        response.success = True
    except DynidError as error:
        response.message = _one_line(str(error))
        response.success = False
        node.get_logger().error(str(error))
    except Exception as error:  # a programming error must not end a node that holds an arm
        response.message = _one_line(f"unexpected {type(error).__name__}: {error}; see the node's log")
        response.success = False
        node.get_logger().error(traceback.format_exc())
