"""ROS 2 nodes, a file each: parameters in, core call, messages out; their parts in folders beside them."""

import dynid_ros.one_thread  # noqa: F401 - before any node imports numpy
