"""Record from now until Ctrl-C; with `autostart:=false`, from `~/start` to `~/stop`."""

from launch import LaunchDescription

from dynid_ros.nodes.shared.launch_description import describe_nodes


def generate_launch_description() -> LaunchDescription:
    return describe_nodes("recorder", also=["output_folder"], autostart="true")
