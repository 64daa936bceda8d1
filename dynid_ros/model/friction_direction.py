"""Direction of dry friction: the sign of the velocity, smooth, or with a memory (Dahl model)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ModelError
from dynid_ros.files.disk_arrays import new_array, row_blocks

MemoryKey = tuple[tuple[int, ...], float]
"""Joints whose positions are summed, and the sliding length, rad or m."""
Memory = Mapping[MemoryKey, NDArray]
"""Directions (N,) with a memory."""


@dataclass(frozen=True)
class FrictionDirection:
    """Model of the direction s of dry friction, between -1 and 1.

    Without a memory s = sign(v), or tanh(v / smoothing) if `smoothing` is positive. With a sliding length d the contact
    deflects before it slides: ds/dq = (1 − s sign(q̇)) / d (Dahl 1968, "A solid friction model", exponent 1). Then s
    depends on displacement only, so friction persists at standstill and a creeping joint has all of it.

    Attributes:
        smoothing: velocity scale of the smooth sign, rad/s or m/s; 0 for a sharp sign.
        dead_zone: largest speed with s = 0, rad/s or m/s.
        sliding_length: displacement d over which the contact deflects before it slides, rad or m; 0 for no memory.
    """

    smoothing: float = 0.0
    dead_zone: float = 0.0
    sliding_length: float = 0.0

    def evaluate(self, velocity: NDArray, position: NDArray | None = None, memory: NDArray | None = None) -> NDArray:
        """Return the directions at velocities; NaN gives NaN.

        Args:
            velocity: velocities of any shape, rad/s or m/s.
            position: (N,) of consecutive samples, rad or m; required for a sliding length without `memory`.
            memory: (N,) directions that were computed before.

        Raises:
            ModelError: there is a sliding length, and positions are missing.
        """
        if not self.sliding_length:
            direction = np.tanh(velocity / self.smoothing) if self.smoothing else np.sign(velocity)
            return np.where(np.abs(velocity) <= self.dead_zone, 0.0, direction) if self.dead_zone else direction
        if memory is not None:
            return memory
        if position is None:
            raise ModelError("friction: a sliding length needs positions of consecutive samples")
        return dahl_direction(position, self.sliding_length)

    def expression(self, velocity: str, memory_index: int | None = None) -> str:
        """Return the expression, in Python and in C, of the direction.

        Args:
            velocity: expression of the velocity.
            memory_index: place of the direction in a sequence `memory`; None for a direction without a memory.
        """
        if memory_index is not None:
            return f"memory[{memory_index}]"
        sign = f"1.0 * ({velocity} > 0.0) - ({velocity} < 0.0)"
        if self.smoothing:
            sign = f"tanh({velocity} / {self.smoothing!r})"
        if self.dead_zone:
            sign = f"(abs({velocity}) > {self.dead_zone!r}) * ({sign})"
        return f"({sign} + 0.0 * {velocity})"  # no comparison with NaN is true, the product is NaN


def dahl_direction(position: NDArray, sliding_length: float, initial_direction: float = 0.0) -> NDArray:
    """Return the Dahl directions (N,) along positions (N,) of consecutive samples; see `FrictionDirection`.

    Between two reversals the equation has the closed solution of `dahl_step`, so the loop runs over reversals.

    Args:
        position: (N,), rad or m.
        sliding_length: rad or m.
        initial_direction: direction at the first sample.
    """
    direction = np.full(len(position), initial_direction)
    velocity_sign = np.sign(np.diff(position))
    moving = np.flatnonzero(velocity_sign)
    reversals = moving[np.flatnonzero(np.diff(velocity_sign[moving], prepend=0.0))]
    for first, last in pairwise([*reversals.tolist(), len(position) - 1]):
        displacement = np.abs(position[first + 1 : last + 1] - position[first])
        direction[first + 1 : last + 1] = dahl_step(
            direction[first], velocity_sign[first], displacement, sliding_length
        )
    return direction


def dahl_step(
    direction: NDArray, velocity_sign: NDArray, displacement: NDArray, sliding_length: NDArray | float
) -> NDArray:
    """Return the direction after a displacement (rad or m) without reversal, with sign `velocity_sign`.

    s(x) = sgn + (s_0 − sgn) exp(−x / d) solves ds/dx = (sgn − s) / d, where x is the distance travelled since s_0.
    """
    return velocity_sign + (direction - velocity_sign) * np.exp(-displacement / sliding_length)


class SlidingMemory:
    """Directions with a memory of samples that arrive in parts.

    Args:
        keys: joints and sliding length of each direction.
    """

    def __init__(self, keys: Sequence[MemoryKey]):
        self.keys = list(dict.fromkeys(keys))
        self._last: dict[MemoryKey, tuple[float, float]] = {}

    def restart(self) -> None:
        """Forget the past, because the joints have moved unobserved since the last sample."""
        self._last = {}

    def advance(self, q: NDArray, starts: Iterable[int] = ()) -> dict[MemoryKey, NDArray]:
        """Return the directions (N,) of each key at the next positions.

        Args:
            q: (N, n), rad or m.
            starts: samples before which the joints have moved unobserved.
        """
        directions = {key: new_array(len(q)) for key in self.keys}
        if not self.keys or not len(q):
            return directions
        for first, last in pairwise([0, *sorted({int(start) for start in starts} - {0}), len(q)]):
            if first:
                self.restart()
            for rows in row_blocks(last - first):
                part = slice(first + rows.start, first + rows.stop)
                for (joints, length), values in directions.items():
                    position = q[part, joints].sum(axis=1)
                    before, state = self._last.get((joints, length), (position[0], 0.0))
                    values[part] = dahl_direction(np.append(before, position), length, state)[1:]
                    self._last[joints, length] = (float(position[-1]), float(values[part.stop - 1]))
        return directions
