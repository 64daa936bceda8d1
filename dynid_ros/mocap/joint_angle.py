"""Angle of a body about a known axis, frame by frame."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import lengths, spread
from dynid_ros.mocap.hinge import Hinge
from dynid_ros.mocap.marker_faults import mend
from dynid_ros.mocap.markers import checked_markers, is_seen

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
