"""Start launch files of the installed package together."""

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


def describe_launch(
    arguments: Mapping[str, Mapping[str, str]], parameters: Mapping[str, Mapping[str, object]] | None = None
) -> LaunchDescription:
    """Return the description of launch files by name, with their arguments and a common params file.

    Each file is scoped, because the files share names of arguments.
    """
    common = {"params_file": parameter_file(parameters)} if parameters else {}
    included = [
        GroupAction([included_file(name, **common, **values)], scoped=True, forwarding=False)
        for name, values in arguments.items()
    ]
    return LaunchDescription([*included, launch_testing.actions.ReadyToTest()])


def included_file(name: str, **arguments: str) -> IncludeLaunchDescription:
    return IncludeLaunchDescription(str(SHARE / "launch" / f"{name}.launch.py"), launch_arguments=arguments.items())


def parameter_file(parameters: Mapping[str, Mapping[str, object]]) -> str:
    """Write a params file and return its path; the nodes read it later."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
        yaml.safe_dump({f"/**/{node}": {"ros__parameters": values} for node, values in parameters.items()}, file)
    return file.name
