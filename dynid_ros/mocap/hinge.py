"""A body that turns about a fixed axis: the axis, and where the body's markers are at angle zero."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import lengths, spread
from dynid_ros.mocap.markers import checked_markers, is_seen, matched
from dynid_ros.mocap.rotation_axis import axis_frame


@dataclass(frozen=True, eq=False)
class Hinge:
    """Markers on circles about one axis, with fixed angles between them.

    Attributes:
        frame: (3, 3) columns in the camera's frame: two normal to the axis, and the axis.
        center: (3,) point on the axis, m, in the camera's frame.
        template: (P, 3) markers at angle zero from the centre, m, along the columns of `frame`; NaN for an unknown one.
    """

    frame: NDArray
    center: NDArray
    template: NDArray

    @property
    def axis(self) -> NDArray:
        """(3,) unit vector about which positive angles turn right-handed."""
        return self.frame[:, 2]

    @cached_property
    def radii(self) -> NDArray:
        """(P,) distances of the markers from the axis, m."""
        return np.hypot(self.template[:, 0], self.template[:, 1])

    def local(self, markers: NDArray) -> NDArray:
        """Positions (..., 3) from the centre along the columns of `frame`."""
        return (markers - self.center) @ self.frame

    def turned(self, angle: NDArray) -> NDArray:
        """(N, P, 3) local positions of the markers at angles (N,) rad."""
        cosine, sine = np.cos(angle)[:, None], np.sin(angle)[:, None]
        x, y, height = self.template.T
        along, across = cosine * x - sine * y, sine * x + cosine * y
        return np.stack([along, across, np.broadcast_to(height, along.shape)], axis=2)

    def angles(self, local: NDArray) -> NDArray:
        """Angles (N,) of least squares for local positions (N, P, 3), in (-π, π]; NaN where no marker is seen.

        The sum of squared distances of Lightcap and Banks 2007, eq. 13, has its minimum in closed form: only distances
        within the plane normal to the axis depend on the angle.
        """
        x, y = local[..., 0], local[..., 1]
        along = np.nansum(x * self.template[:, 0] + y * self.template[:, 1], axis=1)
        across = np.nansum(y * self.template[:, 0] - x * self.template[:, 1], axis=1)
        return np.where((along == 0) & (across == 0), np.nan, np.arctan2(across, along))

    def reach(self, seen: NDArray) -> NDArray:
        """(N,) root of the sum of squared radii of the seen markers (N, P), m: movement for a radian."""
        return np.sqrt(seen @ np.nan_to_num(self.radii) ** 2)

    def reset(self, angle: float) -> "Hinge":
        """The same hinge, with what was `angle` (rad) as its angle zero."""
        return replace(self, template=self.turned(np.array([angle]))[0])

    def reversed(self) -> "Hinge":
        """The same hinge with its axis, and all angles, the other way round."""
        flip = np.array([1.0, -1.0, -1.0])
        return replace(self, frame=self.frame * flip, template=self.template * flip)


def start_hinge(markers: NDArray, axis: NDArray, center: NDArray) -> Hinge:
    """Hinge about a known axis: radii, heights and angles between markers as medians, which few outliers do not move.

    A marker that is never seen together with any other, directly or over others, stays unknown.

    Args:
        markers: (N, P, 3) m, NaN where not seen.
        axis: (3,) unit vector.
        center: (3,) m.
    """
    hinge = Hinge(axis_frame(axis), center, np.full((markers.shape[1], 3), np.nan))
    local = hinge.local(markers)
    seen = np.isfinite(local[..., 0])
    phase = np.arctan2(local[..., 1], local[..., 0])
    first = int(np.argmax(seen.sum(axis=0)))
    turn, known = phase[:, first].copy(), seen[:, first].copy()
    hinge.template[first, :2] = 1.0, 0.0
    waiting = set(range(markers.shape[1])) - {first}
    while waiting:
        next_one = max(waiting, key=lambda p: int(np.sum(known & seen[:, p])))
        both = known & seen[:, next_one]
        if not both.any():
            break
        offset = _median_angle(phase[both, next_one] - turn[both])
        hinge.template[next_one, :2] = np.cos(offset), np.sin(offset)
        turn = np.where(known, turn, phase[:, next_one] - offset)
        known |= seen[:, next_one]
        waiting.remove(next_one)
    for p in np.flatnonzero(np.isfinite(hinge.template[:, 0])):
        mine = local[seen[:, p], p]
        hinge.template[p, :2] *= np.median(np.hypot(mine[:, 0], mine[:, 1]))
        hinge.template[p, 2] = np.median(mine[:, 2])
    return hinge


def _median_angle(angles: NDArray) -> float:
    """Median about the circular mean, rad; from the mode's side, so that a few angles elsewhere do not count."""
    middle = np.angle(np.mean(np.exp(1j * angles)))
    return float(middle + np.median(np.angle(np.exp(1j * (angles - middle)))))


# Markers that are another's, or no marker at all, recognised by where a hinge can put the body's markers.


GATE = 6.0
"""Standard deviations of a coordinate within which a position may be a marker's: noise stays within, also one with
heavier tails than a normal one's, and what a fault within does to an angle is small."""

FINEST = 1e-6
"""Least noise of a camera, m: less is rounding."""


@dataclass(frozen=True, eq=False)
class Mended:
    """Markers without faults.

    Attributes:
        markers: (N, P, 3) m; exchanged markers in their own places, NaN for what is no marker of the body.
        swapped: (N,) frames in which markers were exchanged.
        outliers: (N, P) positions, as given, that were dropped.
    """

    markers: NDArray
    swapped: NDArray
    outliers: NDArray


def mend(markers: NDArray, hinge: Hinge, noise: float) -> Mended:
    """Put exchanged markers back and drop positions that no angle of the hinge gives.

    In a frame with a residual beyond the gate, each position in turn is taken for each marker; that gives an angle and
    with it the places of all markers. The angle with the most positions in place wins, and of those the one that leaves
    each marker its own name.

    Args:
        markers: (N, P, 3) m, NaN where not seen.
        hinge: of the body; markers unknown there are dropped without being counted.
        noise: standard deviation of a coordinate, m.
    """
    limit = GATE * max(noise, FINEST)
    known = np.isfinite(hinge.template[:, 0])
    mended = np.where(known[:, None], markers, np.nan)
    swapped, outliers = np.zeros(len(markers), dtype=bool), np.zeros(markers.shape[:2], dtype=bool)
    local = hinge.local(mended)
    off = lengths(local - hinge.turned(hinge.angles(local)))
    suspect = np.flatnonzero(np.any((off > limit) & is_seen(local), axis=1))
    for k in suspect:
        source = _sources(local[k], hinge, limit)
        used = source >= 0
        swapped[k] = np.any(used & (source != np.arange(len(source))))
        outliers[k] = is_seen(local[k]) & ~np.isin(np.arange(len(source)), source)
        mended[k] = np.where(used[:, None], mended[k, source], np.nan)
    return Mended(mended, swapped, outliers)


def is_symmetric(hinge: Hinge, noise: float) -> bool:
    """Whether a turn about the axis exchanges the markers unnoticed, so that only the angle jumps."""
    known = np.isfinite(hinge.template[:, 0])
    body = Hinge(hinge.frame, hinge.center, hinge.template[known])
    limit = GATE * max(noise, FINEST)
    candidates = _candidates(body.template, body, limit)
    return any(i != p and len(_assigned(body.template, body, i, p, limit)[0]) == len(body.radii) for i, p in candidates)


def _sources(local: NDArray, hinge: Hinge, limit: float) -> NDArray:
    """(P,) which of a frame's local positions (P, 3) is each marker, -1 for none."""
    best, best_rank = np.full(len(local), -1), (0, 0, 0.0)
    n_seen = int(is_seen(local).sum())
    for i, p in _candidates(local, hinge, limit):
        points, places, cost = _assigned(local, hinge, i, p, limit)
        rank = (len(points), int(np.sum(points == places)), -cost)
        # A lone position under another's name is chance.
        if rank > best_rank and (rank[0] > 1 or rank[1] == 1):
            best, best_rank = np.full(len(local), -1), rank
            best[places] = points
            if rank[0] == n_seen:
                break
    return best


def _candidates(local: NDArray, hinge: Hinge, limit: float) -> NDArray:
    """(C, 2) positions and markers of the same radius and height, those of the same name first."""
    radius = np.hypot(local[:, 0], local[:, 1])
    # A marker on the axis shows no angle.
    turning = hinge.radii > 2 * limit
    off = np.hypot(radius[:, None] - hinge.radii, local[:, 2][:, None] - hinge.template[:, 2])
    with np.errstate(invalid="ignore"):
        pairs = np.argwhere((off < limit) & turning)
    return pairs[np.argsort(pairs[:, 0] != pairs[:, 1], kind="stable")]


def _assigned(local: NDArray, hinge: Hinge, i: int, p: int, limit: float) -> tuple[NDArray, NDArray, float]:
    """Positions and the markers that they are if position i is marker p, and the sum of squared misfits."""
    angle = np.arctan2(local[i, 1], local[i, 0]) - np.arctan2(hinge.template[p, 1], hinge.template[p, 0])
    expected = hinge.turned(np.array([angle]))[0]
    # The noise of position i turns the others.
    gate = limit * float(np.hypot(1.0, np.nanmax(hinge.radii) / hinge.radii[p]))
    points, places = matched(local, expected, gate)
    return points, places, float(np.sum((local[points] - expected[places]) ** 2))


# Angle of a body about a known axis, frame by frame.


Frames = int | slice | ArrayLike
"""Index, slice, indices or mask of frames."""


@dataclass(frozen=True, eq=False)
class JointAngle:
    """Angle of N frames about the axis of a hinge.

    Attributes:
        angle: (N,) rad, without jumps by whole turns; NaN where no marker is seen.
        standard_errors: (N,) of each angle by its own markers' noise, rad; independent from frame to frame as far as
            the noise is.
        offset: what the hinge's own angle is at zero, rad.
        zero_error: standard error of the angle of the reference frames, common to all angles, rad.
        noise: standard deviation of a marker's coordinate that the errors rest on, m.
        markers: (N, P, 3) m, mended: what the angles rest on.
        residuals: (N, P) distances of the markers from where the angle puts them, m; NaN where not seen.
        swapped: (N,) frames in which markers were exchanged and put back.
        outliers: (N, P) positions that were dropped.
    """

    angle: NDArray
    standard_errors: NDArray
    offset: float
    zero_error: float
    noise: float
    markers: NDArray
    residuals: NDArray
    swapped: NDArray
    outliers: NDArray

    @property
    def largest_step(self) -> float:
        """Largest change between frames that follow each other among those with an angle, rad.

        Near half a turn and beyond, whole turns are a guess.
        """
        return float(np.max(np.abs(np.diff(self.angle[np.isfinite(self.angle)])), initial=0.0))


def joint_angle(
    hinge: Hinge,
    markers: ArrayLike,
    noise: float | None = None,
    reference: Frames | None = None,
    reference_angle: ArrayLike = 0.0,
) -> JointAngle:
    """Angle that brings the hinge's markers nearest to those seen (Lightcap and Banks 2007, eq. 13).

    Exchanged markers are put back, others that fit no angle are dropped (`mend`); the squares of what is left have
    their minimum in closed form. The standard error is noise/√(Σ r²) over the seen markers.

    Args:
        hinge: axis, centre and the markers at angle zero.
        markers: (N, P, 3) m, NaN where a marker is not seen.
        noise: standard deviation of a marker's coordinate, m; None: by the median residual.
        reference: frames whose mean angle is known; None: angles count from the hinge's own zero.
        reference_angle: rad, one for all reference frames or one for each.

    Raises:
        MocapError: shapes that do not fit the hinge, or no marker in the reference frames.
    """
    positions = checked_markers(markers)
    if positions.shape[1] != len(hinge.radii):
        raise MocapError(f"{positions.shape[1]} markers for a hinge of {len(hinge.radii)}; expected the same markers")
    if noise is None:
        local = hinge.local(positions)
        noise = float(spread(lengths(local - hinge.turned(hinge.angles(local))).ravel()))
    mended = mend(positions, hinge, noise)
    local = hinge.local(mended.markers)
    angle = hinge.angles(local)
    seen = np.isfinite(angle)
    angle[seen] = np.unwrap(angle[seen])
    with np.errstate(divide="ignore"):
        errors = np.where(seen, noise / hinge.reach(is_seen(mended.markers)), np.nan)
    residuals = np.linalg.norm(local - hinge.turned(angle), axis=2)
    offset, zero_error = 0.0, 0.0
    if reference is not None:
        offset, zero_error = _zero(angle, errors, reference, reference_angle)
    return JointAngle(
        angle - offset, errors, offset, zero_error, noise, mended.markers, residuals, mended.swapped, mended.outliers
    )


def reference_mask(reference: Frames, n_frames: int) -> NDArray:
    """(N,) mask of the reference frames.

    Raises:
        MocapError: frames that do not exist, or none.
    """
    mask = np.zeros(n_frames, dtype=bool)
    try:
        mask[reference if isinstance(reference, int | slice) else np.asarray(reference)] = True
    except IndexError as error:
        raise MocapError(f"reference frames are not within the {n_frames} frames of the record: {error}") from error
    if not mask.any():
        raise MocapError("no reference frame is given; name at least one at which the angle is known")
    return mask


def _zero(angle: NDArray, errors: NDArray, reference: Frames, reference_angle: ArrayLike) -> tuple[float, float]:
    """What to take from all angles, and its standard error."""
    mask = reference_mask(reference, len(angle))
    given = np.asarray(reference_angle, dtype=float)
    if given.ndim > 1 or given.size not in (1, int(mask.sum())) or not np.isfinite(given).all():
        raise MocapError(
            f"reference_angle has shape {given.shape}; expected one finite angle, or one for each of "
            f"{int(mask.sum())} reference frames, rad"
        )
    given = np.broadcast_to(given.reshape(-1), int(mask.sum()))
    seen = np.isfinite(angle[mask])
    if not seen.any():
        raise MocapError("no marker is seen in the reference frames; choose others for the zero of the angle")
    difference = (angle[mask] - given)[seen]
    return float(np.mean(difference)), float(np.sqrt(np.sum(errors[mask][seen] ** 2)) / seen.sum())
