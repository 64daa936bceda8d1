"""Two simulated arms, /left and /right, each with all that identifies it: how to include launch files of this package.

Beside real arms their drivers' launch files stand in place of the simulator's. What differs between the arms is in
config/launch/two_arms.yaml, under their namespaces. Then `ros2 service call /left/excitation/design
std_srvs/srv/Trigger`, and what follows in docs/first_hour.md.
"""

from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription
from launch_ros.actions import PushRosNamespace

from dynid_ros.files.bounded import share_path
from dynid_ros.nodes.shared.launch_description import refuse_unknown

IDENTIFY = {"tip_link": "tool", "effort_convention": "torque", "acceleration_limits": "2.0"}


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([refuse_unknown([]), _arm("left"), _arm("right")])


def _arm(name: str) -> GroupAction:
    return GroupAction([PushRosNamespace(name), _included("simulate"), _included("identify", **IDENTIFY)])


def _included(name: str, **arguments: str) -> IncludeLaunchDescription:
    arguments["params_file"] = str(share_path("config/launch/two_arms.yaml"))
    return IncludeLaunchDescription(str(share_path(f"launch/{name}.launch.py")), launch_arguments=arguments.items())
