"""Axis and angle of one joint from markers on its link, while the other joints are held."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import spread
from dynid_ros.mocap.markers import (
    MAX_WORKSPACE_M,
    checked_markers,
    column_means,
    is_seen,
    jitter,
    linked,
    matched,
    pair_distances,
)
from dynid_ros.mocap.rotation_axis import (
    MAX_AXIS_ERROR_RAD,
    Axis,
    Center,
    Hinge,
    axis_of_rotation,
    center_of_rotation,
    checked_direction,
    oriented,
    start_hinge,
)

OUTLIER_SIGMAS = 6.0
"""Distance of a position from its marker's place, in standard deviations of a coordinate, above which it is an outlier.
Even noise with heavy tails seldom exceeds it, and a smaller fault has little effect on an angle."""
MIN_NOISE_M = 1e-6
"""Smallest noise of a camera, m; less may be rounding."""


Frames = int | slice | ArrayLike
"""Index, slice, indices or mask of frames."""


@dataclass(frozen=True, eq=False)
class JointAngle:
    """Angle of N frames about the axis of a hinge.

    Attributes:
        angle: Angles (N,) without jumps by whole turns, rad; NaN where no marker is seen.
        standard_errors: Standard errors (N,) of the angles due to the noise of their frames, rad.
        offset: Angle of the hinge, rad, at which the angle counted from the reference is zero.
        zero_error: Standard error of the mean angle of the reference frames, common to all angles, rad.
        noise: Standard deviation of a marker's coordinate, m, from which standard errors follow.
        markers: Positions (N, P, 3) from which the angles follow, m: names are corrected, and outliers are NaN.
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
    """Return markers (N, P, 3) with corrected names; positions that fit no angle of the hinge are NaN."""
    limit = OUTLIER_SIGMAS * max(noise, MIN_NOISE_M)
    cleaned = np.where(np.isfinite(hinge.radii)[:, None], markers, np.nan)
    local = hinge.to_local(cleaned)
    suspect = np.flatnonzero(np.any((hinge.misfits(local) > limit) & is_seen(local), axis=1))
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
        noise: Standard deviation σ of a marker's coordinate, m; None: estimated from the median residual.
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
        noise = float(spread(hinge.misfits(local).ravel()))
        # A frame of 3 P coordinates has one degree of freedom less, as its angle is fitted.
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
        mask = reference_mask(reference, len(angle))
        zero_angles = np.asarray(reference_angle, dtype=float)
        if zero_angles.ndim > 1 or zero_angles.size not in (1, mask.sum()) or not np.isfinite(zero_angles).all():
            raise MocapError(
                f"reference_angle has shape {zero_angles.shape}; expected one finite angle, or one for each of "
                f"{mask.sum()} reference frames, rad"
            )
        if not seen[mask].any():
            raise MocapError("no marker is seen in the reference frames; choose others for the zero of the angle")
        offset = float(np.mean((angle[mask] - zero_angles.reshape(-1))[seen[mask]]))
        zero_error = float(np.sqrt(np.sum(errors[mask & seen] ** 2)) / seen[mask].sum())
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


MAX_CENTER_ERROR = 0.1
"""Largest standard error of the centre relative to the markers' radius; angles have the same error in rad."""
MAX_OUTLIER_SHARE = 0.2
"""Largest fraction of positions that fit no angle."""
MAX_NOISE_RATIO = 5.0
MAX_TRAVEL_SHARE = 0.02
"""Ratios of the residual to the noise from frame to frame, and to the markers' travel. If it exceeds both, the motion
is no rotation about one axis. Distortion by lenses exceeds the first too, which alone would refuse good records."""
REMARKED_NOISE_RATIO = 3.0
"""Ratio of a residual to the noise from frame to frame, or to the other markers' residuals, that causes a remark."""
MAX_KNOWN_STEP_RAD = 2.0
"""Change of the angle between successive frames, rad, above which whole turns may be lost."""
SIGN_TOLERANCE = 0.05
"""Relative difference of the largest angles in both directions, up to which noise might decide the sign of the axis."""
N_STARTS = 20
FRAMES_PER_START = 20
"""Number of random starts of the robust fit, and of frames in each: so few frames rarely contain a gross error."""
MAX_PASSES = 20
"""Largest number of concentration steps from a start."""


@dataclass(frozen=True, eq=False)
class SingleJointResult:
    """Axis, centre and angle of one joint from markers.

    Attributes:
        time: Times (N,) of the frames, s.
        hinge: Axis, centre and markers, with the zero of the angle; `joint_angle` can apply it to further records.
        axis_estimate: Direction of the axis, with its covariance.
        center_estimate: Point on the axis, with its covariance.
        motion: Angle of each frame, with errors, residuals and faults.
        axis_angle_errors: Standard errors (N,) of the angles relative to the reference, due to axis and centre, rad;
            they change slowly with the angle, and their squares add to those of `standard_errors`.
        remarks: Sentences on limitations and faults.
    """

    time: NDArray
    hinge: Hinge
    axis_estimate: Axis
    center_estimate: Center
    motion: JointAngle
    axis_angle_errors: NDArray
    remarks: tuple[str, ...] = ()

    @property
    def axis(self) -> NDArray:
        """Unit vector (3,) about which positive angles turn right-handed."""
        return self.hinge.axis

    @property
    def center(self) -> NDArray:
        """Point (3,) on the axis, m."""
        return self.hinge.center

    @property
    def radii(self) -> NDArray:
        """Distances (P,) of the markers from the axis, m; NaN of a marker that could not be used."""
        return self.hinge.radii

    @property
    def angle(self) -> NDArray:
        """Angles (N,), rad; NaN where no marker is seen."""
        return self.motion.angle

    @property
    def standard_errors(self) -> NDArray:
        """Standard errors (N,) of the angles due to the noise of their frames, rad."""
        return self.motion.standard_errors

    @property
    def marker_rms(self) -> NDArray:
        """RMS distances (P,) of the markers from their places, m; NaN for a marker that was never used."""
        count = np.sum(np.isfinite(self.motion.residuals), axis=0)
        total = np.nansum(self.motion.residuals**2, axis=0)
        return np.sqrt(np.where(count > 0, total / np.maximum(count, 1), np.nan))

    def summary(self) -> str:
        """Return the result as text of several lines."""
        axis, center = (", ".join(f"{x:.4f}" for x in vector) for vector in (self.axis, self.center))
        moved = np.degrees([np.nanmin(self.angle), np.nanmax(self.angle)])
        rms = np.sqrt(np.nanmean(self.motion.residuals**2))
        lines = [
            f"axis    ({axis}), standard error {np.degrees(self.axis_estimate.standard_error):.2g}°",
            f"centre  ({center}) m, standard error {1000 * self.center_estimate.standard_error:.2g} mm normal to the "
            "axis",
            f"radii   {', '.join(f'{1000 * r:.1f}' for r in self.radii)} mm",
            f"angle   {moved[0]:.2f}° to {moved[1]:.2f}°, standard error "
            f"{np.degrees(np.nanmedian(self.standard_errors)):.2g}° of a frame, "
            f"{np.degrees(self.motion.zero_error):.2g}° of the zero, "
            f"{np.degrees(np.nanmax(self.axis_angle_errors)):.2g}° at most by axis and centre",
            f"residual {1000 * rms:.2g} mm RMS; exchanged markers in {self.motion.swapped.sum()} frames put back, "
            f"{self.motion.outliers.sum()} positions dropped, {np.isnan(self.angle).sum()} of {len(self.angle)} frames "
            "without an angle",
        ]
        return "\n".join([*lines, *self.remarks])


class SingleJoint:
    """Estimator of axis, centre and angle of one joint from markers on its link, while other joints are held.

    It combines the axis of rotation (Gamage and Lasenby 2002), the bias-compensated centre (Halvorsen 2003) and the
    angle of each frame (Lightcap and Banks 2007, eq. 13), after a robust fit has removed outliers.

    Args:
        towards: Approximate axis (3,) in the camera's frame, which determines the sign of the angle. None: the angle
            farthest from that of the first frame is positive.

    Raises:
        MocapError: The approximate axis is zero, not finite or not a 3-vector.
    """

    def __init__(self, towards: ArrayLike | None = None) -> None:
        self.towards = None if towards is None else checked_direction(towards)

    def fit(
        self, time: ArrayLike, markers: ArrayLike, reference: Frames | None = None, reference_angle: ArrayLike = 0.0
    ) -> SingleJointResult:
        """Estimate axis, centre and angle.

        Args:
            time: Increasing times (N,), s; frames may be missing.
            markers: Positions (N, P, 3), m; NaN where a marker is not seen.
            reference: Frames whose mean angle is known: index, slice, indices or mask; None: the first with an angle.
            reference_angle: One angle for all reference frames or one for each in order of time, rad.

        Raises:
            MocapError: The positions are not in metres, the motion is too small or no rotation about one fixed axis,
                or the shapes do not fit.
        """
        positions = checked_markers(markers)
        stamps = _checked_time(time, len(positions))
        hinge, noise = robust_hinge(linked(positions))
        cleaned = clean_markers(positions, hinge, noise)
        _require_rotation(positions[:, np.isfinite(hinge.radii)], cleaned[:, np.isfinite(hinge.radii)], noise)
        axis = axis_of_rotation(cleaned)
        center = center_of_rotation(cleaned, axis.direction)
        hinge = self._oriented(start_hinge(cleaned, axis.direction, center.point), cleaned)
        _require_determined(axis, center, hinge)
        oriented(hinge.axis, self.towards)  # refuses an approximate axis that does not determine the sign
        seen = np.flatnonzero(is_seen(cleaned).any(axis=1))
        chosen = int(seen[0]) if reference is None else reference
        motion = joint_angle(hinge, positions, None, chosen, reference_angle)
        errors = _axis_angle_errors(hinge, axis, center, motion, reference_mask(chosen, len(positions)))
        hinge = hinge.with_zero_at(motion.offset)
        result = SingleJointResult(stamps, hinge, axis, center, motion, errors)
        return replace(result, remarks=remarks(result, sign_is_known=self.towards is not None))

    def _oriented(self, hinge: Hinge, markers: NDArray) -> Hinge:
        """Return the hinge with the sign of its axis as `towards`, or so that the farthest angle is positive."""
        if self.towards is not None:
            sign = float(hinge.axis @ self.towards)
        else:
            angle = hinge.angles(hinge.to_local(markers))
            angle = np.unwrap(angle[np.isfinite(angle)])
            sign = float(angle[np.argmax(np.abs(angle - angle[0]))] - angle[0])
        return hinge if sign > 0 else hinge.reversed()


def robust_hinge(markers: NDArray) -> tuple[Hinge, float]:
    """Return the hinge with which most positions (N, P, 3) agree, and the noise of a coordinate, m.

    Concentration steps (Rousseeuw and Van Driessen 1999) fit a hinge, select the positions near it, and repeat until
    the selection stays the same. They start with all frames and with few random ones; the fit with the least noise
    wins.

    Raises:
        MocapError: No start determines an axis and a centre.
    """
    rng = np.random.default_rng(0)
    frames = np.flatnonzero(is_seen(markers).any(axis=1))
    starts = [frames, *(rng.choice(frames, min(FRAMES_PER_START, len(frames)), replace=False) for _ in range(N_STARTS))]
    best: tuple[Hinge, float] | None = None
    reason = MocapError("no marker is seen")
    for number, rows in enumerate(starts):
        try:
            fit = _concentrated(markers, np.isin(np.arange(len(markers)), rows))
        except MocapError as error:
            reason = reason if number else error
            continue
        if best is None or fit[1] < best[1]:
            best = fit
        if fit[1] < REMARKED_NOISE_RATIO * jitter(markers):
            break
    if best is None:
        raise reason
    return best


def _concentrated(markers: NDArray, frames: NDArray) -> tuple[Hinge, float]:
    """Return hinge and noise after concentration steps that start with the frames in a mask (N,)."""
    used = is_seen(markers) & frames[:, None]
    for _ in range(MAX_PASSES):
        trusted = np.where(used[..., None], markers, np.nan)
        axis = axis_of_rotation(trusted).direction
        try:
            center = center_of_rotation(trusted, axis).point
        except MocapError:  # the arcs are too short for the compensation; plain least squares may be good enough
            center = center_of_rotation(trusted, axis, compensated=False).point
        hinge = start_hinge(markers, axis, center)
        misfit = hinge.misfits(hinge.to_local(markers))
        noise = float(spread(misfit.ravel()))
        before = used
        used = misfit < OUTLIER_SIGMAS * max(noise, MIN_NOISE_M)
        if np.array_equal(before, used):
            break
    return hinge, noise


def _axis_angle_errors(hinge: Hinge, axis: Axis, center: Center, motion: JointAngle, reference: NDArray) -> NDArray:
    """Return the standard errors (N,) of angles relative to the reference frames, due to axis and centre, rad.

    A shift d of the centre changes the angle by -Σ t·d / Σ r², a tilt ω of the axis by -Σ t·(ω × p) / Σ r². The sums
    are over the seen markers, with their places p, radii r and tangents t of length r.
    """
    x, y, z = np.moveaxis(
        np.where(is_seen(motion.markers)[..., None], hinge.turned(motion.angle + motion.offset), 0.0), 2, 0
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = np.stack([(x * z).sum(axis=1), (y * z).sum(axis=1), -y.sum(axis=1), x.sum(axis=1)], axis=1)
        slopes /= (x**2 + y**2).sum(axis=1)[:, None]
    slopes -= np.nanmean(slopes[reference], axis=0)
    plane = hinge.frame[:, :2]
    covariance = np.zeros((4, 4))
    covariance[:2, :2] = plane.T @ axis.covariance @ plane
    covariance[2:, 2:] = plane.T @ center.covariance @ plane
    return np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", slopes, covariance, slopes), 0.0))


def _checked_time(time: ArrayLike, n_frames: int) -> NDArray:
    stamps = np.asarray(time, dtype=float)
    if stamps.shape != (n_frames,):
        raise MocapError(f"time has shape {stamps.shape}; expected ({n_frames},): one for each frame of the markers")
    late = np.flatnonzero(~(np.diff(stamps) > 0))
    if late.size or not np.isfinite(stamps).all():
        k = int(late[0]) + 1 if late.size else 0
        raise MocapError(f"time does not increase at frame {k}; expected seconds in order of time, no frame twice")
    return stamps


def _require_determined(axis: Axis, center: Center, hinge: Hinge) -> None:
    """Refuse an axis or a centre that the motion leaves undetermined, and positions that are not in metres."""
    radius = float(np.sqrt(np.nanmean(hinge.radii**2)))
    if not (axis.standard_error < MAX_AXIS_ERROR_RAD and center.standard_error < MAX_CENTER_ERROR * radius):
        raise MocapError(
            "the motion is too small to determine the joint's axis: standard errors are "
            f"{np.degrees(axis.standard_error):.2g}° of its direction and {1000 * center.standard_error:.2g} mm of its "
            f"place, with markers {1000 * radius:.3g} mm off; expected less than {np.degrees(MAX_AXIS_ERROR_RAD):.2g}° "
            f"and {MAX_CENTER_ERROR:.0%} of that distance. Turn the joint further, put markers farther from its axis "
            "and at different angles about it, or record longer"
        )
    if np.nanmax(hinge.radii) > MAX_WORKSPACE_M:
        farthest = int(np.nanargmax(hinge.radii))
        raise MocapError(
            f"marker {farthest} is {hinge.radii[farthest]:.4g} m from the axis; no arm is that large: are "
            "positions in mm? Divide by 1000"
        )


def _require_rotation(positions: NDArray, cleaned: NDArray, noise: float) -> None:
    """Refuse a motion that is not about one fixed axis, or markers that are not on one body."""
    seen = is_seen(cleaned)
    dropped = 1.0 - seen.sum() / is_seen(positions).sum()
    offsets = (cleaned - column_means(cleaned, seen))[seen]
    travel = float(np.sqrt(np.mean(np.sum(offsets**2, axis=1)))) if seen.any() else 0.0
    quiet = jitter(cleaned)
    if dropped > MAX_OUTLIER_SHARE:
        what = f"{dropped:.0%} of the marker positions fit no angle about any one axis"
    elif noise > MAX_TRAVEL_SHARE * travel and not noise < MAX_NOISE_RATIO * quiet:
        what = (
            f"the markers leave every rotation about one fixed axis by {1000 * noise:.2g} mm, with noise of "
            f"{1000 * quiet:.2g} mm from frame to frame and {1000 * travel:.3g} mm of travel"
        )
    else:
        return
    change = np.zeros((positions.shape[1], positions.shape[1]))
    for i, j, distance in pair_distances(positions):
        change[i, j] = change[j, i] = np.nanstd(distance)
    if change.max() > 0.5 * noise:
        advice = (
            f"distances between markers change by up to {1000 * change.max():.2g} mm (standard deviation), most of "
            f"marker {int(np.argmax(change.sum(axis=0)))}; expected markers of one rigid link, each under its own "
            "name. Leave that marker out"
        )
    else:
        advice = (
            "the markers stay together, so the link moves otherwise too; hold the other joints still, and fix the base "
            "and the cameras"
        )
    raise MocapError(f"{what}: {advice}")


def remarks(result: SingleJointResult, *, sign_is_known: bool) -> tuple[str, ...]:
    """Return sentences on limitations and faults of a result."""
    motion = result.motion
    sentences = [
        f"Marker {p} is never seen together with others and is left out."
        for p in np.flatnonzero(~np.isfinite(result.radii))
    ]
    if np.isfinite(result.radii).sum() == 1:
        sentences.append(
            "A single marker determines axis, centre and angle by its arc, but not whether the body turns as one; with "
            "three markers faults are found and corrected."
        )
    rms = result.marker_rms
    worst = int(np.nanargmax(rms))
    others = np.delete(rms, worst)
    if np.isfinite(others).any() and rms[worst] > REMARKED_NOISE_RATIO * np.nanmedian(others):
        sentences.append(
            f"Marker {worst} is off by {1000 * rms[worst]:.2g} mm RMS, the others by "
            f"{1000 * np.nanmedian(others):.2g} mm: is it loose? Leave it out."
        )
    steps = np.diff(result.time)
    lost = int(np.sum(np.maximum(np.round(steps / np.median(steps)) - 1, 0))) if steps.size else 0
    if lost:
        sentences.append(f"{lost} frames are missing, {steps.max():.3g} s at the longest.")
    angle = motion.angle[np.isfinite(motion.angle)]
    largest_step = float(np.max(np.abs(np.diff(angle)), initial=0.0))
    if largest_step > MAX_KNOWN_STEP_RAD:
        sentences.append(
            f"The angle changes by {np.degrees(largest_step):.0f}° between frames that follow each other: whole turns "
            "are a guess there."
        )
    quiet = jitter(motion.markers)
    if motion.noise > REMARKED_NOISE_RATIO * quiet:
        sentences.append(
            f"The residual of {1000 * motion.noise:.2g} mm is {motion.noise / quiet:.0f} times the noise from frame to "
            "frame: the cameras' calibration, a marker that shakes or a second, small motion. Angles err slowly by it."
        )
    reach = np.abs([np.max(angle - angle[0]), np.min(angle - angle[0])])
    if not sign_is_known and abs(reach[0] - reach[1]) < SIGN_TOLERANCE * reach.max():
        sentences.append(
            "Both directions reach equally far, and the farthest angle from the first frame is taken for positive: "
            "give the approximate axis (towards) to be sure of the sign."
        )
    return tuple(sentences)
