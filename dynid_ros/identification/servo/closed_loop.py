"""Output error of position servos: closed loops simulated from their commands, for all joints and parameters at once.

The equation of motion of each joint is divided by the stiffness of its position loop,

    inertia(q) q̈ + viscous q̇ + coulomb sign(q̇) + loads(q, q̇, q̈ of the others) = q_commanded(t − delay) − q.

The joint's own q, q̇ and q̈ are simulated. Poses and the motion of other joints, where they matter to second order
only, are taken from the smoothed measurements. A step is the implicit midpoint rule. Dry friction in it takes the value
that stops the joint, up to its limit (Moreau 1988, "Unilateral contact and dry friction in finite freedom dynamics"),
so a joint sticks as long as it should. Derivatives are differences of simulations that run in parallel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import N_TIME_BLOCKS
from dynid_ros.estimation.least_squares import minimize, search
from dynid_ros.identification.servo.servo_runs import ServoRun
from dynid_ros.model.arrays import blocks

DELAY = "delay"
VISCOUS = "viscous"
COULOMB = "coulomb"
DERIVATIVE = "derivative"
STEP_RANGE_S = (5e-4, 4e-3)
"""Shortest and longest step of a simulation, s."""
STEP_PER_TIME_CONSTANT = 0.03
"""Step times the natural frequency of the fastest loop."""
CHUNK_STEPS = 1000
"""Steps whose inputs are in memory at once: few enough for the cache of the processor."""
DIFFERENCE_FRACTION = 1e-6
"""Change of a parameter for its derivative, as a fraction of the RMS position error that it causes.

Effects of links nearly cancel in a joint that no weight loads: a derivative that is off by 1e-3 hides their sum.
"""
DELAY_DIFFERENCE_S = 1e-7
"""Change of the delay for its derivative, s."""
MIN_RMS = 1e-12
"""Smallest RMS residual of a likelihood, rad or m: simulated positions may agree exactly."""


@dataclass(frozen=True)
class JointLayout:
    """Parameters of a joint: delay, viscous, coulomb, derivative where it is sought, and `columns`."""

    columns: tuple[str, ...]
    derivative: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        return (DELAY, VISCOUS, COULOMB, *((DERIVATIVE,) if self.derivative else ()), *self.columns)

    @property
    def first(self) -> int:
        """Index of the first column."""
        return 3 + self.derivative


@dataclass(frozen=True, eq=False)
class Normal:
    """Residuals of a joint against its parameters, by block of time.

    Attributes:
        matrices: (B, p, p) products of derivatives.
        sides: (B, p) their products with the residuals.
        squares: (B,) of the residuals.
        counts: (B,) samples.
    """

    matrices: NDArray
    sides: NDArray
    squares: NDArray
    counts: NDArray

    @property
    def rms(self) -> float:
        """RMS residual, rad or m."""
        return float(np.sqrt(self.squares.sum() / self.counts.sum()))

    @property
    def cost(self) -> float:
        """Negative log-likelihood of white residuals whose variance is estimated too."""
        return float(self.counts.sum() * np.log(max(self.rms, MIN_RMS)))

    def equations(self) -> tuple[NDArray, NDArray]:
        """Return the information matrix (p, p) and the negative gradient (p,) of the cost."""
        variance = max(self.rms, MIN_RMS) ** 2
        return self.matrices.sum(axis=0) / variance, self.sides.sum(axis=0) / variance


class ClosedLoops:
    """Closed loops of all joints in some runs.

    Args:
        runs: stretches of recordings.
        layouts: of the joints.
        step: of the simulation, s.
    """

    def __init__(self, runs: Sequence[ServoRun], layouts: Sequence[JointLayout], step: float) -> None:
        self.runs = runs
        self.layouts = layouts
        self.step = step
        self._grids = [_Grid.of(run, step) for run in runs]
        total = sum(len(run.time) for run in runs)
        done = np.cumsum([0, *(len(run.time) for run in runs)])
        self._blocks = [(np.arange(a, b) * N_TIME_BLOCKS // total).astype(int) for a, b in pairwise(done)]

    def normals(self, values: Sequence[NDArray | None], steps: Sequence[NDArray]) -> list[Normal]:
        """Return the residuals and derivatives of all joints.

        Args:
            values: (p,) parameters of each joint; None: the joint is left out, and has no samples.
            steps: (p,) changes of the parameters for the derivatives; zero: no derivative.
        """
        sizes = [len(layout.names) for layout in self.layouts]
        found = [
            Normal(np.zeros((N_TIME_BLOCKS, p, p)), np.zeros((N_TIME_BLOCKS, p)), *np.zeros((2, N_TIME_BLOCKS)))
            for p in sizes
        ]
        for run, grid, block in zip(self.runs, self._grids, self._blocks, strict=True):
            simulated = self.simulate(grid, values, steps)
            at = 0
            for j, (normal, value, step) in enumerate(zip(found, values, steps, strict=True)):
                if value is None:
                    continue
                own = simulated[:, at : at + len(step) + 1]
                at += len(step) + 1
                residual = run.position[:, j] - own[:, 0]
                jacobian = (own[:, 1:] - own[:, :1]) / np.where(step == 0, 1.0, step)
                for b in np.unique(block):
                    rows = block == b
                    normal.matrices[b] += jacobian[rows].T @ jacobian[rows]
                    normal.sides[b] += jacobian[rows].T @ residual[rows]
                    normal.squares[b] += residual[rows] @ residual[rows]
                    normal.counts[b] += np.count_nonzero(rows)
        return found

    def predict(self, values: Sequence[NDArray]) -> list[NDArray]:
        """Return the positions (M, n) at the samples of each run."""
        steps = [np.zeros(0)] * len(values)
        return [self.simulate(grid, values, steps) for grid in self._grids]

    def simulate(self, grid: _Grid, values: Sequence[NDArray | None], steps: Sequence[NDArray]) -> NDArray:
        """Return positions (M, lanes) at the samples: each joint with its values, and with each of them changed."""
        lanes = [
            _lanes(len(layout.names), own, step) for layout, own, step in zip(self.layouts, values, steps, strict=True)
        ]
        run = grid.run
        h = grid.step
        count = len(grid.middle)
        joints = np.repeat(np.arange(len(lanes)), [len(of) for of in lanes])
        viscous, coulomb = (np.concatenate([of[:, k] for of in lanes]) for k in (1, 2))
        path = np.empty((count + 1, len(joints)))
        path[0] = run.motion.position[0, joints]
        travel = h / 2 * run.motion.velocity[0, joints]
        negative = np.zeros(len(joints), dtype=bool)
        for start in range(0, count, CHUNK_STEPS):
            part = slice(start, min(start + CHUNK_STEPS, count))
            inputs, inertia = self._inputs(grid, part, lanes)
            negative |= ~(inertia > 0).all(axis=0)
            inertia[:, negative] = 1.0
            inertia -= h**2 / 12  # so much of it the mean of the position over a step feigns
            damped = viscous / 2 + h / 4
            driven = inputs, 2 / h * (inertia / h - damped), h / 2 / (inertia / h + damped)
            travel = _march(travel, driven, coulomb, path[part.start : part.stop + 1])
        path[:, negative] = np.nan
        place = (run.time - run.grid[0]) / h
        index = np.clip(place.astype(int), 0, count - 1)
        share = (place - index)[:, None]
        found = np.empty((len(place), len(joints)))
        for rows in blocks(len(place)):
            before, after = path[index[rows]], path[index[rows] + 1]
            found[rows] = before + share[rows] * (after - before)
        return found

    def _inputs(self, grid: _Grid, part: slice, lanes: Sequence[NDArray]) -> tuple[NDArray, NDArray]:
        """Return the drive minus the load of each lane, rad or m, and its inertia, s², (K, lanes) each."""
        h = grid.step
        edges = np.append(grid.middle[part] - h / 2, grid.middle[part.stop - 1] + h / 2)
        driven = []
        inertias = []
        for j, of in enumerate(lanes):
            if not len(of):
                continue
            layout = self.layouts[j]
            told = grid.run.commands[j]
            own, rest = (columns[part] for columns in grid.columns[j])
            coefficients = of[:, layout.first :].T
            inputs = -rest @ coefficients
            delays, which = np.unique(of[:, 0], return_inverse=True)
            mean = np.column_stack([np.diff(told.integral(edges - delay)) / h for delay in delays])
            inputs += mean[:, which.ravel()]
            if layout.derivative:
                rise = np.column_stack([np.diff(told.at(edges - delay)) / h for delay in delays])
                inputs += rise[:, which.ravel()] * of[:, 3]
            driven.append(inputs)
            inertias.append(own @ coefficients)
        return np.hstack(driven), np.hstack(inertias)


@dataclass(frozen=True, eq=False)
class _Grid:
    """Steps of a run's simulation: (K,) middles and length, s, and columns of own acceleration and rest there."""

    run: ServoRun
    middle: NDArray
    step: float
    columns: list[tuple[NDArray, NDArray]]

    @classmethod
    def of(cls, run: ServoRun, step: float) -> _Grid:
        """Cut a run into steps of about that length."""
        duration = run.grid[-1] - run.grid[0]
        count = int(np.ceil(duration / step))
        middle = run.grid[0] + duration / count * (np.arange(count) + 0.5)
        columns = [
            (CubicSpline(run.grid, own.inertia)(middle), CubicSpline(run.grid, own.rest)(middle)) for own in run.columns
        ]
        return cls(run, middle, duration / count, columns)


def _lanes(size: int, values: NDArray | None, steps: NDArray) -> NDArray:
    """Return the parameters (L, size) that are simulated for one joint: `values`, and with each of them changed."""
    if values is None:
        return np.empty((0, size))
    return np.vstack([values, values + np.diag(steps)]) if len(steps) else values[None]


def _march(travel: NDArray, inputs: tuple[NDArray, NDArray, NDArray], coulomb: NDArray, path: NDArray) -> NDArray:
    """Write positions (K, lanes) after the first to `path` (K + 1, lanes), step by step.

    Args:
        travel: velocity (lanes,) at the first position times half a step.
        inputs: drive, factor of the travel, and step's response, (K, lanes) each.
        coulomb: limit (lanes,) of dry friction.
        path: positions, of which the first is given.

    Returns:
        The travel at the last position.
    """
    next_travel = np.empty_like(travel)
    stuck = np.empty_like(travel)
    low = -coulomb
    multiply = np.multiply
    add = np.add
    subtract = np.subtract
    least = np.minimum
    most = np.maximum
    position = path[0]
    for drive, before, response, next_position in zip(*inputs, path[1:], strict=True):
        multiply(travel, before, next_travel)
        add(next_travel, drive, next_travel)
        subtract(next_travel, position, next_travel)
        least(next_travel, coulomb, out=stuck)
        most(stuck, low, out=stuck)
        subtract(next_travel, stuck, next_travel)
        multiply(next_travel, response, next_travel)
        add(travel, next_travel, travel)
        add(position, travel, next_position)
        next_travel, travel = travel, next_travel
        position = next_position
    return travel


DECREASE_TOLERANCE = 1e-3
"""Predicted decrease of the negative log-likelihood at which a search ends: 0.04 standard errors."""


def output_error(
    loops: ClosedLoops, start: Sequence[NDArray], steps: Sequence[NDArray]
) -> tuple[list[NDArray], list[Normal]]:
    """Return the values (p,) of all joints that predict their positions best, and the residuals.

    Raises:
        IdentificationError: a simulation from the start does not stay finite.
    """
    normals = loops.normals(start, steps)
    if not all(np.isfinite(normal.cost) for normal in normals):
        raise IdentificationError(
            "the closed loop of the first estimate is unstable; record faster motion, at a higher rate"
        )
    searches = []
    for values, normal in zip(start, normals, strict=True):
        lower = np.full(len(values), -np.inf)
        lower[:3] = 0.0
        searches.append(
            search(
                values,
                normal,
                normal.cost,
                lower=lower,
                tolerance=DECREASE_TOLERANCE,
                normal_equations=lambda _, residuals: residuals.equations(),
            )
        )

    def evaluate(trials: Sequence[NDArray | None]) -> list[tuple[Normal, float] | None]:
        normals = loops.normals(trials, steps)
        return [None if trial is None else (one, one.cost) for trial, one in zip(trials, normals, strict=True)]

    minima = minimize(searches, evaluate)
    return [minimum.values for minimum in minima], [minimum.state for minimum in minima]
