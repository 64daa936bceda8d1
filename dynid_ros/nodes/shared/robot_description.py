"""The arm of a node: its URDF, its joint states in a fixed order, and its load."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import rclpy
from geometry_msgs.msg import InertiaStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String

from dynid_ros.control import CarriedLoad
from dynid_ros.errors import ControlError, DynidError, ModelError
from dynid_ros.identified.identified_file import gravity_of, load_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.robot import STANDARD_GRAVITY
from dynid_ros.model.urdf_text import is_urdf_text, urdf_text
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.topics import LATCHED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynid_ros.recording.effort import EffortConvention

MIN_CLOCK_SETBACK_S = 1.0
"""Smallest decrease of the stamps that means that the clock was set back; after a smaller one the message is old."""

LOG_PERIOD_S = 5.0
"""Shortest time between two log messages about one input."""
MAX_CLOCK_DIFFERENCE_NS = 10**9
"""Largest difference between the clocks of two computers."""
LOAD_TOPIC = NodeParameter(
    "load_topic", "load", "latched geometry_msgs/InertiaStamped, the load in the tip link's frame; empty: none"
)


def newest_states(depth: int) -> QoSProfile:
    """Return best-effort QoS: it matches every publisher, and no state waits until a lost one is sent again."""
    return QoSProfile(depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT)


def nanoseconds(header: Header) -> int:
    """Return the stamp of a header, ns; 0 for a message without a stamp."""
    return header.stamp.sec * 10**9 + header.stamp.nanosec


class JointOrder:
    """Reader of joint states in a fixed joint order, whatever their order in the message.

    The positions of the joints in a message are looked up only when its names change.

    Args:
        joint_names: n names, in the order of the returned values.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self.joint_names = list(joint_names)
        self._joints = frozenset(joint_names)
        self._names: list[str] | None = None
        self._index: list[int] = []

    def concerns(self, message: JointState) -> bool:
        """Return whether a message names any joint of this arm; others, such as grippers, may use the same topic."""
        return not self._joints.isdisjoint(message.name)

    def pick(self, message: JointState, field: str) -> list[float]:
        """Return the values (n,) of `field` (position, velocity or effort) in the units of the driver."""
        if message.name != self._names:
            self._find(list(message.name))
        values = getattr(message, field)
        if len(values) != len(message.name):
            raise DynidError(
                f"joint_states has {len(values)} values of {field} for {len(message.name)} names; "
                f"the driver must fill {field}"
            )
        picked = [values[i] for i in self._index]
        for name, value in zip(self.joint_names, picked, strict=True):
            if not math.isfinite(value):
                raise DynidError(f"joint_states: {field} of joint '{name}' is {value}; expected a finite number")
        return picked

    def _find(self, names: list[str]) -> None:
        """Store the place of each joint among the names of a message."""
        counts = Counter(names)
        missing = [name for name in self.joint_names if not counts[name]]
        if missing:
            raise DynidError(f"joint_states lacks joint(s) {', '.join(missing)}; it names {', '.join(names) or 'none'}")
        duplicates = [name for name in self.joint_names if counts[name] > 1]
        if duplicates:
            raise DynidError(f"joint_states names joint(s) {', '.join(duplicates)} more than once")
        self._index = [names.index(name) for name in self.joint_names]
        self._names = names


class TorqueSamples:
    """Converter of joint states to samples of time, position and torque; time is in s since the first state.

    Args:
        node: node that logs when the driver's clock was set back.
        convention: meaning and unit of the field `effort`, from which torque is computed.
        anew: whether time restarts at zero when the driver's clock was set back; otherwise it continues.

    Attributes:
        received: time of arrival of the last state of this arm, before the first state that of creation, s of the
            monotonic clock.
        problem: reason why the last state could not be used; empty if it could.
        refused: number of states that could not be used.
        start: stamp of time 0, ns; None before the first state.
        was_set_back: whether the driver's clock was set back just before the last state.

    Raises:
        DynidError: the convention does not fit the joints.
    """

    def __init__(
        self, node: Node, joint_names: Sequence[str], convention: EffortConvention, *, anew: bool = False
    ) -> None:
        self.received = time.monotonic()
        self.problem = ""
        self.refused = 0
        self.start: int | None = None
        self.was_set_back = False
        self._node = node
        self._order = JointOrder(joint_names)
        self._convention = convention
        self._last_time = -math.inf
        self._anew = anew
        convention.to_torque(np.zeros((1, len(joint_names))))  # raises an error if it does not fit the joints

    def take(self, message: JointState, received: int) -> tuple[float, list[float], NDArray] | None:
        """Return time, s, positions (n,), rad (m), and torques (n,), N m (N), of a new state of this arm.

        Return None for a repeated, old or unusable state, and for a state without joints of this arm.

        Args:
            message: the joint state.
            received: time of reception, ns; replaces a missing stamp.
        """
        if not self._order.concerns(message):
            return None
        self.received = time.monotonic()
        try:
            position = self._order.pick(message, "position")
            torque = self._convention.to_torque(np.array([self._order.pick(message, "effort")]))[0]
        except DynidError as error:
            self.refuse(str(error))
            return None
        self.problem = ""
        stamp = nanoseconds(message.header) or received
        self.start = stamp if self.start is None else self.start
        setback = self._last_time - (stamp - self.start) * 1e-9
        self.was_set_back = setback > MIN_CLOCK_SETBACK_S
        if self.was_set_back:
            self._node.get_logger().warning(f"The clock of joint_states was set back by {setback:.1f} s.")
            # Unless time restarts, this sample gets the time of the last one, and time goes on from there.
            self.start = stamp if self._anew else self.start - round(setback * 1e9)
        elif setback >= 0.0:
            return None  # a repeated or an old state
        self._last_time = (stamp - self.start) * 1e-9
        return self._last_time, position, torque

    def refuse(self, problem: str) -> None:
        """Count the last state as unusable, and store the reason."""
        self.refused += 1
        self.problem = problem

    def stamp(self, moment: float) -> float:
        """Return the driver's stamp, s, that belongs to the time of a sample, s."""
        assert self.start is not None
        return (self.start + round(moment * 1e9)) / 1e9


class Listener:
    """Subscription to one topic of a node; no subscription if the name is empty.

    Attributes:
        problem: fault of the last message; empty without one.
    """

    def __init__(self, node: Node, kind: type, topic: str, act: Callable[[Any], None], qos: QoSProfile | int) -> None:
        self.problem = ""
        self.refused = 0
        self._node = node
        self._subscription = node.create_subscription(kind, topic, act, qos) if topic else None

    def destroy(self) -> None:
        """Remove the topic from the node."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)

    def _refuse(self, problem: str) -> None:
        self.refused += 1
        self.problem = problem
        self._node.get_logger().warning(problem, throttle_duration_sec=LOG_PERIOD_S)


class LoadListener(Listener):
    """Subscription to the load of an arm; a refused load leaves the one in force.

    Args:
        topic: name of the topic; empty without one.
        take: function that puts a load in force; it raises `ControlError` to refuse the load.
        in_force: function that returns the load in force, for messages.
    """

    def __init__(
        self, node: Node, topic: str, take: Callable[[CarriedLoad], None], in_force: Callable[[], CarriedLoad | None]
    ) -> None:
        super().__init__(node, InertiaStamped, topic, self._on_message, LATCHED)
        self._take = take
        self._in_force = in_force
        self._stamp = 0

    def _on_message(self, message: InertiaStamped) -> None:
        try:
            load, stamp = published_load(self._node, message, self._stamp)
            self._take(load)
        except ControlError as error:
            self._refuse(f"a load was refused, the one in force stays ({self._in_force() or 'none'}): {error}")
            return
        self.problem = ""
        self._stamp = stamp or self._stamp
        self._node.get_logger().info(f"The load in force is {load}.", throttle_duration_sec=LOG_PERIOD_S)


def published_load(node: Node, message: InertiaStamped, newest: int) -> tuple[CarriedLoad, int]:
    """Return the load of a message and its stamp, ns; 0 without a stamp.

    Args:
        node: node whose clock is compared with the stamp.
        message: the message.
        newest: stamp of the load in force, ns.
    """
    stamp = nanoseconds(message.header)
    ahead = stamp - node.get_clock().now().nanoseconds
    if stamp < 0:
        raise ControlError(f"its stamp is {stamp / 1e9:.1f} s, before the clock began; expected 0 or a time")
    if stamp and ahead > MAX_CLOCK_DIFFERENCE_NS:
        raise ControlError(f"its stamp is {ahead / 1e9:.1f} s in the future; set the clocks")
    if stamp and stamp < newest:
        raise ControlError(f"its stamp is {(newest - stamp) / 1e9:.3f} s older than that of the load in force")
    inertia = message.inertia
    about_center = tuple(getattr(inertia, name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    center = (inertia.com.x, inertia.com.y, inertia.com.z)
    return CarriedLoad(inertia.m, center, message.header.frame_id.lstrip("/"), about_center), stamp


REMINDER_PERIOD_S = 5.0
POLL_PERIOD_S = 0.02

ROBOT_PARAMETERS = (
    NodeParameter(
        "robot_description", "", "URDF as text, or a path to it; empty: wait for the topic robot_description"
    ),
    NodeParameter("base_link", "", "first link of the chain; empty: the root of the URDF"),
    NodeParameter(
        "tip_link", "", "last link of the chain; several, separated by commas, or all: a tree; empty: the flange"
    ),
    NodeParameter(
        "srdf_file",
        "",
        "SRDF (MoveIt) with the group, and with links that may touch in the excitation (disable_collisions); "
        "empty: none",
    ),
    NodeParameter("group", "", "group of the SRDF with the arm, instead of base_link and tip_link; empty: none"),
    NodeParameter("held_joints", "", "locked joints: joint=position, rad or m, separated by commas"),
    NodeParameter("gravity", [0.0, 0.0, -9.80665], "gravity in the base link's frame, m/s^2"),
)
NO_PAYLOAD = [0.0]
CARRIED = NodeParameter(
    "payload",
    NO_PAYLOAD,
    "payload that the URDF lacks: mass, centre (3) and, if known, inertia about the centre (6: xx xy xz yy yz zz); kg, "
    "m, in the axes of the tip; [0.0]: none",
)


def robot_description(node: Node, value: str, timeout: float = math.inf) -> str:
    """Return the text of the URDF; spin the node while waiting for the topic.

    Args:
        node: node that subscribes.
        value: parameter robot_description; empty: wait for the topic.
        timeout: longest wait, s.
    """
    if value:
        try:
            return urdf_text(value)[0]
        except ModelError as error:
            raise DynidError(f"Parameter robot_description: {error}") from error
    received: list[String] = []
    subscription = node.create_subscription(String, "robot_description", received.append, LATCHED)
    topic = subscription.topic_name
    began = time.monotonic()
    missing = f"no URDF on topic '{topic}' yet; start robot_state_publisher or set parameter robot_description"
    while not received:
        waited = time.monotonic() - began
        if waited > timeout:
            raise DynidError(f"{missing} (waited for {waited:.0f} s)")
        if waited > REMINDER_PERIOD_S:
            node.get_logger().warning(f"The node is waiting: {missing}", throttle_duration_sec=REMINDER_PERIOD_S)
        rclpy.spin_once(node, timeout_sec=0.0)
        time.sleep(POLL_PERIOD_S)  # the middleware would wait by the wall clock, which may be set
    node.destroy_subscription(subscription)
    return checked_description(received[-1].data, topic)


def with_group_ends(settings: SimpleNamespace, urdf: str) -> SimpleNamespace:
    """Return the values of `ROBOT_PARAMETERS` with base and tip link of the group, if there is one.

    Raises:
        ModelError: the group has no such ends; see `chain_ends`.
    """
    if not settings.group:
        return settings
    from dynid_ros.model.link_tree import LinkTree  # noqa: PLC0415 - few arms have a group
    from dynid_ros.model.srdf import chain_ends  # noqa: PLC0415

    ends = settings.base_link, settings.tip_link
    base, tip = chain_ends(LinkTree(urdf, "URDF"), *ends, srdf=settings.srdf_file, group=settings.group)
    return SimpleNamespace(**vars(settings) | {"base_link": base, "tip_link": tip, "group": ""})


def checked_description(text: str, topic: str) -> str:
    """Return the text from a topic if it is a URDF; only a parameter may be a path."""
    if not is_urdf_text(text):
        raise DynidError(f"topic '{topic}' has '{text[:100]}', which is no URDF; expected its text, <robot …")
    return text


def robot_model(node: Node, settings: SimpleNamespace, timeout: float = math.inf) -> RobotModel:
    """Return the robot of the values of `ROBOT_PARAMETERS`; see `robot_description` for the other arguments.

    Raises:
        DynidError: there is no URDF, or it does not have such an arm.
    """
    text = robot_description(node, settings.robot_description, timeout)
    from dynid_ros.model.arm import arm_from_urdf  # noqa: PLC0415 - not loaded by gravity compensation
    from dynid_ros.model.link_tree import held_positions  # noqa: PLC0415 - not loaded by gravity compensation

    held = held_positions([settings.held_joints])
    carried = [] if getattr(settings, CARRIED.name, NO_PAYLOAD) == NO_PAYLOAD else settings.payload
    gravity = settings.gravity
    file = Path(getattr(settings, "model_file", ""))
    if file.is_file():
        gravity = gravity_of(load_identified(file), gravity, STANDARD_GRAVITY)
    robot, remark = arm_from_urdf(
        text,
        settings.tip_link,
        settings.base_link,
        gravity,
        held=held,
        payload=carried,
        srdf=settings.srdf_file,
        group=settings.group,
    )
    if remark:
        node.get_logger().info(f"{remark} (parameter tip_link)")
    return robot
