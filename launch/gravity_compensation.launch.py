"""Gravity compensation, configured and active, silent until `~/enable`; `autostart:=false` leaves it unconfigured."""

from launch import LaunchDescription

from dynid_ros.nodes.shared.launch_description import describe_nodes


def generate_launch_description() -> LaunchDescription:
    return describe_nodes("gravity_compensation", autostart="true")
