"""A rigid body that turns about a fixed axis: the places of its markers, and its angle in each frame."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import lengths, spread
from dynid_ros.mocap.markers import checked_markers, is_seen, matched
from dynid_ros.mocap.rotation_axis import axis_frame

OUTLIER_SIGMAS = 6.0
"""Standard deviations of a coordinate within which a position may be a marker's. Noise with heavier tails than a normal
one's stays within, and the effect of a smaller fault on an angle is small."""
MIN_NOISE_M = 1e-6
"""Smallest noise of a camera that is told from rounding."""
NAME_WEIGHT = 0.01
"""Weight of a marker that keeps its name, in parts of a position that is in place."""
MISFIT_WEIGHT = 0.01
"""Weight of the distance of all positions from their places, in parts of a name that is kept."""


@dataclass(frozen=True, eq=False)
class Hinge:
    """Markers on circles about one axis, with fixed angles between them.

    Attributes:
        frame: Columns (3, 3) in the camera's frame: two normal to the axis, and the axis, about which positive angles
            turn right-handed.
        center: Point on the axis in the camera's frame, (3,) m.
        template: Markers at angle zero, (P, 3) m from the centre along the columns of `frame`; NaN where unknown.
    """

    frame: NDArray
    center: NDArray
    template: NDArray

    @property
    def axis(self) -> NDArray:
        """Unit vector (3,) of the axis."""
        return self.frame[:, 2]

    @cached_property
    def radii(self) -> NDArray:
        """Distances (P,) of the markers from the axis, m."""
        return np.hypot(self.template[:, 0], self.template[:, 1])

    def to_local(self, markers: NDArray) -> NDArray:
        """Return positions (..., 3) relative to the centre along the columns of `frame`."""
        return (markers - self.center) @ self.frame

    def turned(self, angle: NDArray) -> NDArray:
        """Return the local positions (N, P, 3) of the markers at angles (N,), rad."""
        cosine = np.cos(angle)[:, None]
        sine = np.sin(angle)[:, None]
        x, y, height = self.template.T
        along = cosine * x - sine * y
        return np.stack([along, sine * x + cosine * y, np.broadcast_to(height, along.shape)], axis=2)

    def angles(self, local: NDArray) -> NDArray:
        """Return the least-squares angles (N,) of local positions (N, P, 3) in (-π, π]; NaN where no marker is seen.

        The sum of squared distances of Lightcap and Banks 2007, eq. 13, has its minimum in closed form: only distances
        in the plane normal to the axis depend on the angle.
        """
        x = local[..., 0]
        y = local[..., 1]
        along = np.nansum(x * self.template[:, 0] + y * self.template[:, 1], axis=1)
        across = np.nansum(y * self.template[:, 0] - x * self.template[:, 1], axis=1)
        return np.where((along == 0) & (across == 0), np.nan, np.arctan2(across, along))

    def agreed_angles(self, local: NDArray, limit: float) -> NDArray:
        """Return the angles (N,) at which most positions (N, P, 3) are places of markers, whatever their names.

        Each position in turn is taken for each marker, which gives an angle and with it the places of all markers. Of
        equal angles the one that leaves more markers their own names wins. A lone position may not take another name.
        """
        phases = np.arctan2(local[..., 1], local[..., 0])
        best = np.full(len(local), np.nan)
        best_score = np.ones(len(local))
        for position, marker in product(range(local.shape[1]), np.flatnonzero(self.radii > 2.0 * limit)):
            angle = phases[:, position] - np.arctan2(self.template[marker, 1], self.template[marker, 0])
            off = lengths(local[:, :, None] - self.turned(angle)[:, None])
            near = off < limit * np.hypot(1.0, np.nanmax(self.radii) / self.radii[marker])
            names_kept = np.einsum("kpp->k", near.astype(float))
            misfit = np.minimum(off.min(axis=2), limit).sum(axis=1) / limit
            score = near.any(axis=2).sum(axis=1) + NAME_WEIGHT * (names_kept - MISFIT_WEIGHT * misfit)
            better = score > best_score
            best[better] = angle[better]
            best_score[better] = score[better]
        return best

    def with_zero_at(self, angle: float) -> "Hinge":
        """Return the same hinge with its angle zero at `angle`, rad."""
        return replace(self, template=self.turned(np.array([angle]))[0])

    def reversed(self) -> "Hinge":
        """Return the same hinge with the opposite axis, so that all angles change their signs."""
        flip = np.array([1.0, -1.0, -1.0])
        return replace(self, frame=self.frame * flip, template=self.template * flip)


def start_hinge(markers: NDArray, axis: NDArray, center: NDArray) -> Hinge:
    """Return the hinge about a known axis: radii, heights and angles between markers are medians over the frames.

    A marker that is never seen together with any other, directly or by way of others, stays unknown.

    Args:
        markers: Positions (N, P, 3), m; NaN where not seen.
        axis: Unit vector (3,).
        center: Point (3,), m.
    """
    hinge = Hinge(axis_frame(axis), center, np.full((markers.shape[1], 3), np.nan))
    local = hinge.to_local(markers)
    seen = is_seen(local)
    phase = np.arctan2(local[..., 1], local[..., 0])
    first = int(np.argmax(seen.sum(axis=0)))
    offsets = {first: 0.0}
    turn = np.where(seen[:, first], phase[:, first], np.nan)
    waiting = set(range(markers.shape[1])) - {first}
    while waiting:
        marker = max(waiting, key=lambda p: int(np.sum(np.isfinite(turn) & seen[:, p])))
        difference = (phase[:, marker] - turn)[np.isfinite(turn) & seen[:, marker]]
        if not len(difference):
            break
        # The median about the circular mean.
        middle = np.angle(np.mean(np.exp(1j * difference)))
        offsets[marker] = float(middle + np.median(np.angle(np.exp(1j * (difference - middle)))))
        turn = np.where(np.isfinite(turn), turn, phase[:, marker] - offsets[marker])
        waiting.remove(marker)
    for marker, offset in offsets.items():
        known = local[seen[:, marker], marker]
        radius = np.median(np.hypot(known[:, 0], known[:, 1]))
        hinge.template[marker] = radius * np.cos(offset), radius * np.sin(offset), np.median(known[:, 2])
    return hinge


Frames = int | slice | ArrayLike
"""Index, slice, indices or mask of frames."""


@dataclass(frozen=True, eq=False)
class JointAngle:
    """Angle of N frames about the axis of a hinge.

    Attributes:
        angle: Angles (N,) without jumps by whole turns, rad; NaN where no marker is seen.
        standard_errors: Standard errors (N,) of the angles by the noise of their own frames, rad.
        offset: Angle of the hinge at zero, rad.
        zero_error: Standard error of the mean angle of the reference frames, common to all angles, rad.
        noise: Standard deviation of a marker's coordinate that the errors rest on, m.
        markers: Positions (N, P, 3) that the angles rest on, m: exchanged names put back, ghosts NaN.
        residuals: Distances (N, P) of the markers from their places at these angles, m; NaN where not seen.
        swapped: Mask (N,) of the frames in which names of markers were exchanged.
        outliers: Mask (N, P) of the given positions that were dropped.
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


def clean_markers(markers: NDArray, hinge: Hinge, noise: float) -> NDArray:
    """Return markers (N, P, 3) with exchanged names put back, NaN for positions that no angle of the hinge gives."""
    limit = OUTLIER_SIGMAS * max(noise, MIN_NOISE_M)
    cleaned = np.where(np.isfinite(hinge.radii)[:, None], markers, np.nan)
    local = hinge.to_local(cleaned)
    off = lengths(local - hinge.turned(hinge.angles(local)))
    suspect = np.flatnonzero(np.any((off > limit) & is_seen(local), axis=1))
    places = hinge.turned(hinge.agreed_angles(local[suspect], limit))
    widest = np.nanmax(hinge.radii) / max(np.nanmin(hinge.radii), limit)
    for frame, expected in zip(suspect, places, strict=True):
        positions, names = matched(local[frame], expected, limit * float(np.hypot(1.0, widest)))
        given = cleaned[frame].copy()
        cleaned[frame] = np.nan
        cleaned[frame, names] = given[positions]
    return cleaned


def joint_angle(
    hinge: Hinge,
    markers: ArrayLike,
    noise: float | None = None,
    reference: Frames | None = None,
    reference_angle: ArrayLike = 0.0,
) -> JointAngle:
    """Return the angle that brings the hinge's markers nearest to those seen (Lightcap and Banks 2007, eq. 13).

    The standard error of one frame is σ / √Σr², summed over the markers that are seen.

    Args:
        hinge: Axis, centre and the markers at angle zero.
        markers: Positions (N, P, 3), m; NaN where a marker is not seen.
        noise: Standard deviation σ of a marker's coordinate, m; None: by the median residual.
        reference: Frames whose mean angle is known; None: angles count from the hinge's own zero.
        reference_angle: One angle for all reference frames or one for each, rad.

    Raises:
        MocapError: The shapes do not fit the hinge, or no marker is seen in the reference frames.
    """
    positions = checked_markers(markers)
    if positions.shape[1] != len(hinge.radii):
        raise MocapError(f"{positions.shape[1]} markers for a hinge of {len(hinge.radii)}; expected the same markers")
    if noise is None:
        local = hinge.to_local(positions)
        noise = float(spread(lengths(local - hinge.turned(hinge.angles(local))).ravel()))
        # The angle takes one of the 3 P coordinates of a frame.
        coordinates = 3.0 * is_seen(local).sum() / is_seen(local).any(axis=1).sum()
        noise *= float(np.sqrt(coordinates / (coordinates - 1.0)))
    cleaned = clean_markers(positions, hinge, noise)
    local = hinge.to_local(cleaned)
    angle = hinge.angles(local)
    seen = np.isfinite(angle)
    angle[seen] = np.unwrap(angle[seen])
    with np.errstate(divide="ignore"):
        reach = np.sqrt(is_seen(cleaned) @ np.nan_to_num(hinge.radii) ** 2)
        errors = np.where(seen, noise / reach, np.nan)
    offset = 0.0
    zero_error = 0.0
    if reference is not None:
        offset, zero_error = _zero(angle, errors, reference, reference_angle)
    same = np.all(cleaned[:, :, None] == positions[:, None], axis=3)  # marker, given position
    return JointAngle(
        angle - offset,
        errors,
        offset,
        zero_error,
        noise,
        cleaned,
        np.linalg.norm(local - hinge.turned(angle), axis=2),
        swapped=np.any(is_seen(cleaned) & ~np.einsum("kpp->kp", same), axis=1),
        outliers=is_seen(positions) & np.isfinite(hinge.radii) & ~same.any(axis=1),
    )


def reference_mask(reference: Frames, n_frames: int) -> NDArray:
    """Return the mask (N,) of the reference frames."""
    mask = np.zeros(n_frames, dtype=bool)
    try:
        mask[reference if isinstance(reference, int | slice) else np.asarray(reference)] = True
    except IndexError as error:
        raise MocapError(f"reference frames are not within the {n_frames} frames of the record: {error}") from error
    if not mask.any():
        raise MocapError("no reference frame is given; name at least one at which the angle is known")
    return mask


def _zero(angle: NDArray, errors: NDArray, reference: Frames, reference_angle: ArrayLike) -> tuple[float, float]:
    """Return the offset that brings the reference frames to their known angles, and its standard error."""
    mask = reference_mask(reference, len(angle))
    count = int(mask.sum())
    known = np.asarray(reference_angle, dtype=float)
    if known.ndim > 1 or known.size not in (1, count) or not np.isfinite(known).all():
        raise MocapError(
            f"reference_angle has shape {known.shape}; expected one finite angle, or one for each of {count} "
            "reference frames, rad"
        )
    seen = np.isfinite(angle[mask])
    if not seen.any():
        raise MocapError("no marker is seen in the reference frames; choose others for the zero of the angle")
    difference = (angle[mask] - np.broadcast_to(known.reshape(-1), count))[seen]
    return float(np.mean(difference)), float(np.sqrt(np.sum(errors[mask][seen] ** 2)) / seen.sum())
