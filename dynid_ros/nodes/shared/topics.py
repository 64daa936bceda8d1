"""Topics: names, waiting messages, topics of unknown type and QoS, and command topics with a single publisher."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import yaml
from rclpy.callback_groups import CallbackGroup
from rclpy.duration import Duration
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.exceptions import NameValidationException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rclpy.subscription import Subscription

from dynid_ros.errors import DynidError

if TYPE_CHECKING:  # never imported by a node: since ROS 2 Lyrical the module is rclpy.endpoint_info
    from rclpy.topic_endpoint_info import TopicEndpointInfo

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
MAX_WAITING_MESSAGES = 10_000
"""Length of the queue of a `RawSubscription`: ten seconds at 1 kHz."""
MAX_LATCHED_MESSAGES = 100
"""Number of latched messages that a `RawSubscription` keeps."""

NAME_DISCOVERY_TIMEOUT_S = 0.5
"""Longest time from the discovery of a publisher to the discovery of its node's name, s."""
UNKNOWN_NAME = "(name not known)"
DDS_LEASE_S = 20
"""Time after which Fast DDS removes a killed process, s."""
MAX_SENT_MESSAGES = 200
"""Number of sent messages that are stored for comparison; more than are sent at 1 kHz between two comparisons."""


def brief_yaml(document: Mapping[str, Any]) -> str:
    """Return YAML for a terminal: one line per entry, or per joint in entries with several values per joint."""
    lines = []
    for key, value in document.items():
        nested = isinstance(value, Mapping) and any(isinstance(one, Mapping) for one in value.values())
        lines += [f"{key}:"] if nested else [f"{key}: {_flow(value)}"]
        lines += [f"  {name}: {_flow(one)}" for name, one in value.items()] if nested else []
    return "\n".join(lines) + "\n"


def _flow(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=math.inf)
    return text.removesuffix("...\n").rstrip()


def require_topic(node: Node, topic: str, what: str) -> None:
    """Check the name of a topic, because rclpy would end the process for an invalid one."""
    try:
        node.resolve_topic_name(topic)
    except (NameValidationException, ValueError, UnicodeError, rclpy_implementation.RCLError) as error:
        raise DynidError(
            f"{what} is '{topic}', which is no name of a topic; expected letters, digits, _ and /, no digit after a /"
        ) from error


class UnservedGroup(CallbackGroup):
    """Callback group that no executor serves, for subscriptions whose messages are taken by `waiting_messages`.

    An executor would wake up for each message, which takes ten times as much computing time.
    """

    def can_execute(self, _entity: object) -> bool:
        """Return False."""
        return False

    def beginning_execution(self, _entity: object) -> bool:
        """Return False."""
        return False

    def ending_execution(self, _entity: object) -> None:
        """Do nothing."""


def waiting_messages(subscription: Subscription, max_messages: int) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Take up to `max_messages` serialised messages, oldest first, each with the middleware's information about it.

    The subscription belongs in an `UnservedGroup`.
    """
    for _ in range(max_messages):
        with subscription.handle:
            taken = subscription.handle.take_message(subscription.msg_type, True)
        if taken is None:
            return
        yield taken


class RawSubscription:
    """Subscription that adapts to the publishers of one topic: their type, and their QoS whenever it changes.

    Messages wait until `drain` delivers them.

    Args:
        topic: name, relative to the node's namespace.
        types: allowed message types ("package/msg/Name"); empty for any.
        on_message: called with this object, the time of reception (ns since the epoch) and the serialised message.
        latched: whether to request messages from before the subscription, if the publishers keep them, and to store
            them in `kept`.

    Attributes:
        topic: full name.
        type: message type; empty until a publisher is found.
        offered: QoS of each publisher.
        lost: number of lost messages, from gaps in the publishers' sequence numbers. Without such numbers, the losses
            that the middleware reports, plus one for each time that the queue was full.
        problem: reason why there is no subscription although there are publishers; otherwise empty.
        kept: latched messages, serialised.
    """

    def __init__(
        self,
        node: Node,
        topic: str,
        types: Sequence[str],
        on_message: Callable[[RawSubscription, int, bytes], None],
        *,
        latched: bool = False,
    ) -> None:
        self.topic = node.resolve_topic_name(topic)
        self.type = ""
        self.offered: list[QoSProfile] = []
        self.lost = 0
        self.problem = ""
        self.kept: deque[bytes] = deque(maxlen=MAX_LATCHED_MESSAGES)
        self._node = node
        self._types = types
        self._on_message = on_message
        self._latched = latched
        self._group = UnservedGroup()
        self._keeps_latched = False
        self._subscription: Subscription | None = None
        self._numbers: list[int] = []  # last sequence number of each publisher

    def update(self) -> None:
        """Look for publishers, and subscribe with the QoS that fits them; to be called periodically."""
        self._add_reported_losses()
        publishers = self._node.get_publishers_info_by_topic(self.topic)
        if not publishers:
            return
        problem = self._find_problem(publishers)
        if problem and problem != self.problem:
            self._node.get_logger().error(problem)
        self.problem = problem
        if problem:
            return
        self.offered = [publisher.qos_profile for publisher in publishers]
        qos = self._matching_qos()
        if self._subscription is None or self._subscription.qos_profile != qos:
            self._subscribe(qos)

    def drain(self) -> None:
        """Deliver the waiting messages."""
        if self._subscription is None:
            return
        count = 0
        for data, info in waiting_messages(self._subscription, MAX_WAITING_MESSAGES):
            count += 1
            if number := info["publication_sequence_number"]:
                self._count_missing(number)
            self._receive(data, info)
        if count == MAX_WAITING_MESSAGES and not self._numbers:
            self.lost += 1  # the middleware does not report messages that a full queue dropped

    def _count_missing(self, number: int) -> None:
        """Count the messages that are missing before the message with this sequence number.

        A message does not identify its publisher. It is attributed to the publisher whose last number is the closest
        smaller one. A new or restarted publisher has sent no message before.
        """
        before = max((last for last in self._numbers if last < number), default=None)
        is_new = len(self._numbers) < len(self.offered) and before != number - 1
        if before is None or is_new:
            self._numbers = [*self._numbers, number][-max(len(self.offered), 1) :]
            return
        self.lost += number - before - 1
        self._numbers.remove(before)
        self._numbers.append(number)

    def _find_problem(self, publishers: Sequence[TopicEndpointInfo]) -> str:
        """Return why the publishers' type cannot be subscribed to; if it can, store it and return an empty text."""
        types = sorted({publisher.topic_type for publisher in publishers})
        allowed = [self.type] if self.type else self._types
        if len(types) > 1:
            return (
                f"topic {self.topic} is published with several types: {', '.join(types)}; stop all publishers but one"
            )
        if allowed and types[0] not in allowed:
            return f"topic {self.topic} has type {types[0]}; expected {' or '.join(allowed)}"
        try:
            _message_class(types[0])
        except (ImportError, AttributeError):
            return (
                f"topic {self.topic} has type {types[0]}, which is not installed here; install and source its package"
            )
        self.type = types[0]
        return ""

    def _matching_qos(self) -> QoSProfile:
        """Return the strongest QoS that all publishers offer."""
        reliable = all(qos.reliability == ReliabilityPolicy.RELIABLE for qos in self.offered)
        latched = all(qos.durability == DurabilityPolicy.TRANSIENT_LOCAL for qos in self.offered)
        return QoSProfile(
            depth=MAX_WAITING_MESSAGES,
            reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched and self._latched else DurabilityPolicy.VOLATILE,
        )

    def _subscribe(self, qos: QoSProfile) -> None:
        if self._subscription is not None:
            self.drain()
            self._node.destroy_subscription(self._subscription)
        self.kept.clear()
        self._numbers = []
        self._keeps_latched = qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
        self._subscription = self._node.create_subscription(
            _message_class(self.type),
            self.topic,
            cast(Any, self._receive),  # rclpy's annotation lacks callbacks with message info
            qos,
            callback_group=self._group,
            raw=True,
            event_callbacks=SubscriptionEventCallbacks(
                message_lost=lambda _: None,  # creates the handler that `_add_reported_losses` reads
                use_default_callbacks=False,
            ),
        )

    def _receive(self, data: bytes, info: dict[str, Any]) -> None:
        """Deliver a message with its time of reception."""
        if self._keeps_latched:
            self.kept.append(data)
        # Some middlewares do not provide the time of reception.
        self._on_message(self, info["received_timestamp"] or info["source_timestamp"] or time.time_ns(), data)

    def _add_reported_losses(self) -> None:
        """Count the losses that the middleware reports as events, unless sequence numbers show the losses."""
        if self._subscription is None:
            return
        for handler in cast(Any, self._subscription).event_handlers:  # rclpy annotates a single handler
            wait_set = rclpy_implementation.WaitSet(0, 0, 0, 0, 0, 1, self._node.context.handle)
            with handler:
                handler.add_to_wait_set(wait_set)
                wait_set.wait(0)
                if handler.is_ready(wait_set):
                    reported = handler.take_data().total_count_change
                    self.lost += 0 if self._numbers else reported


def _message_class(msgtype: str) -> type:
    package, kind, name = msgtype.split("/")
    return getattr(import_module(f"{package}.{kind}"), name)


class CommandTopic:
    """Publisher of commands, which exists from `open` to `close`.

    Any other publisher of the topic counts as a conflict, even a silent one or one of another type, because a
    controller obeys two publishers in turn.

    Args:
        watched: whether to count messages of other publishers.

    Attributes:
        name: full name of the topic.
        foreign: number of messages of other publishers since `open` or `forget_foreign`, as of the last count.
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
            f"somebody else publishes on {self.name}: node {names}; end it, because two would command in turn (one "
            f"that was killed counts until the middleware finds out, up to {DDS_LEASE_S} s)"
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

        Received messages are compared with the sent ones, because a publisher does harm by its messages only.
        """
        if self._echo is not None:
            echoed = waiting_messages(self._echo, MAX_SENT_MESSAGES)
            self.foreign += sum(bytes(data) not in self._sent_messages for data, _ in echoed)
        return self.foreign

    def acknowledged(self, seconds: float = 0.0) -> bool:
        """Wait for at most `seconds` and return whether all messages have arrived."""
        return self._publisher is None or self._publisher.wait_for_all_acked(Duration(seconds=seconds))

    def forget_foreign(self) -> None:
        """Set the number of messages of other publishers to zero."""
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
