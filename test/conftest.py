"""However the tests are started: nodes stay on this machine and on a ROS domain of their own, BLAS on one thread."""

import os

import dynid_ros.one_thread  # noqa: F401 - before any test imports numpy

os.environ["ROS_DOMAIN_ID"] = str(os.getpid() % 100 + 1)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
