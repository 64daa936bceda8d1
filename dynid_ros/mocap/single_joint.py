"""One joint that turns while the others are held: its axis and its angle from markers on the link."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import MocapError
from dynid_ros.mocap.hinge import Frames, Hinge, JointAngle, Mended, is_symmetric, joint_angle, mend, reference_mask
from dynid_ros.mocap.hinge_fit import HingeFit, first_hinge, fit_hinge
from dynid_ros.mocap.markers import LARGEST, checked_markers, column_means, is_seen, jitter, pair_distances
from dynid_ros.mocap.rotation_axis import WORST, checked_direction, oriented

# What a person should know about an axis and an angle found from markers.


SLOW = 3.0
"""Residual in parts of the noise from frame to frame beyond which it is remarked."""

GUESSED = 2.0
"""Angle between known frames, rad, beyond which whole turns may be lost."""

SAME = 0.05
"""Difference of the largest angles in both directions, in parts of them, within which noise could set the sign."""


def remarks(time: NDArray, fit: HingeFit, motion: JointAngle, marker_rms: NDArray, sign: str) -> tuple[str, ...]:
    """One sentence each.

    Args:
        time: (N,) s.
        fit: of the hinge.
        motion: of the joint.
        marker_rms: (P,) root mean square residuals, m.
        sign: how the sign of the angle was chosen; empty if it was given.
    """
    found = [*_about_markers(fit, motion, marker_rms), *_about_frames(time, motion)]
    noise = jitter(motion.markers)
    if fit.noise > SLOW * noise:
        found.append(
            f"The residual of {1000 * fit.noise:.2g} mm is {fit.noise / noise:.0f} times the noise from frame to "
            "frame: the cameras' calibration, a marker that shakes or a second, small motion. Angles err slowly by it."
        )
    angle = motion.angle[np.isfinite(motion.angle)]
    reach = np.abs([np.max(angle - angle[0]), np.min(angle - angle[0])])
    if sign and abs(reach[0] - reach[1]) < SAME * reach.max():
        found.append(
            f"Both directions reach equally far, and {sign}: give the approximate axis (towards) to be sure of it."
        )
    return tuple(found)


def _about_markers(fit: HingeFit, motion: JointAngle, marker_rms: NDArray) -> list[str]:
    found = []
    known = np.isfinite(fit.hinge.radii)
    for p in np.flatnonzero(~known):
        found.append(f"Marker {p} is never seen together with others and is left out.")
    if known.sum() == 1:
        found.append(
            "A single marker determines axis, centre and angle by its arc, but not whether the body turns as one; with "
            "three markers faults are found and mended."
        )
    elif known.sum() == 2:
        found.append("With two markers, only one of them may be wrong in a frame; three are safer.")
    if known.sum() > 1 and is_symmetric(fit.hinge, fit.noise):
        found.append(
            "The markers look the same after a turn about the axis, so exchanged markers show as jumps of the angle "
            "that are not mended; move one of them."
        )
    worst = int(np.nanargmax(marker_rms))
    others = np.delete(marker_rms, worst)
    others = others[np.isfinite(others)]
    if others.size and marker_rms[worst] > SLOW * np.median(others):
        found.append(
            f"Marker {worst} is off by {1000 * marker_rms[worst]:.2g} mm RMS, the others by "
            f"{1000 * np.median(others):.2g} mm: is it loose? Leave it out."
        )
    share = motion.outliers.mean(axis=0)
    if share.max() > 0.05:
        most = int(np.argmax(share))
        found.append(f"Marker {most} is no marker of the body in {share[most]:.0%} of the frames.")
    return found


def _about_frames(time: NDArray, motion: JointAngle) -> list[str]:
    found = []
    steps = np.diff(time)
    lost = int(np.sum(np.maximum(np.round(steps / np.median(steps)) - 1, 0))) if steps.size else 0
    if lost:
        found.append(f"{lost} frames are missing, {steps.max():.3g} s at the longest.")
    if motion.largest_step > GUESSED:
        found.append(
            f"The angle changes by {np.degrees(motion.largest_step):.0f}° between frames that follow each other: whole "
            "turns are a guess there."
        )
    return found


# What markers determine of one joint.


@dataclass(frozen=True, eq=False)
class SingleJointResult:
    """What markers determine of one joint; see `SingleJoint`.

    Attributes:
        time: (N,) s.
        fit: axis, centre and markers, with errors.
        motion: angle of each frame, with errors, residuals and what was mended.
        axis_angle_errors: (N,) standard errors of the angles, less that at the reference, by axis, centre and markers
            alone, rad; they change slowly with the angle, and add (squared) to `standard_errors`.
        remarks: what to know about the result, one sentence each.
    """

    time: NDArray
    fit: HingeFit
    motion: JointAngle
    axis_angle_errors: NDArray
    remarks: tuple[str, ...]

    @property
    def hinge(self) -> Hinge:
        """For `joint_angle` of further records with the same markers, cameras and zero."""
        return self.fit.hinge

    @property
    def axis(self) -> NDArray:
        """(3,) unit vector, about which positive angles turn right-handed."""
        return self.fit.hinge.axis

    @property
    def center(self) -> NDArray:
        """(3,) point on the axis, m."""
        return self.fit.hinge.center

    @property
    def radii(self) -> NDArray:
        """(P,) m; NaN of a marker that could not be used."""
        return self.fit.hinge.radii

    @property
    def angle(self) -> NDArray:
        """(N,) rad; NaN where no marker is seen."""
        return self.motion.angle

    @property
    def standard_errors(self) -> NDArray:
        """(N,) of each angle by its own markers' noise, rad."""
        return self.motion.standard_errors

    @property
    def residual_rms(self) -> float:
        """Root mean square distance of the markers from where the angles put them, m."""
        return float(np.sqrt(np.nanmean(self.motion.residuals**2)))

    @property
    def marker_rms(self) -> NDArray:
        """(P,) of each marker, m; NaN of one never used."""
        count = np.sum(np.isfinite(self.motion.residuals), axis=0)
        total = np.nansum(self.motion.residuals**2, axis=0)
        return np.sqrt(np.where(count > 0, total / np.maximum(count, 1), np.nan))

    @property
    def n_swapped(self) -> int:
        """Frames in which markers were exchanged and put back."""
        return int(self.motion.swapped.sum())

    @property
    def n_outliers(self) -> int:
        """Positions that were dropped."""
        return int(self.motion.outliers.sum())

    @property
    def n_without_angle(self) -> int:
        """Frames in which no marker is seen."""
        return int(np.isnan(self.angle).sum())

    def summary(self) -> str:
        """Several lines for a person."""
        axis, center = (", ".join(f"{x:.4f}" for x in vector) for vector in (self.axis, self.center))
        moved = np.degrees([np.nanmin(self.angle), np.nanmax(self.angle)])
        single = np.nanmedian(self.standard_errors)
        lines = [
            f"axis    ({axis}), standard error {np.degrees(self.fit.axis_error):.2g}°",
            f"centre  ({center}) m, standard error {1000 * self.fit.center_error:.2g} mm normal to the axis",
            f"radii   {', '.join(f'{1000 * r:.1f}' for r in self.radii)} mm",
            f"angle   {moved[0]:.2f}° to {moved[1]:.2f}°, standard error {np.degrees(single):.2g}° of a frame, "
            f"{np.degrees(self.motion.zero_error):.2g}° of the zero, "
            f"{np.degrees(np.nanmax(self.axis_angle_errors)):.2g}° at most by axis and centre",
            f"residual {1000 * self.residual_rms:.2g} mm RMS; {self.n_swapped} frames with exchanged markers mended, "
            f"{self.n_outliers} positions dropped, {self.n_without_angle} of {len(self.angle)} frames without an angle",
        ]
        return "\n".join([*lines, *self.remarks])


WORST_CENTER = 0.1
"""Standard error of the centre, in parts of the markers' radius; angles err by the same share."""

MOST_OUTLIERS = 0.2
"""Share of positions that fit no angle, beyond which the motion is another than the one looked for."""

NOISY, LOOSE = 5.0, 0.02
"""Residual in parts of the noise from frame to frame, and of the markers' travel, both of which are exceeded if the
motion is no rotation about one axis. Lenses and markers err slowly too: the first alone would refuse good records."""

PASSES = 5


class SingleJoint:
    """Axis, centre and angle of one joint from markers on its link, the joints before it held still.

    Axis of rotation (Gamage and Lasenby 2002) and bias-compensated centre (Halvorsen 2003) begin; least squares over
    axis, centre, markers and all angles together (`fit_hinge`) end. In between, exchanged markers are put back and
    others that fit no angle dropped.

    Args:
        towards: (3,) approximate axis in the camera's frame, for the sign of the angle. None: the angle is positive at
            its farthest from the first frame.

    Raises:
        MocapError: an approximate axis that is none.
    """

    def __init__(self, towards: ArrayLike | None = None) -> None:
        self.towards = None if towards is None else checked_direction(towards)

    def fit(
        self,
        time: ArrayLike,
        markers: ArrayLike,
        reference: Frames | None = None,
        reference_angle: ArrayLike = 0.0,
    ) -> SingleJointResult:
        """Find axis, centre and angle.

        Args:
            time: (N,) s, increasing; frames may be missing.
            markers: (N, P, 3) m, NaN where a marker is not seen.
            reference: frames whose mean angle is known: index, slice, indices or mask; None: the first with an angle.
            reference_angle: rad, one for all reference frames or one for each in order of time.

        Raises:
            MocapError: positions that cannot be metres, too small a motion, a motion that is no rotation about one
                fixed axis, or shapes that do not fit.
        """
        positions = checked_markers(markers)
        stamps = _checked_time(time, len(positions))
        fit, mended = self._hinge(positions)
        _require_rotation(fit, mended)
        _require_determined(fit)
        oriented(fit.hinge.axis, self.towards)  # refuses an approximate axis that does not determine the sign
        first = np.flatnonzero(np.isfinite(mended.markers[..., 0]).any(axis=1))[0]
        chosen = int(first) if reference is None else reference
        motion = joint_angle(fit.hinge, positions, fit.noise, chosen, reference_angle)
        errors = fit.angle_errors(motion.markers, reference_mask(chosen, len(positions)))
        result = SingleJointResult(stamps, fit.reset(motion.offset), motion, errors, ())
        sign = "" if self.towards is not None else "the farthest angle from the first frame is taken for positive"
        return replace(result, remarks=remarks(stamps, fit, motion, result.marker_rms, sign))

    def _hinge(self, markers: NDArray) -> tuple[HingeFit, Mended]:
        """The hinge and the markers that it rests on: each needs the other."""
        hinge, noise = first_hinge(markers)
        mended = mend(markers, hinge, noise)
        for _ in range(PASSES):
            fit = fit_hinge(mended.markers, self._oriented(hinge, mended.markers))
            hinge, before = fit.hinge, mended
            mended = mend(markers, hinge, fit.noise)
            if np.array_equal(mended.markers, before.markers, equal_nan=True):
                break
        return fit, mended

    def _oriented(self, hinge: Hinge, markers: NDArray) -> Hinge:
        """With the axis towards the given one, or so that the farthest angle from the first is positive."""
        if self.towards is not None:
            sign = float(hinge.axis @ self.towards)
        else:
            angle = hinge.angles(hinge.local(markers))
            angle = np.unwrap(angle[np.isfinite(angle)])
            sign = float(angle[np.argmax(np.abs(angle - angle[0]))] - angle[0])
        return hinge if sign > 0 else hinge.reversed()


def _checked_time(time: ArrayLike, n_frames: int) -> NDArray:
    stamps = np.asarray(time, dtype=float)
    if stamps.shape != (n_frames,):
        raise MocapError(f"time has shape {stamps.shape}; expected ({n_frames},): one for each frame of the markers")
    late = np.flatnonzero(~(np.diff(stamps) > 0))
    if late.size or not np.isfinite(stamps).all():
        k = int(late[0]) + 1 if late.size else 0
        raise MocapError(f"time does not increase at frame {k}; expected seconds in order of time, no frame twice")
    return stamps


def _require_determined(fit: HingeFit) -> None:
    """Refuse an axis or a centre that the motion leaves undetermined, and what cannot be metres."""
    radius = float(np.sqrt(np.nanmean(fit.hinge.radii**2)))
    if not (fit.axis_error < WORST and fit.center_error < WORST_CENTER * radius):
        raise MocapError(
            "the motion is too small to determine the joint's axis: standard errors are "
            f"{np.degrees(fit.axis_error):.2g}° of its direction and {1000 * fit.center_error:.2g} mm of its "
            f"place, with markers {1000 * radius:.3g} mm off and noise of {1000 * fit.noise:.2g} mm; "
            f"expected less than {np.degrees(WORST):.2g}° and {WORST_CENTER:.0%} of that distance. "
            "Turn the joint further, put markers farther from its axis and at "
            "different angles about it, or record longer"
        )
    if np.nanmax(fit.hinge.radii) > LARGEST:
        farthest = int(np.nanargmax(fit.hinge.radii))
        raise MocapError(
            f"marker {farthest} is {fit.hinge.radii[farthest]:.4g} m from the axis; no arm is that large: are "
            "positions in mm? Divide by 1000"
        )


def _require_rotation(fit: HingeFit, mended: Mended) -> None:
    """Refuse a motion that is not about one fixed axis, or markers that are not on one body."""
    seen = is_seen(mended.markers)
    dropped = mended.outliers.sum() / (mended.outliers.sum() + seen.sum())
    offsets = (mended.markers - column_means(mended.markers, seen))[seen]
    travel = float(np.sqrt(np.mean(np.sum(offsets**2, axis=1))))
    noise = jitter(mended.markers)
    if dropped > MOST_OUTLIERS:
        what = f"{dropped:.0%} of the marker positions fit no angle about any one axis"
    elif fit.noise > LOOSE * travel and not fit.noise < NOISY * noise:
        what = (
            f"the markers leave every rotation about one fixed axis by {1000 * fit.noise:.2g} mm, with noise of "
            f"{1000 * noise:.2g} mm from frame to frame and {1000 * travel:.3g} mm of travel"
        )
    else:
        return
    raise MocapError(f"{what}: {_suspicion(mended.markers, fit)}")


def _suspicion(markers: NDArray, fit: HingeFit) -> str:
    """Whether the markers stay together, which distinguishes a loose marker from a second motion."""
    change = np.zeros((markers.shape[1], markers.shape[1]))
    for i, j, distance in pair_distances(markers):
        change[i, j] = change[j, i] = np.nanstd(distance)
    if change.max() > 0.5 * fit.noise:
        worst = int(np.argmax(change.sum(axis=0)))
        return (
            f"distances between markers change by up to {1000 * change.max():.2g} mm (standard deviation), most of "
            f"marker {worst}; expected markers of one rigid link, each under its own name. Leave that marker out"
        )
    return (
        "the markers stay together, so the link moves otherwise too; hold the other joints still, and fix the base and "
        "the cameras"
    )
