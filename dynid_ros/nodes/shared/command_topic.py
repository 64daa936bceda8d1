"""Command topic of a robot with a single publisher, which exists only while its node commands."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from rclpy.subscription import Subscription

from dynid_ros.nodes.shared.topics import UnservedGroup, waiting_messages

if TYPE_CHECKING:
    from dynid_ros.nodes.shared.topics import TopicEndpointInfo

NAME_DISCOVERY_TIMEOUT_S = 0.5
"""Longest time between the discovery of a publisher and that of its node's name, s."""
UNKNOWN_NAME = "(name not known)"
DDS_LEASE_S = 20
"""Time after which Fast DDS removes a killed process, s."""
MAX_SENT_MESSAGES = 200
"""Number of sent messages that are stored for comparison, more than are sent at 1 kHz between two comparisons."""


class CommandTopic:
    """Publisher of commands, which exists from `open` to `close`.

    Any other publisher of the topic counts as a conflict, even a silent one or one of another type, because a
    controller obeys two publishers in turn.

    Args:
        node: node that publishes.
        kind: type of the messages.
        topic: name of the topic.
        qos: quality of service of the publisher.
        watched: whether to count messages of other publishers.

    Attributes:
        name: full name of the topic.
        foreign: number of messages of other publishers since `open`, see `count_foreign`.
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
        self._sent_messages: deque[bytes] = deque(maxlen=MAX_SENT_MESSAGES)
        self.foreign = 0

    @property
    def is_open(self) -> bool:
        """Whether this node may publish."""
        return self._publisher is not None

    @property
    def listeners(self) -> int:
        """Number of subscribers, without the one of this object."""
        if self._publisher is None:
            return self._node.count_subscribers(self.name)
        return self._publisher.get_subscription_count() - int(self._echo is not None)

    @property
    def others(self) -> str:
        """Message that names other publishers of the topic; empty without any."""
        if self._node.count_publishers(self.name) <= int(self.is_open):  # much faster than the query below
            return ""
        publishers = [(node_of(info), info.topic_type) for info in self._node.get_publishers_info_by_topic(self._topic)]
        this_node = self._node.get_fully_qualified_name()
        this_publisher = (this_node, _type_name(self._kind))
        if self.is_open and this_publisher in publishers:
            publishers.remove(this_publisher)
        if not publishers:
            return ""
        names = ", ".join(
            f"{name}{' (of the same name)' if name == this_node else ''} [{kind}]" for name, kind in publishers
        )
        return (
            f"somebody else publishes on {self.name}: node {names}; end it, as two would command in turn (one that was "
            f"killed counts until the middleware finds out, up to {DDS_LEASE_S} s)"
        )

    @property
    def other_nodes(self) -> list[str]:
        """Full names of other nodes that publish here; a node of the same name is usually a killed predecessor."""
        names = {node_of(info) for info in self._node.get_publishers_info_by_topic(self.name)}
        return sorted(names - {self._node.get_fully_qualified_name(), UNKNOWN_NAME})

    @property
    def unnamed(self) -> bool:
        """Whether another publisher exists whose name is still being discovered."""
        if UNKNOWN_NAME not in self.others:
            self._unnamed_since = None
            return False
        if self._unnamed_since is None:
            self._unnamed_since = time.monotonic()
        return time.monotonic() - self._unnamed_since < NAME_DISCOVERY_TIMEOUT_S

    def open(self) -> None:
        """Create the publisher."""
        if self._publisher is None:
            self._publisher = self._node.create_publisher(self._kind, self._topic, self._qos)
            self._sent_messages.clear()
            self.foreign = 0
            if self._watched:
                self._echo = self._node.create_subscription(
                    self._kind, self._topic, lambda _: None, MAX_SENT_MESSAGES, callback_group=UnservedGroup(), raw=True
                )

    def publish(self, message: Any) -> None:
        """Send a message; the topic must be open."""
        assert self._publisher is not None
        if self._echo is None:
            self._publisher.publish(message)
            return
        data = serialize_message(message)
        self._sent_messages.append(data)
        self._publisher.publish(data)

    def count_foreign(self) -> int:
        """Return the number of messages of other publishers since `open`.

        Messages on the topic are compared with the sent ones, because only messages do harm, not silent publishers.
        """
        if self._echo is not None:
            echoed = waiting_messages(self._echo, MAX_SENT_MESSAGES)
            self.foreign += sum(bytes(data) not in self._sent_messages for data, _ in echoed)
        return self.foreign

    def acknowledged(self, seconds: float = 0.0) -> bool:
        """Wait for at most `seconds` and return whether all messages have arrived."""
        return self._publisher is None or self._publisher.wait_for_all_acked(Duration(seconds=seconds))

    def forget_foreign(self) -> None:
        """Count messages of other publishers anew from now on."""
        self.count_foreign()
        self.foreign = 0

    def close(self) -> None:
        """Destroy the publisher; messages that were not acknowledged may be lost."""
        if self._publisher is not None:
            self._node.destroy_publisher(self._publisher)
            self._publisher = None
        if self._echo is not None:
            self._node.destroy_subscription(self._echo)
            self._echo = None


def publishers_of(node: Node, topic: str) -> str:
    """Return a note in brackets that names the publishers of a topic; empty for fewer than two."""
    names = sorted(node_of(info) for info in node.get_publishers_info_by_topic(topic))
    return f" ({topic} is published by {' and '.join(names)})" if len(names) > 1 else ""


def node_of(publisher: TopicEndpointInfo) -> str:
    """Return the full name of a publisher's node, or `UNKNOWN_NAME` until the middleware knows it."""
    if "UNKNOWN" in publisher.node_name:
        return UNKNOWN_NAME
    return f"{publisher.node_namespace.rstrip('/')}/{publisher.node_name}"


def _type_name(kind: type) -> str:
    package, *_, name = f"{kind.__module__}.{kind.__name__}".split(".")
    return f"{package}/msg/{name}"
