"""One search for the best Fourier motion, from one random start."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.fourier_problem import DesignProblem, FourierBasis, MotionRoom
from dynid_ros.information.criteria import Criterion
from dynid_ros.information.torque_information import InformationSource, MotionWithJerk
from dynid_ros.model import RobotModel
from dynid_ros.progress import advance
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.workspace import Workspace

# Minimisation under many inequalities, for problems with a cheap gradient.


ITERATIONS = 30
"""Iterations of the quasi-Newton method between two updates of the multipliers."""
MEMORY = 20
FIRST_PENALTY = 10.0
PENALTY_GROWTH = 2.0
ENOUGH = 0.003
"""Excess above which the penalty grows."""


class Problem(Protocol):
    """A smooth objective and inequalities excess <= 0."""

    def evaluate(self, vector: NDArray, sharpness: float) -> tuple[float, NDArray]:
        """Objective, and excess of any shape."""

    def gradient(self, by_excess: NDArray) -> NDArray:
        """Gradient of the last objective plus sum(by_excess * excess)."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """Where the minimisation is after a round.

    Attributes:
        vector: the variables.
        excess: largest.
        penalty: of the next round.
        multipliers: of the next round, of the shape of the excess.
    """

    vector: NDArray
    excess: float = np.inf
    penalty: float = FIRST_PENALTY
    multipliers: NDArray | float = 0.0


@dataclass(frozen=True, eq=False)
class _Lagrangian:
    """Value and gradient of the augmented Lagrangian."""

    problem: Problem
    sharpness: float
    begun: Iterate

    def __call__(self, vector: NDArray) -> tuple[float, NDArray]:
        advance(0.0)
        penalty = self.begun.penalty
        objective, excess = self.problem.evaluate(vector, self.sharpness)
        active = np.maximum(excess + self.begun.multipliers / penalty, 0.0)
        value = objective + 0.5 * penalty * float(np.sum(active**2))
        return value, self.problem.gradient(penalty * active)


def next_round(problem: Problem, begun: Iterate, sharpness: float) -> Iterate:
    """One round by augmented Lagrangian (Nocedal and Wright 2006, section 17.4) and L-BFGS.

    Args:
        problem: what to minimise.
        begun: end of the round before; of the first one the vector to start from, which need not be feasible.
        sharpness: of the objective.

    Raises:
        Cancelled: whoever watches the computation wants it to end.
    """
    options = {"maxiter": ITERATIONS, "maxcor": MEMORY}
    lagrangian = _Lagrangian(problem, sharpness, begun)
    vector = minimize(lagrangian, begun.vector, jac=True, method="L-BFGS-B", options=options).x
    _, excess = problem.evaluate(vector, sharpness)
    multipliers = np.maximum(begun.multipliers + begun.penalty * excess, 0.0)
    growth = PENALTY_GROWTH if excess.max() > ENOUGH else 1.0
    return Iterate(vector, float(excess.max()), growth * begun.penalty, multipliers)


# Random Fourier motions that keep to all limits.


POSES = (256, 4096)
"""Poses looked at (powers of two), the second number where the first has none that is allowed."""
PART = 0.99
"""Part of the limits that a motion takes at most."""
SHRINK = 0.8
SHRINKS = 16
"""How often a motion that leaves its room is made smaller, down to a thirtieth."""


class RandomFourier:
    """Draws motions, each joint's as wide as its limits allow, and makes smaller what leaves the room.

    Args:
        robot: the arm.
        limits: what the joints may do.
        room: the same limits, those of torque and the workspace.
        source: foresees torques.
        base_frequency: Hz.
        harmonics: at least 2.
        held: (n,) positions of the joints that stand still, NaN for the others; None: all move.

    Attributes:
        centres: (M, n) poses that are allowed.

    Raises:
        TrajectoryError: no pose is allowed; says what stands in the way.
    """

    def __init__(
        self,
        robot: RobotModel,
        limits: MotionLimits,
        room: MotionRoom,
        source: InformationSource,
        *,
        base_frequency: float,
        harmonics: int,
        held: NDArray | None = None,
    ) -> None:
        self._robot, self._limits, self._room, self._source = robot, limits, room, source
        self._base_frequency, self._harmonics = base_frequency, harmonics
        self._held = np.full(robot.n_joints, np.nan) if held is None else held
        self.centres = self._allowed_poses()

    def draw(self, rng: np.random.Generator) -> FourierSeries:
        """A motion about a pose that is allowed; it may still leave its room if even a small one does so there."""
        sine, cosine = rng.standard_normal((2, self._robot.n_joints, self._harmonics))
        series = FourierSeries.at_rest(self._limits.joint_names, self._base_frequency, sine, cosine)
        centre = self.centres[rng.integers(len(self.centres))]
        low, high, speed, most = series.largest()
        limits = self._limits
        bounds = [(limits.upper - limits.lower) / (high - low), limits.velocity / speed, limits.acceleration / most]
        series = series.scaled(PART * np.min([*bounds, limits.jerk / series.largest_jerk()], axis=0))
        series = series.scaled(np.isnan(self._held))
        middle, reach = (limits.upper + limits.lower) / 2, PART * (limits.upper - limits.lower) / 2
        for _ in range(SHRINKS):
            low, high, _, _ = series.largest()
            room = np.maximum(reach - (high - low) / 2, 0.0)
            placed = series.shifted(np.clip(centre, middle - room, middle + room) - (low + high) / 2)
            if self._fits(placed):
                break
            series = series.scaled(SHRINK)
        return placed

    def _fits(self, series: FourierSeries) -> bool:
        try:
            return bool(excess(self._source, self._room, series).max() <= PART - 1)
        except TrajectoryError:
            return False

    def _allowed_poses(self) -> NDArray:
        for count in POSES:
            poses = np.where(np.isnan(self._held), self._limits.poses(count), self._held)
            excess = self._room.excess_at_rest(poses, self._robot.gravity_torque(poses))
            allowed = np.all(excess <= 0, axis=1)
            if allowed.any():
                return poses[allowed]
        raise TrajectoryError(f"none of {count} poses is allowed: {self._room.obstacle(excess)}")


def excess(source: InformationSource, room: MotionRoom, series: FourierSeries, times: NDArray | None = None) -> NDArray:
    """Excess (N, C) of a series at times (N,), evenly over a period; None: those of its samples.

    Raises:
        TrajectoryError: the source cannot foresee the torques.
    """
    times = series.times()[:-1] if times is None else times
    motion = MotionWithJerk(*series.at(times), series.jerk(times))
    return room.excess(motion, source.torque(motion))


SAMPLES_PER_CYCLE = 24
"""Samples per cycle of the highest harmonic, in the search."""
DENSER = 10
"""How many times more samples a motion is checked at."""
ON_THE_WAY = (0.95, 0.8, 0.5)
"""Parts of the way to a motion that exceeds limits at which there may be one that does not: there is an answer soon."""
SHARPNESS = (2.0, 2.0, 4.0, 4.0, 8.0, 8.0, *[16.0] * 4, *[32.0] * 6)
MARGIN, CLEARANCE = 0.01, 0.01
"""Part of each limit, and distance (m), kept free in the search for what happens between samples."""
SAFE = 0.002
"""Part of each limit, or of 0.1 m, that is left even there: motions are not looked at everywhere."""
PART_OF_ROOM = 0.3
"""Largest clearance, in parts of the median distance of two things: some are close by design."""
MENDING = 3
"""How often a motion that still exceeds a limit between samples is sought once more with more of it kept free."""
PATIENCE, STUCK = 8, 0.02
"""After so many rounds a motion that still exceeds limits by so much goes through something that it cannot leave."""
DRAWS = 20
"""Random motions drawn for a start, at most."""


@dataclass(frozen=True, eq=False)
class MotionSearch:
    """What is sought: the best motion of a robot within limits and workspace.

    Attributes:
        robot: the arm.
        limits: what the joints may do, of torque too.
        workspace: where the links may be.
        source: what a motion excites.
        criterion: how it is rated.
        base_frequency: Hz.
        harmonics: of the base frequency.
        known: (p, p) information there is already, as a mean over this motion's samples; None: none.
        seed: of the random numbers.
        held: (n,) positions of the joints that stand still, NaN for the others; None: all move.
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

    def candidate(self, number: int) -> "Candidate":
        """Random motion `number`, which depends on the seed and its number alone.

        Of many that are drawn the first that keeps to limits and workspace, or else the one that exceeds them least.

        Raises:
            TrajectoryError: no pose is allowed; says what stands in the way.
        """
        rng = np.random.default_rng([self.seed, number])
        best: Candidate | None = None
        for _ in range(DRAWS):
            drawn = self.checked(self._random.draw(rng), number)
            best = drawn if best is None else min(best, drawn, key=Candidate.rank)
            if best.feasible:
                break
        return best  # type: ignore[return-value]

    def advanced(self, state: "SearchState | Candidate | int") -> "SearchState":
        """One slice of a search: its start, or a round of at most `ITERATIONS` iterations.

        It depends on what it is given alone: made again, anywhere, it is the same again.

        Args:
            state: after the slice before; or a motion to start from, or the number of one that is still to be drawn.

        Raises:
            Cancelled: whoever watches the computation wants it to end.
            TrajectoryError: as `candidate`.
        """
        if not isinstance(state, SearchState):
            start = state if isinstance(state, Candidate) else self.candidate(state)
            return SearchState(start, Iterate(self._basis.vector(start.series)))
        kept = np.minimum(2.0**state.mending * CLEARANCE, PART_OF_ROOM * self._usual_room)
        room = MotionRoom(self.limits, self.workspace, margin=1.5**state.mending * MARGIN, clearance=kept)
        problem = DesignProblem(self._basis, self.source, self.criterion, room, self.known)
        schedule = SHARPNESS[-1:] if state.mending else SHARPNESS
        assert state.iterate is not None
        iterate = next_round(problem, state.iterate, schedule[state.round_number])
        found = self.checked(self._basis.series(iterate.vector), state.best.number)
        best = min(state.best, found if found.feasible else self._on_the_way(state.best, found), key=Candidate.rank)
        if state.round_number >= PATIENCE and iterate.excess > STUCK:
            return SearchState(best)
        if state.round_number + 1 < len(schedule):
            return SearchState(best, iterate, state.round_number + 1, state.mending)
        if found.feasible or state.mending == MENDING:
            return SearchState(best)
        return SearchState(best, Iterate(iterate.vector), mending=state.mending + 1)

    def _on_the_way(self, best: "Candidate", found: "Candidate") -> "Candidate":
        """The motion nearest to `found`, which exceeds something, on the straight way from `best` that does not."""
        start, end = (self._basis.vector(candidate.series) for candidate in (best, found))
        for part in ON_THE_WAY if best.feasible else ():
            between = self.checked(self._basis.series(start + part * (end - start)), found.number)
            if between.feasible:
                return between
        return found

    def checked(self, series: FourierSeries, number: int = 0) -> "Candidate":
        """A motion with its rating and its excess between samples."""
        times = np.arange(DENSER * self._samples) / (DENSER * self._samples * self.base_frequency)
        try:
            exceeded = excess(self.source, self._room, series, times)
            value = self._problem.value(self._basis.vector(series))
        except TrajectoryError as error:
            return Candidate(series, np.inf, np.inf, str(error), number)
        k, c = np.unravel_index(np.argmax(exceeded), exceeded.shape)
        return Candidate(series, value, float(exceeded[k, c]), f"{self._room.names[c]} at {times[k]:.2f} s", number)

    def information(self, series: FourierSeries) -> NDArray:
        """Information (p, p) of a motion and of what was known, as a mean over its samples."""
        return self._problem.information(self._basis.vector(series))

    def __getstate__(self) -> dict[str, object]:
        """Without what is computed of them when it is first needed: small enough to be sent about."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def _samples(self) -> int:
        return SAMPLES_PER_CYCLE * self.harmonics

    @cached_property
    def _basis(self) -> FourierBasis:
        return FourierBasis(self.limits, self.base_frequency, self.harmonics, self._samples, self.held)

    @cached_property
    def _room(self) -> MotionRoom:
        return MotionRoom(self.limits, self.workspace)

    @cached_property
    def _usual_room(self) -> NDArray:
        """(K,) median over poses that are allowed."""
        return np.median(self.workspace.distances(self._random.centres).room, axis=0)

    @cached_property
    def _problem(self) -> DesignProblem:
        return DesignProblem(self._basis, self.source, self.criterion, self._room, self.known)

    @cached_property
    def _random(self) -> RandomFourier:
        return RandomFourier(
            self.robot,
            self.limits,
            self._room,
            self.source,
            base_frequency=self.base_frequency,
            harmonics=self.harmonics,
            held=self.held,
        )


@dataclass(frozen=True, eq=False)
class Candidate:
    """A motion that was looked at.

    Attributes:
        series: the motion.
        value: of the criterion.
        excess: largest, over limits and workspace; zero or less where the motion keeps to them; infinite where nobody
            can foresee what it does.
        obstacle: what is exceeded most, or kept to with the least room; or why nothing can be predicted.
        number: of the random start.
    """

    series: FourierSeries
    value: float
    excess: float
    obstacle: str
    number: int = 0

    @property
    def feasible(self) -> bool:
        """Whether it keeps to limits and workspace, with a little to spare."""
        return self.excess <= -SAFE

    def rank(self) -> tuple[float, float]:
        """Smaller is better: what is feasible first, then what is rated best, or exceeds least."""
        return (0.0, self.value) if self.feasible else (1.0, self.excess)


@dataclass(frozen=True, eq=False)
class SearchState:
    """Where the search from one start is between two slices.

    Attributes:
        best: motion so far.
        iterate: where the minimisation is; None: it is over.
        round_number: of the next round, from 0.
        mending: how often it began anew with more kept free.
    """

    best: Candidate
    iterate: Iterate | None = None
    round_number: int = 0
    mending: int = 0

    @property
    def over(self) -> bool:
        """Whether there is no further slice."""
        return self.iterate is None
