"""Samples with known friction of a joint: neither at standstill nor before a displacement in one direction.

Friction keeps its value from the motion before, and reaches a new direction over a short displacement (presliding; Dahl
1968, "A solid friction model"). Until then it may have any value up to stiction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identified.links import LinkModel
from dynid_ros.model.base_parameters import random_motion

STANDSTILL_SPEED = 0.02
"""Speed below which the direction of friction is not known, rad/s or m/s."""

PRESLIDING_LENGTH = 5e-3
"""Displacement after which friction has reached its direction, rad or m."""

SLIDING_FRACTION = 0.9
"""Share of this way that counts as all of it: noise of positions must not make a joint that moves doubtful."""


class Presliding:
    """Follows how far joints have gone in their direction: each drags an interval along, and is at its front."""

    def __init__(self) -> None:
        self._lower: NDArray | None = None

    def restart(self) -> None:
        """Take it that the joints were elsewhere since the last sample."""
        self._lower = None

    def unknown(self, q: NDArray, qd: NDArray) -> NDArray:
        """Return a mask (N, n) of unknown friction at positions and velocities (N, n), which follow those before."""
        front = np.empty_like(q)
        lower = q[0] - PRESLIDING_LENGTH / 2 if self._lower is None else self._lower
        for k, now in enumerate(q):
            lower = np.minimum(np.maximum(lower, now - PRESLIDING_LENGTH), now)
            front[k] = now - lower
        self._lower = lower
        way = np.where(qd > 0.0, front, PRESLIDING_LENGTH - front)
        return (np.abs(qd) < STANDSTILL_SPEED) | (way < SLIDING_FRACTION * PRESLIDING_LENGTH)


def stiction(model: LinkModel) -> NDArray:
    """Return the largest friction torque (n,) of a joint at rest in either direction: its largest dry friction."""
    robot = model.robot
    friction = model.friction
    loads = np.zeros(robot.n_joints)
    if friction.needs_load:
        loads = np.abs(robot.gravity_torque(random_motion(robot)[0], friction.load_parameters)).max(axis=0)
    found = np.zeros(robot.n_joints)
    coefficients = np.asarray(model.coefficients, dtype=float)
    for (term, (place, *_)), value in zip(friction.keys(robot.n_joints), coefficients, strict=True):
        if term.startswith(("coulomb", "stribeck")):
            found[place] = max(found[place], abs(value))
        elif term == "load":
            loads[place] *= abs(value)
    return found + np.where([joint.load for joint in model.joints], loads, 0.0)


def looseness(unknown: NDArray, rests: NDArray, stiction: NDArray) -> tuple[NDArray, NDArray]:
    """Return the deviation of torques with unknown friction, relative to that of their noise.

    All of a rest counts as one sample, since its friction stays constant: the weights 1 / (k (k + 1)) sum to one.

    Args:
        unknown: (n,) share of a low-passed sample with unknown friction.
        rests: (n,) number of consecutive such samples before this one.
        stiction: (n,) in units of the noise.

    Returns:
        Deviation (n,), and the number (n,) of consecutive such samples up to this one.
    """
    still = unknown > 0.5
    rests = np.where(still, rests + 1.0, 0.0)
    again = np.sqrt(np.where(still, rests * (rests + 1.0), 1.0))
    return np.hypot(1.0, again * unknown * stiction), rests
