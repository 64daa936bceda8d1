"""A simulated arm: joint states out, trajectories or efforts in."""

from launch import LaunchDescription

from dynid_ros.nodes.shared.launching import describe_nodes


def generate_launch_description() -> LaunchDescription:
    return describe_nodes("simulator")
