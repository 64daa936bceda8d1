"""Motion on which the loss of an export is judged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model.robot import RobotModel

DURATION = 60.0
SAMPLES = 6000
LONGEST_PERIOD = 8.0
SHARE = 0.8
REACH = 1.5
SPEED = 1.0
"""Range (rad or m) and speed (per s) of a joint without limits, and upper bounds for all joints."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Positions, velocities and accelerations (N, n) of consecutive samples, with a description."""

    q: NDArray
    qd: NDArray
    qdd: NDArray
    name: str

    @classmethod
    def sinusoids(cls, robot: RobotModel) -> Motion:
        """Return sinusoids of all joints with incommensurable periods, within limits of position and velocity."""
        limits = robot.limits
        n = robot.n_joints
        known = np.isfinite(limits.lower) & np.isfinite(limits.upper) & (limits.upper > limits.lower)
        lower = np.where(known, limits.lower, -REACH)
        upper = np.where(known, limits.upper, REACH)
        middle = (lower + upper) / 2
        reach = SHARE * (upper - lower) / 2
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
