"""The whole thread on a simulated arm: excite, record, identify, compensate; ends with verdicts and report.html.

Nodes that read what others identify are started by the coordinator when it is there.
"""

from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable, Shutdown
from launch_ros.actions import Node

from dynid_ros.demo import NODES, OUTPUTS
from dynid_ros.share import share_path


def start(context: LaunchContext) -> list[Node]:
    output = Path(context.launch_configurations["output"]).resolve()
    acts = context.launch_configurations["acts"].split()
    return [
        Node(
            package="dynid_ros",
            executable=name,
            output="screen" if name == "demo" else "log",
            emulate_tty=name == "demo",
            parameters=[
                str(share_path("config/demo.yaml")),
                {parameter: str(output / path) for parameter, path in OUTPUTS.get(name, {}).items()}
                | ({"acts": acts} if name == "demo" and acts else {}),
            ],
            on_exit=[Shutdown(reason=f"{name} ended")],
        )
        for name in (*NODES, "demo")
    ]


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "output", default_value="demo_results", description="folder for bag, model and report"
            ),
            DeclareLaunchArgument(
                "acts",
                default_value="",
                description="gravity hand_guiding links load torque_sensors flexible_joint or some of them; empty: all",
            ),
            SetEnvironmentVariable("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST"),
            OpaqueFunction(function=start),
        ]
    )
