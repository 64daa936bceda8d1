"""A Fourier series against its own spectrum, and between samples against bounds."""

import numpy as np
import pytest
import yaml

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories import FourierSeries

JOINTS = ("a", "b", "c")
HARMONICS = 6
BASE = 0.13


def series(seed=0, harmonics=HARMONICS):
    sine, cosine = np.random.default_rng(seed).standard_normal((2, len(JOINTS), harmonics))
    return FourierSeries.at_rest(JOINTS, BASE, sine, cosine).shifted([0.3, -1.0, 2.0])


def test_spectrum_is_the_coefficients_and_derivatives_are_theirs():
    motion, count = series(), 64
    position, velocity, acceleration = motion.at(np.arange(count) / count / BASE)
    found = np.fft.rfft(position, axis=0) / count
    order = np.arange(1, HARMONICS + 1)
    rate = 2 * np.pi * BASE * order
    np.testing.assert_allclose(found[0], motion.offset, atol=1e-12)
    np.testing.assert_allclose(
        found[1 : HARMONICS + 1], (-(motion.cosine + 1j * motion.sine) / (2 * rate)).T, atol=1e-12
    )
    np.testing.assert_allclose(found[HARMONICS + 1 :], 0.0, atol=1e-12)
    factor = 2j * np.pi * BASE * np.arange(len(found))[:, np.newaxis]
    for power, values in ((1, velocity), (2, acceleration)):
        np.testing.assert_allclose(np.fft.irfft(found * factor**power * count, axis=0), values, atol=1e-11)


def test_rest_takes_no_more_from_the_coefficients_than_it_must():
    rng = np.random.default_rng(3)
    sine, cosine = rng.standard_normal((2, 3, HARMONICS))
    near = FourierSeries.at_rest(JOINTS, BASE, sine, cosine)
    again = FourierSeries.at_rest(JOINTS, BASE, near.sine, near.cosine)
    np.testing.assert_allclose(again.sine, near.sine, atol=1e-14)
    np.testing.assert_allclose(again.cosine, near.cosine, atol=1e-14)
    for _ in range(20):
        other = FourierSeries.at_rest(JOINTS, BASE, *rng.standard_normal((2, 3, HARMONICS)))
        assert np.linalg.norm(near.sine - sine) <= np.linalg.norm(other.sine - sine)
        assert np.linalg.norm(near.cosine - cosine) <= np.linalg.norm(other.cosine - cosine)


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_between_samples_and_are_tight(seed):
    motion = series(seed, harmonics=2 + seed % 9)
    position, velocity, acceleration = motion.at(np.linspace(0.0, motion.period, 40001))
    low, high, speed, most = motion.peaks()
    span = np.ptp(position, axis=0)
    for bound, largest, slack in (
        (-low, -position.min(axis=0), 0.02 * span),
        (high, position.max(axis=0), 0.02 * span),
        (speed, np.abs(velocity).max(axis=0), 0.02 * speed),
        (most, np.abs(acceleration).max(axis=0), 0.02 * most),
    ):
        assert np.all(largest <= bound)
        assert np.all(bound <= largest + slack)


def test_trajectory_between_its_samples_is_the_series():
    motion = series()
    trajectory = motion.trajectory(2)
    time = np.linspace(0.0, trajectory.duration, 7777)
    for found, exact, part in zip(trajectory.at(time), motion.at(time), (1e-8, 1e-7, 1e-5), strict=True):
        assert np.abs(found - exact).max() <= part * np.abs(exact).max()


def test_scaled_and_shifted():
    motion = series()
    time = np.linspace(0.0, 3.0, 11)
    position, velocity, acceleration = motion.at(time)
    other = motion.scaled([2.0, 0.5, 1.0]).shifted([0.0, 0.0, 1.0]).at(time)
    np.testing.assert_allclose(other[0], motion.offset + (position - motion.offset) * [2.0, 0.5, 1.0] + [0, 0, 1])
    np.testing.assert_allclose(other[1], velocity * [2.0, 0.5, 1.0], atol=1e-12)
    np.testing.assert_allclose(motion.scaled(3.0).at(time)[2], 3 * acceleration, atol=1e-12)


def test_motion_that_does_not_start_at_rest_makes_no_trajectory():
    zero = np.zeros((1, 2))
    with pytest.raises(TrajectoryError, match=r"starts with velocity 1 of joint 'a'"):
        FourierSeries(("a",), 0.1, np.zeros(1), np.array([[1.0, 0.0]]), zero).trajectory()
    with pytest.raises(TrajectoryError, match=r"starts with acceleration 1.257 of joint 'a'"):
        FourierSeries(("a",), 0.1, np.zeros(1), zero, np.array([[0.0, 1.0]])).trajectory()


def test_impossible_series_are_refused():
    with pytest.raises(TrajectoryError, match="harmonics is 1; it must be at least 2"):
        FourierSeries.at_rest(("a",), 0.1, np.ones((1, 1)), np.ones((1, 1)))
    with pytest.raises(TrajectoryError, match="base_frequency is -1 Hz; it must be positive"):
        FourierSeries.at_rest(("a",), -1.0, np.ones((1, 2)), np.ones((1, 2)))


@pytest.mark.parametrize(("frequency", "harmonics"), [(0.01, 2), (0.05, 10), (0.37, 5), (4.0, 3)])
def test_each_derivative_is_that_of_the_one_before(frequency, harmonics):
    """At any base frequency and number of harmonics, by central differences; and at rest to 1e-9 where it ends."""
    rng = np.random.default_rng(harmonics)
    motion = FourierSeries.at_rest(JOINTS, frequency, *rng.standard_normal((2, 3, harmonics))).shifted([1.0, 0.0, -2.0])
    time = rng.uniform(0.0, 3 * motion.period, 50)
    step = 1e-5 * motion.period / harmonics
    later, earlier = motion.at(time + step), motion.at(time - step)
    derivatives = (*motion.at(time)[1:], motion.jerk(time))
    for after, before, exact in zip(later, earlier, derivatives, strict=True):
        np.testing.assert_allclose((after - before) / (2 * step), exact, rtol=0, atol=1e-5 * np.abs(exact).max())
    for values in motion.at([0.0, motion.period, 7 * motion.period])[1:]:
        np.testing.assert_allclose(values, 0.0, atol=1e-9)
    np.testing.assert_allclose(motion.at(time)[0], motion.at(time + 2 * motion.period)[0], atol=1e-9)


def written(motion, path, digits=9):
    content = {
        "format": "dynid-fourier/1",
        "base_frequency": motion.base_frequency,
        "joints": {
            name: {"offset": float(o), "sine": np.round(s, digits).tolist(), "cosine": np.round(c, digits).tolist()}
            for name, o, s, c in zip(motion.joint_names, motion.offset, motion.sine, motion.cosine, strict=True)
        },
    }
    path.write_text(yaml.safe_dump(content))
    return path


def test_series_written_with_nine_digits_is_read_back_and_still_rests(tmp_path):
    motion = series()
    back = FourierSeries.read(written(motion, tmp_path / "plan.yaml"))
    assert (back.joint_names, back.base_frequency) == (JOINTS, BASE)
    time = np.linspace(0.0, motion.period, 100)
    for values, expected in zip(back.at(time), motion.at(time), strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-7)
    for values in back.at([0.0])[1:]:
        np.testing.assert_allclose(values, 0.0, atol=1e-12)
    back.trajectory(3)


def test_saved_series_is_read_back_as_it_was(tmp_path):
    motion = series()
    back = FourierSeries.read(motion.save(tmp_path / "new" / "series.yaml"))
    assert (back.joint_names, back.base_frequency) == (JOINTS, BASE)
    for part in ("offset", "sine", "cosine"):
        np.testing.assert_allclose(getattr(back, part), getattr(motion, part), rtol=0, atol=1e-14)


def test_series_read_as_it_stands_is_not_forced_to_rest(tmp_path):
    """What is not at rest for more than missing digits stays so, and is refused where a motion is made of it."""
    back = FourierSeries.read(written(series(), tmp_path / "s.yaml", digits=2))
    np.testing.assert_allclose(back.sine, np.round(series().sine, 2))
    with pytest.raises(TrajectoryError, match="starts with velocity"):
        back.trajectory()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "dynid-trajectory/1"}, "is not a Fourier motion: expected 'format: dynid-fourier/1'"),
        ({"joints": None}, "is malformed"),
        ({"joints": {}}, "is malformed"),
        ({"base_frequency": 0}, "base_frequency is 0 Hz; it must be positive"),
        ({"base_frequency": "fast"}, "is malformed"),
        ({"joints": {"a": {"offset": 0, "sine": [1, 2]}}}, "lacks the entry 'cosine'"),
        ({"joints": {"a": {"offset": 0, "sine": [1, 2], "cosine": [1]}}}, "joint 'a' needs a sine and a cosine"),
        ({"joints": {"a": {"offset": 0, "sine": [1, float("nan")], "cosine": [1, 2]}}}, "not a finite number"),
    ],
)
def test_malformed_series_is_one_clear_error(tmp_path, change, message):
    path = written(series(), tmp_path / "s.yaml")
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | change))
    with pytest.raises(TrajectoryError, match=message) as error:
        FourierSeries.read(path)
    assert str(path) in str(error.value)
