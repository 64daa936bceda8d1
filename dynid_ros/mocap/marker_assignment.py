"""Which link each marker is on: markers of one body keep their distances, and motors explain how a body moves."""

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

RIGID = 3e-3
"""Change of the distance between two markers of one body, m RMS: noise and a little give."""

TOGETHER = 10
"""Frames in which two markers must both be seen to be compared."""

FRAMES = 300
CLEAR = 0.5
"""Stray on the best link in parts of that on the next, from which the choice is in doubt."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """Links of P markers.

    Attributes:
        links: (P,) name of the link, the base's among them; None for a marker that fits none or belongs to no body.
        body: (P,) number of the rigid body, -1 for none.
        stray: (P,) m, median distance from its place on that link.
        remarks: doubts.
    """

    links: tuple[str | None, ...]
    body: NDArray
    stray: NDArray
    remarks: tuple[str, ...]


def bodies(positions: ArrayLike, rigid: float = RIGID) -> NDArray:
    """Rigid bodies (P,) of markers by number, from 0; -1 for a marker that keeps its distance to no two others.

    Args:
        positions: (M, P, 3) m in any frame, NaN where not seen.
        rigid: RMS change of a distance within a body, m.
    """
    seen = require_positions(positions, np.shape(positions)[1] if np.ndim(positions) == 3 else 0)
    n_markers = seen.shape[1]
    change = np.full((n_markers, n_markers), 1e3)
    for a in range(n_markers):
        distance = np.linalg.norm(seen - seen[:, a : a + 1], axis=2)
        enough = np.isfinite(distance).sum(axis=0) >= TOGETHER
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
    """Links of markers that nobody has labelled.

    Each body is tried on each link, with a camera of its own; the pair that fits best fixes the camera for all, and
    then each marker is put on the link that it strays least on.

    Args:
        robot: the arm.
        motor: (K, n) joint positions at the camera's frames; all joints should move.
        positions: (K, P, 3) m in the camera frame, NaN where not seen, each index one marker (else see `tracks`).

    Raises:
        MocapError: no body of three markers, or none that moves as a link does.
    """
    seen = require_positions(positions, np.shape(positions)[1] if np.ndim(positions) == 3 else 0)
    angles = np.asarray(motor, dtype=float)
    rows = np.flatnonzero(np.isfinite(angles).all(axis=1))
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, FRAMES).astype(int))]
    angles, seen = angles[rows], seen[rows]
    body = bodies(seen)
    if not (body >= 0).any():
        raise MocapError(
            f"no three of {seen.shape[1]} markers keep their distances within {1000 * RIGID:.0f} mm: put three or more "
            "on each link, or make tracks first if their order changes"
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
    """Camera under which all markers together stray least, each on its best link; a few promising ones are tried."""
    everywhere = _on(robot, motor, seen, np.ones(len(body), dtype=bool), 0)
    found = []
    for rotation, shift, _ in sorted(trials, key=lambda trial: trial[2])[:6]:
        members = np.flatnonzero(body >= 0).tolist()
        strays = [everywhere.stray_by_link(p, rotation, shift).min() for p in members]
        found.append((rotation, shift, float(np.median(strays))))
    return min(found, key=lambda camera: camera[2])


def _chosen(robot: RobotModel, body: NDArray, strays: NDArray) -> Assignment:
    """Link by link, bodies as a whole; lone markers each by itself."""
    names = (*robot.link_names, robot.base)
    links: list[str | None] = [None] * len(body)
    chosen = np.full(len(body), np.nan)
    remarks = []
    for number in range(body.max() + 1):
        members = np.flatnonzero(body == number)
        together = np.median(strays[members], axis=0)
        first, second = np.argsort(together)[:2]
        for p in members:
            links[p], chosen[p] = names[first], strays[p, first]
        if together[first] > CLEAR * together[second]:
            remarks.append(
                f"the body of markers {', '.join(map(str, members))} fits links '{names[first]}' "
                f"({1000 * together[first]:.1f} mm) and '{names[second]}' ({1000 * together[second]:.1f} mm) alike: "
                "move the joints between them more, or name its link"
            )
    lone = np.flatnonzero(body < 0)
    if lone.size:
        remarks.append(f"markers {', '.join(map(str, lone))} belong to no rigid body of three and are left out")
    return Assignment(tuple(links), body, chosen, tuple(remarks))
