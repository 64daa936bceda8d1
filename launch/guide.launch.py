"""Run `dynid guide`: a page in a browser that leads from a URDF to an arm that floats, see docs/guide.md."""

import sys

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, Shutdown

from dynid_ros.nodes.shared.launch_description import refuse_unknown

ARGUMENTS = (
    DeclareLaunchArgument("urdf", description="URDF of the robot"),
    DeclareLaunchArgument("tip", default_value="", description="link that the chain ends at; empty: the flange"),
    DeclareLaunchArgument("namespace", default_value="", description="namespace of the arm's nodes; empty: none"),
    DeclareLaunchArgument("params_file", default_value="", description="ROS parameter file of the nodes; empty: none"),
    DeclareLaunchArgument(
        "simulated", default_value="false", choices=["true", "false"], description="whether the arm is simulated"
    ),
    DeclareLaunchArgument("host", default_value="127.0.0.1", description="address to listen on"),
    DeclareLaunchArgument("port", default_value="8080", description="port to listen on"),
    DeclareLaunchArgument("output", default_value="guide", description="folder of all files of the page"),
)


def start(context: LaunchContext) -> list[ExecuteProcess]:
    given = {argument.name: context.launch_configurations[argument.name] for argument in ARGUMENTS}
    simulated = given.pop("simulated") == "true"
    options = [word for name, value in given.items() if value for word in (f"--{name.replace('_', '-')}", value)]
    command = [sys.executable, "-m", "dynid_ros", "guide", *options, *(["--simulated"] if simulated else [])]
    shutdown = Shutdown(reason="the guide ended")
    return [ExecuteProcess(cmd=command, output="screen", emulate_tty=True, on_exit=[shutdown])]


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([refuse_unknown(ARGUMENTS), *ARGUMENTS, OpaqueFunction(function=start)])
