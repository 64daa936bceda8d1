"""A simulated arm: joint states out, trajectories or efforts in.

`controller:=ros2_control`: the arm is hardware of a real controller manager, started with it, by
`joint_state_topic_hardware_interface` (packages ros2_control, ros2_controllers, joint_state_topic_hardware_interface of
Jazzy or Kilted). The states come from `joint_state_broadcaster` then; `joint_trajectory_controller` is active, and
`forward_effort_controller` is loaded. All are in `namespace`. What they are is in config/controllers/ros2_control.yaml.
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

from dynid_ros.files.bounded import share_path
from dynid_ros.nodes.shared.launch_description import clock_of, describe_nodes, process_options

ACTIVE, LOADED = ("joint_state_broadcaster", "joint_trajectory_controller"), ("forward_effort_controller",)
CONTROLLERS_FILE = DeclareLaunchArgument(
    "controllers_file",
    default_value="",
    description="parameters of the controller manager and its controllers; empty: config/controllers/ros2_control.yaml",
)


def generate_launch_description() -> LaunchDescription:
    simulator = describe_nodes("simulator", also=["controller"], more=[CONTROLLERS_FILE])
    return LaunchDescription([*simulator.entities, OpaqueFunction(function=_manager)])


def _manager(context: LaunchContext) -> list[Node]:
    given = context.launch_configurations
    if given["controller"] != "ros2_control":
        return []
    # the spawner names the file to the manager, which would look for a relative one in a folder of its own
    file = given["controllers_file"] or str(share_path("config/controllers/ros2_control.yaml").resolve())
    common = {"package": "controller_manager", **process_options(given)}
    spawned = [
        Node(executable="spawner", arguments=[*names, "--param-file", file, *more], **common)
        for names, more in ((ACTIVE, []), (LOADED, ["--inactive"]))
    ]
    # the manager gives its clock to its controllers
    return [Node(executable="ros2_control_node", parameters=[file, clock_of(given)], **common), *spawned]
