"""What a force/torque sensor reads at rest, as a function of a load, the sensor's bias and small turns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.spatial.transform import Rotation

from dynid_ros.identification.wrench.frame import AXES
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
