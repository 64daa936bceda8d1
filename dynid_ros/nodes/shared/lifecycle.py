"""Lifecycle transitions that answer: rclpy drops their exceptions silently, or lets them end the process."""

import functools
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from dynid_ros.errors import DynidError

NodeType = TypeVar("NodeType", bound=LifecycleNode)


def transition(
    action: Callable[[NodeType], None],
) -> Callable[[NodeType, LifecycleState], TransitionCallbackReturn]:
    """Transition callback for a method: a `DynidError` is logged and means failure, any other exception an error."""

    @functools.wraps(action)
    def callback(node: NodeType, _previous: LifecycleState) -> TransitionCallbackReturn:
        try:
            action(node)
        except DynidError as error:
            node.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        except Exception:
            node.get_logger().error(traceback.format_exc())
            return TransitionCallbackReturn.ERROR
        return TransitionCallbackReturn.SUCCESS

    return callback


def guard_transitions(node: LifecycleNode) -> None:
    """Answer `success = False` to a transition that the present state does not allow; rclpy raises out of `spin`."""
    service = next(service for service in node.services if service.srv_name.endswith("/change_state"))
    change = service.callback

    def callback(request: Any, response: Any) -> Any:
        try:
            return change(request, response)
        except RuntimeError as error:
            node.get_logger().error(f"transition refused: {error}")
            response.success = False
            return response

    service.callback = callback
