"""Launch descriptions of nodes, with the most important parameters as arguments; a params file has all others.

Each node is a process: rclpy components would share one interpreter, and a control loop must not wait for a search. No
node is started again automatically (`respawn`), because its state, such as a design or an enabled torque, is lost, and
an arm that moves unexpectedly is worse than one that stands still. The death of a node is reported in the output of the
launch. The launch continues, because it may contain the driver.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
from dynid_ros.files.bounded import share_path
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.nodes import NAMES, module_of
from dynid_ros.nodes.shared.parameters import NodeParameter, Option, coerce_type

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
"""Parameters of nodes that are also arguments of launch files."""

COMMON_ARGUMENTS = (
    DeclareLaunchArgument(
        "namespace",
        default_value="",
        description="namespace of the nodes of one arm; empty: that of the including file",
    ),
    DeclareLaunchArgument(
        "use_sim_time",
        default_value="false",
        choices=["true", "false", "True", "False"],
        description="whether time comes from /clock, as with a simulator or `ros2 bag play --clock`",
    ),
    DeclareLaunchArgument(
        "log_level",
        default_value="info",
        choices=["debug", "info", "warn", "error", "fatal"],
        description="log level of the nodes",
    ),
    DeclareLaunchArgument(
        "params_file",
        default_value="",
        description="ROS parameter file that overrides config/<node>.yaml of this package; arguments override it",
    ),
)


LAUNCH_FILES = (".launch.py", ".launch.xml", ".launch.yaml", ".launch.yml")
ROS2_LAUNCH_ARGUMENTS = {"launch-prefix", "launch-prefix-filter"}
"""Arguments that `ros2 launch` adds for its own options."""
LAUNCH_ROS_CONFIGURATIONS = {"ros_namespace", "ros_remaps", "global_params"}
"""Launch configurations that actions of launch_ros set for the nodes."""

EFFORT_CONTROLLER = "forward_effort_controller"
SPAWNED_ROUTES = ("effort", "feedforward")
"""Routes that use this controller."""


def refuse_unknown(arguments: Iterable[DeclareLaunchArgument]) -> OpaqueFunction:
    """Return the first action of a launch file, which refuses arguments that the file does not declare.

    `launch` itself accepts any argument. If another launch file includes this one, arguments for this file cannot be
    distinguished from others in its scope; a name that looks misspelt is then reported only.
    """
    declared = [argument.name for argument in arguments]

    def check(context: LaunchContext) -> list[Action]:
        path = context.get_locals_as_dict().get("current_launch_file_path", "")
        started = [word for word in sys.argv if word.endswith(LAUNCH_FILES)]
        is_included = bool(path) and [Path(word).name for word in started[:1]] not in ([], [Path(path).name])
        given = context.launch_configurations.keys() - {*declared, *ROS2_LAUNCH_ARGUMENTS, *LAUNCH_ROS_CONFIGURATIONS}
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
class Choice:
    """Argument that selects one of several nodes; its default is the first option."""

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
    """Return a description that starts nodes with their parameter files; non-empty arguments override the files.

    An argument sets the parameter of its name in every started node that has one.

    Args:
        names: nodes that are always started.
        choice: argument that selects another node; None without one.
        also: names of further arguments.
        more: arguments of other actions of the launch file.
        defaults: further arguments with their defaults.
    """
    options = choice.options if choice else {}
    tables = {name: _table(name) for name in (*names, *(option.node for option in options.values()))}
    offered = {*ARGUMENTS, *also, *defaults}
    arguments = [*COMMON_ARGUMENTS, *more]
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
                on_exit=_report_death,
                **process_options(given),
            )
            for name in (*names, *(option.node for option in chosen))
        ]
        known = f"its nodes are {', '.join(NAMES)}"
        unknown = [
            LogInfo(msg=f"params_file {file}: no node of dynid_ros reads section '{section}'; {known}")
            for file in params_file
            for section in _unknown_sections(file)
        ]
        return [*unknown, *nodes]

    return LaunchDescription([refuse_unknown(arguments), *arguments, OpaqueFunction(function=start)])


def process_options(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of `Node` that follow from `COMMON_ARGUMENTS`: namespace and output."""
    return {
        "namespace": given["namespace"] or None,
        "output": "screen",
        "ros_arguments": ["--log-level", given["log_level"]],
    }


def clock_of(given: Mapping[str, str]) -> dict[str, bool]:
    """Return the parameter that selects the clock of a node."""
    return {"use_sim_time": given["use_sim_time"].lower() == "true"}


def _report_death(event: ProcessExited, context: LaunchContext) -> LogInfo | None:
    if event.returncode == 0 or context.is_shutdown:
        return None
    return LogInfo(
        msg=f"{event.process_name} DIED (exit code {event.returncode}) and is not started again. Its last lines above "
        "give the reason; start this launch file again after that is solved"
    )


def _file(name: str) -> list[str]:
    if name and not Path(name).is_file():
        raise DynidError(f"launch argument params_file:={name}: there is no such file")
    return [name] if name else []


def _unknown_sections(file: str) -> list[str]:
    """Return the sections that no node of this package reads: those of other nodes, and misspelt names."""
    try:
        content = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DynidError(f"launch argument params_file:={file}: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise DynidError(f"launch argument params_file:={file}: expected node names, `ros__parameters` below each")
    unknown = []
    nested = list(content.items())
    for name, section in nested:
        if isinstance(section, dict) and "ros__parameters" not in section:  # a namespace
            nested += [(f"{name}/{inner}", below) for inner, below in section.items()]
        elif str(name).rpartition("/")[2] not in {*NAMES, "*", "**"}:
            unknown.append(str(name))
    return unknown


def _table(name: str) -> tuple[NodeParameter, ...]:
    return import_module(module_of(name)).PARAMETERS


def _descriptions(tables: Iterable[tuple[NodeParameter, ...]]) -> dict[str, str]:
    """Return the description of each parameter by name; descriptions of different nodes are joined."""
    descriptions: dict[str, dict[str, None]] = {}
    for table in tables:
        for parameter in table:
            descriptions.setdefault(parameter.name, {})[parameter.description] = None
    return {name: " | ".join(texts) for name, texts in descriptions.items()}


def _argument(parameter: NodeParameter, text: str) -> dict[str, Any]:
    """Return the value of an argument with the type of the parameter, such as [0.2] for 0.2 in a list of numbers."""
    default = parameter.default
    if isinstance(default, str):
        return {parameter.name: ParameterValue(text, value_type=str)}
    several = isinstance(default, list)
    try:
        # a text for a list without brackets, such as /left/pose or a=b, is not YAML
        given = text if several and isinstance(default[0], str) and text[:1] != "[" else yaml.safe_load(text)
        return {parameter.name: coerce_type(default, given)}
    except (ValueError, yaml.YAMLError) as error:
        raise DynidError(f"launch argument {parameter.name}:={text}: expected {error}") from error


def spawn_controllers(context: LaunchContext) -> list[Action]:
    """Return the process that loads the effort controller of the route, inactive; nothing unless `spawn` is true.

    Args:
        context: launch arguments `spawn`, `route` and `model_file`, and those of all launch files.

    Returns:
        The process of the spawner, in the namespace of the nodes.
    """
    given = context.launch_configurations
    if given["spawn"] != "true":
        return []
    if given["route"] not in SPAWNED_ROUTES:
        raise DynidError(
            f"spawn:=true is for the routes {' and '.join(SPAWNED_ROUTES)}; route {given['route']} uses the controller "
            "that moves the arm, see docs/controllers.md"
        )
    if not given["model_file"]:
        raise DynidError("spawn:=true takes the joints from the model; give model_file:=<identified.yaml>")
    joints = load_identified(given["model_file"])["robot"]["joints"]
    file = write_controller_parameters(given["route"], joints)
    return [
        Node(
            package="controller_manager",
            executable="spawner",
            arguments=[EFFORT_CONTROLLER, "--inactive", "--param-file", str(file)],
            parameters=[clock_of(given)],
            **process_options(given),
        )
    ]


def write_controller_parameters(route: str, joints: list[str]) -> Path:
    """Write the parameters of the effort controller of a route for these joints into a temporary file."""
    shipped: dict[str, Any] = yaml.safe_load(share_path(f"config/controllers/{route}.yaml").read_text(encoding="utf-8"))
    section = shipped["/**"][EFFORT_CONTROLLER]
    section["ros__parameters"]["joints"] = list(joints)
    path = Path(tempfile.mkdtemp(prefix="dynid_controllers_")) / f"{route}.yaml"
    path.write_text(yaml.safe_dump({"/**": {EFFORT_CONTROLLER: section}}, allow_unicode=True), encoding="utf-8")
    return path
