"""The load that an arm carries, learnt from `joint_states` while it moves."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import yaml
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from dynid_ros.errors import DynidError
from dynid_ros.identification import LoadResult
from dynid_ros.identification.online.load_change import LoadChange
from dynid_ros.identification.online.online_identification import OnlineIdentification
from dynid_ros.identified.load import load_section
from dynid_ros.nodes.identifying.load_publisher import LoadPublisher
from dynid_ros.nodes.identifying.sample_means import SampleMeans
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Status, silence
from dynid_ros.nodes.shared.joint_states import JointOrder
from dynid_ros.nodes.shared.raw_subscription import RawSubscription
from dynid_ros.recording.effort import EffortConvention

JOINT_STATES = ("sensor_msgs/msg/JointState",)
DISCOVERY_PERIOD = 0.2
POLL_PERIOD = 0.02
"""s between looks at the queue; to be called back for each message costs more than all that is done with it."""
SET_BACK = 1.0
"""s by which a stamp must be earlier than one before for the clock to have been set back."""
HIGHEST_RATE = 250.0
"""Hz; of faster joint states means are taken up."""
LOWEST_RATE = 0.001
GONE = 0.7
"""Part of the load told last that a change must take away for nothing to be left of it."""


class LiveLoad:
    """Feeds an on-line identification from `joint_states` and tells what it knows.

    Messages wait in a deep queue, so that none is lost while an estimate is computed. Those without joints of the arm
    are of a gripper and are passed over. Each estimate is on `~/estimate` (YAML): section `load` of `identified.yaml`,
    with the `time` (s) that it is of and all `changes` of the load that were noticed.

    Args:
        node: the node to subscribe with.
        begin: makes the identification, at the start and whenever the clock is set back.
        convention: what effort is.
        publisher: told of loads.
        publish_rate: estimates per second.

    Attributes:
        identification: at work.

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
        self._node, self._begin, self._convention, self._publisher = node, begin, convention, publisher
        self.identification = begin()
        names = self.identification.robot.joint_names
        self._joints, self._order = frozenset(names), JointOrder(names)
        convention.to_torque(np.zeros((1, len(names))))  # raises before the first joint state
        self._start: int | None = None
        self._last, self._means = -math.inf, SampleMeans(HIGHEST_RATE)
        self._samples, self._refused = 0, 0
        self._received, self._counted = time.monotonic(), (time.monotonic(), 0)
        self._problem, self._event, self._latest = "", "none", "not known yet"
        self._condition, self._decided = math.nan, False
        self._changes: list[dict[str, float]] = []
        self._estimates = node.create_publisher(String, "~/estimate", 10)
        self._topic = RawSubscription(node, "joint_states", JOINT_STATES, self._on_message)
        # simulated time may stand still
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(DISCOVERY_PERIOD, self._topic.update, clock=steady)
        node.create_timer(POLL_PERIOD, self._topic.drain, clock=steady)
        node.create_timer(1.0 / publish_rate, self.look, clock=steady)

    def look(self) -> None:
        """Tell of the load as it is known now."""
        if not self.identification.n_equations:
            return
        estimate = self.identification.estimate()
        self._condition, self._decided = estimate.condition_number, False
        try:
            result = estimate.load()
            self._latest = _in_words(result)
            self._decided = self._publisher.tell(result)
        except DynidError as error:  # no body is near to what the first samples say
            self._latest = f"not known: {error}"
        document = {"time": self._seconds(estimate.time), **load_section(result), "changes": self._changes}
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
            "dropped": self._means.missing,
            "refused": self._refused,
            "last_change": self._event,
        }
        if self._topic.problem or self._problem:
            return ERROR, self._topic.problem or self._problem, values
        if complaint := silence(self._topic.topic, self._received):
            return WARN, complaint, values
        return OK, f"load {self._latest}" + ("" if self._decided else "; not decided"), values

    def _on_message(self, _topic: RawSubscription, received: int, data: bytes) -> None:
        message = deserialize_message(data, JointState)
        if self._joints.isdisjoint(message.name):
            return
        self._received = time.monotonic()
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec or received
        try:
            position = self._order.pick(message, "position")
            effort = self._order.pick(message, "effort")
        except DynidError as error:
            self._refused += 1
            self._problem = str(error)
            return
        self._problem = ""
        self._take(stamp, position, self._convention.to_torque(np.array([effort]))[0])

    def _take(self, stamp: int, position: list[float], torque: np.ndarray) -> None:
        if self._start is None:
            self._start = stamp
        now = (stamp - self._start) * 1e-9
        step = now - self._last
        if step < -SET_BACK:
            self._restart(stamp, -step)
            now = 0.0
        elif step <= 0.0:
            return  # the same state sent again is no news of the arm, nor is an old one
        self._last = now
        self._samples += 1
        mean = self._means.add(now, position, torque)
        change = None if mean is None else self.identification.sample(*mean)
        if change is not None:
            self._tell_change(change)

    def _restart(self, stamp: int, back: float) -> None:
        self._node.get_logger().warning(
            f"joint_states: its clock was set back by {back:.1f} s; the load is learnt anew"
        )
        self.identification, self._means = self._begin(), SampleMeans(HIGHEST_RATE)
        self._start = stamp

    def _tell_change(self, change: LoadChange) -> None:
        seconds = self._seconds(change.time)
        self._changes.append({"time": seconds, "noticed": self._seconds(change.noticed), "mass": change.mass})
        what = "picked up" if change.mass > 0 else "dropped"
        late = change.noticed - change.time
        self._event = f"{what} about {abs(change.mass):.2g} kg at {seconds:.3f} s"
        self._node.get_logger().info(f"{self._event}, noticed {late:.2f} s later")
        carried = self._publisher.mass
        if carried and -change.mass > GONE * carried:
            self._publisher.tell_none()

    def _seconds(self, time: float) -> float:
        """Stamp, s, of a time of the identification."""
        assert self._start is not None
        return (self._start + round(time * 1e9)) / 1e9


def _in_words(result: LoadResult) -> str:
    low, high = result.confidence_intervals()[0]
    if not math.isfinite(low):
        return "not shown yet"
    return f"{result.mass:.3f} kg (95 %: {low:.3f} to {high:.3f})"
