"""The whole thread on a simulated arm: excite, record, identify, compensate; ends with verdicts and report.html.

All of it is on this machine and on a ROS domain of its own, whatever ROS_DOMAIN_ID says: no robot hears of it.
Nodes that read what others identify are started by the coordinator when it is there.
"""

import os
from contextlib import ExitStack
from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch_ros.actions import Node

from dynid_ros.demo.start import NODES, OUTPUTS, alone
from dynid_ros.files.share import share_path
from dynid_ros.nodes.shared.launch_description import refuse_unknown

CLAIMS = ExitStack()  # of the folder and the domain, as long as the launch lives


def start(context: LaunchContext) -> list[Node]:
    output = Path(context.launch_configurations["output"]).resolve()
    CLAIMS.enter_context(alone(output, context.launch_configurations["domain"]))
    environment = {name: os.environ[name] for name in ("ROS_DOMAIN_ID", "ROS_AUTOMATIC_DISCOVERY_RANGE")}
    acts = context.launch_configurations["acts"].split()
    return [
        Node(
            package="dynid_ros",
            executable=name,
            output="screen" if name == "demo" else "log",
            emulate_tty=name == "demo",
            additional_env=environment,
            parameters=[
                str(share_path("config/demo.yaml")),
                {parameter: str(output / path) for parameter, path in OUTPUTS.get(name, {}).items()}
                | ({"acts": acts} if name == "demo" and acts else {}),
            ],
            on_exit=[Shutdown(reason=f"{name} ended")],
        )
        for name in (*NODES, "demo")
    ]


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


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([refuse_unknown(ARGUMENTS), *ARGUMENTS, OpaqueFunction(function=start)])
