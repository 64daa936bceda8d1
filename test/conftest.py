"""However the tests are started, their nodes stay on this machine and on a ROS domain of their own."""

import os

os.environ["ROS_DOMAIN_ID"] = str(os.getpid() % 100 + 1)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
