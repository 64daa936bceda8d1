"""What the links of an arm occupy, and how far they are from each other and from what stands around."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.collision.capsules import Bodies
    from dynid_ros.collision.clearance import Distances
    from dynid_ros.collision.obstacles import Obstacle, read_obstacles

__all__ = ["Bodies", "Distances", "Obstacle", "read_obstacles"]

offer(globals())
