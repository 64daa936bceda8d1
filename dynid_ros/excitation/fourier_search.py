"""One search for the Fourier motion with the best value of a criterion, from one random start.

The minimization runs in rounds, which this module calls slices. Between two slices a search can pause, or move to
another process.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.fourier_problem import DesignProblem, FourierBasis, MotionConstraints
from dynid_ros.information.criteria import Criterion
from dynid_ros.information.torque_information import InformationSource, MotionWithJerk
from dynid_ros.model import RobotModel
from dynid_ros.progress import advance
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.workspace import Workspace

MAX_ITERATIONS = 30
"""Largest number of iterations of L-BFGS between two updates of the multipliers."""
LBFGS_MEMORY = 20
FIRST_PENALTY = 10.0
PENALTY_GROWTH = 2.0
MAX_EXCESS_WITHOUT_GROWTH = 0.003
"""Largest excess after which the penalty stays; a larger excess makes it grow."""
SAFETY_MARGIN = 0.002
"""Fraction of each limit, or of 0.1 m, that a feasible motion keeps free; motions are not checked at every instant."""
N_CENTRES = (256, 4096)
"""Numbers of sampled poses, the centres of random motions; the second applies if none of the first is allowed."""
MAX_LIMIT_FRACTION = 0.99
"""Largest fraction of the limits that a random motion uses."""
SHRINK_FACTOR = 0.8
MAX_SHRINKS = 16
"""Largest number of times that a random motion is scaled by this factor until it is feasible; 0.8^16 is 1/36."""
MAX_DRAWS = 20
"""Largest number of random motions that are drawn for one start."""
SAMPLES_PER_CYCLE = 24
"""Samples per cycle of the highest harmonic during the search."""
CHECK_SAMPLES_FACTOR = 10
"""Number of samples for the check of a motion, relative to the search."""
SHARPNESS = (2.0, 2.0, 4.0, 4.0, 8.0, 8.0, *[16.0] * 4, *[32.0] * 6)
"""Sharpness of the criterion in each round of the minimization."""
LIMIT_MARGIN = 0.01
"""Fraction of each limit that the search keeps free for violations between samples."""
CLEARANCE_MARGIN_M = 0.01
"""Distance that the search keeps free for violations between samples, m."""
MARGIN_GROWTH = 1.5
CLEARANCE_GROWTH = 2.0
"""Growth of both margins at each restart of a search that ended with a violation between samples."""
MAX_CLEARANCE_OF_MEDIAN = 0.3
"""Largest clearance of two bodies over the median of their distance; some bodies are close by design."""
MAX_RESTARTS = 3
MIN_ROUNDS = 8
"""Number of rounds after which a search is given up if its excess is still above `MAX_STUCK_EXCESS`."""
MAX_STUCK_EXCESS = 0.02
"""Largest excess that later rounds can remove; a larger one is that of a motion caught in an obstacle."""
STEP_FRACTIONS = (0.95, 0.8, 0.5)
"""Fractions of the step from the best motion to an infeasible one that are tried, because they may be feasible."""


class Problem(Protocol):
    """Minimization of a smooth objective f(x) under many inequalities excess(x) <= 0, with a cheap gradient."""

    def evaluate(self, vector: NDArray, sharpness: float) -> tuple[float, NDArray]:
        """Return the objective and the excess, an array of any shape; see `Criterion.smooth` for `sharpness`."""

    def gradient(self, by_excess: NDArray) -> NDArray:
        """Return the gradient of f + sum(by_excess * excess) at the vector that was evaluated last."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """State of the minimization between two rounds.

    Attributes:
        vector: (size,) variables x.
        excess: largest excess at this vector.
        penalty: penalty of the next round.
        multipliers: multipliers of the next round, of the shape of the excess.
    """

    vector: NDArray
    excess: float = np.inf
    penalty: float = FIRST_PENALTY
    multipliers: NDArray | float = 0.0


def next_iterate(problem: Problem, last: Iterate, sharpness: float) -> Iterate:
    """Minimize the augmented Lagrangian by L-BFGS for one round (Nocedal and Wright 2006, section 17.4).

    Args:
        problem: objective and inequalities.
        last: end of the last round; in the first round the vector to start from, which need not be feasible.
        sharpness: sharpness of the objective, see `Criterion.smooth`.

    Raises:
        Cancelled: the computation was ended on request.
    """

    # L(x) = f(x) + penalty / 2 · Σ max(excess + multiplier / penalty, 0)²
    def evaluate_lagrangian(vector: NDArray) -> tuple[float, NDArray]:
        advance(0.0)
        objective, excess = problem.evaluate(vector, sharpness)
        active = np.maximum(excess + last.multipliers / last.penalty, 0.0)
        value = objective + 0.5 * last.penalty * float(np.sum(active**2))
        return value, problem.gradient(last.penalty * active)

    options = {"maxiter": MAX_ITERATIONS, "maxcor": LBFGS_MEMORY}
    vector = minimize(evaluate_lagrangian, last.vector, jac=True, method="L-BFGS-B", options=options).x
    _, excess = problem.evaluate(vector, sharpness)
    multipliers = np.maximum(last.multipliers + last.penalty * excess, 0.0)
    growth = PENALTY_GROWTH if excess.max() > MAX_EXCESS_WITHOUT_GROWTH else 1.0
    return Iterate(vector, float(excess.max()), growth * last.penalty, multipliers)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A motion with its value and its largest violation of a constraint.

    Attributes:
        series: one period of the motion.
        value: value of the criterion, which the search minimizes; infinite if the torques cannot be predicted.
        excess: largest excess over limits and workspace, see `MotionConstraints`; zero or less if the motion keeps to
            them, infinite if the torques cannot be predicted.
        obstacle: constraint with the largest excess and its time, or the reason why no torques can be predicted.
        number: number of the random start, from 0.
    """

    series: FourierSeries
    value: float
    excess: float
    obstacle: str
    number: int = 0

    @property
    def is_feasible(self) -> bool:
        """Whether the motion keeps to limits and workspace, with a small margin."""
        return self.excess <= -SAFETY_MARGIN

    def rank(self) -> tuple[float, float]:
        """Return a key that sorts feasible motions first, by their value, and the others by their excess."""
        return (0.0, self.value) if self.is_feasible else (1.0, self.excess)


@dataclass(frozen=True, eq=False)
class SearchState:
    """State of the search from one start, between two slices.

    Attributes:
        best: best motion so far.
        iterate: state of the minimization; None: the search has ended.
        round_number: number of the next round, from 0.
        restarts: number of times that the search has begun again with larger margins.
    """

    best: Candidate
    iterate: Iterate | None = None
    round_number: int = 0
    restarts: int = 0

    @property
    def has_ended(self) -> bool:
        """Whether there is no further slice."""
        return self.iterate is None


@dataclass(frozen=True, eq=False)
class MotionSearch:
    """Search for the best motion of a robot within limits and workspace.

    Attributes:
        limits: limits of the joints, including torque.
        workspace: bounds of the links.
        source: information matrix that a motion yields, and its nominal torques.
        criterion: function of the information matrix to minimize.
        base_frequency: frequency of the first harmonic, Hz.
        harmonics: number of harmonics.
        known: (p, p) integral of earlier information over time, divided by the duration of this motion; None: zero.
        seed: seed of the random motions.
        held: (n,) positions of the joints that do not move, NaN for the others; None: all move.
    """

    robot: RobotModel
    limits: MotionLimits
    workspace: Workspace
    source: InformationSource
    criterion: Criterion
    base_frequency: float
    harmonics: int
    known: NDArray | None = None
    seed: int = 0
    held: NDArray | None = None

    def candidate(self, number: int) -> Candidate:
        """Draw random motion `number`, which depends on the seed and its number alone.

        Returns:
            The first drawn motion that is feasible, or else the motion with the smallest excess.

        Raises:
            TrajectoryError: no pose is allowed; the message names the obstacle.
        """
        rng = np.random.default_rng([self.seed, number])
        best = self.rate(self.draw(rng), number)
        for _ in range(MAX_DRAWS - 1):
            if best.is_feasible:
                break
            best = min(best, self.rate(self.draw(rng), number), key=Candidate.rank)
        return best

    def draw(self, rng: np.random.Generator) -> FourierSeries:
        """Draw a motion about an allowed pose, as wide as the limits of each joint allow, and shrink it until it fits.

        The result may be infeasible, if even a small motion about this pose is.
        """
        limits = self.limits
        sine, cosine = rng.standard_normal((2, self.robot.n_joints, self.harmonics))
        series = FourierSeries.at_rest(limits.joint_names, self.base_frequency, sine, cosine)
        centre = self._centres[rng.integers(len(self._centres))]
        low, high, speed, acceleration = series.peaks()
        span = limits.upper - limits.lower
        factors = [span / (high - low), limits.velocity / speed, limits.acceleration / acceleration]
        factors.append(limits.jerk / series.peak_jerk())
        series = series.scaled(MAX_LIMIT_FRACTION * np.min(factors, axis=0)).scaled(np.isnan(self._held))
        middle = (limits.upper + limits.lower) / 2
        for _ in range(MAX_SHRINKS):
            low, high, _, _ = series.peaks()
            # Move the centre of the motion towards the middle of the range as far as its width requires.
            free = np.maximum(MAX_LIMIT_FRACTION * span / 2 - (high - low) / 2, 0.0)
            placed = series.shifted(np.clip(centre, middle - free, middle + free) - (low + high) / 2)
            if self._fits(placed):
                break
            series = series.scaled(SHRINK_FACTOR)
        return placed

    def run_slice(self, state: "SearchState | Candidate | int") -> SearchState:
        """Run one slice of a search: draw its start, or run one round of the minimization.

        The result depends on the arguments alone, so a slice gives the same result in any process.

        Args:
            state: state after the last slice; or a motion to start from, or the number of a motion to draw.

        Raises:
            Cancelled: the computation was ended on request.
            TrajectoryError: no pose is allowed.
        """
        if not isinstance(state, SearchState):
            start = state if isinstance(state, Candidate) else self.candidate(state)
            return SearchState(start, Iterate(self._basis.vector(start.series)))
        assert state.iterate is not None
        clearance = CLEARANCE_GROWTH**state.restarts * CLEARANCE_MARGIN_M
        constraints = MotionConstraints(
            self.limits,
            self.workspace,
            margin=MARGIN_GROWTH**state.restarts * LIMIT_MARGIN,
            clearance=np.minimum(clearance, MAX_CLEARANCE_OF_MEDIAN * self._median_distances),
        )
        problem = DesignProblem(self._basis, self.source, self.criterion, constraints, self.known)
        # A restart begins near an optimum: one round with the final sharpness suffices.
        schedule = SHARPNESS[-1:] if state.restarts else SHARPNESS
        iterate = next_iterate(problem, state.iterate, schedule[state.round_number])
        reached = self.rate(self._basis.series(iterate.vector), state.best.number)
        step = reached if reached.is_feasible else self._shorten_step(state.best, reached)
        best = min(state.best, step, key=Candidate.rank)
        if state.round_number >= MIN_ROUNDS and iterate.excess > MAX_STUCK_EXCESS:
            return SearchState(best)
        if state.round_number + 1 < len(schedule):
            return SearchState(best, iterate, state.round_number + 1, state.restarts)
        if reached.is_feasible or state.restarts == MAX_RESTARTS:
            return SearchState(best)
        return SearchState(best, Iterate(iterate.vector), restarts=state.restarts + 1)

    def _shorten_step(self, best: Candidate, reached: Candidate) -> Candidate:
        """Return the feasible motion nearest to `reached` on the straight line from `best`, or `reached`."""
        start, end = (self._basis.vector(candidate.series) for candidate in (best, reached))
        for fraction in STEP_FRACTIONS if best.is_feasible else ():
            between = self.rate(self._basis.series(start + fraction * (end - start)), reached.number)
            if between.is_feasible:
                return between
        return reached

    def rate(self, series: FourierSeries, number: int = 0) -> Candidate:
        """Compute the value of a motion, and its excess also between the samples of the search."""
        count = CHECK_SAMPLES_FACTOR * self._n_samples
        times = np.arange(count) / (count * self.base_frequency)
        try:
            excess = self.excess(series, times)
            value = self._problem.value(self._basis.vector(series))
        except TrajectoryError as error:
            return Candidate(series, np.inf, np.inf, str(error), number)
        k, c = np.unravel_index(np.argmax(excess), excess.shape)
        obstacle = f"{self._constraints.names[c]} at {times[k]:.2f} s"
        return Candidate(series, value, float(excess[k, c]), obstacle, number)

    def excess(self, series: FourierSeries, times: NDArray) -> NDArray:
        """Compute the excess (N, C) over all constraints at times (N,), which divide a period into equal parts.

        Raises:
            TrajectoryError: the torques cannot be predicted.
        """
        motion = MotionWithJerk(*series.at(times), series.jerk(times))
        return self._constraints.excess(motion, self.source.torque(motion))

    def information(self, series: FourierSeries) -> NDArray:
        """Return the mean information (p, p) over the samples of a motion, plus the known information."""
        return self._problem.information(self._basis.vector(series))

    def __getstate__(self) -> dict[str, object]:
        """Return the settings alone: a small object to send to workers, without computed properties."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _fits(self, series: FourierSeries) -> bool:
        try:
            return bool(self.excess(series, series.times()[:-1]).max() <= MAX_LIMIT_FRACTION - 1)
        except TrajectoryError:
            return False

    @property
    def _held(self) -> NDArray:
        return np.full(self.robot.n_joints, np.nan) if self.held is None else self.held

    @property
    def _n_samples(self) -> int:
        return SAMPLES_PER_CYCLE * self.harmonics

    @cached_property
    def _basis(self) -> FourierBasis:
        return FourierBasis(self.limits, self.base_frequency, self.harmonics, self._n_samples, self.held)

    @cached_property
    def _constraints(self) -> MotionConstraints:
        return MotionConstraints(self.limits, self.workspace)

    @cached_property
    def _problem(self) -> DesignProblem:
        return DesignProblem(self._basis, self.source, self.criterion, self._constraints, self.known)

    @cached_property
    def _centres(self) -> NDArray:
        """Allowed poses (M, n), the centres of random motions."""
        for count in N_CENTRES:
            poses = np.where(np.isnan(self._held), self.limits.poses(count), self._held)
            excess = self._constraints.excess_at_rest(poses, self.robot.gravity_torque(poses))
            allowed = np.all(excess <= 0, axis=1)
            if allowed.any():
                return poses[allowed]
        raise TrajectoryError(f"none of {count} poses is allowed: {self._constraints.describe_obstacle(excess)}")

    @cached_property
    def _median_distances(self) -> NDArray:
        """Median (K,) of each distance over the allowed poses, m."""
        return np.median(self.workspace.distances(self._centres).room, axis=0)
