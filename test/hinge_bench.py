"""Compute errors of axis, center and angle over repetitions, and define the required accuracy."""

from typing import NamedTuple

import numpy as np
from hinge_markers import (
    AXIS,
    RANGES_DEG,
    RotationRecord,
    direction_error,
    distance_error,
    place_markers,
    record_rotation,
    swing_angle,
)

from dynid_ros.mocap import axis_of_rotation, center_of_rotation, joint_angle, start_hinge

REQUIRED_ERRORS = {
    10.0: (0.21, 18.2, 0.57),
    20.0: (0.083, 4.0, 0.24),
    45.0: (0.030, 0.40, 0.09),
    90.0: (0.011, 0.060, 0.036),
    170.0: (0.005, 0.015, 0.013),
}
"""Errors by range in degrees: of the axis in degrees, of the uncompensated and the compensated center in mm, for three
markers at 0.15 m, 0.3 mm of noise and 2500 frames."""

REQUIRED_ANGLE_DEG = 0.066
"""Required RMS error of the angle in degrees."""

assert tuple(REQUIRED_ERRORS) == RANGES_DEG


class Errors(NamedTuple):
    """Errors of one repetition in degrees and mm; `_reported` fields are the reported standard errors."""

    direction: float
    direction_reported: float
    biased: float
    compensated: float
    compensated_reported: float
    angle: float
    angle_reported: float


def compute_errors(record: RotationRecord) -> Errors:
    """Return the errors of axis, centre and angle."""
    direction = axis_of_rotation(record.markers)
    biased = center_of_rotation(record.markers, direction.direction, compensated=False)
    center = center_of_rotation(record.markers, direction.direction)
    motion = joint_angle(start_hinge(record.markers, direction.direction, center.point), record.markers)
    error = motion.angle - np.sign(direction.direction @ AXIS) * record.angle
    return Errors(
        direction_error(direction.direction),
        float(np.rad2deg(direction.standard_error)),
        distance_error(biased.point),
        distance_error(center.point),
        1000 * center.standard_error,
        float(np.rad2deg(np.std(error))),
        float(np.rad2deg(np.sqrt(np.mean(motion.standard_errors**2)))),
    )


def rms_errors(range_deg: float, repetitions: int, seed: int) -> Errors:
    """Return root mean square errors over repetitions with new noise."""
    rng = np.random.default_rng([seed, int(range_deg)])
    records = (record_rotation(swing_angle(range_deg), place_markers(), rng) for _ in range(repetitions))
    return Errors(*np.sqrt(np.mean(np.square([compute_errors(record) for record in records]), axis=0)))
