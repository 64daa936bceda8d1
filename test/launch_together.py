"""Launch files of this package as colcon installed it, started together."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import launch_testing.actions
import pytest
import yaml
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription

try:
    SHARE = Path(get_package_share_directory("dynid_ros"))
except PackageNotFoundError:
    pytest.skip("dynid_ros is not installed by colcon", allow_module_level=True)


def launched(
    arguments: Mapping[str, Mapping[str, str]], parameters: Mapping[str, Mapping[str, object]] | None = None
) -> LaunchDescription:
    """Each launch file by its name, with its arguments; scoped, for the files share names of arguments.

    Parameters, by node, are those of the params file of all.
    """
    common = {"params_file": parameter_file(parameters)} if parameters else {}
    included = [
        GroupAction([included_file(name, **common, **given)], scoped=True, forwarding=False)
        for name, given in arguments.items()
    ]
    return LaunchDescription([*included, launch_testing.actions.ReadyToTest()])


def included_file(name: str, **arguments: str) -> IncludeLaunchDescription:
    return IncludeLaunchDescription(str(SHARE / "launch" / f"{name}.launch.py"), launch_arguments=arguments.items())


def parameter_file(parameters: Mapping[str, Mapping[str, object]]) -> str:
    """Path of a file that the nodes, which start later, find."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
        yaml.safe_dump({f"/**/{node}": {"ros__parameters": values} for node, values in parameters.items()}, file)
    return file.name
