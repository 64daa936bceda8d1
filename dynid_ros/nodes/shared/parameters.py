"""Node parameters as a table: name, default, meaning; declared once, read as attributes."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException
from rclpy.node import Node

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.topic_names import require_topic


@dataclass(frozen=True)
class NodeParameter:
    """One parameter of a node; its type is that of its default. A list needs a non-empty default to have a type.

    An `adjustable` one may be changed while the node runs, all others are read-only. Those called `…_topic` and
    `…_topics` name topics; an empty one means that there is none, unless it is `required`.
    """

    name: str
    default: Any
    description: str
    adjustable: bool = False
    required: bool = False

    @property
    def names_topics(self) -> bool:
        """Whether its value is a topic, or a list of them."""
        return self.name.endswith(("_topic", "_topics"))


def declare(node: Node, parameters: Sequence[NodeParameter]) -> SimpleNamespace:
    """Declare `parameters` on `node` and return their values as attributes.

    Raises:
        DynidError: a value given from outside has another type than the default, or is to be a topic and
            cannot be, or is that of another parameter.

    """
    values = SimpleNamespace()
    topics: dict[str, str] = {}
    for parameter in parameters:
        descriptor = ParameterDescriptor(description=parameter.description, read_only=not parameter.adjustable)
        try:
            value = node.declare_parameter(parameter.name, parameter.default, descriptor).value
        except InvalidParameterTypeException as error:
            kind = type(parameter.default).__name__
            raise DynidError(
                f"Parameter '{parameter.name}' of node '{node.get_name()}' must be a {kind}: {error}"
            ) from error
        if parameter.names_topics:
            for topic in [value] if isinstance(value, str) else value:
                if topic or parameter.required:
                    require_topic(node, topic, f"Parameter '{parameter.name}' of node '{node.get_name()}'")
            if isinstance(value, str) and value:
                other = topics.setdefault(node.resolve_topic_name(value), parameter.name)
                if other != parameter.name:
                    raise DynidError(
                        f"Parameters '{other}' and '{parameter.name}' of node '{node.get_name()}' are both '{value}'; "
                        "give each a topic of its own"
                    )
        setattr(values, parameter.name, value)
    return values


def current(node: Node, parameters: Sequence[NodeParameter]) -> SimpleNamespace:
    """Values that `parameters`, declared before, have now."""
    return SimpleNamespace(**{parameter.name: node.get_parameter(parameter.name).value for parameter in parameters})
