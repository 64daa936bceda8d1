"""Links of unlabelled markers: markers of one body keep their distances, and motors explain the motion of each body."""

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
"""Largest RMS change of the distance between two markers of one body, m: noise and some elasticity."""

MIN_COMMON_FRAMES = 10
"""Smallest number of frames with two markers for their comparison."""

MAX_FRAMES = 300
MAX_STRAY_RATIO = 0.5
"""Stray on the best link in parts of that on the next above which the choice is in doubt."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """Links of P markers.

    Attributes:
        links: Names (P,) of the links, the base included; None for a marker without a link or body.
        body: Numbers (P,) of the rigid bodies, -1 without one.
        stray: Median distances (P,) from the place on the link, m.
        remarks: Sentences on doubtful links.
    """

    links: tuple[str | None, ...]
    body: NDArray
    stray: NDArray
    remarks: tuple[str, ...]


def bodies(positions: ArrayLike, rigid: float = BODY_STD_M) -> NDArray:
    """Return the numbers (P,) of the rigid bodies of markers; -1 for a marker that belongs to no body of three.

    Args:
        positions: Marker positions (M, P, 3) in any frame, m; NaN where not seen.
        rigid: Largest RMS change of a distance within a body, m.
    """
    seen = require_positions(positions, np.shape(positions)[1] if np.ndim(positions) == 3 else 0)
    n_markers = seen.shape[1]
    change = np.full((n_markers, n_markers), 1e3)
    for a in range(n_markers):
        distance = np.linalg.norm(seen - seen[:, a : a + 1], axis=2)
        enough = np.isfinite(distance).sum(axis=0) >= MIN_COMMON_FRAMES
        # Quartiles, for swaps and ghosts; 1.349 standard deviations of a normal distribution.
        low, high = np.nanquantile(distance[:, enough], [0.25, 0.75], axis=0)
        change[a, enough] = (high - low) / 1.349
    np.fill_diagonal(change, 0.0)
    if n_markers < 3:
        return np.full(n_markers, -1)
    clusters = fcluster(linkage(squareform((change + change.T) / 2), "complete"), rigid, "distance")
    numbers, counts = np.unique(clusters, return_counts=True)
    large = numbers[counts >= 3]
    result = np.full(n_markers, -1)
    for number, cluster in enumerate(large):
        result[clusters == cluster] = number
    return result


def assign(robot: RobotModel, motor: ArrayLike, positions: ArrayLike) -> Assignment:
    """Find the links of unlabelled markers.

    Each body is tried on each link with a separate pose of the camera. The best pair determines the camera for all, and
    each marker goes to the link on which it strays least.

    Args:
        robot: Model of the arm.
        motor: Joint positions (K, n) at the camera's frames; all joints should move.
        positions: Marker positions (K, P, 3) in the camera frame, m; NaN where not seen. Each index is one marker,
            otherwise see `tracks`.

    Raises:
        MocapError: There is no body of three markers, or none that moves like a link.
    """
    seen = require_positions(positions, np.shape(positions)[1] if np.ndim(positions) == 3 else 0)
    angles = np.asarray(motor, dtype=float)
    rows = np.flatnonzero(np.isfinite(angles).all(axis=1))
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, MAX_FRAMES).astype(int))]
    angles = angles[rows]
    seen = seen[rows]
    body = bodies(seen)
    if not (body >= 0).any():
        raise MocapError(
            f"no three of {seen.shape[1]} markers keep their distances within {1000 * BODY_STD_M:.0f} mm: put three or "
            "more on each link, or make tracks first if their order changes"
        )
    trials = [
        search(_on(robot, angles, seen, body == number, link), frames=20)
        for number in range(body.max() + 1)
        for link in range(robot.chain.n_links)
        if _moves(seen[:, body == number])
    ]
    if not trials:
        raise MocapError("no three markers that keep their distances move: are they on the arm, and did it move?")
    rotation, shift, _ = _best(robot, angles, seen, body, trials)
    everywhere = _on(robot, angles, seen, np.ones(len(body), dtype=bool), 0)
    strays = np.array([everywhere.stray_by_link(p, rotation, shift) for p in range(len(body))])
    return _chosen(robot, body, strays)


def _on(robot: RobotModel, motor: NDArray, seen: NDArray, keep: NDArray, link: int) -> SeenOnLinks:
    n = int(keep.sum())
    markers = MarkerSet(
        tuple(str(p) for p in range(n)), np.full(n, link), np.zeros((n, 3)), np.full(n, FREE), np.arange(n)
    )
    return SeenOnLinks(robot, markers, motor, seen[:, keep])


def _moves(points: NDArray) -> bool:
    return bool(np.nanmax(np.nanstd(points, axis=0)) > 0.01)


def _best(
    robot: RobotModel, motor: NDArray, seen: NDArray, body: NDArray, trials: list
) -> tuple[NDArray, NDArray, float]:
    """Return the camera under which all markers stray least, each on its best link, from the most promising trials."""
    everywhere = _on(robot, motor, seen, np.ones(len(body), dtype=bool), 0)
    found = []
    for rotation, shift, _ in sorted(trials, key=lambda trial: trial[2])[:6]:
        members = np.flatnonzero(body >= 0).tolist()
        strays = [everywhere.stray_by_link(p, rotation, shift).min() for p in members]
        found.append((rotation, shift, float(np.median(strays))))
    return min(found, key=lambda camera: camera[2])


def _chosen(robot: RobotModel, body: NDArray, strays: NDArray) -> Assignment:
    """Return the links of bodies as a whole and of single markers."""
    names = (*robot.link_names, robot.base)
    links: list[str | None] = [None] * len(body)
    chosen = np.full(len(body), np.nan)
    remarks = []
    for number in range(body.max() + 1):
        members = np.flatnonzero(body == number)
        together = np.median(strays[members], axis=0)
        first, second = np.argsort(together)[:2]
        for p in members:
            links[p] = names[first]
            chosen[p] = strays[p, first]
        if together[first] > MAX_STRAY_RATIO * together[second]:
            remarks.append(
                f"the body of markers {', '.join(map(str, members))} fits links '{names[first]}' "
                f"({1000 * together[first]:.1f} mm) and '{names[second]}' ({1000 * together[second]:.1f} mm) alike: "
                "move the joints between them more, or name its link"
            )
    lone = np.flatnonzero(body < 0)
    if lone.size:
        remarks.append(f"markers {', '.join(map(str, lone))} belong to no rigid body of three and are left out")
    return Assignment(tuple(links), body, chosen, tuple(remarks))
