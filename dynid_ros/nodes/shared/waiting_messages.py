"""Messages that wait until they are asked for: an executor is woken by each, which costs it ten times as much."""

from collections.abc import Iterator
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.subscription import Subscription


class Waiting(CallbackGroup):
    """Keeps the executor from what is in it."""

    def can_execute(self, _entity: object) -> bool:
        """Nothing is."""
        return False

    def beginning_execution(self, _entity: object) -> bool:
        """Nothing is executed."""
        return False

    def ending_execution(self, _entity: object) -> None:
        """Nothing is executed."""


def waiting_messages(subscription: Subscription, most: int) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Take serialised messages and what the middleware says of each, oldest first, until there is none or are `most`.

    The subscription belongs in a group `Waiting`.
    """
    for _ in range(most):
        with subscription.handle:
            taken = subscription.handle.take_message(subscription.msg_type, True)
        if taken is None:
            return
        yield taken
