"""Known minima under inequalities."""

import numpy as np
import pytest

from dynid_ros.excitation.fourier_search import rounds


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


@pytest.mark.parametrize(("problem", "expected"), [(Nearest(), [1.0, 0.0]), (Rosenbrock(), [0.78641515, 0.61769831])])
@pytest.mark.parametrize("start", [[0.0, 0.0], [-2.0, 3.0]])
def test_known_minimum(problem, expected, start):
    *_, last = rounds(problem, np.array(start), (1.0,) * 12)
    np.testing.assert_allclose(last.vector, expected, atol=1e-4)
    assert abs(last.excess) < 1e-4


def test_what_cannot_be_kept_is_left_exceeded():
    *_, last = rounds(Nowhere(), np.zeros(2), (1.0,) * 8)
    assert last.excess == pytest.approx(0.5, abs=0.05)


def test_search_ends_when_told_to():
    calls = iter(range(1000))
    assert list(rounds(Rosenbrock(), np.array([-2.0, 3.0]), (1.0,) * 12, lambda: next(calls) > 5)) == []
    every = list(rounds(Rosenbrock(), np.array([-2.0, 3.0]), (1.0,) * 12))
    calls = iter(range(1000))
    some = list(rounds(Rosenbrock(), np.array([-2.0, 3.0]), (1.0,) * 12, lambda: next(calls) > 50))
    assert 0 < len(some) < len(every) == 12
    np.testing.assert_array_equal(some[0].vector, every[0].vector)
