"""Topics: names, messages that wait until they are taken, topics of unknown type and QoS, and texts for a terminal."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from time import time_ns
from typing import TYPE_CHECKING, Any, cast

import yaml
from rclpy.callback_groups import CallbackGroup
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.exceptions import NameValidationException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

from dynid_ros.errors import DynidError

if TYPE_CHECKING:  # never imported by a node: since ROS 2 Lyrical the module is rclpy.endpoint_info
    from rclpy.topic_endpoint_info import TopicEndpointInfo

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
MAX_WAITING_MESSAGES = 10_000
"""Length of the queue of a `RawSubscription`: ten seconds at 1 kHz."""
MAX_LATCHED_MESSAGES = 100


def brief_yaml(document: Mapping[str, Any]) -> str:
    """Return YAML for a terminal: one line per entry, and one per joint in entries with several values per joint."""
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
    """Check the name of a topic, because rclpy would end the process for an invalid one.

    Args:
        node: node that will use the topic.
        topic: name to check.
        what: origin of the name, for the message.

    Raises:
        DynidError: ROS 2 does not allow the name.
    """
    try:
        node.resolve_topic_name(topic)
    except (NameValidationException, ValueError, UnicodeError, rclpy_implementation.RCLError) as error:
        raise DynidError(
            f"{what} is '{topic}', which is no name of a topic; expected letters, digits, _ and /, no digit after a /"
        ) from error


class UnservedGroup(CallbackGroup):
    """Callback group that no executor serves, for subscriptions whose messages are taken by `waiting_messages`.

    An executor would wake up for each message, which costs ten times as much.
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
    """Subscription that follows the publishers of one topic: created with the first, and again when their QoS changes.

    Messages wait until `drain`.

    Args:
        node: node that subscribes.
        topic: name, relative to the node's namespace.
        types: allowed message types ("package/msg/Name"); empty for any.
        on_message: called with this object, the time of reception (ns since the epoch) and the serialised message.
        latched: whether to request messages from before the subscription, if the publishers keep them, and to store
            them in `kept`.

    Attributes:
        topic: full name.
        type: message type; empty until a publisher is found.
        offered: QoS of the publishers.
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
        self._keep = False
        self._subscription: Subscription | None = None
        self._numbers: list[int] = []  # last sequence number of each publisher

    def update(self) -> None:
        """Look for publishers; to be called periodically."""
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
        self._keep = qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
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
        if self._keep:
            self.kept.append(data)
        # Some middlewares do not provide the time of reception.
        self._on_message(self, info["received_timestamp"] or info["source_timestamp"] or time_ns(), data)

    def _add_reported_losses(self) -> None:
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
