"""What pushes on the arm, and whether something touches it, from now until Ctrl-C; it commands nothing."""

from launch import LaunchDescription

from dynid_ros.nodes.shared.launch_description import describe_nodes


def generate_launch_description() -> LaunchDescription:
    return describe_nodes("external_torque", also=["false_alarms_per_hour", "contact_free_recording"])
