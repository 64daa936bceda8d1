"""Excitation, recorder and gravity identification beside a robot; their services start each step.

`/excitation/design`, `/recorder/start`, `/excitation/start`, `/recorder/stop`, `/gravity_identification/identify`.
"""

from launch import LaunchDescription

from dynid_ros.nodes.launching import describe_nodes


def generate_launch_description() -> LaunchDescription:
    return describe_nodes("excitation", "recorder", "gravity_identification")
