"""ROS 2 nodes, a file each: parameters in, core call, messages out; their parts in folders beside them."""

import dynid_ros.one_thread  # noqa: F401 - before any node imports numpy


def module_of(node: str) -> str:
    """Module of the node of this name: a file of this folder, or the coordinator of the demo."""
    return "dynid_ros.demo.coordinator" if node == "demo" else f"{__name__}.{node}"
