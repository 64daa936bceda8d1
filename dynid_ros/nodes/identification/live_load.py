"""Live load: on-line identification from `joint_states` while the arm moves."""

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


class LoadPublisher:
    """Publisher of loads that the data determine, on a latched topic.

    Args:
        node: node that publishes.
        topic: topic of `InertiaStamped`.
        frame: tip link, whose frame the numbers refer to.
        largest_error: half of the mass's 95 % interval over the mass, up to which a load is determined.
        smallest_load: mass, kg; an interval below it means that the arm is unloaded.

    Attributes:
        mass: mass that was published last, kg; None: nothing was published.
    """

    def __init__(self, node: Node, topic: str, frame: str, *, largest_error: float, smallest_load: float) -> None:
        self.mass: float | None = None
        self._node = node
        self._frame = frame
        self._largest_error = largest_error
        self._smallest_load = smallest_load
        self._publisher = node.create_publisher(InertiaStamped, topic, LATCHED)

    def publish(self, result: LoadResult) -> bool:
        """Publish the load, or a mass of zero, if the data determine it; return whether they do."""
        low, high = result.confidence_intervals()[0]
        if high < self._smallest_load:
            self.publish_no_load()
            return True
        if not (low > 0 and high - low < 2 * self._largest_error * result.mass):
            return False
        body = result.possible
        message = self._message(body.mass)
        inertia = message.inertia
        inertia.com.x, inertia.com.y, inertia.com.z = map(float, body.center)
        # NaN where the inertia is not known, as from samples at rest.
        inertia.ixx, inertia.ixy, inertia.ixz, inertia.iyy, inertia.iyz, inertia.izz = map(
            float, body.inertia[np.triu_indices(3)]
        )
        self._send(message)
        return True

    def publish_no_load(self) -> None:
        """Publish a mass of zero."""
        self._send(self._message(0.0))

    def _message(self, mass: float) -> InertiaStamped:
        message = InertiaStamped()
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.header.frame_id = self._frame
        message.inertia.m = mass
        return message

    def _send(self, message: InertiaStamped) -> None:
        self.mass = message.inertia.m
        self._publisher.publish(message)


JOINT_STATE_TYPES = ("sensor_msgs/msg/JointState",)
DISCOVERY_PERIOD_S = 0.2
POLL_PERIOD_S = 0.02
"""Period of reading the queue: a callback for each message would cost more than its evaluation."""
MAX_RATE_HZ = 250.0
"""Rate of the means of joint states that the identification takes up at most."""
MIN_PUBLISH_RATE_HZ = 0.001
WARNING_PERIOD_S = 5.0
MIN_DROPPED_FRACTION = 0.7
"""Smallest drop, as a fraction of the published load, that means that no load is left."""


class LiveLoad:
    """Live load of a node: it reads `joint_states` and publishes its estimates.

    Messages wait in a deep queue, so no message is lost while an estimate is computed. Messages without joints of the
    arm belong to a gripper and are ignored. `~/estimate` (YAML) holds the section `load` of `identified.yaml`, its
    `time` (s) and all detected `changes` of the load. `begin` makes the identification, at the start and
    whenever the clock is set back.
    """

    def __init__(
        self,
        node: Node,
        begin: Callable[[], OnlineIdentification],
        convention: EffortConvention,
        publisher: LoadPublisher,
        publish_rate: float,
    ) -> None:
        if not MIN_PUBLISH_RATE_HZ <= publish_rate <= MAX_RATE_HZ:
            raise DynidError(
                f"parameter publish_rate is {publish_rate}; expected {MIN_PUBLISH_RATE_HZ:g} to {MAX_RATE_HZ:g} "
                "estimates per second"
            )
        self._node = node
        self._begin = begin
        self._publisher = publisher
        self.identification = begin()
        self._states = TorqueSamples(node, self.identification.robot.joint_names, convention, anew=True)
        self._samples = 0
        self._counted = (time.monotonic(), 0)
        self._event = "none"
        self._latest = "not known yet"
        self._condition = math.nan
        self._decided = False
        self._changes: deque[dict[str, float]] = deque(maxlen=MAX_CHANGES)
        self._estimates = node.create_publisher(String, "~/estimate", 10)
        self._topic = RawSubscription(node, "joint_states", JOINT_STATE_TYPES, self._on_message)
        steady_timer(node, DISCOVERY_PERIOD_S, self._topic.update)
        steady_timer(node, POLL_PERIOD_S, self._topic.drain)
        steady_timer(node, 1.0 / publish_rate, self.publish_estimate)

    def publish_estimate(self) -> None:
        """Publish the present estimate; a failed estimate is one line in the log."""
        if not self.identification.n_equations:
            return
        self._decided = False
        try:
            self._estimate()
        except Exception as error:  # the node continues to collect samples
            self._latest = f"not known: {error}"
            self._node.get_logger().warning(
                f"joint_states: no load is published at this moment: {error} ({type(error).__name__}); it is estimated "
                "again with the samples to come",
                throttle_duration_sec=WARNING_PERIOD_S,
            )

    def _estimate(self) -> None:
        """Estimate the load, and publish it on both topics."""
        estimate = self.identification.estimate()
        self._condition = estimate.condition_number
        result = estimate.load()
        # Early samples may not allow any physically consistent body: that raises here.
        document = {
            "time": self._states.stamp(estimate.time),
            **section_of_load(result),
            "changes": list(self._changes),
        }
        self._latest = _describe_load(result)
        self._decided = self._publisher.publish(result)
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
            self._node.get_logger().warning("the identification of the load starts again")
            self.identification = self._begin()
        self._samples += 1
        change = self.identification.sample(*sample)
        if change is not None:
            self._record_change(change)

    def _record_change(self, change: LoadChange) -> None:
        seconds = self._states.stamp(change.time)
        noticed = self._states.stamp(change.noticed)
        self._changes.append({"time": seconds, "noticed": noticed, "mass": change.mass})
        what = "picked up" if change.mass > 0 else "dropped"
        late = change.noticed - change.time
        self._event = f"{what} about {abs(change.mass):.2g} kg at {seconds:.3f} s"
        self._node.get_logger().info(f"{self._event}, noticed {late:.2f} s later")
        carried = self._publisher.mass
        if carried and -change.mass > MIN_DROPPED_FRACTION * carried:
            self._publisher.publish_no_load()


def _describe_load(result: LoadResult) -> str:
    low, high = result.confidence_intervals()[0]
    if not math.isfinite(low):
        return "not shown yet"
    return f"{result.mass:.3f} kg (95 %: {low:.3f} to {high:.3f})"
