"""Detection of samples in which a joint's friction is unknown: at standstill, and just after a reversal.

Friction persists at standstill, and takes the direction of a new motion over a short displacement (presliding; Dahl
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
"""Fraction of this displacement that suffices, so that noise of positions does not exclude a joint that slides."""


class Presliding:
    """Displacement of each joint since its last reversal, up to the presliding length.

    Each joint drags an interval of that length along. It has slid far enough when it is at the front of the interval.
    """

    def __init__(self) -> None:
        self._lower: NDArray | None = None

    def restart(self) -> None:
        """Forget the displacements, as the joints may have moved since the last sample."""
        self._lower = None

    def unknown(self, q: NDArray, qd: NDArray) -> NDArray:
        """Return a mask (N, n) of unknown friction; positions and velocities (N, n) follow those of the last call."""
        front = np.empty_like(q)
        lower = q[0] - PRESLIDING_LENGTH / 2 if self._lower is None else self._lower
        for k, now in enumerate(q):
            lower = np.minimum(np.maximum(lower, now - PRESLIDING_LENGTH), now)
            front[k] = now - lower
        self._lower = lower
        slid = np.where(qd > 0.0, front, PRESLIDING_LENGTH - front)
        return (np.abs(qd) < STANDSTILL_SPEED) | (slid < SLIDING_FRACTION * PRESLIDING_LENGTH)


def stiction(model: LinkModel) -> NDArray:
    """Return the largest friction torque (n,) of each joint at rest in either direction, which is its dry friction."""
    robot = model.robot
    friction = model.friction
    loads = np.zeros(robot.n_joints)
    if friction.needs_load:
        loads = np.abs(robot.gravity_torque(random_motion(robot)[0], friction.load_parameters)).max(axis=0)
    dry = np.zeros(robot.n_joints)
    coefficients = np.asarray(model.coefficients, dtype=float)
    for (term, (place, *_)), value in zip(friction.keys(robot.n_joints), coefficients, strict=True):
        if term.startswith(("coulomb", "stribeck")):
            dry[place] = max(dry[place], abs(value))
        elif term == "load":
            loads[place] *= abs(value)
    return dry + np.where([joint.load for joint in model.joints], loads, 0.0)


def looseness(unknown: NDArray, rests: NDArray, stiction: NDArray) -> tuple[NDArray, NDArray]:
    """Return the standard deviation of torques with unknown friction, relative to that of their noise.

    A whole rest counts as one sample, since its friction is constant: the weights 1 / (k (k + 1)) of its samples sum to
    one.

    Args:
        unknown: (n,) fraction of a low-passed sample in which friction is unknown.
        rests: (n,) number of consecutive samples before this one that were mostly unknown.
        stiction: (n,) largest friction at rest, in units of the noise.

    Returns:
        Relative standard deviation (n,), and the number (n,) of consecutive samples up to this one.
    """
    still = unknown > 0.5
    rests = np.where(still, rests + 1.0, 0.0)
    again = np.sqrt(np.where(still, rests * (rests + 1.0), 1.0))
    return np.hypot(1.0, again * unknown * stiction), rests
