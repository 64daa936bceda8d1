"""Markers whose coordinates are not what they should be: still, mirrored, in millimetres."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid_ros.errors import MocapError
from dynid_ros.mocap.camera_search import search
from dynid_ros.mocap.marker_kinematics import link_frames
from dynid_ros.mocap.scatter import SeenOnLinks

STILL = 2e-3
"""Movement of a link's markers, m, below which they stand still."""

MOVING = 0.02
"""Movement of a link's frame, m and rad, from which its markers must move."""

DOUBTFUL = 5e-3
"""Median stray of a coordinate, m, from which other conventions are tried."""

BETTER = 0.2
"""Stray with another convention, in parts of that with the right one, that convicts it."""


def require_moving(seen: SeenOnLinks) -> None:
    """Refuse an arm at rest, and markers that stand still on a link that moves.

    Raises:
        MocapError: names the links and the markers.

    """
    frames = link_frames(seen.robot, seen.motor)
    travel = np.maximum(np.std(frames.origin, axis=0).max(axis=1), np.std(frames.rotation, axis=0).max(axis=(1, 2)))
    links = sorted(set(seen.markers.links[seen.markers.links >= 0]))
    if not (travel[links] > MOVING).any():
        raise MocapError(
            "the links with markers do not move: nothing tells where the camera stands; move all joints before them"
        )
    for link in links:
        on = np.flatnonzero(seen.markers.links == link)
        points = seen.positions[:, on]
        moved = np.linalg.norm(points - np.nanmedian(points, axis=0), axis=2)
        if travel[link] > MOVING and np.nanquantile(moved, 0.9) < STILL:
            raise MocapError(
                f"markers {', '.join(seen.markers.names[p] for p in on)} stand still within "
                f"{1000 * np.nanquantile(moved, 0.9):.1f} mm while link '{seen.robot.link_names[link]}' moves: they "
                "are not on it, or the tracker has frozen"
            )


def refuse_other_conventions(seen: SeenOnLinks, misfit: float) -> None:
    """Say so if the markers fit in another unit or after a reflection, and not as they are.

    Args:
        seen: markers and motors.
        misfit: median stray, m, of the best proper pose of the camera.

    Raises:
        MocapError: names what is wrong and both strays.

    """
    if misfit < DOUBTFUL:
        return
    metres = replace(seen, positions=seen.positions / 1000)
    trials = {
        "are in millimetres: divide them by 1000": search(metres)[2],
        "are of a left-handed frame: reverse one axis": search(seen, mirrored=True)[2],
        "are in millimetres and of a left-handed frame: divide them by 1000 and reverse one axis": search(
            metres, mirrored=True
        )[2],
    }
    words, best = min(trials.items(), key=lambda item: item[1])
    if best < BETTER * misfit:
        raise MocapError(
            f"the marker coordinates {words}; then markers stray {1000 * best:.1f} mm on their links, and as they are "
            f"{1000 * misfit:.0f} mm"
        )
