"""Names of topics, as ROS 2 allows them."""

from rclpy.exceptions import NameValidationException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node

from dynid_ros.errors import DynidError


def require_topic(node: Node, topic: str, what: str) -> None:
    """Refuse what no topic can be called, before rclpy ends the process for it.

    Args:
        node: whose topic it is to be.
        topic: name, absolute, relative or private.
        what: says in an error where the name is from.

    Raises:
        DynidError: ROS 2 allows no such name.

    """
    try:
        node.resolve_topic_name(topic)
    except (NameValidationException, ValueError, UnicodeError, rclpy_implementation.RCLError) as error:
        raise DynidError(
            f"{what} is '{topic}', which is no name of a topic; expected letters, digits, _ and /, no digit behind a /"
        ) from error
