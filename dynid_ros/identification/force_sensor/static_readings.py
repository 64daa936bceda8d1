"""What a force/torque sensor reads at rest, as a function of a load, the sensor's bias and small turns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import null_space
from scipy.spatial.transform import Rotation

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import solve
from dynid_ros.identification.wrench_frame import (
    AXES,
    MAX_REMAINDER_BY_OTHER,
    MAX_UNEXPLAINED_BY_FRAME,
    Frame,
    sensor_wrench,
)
from dynid_ros.model.inertia import skew

LOAD = ("m", "mcx", "mcy", "mcz")
N_LOAD = len(LOAD)
N_BIAS = len(AXES)
TILT = ("tilt 1", "tilt 2")
TURN = ("turn x", "turn y", "turn z")


@dataclass(frozen=True, eq=False)
class StaticReading:
    """Reading = load on the sensor + bias, with the load's force m g and moment c × m g about the sensor's origin.

    Attributes:
        gravity: (3,) in the base, m/s².
        bias: whether the bias is unknown.
        tilt: whether the direction of gravity is, so that two turns of it are.
        turn: whether the sensor's axes are, so that their three turns against those given are.
        drift: degree of the polynomial of time that the bias follows.
        load: (4,) mass and mass moments about which turns are linearised.
        tilted: turn of gravity found so far, in the base.
        turned: turn of the sensor found so far, in the sensor.
    """

    gravity: NDArray
    bias: bool = True
    tilt: bool = False
    turn: bool = False
    drift: int = 0
    load: NDArray = field(default_factory=lambda: np.zeros(N_LOAD))
    tilted: Rotation = field(default_factory=Rotation.identity)
    turned: Rotation = field(default_factory=Rotation.identity)

    @property
    def names(self) -> tuple[str, ...]:
        """(k,) of the columns."""
        return (
            *LOAD,
            *(f"bias of {axis}" for axis in AXES if self.bias),
            *(TILT if self.tilt else ()),
            *(TURN if self.turn else ()),
            *(f"drift {degree} of {axis}" for degree in range(1, self.drift + 1) for axis in AXES),
        )

    @property
    def bends(self) -> bool:
        """Whether columns depend on what is unknown."""
        return self.tilt or self.turn

    def weight(self, rotations: NDArray) -> NDArray:
        """Gravity (M, 3) in the sensor's axes, m/s²."""
        return self.turned.apply(np.swapaxes(rotations, 1, 2) @ self.tilted.apply(self.gravity))

    def columns(self, rotations: NDArray, course: NDArray) -> NDArray:
        """Matrix (M, 6, k) of poses (M, 3, 3), at times that run from −1 to 1 in `course` (M,)."""
        weight = self.weight(rotations)
        cross = _crosses(weight)
        load = np.zeros((len(weight), 6, N_LOAD))
        load[:, :3, 0] = weight
        load[:, 3:, 1:] = -cross
        own = np.broadcast_to(np.eye(N_BIAS), (len(weight), N_BIAS, N_BIAS))
        parts = [load, *([own] if self.bias else [])]
        if self.tilt:
            axes = self._tilt_axes()
            moved = np.cross(axes.T, self.tilted.apply(self.gravity)).T
            parts.append(self._moved(self.turned.as_matrix() @ np.swapaxes(rotations, 1, 2) @ moved))
        if self.turn:
            parts.append(self._moved(cross))
        parts += [own * (course**degree)[:, None, None] for degree in range(1, self.drift + 1)]
        return np.concatenate(parts, axis=2)

    def after(self, solution: NDArray) -> StaticReading:
        """Linearised anew about a solution (k,)."""
        first = N_LOAD + N_BIAS * self.bias
        tilted, turned = self.tilted, self.turned
        if self.tilt:
            tilted = Rotation.from_rotvec(self._tilt_axes() @ solution[first : first + 2]) * tilted
            first += 2
        if self.turn:
            turned = Rotation.from_rotvec(-solution[first : first + 3]) * turned
        return replace(self, load=solution[:N_LOAD], tilted=tilted, turned=turned)

    def _tilt_axes(self) -> NDArray:
        """(3, 2) horizontal."""
        return null_space(self.tilted.apply(self.gravity)[None])

    def _moved(self, weight: NDArray) -> NDArray:
        """(M, 6, j) change of the reading for changes of gravity (M, 3, j)."""
        return np.concatenate([self.load[0] * weight, skew(self.load[1:]) @ weight], axis=1)


def _crosses(vectors: NDArray) -> NDArray:
    """(M, 3, 3) matrices of the cross products with vectors (M, 3)."""
    return np.array([skew(vector) for vector in vectors])


# Readings that fit poses much better once they are taken to be in another frame, or poses another way round.


ENOUGH = 4
"""Poses with which two explanations can be distinguished."""


def refuse_contradiction(
    reading: StaticReading, rotations: NDArray, wrench: NDArray, frame: Frame, bias: NDArray
) -> None:
    """Refuse readings (M, 6) that contradict the frame they are said to be in, or the poses (M, 3, 3).

    Args:
        reading: what they should be.
        rotations: axes of the sensor in the base, as columns.
        wrench: as read.
        frame: of the wrenches.
        bias: (6,) that is known, in the sensor's axes.

    Raises:
        IdentificationError: says what they look like.
    """
    if len(wrench) < ENOUGH or reading.bends:
        return
    given = _left(reading, rotations, sensor_wrench(wrench, rotations, frame) - bias)
    if given < MAX_UNEXPLAINED_BY_FRAME:
        return
    others = {words: _left(reading, poses, own - bias) for words, (poses, own) in _others(rotations, wrench, frame)}
    words = min(others, key=others.__getitem__)
    if others[words] < MAX_REMAINDER_BY_OTHER * given:
        raise IdentificationError(
            f"wrench frame '{frame}' contradicts the data: {given:.0%} of the change of the readings from pose to pose "
            f"is left unexplained, but {others[words]:.0%} {words}"
        )


def _others(rotations: NDArray, wrench: NDArray, frame: Frame) -> Iterator[tuple[str, tuple[NDArray, NDArray]]]:
    (other,) = set(get_args(Frame)) - {frame}
    yield (
        f"if they are in the frame of the {other}: set frame='{other}'",
        (rotations, sensor_wrench(wrench, rotations, other)),
    )
    inverse = np.swapaxes(rotations, 1, 2)
    reordered = Rotation.from_quat(Rotation.from_matrix(rotations).as_quat()[:, [1, 2, 3, 0]]).as_matrix()
    for poses, words in (
        (inverse, "if the orientations are those of the base in the sensor: give the sensor's in the base"),
        (reordered, "if the quaternions are in the order w x y z: give x y z w"),
    ):
        yield words, (poses, sensor_wrench(wrench, poses, frame))
        yield f"{words}, and set frame='{other}'", (poses, sensor_wrench(wrench, poses, other))


def _left(reading: StaticReading, rotations: NDArray, wrench: NDArray) -> float:
    """Part of the variation that is left: geometric mean of force's and torque's."""
    columns = reading.columns(rotations, np.linspace(-1.0, 1.0, len(wrench)))
    shares = []
    for rows in (slice(0, 3), slice(3, 6)):
        values = wrench[:, rows]
        residual = solve(columns[:, rows].reshape(values.size, -1), values.ravel()).residual
        variation = np.linalg.norm(values - values.mean(axis=0))
        shares.append(np.linalg.norm(residual) / variation if variation else 1.0)
    return float(np.sqrt(np.prod(shares)))


# Orientations of a sensor, however they are given.


NOT_UNIT = 0.01
"""How far a quaternion's length, or the product of a rotation matrix with its transpose, may be from one."""


class StaticReadings(NamedTuple):
    """Mean readings of M poses.

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


def _refuse(what: str, bad: NDArray, expected: str) -> None:
    if bad.size:
        raise IdentificationError(f"{what} {bad[0]} is not {expected} ({bad.size} such poses); leave such poses out")
