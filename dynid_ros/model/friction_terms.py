"""One term of a joint's friction, and the direction of motion that dry friction has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ModelError

MemoryKey = tuple[tuple[int, ...], float]
"""Joints, of which the positions are summed, and sliding length, rad or m."""
Memory = Mapping[MemoryKey, NDArray]
"""(N,) directions with a memory."""


@dataclass(frozen=True)
class Direction:
    """Direction s of motion as dry friction sees it, -1 to 1.

    With a sliding length d the contact bends before it slides: ds/dq = (1 - s sign(q̇)) / d (Dahl 1968, "A solid
    friction model", with exponent 1). It depends on the way alone, so a joint that stops keeps its friction, and one
    that creeps has all of it.

    Attributes:
        smoothing: of tanh(v / smoothing), rad/s or m/s; 0: sign(v).
        dead_zone: highest |v| without a direction, rad/s or m/s.
        sliding_length: d, rad or m; 0: no memory, and the direction is of the velocity.
    """

    smoothing: float = 0.0
    dead_zone: float = 0.0
    sliding_length: float = 0.0

    def of(self, velocity: NDArray, position: NDArray | None = None, memory: NDArray | None = None) -> NDArray:
        """Direction at velocities of any shape, NaN where they are.

        Args:
            velocity: of any shape.
            position: (N,) of consecutive samples, needed for a sliding length without `memory`.
            memory: (N,) directions that are known already.

        Raises:
            ModelError: a sliding length, and no positions.
        """
        if self.sliding_length:
            if memory is not None:
                return memory
            if position is None:
                raise ModelError("friction: a sliding length needs positions of consecutive samples")
            return sliding_direction(position, self.sliding_length)
        direction = np.tanh(velocity / self.smoothing) if self.smoothing else np.sign(velocity)
        direction[np.abs(velocity) <= self.dead_zone] = 0.0
        return direction

    def text(self, velocity: str, memory: int | None = None) -> str:
        """Expression of `of`, in Python and in C, of the name of a velocity or the place in a sequence `memory`."""
        if memory is not None:
            return f"memory[{memory}]"
        text = (
            f"tanh({velocity} / {self.smoothing!r})" if self.smoothing else f"({velocity} > 0.0) - ({velocity} < 0.0)"
        )
        if self.dead_zone:
            text = f"(abs({velocity}) > {self.dead_zone!r}) * ({text})"
        # NaN, which no comparison knows, stays NaN.
        return f"(({text}) + 0.0 * {velocity})"


def sliding_direction(position: NDArray, length: float, start: float = 0.0) -> NDArray:
    """Direction (N,) along positions (N,) of consecutive samples, `start` at the first; see `Direction`."""
    found = np.empty(len(position))
    found[:1] = start
    sign = np.sign(np.diff(position))
    moving = np.flatnonzero(sign)
    # From each reversal to the next the equation has a closed solution.
    turns = moving[np.flatnonzero(np.diff(sign[moving], prepend=0.0))]
    found[1 : turns[0] + 1 if len(turns) else len(found)] = start
    for first, last in pairwise([*turns.tolist(), len(position) - 1]):
        way = np.abs(position[first + 1 : last + 1] - position[first])
        found[first + 1 : last + 1] = slid(found[first], sign[first], way, length)
    return found


def slid(direction: NDArray, side: NDArray, way: NDArray, length: NDArray | float) -> NDArray:
    """Direction with a memory that was `direction`, after a way (rad or m) to a side (-1 or 1); see `Direction`."""
    return side + (direction - side) * np.exp(-way / length)


class SlidingMemory:
    """Directions with a memory, of samples as they come.

    Args:
        keys: which.
    """

    def __init__(self, keys: Sequence[MemoryKey]):
        self.keys = list(dict.fromkeys(keys))
        self._last: dict[MemoryKey, tuple[float, float]] = {}

    def restart(self) -> None:
        """Take it that the joints were elsewhere since the last sample."""
        self._last = {}

    def advance(self, q: NDArray, starts: Iterable[int] = ()) -> dict[MemoryKey, NDArray]:
        """(N,) directions of each key at positions (N, n), all later than those before.

        Args:
            q: (N, n).
            starts: samples before which the joints were elsewhere.
        """
        if not self.keys or not len(q):
            return {key: np.empty(len(q)) for key in self.keys}
        bounds = [0, *sorted({int(start) for start in starts} - {0}), len(q)]
        found = {key: np.empty(len(q)) for key in self.keys}
        for first, last in pairwise(bounds):
            if first:
                self.restart()
            for key, values in found.items():
                joints, length = key
                position = q[first:last, joints].sum(axis=1)
                before, state = self._last.get(key, (position[0], 0.0))
                values[first:last] = sliding_direction(np.append(before, position), length, state)[1:]
                self._last[key] = (float(position[-1]), float(values[last - 1]))
        return found


@dataclass(frozen=True)
class FrictionTerm:
    """One term of a joint's friction; equal ones have the same column in a regressor.

    Attributes:
        name: such as "coulomb", "viscous_positive" or "cos_2".
        direction: of the terms that have one.
        width: Stribeck or saturation velocity, or the number of waves per turn.
    """

    name: str
    direction: Direction | None = None
    width: float | None = None

    @property
    def family(self) -> str:
        """Name without side or number of waves."""
        return self.name if self.name in WHOLE else self.name.partition("_")[0]

    @property
    def needs_position(self) -> bool:
        """Whether its value depends on positions."""
        return self.family in OWN_ANGLE or bool(self.direction and self.direction.sliding_length)

    def value(
        self, position: NDArray, velocity: NDArray, acceleration: NDArray, direction: NDArray, load: NDArray
    ) -> NDArray:
        """Value (N,) at positions, velocities, accelerations, directions and torques of the links, (N,) each.

        Of a term of a pair the motion is the other joint's, and the direction that of the sum.
        """
        match self.family:
            case "coulomb" | "coupling_coulomb":
                found = direction
            case "coupling_viscous":
                found = velocity
            case "viscous":
                found = velocity if self.width is None else self.width * np.tanh(velocity / self.width)
            case "stribeck":
                found = direction * np.exp(-((velocity / self.width) ** 2))
            case "load":
                found = direction * np.abs(load)
            case "offset":
                found = np.ones_like(velocity)
            case "spring":
                found = position
            case "cos":
                found = np.cos(self.width * position)
            case "sin":
                found = np.sin(self.width * position)
            case _:
                found = acceleration
        side = self.name.rpartition("_")[2]
        return np.maximum(found, 0.0) if side == "positive" else np.minimum(found, 0.0) if side == "negative" else found

    def text(self, i: int) -> str:
        """Expression of `value` of joint i: of its position qi, velocity vi, acceleration ai, direction di, load li."""
        width = repr(self.width)
        text = {
            "coulomb": f"d{i}",
            "viscous": f"v{i}" if self.width is None else f"{width} * tanh(v{i} / {width})",
            "stribeck": f"d{i} * exp(-((v{i} / {width}) * (v{i} / {width})))",
            "load": f"d{i} * abs(l{i})",
            "offset": "1.0",
            "spring": f"q{i}",
            "cos": f"cos({width} * q{i})",
            "sin": f"sin({width} * q{i})",
        }.get(self.family, f"a{i}")
        side = self.name.rpartition("_")[2]
        return f"max({text}, 0.0)" if side == "positive" else f"min({text}, 0.0)" if side == "negative" else text


COUPLING_TERMS = ("coupling_inertia", "coupling_viscous", "coupling_coulomb")
"""Of a pair of joints."""
WHOLE = ("rotor_inertia", *COUPLING_TERMS)
"""Names that are families."""
OWN_ANGLE = ("spring", "cos", "sin")
"""Families of terms of the joint's own position, which act at standstill too."""
