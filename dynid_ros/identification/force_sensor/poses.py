"""Orientations of a sensor, however they are given, and the dwells of a recording."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.samples import SampleRules, dwells
from dynid_ros.identification.wrench.frame import tip_rotations
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.series import WrenchSeries

NOT_UNIT = 0.01
"""How far a quaternion's length, or the product of a rotation matrix with its transpose, may be from one."""
LEAST_READINGS = 5
"""Readings in a dwell that make a mean."""


class StaticReadings(NamedTuple):
    """Of M poses.

    Attributes:
        rotations: (M, 3, 3) axes of the sensor in the base, as columns.
        wrench: (M, 6) as read.
        time: (M,) s.

    """

    rotations: NDArray
    wrench: NDArray
    time: NDArray


def rotation_matrices(orientations: ArrayLike) -> NDArray:
    """(M, 3, 3) of rotation matrices of that shape or quaternions (M, 4) in the order x, y, z, w.

    Raises:
        IdentificationError: another shape, or no rotation.

    """
    values = np.asarray(orientations, dtype=float)
    if values.ndim == 2 and values.shape[1] == 4:
        length = np.linalg.norm(values, axis=1)
        _refuse("quaternion", np.flatnonzero(~(np.abs(length - 1) <= NOT_UNIT)), "of unit length")
        return Rotation.from_quat(values).as_matrix()
    if values.ndim != 3 or values.shape[1:] != (3, 3):
        raise IdentificationError(
            f"orientations have shape {values.shape}; expected rotation matrices (M, 3, 3) or quaternions (M, 4)"
        )
    error = np.abs(values @ np.swapaxes(values, 1, 2) - np.eye(3)).max(axis=(1, 2), initial=0.0)
    _refuse("orientation", np.flatnonzero(~(error <= NOT_UNIT) | ~(np.linalg.det(values) > 0)), "a rotation matrix")
    return values


def readings_in_dwells(
    robot: RobotModel, recording: Recording, series: WrenchSeries, rules: SampleRules
) -> StaticReadings:
    """Mean wrench of each stretch in which all joints rest, and the sensor's orientation there by the kinematics.

    Raises:
        IdentificationError: no rests, or no wrenches in them.

    """
    found = []
    for rows in dwells(recording, rules):
        start, end = recording.time[rows.start], recording.time[rows.stop - 1]
        part = series.between(start, end)
        values = np.hstack([part.force, part.torque])
        values = values[np.isfinite(values).all(axis=1)]
        if len(values) >= LEAST_READINGS:
            found.append((recording.position[rows].mean(axis=0), values.mean(axis=0), (start + end) / 2))
    if not found:
        raise IdentificationError(
            f"{recording.source}: no rest of at least {rules.minimum_dwell:g} s with {LEAST_READINGS} wrenches in it; "
            "record poses with dwells"
        )
    position, wrench, time = (np.array(values) for values in zip(*found, strict=True))
    return StaticReadings(tip_rotations(robot, position), wrench, time)


def _refuse(what: str, bad: NDArray, expected: str) -> None:
    if bad.size:
        raise IdentificationError(f"{what} {bad[0]} is not {expected} ({bad.size} such poses); leave such poses out")
