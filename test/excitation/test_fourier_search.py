"""A search goes on as long as a motion that keeps to its limits gets better, and gives up one that is stuck."""

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

# Random motions are as wide as limits allow.


@pytest.mark.parametrize("base_frequency", [0.01, 0.2])
def test_with_nothing_in_the_way_each_joint_uses_one_of_its_limits_up(base_frequency):
    """A slow one its range, wherever the pose is that it is drawn about, a quick one its speed or acceleration."""
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0, torque_limits=np.inf)
    source = TorqueInformation(robot, limits.velocity, noise=1.0)
    search = MotionSearch(robot, limits, Workspace(robot), source, CRITERIA["determinant"], base_frequency, 3)
    for seed in range(8):
        series = search.draw(np.random.default_rng(seed))
        low, high, speed, acceleration = series.peaks()
        assert np.all((limits.lower <= low) & (high <= limits.upper))
        used = (high - low) / (limits.upper - limits.lower), speed / limits.velocity, acceleration / limits.acceleration
        np.testing.assert_allclose(np.max(used, axis=0), MAX_LIMIT_FRACTION)


@pytest.mark.parametrize(("excess", "expected"), [(0.0, len(SHARPNESS)), (0.5, MIN_ROUNDS + 1)])
def test_only_a_motion_that_is_stuck_is_given_up(monkeypatch, excess, expected):
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0)
    source = TorqueInformation(robot, limits.velocity, noise=1.0)
    search = MotionSearch(robot, limits, Workspace(robot), source, CRITERIA["determinant"], 0.1, 2)
    state = search.run_slice(0)
    start, made = state.best, []

    def larger(problem, begun, sharpness):
        """In each round a motion a little larger, and so a little better."""
        del problem, sharpness
        vector = search._basis.vector(start.series) * (1.0 + 1e-4 * (len(made) + 1))
        made.append(search.rate(search._basis.series(vector)))
        return Iterate(vector, excess)

    monkeypatch.setattr(motion_search, "next_iterate", larger)
    while not state.has_ended:
        state = search.run_slice(state)
    assert len(made) == expected
    assert state.best.value == pytest.approx(made[-1].value)
    assert state.best.value < start.value
    assert np.isfinite(state.best.value)


def test_a_slice_made_again_elsewhere_is_the_same_and_little_is_sent_for_it():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0)
    source = TorqueInformation(robot, limits.velocity, noise=1.0)
    search = MotionSearch(robot, limits, Workspace(robot), source, CRITERIA["determinant"], 0.1, 2)
    state = search.run_slice(search.run_slice(0))
    sent = pickle.dumps(search)
    assert len(sent) < 0.5 * len(pickle.dumps(vars(search)))
    elsewhere, again = pickle.loads(sent), pickle.loads(pickle.dumps(state))
    for _ in range(3):
        state, again = search.run_slice(state), elsewhere.run_slice(again)
        np.testing.assert_array_equal(state.iterate.vector, again.iterate.vector)
        np.testing.assert_array_equal(state.iterate.multipliers, again.iterate.multipliers)
        assert state.best.value == again.best.value


class Nearest:
    """The point of a half plane that is nearest to (2, 1), with x + y <= 1."""

    def evaluate(self, vector, sharpness):
        self.vector = vector
        return float(np.sum((vector - [2.0, 1.0]) ** 2)), np.array([vector.sum() - 1.0])

    def gradient(self, by_excess):
        return 2 * (self.vector - [2.0, 1.0]) + by_excess[0]


class Rosenbrock:
    """Within the unit disc: the minimum is at (0.7864, 0.6177) (Nocedal and Wright's classic)."""

    def evaluate(self, vector, sharpness):
        self.vector = x, y = vector
        return float(100 * (y - x**2) ** 2 + (1 - x) ** 2), np.array([[x**2 + y**2 - 1]])

    def gradient(self, by_excess):
        x, y = self.vector
        own = np.array([-400 * x * (y - x**2) - 2 * (1 - x), 200 * (y - x**2)])
        return own + by_excess[0, 0] * 2 * self.vector


class Nowhere(Nearest):
    """Two half planes without a common point."""

    def evaluate(self, vector, sharpness):
        objective, excess = super().evaluate(vector, sharpness)
        return objective, np.append(excess, 2.0 - vector.sum())

    def gradient(self, by_excess):
        return super().gradient(by_excess) - by_excess[1]


def rounds(problem, start, count):
    iterates = [Iterate(np.array(start, dtype=float))]
    for _ in range(count):
        iterates.append(next_iterate(problem, iterates[-1], 1.0))
    return iterates


@pytest.mark.parametrize(("problem", "expected"), [(Nearest(), [1.0, 0.0]), (Rosenbrock(), [0.78641515, 0.61769831])])
@pytest.mark.parametrize("start", [[0.0, 0.0], [-2.0, 3.0]])
def test_known_minimum(problem, expected, start):
    last = rounds(problem, start, 12)[-1]
    np.testing.assert_allclose(last.vector, expected, atol=1e-4)
    assert abs(last.excess) < 1e-4


def test_what_cannot_be_kept_is_left_exceeded():
    last = rounds(Nowhere(), [0.0, 0.0], 8)[-1]
    assert last.excess == pytest.approx(0.5, abs=0.05)


def test_a_round_ends_when_told_to():
    class After(Watch):
        def __init__(self, evaluations):
            super().__init__()
            self.left = evaluations

        def _check(self):
            self.left -= 1
            if self.left < 0:
                self.cancel()
            super()._check()

    begun = Iterate(np.array([-2.0, 3.0]))
    whole = next_iterate(Rosenbrock(), begun, 1.0)
    with watching(After(5)), pytest.raises(Cancelled):
        next_iterate(Rosenbrock(), begun, 1.0)
    with watching(After(1000)):
        again = next_iterate(Rosenbrock(), begun, 1.0)
    np.testing.assert_array_equal(again.vector, whole.vector)
