"""ROS 2 nodes: parameters in, core call, messages out."""

import dynid_ros.one_thread  # noqa: F401 - before any node imports numpy
