"""A topic that commands a robot: whoever publishes there has to be alone, and is there only while it commands."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile

if TYPE_CHECKING:
    from dynid_ros.nodes.shared.topics import TopicEndpointInfo

NAMING = 0.5
"""s for which the name of somebody's node may still be on its way when it is seen that there is somebody."""
UNNAMED = "(name not known)"
LEASE = 20
"""s for which Fast DDS takes a process that was killed for one that lives."""


class CommandTopic:
    """Commands of one node; others see an endpoint there from `open` to `close`, and no longer.

    Any endpoint of another publisher counts, whatever the type of its messages and however silent it is: of two
    that command, the controller obeys both in turn.

    Attributes:
        name: full name of the topic.
    """

    def __init__(self, node: Node, kind: type, topic: str, qos: QoSProfile | int) -> None:
        self.name = node.resolve_topic_name(topic)
        self._node, self._kind, self._topic, self._qos = node, kind, topic, qos
        self._publisher: Publisher | None = None
        self._unnamed_since: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether this node may publish."""
        return self._publisher is not None

    @property
    def listeners(self) -> int:
        """How many listen to the commands; while closed, how many listen on the topic at all."""
        if self._publisher is None:
            return self._node.count_subscribers(self.name)
        return self._publisher.get_subscription_count()

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

    def publish(self, message: Any) -> None:
        """Send a message; the topic must be open."""
        assert self._publisher is not None
        self._publisher.publish(message)

    def acknowledged(self, seconds: float = 0.0) -> bool:
        """Whether all messages have arrived; waits for that at most so long."""
        return self._publisher is None or self._publisher.wait_for_all_acked(Duration(seconds=seconds))

    def close(self) -> None:
        """Leave the topic to others; messages that were not acknowledged may be lost."""
        if self._publisher is not None:
            self._node.destroy_publisher(self._publisher)
            self._publisher = None


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
