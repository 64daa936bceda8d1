"""Run `dynid demo`: a simulated arm is excited, recorded, identified and compensated; ends with report.html.

All of it is on this machine and on its own ROS domain, whatever ROS_DOMAIN_ID is: no robot receives anything.
"""

import sys

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, Shutdown

from dynid_ros.nodes.shared.launch_description import refuse_unknown

ARGUMENTS = (
    DeclareLaunchArgument("output", default_value="demo_results", description="folder for bag, model and report"),
    DeclareLaunchArgument(
        "acts",
        default_value="",
        description="gravity hand_guiding links load torque_sensors flexible_joint or some of them; empty: all",
    ),
    DeclareLaunchArgument(
        "domain", default_value="", description="ROS domain that nobody is on; empty: one that is free"
    ),
)


def start(context: LaunchContext) -> list[ExecuteProcess]:
    output, acts, domain = (context.launch_configurations[argument.name] for argument in ARGUMENTS)
    options = [
        "--output",
        output,
        *(["--acts", *acts.split()] if acts else []),
        *(["--domain", domain] if domain else []),
    ]
    command = [sys.executable, "-m", "dynid_ros", "demo", *options]
    shutdown = Shutdown(reason="the demo ended")
    return [ExecuteProcess(cmd=command, output="screen", emulate_tty=True, on_exit=[shutdown])]


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([refuse_unknown(ARGUMENTS), *ARGUMENTS, OpaqueFunction(function=start)])
