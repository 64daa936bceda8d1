"""Gravity compensation with a running controller, which is asked for its joints; silent until `~/enable`.

`route:=effort`: `forward_effort_controller` alone moves the arm. `route:=feedforward`: it runs with a position
controller, and the hardware sums the two. `route:=trajectory`: `joint_trajectory_controller` passes the torque on with
the pose; it drops the torque when it aborts, so it must never be the only thing that holds the arm. `route:=position`:
set-points of position servos pass through the node, which adds the offsets that carry gravity. What to load into the
controller manager is in config/controllers/<route>.yaml, how and what to check in docs/controllers.md.
`spawn:=true` loads forward_effort_controller, inactive, with the joints of `model_file`.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from dynid_ros.nodes.shared.launch_description import Choice, describe_nodes, spawn_controllers
from dynid_ros.nodes.shared.parameters import COMPENSATION_ROUTES

SPAWN = DeclareLaunchArgument(
    "spawn",
    default_value="false",
    choices=["true", "false"],
    description="whether to load forward_effort_controller, inactive, with the joints of model_file",
)
ROUTES = Choice(
    "route",
    "how torque comes to the arm: alone, with a position controller, in trajectories, or as offsets of set-points",
    COMPENSATION_ROUTES,
)


def generate_launch_description() -> LaunchDescription:
    compensation = describe_nodes(choice=ROUTES, more=[SPAWN], autostart="true")
    return LaunchDescription([*compensation.entities, OpaqueFunction(function=spawn_controllers)])
