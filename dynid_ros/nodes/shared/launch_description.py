"""Launch descriptions of nodes: each parameter in a node's table is a launch argument with its description."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import yaml
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from dynid_ros.errors import DynidError
from dynid_ros.files.share import share_path
from dynid_ros.nodes import module_of
from dynid_ros.nodes.shared.parameters import NodeParameter, coerced


@dataclass(frozen=True)
class Option:
    """A node that may be started, and values that arguments have with it where they are not given."""

    node: str
    defaults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """An argument that says which of several nodes is started; the first option is its default."""

    argument: str
    description: str
    options: Mapping[str, Option]


def describe_nodes(*names: str, choice: Choice | None = None, **defaults: str) -> LaunchDescription:
    """Start nodes with their parameter files; an argument that is given or has a default replaces a value of the file.

    An argument goes to every node that is started and has a parameter of its name.
    """
    options = choice.options if choice else {}
    tables = {name: _table(name) for name in (*names, *(option.node for option in options.values()))}
    arguments = [
        DeclareLaunchArgument(
            "params_file",
            default_value="",
            description="ROS parameter file; empty: config/<node>.yaml of this package. The arguments below come first",
        ),
        DeclareLaunchArgument(
            "namespace", default_value="", description="of the nodes, which holds all that is of one arm; empty: none"
        ),
    ]
    if choice:
        arguments.append(
            DeclareLaunchArgument(
                choice.argument,
                default_value=next(iter(options)),
                choices=list(options),
                description=choice.description,
            )
        )
    arguments += [
        DeclareLaunchArgument(name, default_value=defaults.get(name, ""), description=description)
        for name, description in _descriptions(tables.values()).items()
    ]

    def start(context: LaunchContext) -> list[Node]:
        given = context.launch_configurations
        chosen = [options[given[choice.argument]]] if choice else []
        filled = {name: value for option in chosen for name, value in option.defaults.items()}
        return [
            Node(
                package="dynid_ros",
                executable=name,
                namespace=given["namespace"] or None,
                output="screen",
                parameters=[
                    given["params_file"] or str(share_path(f"config/{name}.yaml")),
                    *(
                        _argument(parameter, given[parameter.name] or filled[parameter.name])
                        for parameter in tables[name]
                        if given[parameter.name] or parameter.name in filled
                    ),
                ],
            )
            for name in (*names, *(option.node for option in chosen))
        ]

    return LaunchDescription([*arguments, OpaqueFunction(function=start)])


def _table(name: str) -> tuple[NodeParameter, ...]:
    return import_module(module_of(name)).PARAMETERS


def _descriptions(tables: Iterable[tuple[NodeParameter, ...]]) -> dict[str, str]:
    """By name of the parameter; what different nodes say of it one after another."""
    found: dict[str, dict[str, None]] = {}
    for table in tables:
        for parameter in table:
            found.setdefault(parameter.name, {})[parameter.description] = None
    return {name: " | ".join(descriptions) for name, descriptions in found.items()}


def _argument(parameter: NodeParameter, text: str) -> dict[str, Any]:
    """Value of an argument as its node takes it, e.g. 0.2 or [0.2] for a list of numbers."""
    default = parameter.default
    if isinstance(default, str):
        return {parameter.name: ParameterValue(text, value_type=str)}
    several = isinstance(default, list)
    try:
        # texts of a list without brackets are not looked at as YAML: /left/pose, a=b
        given = text if several and isinstance(default[0], str) and text[:1] != "[" else yaml.safe_load(text)
        return {parameter.name: coerced(default, given)}
    except (ValueError, yaml.YAMLError) as error:
        raise DynidError(f"launch argument {parameter.name}:={text}: expected {error}") from error
