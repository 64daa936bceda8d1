"""Node that records joint states, torques, wrenches and mocap poses into a rosbag2 folder (MCAP) without losses."""

import time
from collections.abc import Sequence
from functools import partial
from threading import RLock
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from std_msgs.msg import String
from std_srvs.srv import Trigger

from dynid_ros.errors import RecordingError
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Diagnostics, Status, robot_name, silence
from dynid_ros.nodes.shared.parameters import NodeParameter, declare
from dynid_ros.nodes.shared.process import SteadyThread, answer, locked, run_undisturbed, steady_timer
from dynid_ros.nodes.shared.topics import LATCHED, RawSubscription
from dynid_ros.recording.bag_writer import BagWriter, ReceptionTime

PARAMETERS = (
    NodeParameter("output_folder", "recordings", "folder in which each bag gets a folder"),
    NodeParameter("joint_states_topic", "joint_states", "sensor_msgs/JointState", required=True),
    NodeParameter(
        "torque_topics", [""], "separate joint torques: topics of sensor_msgs/JointState or std_msgs/Float64MultiArray"
    ),
    NodeParameter("wrench_topics", [""], "topics of force/torque sensors: geometry_msgs/WrenchStamped"),
    NodeParameter("imu_topics", [""], "IMUs on the base, for the direction of gravity: topics of sensor_msgs/Imu"),
    NodeParameter(
        "pose_topics", [""], "motion capture: topics of geometry_msgs/PoseStamped (bodies) or PoseArray (markers)"
    ),
    NodeParameter(
        "robot_description_topic",
        "robot_description",
        "std_msgs/String with the URDF, stored with the data; empty: none",
    ),
    NodeParameter("extra_topics", [""], "further topics of any installed type"),
    NodeParameter("autostart", False, "record from the start of the node, without ~/start"),
    NodeParameter(
        "motion_state_topic",
        "",
        "std_msgs/String with the state of a motion, such as excitation/state: each motion is recorded, from its "
        "approach to its end, without ~/start and ~/stop; empty: none",
    ),
)
BEGUN_STATE = "approaching"
"""State of the excitation node when a motion begins."""
MOTION_STATES = (BEGUN_STATE, "running")
JOINT_STATE = "sensor_msgs/msg/JointState"
DESCRIPTION = "std_msgs/msg/String"
TOPIC_TYPES = {
    "torque_topics": (JOINT_STATE, "std_msgs/msg/Float64MultiArray"),
    "wrench_topics": ("geometry_msgs/msg/WrenchStamped",),
    "imu_topics": ("sensor_msgs/msg/Imu",),
    "pose_topics": ("geometry_msgs/msg/PoseStamped", "geometry_msgs/msg/PoseArray"),
}
DISCOVERY_PERIOD_S = 0.2
"""Time between two searches for publishers; one search takes some 0.1 ms per topic."""
POLL_PERIOD_S = 0.02
"""Time between two looks for messages."""
FLUSH_PERIOD_S = 0.4
"""Time between two writes to the disk; a killed process loses at most half a second, even if a write is late."""


class Recorder(Node):
    """Node that writes messages between `~/start` and `~/stop`; the latched topic `~/bag` has the folder."""

    _bag: BagWriter | None = None  # a node whose constructor failed is destroyed as well
    _made = False

    def __init__(self, **arguments: Any) -> None:
        super().__init__("recorder", **arguments)
        self.lock = RLock()  # of topics and bag, which a thread and the executor use
        self.settings = declare(self, PARAMETERS)
        self._started = time.monotonic()
        self._last_joint_state = self._started
        self._failure = ""
        self._unwritable: dict[str, str] = {}  # reasons by topic
        self._time = ReceptionTime()
        self._joint_states = RawSubscription(self, self.settings.joint_states_topic, [JOINT_STATE], self._write)
        topics = [self._joint_states]
        for parameter, types in TOPIC_TYPES.items():
            for topic in filter(None, getattr(self.settings, parameter)):
                topics.append(RawSubscription(self, topic, types, self._write))
        self._description = None
        if self.settings.robot_description_topic:
            topic = self.settings.robot_description_topic
            self._description = RawSubscription(self, topic, [DESCRIPTION], self._write, latched=True)
            topics.append(self._description)
        for topic in filter(None, self.settings.extra_topics):
            topics.append(RawSubscription(self, topic, [], self._write, latched=True))
        # A topic that two parameters name is recorded once; the first parameter determines its type.
        self._topics = list({topic.topic: topic for topic in reversed(topics)}.values())[::-1]
        self._announce = self.create_publisher(String, "~/bag", LATCHED)
        self.create_service(Trigger, "~/start", answer(self, self.start))
        self.create_service(Trigger, "~/stop", answer(self, self.stop))
        self._is_following = False
        if self.settings.motion_state_topic:
            self.create_subscription(String, self.settings.motion_state_topic, self._follow_motion, LATCHED)
        steady_timer(self, DISCOVERY_PERIOD_S, self._discover)
        Diagnostics(self, self._status, hardware=self._robot)
        if self.settings.autostart:
            self.get_logger().info(self.start())
        self._flushed = time.monotonic()
        self.steady = SteadyThread(self, self._take, POLL_PERIOD_S)
        self._made = True

    @locked
    def start(self) -> str:
        """Open a new bag and return its folder and the topics without a publisher."""
        if self._bag is not None:
            raise RecordingError(f"already recording to {self._bag.path}; call ~/stop first")
        self._drain()  # older messages do not belong to the recording
        self._bag = bag = BagWriter(self.settings.output_folder)
        self._failure = ""
        self._unwritable = {}
        self._time = ReceptionTime()
        self._started = time.monotonic()
        self._last_joint_state = self._started
        for topic in self._topics:
            topic.lost = 0
            for data in topic.kept:
                self._write(topic, time.time_ns(), data)
        if self._bag is None:
            raise RecordingError(self._failure)
        self._announce.publish(String(data=str(bag.path)))
        missing = [topic.topic for topic in self._topics if not topic.type]
        waiting = f"not published yet: {', '.join(missing)}" if missing else ""
        remarks = [waiting, *self._unwritable.values(), self._find_namesakes()]
        return "; ".join(filter(None, [f"The recorder writes to {bag.path}", *remarks]))

    @locked
    def stop(self) -> str:
        """Write the received messages, close the bag, and return counts, duration and folder."""
        if self._bag is None:
            raise RecordingError(self._failure or "nothing is being recorded; call ~/start first")
        self._drain()
        if self._bag is None:
            raise RecordingError(self._failure)
        bag = self._bag
        self._bag = None
        bag.close()
        counts = ", ".join(f"{topic} {count}" for topic, count in bag.counts.items())
        if not bag.counts.get(self._joint_states.topic):
            raise RecordingError(
                f"no message came on {self._joint_states.topic} while recording {bag.path} "
                f"({counts or 'nor on another topic'}); check joint_states_topic and that the driver runs"
                f"{''.join(f'; {problem}' for problem in self._unwritable.values())}"
            )
        duration = time.monotonic() - self._started
        lost = sum(topic.lost for topic in self._topics)
        remarks = [f"{lost} messages were lost" if lost else "", *self._unwritable.values()]
        return "; ".join(filter(None, [f"The recorder wrote {duration:.1f} s to {bag.path}: {counts}", *remarks]))

    @locked
    def _follow_motion(self, message: String) -> None:
        """Record a motion from its approach to its end, unless `~/start` recorded already."""
        try:
            if message.data == BEGUN_STATE and self._bag is None:
                self._is_following = True
                self.get_logger().info(self.start())
            elif message.data not in MOTION_STATES and self._is_following:
                self._is_following = False
                if self._bag is not None:
                    self.get_logger().info(self.stop())
        except RecordingError as error:
            self.get_logger().error(str(error))

    def end(self) -> None:
        """Close a running recording."""
        if self._made:
            self.steady.end()
        with self.lock:
            if self._bag is not None:
                self._drain()
            bag = self._bag
            self._bag = None
            if bag is not None:
                bag.close()
                self.get_logger().info(f"The bag {bag.path} is closed.")

    def destroy_node(self) -> None:
        """Close a running recording, then destroy the node."""
        try:
            self.end()
        finally:
            super().destroy_node()

    def _write(self, topic: RawSubscription, received: int, data: bytes) -> None:
        if topic is self._joint_states:
            self._last_joint_state = time.monotonic()
        if self._bag is None:
            return
        try:
            if topic.topic not in self._bag.counts and not self._add_topic(self._bag, topic):
                return
            self._bag.write(topic.topic, self._time.of(topic.topic, received), data)
        except RecordingError as error:
            self._fail(error)

    def _add_topic(self, bag: BagWriter, topic: RawSubscription) -> bool:
        """Add a topic to the bag and return whether it can be recorded; if not, the other topics are recorded."""
        if topic.topic in self._unwritable:
            return False
        try:
            bag.add_topic(topic.topic, topic.type, _as_rosbags(topic.offered))
        except RecordingError as error:
            if bag.is_broken:
                raise
            self._unwritable[topic.topic] = f"topic {topic.topic} is not recorded: {error}"
            self.get_logger().error(self._unwritable[topic.topic])
        return topic.topic not in self._unwritable

    def _drain(self) -> None:
        if self._time.look():
            self.get_logger().warning(
                f"This computer's clock was set by {self._time.jump:+.3f} s since the start of the recording; times of "
                "reception continue without the jump."
            )
        for topic in self._topics:
            topic.drain()

    @locked
    def _take(self) -> None:
        self._drain()
        if time.monotonic() - self._flushed < FLUSH_PERIOD_S:
            return
        self._flushed = time.monotonic()
        try:
            if self._bag is not None:
                self._bag.flush()
        except RecordingError as error:
            self._fail(error)

    def _fail(self, error: RecordingError) -> None:
        self._bag = None
        self._failure = str(error)
        self.get_logger().error(f"The recording has stopped: {error}")

    @locked
    def _discover(self) -> None:
        for topic in self._topics:
            topic.update()

    @locked
    def _status(self) -> Status:
        problems = [topic.problem for topic in self._topics if topic.problem] + [*self._unwritable.values()]
        lost = sum(topic.lost for topic in self._topics)
        counts = {} if self._bag is None else self._bag.counts
        values: dict[str, object] = {
            "bag": "" if self._bag is None else self._bag.path,
            "duration": f"{0.0 if self._bag is None else time.monotonic() - self._started:.1f}",
            "messages": sum(counts.values()),
            "lost": lost,
            **counts,
        }
        values |= {f"lost on {topic.topic}": topic.lost for topic in self._topics if topic.lost}
        if self._failure or problems:
            return ERROR, self._failure or problems[0], values
        if self._bag is None:
            return OK, "not recording", values
        if warning := silence(self._joint_states.topic, self._last_joint_state):
            return WARN, warning, values
        if lost:
            return WARN, f"recording; {lost} messages were lost", values
        if warning := self._find_namesakes():
            return WARN, f"recording; {warning}", values
        return OK, "recording", values

    def _find_namesakes(self) -> str:
        name = (self.get_name(), self.get_namespace())
        count = self.get_node_names_and_namespaces().count(name)
        if count < 2:
            return ""
        full = self.get_fully_qualified_name()
        return f"{count} nodes are called {full}, and a service of that name may reach any; rename one (-r __node:=…)"

    def _robot(self) -> str:
        """Return the name of the robot whose description arrived last; empty without one."""
        kept = [data for topic in self._topics if topic is self._description for data in topic.kept]
        return robot_name(deserialize_message(kept[-1], String).data) if kept else ""


def _as_rosbags(profiles: Sequence[QoSProfile]) -> list[Qos]:
    """Return the QoS as a bag stores it, so that `ros2 bag play` offers the same."""
    return [
        Qos(
            QosHistory(int(qos.history)),
            qos.depth,
            QosReliability(int(qos.reliability)),
            QosDurability(int(qos.durability)),
            QosTime(*divmod(qos.deadline.nanoseconds, 10**9)),
            QosTime(*divmod(qos.lifespan.nanoseconds, 10**9)),
            QosLiveliness(int(qos.liveliness)),
            QosTime(*divmod(qos.liveliness_lease_duration.nanoseconds, 10**9)),
            qos.avoid_ros_namespace_conventions,
        )
        for qos in profiles
    ]


main = partial(run_undisturbed, Recorder)
