"""Node parameters as a table: name, default, range, meaning; declared once, read as attributes, set while a node runs.

`generate_parameter_library` writes such code from a YAML file, while colcon builds. It is not used: it is in no wheel;
settings are declared once, in the estimators, for `dynid` as well; its validators see one parameter, not whether the
arm can do with it now; and a misspelt name in a parameter file it passes over, as rclpy does.
"""

import difflib
import math
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.topics import require_topic
from dynid_ros.settings import Setting, values_of

KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class NodeParameter:
    """One parameter of a node; its type is that of its default. A list needs a non-empty default to have a type.

    An `adjustable` one may be changed while the node runs, a `configured` one too: it counts from the next
    configuration of a lifecycle node on. All others are read-only. Those called `…_topic` and `…_topics` name topics;
    an empty one means that there is none, unless it is `required`. Numbers lie from `least`, or `above`, to `most`, but
    for the default, which may stand for another one.
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

    @property
    def names_topics(self) -> bool:
        """Whether its value is a topic, or a list of them."""
        return self.name.endswith(("_topic", "_topics"))

    @property
    def bounds(self) -> str:
        """Its range in words; empty: none."""
        most = "" if self.most is None else f"{self.most:g}"
        if self.least is not None:
            return f"{self.least:g} to {most}" if most else f"{self.least:g} or more"
        bounds = (f"above {self.above:g}" if self.above is not None else "", f"at most {most}" if most else "")
        return ", ".join(filter(None, bounds))

    @property
    def descriptor(self) -> ParameterDescriptor:
        """What ROS's tools show of it."""
        made = ParameterDescriptor(
            description=self.description,
            additional_constraints=self.bounds,
            read_only=not (self.adjustable or self.configured),
        )
        low, high = (self.above if self.least is None else self.least), self.most
        if low is not None and high is not None and not (isinstance(self.default, list) or math.isnan(self.default)):
            kind, field = (float, "floating_point_range") if isinstance(self.default, float) else (int, "integer_range")
            ranges = {float: FloatingPointRange, int: IntegerRange}
            setattr(made, field, [ranges[kind](from_value=kind(low), to_value=kind(high))])
        return made

    def checked(self, given: Any, node: str) -> Any:
        """Return `given` as the type of the default, see `coerced`.

        Raises:
            DynidError: it is no such thing, or out of range.
        """
        try:
            value = coerced(self.default, given)
            if self.bounds and repr(value) != repr(self.default):
                each = value if isinstance(value, list) else [value]
                if not all(map(self._holds, each)):
                    raise ValueError(self.bounds)
        except ValueError as error:
            raise DynidError(f"Parameter '{self.name}' of node '{node}' is {given!r}; expected {error}") from error
        return value

    def _holds(self, value: Any) -> bool:
        if math.isnan(value):
            return "nan" in repr(self.default)
        low = (self.least is None or value >= self.least) and (self.above is None or value > self.above)
        return low and (self.most is None or value <= self.most)


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
    text += f"; also {', '.join(others)}" if others else ""
    return NodeParameter(setting.name, default, text, least=setting.least, above=setting.above)


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


Take = Callable[[SimpleNamespace], None]


def declare(node: Node, parameters: Sequence[NodeParameter], take: Take = lambda _: None) -> SimpleNamespace:
    """Declare `parameters` on `node` and return their values as attributes; those of adjustable ones stay the present.

    Args:
        node: that has them.
        parameters: their table.
        take: called with all values before one that is set while the node runs comes into force, to act on it; what it
            raises refuses it.

    Raises:
        DynidError: a value given from outside is not of the default's kind (see `coerced`) or out of range, or is to be
            a topic and cannot be, or is that of another parameter; or a name that is given is not known.
    """
    known = {parameter.name: parameter for parameter in parameters}
    _check_names(node, known)
    values = SimpleNamespace()
    for name, parameter in known.items():
        given = node.declare_parameter(name, parameter.default, ParameterDescriptor(dynamic_typing=True)).value
        node.undeclare_parameter(name)
        value = parameter.checked(given, node.get_name())
        node.declare_parameter(name, value, parameter.descriptor, ignore_override=True)
        setattr(values, name, value)
    _check_topics(node, known, values)

    def as_declared(given: list[Parameter]) -> list[Parameter]:
        """Take 2 for 2.0 and 0.2 for [0.2] of `ros2 param set`, too."""
        return [_as_declared(known.get(each.name), each) for each in given]

    def on_set(given: Sequence[Parameter]) -> SetParametersResult:
        new = {each.name: each.value for each in given if each.name in known}
        live = {name: value for name, value in new.items() if known[name].adjustable}
        try:
            for name, value in new.items():
                known[name].checked(value, node.get_name())
            _check_topics(node, known, SimpleNamespace(**vars(values) | new))
            take(SimpleNamespace(**vars(values) | live))
        except DynidError as error:
            return SetParametersResult(successful=False, reason=str(error))
        except Exception as error:  # a fault of this package; what holds an arm must not end by it
            node.get_logger().error(traceback.format_exc())
            return SetParametersResult(successful=False, reason=f"unexpected {type(error).__name__}: {error}")
        vars(values).update(live)
        if later := sorted(new.keys() - live.keys()):
            node.get_logger().info(f"{', '.join(later)}: for the next configuration")
        return SetParametersResult(successful=True)

    node.add_pre_set_parameters_callback(as_declared)
    node.add_on_set_parameters_callback(on_set)
    return values


def _check_names(node: Node, known: Mapping[str, NodeParameter]) -> None:
    """A misspelt limit is none: refuse what would be passed over, but for what another node has, as below `/**`.

    rclpy lets nobody see what was given but by its private attribute.
    """
    unknown = {
        name for name in getattr(node, "_parameter_overrides", {}) if not node.has_parameter(name)
    } - known.keys()
    if unknown:
        from dynid_ros.files.share import share_path  # noqa: PLC0415 - seldom needed
    for name in sorted(each for each in unknown if not each.startswith("qos_overrides.")):
        entry = re.compile(rf"^ +{re.escape(name)}:", re.MULTILINE)
        if not any(entry.search(file.read_text(encoding="utf-8")) for file in share_path("config").glob("*.yaml")):
            near = difflib.get_close_matches(name, known, 1) or sorted(known)
            raise DynidError(
                f"Parameter '{name}' of node '{node.get_name()}' does not exist; did you mean {', '.join(near)}?"
            )


def _as_declared(known: NodeParameter | None, given: Parameter) -> Parameter:
    if known is not None:
        with suppress(ValueError):
            return Parameter(given.name, value=coerced(known.default, given.value))
    return given


def _check_topics(node: Node, known: Mapping[str, NodeParameter], values: SimpleNamespace) -> None:
    topics: dict[str, str] = {}
    for name, parameter in known.items():
        if not parameter.names_topics:
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


def current(node: Node, parameters: Sequence[NodeParameter]) -> SimpleNamespace:
    """Values that `parameters`, declared before, have now."""
    return SimpleNamespace(**{parameter.name: node.get_parameter(parameter.name).value for parameter in parameters})


def renew(node: Node, values: SimpleNamespace, parameters: Sequence[NodeParameter]) -> None:
    """Have `values` hold what `parameters` are now, also those that wait for a configuration."""
    vars(values).update(vars(current(node, parameters)))
