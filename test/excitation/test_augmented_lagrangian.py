"""Known minima under inequalities."""

import numpy as np
import pytest

from dynid_ros.excitation.fourier_search import Iterate, next_iterate
from dynid_ros.progress import Cancelled, Watch, watching


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
