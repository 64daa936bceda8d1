"""Load the controllers of config/controllers, with the joints of an identified arm, by the spawner of ros2_control."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import yaml
from launch import Action, LaunchContext
from launch_ros.actions import Node

from dynid_ros.errors import DynidError
from dynid_ros.files.share import share_path
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.nodes.shared.launch_description import clock_of, process_options

EFFORT_CONTROLLER = "forward_effort_controller"
SPAWNED_ROUTES = ("effort", "feedforward")
"""Routes that use this controller."""


def spawn_controllers(context: LaunchContext) -> list[Action]:
    """Return the process that loads the effort controller of the route, inactive; nothing unless `spawn` is true.

    Args:
        context: launch arguments `spawn`, `route` and `model_file`, and those of all launch files.

    Returns:
        The process of the spawner, in the namespace of the nodes.

    Raises:
        DynidError: the route has no such controller, or the joints are not known.
    """
    given = context.launch_configurations
    if given["spawn"] != "true":
        return []
    if given["route"] not in SPAWNED_ROUTES:
        raise DynidError(
            f"spawn:=true is for the routes {' and '.join(SPAWNED_ROUTES)}; route {given['route']} uses the controller "
            "that moves the arm, see docs/controllers.md"
        )
    if not given["model_file"]:
        raise DynidError("spawn:=true takes the joints from the model; give model_file:=<identified.yaml>")
    joints = load_identified(given["model_file"])["robot"]["joints"]
    file = write_controller_parameters(given["route"], joints)
    return [
        Node(
            package="controller_manager",
            executable="spawner",
            arguments=[EFFORT_CONTROLLER, "--inactive", "--param-file", str(file)],
            parameters=[clock_of(given)],
            **process_options(given),
        )
    ]


def write_controller_parameters(route: str, joints: list[str]) -> Path:
    """Write the parameters of the effort controller of a route for these joints into a temporary file."""
    shipped: dict[str, Any] = yaml.safe_load(share_path(f"config/controllers/{route}.yaml").read_text(encoding="utf-8"))
    section = shipped["/**"][EFFORT_CONTROLLER]
    section["ros__parameters"]["joints"] = list(joints)
    path = Path(tempfile.mkdtemp(prefix="dynid_controllers_")) / f"{route}.yaml"
    path.write_text(yaml.safe_dump({"/**": {EFFORT_CONTROLLER: section}}, allow_unicode=True), encoding="utf-8")
    return path
