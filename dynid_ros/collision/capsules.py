"""Cover of the links of an arm by few capsules, and the positions of the capsules in a pose of the arm.

A capsule consists of all points within its radius of a segment. It is convex, so it contains a face if it contains the
corners of the face. Faces of a link are clustered, and each cluster gets the smallest capsule that contains its points.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.spatial import ConvexHull, QhullError

from dynid_ros.collision.obstacles import FIXED_LINK, Pairs, allowed_pairs, pair_of_links, placements
from dynid_ros.collision.shapes import ShapeReader
from dynid_ros.errors import CollisionError
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import joint_samples
from dynid_ros.model.chain import Chain, joint_frames

MAX_CAPSULES = 4
"""Default of the largest number of capsules of a link."""
MAX_VOLUME_FRACTION = 0.85
"""Largest ratio of the volumes with and without one more capsule; otherwise the capsule is not used."""
CUT_QUANTILES = (0.15, 0.3, 0.5, 0.7, 0.85)
"""Quantiles of the faces along an axis at which a cluster may be cut in two."""
MAX_ITERATIONS = 4
"""Largest number of times that faces move to other clusters."""
MAX_SEARCHED_FACES = 1500
"""Largest number of faces in the search for clusters; the final capsules cover all faces."""
MIN_CUT_FACES = 4
"""Smallest number of faces of a cluster that is cut."""
MAX_CACHED = 256
"""Number of cached sets of capsules, enough for the links of a few robots."""
_cache: OrderedDict[tuple[str, int], Capsules] = OrderedDict()
"""Capsules by the hash of their faces, the least recently used first."""


@dataclass(frozen=True, eq=False)
class Capsules:
    """C capsules of one link.

    Attributes:
        start, end: (C, 3) ends of the segments, m.
        radius: (C,) radii, m.
        hulls: (C,) points (V, 4) whose convex hull each capsule covers: x, y, z, and a thickness around them, m.
    """

    start: np.ndarray
    end: np.ndarray
    radius: np.ndarray
    hulls: tuple[np.ndarray, ...]

    @property
    def volume(self) -> np.ndarray:
        """(C,) volume of each capsule, m^3."""
        length = np.linalg.norm(self.end - self.start, axis=1)
        return np.pi * self.radius**2 * (length + 4.0 / 3.0 * self.radius)


def cover(faces: np.ndarray, margins: np.ndarray, most: int = MAX_CAPSULES) -> Capsules:
    """Return at most `most` capsules that cover all faces; results are cached.

    Args:
        faces: (F, P, 3) corners of F faces, each the convex hull of P points, m.
        margins: (F,) thickness around each face, m.
        most: largest number of capsules.
    """
    digest = hashlib.sha256(np.ascontiguousarray(faces).tobytes())
    digest.update(np.ascontiguousarray(margins).tobytes())
    key = (digest.hexdigest(), most)
    if key not in _cache:
        _cache[key] = _cover(faces, margins, most)
        if len(_cache) > MAX_CACHED:
            _cache.popitem(last=False)
    _cache.move_to_end(key)
    return _cache[key]


def _cover(faces: np.ndarray, margins: np.ndarray, most: int) -> Capsules:
    selected = np.linspace(0, len(faces) - 1, min(len(faces), MAX_SEARCHED_FACES)).astype(int)
    best = _search_clusters(faces[selected], margins[selected], most)
    labels = _nearest(faces, margins, best)
    clusters = [(faces[labels == k], margins[labels == k]) for k in np.unique(labels)]
    start, end, radius = (np.array(values) for values in zip(*(_smallest(*part) for part in clusters), strict=True))
    return Capsules(start, end, radius, tuple(_corners(*part) for part in clusters))


Fit = tuple[np.ndarray, np.ndarray, float]
"""Start, end and radius of one capsule."""


def _search_clusters(faces: np.ndarray, margins: np.ndarray, most: int) -> list[Fit]:
    """Return capsules of clusters, by repeatedly cutting the cluster that saves most volume and reassigning faces."""
    labels = np.zeros(len(faces), dtype=int)
    best = [_smallest(faces, margins)]
    fits = best
    for _ in range(most - 1):
        cut = _best_cut(faces, margins, labels, fits)
        if cut is None:
            break
        labels, fits = _reassign_faces(faces, margins, cut)
        if _volume(fits) < MAX_VOLUME_FRACTION ** (len(fits) - len(best)) * _volume(best):
            best = fits
    return best


def _best_cut(faces: np.ndarray, margins: np.ndarray, labels: np.ndarray, fits: list[Fit]) -> np.ndarray | None:
    """Return the labels (F,) of clusters after the cut that saves most volume; None if no cut saves volume."""
    centres = faces.mean(axis=1)
    saving = 0.0
    best = None
    for k, fit in enumerate(fits):
        members = np.flatnonzero(labels == k)
        if len(members) < MIN_CUT_FACES:
            continue
        for axis in _axes(centres[members]):
            along = centres[members] @ axis
            for part in CUT_QUANTILES:
                upper = along > np.quantile(along, part)
                if upper.all() or not upper.any():
                    continue
                halves = [_axis_capsule(faces[members[side]], margins[members[side]]) for side in (upper, ~upper)]
                saved = _volume([fit]) - _volume(halves)
                if saved > saving:
                    saving = saved
                    best = (members[upper], len(fits))
    if best is None:
        return None
    labels = labels.copy()
    labels[best[0]] = best[1]
    return labels


def _reassign_faces(faces: np.ndarray, margins: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, list[Fit]]:
    """Move faces to the capsule with the least excess until the volume no longer falls; return labels and capsules."""
    fits = [_smallest(faces[labels == k], margins[labels == k]) for k in range(labels.max() + 1)]
    for _ in range(MAX_ITERATIONS):
        new_labels = _nearest(faces, margins, fits)
        if len(np.unique(new_labels)) < len(fits):
            break
        new_fits = [_smallest(faces[new_labels == k], margins[new_labels == k]) for k in range(len(fits))]
        if _volume(new_fits) >= _volume(fits):
            break
        labels = new_labels
        fits = new_fits
    return labels, fits


def _nearest(faces: np.ndarray, margins: np.ndarray, fits: list[Fit]) -> np.ndarray:
    """Return for each face the index (F,) of the capsule with the smallest distance from its axis over its radius."""
    excess = [(_distance(faces, start, end) + margins[:, None]).max(axis=1) / radius for start, end, radius in fits]
    return np.argmin(excess, axis=0)


def _distance(points: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the distances (...) of points (..., 3) from a segment."""
    along = end - start
    t = np.clip((points - start) @ along / max(along @ along, 1e-12), 0.0, 1.0)
    offset = points - start
    offset -= t[..., None] * along
    return np.sqrt(np.einsum("...i,...i", offset, offset))


def _volume(fits: list[Fit]) -> float:
    return sum(
        float(np.pi * radius**2 * (np.linalg.norm(end - start) + 4.0 / 3.0 * radius)) for start, end, radius in fits
    )


def _axes(points: np.ndarray) -> np.ndarray:
    """Return the principal axes (3, 3) of points, in rows."""
    return np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2] if len(points) > 2 else np.eye(3)


def _axis_capsule(faces: np.ndarray, margins: np.ndarray) -> Fit:
    """Return a capsule along a principal axis of the points, which is fast to compute but not the smallest."""
    points = faces.reshape(-1, 3)
    margin = float(margins.max())
    columns = np.ascontiguousarray(points.T)  # reductions over contiguous samples are several times faster
    fits = []
    for axis in _axes(points):
        along = axis @ columns
        across = columns - axis[:, None] * along
        centre = (across.max(axis=1) + across.min(axis=1)) / 2
        centre -= (centre @ axis) * axis
        across -= centre[:, None]
        squared = np.sum(across**2, axis=0)
        # The end caps must contain all points: each point limits how far inwards the end of the segment may be.
        inside = np.sqrt(np.maximum(squared.max() - squared, 0.0))
        low = (along + inside).min()
        high = (along - inside).max()
        if low > high:
            low = high = (along.max() + along.min()) / 2
        beyond = np.maximum(np.maximum(low - along, along - high), 0.0)
        radius = float(np.sqrt((squared + beyond**2).max()))
        fits.append((centre + low * axis, centre + high * axis, radius + margin))
    return min(fits, key=lambda fit: _volume([fit]))


def _smallest(faces: np.ndarray, margins: np.ndarray) -> Fit:
    """Return a small capsule around the faces, by a local minimization of its volume from `_axis_capsule`.

    The variables x are the ends of the segment and the radius, in units of the initial radius.
    """
    points = faces.reshape(-1, 3)
    margin = np.repeat(margins, faces.shape[1])
    start, end, radius = _axis_capsule(faces, margins)
    kept = _hull(points, margin)
    scale = max(radius, 1e-9)
    origin = points.mean(axis=0)
    p = (points[kept] - origin) / scale
    m = margin[kept] / scale
    x0 = np.concatenate([(start - origin) / scale, (end - origin) / scale, [radius / scale]])

    def volume(x: np.ndarray) -> tuple[float, np.ndarray]:
        along = x[3:6] - x[:3]
        r = x[6]
        length = np.sqrt(along @ along + 1e-8)
        gradient = np.concatenate([-along * r**2 / length, along * r**2 / length, [2 * r * length + 4 * r**2]])
        return r**2 * (length + 4.0 / 3.0 * r), gradient

    def offsets(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        along = x[3:6] - x[:3]
        t = np.clip((p - x[:3]) @ along / max(along @ along, 1e-12), 0.0, 1.0)
        return p - x[:3] - t[:, None] * along, t

    def room(x: np.ndarray) -> np.ndarray:
        return x[6] - m - np.linalg.norm(offsets(x)[0], axis=1)

    def room_gradient(x: np.ndarray) -> np.ndarray:
        offset, t = offsets(x)
        normal = offset / np.maximum(np.linalg.norm(offset, axis=1, keepdims=True), 1e-12)
        return np.column_stack([normal * (1 - t[:, None]), normal * t[:, None], np.ones(len(p))])

    optimum = minimize(
        volume,
        x0,
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": room, "jac": room_gradient},
        options={"maxiter": 30, "ftol": 1e-4},
    ).x
    segments = [(start, end), (origin + scale * optimum[:3], origin + scale * optimum[3:6])]
    # The radius is computed again, because the optimizer may violate constraints slightly.
    fits = [
        (a, b, float((_distance(points, a, b) + margin).max()) * (1.0 + 1e-9) + 1e-9)
        for a, b in segments
        if np.isfinite([a, b]).all()
    ]
    return min(fits, key=lambda fit: _volume([fit]))


def _corners(faces: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """Return points (V, 4) whose hull contains the faces: x, y, z and margin."""
    points = faces.reshape(-1, 3)
    margin = np.repeat(margins, faces.shape[1])
    kept = _hull(points, margin)
    return np.column_stack([points[kept], margin[kept]])


def _hull(points: np.ndarray, margin: np.ndarray) -> np.ndarray:
    """Return indices of points that suffice to determine a capsule: the convex hull's if all margins are equal."""
    if len(points) < 20 or np.ptp(margin) > 0.0:
        return np.arange(len(points))
    try:
        return ConvexHull(points).vertices
    except QhullError:  # the points are in a plane
        return np.unique(points, axis=0, return_index=True)[1]


@dataclass(frozen=True, eq=False)
class Bodies:
    """Capsules on the links of a chain: points within `radius` of a segment.

    Attributes:
        link: (C,) link of the chain that carries each capsule, from 0; -1 for the base.
        start: (C, 3) start of the segment in the frame of that link (or the base frame), m.
        end: (C, 3) end of the segment, m.
        radius: (C,) radius, m.
        hulls: (C,) points (V, 4) in the same frame whose hull the capsule covers: x, y, z, and a thickness around it.
        names: (C,) name of the link of the URDF that each capsule covers, or that a line starts from.
        without_shape: links of the chain without a known shape; they are lines without thickness.
        left_out: links of the URDF on the arm or its base that are not covered, because their pose is undetermined.
        allowed: pairs of links of the URDF that may touch.
    """

    link: np.ndarray
    start: np.ndarray
    end: np.ndarray
    radius: np.ndarray
    hulls: tuple[np.ndarray, ...]
    names: tuple[str, ...]
    without_shape: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    allowed: Pairs = frozenset()

    @classmethod
    def of(
        cls,
        robot: RobotModel,
        mesh_directories: Sequence[str | Path] = (),
        skip_unreadable: bool = False,
        most: int = MAX_CAPSULES,
        srdf: str | Path | None = None,
        *,
        allowed: Sequence[str] = (),
    ) -> Bodies:
        """Return capsules that cover the links of the chain and the base: collision elements, or else visual elements.

        Links on joints outside the chain, such as fingers, are covered at all positions between their limits. A link
        without shape is a line from its origin to that of the next link; so are all links of a DH table.

        Args:
            robot: the arm.
            mesh_directories: folders of meshes: the folder of the URDF for relative paths; for `package://p/` a folder
                that contains p, or a folder inside p. ROS_PACKAGE_PATH and AMENT_PREFIX_PATH are searched, too.
            skip_unreadable: whether a link with an unreadable shape counts as a link without shape.
            most: largest number of capsules per link of the URDF; fewer are used if more would not be much tighter.
            srdf: file with pairs of links that may touch, see `allowed_pairs`; None: no file.
            allowed: more pairs of links that may touch, each written as link:link.

        Raises:
            CollisionError: shapes are not valid, meshes are not found or not readable, or the SRDF is not readable or
                belongs to another robot. The message names all such links and files.
        """
        if robot.urdf is None:
            return cls.lines(robot)
        chain = robot.chain
        tree = robot.tree
        may_touch = frozenset(pair_of_links(words, tree.links) for words in allowed)
        if srdf is not None:
            may_touch |= allowed_pairs(srdf, tree)
        placed, left_out = placements(tree, chain)
        reader = ShapeReader(robot.urdf, [Path(directory) for directory in mesh_directories])
        parts: list[tuple[int, str, Capsules]] = []
        unread: list[int] = []
        errors: list[str] = []
        for placement in placed:
            try:
                shape = reader.shape(placement)
            except CollisionError as error:
                errors.append(str(error))
                unread.append(placement.link)
                continue
            if shape is not None:
                parts.append((shape.link, shape.name, cover(shape.faces, shape.margins, most)))
        if errors and not skip_unreadable:
            others = "".join(f"; {error.partition(' (')[0]}" for error in errors[1:])
            raise CollisionError(f"{errors[0]}{others}; or go on without the shapes that cannot be read")
        shaped = {link for link, _, _ in parts} - set(unread)
        lines = cls.lines(robot)
        bare = [k for k, link in enumerate(lines.link) if link not in shaped and link != FIXED_LINK]
        bare += [k for k, link in enumerate(lines.link) if link == FIXED_LINK and link in unread]
        parts += [(int(lines.link[k]), lines.names[k], _line(lines, k)) for k in bare]
        parts.sort(key=lambda part: part[0])
        names = (chain.base, *chain.link_names)
        counts = [len(capsules.radius) for _, _, capsules in parts]
        return cls(
            np.repeat([link for link, _, _ in parts], counts),
            np.concatenate([capsules.start for _, _, capsules in parts]),
            np.concatenate([capsules.end for _, _, capsules in parts]),
            np.concatenate([capsules.radius for _, _, capsules in parts]),
            tuple(hull for _, _, capsules in parts for hull in capsules.hulls),
            tuple(name for (_, name, _), count in zip(parts, counts, strict=True) for _ in range(count)),
            tuple(names[link + 1] for link in range(-1, chain.n_links) if link not in shaped),
            tuple(left_out),
            may_touch,
        )

    @classmethod
    def lines(cls, robot: RobotModel) -> Bodies:
        """Return lines from link origin to link origin, from the base to the tip: links without thickness.

        Each line is part of one link. The displacement of a prismatic joint is not part of a line.
        """
        chain = robot.chain
        m = chain.n_links
        tips = chain.tip_offsets[:, :3, 3]
        joints = np.zeros((m + 1, 3))
        # Lines end at the origins of the links and at the tips.
        beyond = np.concatenate([chain.placements[:, :3, 3], tips])
        if robot.urdf is None:  # a DH frame is at the far end of its link, and includes the shift along the joint
            for i, (before, after) in enumerate(zip(chain.placements, chain.link_offsets, strict=True)):
                joints[i] = -after[:3, :3].T @ (after[:3, 3] + before[:3, :3].T @ before[:3, 3])
            beyond = np.zeros_like(beyond)
        link, end = np.array(line_ends(chain)).T
        start = np.concatenate([joints[link], tips])
        ends = np.concatenate([beyond[end], tips])
        hulls = np.pad(np.stack([start, ends], axis=1), ((0, 0), (0, 0), (0, 1)))
        link_names = (*chain.link_names, chain.base)
        names = (*(link_names[k] for k in link), *chain.tips)
        link = np.append(link, chain.tip_links)
        return cls(link, start, ends, np.zeros(len(link)), tuple(hulls), names, (chain.base, *chain.link_names))


def line_ends(chain: Chain) -> list[tuple[int, int]]:
    """Return pairs of a link, base first, and the end of a line that starts from it.

    The end is the index of a child link, or m plus the index of a tip, with the number m of links.
    """
    beyond = [*chain.parents.tolist(), *chain.tip_links]
    return [(link, end) for link in range(FIXED_LINK, chain.n_links) for end, at in enumerate(beyond) if at == link]


def _line(lines: Bodies, k: int) -> Capsules:
    return Capsules(lines.start[[k]], lines.end[[k]], lines.radius[[k]], (lines.hulls[k],))


class Placed(NamedTuple):
    """An arm in N poses, in the base frame.

    Attributes:
        points: (2 C, 3, N) ends of the capsules: all starts, then all ends.
        rotations: (m + 1, 3, 3, N) rotations of the joint frames; FIXED_LINK, the last one, is the base frame.
        origins: (m + 1, 3, N) origins of the joint frames, m.
    """

    points: np.ndarray
    rotations: np.ndarray
    origins: np.ndarray

    def only(self, poses: np.ndarray) -> Placed:
        """Return the poses of a mask (N,)."""
        return Placed(*(array[..., poses] for array in self))


class Placing:
    """Forward kinematics of the capsules of an arm.

    Args:
        robot: the arm.
        bodies: capsules on its links.
    """

    def __init__(self, robot: RobotModel, bodies: Bodies) -> None:
        self.robot = robot
        self.bodies = bodies
        self._link = np.tile(bodies.link, 2)
        self._offsets = np.concatenate([robot.chain.link_offsets, np.eye(4)[np.newaxis]])
        points = np.concatenate([bodies.start, bodies.end])
        self._points = np.array([self.in_joint_frame(link, p) for link, p in zip(self._link, points, strict=True)])

    def in_joint_frame(self, link: int, points: np.ndarray) -> np.ndarray:
        """Convert points (..., 3) from the frame of a link to the frame of its joint."""
        return points @ self._offsets[link, :3, :3].T + self._offsets[link, :3, 3]

    def at(self, position: ArrayLike) -> Placed:
        """Return the capsules and frames of the arm at joint positions (N, n)."""
        (q,) = joint_samples(self.robot.joint_names, position=position)
        link_rotations, link_origins = joint_frames(self.robot.chain, q)
        base = np.repeat(np.eye(3)[:, :, np.newaxis], len(q), axis=2)
        rotations = np.concatenate([link_rotations, base[np.newaxis]])
        origins = np.concatenate([link_origins, np.zeros((1, 3, len(q)))])
        points = np.empty((*self._points.shape, len(q)))
        for link in range(FIXED_LINK, self.robot.chain.n_links):
            on_link = self._link == link
            points[on_link] = (self._points[on_link] @ rotations[link]).transpose(1, 0, 2) + origins[link]
        return Placed(points, rotations, origins)
