"""Markers on the links of an arm: the link of each, and its place there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import lengths
from dynid_ros.model import RobotModel

BASE = -1
"""Index of the base among the links, which are counted from 0."""

BODY_RADIUS = 0.1
"""Distance of a body's virtual markers from its origin, m: the size of real bodies, so that errors of position and
rotation have the same weight as with real markers."""

FREE = 3.0
"""Number of independent coordinates per marker; K markers of a rigid body that the tracker has fitted have 6 / K."""

FITTED_BODY_STD_M = 1e-5
"""Standard deviation of a distance, m, below which two markers come from one pose of a tracker: single markers have
more noise."""

N_POSE_NUMBERS = 6.0
LINE = 5.0
"""Number of independent coordinates of a rigid body's pose, and of two markers, which lack the rotation about their
line."""

MIN_SPREAD_M = 0.01
"""RMS distance of markers from their common line, m, below which they are collinear."""


@dataclass(frozen=True, eq=False)
class MarkerSet:
    """P markers on the links of an arm.

    Attributes:
        names: Names (P,) of the markers, for messages.
        links: Indices (P,) of the links, -1 for the base.
        places: Places (P, 3) in the link's frame, m; NaN where unknown.
        dof: Numbers (P,) of independent coordinates of each marker: 3, or 6 / K for K markers of a rigid body whose
            distances are exactly constant because the tracker reports a fitted pose.
        bodies: Indices (P,) of the fitted bodies, whose markers are outliers only together.
    """

    names: tuple[str, ...]
    links: NDArray
    places: NDArray
    dof: NDArray
    bodies: NDArray

    @classmethod
    def on_links(
        cls,
        robot: RobotModel,
        links: Sequence[str],
        places: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        dof: ArrayLike = FREE,
        *,
        bodies: Sequence[str] | None = None,
    ) -> MarkerSet:
        """Return markers on links of `robot`, or on its base, from the names of the links.

        With `bodies`, the names of each marker's tracked body, `dof` follows from the number of markers of a body; see
        also `with_bodies`.

        Raises:
            MocapError: A link is unknown, or shapes do not fit.
        """
        known = (*robot.link_names, robot.base)
        unknown = sorted(set(links) - set(known))
        if unknown:
            raise MocapError(f"no link {', '.join(map(repr, unknown))} for markers; expected one of {', '.join(known)}")
        index = np.array([BASE if link == robot.base else known.index(link) for link in links], dtype=int)
        where = np.full((len(links), 3), np.nan) if places is None else np.asarray(places, dtype=float)
        labels = tuple(names) if names is not None else tuple(f"marker {p}" for p in range(len(links)))
        if where.shape != (len(links), 3) or len(labels) != len(links):
            raise MocapError(
                f"places of shape {where.shape} and {len(labels)} names for {len(links)} markers; expected one place "
                "(x, y, z in the link's frame, m) and one name each"
            )
        free = np.broadcast_to(np.asarray(dof, dtype=float), len(links)).copy()
        if bodies is None:
            return cls(labels, index, where, free, np.arange(len(links)))
        numbers = np.unique(np.array(bodies, dtype=object).astype(str), return_inverse=True)[1]
        return cls(labels, index, where, _independent(numbers, free), numbers)

    @property
    def size(self) -> int:
        """Number of markers P."""
        return len(self.names)

    def beyond(self, robot: RobotModel) -> NDArray:
        """Return a mask (P, n) of the joints that move each marker."""
        return np.pad(robot.chain.moved, ((0, 0), (0, 1)))[:, self.links].T

    def select(self, keep: NDArray) -> MarkerSet:
        """Return the markers in a mask (P,) or with given indices."""
        names = tuple(np.array(self.names, dtype=object)[keep])
        return MarkerSet(names, self.links[keep], self.places[keep], self.dof[keep], self.bodies[keep])

    @property
    def alone(self) -> NDArray:
        """Mask (P,) of the markers that do not belong to a tracked body."""
        return np.bincount(self.bodies, minlength=self.size)[self.bodies] == 1

    def with_bodies(self, positions: NDArray) -> MarkerSet:
        """Return the markers with tracked bodies, which are markers of one link whose distances do not vary.

        Such markers together have the six degrees of freedom of a pose, whatever their number.

        Args:
            positions: Marker positions (M, P, 3) in any frame, m.
        """
        bodies = self.bodies.copy()
        for a, b in combinations(range(self.size), 2):
            if self.links[a] == self.links[b]:
                distance = np.linalg.norm(positions[:, a] - positions[:, b], axis=1)
                if np.isfinite(distance).sum() > 2 and np.nanstd(distance) < FITTED_BODY_STD_M:
                    bodies[bodies == bodies[b]] = bodies[a]
        return replace(self, dof=_independent(bodies, self.dof), bodies=bodies)

    def distances(self, residual: NDArray) -> NDArray:
        """Return lengths (..., P) of residuals (..., P, 3), m, for tests of outliers; infinite where not finite.

        Markers of a tracked body share one length, that of a single marker with the same mean square per degree of
        freedom, so that a pose of the tracker is an outlier as a whole or not at all.
        """
        result = lengths(residual)
        for body in np.flatnonzero(np.bincount(self.bodies) > 1):
            members = np.flatnonzero(self.bodies == body)
            seen = np.isfinite(result[..., members])
            squares = np.sum(np.where(seen, result[..., members], 0.0) ** 2, axis=-1)
            common = np.sqrt(FREE * squares / np.maximum(seen @ self.dof[members], 1.0))
            result[..., members] = np.where(seen, common[..., None], np.inf)
        return result


def _independent(bodies: NDArray, dof: NDArray) -> NDArray:
    """Return the degrees of freedom (P,) of markers; the markers of a body share the six of its pose."""
    count = np.bincount(bodies)[bodies]
    return np.where(count > 1, np.where(count > 2, N_POSE_NUMBERS, LINE) / count, dof)


def require_enough(robot: RobotModel, markers: MarkerSet, positions: NDArray) -> None:
    """Refuse markers that cannot determine the angle of a joint that moves them.

    Args:
        robot: Model of the arm.
        markers: Markers with their links.
        positions: Marker positions (M, P, 3) in any frame, m, for the shape of each link's markers.

    Raises:
        MocapError: No marker on a moving link is seen, or a joint moves one or two markers only, or markers in line.
    """
    seen = np.isfinite(positions).all(axis=2).any(axis=0)
    if not (markers.links[seen] > BASE).any():
        raise MocapError("no marker on a moving link was ever seen: fix three or more to each link that matters")
    beyond = markers.beyond(robot)
    for joint, name in enumerate(robot.joint_names):
        on = np.flatnonzero(seen & beyond[:, joint])
        if not len(on):
            continue
        if len(on) < 3:
            link = robot.link_names[robot.chain.own_links[joint]]
            raise MocapError(
                f"{len(on)} marker(s) beyond joint '{name}' ({', '.join(markers.names[p] for p in on)}): expected "
                f"three or more; add markers to link '{link}' or beyond, or leave these out"
            )
        if len(set(markers.links[on])) == 1 and _on_one_line(positions[:, on]):
            raise MocapError(
                f"the {len(on)} markers beyond joint '{name}' ({', '.join(markers.names[p] for p in on)}) lie on one "
                "line, about which they do not show a rotation: move one of them sideways"
            )


def _on_one_line(positions: NDArray) -> bool:
    """Return whether markers of one rigid body are collinear, by the median frame in which all of them are seen."""
    whole = positions[np.isfinite(positions).all(axis=(1, 2))]
    if not len(whole):
        return False  # never seen together: the rank of each frame decides later
    spread = np.linalg.svd(whole - whole.mean(axis=1, keepdims=True), compute_uv=False) / np.sqrt(positions.shape[1])
    return bool(np.median(spread[:, 1]) < MIN_SPREAD_M)


def body_markers(position: ArrayLike, quaternion: ArrayLike, radius: float = BODY_RADIUS) -> NDArray:
    """Return three virtual markers (N, 3, 3) of a rigid body that is measured as a pose; their `dof` is 2 each.

    The markers lie on a circle about the body's origin, so that errors of translation and rotation stay uncorrelated.

    Args:
        position: Positions (N, 3), m.
        quaternion: Quaternions (N, 4) x, y, z, w of any length; zero or NaN if the body was not seen.
        radius: Radius of the circle, m, which weights errors of the rotation (rad) relative to those of the position.
    """
    q = np.array(quaternion, dtype=float)
    length = np.linalg.norm(q, axis=1, keepdims=True)
    x, y, z, w = (q / np.where(length > 0, length, np.nan)).T
    first = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)], axis=1)
    second = np.stack([2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)], axis=1)
    angles = 2 * np.pi / 3 * np.arange(3)
    arms = np.cos(angles)[:, None] * first[:, None] + np.sin(angles)[:, None] * second[:, None]
    return np.asarray(position, dtype=float)[:, None] + radius * arms


# Positions of markers on the links, and their derivatives with respect to the joint positions.


class LinkFrames(NamedTuple):
    """Frames of links and axes of joints at M joint positions, all in the base frame.

    Attributes:
        rotation: Rotations (M, n + 1, 3, 3) of the links; the base comes last, so that it has the index -1, `BASE`.
        origin: Origins (M, n + 1, 3), m.
        axis: Unit axes (M, n, 3) of the joints.
        pivot: Points (M, n, 3) on the axes, m.
    """

    rotation: NDArray
    origin: NDArray
    axis: NDArray
    pivot: NDArray


def link_frames(robot: RobotModel, q: NDArray) -> LinkFrames:
    """Return the frames at joint positions q (M, n)."""
    poses = robot.forward_kinematics(q)
    base = np.broadcast_to(np.eye(4), (len(q), 1, 4, 4))
    frames = np.concatenate([poses, base], axis=1)
    # The joint frame, about or along whose z a link moves, is fixed in the link.
    offset = robot.chain.link_offsets
    axis_in_link = offset[:, 2, :3]
    pivot_in_link = -np.einsum("nji,nj->ni", offset[:, :3, :3], offset[:, :3, 3])
    axis, pivot = (np.einsum("mnij,nj->mni", poses[..., :3, :3], fixed) for fixed in (axis_in_link, pivot_in_link))
    return LinkFrames(frames[..., :3, :3], frames[..., :3, 3], axis, pivot + poses[..., :3, 3])


def marker_positions(frames: LinkFrames, markers: MarkerSet) -> NDArray:
    """Return the positions (M, P, 3) of markers in the base frame."""
    turned = frames.rotation[:, markers.links] @ markers.places[:, :, None]
    return frames.origin[:, markers.links] + turned[..., 0]


def marker_jacobian(robot: RobotModel, frames: LinkFrames, positions: NDArray, markers: MarkerSet) -> NDArray:
    """Return the derivatives (M, P, 3, n) of marker positions (M, P, 3) in the base frame by the joints' positions."""
    ax, ay, az = (frames.axis[:, None, :, i] for i in range(3))
    x, y, z = (positions[:, :, None, i] - frames.pivot[:, None, :, i] for i in range(3))
    turning = np.stack([ay * z - az * y, az * x - ax * z, ax * y - ay * x], axis=2)
    sliding = np.swapaxes(frames.axis, 1, 2)[:, None]
    chain = robot.chain
    moves = np.pad(chain.moves, ((0, 0), (0, 1)))[:, markers.links]
    jacobian = np.where(chain.slides, sliding, turning) * moves.T[:, None, :]
    return np.moveaxis(chain.of_joints(np.moveaxis(jacobian, -1, 0)), 0, -1)
