"""A topic that commands a robot: whoever publishes there has to be alone, and is there only while it commands."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

from rclpy.callback_groups import CallbackGroup
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from rclpy.subscription import Subscription

if TYPE_CHECKING:
    from dynid_ros.nodes.shared.topics import TopicEndpointInfo

NAMING = 0.5
"""s for which the name of somebody's node may still be on its way when it is seen that there is somebody."""
UNNAMED = "(name not known)"
LEASE = 20
"""s for which Fast DDS takes a process that was killed for one that lives."""


SENT_MESSAGES = 200
"""Messages that are remembered, to tell them from those of others: more than come between two looks at 1 kHz."""


class PolledGroup(CallbackGroup):
    """Callback group of a subscription that no executor serves: its messages are taken one by one."""

    def can_execute(self, _entity: Any) -> bool:
        """Return False: nothing is executed."""
        return False

    def beginning_execution(self, _entity: Any) -> bool:
        """Return False: nothing is executed."""
        return False

    def ending_execution(self, _entity: Any) -> None:
        """Do nothing."""


class CommandTopic:
    """Commands of one node; others see an endpoint there from `open` to `close`, and no longer.

    Any endpoint of another publisher counts, whatever the type of its messages and however silent it is: of two
    that command, the controller obeys both in turn.

    Args:
        node: publishes.
        kind: type of the messages.
        topic: name of the topic.
        qos: of the publisher.
        watched: whether messages of others are counted.

    Attributes:
        name: full name of the topic.
        foreign: number of messages of other publishers since it was opened, see `count_foreign`.
    """

    def __init__(self, node: Node, kind: type, topic: str, qos: QoSProfile | int, *, watched: bool = False) -> None:
        self.name = node.resolve_topic_name(topic)
        self._node = node
        self._kind = kind
        self._topic = topic
        self._qos = qos
        self._watched = watched
        self._publisher: Publisher | None = None
        self._unnamed_since: float | None = None
        self._echo: Subscription | None = None
        self._own_messages: deque[bytes] = deque(maxlen=SENT_MESSAGES)
        self.foreign = 0

    @property
    def is_open(self) -> bool:
        """Whether this node may publish."""
        return self._publisher is not None

    @property
    def listeners(self) -> int:
        """How many others listen to the commands; while closed, how many listen on the topic at all."""
        if self._publisher is None:
            return self._node.count_subscribers(self.name)
        return self._publisher.get_subscription_count() - int(self._echo is not None)

    @property
    def others(self) -> str:
        """Who else publishes on the topic, and what to do; empty: nobody."""
        if self._node.count_publishers(self.name) <= int(self.is_open):  # which takes far less time
            return ""
        publishers = [
            (_node_of(info), info.topic_type) for info in self._node.get_publishers_info_by_topic(self._topic)
        ]
        own = self._node.get_fully_qualified_name(), _type_name(self._kind)
        if self.is_open and own in publishers:
            publishers.remove(own)
        if not publishers:
            return ""
        names = ", ".join(f"{name}{' (of the same name)' * (name == own[0])} [{kind}]" for name, kind in publishers)
        return (
            f"somebody else publishes on {self.name}: node {names}; end it, as two would command in turn (one that was "
            f"killed counts until the middleware finds out, up to {LEASE} s)"
        )

    @property
    def unnamed(self) -> bool:
        """Whether there is somebody else whose name will be known in a moment."""
        if UNNAMED not in self.others:
            self._unnamed_since = None
            return False
        if self._unnamed_since is None:
            self._unnamed_since = time.monotonic()
        return time.monotonic() - self._unnamed_since < NAMING

    def open(self) -> None:
        """Begin to be a publisher of the topic."""
        if self._publisher is None:
            self._publisher = self._node.create_publisher(self._kind, self._topic, self._qos)
            self._own_messages.clear()
            self.foreign = 0
            if self._watched:
                self._echo = self._node.create_subscription(
                    self._kind, self._topic, lambda _: None, SENT_MESSAGES, callback_group=PolledGroup(), raw=True
                )

    def publish(self, message: Any) -> None:
        """Send a message; the topic must be open."""
        assert self._publisher is not None
        if self._echo is None:
            self._publisher.publish(message)
            return
        data = serialize_message(message)
        self._own_messages.append(data)
        self._publisher.publish(data)

    def count_foreign(self) -> int:
        """Return how many messages on the open topic came from somebody else.

        An endpoint that is silent does no harm, and a message does, so the messages themselves are compared with those
        that were sent from here.
        """
        for _ in range(SENT_MESSAGES):
            if self._echo is None:
                break
            with self._echo.handle:
                taken = self._echo.handle.take_message(self._kind, True)
            if taken is None:
                break
            if bytes(taken[0]) not in self._own_messages:
                self.foreign += 1
        return self.foreign

    def acknowledged(self, seconds: float = 0.0) -> bool:
        """Whether all messages have arrived; waits for that at most so long."""
        return self._publisher is None or self._publisher.wait_for_all_acked(Duration(seconds=seconds))

    def close(self) -> None:
        """Leave the topic to others; messages that were not acknowledged may be lost."""
        if self._publisher is not None:
            self._node.destroy_publisher(self._publisher)
            self._publisher = None
        if self._echo is not None:
            self._node.destroy_subscription(self._echo)
            self._echo = None


def publishers_of(node: Node, topic: str) -> str:
    """Nodes that publish on a topic, in words and brackets; empty if they are fewer than two."""
    names = sorted(_node_of(info) for info in node.get_publishers_info_by_topic(topic))
    return f" ({topic} is published by {' and '.join(names)})" if len(names) > 1 else ""


def _node_of(publisher: TopicEndpointInfo) -> str:
    if "UNKNOWN" in publisher.node_name:  # found before its node was
        return UNNAMED
    return f"{publisher.node_namespace.rstrip('/')}/{publisher.node_name}"


def _type_name(kind: type) -> str:
    package, *_, name = f"{kind.__module__}.{kind.__name__}".split(".")
    return f"{package}/msg/{name}"
