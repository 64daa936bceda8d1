import numpy as np
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories import minimum_jerk, move, shortest_duration


def test_known_values():
    """Ends and middle of q0 + Δ(10 s³ − 15 s⁴ + 6 s⁵), by hand."""
    position, velocity, acceleration = minimum_jerk([1.0], [3.0], 4.0, [0.0, 1.0, 2.0, 4.0])
    np.testing.assert_allclose(position[:, 0], [1.0, 1.0 + 2 * 0.103515625, 2.0, 3.0], atol=1e-15)
    np.testing.assert_allclose(velocity[:, 0], [0.0, 0.52734375, 0.9375, 0.0], atol=1e-15)
    np.testing.assert_allclose(acceleration[:, 0], [0.0, 0.703125, 0.0, 0.0], atol=1e-15)


@pytest.mark.parametrize(("delta", "duration", "peak"), [(90.0, 2.0, 129.9), (180.0, 2.0, 259.8), (200.0, 1.0, 1154.7)])
def test_peak_accelerations_of_atkeson_an_and_hollerbach(delta, duration, peak):
    """The PUMA's 130 and 260, the direct-drive arm's 1150 deg/s²."""
    _, _, acceleration = minimum_jerk([0.0], [delta], duration, np.linspace(0, duration, 20001))
    assert np.abs(acceleration).max() == pytest.approx(peak, abs=0.05)


def test_derivatives_are_derivatives():
    time = np.linspace(0.0, 1.7, 4001)
    position, velocity, acceleration = minimum_jerk([0.0, 2.0], [1.0, -3.0], 1.7, time)
    np.testing.assert_allclose(np.gradient(position, time, axis=0)[1:-1], velocity[1:-1], atol=1e-5)
    np.testing.assert_allclose(np.gradient(velocity, time, axis=0)[1:-1], acceleration[1:-1], atol=1e-4)


def test_move_is_the_formula_between_its_samples():
    time = np.linspace(0.0, 0.8, 101)
    expected = minimum_jerk([0.0, 2.0], [1.0, -3.0], 0.8, time)
    for values, formula in zip(move(("a", "b"), [0.0, 2.0], [1.0, -3.0], 0.8).at(time), expected, strict=True):
        np.testing.assert_allclose(values, formula, atol=1e-11)


@pytest.mark.parametrize(
    ("displacement", "velocity", "acceleration", "binding"),
    [
        ([1.0, -0.1], [0.5, 9.0], [99.0, 99.0], "velocity"),
        ([0.01, -0.3], [9.0, 9.0], [5.0, 2.0], "acceleration"),
    ],
)
def test_shortest_duration_meets_its_limits_exactly(displacement, velocity, acceleration, binding):
    duration = shortest_duration(displacement, velocity, acceleration)
    _, speed, rate = minimum_jerk([0.0, 0.0], displacement, duration, np.linspace(0, duration, 40001))
    used = {"velocity": np.abs(speed).max(0) / velocity, "acceleration": np.abs(rate).max(0) / acceleration}
    assert used[binding].max() == pytest.approx(1.0, abs=1e-6)
    assert max(part.max() for part in used.values()) <= 1.0 + 1e-9


def test_no_displacement_takes_no_time_and_no_time_is_no_move():
    assert shortest_duration([0.0], [1.0], [1.0]) == 0.0
    with pytest.raises(TrajectoryError, match="positive duration, got 0 s"):
        move(("a",), [0.0], [0.0], 0.0)
