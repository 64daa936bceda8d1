"""ROS 2 nodes: parameters in, core call, messages out."""
