"""What the links of an arm occupy, and how far they are from each other and from what stands around."""

from dynid_ros.collision.bodies import Bodies
from dynid_ros.collision.obstacles import Obstacle, read_obstacles
from dynid_ros.collision.separation import Distances

__all__ = ["Bodies", "Distances", "Obstacle", "read_obstacles"]
