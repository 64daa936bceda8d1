"""Launch files of this package as colcon installed it, started together."""

from collections.abc import Mapping
from pathlib import Path

import launch_testing.actions
import pytest
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription

try:
    SHARE = Path(get_package_share_directory("dynid_ros"))
except PackageNotFoundError:
    pytest.skip("dynid_ros is not installed by colcon", allow_module_level=True)


def launched(arguments: Mapping[str, Mapping[str, str]]) -> LaunchDescription:
    """Each launch file by its name, with its arguments; scoped, for the files share names of arguments."""
    included = [
        GroupAction(
            [IncludeLaunchDescription(str(SHARE / "launch" / f"{name}.launch.py"), launch_arguments=given.items())],
            scoped=True,
            forwarding=False,
        )
        for name, given in arguments.items()
    ]
    return LaunchDescription([*included, launch_testing.actions.ReadyToTest()])
