"""Directions of dry friction of links behind springs, including stiction.

Newton's method on all samples at once cannot find when links stick, because a direction is no smooth function. A march
through time can: in each short step directions and resulting velocities must agree (Moreau's time stepping; Acary and
Brogliato 2008, chapter 10). The march is of second order only, so nothing except the directions is used. Between
samples without a change of direction all its steps are made as one.

Real joints do not stick like a sign. While |s| < 1 they may creep, bend and react to torque in advance:

    q̇ + lead q̈ = creep s + bend ṡ

All three are zero for Coulomb's law. Bend is the elastic contact of Dahl and of LuGre (Canudas de Wit et al. 1995),
creep is a narrow smoothing of the sign, and lead with creep is the soft friction of simulators (MuJoCo).
"""

from __future__ import annotations

from operator import mul
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

MIN_VELOCITY = 1e-9
"""Velocity of a sticking joint by rounding, rad/s or m/s."""
MAX_SWEEPS = 30
CONVERGENCE_DIRECTION = 1e-6
SAMPLES_PER_BLOCK = 256
"""Number of samples whose derivatives are prepared at once, limited by the processor's cache."""
STICTION = ("creep", "bend", "lead")
"""Units: rad/s or m/s, rad or m, s."""


class LinearMotion(NamedTuple):
    """Equations of motion M q'' + D q' + K (q - p) + c s = f, linear about a motion p, at N samples.

    Attributes:
        mass, damping, stiffness: Matrices M, D and K, (N, n, n) each.
        force: Generalized forces f, (N, n).
        coulomb: Dry friction c, (n,).
        step: Time between samples, s.
        stiction: Stiction parameters (3, n) of `STICTION`; 0: Coulomb's law.
        position: Positions p, (N, n). A march holds K between samples, which is exact at p and harmless near it.
            About zero, a stiffness that varies with time, as that of a cubic spring, would act on whole positions.
    """

    mass: NDArray
    damping: NDArray
    stiffness: NDArray
    force: NDArray
    coulomb: NDArray
    step: float
    stiction: NDArray | float = 0.0
    position: NDArray | float = 0.0


class Law(NamedTuple):
    """Stiction law by joint: creep, and bend and lead in parts of a step's length."""

    creep: list[float]
    bend: list[float]
    lead: list[float]


class Turn(NamedTuple):
    """Joint that reverses within a step: number, velocity before, velocity after without reversal, direction before."""

    joint: int
    velocity: float
    unturned: float
    before: float


class Stuck(NamedTuple):
    """Joint that sticks at the end of a step: number, acceleration, direction, and change of direction per s."""

    joint: int
    acceleration: float
    sense: float
    change: float


class March(NamedTuple):
    """Directions of friction in K steps.

    Attributes:
        used: Directions (K, n) of each step.
        sticking: Sticking joints by step.
        turns: Reversals by step.
        free: Mask (N - 1,) of the intervals between samples in which all joints keep their directions.
        across: Matrices (N - 1, 2 n, 2 n) from velocities and positions at one sample to the next, if they do.
        weights: Weights (N, n, 4 n) of a step by sample, see `_step_weights`.
        law: Stiction law.
        parts: Number of steps between two samples.
        step: Length of a step, s.
    """

    used: NDArray
    sticking: dict[int, list[Stuck]]
    turns: dict[int, list[Turn]]
    free: NDArray
    across: NDArray
    weights: NDArray
    law: Law
    parts: int
    step: float

    def averaged(self, used: NDArray) -> NDArray:
        """Return the averages (N, ...) at the samples of values (K, ...) of the steps."""
        half = self.parts // 2
        fine = np.concatenate([np.repeat(used[:1], half, axis=0), used, np.repeat(used[-1:], half, axis=0)])
        averages = fine.reshape(-1, self.parts, *used.shape[1:]).mean(axis=1)
        # Averaging damps by sin(x) / x with x = pi f T; the neighbours correct this up to terms of fourth order.
        averages[1:-1] -= np.diff(averages, 2, axis=0) / 24.0
        return averages

    def derivatives(self, by_force: NDArray, by_start: NDArray, first: int) -> NDArray:
        """Return the derivatives (N, n, p) of the averages by parameters that change forces, start and stiction law.

        Sliding joints keep their direction, sticking ones follow the law, and reversals move in time. Changes of the
        force are linear between the samples.

        Args:
            by_force: Derivatives (N, n, p) of the forces, of Coulomb friction only by its value.
            by_start: Derivatives (2, n, p) of position and velocity at the first sample.
            first: Number of the first of 3 n columns of the law.
        """
        n = by_force.shape[1]
        parts = self.parts
        sums = np.zeros_like(by_force)
        state = np.empty((3 * n, by_force.shape[2]))
        state[:n] = by_start[1]
        state[n : 2 * n] = by_start[0]
        sense = np.zeros_like(by_start[0])
        half = parts // 2
        last = len(self.used) - 1
        for m in range(len(self.free)):
            if m % SAMPLES_PER_BLOCK == 0:
                added = self._forced(slice(m, m + SAMPLES_PER_BLOCK), by_force)
            if self.free[m]:
                state[: 2 * n] = self.across[m] @ state[: 2 * n] + added[m % SAMPLES_PER_BLOCK]
                sense[:] = 0.0
                continue
            for part in range(parts):
                k = m * parts + part
                share = (part + 0.5) / parts
                state[2 * n :] = (1.0 - share) * by_force[m] + share * by_force[m + 1]
                sense = self._advance(k, self.weights[m + (part >= half)], state, sense, first)
                if k in self.turns or k in self.sticking:
                    # The first and the last step also count for the half samples beyond them, as in `averaged`.
                    sums[(k + half) // parts] += sense * (1 + half * (k in {0, last}))
                    for turn in self.turns.get(k, ()):
                        sense[turn.joint] = 0.0
        found = sums / parts
        found[1:-1] -= np.diff(found, 2, axis=0) / 24.0
        return found

    def _advance(self, k: int, weights: NDArray, state: NDArray, sense: NDArray, first: int) -> NDArray:
        """Return the derivatives (n, p) of the directions in a step from those of the step before; updates `state`."""
        n = len(sense)
        h = self.step
        after = weights[:, : 3 * n] @ state
        found = np.zeros_like(sense)
        gains = weights[:, 3 * n :]
        for i, velocity, unturned, before in self.turns.get(k, ()):
            # Derivative of velocity / (velocity - unturned), the part of the step before the reversal.
            share = (velocity * after[i] - unturned * state[i]) / (velocity - unturned) ** 2
            share[first + 2 * n + i] -= 1.0 / h
            found[i] = 2.0 * before * share
            after += gains[:, i, None] * found[i]
        still = self.sticking.get(k, ())
        for i, acceleration, value, change in still:
            lead = self.law.lead[i]
            bend = self.law.bend[i]
            found[i] = lead * state[i] - (1.0 + lead) * after[i] - bend * sense[i]
            found[i, first + i] += value
            found[i, first + n + i] += change
            found[i, first + 2 * n + i] -= acceleration
        if len(still) == 1:
            (i,) = (one.joint for one in still)
            found[i] /= gains[i, i] * (1.0 + lead) - self.law.creep[i] - bend
            after += gains[:, i, None] * found[i]
        elif still:
            joints = [one.joint for one in still]
            matrix = gains[joints][:, joints] * [[1.0 + self.law.lead[i]] for i in joints]
            matrix[range(len(joints)), range(len(joints))] -= [self.law.creep[i] + self.law.bend[i] for i in joints]
            found[joints] = np.linalg.solve(matrix, found[joints])
            after += gains[:, joints] @ found[joints]
        state[n : 2 * n] += h / 2 * (state[:n] + after)
        state[:n] = after
        return found

    def _forced(self, rows: slice, by_force: NDArray) -> NDArray:
        """Return the contributions (M, 2 n, p) of changed forces to velocities and positions at the next samples."""
        n = by_force.shape[1]
        parts = self.parts
        across = by_force[rows.start : rows.stop + 1]
        found = np.zeros((len(across) - 1, 3 * n, by_force.shape[2]))
        for part in range(parts):
            share = (part + 0.5) / parts
            found[:, 2 * n :] = (1.0 - share) * across[:-1] + share * across[1:]
            begin = rows.start + (part >= parts // 2)
            after = self.weights[begin : begin + len(found), :, : 3 * n] @ found
            found[:, n : 2 * n] += self.step / 2 * (found[:, :n] + after)
            found[:, :n] = after
        return found[:, : 2 * n]


def march(motion: LinearMotion, start: NDArray, longest_step: float) -> March:
    """Return the directions of friction.

    Args:
        motion: Equations of motion.
        start: Position and velocity (2, n) at the first sample.
        longest_step: Longest step of the march, s; errors of reversals are in proportion to it.
    """
    samples, n = motion.force.shape
    parts = 2 * int(np.ceil(motion.step / longest_step / 2 - 1e-6))
    h = motion.step / parts
    half = parts // 2
    middle = (np.arange(parts * (samples - 1)) + 0.5) / parts
    forces = CubicSpline(np.arange(samples), motion.force)(middle)
    positions = CubicSpline(np.arange(samples), np.broadcast_to(motion.position, motion.force.shape))(middle)
    forces += np.einsum("kij,kj->ki", motion.stiffness[(middle + 0.5).astype(int)], positions)
    weights = _step_weights(motion, h)
    law = np.broadcast_to(motion.stiction, (3, n)).astype(float)
    own = Law(*(law / [[1.0], [h], [h]]).tolist())
    across, added = _across(weights, forces.reshape(-1, parts, n), law, h)
    ends = parts * n
    state = np.concatenate([start[1], start[0], np.where(start[1] < 0, -1.0, 1.0)])
    sense = state[2 * n :].tolist()
    senses = np.array(sense * parts)
    used = np.empty_like(forces)
    free = np.zeros(samples - 1, dtype=bool)
    sticking: dict[int, list[Stuck]] = {}
    turns: dict[int, list[Turn]] = {}
    sliding = True
    for m in range(samples - 1):
        if sliding:
            ahead = across[m] @ state + added[m]
            if (ahead[:ends] * senses).min() > 0.0:
                free[m] = True
                used[m * parts : (m + 1) * parts] = sense
                state[: 2 * n] = ahead[ends:]
                continue
        # Plain numbers are faster than arrays of this size.
        velocity, position = state[: 2 * n].reshape(2, n).tolist()
        matrices = weights[m : m + 2].tolist()
        for k, force in enumerate(forces[m * parts : (m + 1) * parts].tolist(), m * parts):
            before = sense.copy()
            after, acting, turned = _stepped(
                matrices[k - m * parts >= half], [*velocity, *position, *force], sense, own
            )
            used[k] = acting
            if turned:
                turns[k] = turned
            still = [
                Stuck(i, (after[i] - velocity[i]) / h, s, (s - before[i]) / h)
                for i, s in enumerate(sense)
                if abs(s) < 1.0
            ]
            if still:
                sticking[k] = still
            position = [q + h / 2 * (v + w) for q, v, w in zip(position, velocity, after, strict=True)]
            velocity = after
        sliding = not still
        state = np.array([*velocity, *position, *sense])
        senses = np.array(sense * parts)
    return March(used, sticking, turns, free, across[:, ends:, : 2 * n], weights, own, parts, h)


def _stepped(
    matrix: list[list[float]], state: list[float], sense: list[float], law: Law
) -> tuple[list[float], list[float], list[Turn]]:
    """Return velocities after a step, acting directions, and reversals; `sense` is updated to the end of the step."""
    n = len(sense)
    velocity = state[:n]
    before = sense.copy()
    column = 3 * n
    state = state + sense
    after = [sum(map(mul, row, state)) for row in matrix]
    for w, v, s, creep, lead in zip(after, velocity, sense, law.creep, law.lead, strict=True):
        if abs(s) < 1.0 or (w + lead * (w - v)) * s <= creep:
            break
    else:
        return after, before, []
    unturned = after.copy()
    _agree(sense, velocity, after, matrix, law)
    acting = sense.copy()
    turns = []
    for i in range(n):
        if abs(before[i]) == 1.0 and unturned[i] * velocity[i] < 0.0 and abs(velocity[i]) > MIN_VELOCITY:
            # The joint may reverse within the step, unless it sticks there: friction changes its sign on the way.
            share = velocity[i] / (velocity[i] - unturned[i]) - law.lead[i]
            turning = -before[i] * (1.0 - 2.0 * share)
            turned = unturned[i] + matrix[i][column + i] * (turning - before[i])
            led = (turned + law.lead[i] * (turned - velocity[i])) * before[i]
            if share > 0.0 and led + law.creep[i] + 2.0 * law.bend[i] < 0.0:
                for j in range(n):
                    after[j] += matrix[j][column + i] * (turning - sense[i])
                acting[i] = turning
                sense[i] = -before[i]
                turns.append(Turn(i, velocity[i], unturned[i], before[i]))
    return after, acting, turns


def _agree(sense: list[float], velocity: list[float], after: list[float], matrix: list[list[float]], law: Law) -> None:
    """Make directions and velocities agree in place: sliding joints have full friction, sticking ones part of it."""
    joints = range(len(sense))
    column = 3 * len(sense)
    before = sense.copy()
    for _ in range(MAX_SWEEPS):
        change = 0.0
        for i in joints:
            lead = law.lead[i]
            soft = law.creep[i] + law.bend[i]
            gain = matrix[i][column + i] * (1.0 + lead) - soft
            wrong = after[i] + lead * (after[i] - velocity[i]) - soft * sense[i] + law.bend[i] * before[i]
            new = min(1.0, max(-1.0, sense[i] - wrong / gain)) if gain else sense[i]
            moved = new - sense[i]
            if moved:
                sense[i] = new
                for j in joints:
                    after[j] += matrix[j][column + i] * moved
                change = max(change, abs(moved))
        if change < CONVERGENCE_DIRECTION:
            break


def _step_weights(motion: LinearMotion, h: float) -> NDArray:
    """Return the weights (N, n, 4 n) of velocity, position, force and direction in the velocity after a step of h."""
    solve = np.linalg.inv(motion.mass / h + motion.damping / 2 + motion.stiffness * (h / 4))
    past = motion.mass / h - motion.damping / 2 - motion.stiffness * (h / 4)
    return np.concatenate([solve @ past, -solve @ motion.stiffness, solve, -solve * motion.coulomb], axis=2)


def _across(weights: NDArray, forces: NDArray, law: NDArray, h: float) -> tuple[NDArray, NDArray]:
    """Return the maps from velocities, positions and directions (3 n,) at samples to the steps up to the next ones.

    Returns:
        Matrices (N - 1, parts n + 2 n, 3 n) and contributions (N - 1, parts n + 2 n) of forces (N - 1, parts, n): slip
        after each step, then velocities and positions after the last.
    """
    blocks, parts, n = forces.shape
    state = np.zeros((blocks, 2 * n, 3 * n + 1))
    state[:, : 2 * n, : 2 * n] = np.eye(2 * n)
    creep, _, lead = law[:, :, None]
    edges = np.empty((blocks, parts, n, 3 * n + 1))
    for part in range(parts):
        begin = int(part >= parts // 2)
        own = weights[begin : begin + blocks]
        after = own[:, :, : 2 * n] @ state
        after[:, :, 2 * n : 3 * n] += own[:, :, 3 * n :]
        after[:, :, 3 * n] += np.einsum("bij,bj->bi", own[:, :, 2 * n : 3 * n], forces[:, part])
        edges[:, part] = after + lead / h * (after - state[:, :n])
        edges[:, part, :, 2 * n : 3 * n] -= creep * np.eye(n)
        state[:, n:] += h / 2 * (state[:, :n] + after)
        state[:, :n] = after
    found = np.concatenate([edges.reshape(blocks, parts * n, -1), state], axis=1)
    return found[:, :, : 3 * n].copy(), found[:, :, 3 * n].copy()
