"""Launch descriptions of nodes: the arguments that matter, as other packages name them; all else in a params file.

Nodes are processes of their own: rclpy components would share one interpreter, and a control loop must not wait for a
search. None is started again by itself (`respawn`): what it knew is gone, a design or a torque that was enabled, and an
arm that moves anew unasked is worse than one that stands. That one died is said where the launch is looked at; the
launch goes on, as the driver may be a part of it.
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from launch import Action, LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction
from launch.events.process import ProcessExited
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from dynid_ros.errors import DynidError
from dynid_ros.files.share import share_path
from dynid_ros.nodes import NAMES, module_of
from dynid_ros.nodes.shared.parameters import NodeParameter, coerce_type

ARGUMENTS = (
    "robot_description",
    "tip_link",
    "effort_convention",
    "motor_gains",
    "motion",
    "acceleration_limits",
    "model_file",
    "scale",
)
"""Parameters of nodes that are arguments of launch files too."""

COMMON = (
    DeclareLaunchArgument(
        "namespace",
        default_value="",
        description="of the nodes, which holds all that is of one arm; empty: that of the including file",
    ),
    DeclareLaunchArgument(
        "use_sim_time",
        default_value="false",
        choices=["true", "false", "True", "False"],
        description="whether time is that of /clock: of a simulator, or of `ros2 bag play --clock`",
    ),
    DeclareLaunchArgument(
        "log_level",
        default_value="info",
        choices=["debug", "info", "warn", "error", "fatal"],
        description="of the nodes",
    ),
    DeclareLaunchArgument(
        "params_file",
        default_value="",
        description="ROS parameter file, on top of config/<node>.yaml of this package; arguments here come first",
    ),
)


LAUNCH_FILES = (".launch.py", ".launch.xml", ".launch.yaml", ".launch.yml")
OF_ROS2_LAUNCH = {"launch-prefix", "launch-prefix-filter"}
"""Arguments that `ros2 launch` adds for its own options."""
OF_LAUNCH_ROS = {"ros_namespace", "ros_remaps", "global_params"}
"""Launch configurations that actions of launch_ros leave for the nodes."""


def refuse_unknown(arguments: Iterable[DeclareLaunchArgument]) -> OpaqueFunction:
    """Return the first action of a launch file: it refuses arguments that the file does not declare.

    `launch` itself takes any argument without a word. What another launch file has in its scope when it includes this
    one cannot be told from arguments that are meant for this one: a name that looks misspelt is reported then.
    """
    declared = [argument.name for argument in arguments]

    def check(context: LaunchContext) -> list[Action]:
        path = context.get_locals_as_dict().get("current_launch_file_path", "")
        started = [word for word in sys.argv if word.endswith(LAUNCH_FILES)]
        is_included = bool(path) and [Path(word).name for word in started[:1]] not in ([], [Path(path).name])
        given = context.launch_configurations.keys() - {*declared, *OF_ROS2_LAUNCH, *OF_LAUNCH_ROS}
        if path:
            given &= set() if is_included else {word.partition(":=")[0] for word in context.argv or ()}
        for name in sorted(given):
            near = [f"; did you mean {one}" for one in get_close_matches(name, declared, 1)]
            raise DynidError(
                f"launch argument {name}:={context.launch_configurations[name]} is not known{''.join(near)}; this file "
                f"takes {', '.join(sorted(declared)) or 'none'}, and other parameters belong in params_file"
            )
        scope = sorted(context.launch_configurations.keys() - {*declared}) if is_included else []
        return [
            LogInfo(msg=f"launch argument {name} is none of {Path(path).name}; if it is meant for it, it is {near[0]}")
            for name in scope
            if (near := get_close_matches(name, declared, 1, 0.8))
        ]

    return OpaqueFunction(function=check)


@dataclass(frozen=True)
class Option:
    """A node that may be started, what parameters are by default then, and what they are whatever a file says."""

    node: str
    defaults: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """An argument that says which of several nodes is started; the first option is its default."""

    argument: str
    description: str
    options: Mapping[str, Option]


def describe_nodes(
    *names: str,
    choice: Choice | None = None,
    also: Iterable[str] = (),
    more: Iterable[DeclareLaunchArgument] = (),
    **defaults: str,
) -> LaunchDescription:
    """Start nodes with their parameter files; an argument that is given or has a default replaces a value of the file.

    An argument goes to every node that is started and has a parameter of its name: those of `ARGUMENTS`, `also` and
    `defaults`. The arguments `more` are those of other actions of the launch file.
    """
    options = choice.options if choice else {}
    tables = {name: _table(name) for name in (*names, *(option.node for option in options.values()))}
    offered = {*ARGUMENTS, *also, *defaults}
    arguments = [*COMMON, *more]
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
        if name in offered
    ]

    def start(context: LaunchContext) -> list[Action]:
        given = context.launch_configurations
        chosen = [options[given[choice.argument]]] if choice else []
        filled = {name: value for option in chosen for name, value in option.defaults.items()}
        fixed = {name: value for option in chosen for name, value in option.fixed.items()}
        fixed |= {name: given[name] for name in offered & {*given} if given[name]}
        params_file = _file(given["params_file"])
        nodes = [
            Node(
                package="dynid_ros",
                executable=name,
                parameters=[
                    str(share_path(f"config/{name}.yaml")),
                    *(_argument(row, filled[row.name]) for row in tables[name] if row.name in filled),
                    *params_file,
                    *(_argument(row, fixed[row.name]) for row in tables[name] if row.name in fixed),
                    clock_of(given),
                ],
                on_exit=_say_that_it_ended,
                **process_options(given),
            )
            for name in (*names, *(option.node for option in chosen))
        ]
        return [*(_say_that_nobody_reads(file, section) for file in params_file for section in _foreign(file)), *nodes]

    return LaunchDescription([refuse_unknown(arguments), *arguments, OpaqueFunction(function=start)])


def process_options(given: Mapping[str, str]) -> dict[str, Any]:
    """What `Node` takes of the arguments that every launch file here has: where it is, and what it says."""
    return {
        "namespace": given["namespace"] or None,
        "output": "screen",
        "ros_arguments": ["--log-level", given["log_level"]],
    }


def clock_of(given: Mapping[str, str]) -> dict[str, bool]:
    """The parameter that says whose time a node has."""
    return {"use_sim_time": given["use_sim_time"].lower() == "true"}


def _say_that_it_ended(event: ProcessExited, context: LaunchContext) -> LogInfo | None:
    if event.returncode == 0 or context.is_shutdown:
        return None
    return LogInfo(
        msg=f"{event.process_name} DIED (exit code {event.returncode}) and is not started again: what it did for the "
        "arm is done no more. Its last lines above say why; then start this launch file anew"
    )


def _file(name: str) -> list[str]:
    if name and not Path(name).is_file():
        raise DynidError(f"launch argument params_file:={name}: there is no such file")
    return [name] if name else []


def _foreign(file: str) -> list[str]:
    """Sections that no node of this package reads, of which ROS says nothing: others' nodes, and names misspelt."""
    try:
        content = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DynidError(f"launch argument params_file:={file}: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise DynidError(f"launch argument params_file:={file}: expected node names, `ros__parameters` below each")
    found, nested = [], list(content.items())
    for name, section in nested:
        if isinstance(section, dict) and "ros__parameters" not in section:  # a namespace
            nested += [(f"{name}/{inner}", below) for inner, below in section.items()]
        elif str(name).rpartition("/")[2] not in {*NAMES, "*", "**"}:
            found.append(str(name))
    return found


def _say_that_nobody_reads(file: str, section: str) -> LogInfo:
    return LogInfo(
        msg=f"params_file {file}: section '{section}' is of no node of dynid_ros, whose nodes are {', '.join(NAMES)}"
    )


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
        return {parameter.name: coerce_type(default, given)}
    except (ValueError, yaml.YAMLError) as error:
        raise DynidError(f"launch argument {parameter.name}:={text}: expected {error}") from error
