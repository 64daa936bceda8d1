"""Node that identifies the load of an arm.

`~/identify` writes `~/result` and files, like all identification nodes, and publishes the load on the latched topic
`load`. With `live` the load is also estimated from `joint_states` while the arm moves, and published when determined.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

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
from dynid_ros.jobs.kinds import KINDS
from dynid_ros.jobs.load import read_arm
from dynid_ros.jobs.run import IdentificationRun
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Diagnostics, Status, silence
from dynid_ros.nodes.shared.identification_node import IdentificationNode, parameters_of_kind
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.process import run, steady_timer
from dynid_ros.nodes.shared.robot_description import NO_PAYLOAD, TorqueSamples
from dynid_ros.nodes.shared.topics import LATCHED, RawSubscription
from dynid_ros.recording.effort import GRAVITY_COMPENSATED, EffortConvention

MAX_CHANGES = 100
"""Latest changes of the load that an estimate lists."""

PARAMETERS = (
    *parameters_of_kind("load"),
    NodeParameter(
        "load_topic",
        "load",
        "latched geometry_msgs/InertiaStamped: the load in the tip link's frame, inertia about its centre of mass (NaN "
        "where it is not known); mass 0: none. gravity_compensation listens to it",
        required=True,
    ),
    NodeParameter(
        "largest_error",
        0.3,
        "half of the mass's 95 % interval, over the mass, up to which a load is published on load_topic",
    ),
    NodeParameter("smallest_load", 0.1, "kg; if the whole interval is below it, mass 0 is published"),
    NodeParameter("live", False, "learn the load from joint_states while the arm moves, too; needs model_file"),
    NodeParameter("publish_rate", 2.0, "estimates per second, of live"),
    NodeParameter(
        "forgetting",
        math.nan,
        "time constant, s, after which live forgets; nan: it does not, but begins anew when it notices a change",
    ),
)


class LoadPublisher:
    """Publisher of loads that the data determine, on a latched topic.

    Args:
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


class LoadIdentificationNode(IdentificationNode):
    """Node that estimates mass, centre and inertia of a load."""

    def __init__(self) -> None:
        super().__init__("load_identification", "load", PARAMETERS)
        settings = self.settings
        self.load = LoadPublisher(
            self,
            settings.load_topic,
            self.robot.tip,
            largest_error=settings.largest_error,
            smallest_load=settings.smallest_load,
        )
        if settings.live:
            self.live = LiveLoad(self, self._online(), self.convention, self.load, settings.publish_rate)
            Diagnostics(self, self.live.status, "live", self.robot.name)

    def _estimator(self) -> Any:
        """Return the estimator, which reads its files at each run: others may write them while this node waits."""
        settings = self.settings
        for name in ("largest_error", "smallest_load"):
            if not 0 < getattr(settings, name) < math.inf:
                raise DynidError(f"parameter {name} is {getattr(settings, name)}; expected a finite number above 0")
        declared = None
        if self._is_compensated:
            declared = [] if settings.payload == NO_PAYLOAD else settings.payload
        return KINDS[self.kind].build(self.robot, self._values(), **self._files(), declared=declared)

    @property
    def _is_compensated(self) -> bool:
        """Whether the driver's own model of the arm has been subtracted from the torques."""
        return self.settings.source == "torque" and self.settings.effort_convention == GRAVITY_COMPENSATED

    def _convention(self) -> EffortConvention:
        settings = self.settings
        if settings.source == "wrench" and not settings.effort_convention and not settings.live:
            return EffortConvention("torque")  # efforts are not looked at
        if self._is_compensated and not settings.live:
            return EffortConvention(GRAVITY_COMPENSATED, residual=True)
        return super()._convention()

    def _take(self, job: IdentificationRun) -> None:
        if not self.load.publish(job.result):
            topic = self.settings.load_topic
            self.get_logger().warning(f"nothing is published on {topic}: the mass is not determined well enough")

    def _online(self) -> Callable[[], OnlineIdentification]:
        settings = self.settings
        if not settings.model_file:
            raise DynidError("parameter live needs model_file: an identified.yaml of the arm's links without the load")
        if settings.tare_file:
            raise DynidError(
                "parameter live takes no tare_file: it learns all that the arm of model_file does not have"
            )
        arm, _ = read_arm(Path(settings.model_file), self.robot)
        forgetting = None if math.isnan(settings.forgetting) else settings.forgetting
        return partial(
            OnlineIdentification,
            self.robot,
            "load",
            arm,
            forgetting=forgetting,
            max_rate=MAX_RATE_HZ,
            torque_gain_error=settings.torque_gain_error,
        )


main = partial(run, LoadIdentificationNode)
