"""Which way dry friction acts on links behind springs, sticking included.

Newton's method on all samples at once does not find out when links stick: a direction is not a smooth function. A
march through time does: each of its short steps asks which directions agree with the velocities that they lead to
(Moreau's time stepping; Acary and Brogliato 2008, chapter 10). It is of second order only, so nothing but the
directions is taken from it.
"""

from __future__ import annotations

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


class Turn(NamedTuple):
    """A joint that turns within a step: its number, velocity before, after without turning, and direction before."""

    joint: int
    velocity: float
    unturned: float
    before: float


class March(NamedTuple):
    """Directions that a march found, in K steps.

    Attributes:
        used: (K, n) of each step.
        sticking: joints that stick, by step.
        turns: by step.
        weights: (N, n, 4 n) of a step by sample, as `_step_weights` has them.
        parts: steps from one sample to the next.
        step: s.
    """

    used: NDArray
    sticking: dict[int, list[int]]
    turns: dict[int, list[Turn]]
    weights: NDArray
    parts: int
    step: float

    @property
    def samples(self) -> NDArray:
        """(K,) the sample nearest to the middle of each step."""
        return np.rint((np.arange(len(self.used)) + 0.5) / self.parts).astype(int)

    def averaged(self, used: NDArray) -> NDArray:
        """At the samples (N, ...), values (K, ...) of the steps."""
        half = self.parts // 2
        fine = np.concatenate([np.repeat(used[:1], half, axis=0), used, np.repeat(used[-1:], half, axis=0)])
        averages = fine.reshape(-1, self.parts, *used.shape[1:]).mean(axis=1)
        # Averaging damps by sin(x) / x, x = pi f T; so weighted, neighbours make up for all but terms of fourth order.
        averages[1:-1] -= np.diff(averages, 2, axis=0) / 24.0
        return averages

    def derivatives(self, by_force: NDArray, by_start: NDArray) -> NDArray:
        """Derivatives (N, n, p) of the averages by parameters that change the forces and the start.

        What slides keeps its direction, what sticks keeps its velocity of zero, and what turns does so earlier or
        later. Between the samples changes of the force are linear.

        Args:
            by_force: (N, n, p) derivatives of the forces, those of Coulomb friction left out but for its own value.
            by_start: (2, n, p) of position and velocity at the first sample.
        """
        n, h = by_force.shape[1], self.step
        position, velocity = by_start.copy()
        sums = np.zeros_like(by_force)
        state = np.empty((3 * n, by_force.shape[2]))
        half = self.parts // 2
        for k, row in enumerate(self.samples.tolist()):
            first, share = divmod((k + 0.5) / self.parts, 1.0)
            first = int(first)
            state[:n], state[n : 2 * n] = velocity, position
            state[2 * n :] = (1.0 - share) * by_force[first] + share * by_force[first + 1]
            weights = self.weights[row]
            after = weights[:, : 3 * n] @ state
            if k in self.turns or k in self.sticking:
                change = np.zeros_like(after)
                for i, before_turn, unturned, before in self.turns.get(k, ()):
                    # Of the share velocity / (velocity - unturned) of the step before the turn.
                    moved_share = before_turn * after[i] - unturned * velocity[i]
                    change[i] = 2.0 * before * moved_share / (before_turn - unturned) ** 2
                gains = weights[:, 3 * n :]
                after = after + gains @ change
                still = self.sticking.get(k)
                if still:
                    change[still] = np.linalg.solve(gains[np.ix_(still, still)], -after[still])
                    after = after + gains[:, still] @ change[still]
                # The first and the last step stand for what is before and after them too, as in `averaged`.
                sums[(k + half) // self.parts] += change * (1 + half * (k in {0, len(self.used) - 1}))
            position = position + h / 2 * (velocity + after)
            velocity = after
        found = sums / self.parts
        found[1:-1] -= np.diff(found, 2, axis=0) / 24.0
        return found


def directions(motion: LinearMotion, start: NDArray, longest_step: float) -> NDArray:
    """Directions (N, n) of friction, -1 to 1 and at turns as a low-pass without phase leaves them, see `march`."""
    if not motion.coulomb.any():
        return np.zeros_like(motion.force)
    marched = march(motion, start, longest_step)
    return marched.averaged(marched.used)


def march(motion: LinearMotion, start: NDArray, longest_step: float) -> March:
    """Directions of friction.

    Args:
        motion: the equations.
        start: (2, n) position and velocity at the first sample.
        longest_step: of the march, s; errors of turns are in proportion to it.
    """
    samples, n = motion.force.shape
    parts = 2 * int(np.ceil(motion.step / longest_step / 2 - 1e-6))
    h = motion.step / parts
    middle = (np.arange(parts * (samples - 1)) + 0.5) / parts
    forces = CubicSpline(np.arange(samples), motion.force)(middle).tolist()
    # Plain numbers: for so few of them, arrays are slower.
    step_weights = _step_weights(motion, h)
    weights = step_weights.tolist()
    position, velocity = start.tolist()
    sense = [-1.0 if v < 0 else 1.0 for v in velocity]
    found: list[list[float]] = []
    sticking: dict[int, list[int]] = {}
    turns: dict[int, list[Turn]] = {}
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
                        turns.setdefault(len(found), []).append(Turn(i, velocity[i], unturned[i], before[i]))
            still = [i for i in joints if abs(sense[i]) < 1.0]
            if still:
                sticking[len(found)] = still
            free = all(abs(s) == 1.0 for s in sense)
        found.append(used if used is not sense else sense.copy())
        position = [q + h / 2 * (v + w) for q, v, w in zip(position, velocity, after, strict=True)]
        velocity = after
    return March(np.array(found), sticking, turns, step_weights, parts, h)


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
