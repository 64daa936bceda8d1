"""The direction of gravity in `identified.yaml`: `robot.gravity`, and how well a direction that was found is known."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identified.identified_file import DIRECTION, DOF, file_of, found_gravity, is_number
from dynid_ros.model.gravity_direction import angle_between

GIVEN, ESTIMATED, IMU = "given", "estimated", "imu"
DIRECTIONS = (GIVEN, ESTIMATED, IMU)
SHAPES: dict[str, tuple[int, ...]] = {"configured": (3,), "axes": (2, 3), "covariance": (2, 2), DOF: ()}
"""What the entry has, and its shape."""
TOLERANCE = 1e-3
"""Of lengths, right angles and symmetry, as parts of one: a file may be rounded."""


@dataclass(frozen=True, eq=False)
class GravityDirection:
    """A direction of gravity that was found, with two angles by which it may yet be turned.

    Attributes:
        source: "estimated" from torques, or "imu".
        gravity: (3,) as found, in the base frame, m/s^2.
        given: (3,) as it was configured.
        axes: (2, 3) unit axes of the turns, across gravity.
        covariance: (2, 2) of the angles, rad^2.
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
        """The direction that was found; None: it was configured.

        Raises:
            IdentifiedFileError: the entry is malformed.
        """
        gravity, robot = found_gravity(document), document["robot"]
        if gravity is None:
            return None
        entry, down = robot[DIRECTION], np.array(gravity)
        for key, shape in SHAPES.items():
            if not _has_shape(entry.get(key), shape):
                wanted = f"{' x '.join(map(str, shape))} numbers" if shape else "a number above 0"
                raise _malformed(document, f"{key} is {entry.get(key)!r}, expected {wanted}")
        given, axes, covariance, dof = (np.array(entry[key], dtype=float) for key in SHAPES)
        if entry.get("source") not in DIRECTIONS[1:]:
            raise _malformed(document, f"source is {entry.get('source')!r}, expected {' or '.join(DIRECTIONS[1:])}")
        size = float(np.linalg.norm(down))
        if abs(np.linalg.norm(given) - size) > TOLERANCE * size:
            raise _malformed(document, f"configured is {entry['configured']!r}, expected the size of robot.gravity")
        frame = np.vstack([axes, down / size])
        if not np.allclose(frame @ frame.T, np.eye(3), atol=TOLERANCE):
            raise _malformed(
                document, f"axes are {entry['axes']!r}, expected units across robot.gravity and each other"
            )
        low, high = np.linalg.eigvalsh(covariance)
        if not (np.allclose(covariance, covariance.T, atol=TOLERANCE * high) and low >= -TOLERANCE * high):
            raise _malformed(document, f"covariance is {entry['covariance']!r}, expected that of two angles")
        if not dof > 0.0:
            raise _malformed(document, f"{DOF} is {entry[DOF]!r}, expected a number above 0")
        return cls(entry["source"], down, given, axes, covariance, float(dof), str(robot.get("base", "")))

    @property
    def sentence(self) -> str:
        """The direction for a page."""
        return f"{str(self)[0].upper()}{str(self)[1:]}."

    @property
    def angle(self) -> float:
        """Between the configured and the found direction, rad."""
        return angle_between(self.given, self.gravity)

    def half_widths(self, level: float = 0.95) -> NDArray:
        """(2,) half intervals of the angles about `axes`, rad."""
        return half_width(np.sqrt(np.diag(self.covariance)), self.dof, level)

    @property
    def widest(self) -> float:
        """Half 95 % interval about the axis about which least is known, rad."""
        return float(half_width(np.sqrt(max(np.linalg.eigvalsh(self.covariance)[-1], 0.0)), self.dof))

    @property
    def open_axis(self) -> NDArray:
        """(3,) axis about which least is known."""
        return np.linalg.eigh(self.covariance)[1][:, -1] @ self.axes

    def __str__(self) -> str:
        x, y, z = self.gravity
        how = {ESTIMATED: "by the torques", IMU: "by the IMU, its mounting taken as exact"}[self.source]
        return (
            f"gravity in the frame of '{self.base}' is ({x:.3f}, {y:.3f}, {z:.3f}) m/s^2 {how}: "
            f"{np.degrees(self.angle):.2f} degrees from the configured direction, ± {np.degrees(self.widest):.2g} "
            "degrees (95 %)"
        )

    @property
    def static_transform(self) -> str:
        """Arguments of tf2_ros's `static_transform_publisher` from a level `world` to the base; its yaw is open."""
        x, y, z = -self.gravity / np.linalg.norm(self.gravity)
        roll, pitch = np.arctan2(y, z), -np.arcsin(np.clip(x, -1.0, 1.0))
        return f"--roll {roll:.6f} --pitch {pitch:.6f} --frame-id world --child-frame-id {shlex.quote(self.base)}"

    def section(self) -> dict:
        """Entry of `robot` in the file."""
        return {
            "source": self.source,
            "configured": [float(g) for g in self.given],
            "axes": [[float(value) for value in axis] for axis in self.axes],
            "covariance": [[float(value) for value in row] for row in self.covariance],
            DOF: float(self.dof),
            "static_transform": self.static_transform,
        }


def _has_shape(values: object, shape: tuple[int, ...]) -> bool:
    """Whether values of the file are numbers, in lists of this shape; a single one may be infinite."""
    if not shape:
        return is_number(values) or values == math.inf
    return isinstance(values, list) and len(values) == shape[0] and all(_has_shape(one, shape[1:]) for one in values)


def _malformed(document: Mapping, what: str) -> IdentifiedFileError:
    return IdentifiedFileError(f"{file_of(document)}: robot.{DIRECTION}: {what}; run the identification again")
