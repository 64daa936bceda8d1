"""Markers of gravity and load for RViz.

`rviz2 -d $(ros2 pkg prefix --share dynid_ros)/config/dynid.rviz` shows them.
"""

from launch import LaunchDescription

from dynid_ros.nodes.shared.launch_description import describe_nodes


def generate_launch_description() -> LaunchDescription:
    return describe_nodes("gravity_markers")
