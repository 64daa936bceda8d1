"""Start and end of a node's process, and services that answer instead of raising."""

import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import Trigger

from dynid_ros.errors import DynidError


@contextmanager
def ros_process(
    arguments: list[str] | None = None, signals: SignalHandlerOptions = SignalHandlerOptions.ALL
) -> Iterator[None]:
    """Rclpy from start to end; SIGINT and SIGTERM end it quietly, a `DynidError` with one line and exit code 2."""
    rclpy.init(args=arguments, signal_handler_options=signals)
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


def run(make_node: Callable[[], Node], arguments: list[str] | None = None) -> None:
    """Make the node and spin it until the process is told to end."""
    with ros_process(arguments):
        node = make_node()
        try:
            rclpy.spin(node)
        finally:
            node.destroy_node()


def run_undisturbed(make_node: Callable[[], Node], arguments: list[str] | None = None) -> None:
    """The same, but neither a callback nor the end of the node is interrupted, however often the process is told."""
    ending: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        signal.signal(number, lambda received, _frame: ending.append(received))
    with ros_process(arguments, SignalHandlerOptions.NO):
        node = make_node()
        try:
            executor = SingleThreadedExecutor()
            executor.add_node(node)
            while not ending:
                executor.spin_once(timeout_sec=0.1)
        finally:
            node.destroy_node()
            for number in numbers:
                signal.signal(number, signal.SIG_IGN)  # handlers end before the process does


def answer(node: Node, action: Callable[[], str]) -> Callable[[Trigger.Request, Trigger.Response], Trigger.Response]:
    """Service callback for `action`: its text is the message; what it raises becomes `success = False`, logged."""

    def callback(_request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with _refusals(node, response):
            response.message = action()
        return response

    return callback


def answer_later(
    node: Node, action: Callable[[], Awaitable[str]]
) -> Callable[[Trigger.Request, Trigger.Response], Awaitable[Trigger.Response]]:
    """The same for a coroutine; give its service a reentrant callback group, or nothing else is called meanwhile."""

    async def callback(_request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with _refusals(node, response):
            response.message = await action()
        return response

    return callback


@contextmanager
def _refusals(node: Node, response: Trigger.Response) -> Iterator[None]:
    try:
        yield
        response.success = True
    except DynidError as error:
        response.message = str(error)
        response.success = False
        node.get_logger().error(str(error))
    except Exception as error:  # a fault of this package; what holds an arm must not end by it
        response.message = f"unexpected {type(error).__name__}: {error}; the node's log has more"
        response.success = False
        node.get_logger().error(traceback.format_exc())
