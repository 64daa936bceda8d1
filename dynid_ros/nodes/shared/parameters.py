"""Node parameters as a table of name, default, range and description: declared once, read as attributes.

`generate_parameter_library` generates such code from a YAML file during the colcon build. It is not used, because it is
in no wheel, because settings are declared once, in the estimators, for `dynid` as well, because its validators see one
parameter and not the state of the arm, and because it ignores misspelt names in a parameter file,
as rclpy does.

Parameters of nodes that ROS names in text: "true" is the text of a boolean in a launch file.
"""

import difflib
import math
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.topics import require_topic
from dynid_ros.settings import Setting, values_of


@dataclass(frozen=True)
class Option:
    """Node that may be started, with parameters that belong to the choice.

    Attributes:
        defaults: parameters of all nodes of the choice that a parameter file overrides.
        fixed: parameters that override a parameter file.
    """

    node: str
    defaults: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)


_ALL_JOINTS = {"motion": "fourier"}
_LOAD = {"motion": "fourier", "target": "load"}
IDENTIFICATIONS = {
    "gravity": Option("gravity_identification"),
    "links": Option("link_identification", _ALL_JOINTS),
    "flexible_joints": Option("flexible_joint_identification", _ALL_JOINTS),
    "torque_sensors": Option("torque_sensor_calibration"),
    "load": Option("load_identification", _LOAD),
    "live_load": Option("load_identification", _LOAD | {"live": "true"}),
}
"""Node of each identification, with the motion that it needs; the default is a motion of one joint after the other."""

_FORWARDED = {"output": "effort", "controller": "forward_effort_controller"}
# The position controller holds the arm, so a torque that a killed process left does not matter. Effort in joint_states
# is the sum of both controllers.
_WITH_POSITION_CONTROLLER = {"position_controller": "", "assume_no_effort": "true"}
COMPENSATION_ROUTES = {
    "effort": Option("gravity_compensation", fixed=_FORWARDED),
    "feedforward": Option("gravity_compensation", fixed=_FORWARDED | _WITH_POSITION_CONTROLLER),
    "trajectory": Option(
        "gravity_compensation", fixed={"output": "trajectory", "controller": "joint_trajectory_controller"}
    ),
    "position": Option(
        "gravity_compensation", fixed={"output": "position", "controller": "forward_position_controller"}
    ),
}
"""Routes of the torque to the arm: a torque controller alone, a torque controller with a position controller,
trajectories, or offsets of set-points (docs/controllers.md)."""


TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class NodeParameter:
    """One parameter of a node, which has the type of its default; a list needs a non-empty default to have a type.

    Parameters named `…_topic` and `…_topics` are names of topics. An empty one stands for no topic.

    Attributes:
        default: its value unless another one is given; it may lie outside the range.
        description: its meaning, with unit.
        adjustable: whether it may be changed while the node runs.
        required: whether a topic must not be empty.
        configured: whether a change takes effect at the next configuration of a lifecycle node. Parameters that are
            neither adjustable nor configured are read-only.
        least: smallest number; None for any.
        above: number that must be exceeded; None for any.
        most: largest number; None for any.
        choices: allowed texts; empty for any.
    """

    name: str
    default: Any
    description: str
    adjustable: bool = False
    required: bool = False
    configured: bool = False
    least: float | None = None
    above: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def bounds(self) -> str:
        """Range or choices, for display; empty without any."""
        if self.choices:
            return " or ".join(filter(None, (", ".join(self.choices[:-1]), self.choices[-1] or "nothing")))
        most = "" if self.most is None else f"{self.most:g}"
        if self.least is not None:
            return f"{self.least:g} to {most}" if most else f"{self.least:g} or more"
        bounds = (f"above {self.above:g}" if self.above is not None else "", f"at most {most}" if most else "")
        return ", ".join(filter(None, bounds))

    @property
    def descriptor(self) -> ParameterDescriptor:
        """Descriptor for the tools of ROS."""
        descriptor = ParameterDescriptor(
            description=self.description,
            additional_constraints=self.bounds,
            read_only=not (self.adjustable or self.configured),
        )
        low = self.above if self.least is None else self.least
        high = self.most
        if low is None or high is None or isinstance(self.default, list) or math.isnan(self.default):
            return descriptor
        if isinstance(self.default, float):
            descriptor.floating_point_range = [FloatingPointRange(from_value=float(low), to_value=float(high))]
        else:
            descriptor.integer_range = [IntegerRange(from_value=int(low), to_value=int(high))]
        return descriptor

    def checked(self, value: Any, node: str) -> Any:
        """Return the value as the type of the default; see `coerce_type`."""
        try:
            coerced = coerce_type(self.default, value)
            if self.bounds and repr(coerced) != repr(self.default):
                entries = coerced if isinstance(coerced, list) else [coerced]
                if not all(map(self._holds, entries)):
                    raise ValueError(self.bounds)
        except ValueError as error:
            raise DynidError(f"Parameter '{self.name}' of node '{node}' is {value!r}; expected {error}") from error
        return coerced

    def _holds(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        if math.isnan(value):
            return "nan" in repr(self.default)
        low = (self.least is None or value >= self.least) and (self.above is None or value > self.above)
        return low and (self.most is None or value <= self.most)


def parameters_of(settings: Iterable[Setting]) -> tuple[NodeParameter, ...]:
    """Return a parameter for each setting; ROS has neither None, written as nan, nor empty lists, written as [""]."""
    return tuple(map(_parameter, settings))


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
    text += f"; also {', '.join(others)}" if others else ""
    return NodeParameter(setting.name, default, text, least=setting.least, above=setting.above)


def setting_arguments(settings: Iterable[Setting], parameters: SimpleNamespace) -> dict[str, Any]:
    """Return the arguments of the class that declares the settings, from the values of their parameters."""
    settings = tuple(settings)
    values = {setting.name: _setting_value(setting, getattr(parameters, setting.name)) for setting in settings}
    return values_of(settings, values)


def _setting_value(setting: Setting, value: Any) -> Any:
    if setting.is_texts:
        texts = [text for text in value if text]
        for text in texts:
            if setting.parts and text.count(",") != len(setting.parts) - 1:
                raise DynidError(f"{setting.name} has '{text}'; expected {','.join(setting.parts)}")
        return tuple(tuple(text.split(",")) for text in texts) if setting.parts else tuple(texts)
    if setting.parts:
        return None if all(map(math.isnan, value)) else tuple(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def coerce_type(default: Any, value: Any) -> Any:
    """Return the value as the type of `default`: 2 becomes 2.0, and 0.2 a list of one number.

    Raises:
        ValueError: the value has another type; the message names the expected one.
    """
    if isinstance(default, list):
        values = [value] if isinstance(value, (bool, int, float, str)) else list(value)
        try:
            return [coerce_type(default[0], entry) for entry in values]
        except ValueError as error:
            raise ValueError(f"a list, each {error}") from error
    if isinstance(default, float) and isinstance(value, (int, float, str)) and not isinstance(value, bool):
        with suppress(ValueError):  # YAML reads nan and 1e3 as texts
            return float(value)
    if type(value) is type(default):
        return value
    raise ValueError(TYPE_NAMES[type(default)])


ApplyValues = Callable[[SimpleNamespace], None]


def declare(node: Node, parameters: Sequence[NodeParameter], apply: ApplyValues = lambda _: None) -> SimpleNamespace:
    """Declare parameters and return their values as attributes; those of adjustable parameters stay up to date.

    Args:
        node: node of the parameters.
        parameters: table of the parameters.
        apply: called with all values before a change takes effect; an exception refuses the change.

    Raises:
        DynidError: a value has another type than the default or is out of range, a topic has an invalid name or that of
            another parameter, or the name of a parameter is unknown.
    """
    table = {parameter.name: parameter for parameter in parameters}
    _check_names(node, table)
    values = SimpleNamespace()
    for name, parameter in table.items():
        override = node.declare_parameter(name, parameter.default, ParameterDescriptor(dynamic_typing=True)).value
        node.undeclare_parameter(name)
        value = parameter.checked(override, node.get_name())
        node.declare_parameter(name, value, parameter.descriptor, ignore_override=True)
        setattr(values, name, value)
    _check_topics(node, table, values)

    def coerce_types(changes: list[Parameter]) -> list[Parameter]:
        """Let `ros2 param set` write 2 for 2.0 and 0.2 for [0.2]."""
        return [_with_declared_type(table.get(change.name), change) for change in changes]

    def on_set(changes: Sequence[Parameter]) -> SetParametersResult:
        new = {change.name: change.value for change in changes if change.name in table}
        live = {name: value for name, value in new.items() if table[name].adjustable}
        try:
            for name, value in new.items():
                table[name].checked(value, node.get_name())
            _check_topics(node, table, SimpleNamespace(**vars(values) | new))
            apply(SimpleNamespace(**vars(values) | live))
        except DynidError as error:
            return SetParametersResult(successful=False, reason=str(error))
        except Exception as error:  # a programming error; a node that holds an arm must not end by it
            node.get_logger().error(traceback.format_exc())
            return SetParametersResult(successful=False, reason=f"unexpected {type(error).__name__}: {error}")
        vars(values).update(live)
        if later := sorted(new.keys() - live.keys()):
            node.get_logger().info(f"Changes of {', '.join(later)} take effect at the next configuration.")
        return SetParametersResult(successful=True)

    node.add_pre_set_parameters_callback(coerce_types)
    node.add_on_set_parameters_callback(on_set)
    return values


def _check_names(node: Node, table: Mapping[str, NodeParameter]) -> None:
    """Refuse unknown names, because a misspelt limit would not limit; names of other nodes (below `/**`) are allowed.

    rclpy reveals the given names only by its private attribute.
    """
    overrides = getattr(node, "_parameter_overrides", {})
    unknown = {name for name in overrides if not node.has_parameter(name)} - table.keys()
    if unknown:
        from dynid_ros.files.bounded import share_path  # noqa: PLC0415 - rarely needed
    for name in sorted(name for name in unknown if not name.startswith("qos_overrides.")):
        entry = re.compile(rf"^ +{re.escape(name)}:", re.MULTILINE)
        if not any(entry.search(file.read_text(encoding="utf-8")) for file in share_path("config").glob("*.yaml")):
            near = difflib.get_close_matches(name, table, 1) or sorted(table)
            raise DynidError(
                f"Parameter '{name}' of node '{node.get_name()}' does not exist; did you mean {', '.join(near)}?"
            )


def _with_declared_type(parameter: NodeParameter | None, change: Parameter) -> Parameter:
    if parameter is not None:
        with suppress(ValueError):
            return Parameter(change.name, value=coerce_type(parameter.default, change.value))
    return change


def _check_topics(node: Node, table: Mapping[str, NodeParameter], values: SimpleNamespace) -> None:
    topics: dict[str, str] = {}
    for name, parameter in table.items():
        if not name.endswith(("_topic", "_topics")):
            continue
        value = getattr(values, name)
        for topic in [value] if isinstance(value, str) else value:
            if topic or parameter.required:
                require_topic(node, topic, f"Parameter '{name}' of node '{node.get_name()}'")
        if isinstance(value, str) and value:
            other = topics.setdefault(node.resolve_topic_name(value), name)
            if other != name:
                raise DynidError(
                    f"Parameters '{other}' and '{name}' of node '{node.get_name()}' are both '{value}'; "
                    "give each a topic of its own"
                )


def read_values(node: Node, parameters: Sequence[NodeParameter]) -> SimpleNamespace:
    """Return the present values of declared parameters."""
    return SimpleNamespace(**{parameter.name: node.get_parameter(parameter.name).value for parameter in parameters})


def refresh_values(node: Node, values: SimpleNamespace, parameters: Sequence[NodeParameter]) -> None:
    """Update `values` with the present values of parameters, including those that wait for a configuration."""
    vars(values).update(vars(read_values(node, parameters)))
