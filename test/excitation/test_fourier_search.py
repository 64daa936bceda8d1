"""Test the optimizer of motions: progress, abandonment, constraints and interruption."""

import pickle

import numpy as np
import planar_arm
import pytest

from dynid_ros.excitation import fourier_search as motion_search
from dynid_ros.excitation.fourier_search import (
    MAX_LIMIT_FRACTION,
    MIN_ROUNDS,
    SHARPNESS,
    Iterate,
    MotionSearch,
    next_iterate,
)
from dynid_ros.information.criteria import CRITERIA
from dynid_ros.information.torque_information import TorqueInformation
from dynid_ros.model import RobotModel
from dynid_ros.progress import Cancelled, Watch, watching
from dynid_ros.trajectories import MotionLimits, Workspace


@pytest.mark.parametrize("base_frequency", [0.01, 0.2])
def test_random_motions_use_one_limit_of_each_joint(base_frequency):
    """Slow joints use their range, whatever the initial pose; quick joints use their speed or acceleration."""
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0, torque_limits=np.inf)
    source = TorqueInformation(robot, limits.velocity, noise=1.0)
    search = MotionSearch(robot, limits, Workspace(robot), source, CRITERIA["determinant"], base_frequency, 3)
    for seed in range(8):
        series = search.draw(np.random.default_rng(seed))
        low, high, speed, acceleration = series.peaks()
        assert np.all((limits.lower <= low) & (high <= limits.upper))
        ranges = (high - low) / (limits.upper - limits.lower)
        used = ranges, speed / limits.velocity, acceleration / limits.acceleration
        np.testing.assert_allclose(np.max(used, axis=0), MAX_LIMIT_FRACTION)


@pytest.mark.parametrize(("excess", "expected"), [(0.0, len(SHARPNESS)), (0.5, MIN_ROUNDS + 1)])
def test_abandons_infeasible_motions_only(monkeypatch, excess, expected):
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0)
    source = TorqueInformation(robot, limits.velocity, noise=1.0)
    search = MotionSearch(robot, limits, Workspace(robot), source, CRITERIA["determinant"], 0.1, 2)
    state = search.run_slice(0)
    start = state.best
    motions = []

    def enlarge_motion(problem, iterate, sharpness):
        """Return a slightly larger, better motion in each round."""
        del problem, iterate, sharpness
        vector = search._basis.vector(start.series) * (1.0 + 1e-4 * (len(motions) + 1))
        motions.append(search.rate(search._basis.series(vector)))
        return Iterate(vector, excess)

    monkeypatch.setattr(motion_search, "next_iterate", enlarge_motion)
    while not state.has_ended:
        state = search.run_slice(state)
    assert len(motions) == expected
    assert state.best.value == pytest.approx(motions[-1].value)
    assert state.best.value < start.value
    assert np.isfinite(state.best.value)


def test_slices_are_reproducible_in_other_processes():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0)
    source = TorqueInformation(robot, limits.velocity, noise=1.0)
    search = MotionSearch(robot, limits, Workspace(robot), source, CRITERIA["determinant"], 0.1, 2)
    state = search.run_slice(search.run_slice(0))
    pickled = pickle.dumps(search)
    assert len(pickled) < 0.5 * len(pickle.dumps(vars(search)))
    other_search = pickle.loads(pickled)
    other_state = pickle.loads(pickle.dumps(state))
    for _ in range(3):
        state = search.run_slice(state)
        other_state = other_search.run_slice(other_state)
        np.testing.assert_array_equal(state.iterate.vector, other_state.iterate.vector)
        np.testing.assert_array_equal(state.iterate.multipliers, other_state.iterate.multipliers)
        assert state.best.value == other_state.best.value


class NearestPoint:
    """Problem of the point nearest to (2, 1) in the half plane x + y <= 1."""

    def evaluate(self, vector, sharpness):
        self.vector = vector
        return float(np.sum((vector - [2.0, 1.0]) ** 2)), np.array([vector.sum() - 1.0])

    def gradient(self, by_excess):
        return 2 * (self.vector - [2.0, 1.0]) + by_excess[0]


class Rosenbrock:
    """Rosenbrock's function within the unit disc, whose minimum is at (0.7864, 0.6177)."""

    def evaluate(self, vector, sharpness):
        self.vector = x, y = vector
        return float(100 * (y - x**2) ** 2 + (1 - x) ** 2), np.array([[x**2 + y**2 - 1]])

    def gradient(self, by_excess):
        x, y = self.vector
        gradient = np.array([-400 * x * (y - x**2) - 2 * (1 - x), 200 * (y - x**2)])
        return gradient + by_excess[0, 0] * 2 * self.vector


class InfeasiblePoint(NearestPoint):
    """Problem of two half planes without a common point."""

    def evaluate(self, vector, sharpness):
        objective, excess = super().evaluate(vector, sharpness)
        return objective, np.append(excess, 2.0 - vector.sum())

    def gradient(self, by_excess):
        return super().gradient(by_excess) - by_excess[1]


def run_rounds(problem, start, count):
    iterate = Iterate(np.array(start, dtype=float))
    for _ in range(count):
        iterate = next_iterate(problem, iterate, 1.0)
    return iterate


@pytest.mark.parametrize(
    ("problem", "expected"), [(NearestPoint(), [1.0, 0.0]), (Rosenbrock(), [0.78641515, 0.61769831])]
)
@pytest.mark.parametrize("start", [[0.0, 0.0], [-2.0, 3.0]])
def test_finds_constrained_minima(problem, expected, start):
    last = run_rounds(problem, start, 12)
    np.testing.assert_allclose(last.vector, expected, atol=1e-4)
    assert abs(last.excess) < 1e-4


def test_infeasible_constraints_share_their_excess():
    last = run_rounds(InfeasiblePoint(), [0.0, 0.0], 8)
    assert last.excess == pytest.approx(0.5, abs=0.05)


def test_rounds_can_be_cancelled():
    class CancelAfter(Watch):
        def __init__(self, evaluations):
            super().__init__()
            self.left = evaluations

        def _check(self):
            self.left -= 1
            if self.left < 0:
                self.cancel()
            super()._check()

    start = Iterate(np.array([-2.0, 3.0]))
    expected = next_iterate(Rosenbrock(), start, 1.0)
    with watching(CancelAfter(5)), pytest.raises(Cancelled):
        next_iterate(Rosenbrock(), start, 1.0)
    with watching(CancelAfter(1000)):
        completed = next_iterate(Rosenbrock(), start, 1.0)
    np.testing.assert_array_equal(completed.vector, expected.vector)
