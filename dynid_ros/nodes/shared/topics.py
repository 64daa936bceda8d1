"""Topics whose type and QoS only their publishers know, and texts to be read from one in a terminal."""

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


def brief_yaml(document: Mapping[str, Any]) -> str:
    """YAML to be read in a terminal: a line for each entry, and for each joint of an entry that has more of each."""
    lines = []
    for key, value in document.items():
        nested = isinstance(value, Mapping) and any(isinstance(one, Mapping) for one in value.values())
        lines += [f"{key}:"] if nested else [f"{key}: {_flow(value)}"]
        lines += [f"  {name}: {_flow(one)}" for name, one in value.items()] if nested else []
    return "\n".join(lines) + "\n"


def _flow(value: object) -> str:
    return (
        yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=math.inf).removesuffix("...\n").rstrip()
    )


# Names of topics, as ROS 2 allows them.


def require_topic(node: Node, topic: str, what: str) -> None:
    """Refuse what no topic can be called, before rclpy ends the process for it; `what` says where the name is from.

    Raises:
        DynidError: ROS 2 allows no such name.
    """
    try:
        node.resolve_topic_name(topic)
    except (NameValidationException, ValueError, UnicodeError, rclpy_implementation.RCLError) as error:
        raise DynidError(
            f"{what} is '{topic}', which is no name of a topic; expected letters, digits, _ and /, no digit behind a /"
        ) from error


# Messages that wait until they are asked for: an executor is woken by each, which costs it ten times as much.


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


DEPTH = 10_000
"""Ten seconds at 1 kHz may wait here before a message is lost."""
LATCHED_DEPTH = 100


class RawSubscription:
    """Follows the publishers of one topic: subscribes when there is one, anew when they offer another QoS.

    Messages wait until `drain`.

    Args:
        node: the node to subscribe with.
        topic: name, relative to the node's namespace.
        types: message types allowed ("package/msg/Name"); none: any.
        on_message: called with this object, the time of reception (ns since the epoch) and the serialised message.
        latched: ask for messages from before the subscription, where publishers keep them, and keep them here too.

    Attributes:
        topic: full name.
        type: message type, empty until a publisher is found.
        offered: QoS of the publishers.
        lost: messages that are missing between those that came, by the numbers that publishers give them; where the
            middleware passes no numbers on, those that it reports as lost, and one where a full queue pushed some out.
        problem: why there is no subscription although there are publishers, else empty.
        kept: the latched messages, serialised.
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
        self.kept: deque[bytes] = deque(maxlen=LATCHED_DEPTH)
        self._node = node
        self._types = types
        self._on_message = on_message
        self._latched = latched
        self._group = Waiting()
        self._keep = False
        self._subscription: Subscription | None = None
        self._numbers: list[int] = []  # of the last message of each publisher

    def update(self) -> None:
        """Look at the publishers; call often enough that a late one is caught."""
        self._look_for_losses()
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
        """Deliver what has been received and not yet been called back."""
        if self._subscription is None:
            return
        count = 0
        for data, info in waiting_messages(self._subscription, DEPTH):
            count += 1
            if number := info["publication_sequence_number"]:
                self._count_missing(number)
            self._receive(data, info)
        if count == DEPTH and not self._numbers:
            self.lost += 1  # the queue was full, and what it pushed out is no loss to the middleware

    def _count_missing(self, number: int) -> None:
        """Count the messages that are missing before the one of this number.

        A message does not say who sent it: it is the next of the publisher whose last number is closest below. A
        publisher that is not known yet, or began anew, has sent none before.
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
        """The strongest QoS that all publishers meet."""
        reliable = all(qos.reliability == ReliabilityPolicy.RELIABLE for qos in self.offered)
        latched = all(qos.durability == DurabilityPolicy.TRANSIENT_LOCAL for qos in self.offered)
        return QoSProfile(
            depth=DEPTH,
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
            cast(Any, self._receive),  # rclpy's annotation knows only callbacks without message info
            qos,
            callback_group=self._group,
            raw=True,
            event_callbacks=SubscriptionEventCallbacks(
                message_lost=lambda _: None,  # for its handler, which is asked instead
                use_default_callbacks=False,
            ),
        )

    def _receive(self, data: bytes, info: dict[str, Any]) -> None:
        if self._keep:
            self.kept.append(data)
        # Not every middleware says when it received.
        self._on_message(self, info["received_timestamp"] or info["source_timestamp"] or time_ns(), data)

    def _look_for_losses(self) -> None:
        if self._subscription is None:
            return
        for handler in cast(Any, self._subscription).event_handlers:  # rclpy annotates them as one
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
