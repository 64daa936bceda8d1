"""Assignment of unlabelled markers to links.

Markers on one rigid body keep their distances, so they are clustered into bodies. A body belongs to the link whose
motion, computed from the motor positions, explains its motion. "Stray" is the median distance, in the frame of a link,
of a marker from its median place there: near zero on the right link.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from dynid_ros.errors import MocapError
from dynid_ros.mocap.camera_pose import SeenOnLinks, search
from dynid_ros.mocap.marker_set import FREE, MarkerSet
from dynid_ros.mocap.markers import require_positions
from dynid_ros.model import RobotModel

BODY_STD_M = 3e-3
"""Largest standard deviation of the distance between two markers of one body, m: noise and some elasticity."""

MIN_COMMON_FRAMES = 10
"""Smallest number of frames that must show both markers of a pair before their distance is judged."""

MAX_FRAMES = 300
"""Largest number of frames that an assignment uses, spread evenly over the recording."""
MIN_MOTION_STD_M = 0.01
"""Smallest standard deviation of a coordinate of a marker on a body that moves, m."""
MAX_COMPARED_TRIALS = 6
"""Largest number of trial poses of the camera that are compared with all bodies."""
MAX_STRAY_RATIO = 0.5
"""Ratio of the stray on the best link to the stray on the second best, above which the choice is doubtful."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """Links of P markers.

    Attributes:
        links: Names (P,) of the links, or of the base; None for a marker that belongs to no body.
        body: Indices (P,) of the rigid bodies; -1 for a marker that belongs to none.
        stray: Stray (P,) on the assigned link, m; NaN for a marker that belongs to no body.
        remarks: Sentences on doubtful links.
    """

    links: tuple[str | None, ...]
    body: NDArray
    stray: NDArray
    remarks: tuple[str, ...]


def bodies(positions: ArrayLike) -> NDArray:
    """Return the index (P,) of each marker's rigid body; -1 for a marker without two partners at constant distances.

    Args:
        positions: Marker positions (M, P, 3) in any frame, m; NaN where not seen.
    """
    seen = require_positions(positions)
    n_markers = seen.shape[1]
    # Pairs that are rarely seen together keep 1 km, so that they never share a body.
    deviation = np.full((n_markers, n_markers), 1e3)
    for a in range(n_markers):
        distance = np.linalg.norm(seen - seen[:, a : a + 1], axis=2)
        enough = np.isfinite(distance).sum(axis=0) >= MIN_COMMON_FRAMES
        # Quartiles resist swapped and ghost markers. They lie 1.349 standard deviations apart if errors are normal.
        low, high = np.nanquantile(distance[:, enough], [0.25, 0.75], axis=0)
        deviation[a, enough] = (high - low) / 1.349
    np.fill_diagonal(deviation, 0.0)
    if n_markers < 3:
        return np.full(n_markers, -1)
    # Complete linkage bounds the deviation of every pair in a cluster, not only that of neighbours.
    clusters = fcluster(linkage(squareform((deviation + deviation.T) / 2), "complete"), BODY_STD_M, "distance")
    numbers, counts = np.unique(clusters, return_counts=True)
    large = numbers[counts >= 3]
    result = np.full(n_markers, -1)
    for number, cluster in enumerate(large):
        result[clusters == cluster] = number
    return result


def assign(robot: RobotModel, motor: ArrayLike, positions: ArrayLike) -> Assignment:
    """Find the links of unlabelled markers.

    For each pair of a body and a link, the camera pose is fitted. The pose under which all bodies stray least is kept,
    and each body is assigned, as a whole, to the link on which it strays least.

    Args:
        robot: Model of the arm.
        motor: Motor positions (K, n) at the camera's frames, rad or m; all joints should move.
        positions: Marker positions (K, P, 3) in the camera frame, m; NaN where not seen. An index must be the same
            marker in all frames; `tracks` establishes this.

    Raises:
        MocapError: There is no body of three markers, or none of the bodies moves.
    """
    seen = require_positions(positions)
    angles = np.asarray(motor, dtype=float)
    rows = np.flatnonzero(np.isfinite(angles).all(axis=1))
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, MAX_FRAMES).astype(int))]
    angles = angles[rows]
    seen = seen[rows]
    body = bodies(seen)
    if not (body >= 0).any():
        raise MocapError(
            f"no three of {seen.shape[1]} markers keep their distances within {1000 * BODY_STD_M:.0f} mm: put three or "
            "more on each link, or use tracks() first if the order of the markers changes between frames"
        )
    trials = [
        search(_on(robot, angles, seen, body == number, link), frames=20)
        for number in range(body.max() + 1)
        for link in range(robot.chain.n_links)
        if np.nanmax(np.nanstd(seen[:, body == number], axis=0)) > MIN_MOTION_STD_M
    ]
    if not trials:
        raise MocapError("no rigid body of three markers moves: put the markers on the arm, and move all joints")
    everything = _on(robot, angles, seen, np.ones(len(body), dtype=bool), 0)
    # The trials with the smallest residual of their own body are compared by all bodies, each marker on its best link.
    trials = sorted(trials, key=lambda trial: trial[2])[:MAX_COMPARED_TRIALS]
    strays = [[everything.stray_by_link(p, *trial[:2]) for p in range(len(body))] for trial in trials]
    best = min(strays, key=lambda stray: np.median(np.min(stray, axis=1)[body >= 0]))
    return _chosen(robot, body, np.array(best))


def _on(robot: RobotModel, motor: NDArray, seen: NDArray, keep: NDArray, link: int) -> SeenOnLinks:
    """Return the observations of the markers in the mask `keep` (P,), as if they were on one link."""
    n = int(keep.sum())
    markers = MarkerSet(
        tuple(str(p) for p in range(n)), np.full(n, link), np.zeros((n, 3)), np.full(n, FREE), np.arange(n)
    )
    return SeenOnLinks(robot, markers, motor, seen[:, keep])


def _chosen(robot: RobotModel, body: NDArray, strays: NDArray) -> Assignment:
    """Return the assignment of each body to the link with the least median of its `strays` (P, m + 1), base last."""
    names = (*robot.link_names, robot.base)
    links: list[str | None] = [None] * len(body)
    stray = np.full(len(body), np.nan)
    remarks = []
    for number in range(body.max() + 1):
        members = np.flatnonzero(body == number)
        body_strays = np.median(strays[members], axis=0)
        first, second = np.argsort(body_strays)[:2]
        for p in members:
            links[p] = names[first]
            stray[p] = strays[p, first]
        if body_strays[first] > MAX_STRAY_RATIO * body_strays[second]:
            remarks.append(
                f"the body of markers {', '.join(map(str, members))} fits two links almost equally well, "
                f"'{names[first]}' (stray {1000 * body_strays[first]:.1f} mm) and '{names[second]}' "
                f"({1000 * body_strays[second]:.1f} mm): move the joints between them more, or give its link yourself"
            )
    lone = np.flatnonzero(body < 0)
    if lone.size:
        remarks.append(f"markers {', '.join(map(str, lone))} belong to no rigid body of three and are left out")
    return Assignment(tuple(links), body, stray, tuple(remarks))
