"""The URDF of the robot: from a parameter (text or file) or from the latched topic."""

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

REMINDER_PERIOD = 5.0
"""s between lines that say what is missing."""
POLL_PERIOD = 0.02
"""s."""

ROBOT_PARAMETERS = (
    NodeParameter(
        "robot_description", "", "URDF as text, or a path to it; empty: wait for the topic robot_description"
    ),
    NodeParameter("base_link", "", "link that the chain starts from; empty: the root of the URDF"),
    NodeParameter(
        "tip_link", "", "link that the chain ends at; several with commas between, or all: a tree; empty: the flange"
    ),
    NodeParameter(
        "srdf_file",
        "",
        "SRDF (MoveIt) with the group; the excitation also takes from it links that may touch (disable_collisions); "
        "empty: none",
    ),
    NodeParameter("group", "", "group of the SRDF that is the arm, in place of base_link and tip_link; empty: none"),
    NodeParameter("held_joints", "", "joints that do not move: joint=position, rad or m, with commas between"),
    NodeParameter("gravity", [0.0, 0.0, -9.80665], "gravity in the base link's frame, m/s^2"),
)
NONE = [0.0]
CARRIED = NodeParameter(
    "payload",
    NONE,
    "what the arm carries that the URDF lacks: mass, centre (3) and, if known, inertia about it (6: "
    "xx xy xz yy yz zz); kg, m, in the axes of the tip; [0.0]: nothing",
)


def robot_description(node: Node, value: str, timeout: float = math.inf) -> str:
    """URDF text from the parameter's `value`, else from the topic; spins `node` while it waits, and says so.

    Raises:
        DynidError: the file does not exist, or nothing, or no URDF, was published within `timeout` seconds.
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
    topic, began = subscription.topic_name, time.monotonic()
    missing = f"no URDF on topic '{topic}' yet; start robot_state_publisher or set parameter robot_description"
    while not received:
        waited = time.monotonic() - began
        if waited > timeout:
            raise DynidError(f"{missing} (waited for {waited:.0f} s)")
        if waited > REMINDER_PERIOD:
            node.get_logger().warning(f"waiting: {missing}", throttle_duration_sec=REMINDER_PERIOD)
        rclpy.spin_once(node, timeout_sec=0.0)
        time.sleep(POLL_PERIOD)  # the middleware would wait by the wall clock, which may be set
    node.destroy_subscription(subscription)
    return described(received[-1], topic)


def with_group_ends(settings: SimpleNamespace, urdf: str) -> SimpleNamespace:
    """Return the values of `ROBOT_PARAMETERS` with the base and tip link of the group that they name, if any.

    Raises:
        ModelError: as `chain_ends`.
    """
    if not settings.group:
        return settings
    from dynid_ros.model.srdf import chain_ends  # noqa: PLC0415 - few arms have a group

    base, tip = chain_ends(urdf, settings.base_link, settings.tip_link, srdf=settings.srdf_file, group=settings.group)
    return SimpleNamespace(**vars(settings) | {"base_link": base, "tip_link": tip, "group": ""})


def described(text: str, topic: str) -> str:
    """The URDF that came on a topic.

    Raises:
        DynidError: it is something else; a path is for whoever starts this node to give, not for a publisher.
    """
    if not is_urdf_text(text):
        raise DynidError(f"topic '{topic}' says '{text[:100]}', which is no URDF; expected its text, <robot …")
    return text


def robot_model(node: Node, settings: SimpleNamespace, timeout: float = math.inf) -> RobotModel:
    """Robot that the values of `ROBOT_PARAMETERS` describe; waits for the topic as `robot_description`.

    Raises:
        DynidError: no URDF, or one that has no such arm.
    """
    text = robot_description(node, settings.robot_description, timeout)
    from dynid_ros.model.flange import arm_from_urdf  # noqa: PLC0415 - gravity compensation has a tip in its file
    from dynid_ros.model.link_tree import held_positions  # noqa: PLC0415 - and held joints

    held = held_positions([settings.held_joints])
    carried = [] if getattr(settings, CARRIED.name, NONE) == NONE else settings.payload
    gravity, file = settings.gravity, Path(getattr(settings, "model_file", ""))
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
