"""Launch descriptions of nodes: each parameter in a node's table is a launch argument with its description."""

from importlib import import_module
from types import GenericAlias

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from dynid_ros.nodes.parameters import NodeParameter
from dynid_ros.share import share_path


def describe_nodes(*names: str, **defaults: str) -> LaunchDescription:
    """Start nodes with their parameter files; an argument that is given or has a default replaces a value of the file.

    An argument goes to every node that has a parameter of its name.
    """
    tables = {name: import_module(f"dynid_ros.nodes.{name}").PARAMETERS for name in names}
    parameters = {parameter.name: parameter for table in tables.values() for parameter in table}
    arguments = [
        DeclareLaunchArgument(
            "params_file",
            default_value="",
            description="ROS parameter file; empty: config/<node>.yaml of this package. The arguments below come first",
        )
    ]
    arguments += [
        DeclareLaunchArgument(name, default_value=defaults.get(name, ""), description=parameter.description)
        for name, parameter in parameters.items()
    ]

    def start(context: LaunchContext) -> list[Node]:
        return [
            Node(
                package="dynid_ros",
                executable=name,
                output="screen",
                parameters=[
                    context.launch_configurations["params_file"] or str(share_path(f"config/{name}.yaml")),
                    *(_argument(parameter) for parameter in table if context.launch_configurations[parameter.name]),
                ],
            )
            for name, table in tables.items()
        ]

    return LaunchDescription([*arguments, OpaqueFunction(function=start)])


def _argument(parameter: NodeParameter) -> dict[str, ParameterValue]:
    default = parameter.default
    kind = GenericAlias(list, type(default[0])) if isinstance(default, list) else type(default)
    return {parameter.name: ParameterValue(LaunchConfiguration(parameter.name), value_type=kind)}
