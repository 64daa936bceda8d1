"""Whether positions can be those of links behind springs."""

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.errors import IdentificationError
from dynid_ros.recording import Recording
from dynid_ros.recording.recording import MOVED

SAME = 1e-9
"""rad or m: a link that is never farther from its motor, a constant aside, was copied from it."""
SLOPE = (0.5, 2.0)
"""Least and largest of a link's motion by that of its motor, slow enough for both to go together."""
DEGREES = 180.0 / np.pi


def check_links(motors: Recording, time: NDArray, link: NDArray) -> None:
    """Refuse positions that are not those of links.

    Args:
        motors: their positions.
        time: (M,) s, on about the motors' clock.
        link: (M, n) rad or m; NaN where unknown.

    Raises:
        IdentificationError: no overlap in time, a joint without positions, or positions that are the motor's own, of
            the opposite sign or in another unit; names the joint.

    """
    inside = (time >= motors.time[0]) & (time <= motors.time[-1])
    if inside.sum() < 10:
        raise IdentificationError(
            f"{motors.source}: positions of links are from {time[0]:.3f} to {time[-1]:.3f} s on the robot's clock, "
            f"motors from {motors.time[0]:.3f} to {motors.time[-1]:.3f} s: they do not overlap; record both at once"
        )
    at = CubicSpline(motors.time, motors.position)(time[inside])
    for i, joint in enumerate(motors.joint_names):
        values = link[inside, i]
        known = np.isfinite(values)
        where = f"{motors.source}: joint '{joint}'"
        if known.sum() < 10:
            raise IdentificationError(
                f"{where} has no positions of its link while the motors move; see that its markers are in view, or "
                "leave it out of the model"
            )
        motor, values = at[known, i], values[known]
        deflection = values - motor
        if np.ptp(deflection) < SAME:
            raise IdentificationError(
                f"{where}: the link's positions are those of its motor; the driver seems to copy them: give a "
                "measurement behind the gear, or take the joint as rigid with `identify links`"
            )
        if np.ptp(motor) < MOVED:
            continue
        slope = float(np.polyfit(motor, values, 1)[0])
        if slope < 0:
            raise IdentificationError(
                f"{where}: its link moves against its motor; the axis or the camera's frame is mirrored: correct the "
                "sign, or the direction of the axis in the URDF"
            )
        if not SLOPE[0] < slope < SLOPE[1]:
            unit = "degrees" if DEGREES / 2 < slope < 2 * DEGREES else "another unit, or another joint's"
            unit = "millimetres" if 500 < slope < 2000 else unit
            raise IdentificationError(
                f"{where}: its link moves {slope:.3g} times as far as its motor; the positions seem to be in {unit}: "
                "expected rad or m, and the motor's position seen from the link (divided by the gear ratio)"
            )
