"""Space that the links of an arm occupy, and distances between links and to obstacles."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.collision.capsules import Bodies
    from dynid_ros.collision.clearance import Distances
    from dynid_ros.collision.obstacles import Obstacle, read_obstacles

__all__ = ["Bodies", "Distances", "Obstacle", "read_obstacles"]

offer(globals())
