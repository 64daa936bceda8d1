"""The load that an arm carries, learnt from `joint_states` while it moves."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

import numpy as np
import yaml
from geometry_msgs.msg import InertiaStamped
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from dynid_ros.errors import DynidError
from dynid_ros.identification import LoadResult
from dynid_ros.identification.load_result import section_of_load
from dynid_ros.identification.online.load_change import LoadChange
from dynid_ros.identification.online.online_identification import OnlineIdentification
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Status, silence
from dynid_ros.nodes.shared.joint_states import TorqueSamples
from dynid_ros.nodes.shared.steady_thread import steady_timer
from dynid_ros.nodes.shared.topics import LATCHED, RawSubscription
from dynid_ros.recording.effort import EffortConvention

MAX_CHANGES = 100
"""Latest changes of the load that an estimate lists."""

# The load that an arm carries on a latched topic, for those who reckon with it.


class LoadPublisher:
    """Tells of loads that are decided, and of nothing else.

    Args:
        node: that publishes.
        topic: of `InertiaStamped`.
        frame: the tip link, in which all numbers are.
        largest_error: half width of the mass's 95 % interval over the mass, up to which a load is determined.
        smallest_load: mass, kg, below which the whole interval must be for there to be no load.

    Attributes:
        mass: kg, as published last; None: nothing was.
    """

    def __init__(self, node: Node, topic: str, frame: str, *, largest_error: float, smallest_load: float) -> None:
        self.mass: float | None = None
        self._node, self._frame = node, frame
        self._largest_error, self._smallest_load = largest_error, smallest_load
        self._publisher = node.create_publisher(InertiaStamped, topic, LATCHED)

    def tell(self, result: LoadResult) -> bool:
        """Publish the load, or that there is none, if the data determine it; returns whether they do."""
        low, high = result.confidence_intervals()[0]
        if high < self._smallest_load:
            self.tell_none()
            return True
        if not (low > 0 and high - low < 2 * self._largest_error * result.mass):
            return False
        body = result.possible
        message = self._message(body.mass)
        inertia = message.inertia
        inertia.com.x, inertia.com.y, inertia.com.z = map(float, body.center)
        # NaN where it is not known: at rest no inertia shows.
        inertia.ixx, inertia.ixy, inertia.ixz, inertia.iyy, inertia.iyz, inertia.izz = map(
            float, body.inertia[np.triu_indices(3)]
        )
        self._publish(message)
        return True

    def tell_none(self) -> None:
        """Publish a mass of zero."""
        self._publish(self._message(0.0))

    def _message(self, mass: float) -> InertiaStamped:
        message = InertiaStamped()
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.header.frame_id = self._frame
        message.inertia.m = mass
        return message

    def _publish(self, message: InertiaStamped) -> None:
        self.mass = message.inertia.m
        self._publisher.publish(message)


JOINT_STATES = ("sensor_msgs/msg/JointState",)
DISCOVERY_PERIOD = 0.2
POLL_PERIOD = 0.02
"""s between looks at the queue; to be called back for each message costs more than all that is done with it."""
HIGHEST_RATE = 250.0
"""Largest rate of the means of joint states that an identification begun here takes up, Hz."""
LOWEST_RATE = 0.001
WARNING_PERIOD_S = 5.0
GONE = 0.7
"""Part of the load published last that a change must take away for nothing to be left of it."""


class LiveLoad:
    """Feeds an on-line identification from `joint_states` and says what it knows.

    Messages wait in a deep queue, so that none is lost while an estimate is computed. Those without joints of the arm
    are of a gripper and are passed over. Each estimate is on `~/estimate` (YAML): section `load` of `identified.yaml`,
    with the `time` (s) that it is of and all `changes` of the load that were noticed. `begin` makes the identification,
    at the start and whenever the clock is set back.
    """

    def __init__(
        self,
        node: Node,
        begin: Callable[[], OnlineIdentification],
        convention: EffortConvention,
        publisher: LoadPublisher,
        publish_rate: float,
    ) -> None:
        if not LOWEST_RATE <= publish_rate <= HIGHEST_RATE:
            raise DynidError(
                f"parameter publish_rate is {publish_rate}; expected {LOWEST_RATE:g} to {HIGHEST_RATE:g} estimates per "
                "second"
            )
        self._node, self._begin, self._publisher = node, begin, publisher
        self.identification = begin()
        self._states = TorqueSamples(node, self.identification.robot.joint_names, convention, anew=True)
        self._samples, self._counted = 0, (time.monotonic(), 0)
        self._event, self._latest = "none", "not known yet"
        self._condition, self._decided = math.nan, False
        self._changes: deque[dict[str, float]] = deque(maxlen=MAX_CHANGES)
        self._estimates = node.create_publisher(String, "~/estimate", 10)
        self._topic = RawSubscription(node, "joint_states", JOINT_STATES, self._on_message)
        steady_timer(node, DISCOVERY_PERIOD, self._topic.update)
        steady_timer(node, POLL_PERIOD, self._topic.drain)
        steady_timer(node, 1.0 / publish_rate, self.look)

    def look(self) -> None:
        """Publish the load as it is known now; an estimate that fails is refused with a line in the log."""
        if not self.identification.n_equations:
            return
        self._decided = False
        try:
            self._publish_estimate()
        except Exception as error:  # the node goes on to learn, whatever an estimate fails at
            self._latest = f"not known: {error}"
            self._node.get_logger().warning(
                f"joint_states: no load is published at this moment: {error} ({type(error).__name__}); it is estimated "
                "again with the samples to come",
                throttle_duration_sec=WARNING_PERIOD_S,
            )

    def _publish_estimate(self) -> None:
        """Estimate the load, and publish it on both topics."""
        estimate = self.identification.estimate()
        self._condition = estimate.condition_number
        result = estimate.load()
        # Early samples may be near to no body that can exist, which raises here.
        document = {
            "time": self._states.stamp(estimate.time),
            **section_of_load(result),
            "changes": list(self._changes),
        }
        self._latest = _in_words(result)
        self._decided = self._publisher.tell(result)
        self._estimates.publish(String(data=yaml.safe_dump(document, sort_keys=False)))

    def status(self) -> Status:
        """Level, message and values for diagnostics."""
        now = time.monotonic()
        since, before = self._counted
        self._counted = (now, self._samples)
        values: dict[str, object] = {
            "load": self._latest,
            "told": "nothing" if self._publisher.mass is None else f"{self._publisher.mass:.3f} kg",
            "condition_number": f"{self._condition:.3g}",
            "rate": f"{(self._samples - before) / max(now - since, 1e-9):.1f}",
            "samples": self._samples,
            "dropped": self.identification.missing,
            "refused": self._states.refused,
            "last_change": self._event,
        }
        if problem := self._topic.problem or self._states.problem:
            return ERROR, problem, values
        if warning := silence(self._topic.topic, self._states.received):
            return WARN, warning, values
        return OK, f"load {self._latest}" + ("" if self._decided else "; not determined"), values

    def _on_message(self, _topic: RawSubscription, received: int, data: bytes) -> None:
        sample = self._states.take(deserialize_message(data, JointState), received)
        if sample is None:
            return
        if self._states.was_set_back:
            self._node.get_logger().warning("the load is learnt anew")
            self.identification = self._begin()
        self._samples += 1
        change = self.identification.sample(*sample)
        if change is not None:
            self._tell_change(change)

    def _tell_change(self, change: LoadChange) -> None:
        seconds, noticed = self._states.stamp(change.time), self._states.stamp(change.noticed)
        self._changes.append({"time": seconds, "noticed": noticed, "mass": change.mass})
        what = "picked up" if change.mass > 0 else "dropped"
        late = change.noticed - change.time
        self._event = f"{what} about {abs(change.mass):.2g} kg at {seconds:.3f} s"
        self._node.get_logger().info(f"{self._event}, noticed {late:.2f} s later")
        carried = self._publisher.mass
        if carried and -change.mass > GONE * carried:
            self._publisher.tell_none()


def _in_words(result: LoadResult) -> str:
    low, high = result.confidence_intervals()[0]
    if not math.isfinite(low):
        return "not shown yet"
    return f"{result.mass:.3f} kg (95 %: {low:.3f} to {high:.3f})"
