"""Directions of dry friction of links behind springs, including stiction.

The direction s of a joint, between -1 and 1, scales its dry friction c s. A sliding joint has |s| = 1, a sticking one
|s| < 1. Newton's method on all samples at once cannot find when links stick, because s is not a smooth function of the
motion. Time stepping can: in each short step, directions and resulting velocities must agree (Moreau's time stepping;
Acary and Brogliato 2008, chapter 10). The stepping is accurate to second order only, so callers use its directions and
not its motion. Between two samples without a change of direction, one matrix product replaces all steps. Elsewhere each
step is divided again: a reversal that takes less time than a step is placed within it, a slower one is resolved by
steps, and both agree only as far as the step is short. Without short steps the likelihood jumps between them.

Coulomb's law holds a sticking joint at rest, q̇ = 0. Real joints move a little while |s| < 1:

    q̇ + lead q̈ = creep s + bend ṡ

Bend is the elastic contact of Dahl and of LuGre (Canudas de Wit et al. 1995), creep is a narrow smoothing of the sign,
and lead with creep is the soft friction of simulators (MuJoCo). All three are zero for Coulomb's law.
"""

from __future__ import annotations

from operator import mul
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

MIN_VELOCITY = 1e-9
"""Largest velocity of a sticking joint due to rounding, rad/s or m/s."""
MAX_SWEEPS = 30
"""Largest number of Gauss-Seidel sweeps over the joints in one step."""
CONVERGENCE_DIRECTION = 1e-6
"""Largest change of a direction in a sweep below which the sweeps end."""
SAMPLES_PER_BLOCK = 256
"""Number of samples whose derivatives are prepared at once; a larger block leaves the processor's cache."""
STICTION = ("creep", "bend", "lead")
"""Parameters of the stiction law above; units: rad/s or m/s, rad or m, s."""


class LinearMotion(NamedTuple):
    """Equations of motion M q'' + D q' + K (q - p) + c s = f, linear about a motion p, at N samples.

    Attributes:
        mass, damping, stiffness: Matrices M, D and K, (N, n, n) each.
        force: Generalized forces f, (N, n).
        coulomb: Dry friction c, (n,).
        step: Time between samples, s.
        stiction: Parameters (3, n) in the order of `STICTION`; 0 for Coulomb's law.
        position: Positions p, (N, n). The steps hold K constant between samples, which causes no error at q = p and a
            small one near it. With p = 0, the error of a varying K, as of a cubic spring, would multiply all of q.
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
    """Stiction law of each joint: creep, bend / h and lead / h, where h is the length of a step."""

    creep: list[float]
    bend: list[float]
    lead: list[float]


class Turn(NamedTuple):
    """Reversal within a step: joint, velocity before, velocity after if friction did not reverse, direction before."""

    joint: int
    velocity: float
    unturned: float
    before: float


class Stuck(NamedTuple):
    """Sticking at the end of a step: joint, acceleration, direction s (`sense`), and rate of change ṡ."""

    joint: int
    acceleration: float
    sense: float
    change: float


class Step(NamedTuple):
    """Changes in one step: reversals, and joints that stick at its end."""

    turns: list[Turn]
    stuck: list[Stuck]


class Division(NamedTuple):
    """Division of the interval between two samples into steps.

    Attributes:
        parts: Number of steps, even: the first half uses the matrices of one sample, the second half those of the next.
        length: Length of a step, s.
        weights: Weights (N, n, 4 n) of the steps near each sample, see `_step_weights`.
    """

    parts: int
    length: float
    weights: NDArray
    law: Law


class March(NamedTuple):
    """Directions of friction in K steps.

    Attributes:
        used: Directions (K, n) that act in each coarse step; their mean over the step if they change in it.
        steps: Steps of each interval in which a joint sticks or reverses, by the number of its first sample.
        across: Matrices (N - 1, 2 n, 2 n) from velocities and positions at one sample to the next, in other intervals.
        coarse: Division of intervals in which no joint begins or ceases to stick.
        fine: Division of the others.
    """

    used: NDArray
    steps: dict[int, list[Step]]
    across: NDArray
    coarse: Division
    fine: Division

    def averaged(self, used: NDArray) -> NDArray:
        """Return averages (N, ...) over one interval around each sample of values (K, ...) at the steps."""
        parts = self.coarse.parts
        half = parts // 2
        extended = np.concatenate([np.repeat(used[:1], half, axis=0), used, np.repeat(used[-1:], half, axis=0)])
        averages = extended.reshape(-1, parts, *used.shape[1:]).mean(axis=1)
        # An average over an interval T damps frequency f by sin(x) / x ≈ 1 - x² / 6 with x = pi f T. The second
        # difference over 24 restores the term in x².
        averages[1:-1] -= np.diff(averages, 2, axis=0) / 24.0
        return averages

    def derivatives(self, by_force: NDArray, by_start: NDArray, first: int) -> NDArray:
        """Return the derivatives (N, n, p) of the averaged directions with respect to p parameters.

        A parameter changes forces, the start or the stiction law. Sliding joints then keep their directions, sticking
        joints follow the law, and reversals shift in time. Changes of the force are linear between the samples.

        Args:
            by_force: Derivatives (N, n, p) of the forces at constant directions.
            by_start: Derivatives (2, n, p) of position and velocity at the first sample.
            first: Index of the first of the 3 n parameters of the stiction law, in the order of `STICTION`.
        """
        n = by_force.shape[1]
        sums = np.zeros_like(by_force)
        state = np.empty((3 * n, by_force.shape[2]))
        state[:n] = by_start[1]
        state[n : 2 * n] = by_start[0]
        by_direction = np.zeros_like(by_start[0])
        last = len(self.across) - 1
        for m, across in enumerate(self.across):
            if m % SAMPLES_PER_BLOCK == 0:
                added = self._forced(slice(m, m + SAMPLES_PER_BLOCK), by_force)
            steps = self.steps.get(m)
            if steps is None:
                state[: 2 * n] = across @ state[: 2 * n] + added[m % SAMPLES_PER_BLOCK]
                by_direction[:] = 0.0
                continue
            parts = len(steps)
            division = self.coarse if parts == self.coarse.parts else self.fine
            for part, step in enumerate(steps):
                share = (part + 0.5) / parts
                sample = m + (part >= parts // 2)
                state[2 * n :] = (1.0 - share) * by_force[m] + share * by_force[m + 1]
                by_direction = self._advance(step, division, sample, state, by_direction, first)
                # The first and the last step stand for half an interval beyond the ends, as in `averaged`.
                at_end = (m, part) in {(0, 0), (last, parts - 1)}
                sums[sample] += by_direction * ((1 + parts // 2 * at_end) / parts)
                # A reversal ends at s = 1 or -1, whatever the parameters are.
                for turn in step.turns:
                    by_direction[turn.joint] = 0.0
        sums[1:-1] -= np.diff(sums, 2, axis=0) / 24.0
        return sums

    def _advance(  # noqa: PLR0917
        self, step: Step, division: Division, sample: int, state: NDArray, before: NDArray, first: int
    ) -> NDArray:
        """Return the derivatives (n, p) of the directions in a step, and update those of velocities and positions.

        Args:
            step: Changes in the step.
            division: Division of its interval.
            sample: Number of the sample whose matrices the step uses.
            state: Derivatives (3 n, p) of velocities, positions and forces; updated to the end of the step.
            before: Derivatives (n, p) of the directions at the end of the step before.
            first: Index of the first parameter of the stiction law.
        """
        n = len(before)
        h = division.length
        law = division.law
        weights = division.weights[sample]
        after = weights[:, : 3 * n] @ state
        result = np.zeros_like(before)
        gains = weights[:, 3 * n :]
        for i, velocity, unturned, initial in step.turns:
            # Derivative of velocity / (velocity - unturned), the fraction of the step before the reversal.
            share = (velocity * after[i] - unturned * state[i]) / (velocity - unturned) ** 2
            share[first + 2 * n + i] -= 1.0 / h
            result[i] = 2.0 * initial * share
            after += gains[:, i, None] * result[i]
        # Differentiate the stiction law at the end of the step; what depends on the new directions is on the left.
        stuck = step.stuck
        for i, acceleration, direction, change in stuck:
            lead = law.lead[i]
            bend = law.bend[i]
            result[i] = lead * state[i] - (1.0 + lead) * after[i] - bend * before[i]
            result[i, first + i] += direction
            result[i, first + n + i] += change
            result[i, first + 2 * n + i] -= acceleration
        if len(stuck) == 1:
            i = stuck[0].joint
            result[i] /= gains[i, i] * (1.0 + lead) - law.creep[i] - bend
            after += gains[:, i, None] * result[i]
        elif stuck:
            joints = [entry.joint for entry in stuck]
            matrix = gains[joints][:, joints] * [[1.0 + law.lead[i]] for i in joints]
            matrix[range(len(joints)), range(len(joints))] -= [law.creep[i] + law.bend[i] for i in joints]
            result[joints] = np.linalg.solve(matrix, result[joints])
            after += gains[:, joints] @ result[joints]
        state[n : 2 * n] += h / 2 * (state[:n] + after)
        state[:n] = after
        return result

    def _forced(self, rows: slice, by_force: NDArray) -> NDArray:
        """Return what the forces add to derivatives (M, 2 n, p) of velocities and positions at the next samples.

        The directions are constant between the samples. `rows` selects the M samples at which the intervals begin.
        """
        n = by_force.shape[1]
        parts = self.coarse.parts
        forces = by_force[rows.start : rows.stop + 1]
        state = np.zeros((len(forces) - 1, 3 * n, by_force.shape[2]))
        for part in range(parts):
            share = (part + 0.5) / parts
            state[:, 2 * n :] = (1.0 - share) * forces[:-1] + share * forces[1:]
            begin = rows.start + (part >= parts // 2)
            after = self.coarse.weights[begin : begin + len(state), :, : 3 * n] @ state
            state[:, n : 2 * n] += self.coarse.length / 2 * (state[:, :n] + after)
            state[:, :n] = after
        return state[:, : 2 * n]


def march(motion: LinearMotion, start: NDArray, longest_step: float, divisions: int = 1) -> March:
    """Step through the motion and return the directions of friction.

    Args:
        motion: Equations of motion.
        start: Position and velocity (2, n) at the first sample.
        longest_step: Upper limit of the coarse step, s.
        divisions: Number of fine steps in a coarse one. Errors in the times of reversals are proportional to the fine
            step.
    """
    samples, n = motion.force.shape
    stiction = np.broadcast_to(motion.stiction, (3, n)).astype(float)
    parts = 2 * int(np.ceil(motion.step / longest_step / 2 - 1e-6))
    coarse = _divide(motion, stiction, parts)
    fine = _divide(motion, stiction, parts * divisions) if divisions > 1 else coarse
    force = CubicSpline(np.arange(samples), motion.force)
    followed = CubicSpline(np.arange(samples), np.broadcast_to(motion.position, motion.force.shape))

    def forces_in(intervals: NDArray, parts: int) -> NDArray:
        """Return the forces (M, parts, n) in each step of M intervals, given by the numbers of their first samples."""
        middle = intervals[:, None] + (np.arange(parts) + 0.5) / parts
        # The weights multiply K with q instead of q - p, so K p is added to the forces.
        stiffness = motion.stiffness[(middle + 0.5).astype(int)]
        return force(middle) + np.einsum("mpij,mpj->mpi", stiffness, followed(middle))

    forces = forces_in(np.arange(samples - 1), parts)
    across, added = _across(coarse, forces, stiction)
    ends = parts * n
    state = np.concatenate([start[1], start[0], np.where(start[1] < 0, -1.0, 1.0)])
    used = np.empty(((samples - 1) * parts, n))
    steps: dict[int, list[Step]] = {}
    sliding = True
    for m in range(samples - 1):
        rows = slice(m * parts, (m + 1) * parts)
        if sliding:
            with np.errstate(over="ignore", invalid="ignore"):  # trial parameters may make the motion unstable
                ahead = across[m] @ state + added[m]
            # All joints keep sliding if the slip after every step has the sign of its direction.
            if (ahead[:ends].reshape(parts, n) * state[2 * n :]).min() > 0.0:
                used[rows] = state[2 * n :]
                state[: 2 * n] = ahead[ends:]
                continue
        end, acting, steps[m] = _through(coarse, m, forces[m], state)
        if divisions > 1 and not _unchanged(state[2 * n :], steps[m]):
            end, acting, steps[m] = _through(fine, m, forces_in(np.array([m]), fine.parts)[0], state)
        state = end
        used[rows] = acting.reshape(parts, -1, n).mean(axis=1)
        sliding = not steps[m][-1].stuck
    return March(used, steps, across[:, ends:, : 2 * n].copy(), coarse, fine)


def _divide(motion: LinearMotion, stiction: NDArray, parts: int) -> Division:
    """Return the division of the intervals into a number of steps."""
    h = motion.step / parts
    return Division(parts, h, _step_weights(motion, h), Law(*(stiction / [[1.0], [h], [h]]).tolist()))


def _unchanged(directions: NDArray, steps: list[Step]) -> bool:
    """Return whether the same joints stick at the beginning, with directions (n,), and after all of some steps."""
    sticking = set(np.flatnonzero(np.abs(directions) < 1.0).tolist())
    return all(not step.turns and {entry.joint for entry in step.stuck} == sticking for step in steps)


def _through(division: Division, m: int, forces: NDArray, state: NDArray) -> tuple[NDArray, NDArray, list[Step]]:
    """Step through an interval, and return the state at its end, directions (parts, n) that act, and changes.

    The interval begins at sample m. `forces` are (parts, n), the state (3 n,) is velocities, positions and directions.
    """
    # Lists of numbers are faster than arrays of this size.
    velocity, position, directions = state.reshape(3, -1).tolist()
    matrices = division.weights[m : m + 2].tolist()
    h = division.length
    acting = []
    steps = []
    for part, force in enumerate(forces.tolist()):
        before = directions.copy()
        after, mean, turns = _stepped(
            matrices[part >= division.parts // 2], [*velocity, *position, *force], directions, division.law
        )
        acting.append(mean)
        stuck = [
            Stuck(i, (after[i] - velocity[i]) / h, s, (s - before[i]) / h)
            for i, s in enumerate(directions)
            if abs(s) < 1.0
        ]
        steps.append(Step(turns, stuck))
        position = [q + h / 2 * (v + w) for q, v, w in zip(position, velocity, after, strict=True)]
        velocity = after
    return np.array([*velocity, *position, *directions]), np.array(acting), steps


def _stepped(
    matrix: list[list[float]], state: list[float], directions: list[float], law: Law
) -> tuple[list[float], list[float], list[Turn]]:
    """Return velocities after a step, directions that act in it, and reversals.

    `state` has velocities, positions and forces. `directions` is updated to the end of the step.
    """
    n = len(directions)
    velocity = state[:n]
    before = directions.copy()
    column = 3 * n
    state = state + directions
    after = [sum(map(mul, row, state)) for row in matrix]
    # If every joint was sliding and still slides in its direction after the step, no direction changes.
    for w, v, s, creep, lead in zip(after, velocity, directions, law.creep, law.lead, strict=True):
        if abs(s) < 1.0 or (w + lead * (w - v)) * s <= creep:
            break
    else:
        return after, before, []
    unturned = after.copy()
    _agree(directions, velocity, after, matrix, law)
    acting = directions.copy()
    turns = []
    for i in range(n):
        if abs(before[i]) == 1.0 and unturned[i] * velocity[i] < 0.0 and abs(velocity[i]) > MIN_VELOCITY:
            # Friction reverses after a fraction `share` of the step, where q̇ + lead q̈ = 0. If the joint moves on, the
            # mean direction over the step is `turning`.
            share = velocity[i] / (velocity[i] - unturned[i]) - law.lead[i]
            turning = -before[i] * (1.0 - 2.0 * share)
            turned = unturned[i] + matrix[i][column + i] * (turning - before[i])
            led = (turned + law.lead[i] * (turned - velocity[i])) * before[i]
            # The stiction law with s = -before lets the joint slide; otherwise the joint sticks, as `_agree` found.
            if share > 0.0 and led + law.creep[i] + 2.0 * law.bend[i] < 0.0:
                for j in range(n):
                    after[j] += matrix[j][column + i] * (turning - directions[i])
                acting[i] = turning
                directions[i] = -before[i]
                turns.append(Turn(i, velocity[i], unturned[i], before[i]))
    return after, acting, turns


def _agree(
    directions: list[float], velocity: list[float], after: list[float], matrix: list[list[float]], law: Law
) -> None:
    """Make `directions` and velocities `after` agree in place, by projected Gauss-Seidel sweeps over the joints.

    For each joint in turn, the direction that fulfils the stiction law at the end of the step is limited to [-1, 1]:
    limited joints slide, the others stick.
    """
    joints = range(len(directions))
    column = 3 * len(directions)
    before = directions.copy()
    for _ in range(MAX_SWEEPS):
        change = 0.0
        for i in joints:
            lead = law.lead[i]
            soft = law.creep[i] + law.bend[i]
            gain = matrix[i][column + i] * (1.0 + lead) - soft
            # Residual of the law: q̇ + lead q̈ - creep s - bend ṡ. The gain is its derivative by s.
            residual = after[i] + lead * (after[i] - velocity[i]) - soft * directions[i] + law.bend[i] * before[i]
            new = min(1.0, max(-1.0, directions[i] - residual / gain)) if gain else directions[i]
            difference = new - directions[i]
            if difference:
                directions[i] = new
                for j in joints:
                    after[j] += matrix[j][column + i] * difference
                change = max(change, abs(difference))
        if change < CONVERGENCE_DIRECTION:
            break


def _step_weights(motion: LinearMotion, h: float) -> NDArray:
    """Return the weights (N, n, 4 n) of velocity, position, force and direction in the velocity after a step of h.

    Trapezoidal rule: M (v₁ - v₀) / h + D (v₀ + v₁) / 2 + K (q₀ + h (v₀ + v₁) / 4) + c s = f, solved for v₁.
    """
    solve = np.linalg.inv(motion.mass / h + motion.damping / 2 + motion.stiffness * (h / 4))
    past = motion.mass / h - motion.damping / 2 - motion.stiffness * (h / 4)
    return np.concatenate([solve @ past, -solve @ motion.stiffness, solve, -solve * motion.coulomb], axis=2)


def _across(division: Division, forces: NDArray, law: NDArray) -> tuple[NDArray, NDArray]:
    """Return linear maps over the intervals between samples in which all joints slide and keep their directions.

    Args:
        division: Division of the intervals.
        forces: Forces (N - 1, parts, n) in each step.
        law: Parameters (3, n) in the order of `STICTION`.

    Returns:
        Matrices (N - 1, parts n + 2 n, 3 n) and contributions (N - 1, parts n + 2 n) of the forces. The matrices act on
        velocities, positions and directions at a sample. The results are the slip q̇ + lead q̈ - creep s after each of
        the steps, then velocities and positions at the next sample.
    """
    blocks, parts, n = forces.shape
    state = np.zeros((blocks, 2 * n, 3 * n + 1))
    state[:, : 2 * n, : 2 * n] = np.eye(2 * n)
    creep, _, lead = law[:, :, None]
    slip = np.empty((blocks, parts, n, 3 * n + 1))
    for part in range(parts):
        begin = int(part >= parts // 2)
        block = division.weights[begin : begin + blocks]
        after = block[:, :, : 2 * n] @ state
        after[:, :, 2 * n : 3 * n] += block[:, :, 3 * n :]
        after[:, :, 3 * n] += np.einsum("bij,bj->bi", block[:, :, 2 * n : 3 * n], forces[:, part])
        slip[:, part] = after + lead / division.length * (after - state[:, :n])
        slip[:, part, :, 2 * n : 3 * n] -= creep * np.eye(n)
        state[:, n:] += division.length / 2 * (state[:, :n] + after)
        state[:, :n] = after
    maps = np.concatenate([slip.reshape(blocks, parts * n, -1), state], axis=1)
    return maps[:, :, : 3 * n].copy(), maps[:, :, 3 * n].copy()
