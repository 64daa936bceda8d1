"""Node parameters as a table: name, default, meaning; declared once, read as attributes."""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.topics import require_topic
from dynid_ros.settings import Setting, values_of

KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


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


def parameters_of(settings: Iterable[Setting]) -> tuple[NodeParameter, ...]:
    """Return a parameter for each setting; ROS has no None, for which a number has nan, nor an empty list: [""]."""
    return tuple(_parameter(each) for each in settings)


def _parameter(setting: Setting) -> NodeParameter:
    default = setting.default
    if setting.is_texts:
        default = list(default) or [""]
    elif setting.is_numbers:
        default = list(default)
    elif setting.parts:
        default = [math.nan] * len(setting.parts) if default is None else list(default)
    elif default is None:
        default = math.nan
    others = [choice for choice in setting.choices if choice not in setting.help]
    text = setting.description.replace("; default:", "; empty:" if default in ("", [""]) else "; nan:")
    text += f", each {','.join(setting.parts)}; empty: none" if setting.is_texts and setting.parts else ""
    return NodeParameter(setting.name, default, text + (f"; also {', '.join(others)}" if others else ""))


def given(settings: Iterable[Setting], parameters: SimpleNamespace) -> dict[str, Any]:
    """Return arguments of the class that declares the settings, of the values of their parameters."""
    settings = tuple(settings)
    return values_of(settings, {each.name: _given(each, getattr(parameters, each.name)) for each in settings})


def _given(setting: Setting, value: Any) -> Any:
    if setting.is_texts:
        texts = [text for text in value if text]
        for text in texts:
            if setting.parts and text.count(",") != len(setting.parts) - 1:
                raise DynidError(f"{setting.name} has '{text}'; expected {','.join(setting.parts)}")
        return tuple(tuple(text.split(",")) for text in texts) if setting.parts else tuple(texts)
    if setting.parts:
        return None if all(map(math.isnan, value)) else tuple(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def coerced(default: Any, given: Any) -> Any:
    """Return `given` as the type of `default`: 2 is a number as 2.0 is, and 0.2 a list of one number.

    Raises:
        ValueError: it is no such thing; the message says what is.
    """
    if isinstance(default, list):
        values = [given] if isinstance(given, (bool, int, float, str)) else list(given)
        try:
            return [coerced(default[0], value) for value in values]
        except ValueError as error:
            raise ValueError(f"a list, each {error}") from error
    if isinstance(default, float) and isinstance(given, (int, float, str)) and not isinstance(given, bool):
        with suppress(ValueError):  # YAML takes nan and 1e3 for texts
            return float(given)
    if type(given) is type(default):
        return given
    raise ValueError(KINDS[type(default)])


def declare(node: Node, parameters: Sequence[NodeParameter]) -> SimpleNamespace:
    """Declare `parameters` on `node` and return their values as attributes.

    Raises:
        DynidError: a value given from outside is not of the default's kind (see `coerced`), or is to be a topic and
            cannot be, or is that of another parameter.
    """
    values = SimpleNamespace()
    topics: dict[str, str] = {}
    for parameter in parameters:
        descriptor = ParameterDescriptor(description=parameter.description, read_only=not parameter.adjustable)
        of_any_type = ParameterDescriptor(dynamic_typing=True)
        given = node.declare_parameter(parameter.name, parameter.default, of_any_type).value
        node.undeclare_parameter(parameter.name)
        try:
            value = coerced(parameter.default, given)
        except ValueError as error:
            raise DynidError(
                f"Parameter '{parameter.name}' of node '{node.get_name()}' is {given!r}; expected {error}"
            ) from error
        node.declare_parameter(parameter.name, value, descriptor, ignore_override=True)
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
