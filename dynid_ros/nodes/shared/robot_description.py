"""URDF of the robot, from a parameter (text or file) or from the latched topic."""

import math
import time
from pathlib import Path
from types import SimpleNamespace

import rclpy
from rclpy.node import Node
from std_msgs.msg import String

from dynid_ros.errors import DynidError, ModelError
from dynid_ros.identified.identified_file import gravity_of, load_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.robot import STANDARD_GRAVITY
from dynid_ros.model.urdf_text import is_urdf_text, urdf_text
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.topics import LATCHED

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
    received: list[str] = []

    def on_description(message: String) -> None:
        received.append(message.data)

    subscription = node.create_subscription(String, "robot_description", on_description, LATCHED)
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
    return checked_description(received[-1], topic)


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
    from dynid_ros.model.flange import arm_from_urdf  # noqa: PLC0415 - not loaded by gravity compensation
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
