"""ROS 2 nodes, a file each: parameters in, core call, messages out; their parts in folders beside them."""

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

import dynid_ros.one_thread  # noqa: F401 - before any node imports numpy
from dynid_ros.errors import DynidError

NEEDS = {
    "rclpy": "ROS 2 (source it, or install the wheels as `make demo` does)",
    "mujoco": "MuJoCo (pip install mujoco)",
    "rosbags": "rosbags (pip install 'rosbags>=0.11.6,<0.12'); `ros2 bag record` records without it",
}

NAMES = sorted(["demo", *(module.name for module in iter_modules(__path__) if not module.ispkg)])
"""All nodes of this package."""


def module_of(node: str) -> str:
    """Module of the node of this name: a file of this folder, or the coordinator of the demo."""
    return "dynid_ros.demo.coordinator" if node == "demo" else f"{__name__}.{node}"


def import_nodes(names: Iterable[str], what: str) -> None:
    """Import the modules of nodes, for `what` to run them; ROS's wheels find their libraries below the prefix.

    Raises:
        DynidError: ROS 2 or MuJoCo is not installed.
    """
    os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
    for name in names:
        try:
            import_module(module_of(name))
        except ImportError as error:
            missing = (error.name or "").partition(".")[0]
            if missing in ("", "dynid_ros"):
                raise
            raise DynidError(
                f"{what} needs {NEEDS.get(missing, f'{missing} of ROS 2, which is not installed')}"
            ) from error
