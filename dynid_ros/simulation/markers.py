"""Markers glued to the links of a simulated arm."""

import numpy as np

from dynid_ros.errors import DynidError
from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.model import RobotModel

TRIES = 100


def scattered_markers(robot: RobotModel, per_link: int, radius: float, rng: np.random.Generator) -> MarkerSet:
    """Markers on each moving link, at `radius` (m) from its origin in directions drawn so that none is near another's.

    They are named "<link> <number>", link after link.

    Raises:
        DynidError: fewer than three per link, which show no rotation, or a radius that is not positive.

    """
    if per_link < 3 or not 0.0 < radius < np.inf:
        raise DynidError(
            f"{per_link} markers per link at {radius:g} m; expected three or more, for fewer do not show how a link is "
            "turned, at a finite distance above 0"
        )
    links = [link for link in robot.link_names for _ in range(per_link)]
    places = np.concatenate([radius * _directions(per_link, rng) for _ in robot.link_names])
    names = [f"{link} {i % per_link}" for i, link in enumerate(links)]
    return MarkerSet.on_links(robot, links, places, names)


def _directions(number: int, rng: np.random.Generator) -> np.ndarray:
    """(number, 3) unit vectors, the best spread of some draws; opposite ones count as near, for they are on a line."""

    def nearest(directions: np.ndarray) -> float:
        return float(np.abs(directions @ directions.T - np.eye(number)).max())

    draws = rng.standard_normal((TRIES, number, 3))
    return min(draws / np.linalg.norm(draws, axis=2, keepdims=True), key=nearest)
