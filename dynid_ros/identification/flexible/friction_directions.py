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

    creep: NDArray
    bend: NDArray
    lead: NDArray


class Steps(NamedTuple):
    """Motion through the P steps of an interval between two samples, or of many intervals (leading axis).

    Attributes:
        velocity: Velocities (P + 1, n) before and after the steps; without a change those of sticking joints alone.
        directions: Directions (P + 1, n) there.
        unturned: Velocities (P, n) after the steps if friction did not reverse in them.
        turned: Directions (P, n) before the steps of joints that reverse within them; 0 for other joints.
    """

    velocity: NDArray
    directions: NDArray
    unturned: NDArray
    turned: NDArray


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
    """Directions of friction in the steps between N samples.

    Attributes:
        used: Directions (N - 1, P, n) that act in each coarse step; their mean over the step if they change in it.
        steps: Coarse steps of all intervals.
        fine_steps: Fine steps of those intervals that are divided again, by the number of their first sample.
        coarse: Division of intervals in which no joint begins or ceases to stick.
        fine: Division of the others.
    """

    used: NDArray
    steps: Steps
    fine_steps: dict[int, Steps]
    coarse: Division
    fine: Division

    @property
    def sticking(self) -> NDArray:
        """Mask (N - 1, n) of the joints that stick at the beginning of each interval."""
        return np.abs(self.steps.directions[:, 0]) < 1.0

    def averaged(self) -> NDArray:
        """Return averages (N, n) of the directions over one interval around each sample, at the ends over half."""
        half = self.coarse.parts // 2
        before = self.used[:, :half].mean(axis=1)
        after = self.used[:, half:].mean(axis=1)
        averages = np.concatenate([before[:1], (after[:-1] + before[1:]) / 2.0, after[-1:]])
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
        samples, n, _ = by_force.shape
        sums = np.zeros_like(by_force)
        state = np.concatenate([by_start[1], by_start[0], np.zeros_like(by_start[0])])
        stiction = slice(first, first + 3 * n)
        for begin in range(0, samples - 1, SAMPLES_PER_BLOCK):
            rows = slice(begin, min(begin + SAMPLES_PER_BLOCK, samples - 1))
            maps = _step_derivatives(self.coarse, rows.start, Steps(*(values[rows] for values in self.steps)))
            for m in self.fine_steps.keys() & range(rows.start, rows.stop):
                divided = Steps(*(values[None] for values in self.fine_steps[m]))
                maps[m - begin] = _step_derivatives(self.fine, m, divided)[0]
            added = maps[:, :, 3 * n : 4 * n] @ by_force[rows]
            added += maps[:, :, 4 * n : 5 * n] @ by_force[rows.start + 1 : rows.stop + 1]
            added[:, :, stiction] += maps[:, :, 5 * n :]
            for m, (matrix, addend) in enumerate(zip(maps[:, :, : 3 * n].copy(), added, strict=True), start=begin):
                after = matrix @ state
                after += addend
                state = after[: 3 * n]
                sums[m] += after[3 * n : 4 * n]
                sums[m + 1] += after[4 * n :]
        sums[[0, -1]] *= 2.0  # the averages over half an interval
        sums[1:-1] -= np.diff(sums, 2, axis=0) / 24.0
        return sums


def _step_derivatives(division: Division, first: int, steps: Steps) -> NDArray:
    """Return the derivatives (M, 5 n, 8 n) of the ends of M intervals from sample `first` on by their beginnings.

    Rows are velocities, positions and directions of sticking joints at the end, then the directions that act in the
    first and in the second half of the interval, each averaged over the whole interval. Columns are velocities,
    positions and directions at the beginning, forces at the first and at the next sample, and the stiction law.
    """
    count, ends, n = steps.directions.shape
    parts = ends - 1
    own = np.arange(n)
    law = division.law
    h = division.length
    creep_columns, bend_columns, lead_columns = (own + k * n for k in (5, 6, 7))
    motion = np.zeros((count, 2 * n, 8 * n))
    motion[:, : 2 * n, : 2 * n] = np.eye(2 * n)
    directions = np.zeros((count, n, 8 * n))
    directions[:, own, 2 * n + own] = 1.0
    halves = np.zeros((count, 2, n, 8 * n))
    for part in range(parts):
        half = int(part >= parts // 2)
        weights = division.weights[first + half : first + half + count]
        share = (part + 0.5) / parts
        after = weights[:, :, : 2 * n] @ motion
        after[:, :, 3 * n : 4 * n] += (1.0 - share) * weights[:, :, 2 * n : 3 * n]
        after[:, :, 4 * n : 5 * n] += share * weights[:, :, 2 * n : 3 * n]
        turned = steps.turned[:, part]
        turning = np.flatnonzero(turned.any(axis=1))
        if len(turning):
            sign = turned[turning]
            velocity = steps.velocity[turning, part]
            unturned = steps.unturned[turning, part]
            # Derivative of velocity / (velocity - unturned), the fraction of the step before the reversal.
            slope = 2.0 * sign / np.where(sign, velocity - unturned, 1.0) ** 2
            acting = (slope * velocity)[:, :, None] * after[turning]
            acting -= (slope * unturned)[:, :, None] * motion[turning, :n]
            acting[:, own, lead_columns] -= 2.0 * sign / h
            after[turning] += weights[turning, :, 3 * n :] @ acting
            halves[turning, half] += acting / parts
        stuck = np.abs(steps.directions[:, part + 1]) < 1.0
        at = np.flatnonzero(stuck.any(axis=1))
        before = directions[at]
        directions = np.zeros_like(directions)
        if len(at):
            # Differentiate the stiction law at the end of the step.
            lead = law.lead[:, None]
            law_residual = lead * motion[at, :n] - (1.0 + lead) * after[at] - law.bend[:, None] * before
            sense = steps.directions[at, part + 1]
            law_residual[:, own, creep_columns] += sense
            law_residual[:, own, bend_columns] += (sense - steps.directions[at, part]) / h
            law_residual[:, own, lead_columns] -= (steps.velocity[at, part + 1] - steps.velocity[at, part]) / h
            gains = weights[at, :, 3 * n :]
            directions[at] = _law_inverse(gains, law, stuck[at]) @ law_residual
            after[at] += gains @ directions[at]
            halves[:, half] += directions / parts
        motion[:, n:] += h / 2 * (motion[:, :n] + after)
        motion[:, :n] = after
    return np.concatenate([motion, directions, halves.reshape(count, 2 * n, -1)], axis=1)


def _law_inverse(gains: NDArray, law: Law, stuck: NDArray) -> NDArray:
    """Return the inverses (M, n, n) of the derivative of the stiction law by the directions of sticking joints.

    Rows and columns of the other joints are zero. `gains` (M, n, n) are derivatives of velocities by directions, and
    `stuck` (M, n) is a mask.
    """
    both = stuck[:, :, None] & stuck[:, None, :]
    identity = np.eye(gains.shape[1])
    slopes = gains * (1.0 + law.lead)[:, None] - np.diag(law.creep + law.bend)
    return np.linalg.inv(np.where(both, slopes, identity)) * both


@np.errstate(over="ignore", invalid="ignore")  # trial parameters may make the motion unstable
def march(
    motion: LinearMotion, start: NDArray, longest_step: float, divisions: int = 1, sticking: NDArray | None = None
) -> March:
    """Step through the motion and return the directions of friction.

    Args:
        motion: Equations of motion.
        start: Position and velocity (2, n) at the first sample.
        longest_step: Upper limit of the coarse step, s.
        divisions: Number of fine steps in a coarse one. Errors in the times of reversals are proportional to the fine
            step.
        sticking: Mask (N - 1, n) of the joints that are expected to stick in each interval, as from the march of a
            similar motion; None: none. Where it is right, one matrix product replaces the steps of the interval.
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
    expected = np.zeros((samples - 1, n), dtype=bool) if sticking is None else sticking & (motion.coulomb > 0)
    across, added = _across(coarse, forces, expected)
    expected_rows = [row.tobytes() for row in expected]
    ends = parts * n
    states = np.empty((samples, 3 * n))
    states[0] = np.concatenate([start[1], start[0], np.where(start[1] < 0, -1.0, 1.0)])
    used = np.empty((samples - 1, parts, n))
    changed: dict[int, Steps] = {}
    fine_steps: dict[int, Steps] = {}
    stuck = np.zeros(n, dtype=bool)
    stuck_row = stuck.tobytes()
    for m in range(samples - 1):
        state = states[m]
        directions = state[2 * n :]
        if stuck_row == expected_rows[m]:
            ahead = across[m] @ state + added[m]
            # All joints go on as they are if the slip of sliding joints keeps the sign of its direction in every step,
            # and the directions of sticking joints stay below one.
            reached = ahead[:ends].reshape(parts, n)
            if stuck.any():
                goes_on = np.where(stuck, 1.0 - np.abs(reached), reached * directions).min() > 0.0
                used[m] = np.where(stuck, reached, directions)
            else:
                goes_on = (reached * directions).min() > 0.0
                used[m] = directions
            if goes_on:
                states[m + 1] = ahead[ends:]
                continue
        states[m + 1], used[m], changed[m] = _through(coarse, m, forces[m], state)
        if divisions > 1 and not _unchanged(changed[m]):
            states[m + 1], acting, fine_steps[m] = _through(fine, m, forces_in(np.array([m]), fine.parts)[0], state)
            used[m] = acting.reshape(parts, divisions, n).mean(axis=1)
        stuck = np.abs(states[m + 1, 2 * n :]) < 1.0
        stuck_row = stuck.tobytes()
    return March(used, _coarse_steps(states, used, changed, coarse.law), fine_steps, coarse, fine)


def _coarse_steps(states: NDArray, used: NDArray, changed: dict[int, Steps], law: Law) -> Steps:
    """Return the coarse steps of all intervals: those that changed, and of sticking joints in the others."""
    parts, n = used.shape[1:]
    velocity = np.zeros((len(used), parts + 1, n))
    velocity[:, 0] = states[:-1, :n]
    directions = np.concatenate([states[:-1, None, 2 * n :], used], axis=1)
    for part in range(parts):
        change = directions[:, part + 1] - directions[:, part]
        creeping = law.creep * directions[:, part + 1] + law.bend * change
        velocity[:, part + 1] = (creeping + law.lead * velocity[:, part]) / (1.0 + law.lead)
    steps = Steps(velocity, directions, np.zeros_like(used), np.zeros_like(used))
    for m, through in changed.items():
        for whole, values in zip(steps, through, strict=True):
            whole[m] = values
    return steps


def _divide(motion: LinearMotion, stiction: NDArray, parts: int) -> Division:
    """Return the division of the intervals into a number of steps."""
    h = motion.step / parts
    return Division(parts, h, _step_weights(motion, h), Law(*(stiction / [[1.0], [h], [h]])))


def _unchanged(steps: Steps) -> bool:
    """Return whether no joint reverses in the steps of an interval, and the same joints stick throughout."""
    sticking = np.abs(steps.directions) < 1.0
    return not steps.turned.any() and bool((sticking == sticking[0]).all())


def _through(division: Division, m: int, forces: NDArray, state: NDArray) -> tuple[NDArray, NDArray, Steps]:
    """Step through an interval, and return the state at its end, directions (parts, n) that act, and the steps.

    The interval begins at sample m. `forces` are (parts, n), the state (3 n,) is velocities, positions and directions.
    """
    # Lists of numbers are faster than arrays of this size.
    velocity, position, directions = state.reshape(3, -1).tolist()
    matrices = division.weights[m : m + 2].tolist()
    law = Law(*(values.tolist() for values in division.law))
    h = division.length
    velocities = [velocity]
    senses = [directions.copy()]
    acting: list[list[float]] = []
    unturned: list[list[float]] = []
    turned: list[list[float]] = []
    for part, force in enumerate(forces.tolist()):
        step = _stepped(matrices[part >= division.parts // 2], [*velocity, *position, *force], directions, law)
        after = step[0]
        position = [q + h / 2 * (v + w) for q, v, w in zip(position, velocity, after, strict=True)]
        velocity = after
        velocities.append(after)
        senses.append(directions.copy())
        for values, new in zip((acting, unturned, turned), step[1:], strict=True):
            values.append(new)
    steps = Steps(*(np.array(values) for values in (velocities, senses, unturned, turned)))
    return np.array([*velocity, *position, *directions]), np.array(acting), steps


def _stepped(
    matrix: list[list[float]], state: list[float], directions: list[float], law: Law
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return velocities after a step, directions that act in it, and `unturned` and `turned` of `Steps`.

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
        return after, before, after, [0.0] * n
    unturned = after.copy()
    _agree(directions, velocity, after, matrix, law)
    acting = directions.copy()
    turned = [0.0] * n
    for i in range(n):
        if abs(before[i]) == 1.0 and unturned[i] * velocity[i] < 0.0 and abs(velocity[i]) > MIN_VELOCITY:
            # Friction reverses after a fraction `share` of the step, where q̇ + lead q̈ = 0. If the joint moves on, the
            # mean direction over the step is `turning`.
            share = velocity[i] / (velocity[i] - unturned[i]) - law.lead[i]
            turning = -before[i] * (1.0 - 2.0 * share)
            reached = unturned[i] + matrix[i][column + i] * (turning - before[i])
            led = (reached + law.lead[i] * (reached - velocity[i])) * before[i]
            # The stiction law with s = -before lets the joint slide; otherwise the joint sticks, as `_agree` found.
            if share > 0.0 and led + law.creep[i] + 2.0 * law.bend[i] < 0.0:
                for j in range(n):
                    after[j] += matrix[j][column + i] * (turning - directions[i])
                acting[i] = turning
                directions[i] = -before[i]
                turned[i] = before[i]
    return after, acting, unturned, turned


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


def _across(division: Division, forces: NDArray, stuck: NDArray) -> tuple[NDArray, NDArray]:
    """Return linear maps over intervals in which sliding joints keep their directions and the others stick.

    Args:
        division: Division of the intervals.
        forces: Forces (N - 1, parts, n) in each step.
        stuck: Mask (N - 1, n) of the joints that stick.

    Returns:
        Matrices (N - 1, parts n + 3 n, 3 n) and contributions (N - 1, parts n + 3 n) of the forces. The matrices act on
        velocities, positions and directions at a sample. The results are, after each of the steps, directions of
        sticking joints and the slip q̇ + lead q̈ - creep s of the others, then the state at the next sample.
    """
    blocks, parts, n = forces.shape
    law = division.law
    lead = law.lead[:, None]
    at = np.flatnonzero(stuck.any(axis=1))
    maps = np.zeros((blocks, (parts + 3) * n, 3 * n + 1))
    reached = maps[:, : parts * n].reshape(blocks, parts, n, -1)
    state = maps[:, parts * n :]
    state[:, :, : 3 * n] = np.eye(3 * n)
    for part in range(parts):
        begin = int(part >= parts // 2)
        block = division.weights[begin : begin + blocks]
        if part in {0, parts // 2}:
            inverse = _law_inverse(block[at, :, 3 * n :], law, stuck[at])
        after = block[:, :, : 2 * n] @ state[:, : 2 * n]
        after[:, :, 2 * n : 3 * n] += block[:, :, 3 * n :] * ~stuck[:, None]
        after[:, :, 3 * n] += np.einsum("bij,bj->bi", block[:, :, 2 * n : 3 * n], forces[:, part])
        residual = lead * state[at, :n] - (1.0 + lead) * after[at] - law.bend[:, None] * state[at, 2 * n :]
        directions = inverse @ residual
        after[at] += block[at, :, 3 * n :] @ directions
        reached[:, part] = after + lead * (after - state[:, :n])
        reached[:, part, :, 2 * n : 3 * n] -= np.diag(law.creep)
        state[at, 2 * n :] = np.where(stuck[at, :, None], directions, state[at, 2 * n :])
        reached[at, part] = np.where(stuck[at, :, None], directions, reached[at, part])
        state[:, n : 2 * n] += division.length / 2 * (state[:, :n] + after)
        state[:, :n] = after
    return maps[:, :, : 3 * n], maps[:, :, 3 * n]
