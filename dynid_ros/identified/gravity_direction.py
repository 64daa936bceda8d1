"""Direction of gravity in `identified.yaml`: `robot.gravity`, with the uncertainty of an estimated direction."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.estimate import half_width
from dynid_ros.identified.identified_file import DIRECTION_KEY, DOF, Section, estimated_gravity, file_of, is_number
from dynid_ros.model.gravity import angle_between

GIVEN = "given"
ESTIMATED = "estimated"
IMU = "imu"
DIRECTION_SOURCES = (GIVEN, ESTIMATED, IMU)
ENTRY_SHAPES: dict[str, tuple[int, ...]] = {"configured": (3,), "axes": (2, 3), "covariance": (2, 2), DOF: ()}
"""Shapes of the numbers in the entry `robot.gravity_direction`, by key."""
ROUNDING_TOLERANCE = 1e-3
"""Relative tolerance of lengths, right angles and symmetry, because numbers in a file may be rounded."""


@dataclass(frozen=True, eq=False)
class GravityDirection:
    """Estimated direction of gravity, with its uncertainty as two small rotations.

    Attributes:
        source: "estimated" from torques, or "imu".
        gravity: (3,) estimated gravity in the base frame, m/s².
        given: (3,) configured gravity in the base frame, m/s².
        axes: (2, 3) unit axes of the rotations, perpendicular to gravity.
        covariance: (2, 2) covariance of the rotation angles, rad².
        dof: degrees of freedom of the covariance.
        base: name of the base frame.
    """

    source: str
    gravity: NDArray
    given: NDArray
    axes: NDArray
    covariance: NDArray
    dof: float
    base: str = ""

    @classmethod
    def of_document(cls, document: Mapping) -> GravityDirection | None:
        """Return the estimated direction; None if the direction was configured."""
        gravity = estimated_gravity(document)
        robot = document["robot"]
        if gravity is None:
            return None
        entry = Section(robot[DIRECTION_KEY], f"{file_of(document)}: robot.{DIRECTION_KEY}")
        down = np.array(gravity)
        for key, shape in ENTRY_SHAPES.items():
            if not _has_shape(entry.get(key), shape):
                expected = f"{' x '.join(map(str, shape))} numbers" if shape else "a number above 0"
                raise entry.error(f"{key} is {entry.get(key)!r}, expected {expected}")
        given, axes, covariance, dof = (np.array(entry[key], dtype=float) for key in ENTRY_SHAPES)
        if entry.get("source") not in DIRECTION_SOURCES[1:]:
            raise entry.error(f"source is {entry.get('source')!r}, expected {' or '.join(DIRECTION_SOURCES[1:])}")
        size = float(np.linalg.norm(down))
        if abs(np.linalg.norm(given) - size) > ROUNDING_TOLERANCE * size:
            raise entry.error(f"configured is {entry['configured']!r}, expected the size of robot.gravity")
        frame = np.vstack([axes, down / size])
        if not np.allclose(frame @ frame.T, np.eye(3), atol=ROUNDING_TOLERANCE):
            raise entry.error(f"axes are {entry['axes']!r}, expected unit vectors perpendicular to gravity")
        low, high = np.linalg.eigvalsh(covariance)
        if not (
            np.allclose(covariance, covariance.T, atol=ROUNDING_TOLERANCE * high) and low >= -ROUNDING_TOLERANCE * high
        ):
            raise entry.error(f"covariance is {entry['covariance']!r}, expected that of two angles")
        if not dof > 0.0:
            raise entry.error(f"{DOF} is {entry[DOF]!r}, expected a number above 0")
        return cls(entry["source"], down, given, axes, covariance, float(dof), str(robot.get("base", "")))

    @property
    def sentence(self) -> str:
        """Sentence on the direction, for a report."""
        return f"{str(self)[0].upper()}{str(self)[1:]}."

    @property
    def angle(self) -> float:
        """Angle between the configured and the estimated direction, rad."""
        return angle_between(self.given, self.gravity)

    def half_widths(self, level: float = 0.95) -> NDArray:
        """Return half confidence intervals (2,) of the angles about `axes`, rad."""
        return half_width(np.sqrt(np.diag(self.covariance)), self.dof, level)

    @property
    def widest(self) -> float:
        """Half 95 % interval about the least certain axis, rad."""
        return float(half_width(np.sqrt(max(np.linalg.eigvalsh(self.covariance)[-1], 0.0)), self.dof))

    @property
    def least_certain_axis(self) -> NDArray:
        """Axis (3,) of the least certain rotation."""
        return np.linalg.eigh(self.covariance)[1][:, -1] @ self.axes

    def __str__(self) -> str:
        x, y, z = self.gravity
        origin = {ESTIMATED: "by the torques", IMU: "by the IMU, if its mounting is exact"}[self.source]
        return (
            f"gravity in the frame of '{self.base}' is ({x:.3f}, {y:.3f}, {z:.3f}) m/s^2 {origin}: "
            f"{np.degrees(self.angle):.2f} degrees from the configured direction, ± {np.degrees(self.widest):.2g} "
            "degrees (95 %)"
        )

    @property
    def static_transform(self) -> str:
        """Arguments of `static_transform_publisher` (tf2_ros) from a level `world` to the base, with a yaw of zero."""
        x, y, z = -self.gravity / np.linalg.norm(self.gravity)
        roll = np.arctan2(y, z)
        pitch = -np.arcsin(np.clip(x, -1.0, 1.0))
        return f"--roll {roll:.6f} --pitch {pitch:.6f} --frame-id world --child-frame-id {shlex.quote(self.base)}"

    def section(self) -> dict:
        """Return the entry of `robot` in the file."""
        return {
            "source": self.source,
            "configured": [float(g) for g in self.given],
            "axes": [[float(value) for value in axis] for axis in self.axes],
            "covariance": [[float(value) for value in row] for row in self.covariance],
            DOF: float(self.dof),
            "static_transform": self.static_transform,
        }


def _has_shape(values: object, shape: tuple[int, ...]) -> bool:
    """Return whether values of the file are numbers in lists of this shape; a single number may be infinite."""
    if not shape:
        return is_number(values) or values == math.inf
    return isinstance(values, list) and len(values) == shape[0] and all(_has_shape(one, shape[1:]) for one in values)
