"""Space that the links of an arm occupy, and distances between links and to obstacles."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.collision.capsules import Bodies as Bodies
    from dynid_ros.collision.clearance import Distances as Distances
    from dynid_ros.collision.obstacles import Obstacle as Obstacle, read_obstacles as read_obstacles


offer(globals())
