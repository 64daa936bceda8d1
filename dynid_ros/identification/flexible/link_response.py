"""Where links behind springs go while their motors move as recorded (Lightcap and Banks 2007, eq. 10).

The motors' motion being known, the links follow a differential equation. It is not integrated step by step: its
derivatives are differences over seven samples, which makes it one banded system of equations for all samples. Newton's
method solves it from the measured motion in a few steps, and the derivatives by every parameter cost one more solution
with the same factors. Thus all dynamics are evaluated for all samples at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from operator import mul
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.linalg.lapack import dgbtrf, dgbtrs

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.flexible_parameters import JointParameters
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters
from dynid_ros.model.regressor import DifferentiableRegressor
from dynid_ros.progress import advance
from dynid_ros.signals.derivatives import STENCIL
from dynid_ros.signals.spectra import derivative_weights

# Derivatives in time as banded matrices: seven samples, of sixth order, as `signals.motion.central_differences`.


class Differences:
    """Weights of first and second derivative of N uniform samples.

    Attributes:
        first: (N,) first sample that the derivatives at each sample take.
        weights: (3, N, 7) of value, derivative, 1/s, and second derivative, 1/s², on seven samples from `first` on.
    """

    def __init__(self, n_samples: int, step: float) -> None:
        half = STENCIL // 2
        self.first = np.clip(np.arange(n_samples) - half, 0, n_samples - STENCIL)
        place = np.arange(n_samples) - self.first
        table = np.array(
            [[derivative_weights(STENCIL, STENCIL - 1, order, step, pos) for pos in range(STENCIL)] for order in (1, 2)]
        )
        self.weights = np.concatenate([np.eye(STENCIL)[None], table])[:, place]

    def of(self, values: NDArray, order: int) -> NDArray:
        """Derivative (N, ...) of values (N, ...)."""
        samples = values[self.first[:, None] + np.arange(STENCIL)]
        return np.einsum("ks,ks...->k...", self.weights[order], samples)


# Which way dry friction acts on links behind springs, sticking included.
# Newton's method on all samples at once does not find out when links stick: a direction is not a smooth function. A
# march through time does: each of its short steps asks which directions agree with the velocities that they lead to
# (Moreau's time stepping; Acary and Brogliato 2008, chapter 10). It is of second order only, so nothing but the
# directions is taken from it.


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
                sums[(k + half) // self.parts] += change
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


ITERATIONS, FRICTION_ITERATIONS = 15, 4
"""Iterations of Newton's method; after some, links that nearly stick keep their direction of friction."""
CONVERGED, SAME_DIRECTIONS = 1e-3, 1e-3
"""Steps of Newton's method, in parts of the largest deflection: the last one, which leaves some square of it; and one
after which friction's directions are those found before."""
LOST = 100.0
"""rad or m between motor and link: so far no spring winds up."""
QUICK_STEP, EXACT_STEP = 1e-3, 2.5e-4
"""Steps of the march that finds friction's directions, s; the second leaves some 1e-6 rad."""


@dataclass(frozen=True, eq=False)
class LinkMotion:
    """Motion of the links, (N, n) each, and its derivatives by the parameters.

    Attributes:
        position, velocity: rad or m, per s.
        derive: computes `by_parameters`, which costs more than the motion and steps that are refused do not need.
    """

    position: NDArray
    velocity: NDArray
    derive: Callable[[], NDArray]

    @cached_property
    def by_parameters(self) -> NDArray:
        """(N, n, p) derivatives of the positions.

        By base parameters of links, Coulomb and viscous friction, values of the springs, then position and velocity at
        the start, and the corrections of each motor.
        """
        return self.derive()


class LinkResponse:
    """The links' motion behind springs, for one stretch of the motors' motion.

    Args:
        robot: kinematics and gravity.
        base: base parameters of the links alone.
        motor: (N, n) positions of the motors, uniformly sampled.
        step: of the samples, s.
        tones: (N, t) functions of time by which the motion of each motor may be corrected.

    Attributes:
        march_step: with which the directions of dry friction are found, s.
    """

    def __init__(self, robot: RobotModel, base: BaseParameters, motor: NDArray, step: float, tones: NDArray) -> None:
        self._recorded, self._step, self._tones = motor, step, tones
        self._n_samples, self._n = motor.shape
        self._dynamics = DifferentiableRegressor(robot.chain, robot.gravity, base.columns)
        self._differences = Differences(len(motor), step)
        self._names = robot.joint_names
        self.march_step = QUICK_STEP

    def solve(
        self, parameters: JointParameters, start: NDArray, guess: NDArray, corrections: NDArray | None = None
    ) -> LinkMotion:
        """Motion for these parameters, by Newton's method.

        Args:
            parameters: of links, friction and springs.
            start: (2, n) position and velocity at the first sample.
            guess: (N, n) positions to start from, measured ones or those of parameters close by.
            corrections: (t, n) of the motors' motion, by its tones; None: none.

        Raises:
            IdentificationError: no motion was found that obeys the equations.
        """
        motor = self._recorded if corrections is None else self._recorded + self._tones @ corrections
        q = guess.copy()
        sense, moved, marched = np.zeros_like(q), np.inf, None
        for iteration in range(ITERATIONS):
            advance(0.0)  # a few of these take seconds: it must be possible to end here
            qd, qdd = (self._differences.of(q, order) for order in (1, 2))
            smooth, partials, rows = self._equations(q, qd, qdd, motor, parameters)
            by_q, by_qd, by_qdd = partials
            if iteration < FRICTION_ITERATIONS and moved > SAME_DIRECTIONS and parameters.coulomb.any():
                by = zip(partials, (q, qd, qdd), strict=True)
                force = sum(np.einsum("kij,kj->ki", matrix, x) for matrix, x in by) - smooth
                linear = LinearMotion(by_qdd, by_qd, by_q, force, parameters.coulomb, self._step)
                marched = march(linear, start, self.march_step)
                sense = marched.averaged(marched.used)
            residual = self._with_start(
                smooth + parameters.coulomb * sense, np.stack([q[0] - start[0], qd[0] - start[1]])
            )
            step = self._solution(self._factors(partials), residual[:, :, None])[:, :, 0]
            q = q - step
            deflection = motor - q
            if not np.abs(deflection).max() < LOST:
                break
            moved = np.abs(step).max() / max(np.abs(deflection).max(), 1e-3)
            if moved < CONVERGED:
                velocity = self._differences.of(q, 1)
                known = velocity, sense, marched, partials, rows, deflection, parameters
                return LinkMotion(q, velocity, partial(self._derivatives, *known))
        raise IdentificationError(
            f"no motion of the links behind the springs of {', '.join(self._names)} was found for the recorded motion "
            "of the motors: check the units and signs of link angles and torques; a spring whose resonance is above a "
            "third of the recorded rate is to be taken as rigid"
        )

    def _derivatives(  # noqa: PLR0917
        self,
        qd: NDArray,
        sense: NDArray,
        marched: March | None,
        partials: NDArray,
        rows: NDArray,
        deflection: NDArray,
        parameters: JointParameters,
    ) -> NDArray:
        """Derivatives (N, n, p) of the positions by the parameters, where directions of friction follow them."""
        by, by_start = self._by_parameters(rows, deflection, qd, sense, parameters)
        if marched is not None:
            by += parameters.coulomb[:, None] * marched.derivatives(-by, -by_start)
        return self._solution(self._factors(partials), -self._with_start(by, by_start))

    def _equations(
        self, q: NDArray, qd: NDArray, qdd: NDArray, motor: NDArray, parameters: JointParameters
    ) -> tuple[NDArray, NDArray, NDArray]:
        """Residuals (N, n) without dry friction, their partial derivatives (3, N, n, n), the regressor (N, n, r)."""
        n = self._n
        own = np.arange(n)
        matrix = self._dynamics.matrix(*(np.tile(array, (n, 1)) for array in (q, qd, qdd)))
        weights = np.zeros((n, matrix.shape[1], n, self._n_samples))
        weights[own, :, own] = parameters.links[:, None]
        by_motion = self._dynamics.gradient(weights.reshape(matrix.shape))
        # Equation i, sample k, joint j.
        partials = np.stack(by_motion).reshape(3, n, self._n_samples, n).transpose(0, 2, 1, 3).copy()
        rows = matrix[..., : self._n_samples].transpose(2, 0, 1)
        deflection = motor - q
        partials[0][:, own, own] += parameters.spring_tangent(deflection)
        partials[1][:, own, own] += parameters.viscous
        residual = rows @ parameters.links + parameters.viscous * qd - parameters.spring_torque(deflection)
        return residual, partials, rows

    def _with_start(self, equations: NDArray, start: NDArray) -> NDArray:
        """Equations (N, n, ...) of all samples but first and last, behind those (2, n, ...) of the start.

        One of each end gives way: of the six solutions that differences over seven samples have, four need a
        condition at the start, the two true ones among them, and two need one at the end. With both from the start the
        equations would be singular.
        """
        return np.concatenate([start, equations[1:-1]])

    def _by_parameters(
        self, rows: NDArray, deflection: NDArray, qd: NDArray, sense: NDArray, parameters: JointParameters
    ) -> tuple[NDArray, NDArray]:
        """Derivatives (N, n, p) of the residuals by the parameters, (2, n, p) of those of the start, motion fixed."""
        n, own = self._n, np.arange(self._n)
        diagonal = np.zeros((2, self._n_samples, n, n))
        diagonal[0][:, own, own], diagonal[1][:, own, own] = sense, qd
        springs = -parameters.spring_columns(deflection)
        tangent = parameters.spring_tangent(deflection)
        by_motor = np.zeros((self._n_samples, n, n, self._tones.shape[1]))
        by_motor[:, own, own] = -tangent[:, :, None] * self._tones[:, None, :]
        tones = by_motor.reshape(self._n_samples, n, -1)
        found = np.concatenate([rows, *diagonal, springs, np.zeros((self._n_samples, n, 2 * n)), tones], axis=2)
        start = np.zeros((2, n, found.shape[2]))
        first = found.shape[2] - tones.shape[2] - 2 * n
        start[0, own, first + own], start[1, own, first + n + own] = -1.0, -1.0
        return found, start

    def _factors(self, partials: NDArray) -> tuple[NDArray, NDArray, int]:
        """Banded LU factors of the derivatives of all residuals by all positions."""
        n, size = self._n, self._n * self._n_samples
        width = STENCIL * n - 1
        banded = np.zeros((3 * width + 1, size))
        weights, first = self._differences.weights, self._differences.first
        values = np.einsum("dkij,dks->kisj", partials, weights)
        # Start: position by the first sample alone, velocity by its derivative.
        start = np.einsum("ij,ds->disj", np.eye(n), weights[:2, 0])
        values = self._with_start(values, start)
        first = np.concatenate([first[:1], first[:1], first[1:-1]])
        row = n * np.arange(self._n_samples)[:, None, None, None] + np.arange(n)[:, None, None]
        column = n * (first[:, None, None, None] + np.arange(STENCIL)[:, None]) + np.arange(n)
        row, column = np.broadcast_arrays(row, column)
        banded[2 * width + row - column, column] = values
        factors, pivots, info = dgbtrf(banded, width, width, overwrite_ab=True)
        if info:
            raise IdentificationError(
                f"the equations of the links of {', '.join(self._names)} are singular: a link without inertia, or a "
                "spring far too stiff for the rate of the recording"
            )
        return factors, pivots, width

    def _solution(self, factors: tuple[NDArray, NDArray, int], right: NDArray) -> NDArray:
        """Solution (N, n, p) for right-hand sides (N, n, p)."""
        banded, pivots, width = factors
        flat = right.reshape(self._n * self._n_samples, -1)
        solution, _ = dgbtrs(banded, width, width, flat, pivots)
        return solution.reshape(right.shape)
