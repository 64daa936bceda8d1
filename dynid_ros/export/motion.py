"""The motion on which it is judged what an export does not hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model.robot import RobotModel

DURATION, SAMPLES, LONGEST_PERIOD, SHARE = 60.0, 6000, 8.0, 0.8
REACH, SPEED = 1.5, 1.0
"""rad or m, and per s: what a joint without limits does, and no joint exceeds."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Positions, velocities and accelerations (N, n) of consecutive samples, and what they are."""

    q: NDArray
    qd: NDArray
    qdd: NDArray
    name: str

    @classmethod
    def sinusoids(cls, robot: RobotModel) -> Motion:
        """All joints at once on sinusoids of periods that share no multiple, within limits of position and velocity."""
        limits, n = robot.limits, robot.n_joints
        known = np.isfinite(limits.lower) & np.isfinite(limits.upper) & (limits.upper > limits.lower)
        lower, upper = np.where(known, limits.lower, -REACH), np.where(known, limits.upper, REACH)
        middle, reach = (lower + upper) / 2, SHARE * (upper - lower) / 2
        frequency = 2 * np.pi / (LONGEST_PERIOD * np.sqrt(1 + np.arange(n)) / np.sqrt(n))
        speed = np.minimum(np.where(limits.velocity > 0, SHARE * limits.velocity, SPEED), SPEED)
        amplitude = np.minimum(np.minimum(reach, REACH), speed / frequency)
        phase = frequency * np.linspace(0.0, DURATION, SAMPLES)[:, None] + np.arange(n)
        return cls(
            middle + amplitude * np.sin(phase),
            amplitude * frequency * np.cos(phase),
            -amplitude * frequency**2 * np.sin(phase),
            f"sinusoids of up to {speed.max():.2g} rad/s within the limits",
        )
