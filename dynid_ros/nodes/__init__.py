"""ROS 2 nodes, one file each; folders hold their parts."""

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

import dynid_ros.one_thread  # noqa: F401 - before any node imports numpy
from dynid_ros.errors import DynidError

INSTALL_HINTS = {
    "rclpy": "ROS 2 (source it, or install the wheels as `make demo` does)",
    "mujoco": "MuJoCo (pip install mujoco)",
    "rosbags": "rosbags (pip install 'rosbags>=0.11.6,<0.12'); `ros2 bag record` records without it",
}

NAMES = sorted(["demo", *(module.name for module in iter_modules(__path__) if not module.ispkg)])
"""Names of all nodes of this package."""


def module_of(node: str) -> str:
    """Return the module of a node: a file of this folder, or the coordinator of the demo."""
    return "dynid_ros.demo.coordinator" if node == "demo" else f"{__name__}.{node}"


def import_nodes(names: Iterable[str], what: str) -> None:
    """Import the modules of nodes; the wheels of ROS find their libraries below the prefix of Python."""
    os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
    for name in names:
        try:
            import_module(module_of(name))
        except ImportError as error:
            missing = (error.name or "").partition(".")[0]
            if missing in ("", "dynid_ros"):
                raise
            raise DynidError(
                f"{what} needs {INSTALL_HINTS.get(missing, f'{missing} of ROS 2, which is not installed')}"
            ) from error
