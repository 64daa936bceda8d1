"""A motion at some of its instants."""

from typing import NamedTuple

from numpy.typing import NDArray


class Motion(NamedTuple):
    """Positions and their derivatives, or gradients by them, (N, n) each."""

    position: NDArray
    velocity: NDArray
    acceleration: NDArray
    jerk: NDArray
