"""Which way dry friction acts on links behind springs, sticking included.

Newton's method on all samples at once does not find out when links stick: a direction is not a smooth function. A march
through time does: each of its short steps asks which directions agree with the velocities that they lead to (Moreau's
time stepping; Acary and Brogliato 2008, chapter 10). It is of second order only, so nothing but the directions is taken
from it.
"""

from operator import mul
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

RESTING = 1e-9
"""rad/s or m/s; what a sticking joint has by rounding."""
SWEEPS, AGREED = 30, 1e-6


class LinearMotion(NamedTuple):
    """Equations of motion M q'' + D q' + K q + c s = f, linear about a motion, at N samples.

    Attributes:
        mass, damping, stiffness: (N, n, n).
        force: (N, n).
        coulomb: (n,) c.
        step: between samples, s.

    """

    mass: NDArray
    damping: NDArray
    stiffness: NDArray
    force: NDArray
    coulomb: NDArray
    step: float


def directions(motion: LinearMotion, start: NDArray, longest_step: float) -> NDArray:
    """Directions (N, n) of friction, -1 to 1 and at turns as a low-pass without phase leaves them.

    Args:
        motion: the equations.
        start: (2, n) position and velocity at the first sample.
        longest_step: of the march, s; errors of turns are in proportion to it.

    """
    samples, n = motion.force.shape
    if not motion.coulomb.any():
        return np.zeros((samples, n))
    parts = 2 * int(np.ceil(motion.step / longest_step / 2 - 1e-6))
    h = motion.step / parts
    middle = (np.arange(parts * (samples - 1)) + 0.5) / parts
    forces = CubicSpline(np.arange(samples), motion.force)(middle).tolist()
    # Plain numbers: for so few of them, arrays are slower.
    weights = _step_weights(motion, h).tolist()
    position, velocity = start.tolist()
    sense = [-1.0 if v < 0 else 1.0 for v in velocity]
    found = []
    free, joints = True, range(n)
    for k, force in zip(np.rint(middle).astype(int).tolist(), forces, strict=True):
        matrix = weights[k]
        state = velocity + position + force + sense
        after = [sum(map(mul, row, state)) for row in matrix]
        used = sense
        if not free or any(v * s <= 0.0 for v, s in zip(after, sense, strict=True)):
            before, unturned = sense.copy(), after.copy()
            _agree(sense, after, matrix)
            used = sense.copy()
            for i in joints:
                if abs(before[i]) == 1.0 and unturned[i] * velocity[i] < 0.0 and abs(velocity[i]) > RESTING:
                    # It may turn on the way: until then, friction acts the other way. If it does not stick there.
                    share = velocity[i] / (velocity[i] - unturned[i])
                    turning = -before[i] * (1.0 - 2.0 * share)
                    turned = unturned[i] + matrix[i][3 * n + i] * (turning - before[i])
                    if turned * before[i] < 0.0:
                        for j in joints:
                            after[j] += matrix[j][3 * n + i] * (turning - sense[i])
                        used[i], sense[i] = turning, -before[i]
            free = all(abs(s) == 1.0 for s in sense)
        found.append(used if used is not sense else sense.copy())
        position = [q + h / 2 * (v + w) for q, v, w in zip(position, velocity, after, strict=True)]
        velocity = after
    fine = np.array([found[0]] * (parts // 2) + found + [found[-1]] * (parts // 2))
    averages = fine.reshape(samples, parts, n).mean(axis=1)
    # Averaging damps by sin(x) / x, x = pi f T; so weighted, neighbours make up for it but for terms of fourth order.
    averages[1:-1] -= np.diff(averages, 2, axis=0) / 24.0
    return averages


def _step_weights(motion: LinearMotion, h: float) -> NDArray:
    """(N, n, 4 n) velocity after a step of h from velocity, position, force and direction."""
    solve = np.linalg.inv(motion.mass / h + motion.damping / 2 + motion.stiffness * (h / 4))
    past = motion.mass / h - motion.damping / 2 - motion.stiffness * (h / 4)
    return np.concatenate([solve @ past, -solve @ motion.stiffness, solve, -solve * motion.coulomb], axis=2)


def _agree(sense: list[float], after: list[float], matrix: list[list[float]]) -> None:
    """Make directions and velocities agree, in place: what moves has full friction, what sticks what it takes."""
    joints, column = range(len(sense)), 3 * len(sense)
    for _ in range(SWEEPS):
        change = 0.0
        for i in joints:
            gain = matrix[i][column + i]
            new = min(1.0, max(-1.0, sense[i] - after[i] / gain)) if gain else sense[i]
            moved = new - sense[i]
            if moved:
                sense[i] = new
                for j in joints:
                    after[j] += matrix[j][column + i] * moved
                change = max(change, abs(moved))
        if change < AGREED:
            break
