"""What a person should know about an axis and an angle found from markers."""

import numpy as np
from numpy.typing import NDArray

from dynid_ros.mocap.hinge_fit import HingeFit
from dynid_ros.mocap.joint_angle import JointAngle
from dynid_ros.mocap.marker_faults import is_symmetric
from dynid_ros.mocap.markers import jitter

SLOW = 3.0
"""Residual in parts of the noise from frame to frame beyond which it is remarked."""

GUESSED = 2.0
"""Angle between known frames, rad, beyond which whole turns may be lost."""

SAME = 0.05
"""Difference of the largest angles in both directions, in parts of them, within which noise could decide the sign."""


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
            f"Both directions reach alike, and {sign}: give the approximate axis (towards) to be sure of the sign."
        )
    return tuple(found)


def _about_markers(fit: HingeFit, motion: JointAngle, marker_rms: NDArray) -> list[str]:
    found = []
    known = np.isfinite(fit.hinge.radii)
    for p in np.flatnonzero(~known):
        found.append(f"Marker {p} is never seen together with others and is left out.")
    if known.sum() == 1:
        found.append(
            "A single marker tells axis, centre and angle by its arc, but not whether the body turns as one; with "
            "three markers faults are found and mended."
        )
    elif known.sum() == 2:
        found.append("With two markers, only one of them may be wrong in a frame; three are safer.")
    if known.sum() > 1 and is_symmetric(fit.hinge, fit.noise):
        found.append(
            "The markers look alike after a turn about the axis, so exchanged markers show as jumps of the angle that "
            "are not mended; move one of them."
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
