import numpy as np
import paper_arms
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


def test_peaks_are_those_of_the_polynomial():
    """10/√3 = 5.7735 Δ/T², 15/8 Δ/T and, at both ends, 60 Δ/T³."""
    duration, delta = 1.6, 0.7
    motion = move(("a",), [0.2], [0.2 + delta], duration)
    time = np.linspace(0.0, duration, 40001)
    _, velocity, acceleration = motion.at(time)
    assert np.abs(acceleration).max() == pytest.approx(5.7735 * delta / duration**2, rel=1e-5)
    assert np.abs(velocity).max() == pytest.approx(1.875 * delta / duration, rel=1e-8)
    assert np.abs(motion.jerk(time)).max() == pytest.approx(60 * delta / duration**3, rel=1e-9)
    _, peak = motion.jerk_peaks()
    assert np.abs(peak).item() == pytest.approx(60 * delta / duration**3, rel=1e-9)


def test_three_moves_of_the_direct_drive_arm():
    """The trajectories of Atkeson, An and Hollerbach 1986 as moves: as sampled they tell the arm's parameters alike."""
    arm, samples = paper_arms.mit_arm(), 200
    regressors = []
    for start, end in paper_arms.MIT_MOVES:
        motion = move(arm.joint_names, np.deg2rad(start), np.deg2rad(end), 1.3)
        regressors.append(arm.torque_regressor(*motion.at(np.linspace(0.0, 1.3, samples))))
    matrix = np.concatenate(regressors).reshape(-1, 30)
    eigenvalues = np.linalg.eigvalsh(matrix.T @ matrix)[::-1]
    assert eigenvalues[14] == pytest.approx(2934.586, abs=1e-2)
    assert eigenvalues[0] == pytest.approx(2532784, rel=1e-5)
    assert eigenvalues[15] < 1e-6


def test_jerk_limits_the_shortest_duration():
    duration = shortest_duration([0.5, -1.0], [9.0, 9.0], [99.0, 99.0], [np.inf, 10.0])
    assert duration == pytest.approx((60 * 1.0 / 10.0) ** (1 / 3))
    assert shortest_duration([0.5], [1.0], [2.0], np.inf) == shortest_duration([0.5], [1.0], [2.0])
