"""Compare Fourier series with their spectrum, their bounds and their files."""

import numpy as np
import pytest
import yaml

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories import FourierSeries

JOINTS = ("a", "b", "c")
HARMONICS = 6
BASE_HZ = 0.13


def create_series(seed=0, harmonics=HARMONICS):
    """Return random series that start and end at rest."""
    sine, cosine = np.random.default_rng(seed).standard_normal((2, len(JOINTS), harmonics))
    return FourierSeries.at_rest(JOINTS, BASE_HZ, sine, cosine).shifted([0.3, -1.0, 2.0])


def test_spectrum_matches_the_coefficients():
    motion = create_series()
    count = 64
    position, velocity, acceleration = motion.at(np.arange(count) / count / BASE_HZ)
    spectrum = np.fft.rfft(position, axis=0) / count
    order = np.arange(1, HARMONICS + 1)
    rate = 2 * np.pi * BASE_HZ * order
    np.testing.assert_allclose(spectrum[0], motion.offset, atol=1e-12)
    np.testing.assert_allclose(
        spectrum[1 : HARMONICS + 1], (-(motion.cosine + 1j * motion.sine) / (2 * rate)).T, atol=1e-12
    )
    np.testing.assert_allclose(spectrum[HARMONICS + 1 :], 0.0, atol=1e-12)
    factor = 2j * np.pi * BASE_HZ * np.arange(len(spectrum))[:, np.newaxis]
    for power, values in ((1, velocity), (2, acceleration)):
        np.testing.assert_allclose(np.fft.irfft(spectrum * factor**power * count, axis=0), values, atol=1e-11)


def test_at_rest_is_the_nearest_series_that_rests():
    rng = np.random.default_rng(3)
    sine, cosine = rng.standard_normal((2, 3, HARMONICS))
    projected = FourierSeries.at_rest(JOINTS, BASE_HZ, sine, cosine)
    repeated = FourierSeries.at_rest(JOINTS, BASE_HZ, projected.sine, projected.cosine)
    np.testing.assert_allclose(repeated.sine, projected.sine, atol=1e-14)
    np.testing.assert_allclose(repeated.cosine, projected.cosine, atol=1e-14)
    for _ in range(20):
        other = FourierSeries.at_rest(JOINTS, BASE_HZ, *rng.standard_normal((2, 3, HARMONICS)))
        assert np.linalg.norm(projected.sine - sine) <= np.linalg.norm(other.sine - sine)
        assert np.linalg.norm(projected.cosine - cosine) <= np.linalg.norm(other.cosine - cosine)


@pytest.mark.parametrize("seed", range(20))
def test_peaks_are_tight_bounds(seed):
    motion = create_series(seed, harmonics=2 + seed % 9)
    position, velocity, acceleration = motion.at(np.linspace(0.0, motion.period, 40001))
    low, high, speed, peak_acceleration = motion.peaks()
    span = np.ptp(position, axis=0)
    for bound, largest, slack in (
        (-low, -position.min(axis=0), 0.02 * span),
        (high, position.max(axis=0), 0.02 * span),
        (speed, np.abs(velocity).max(axis=0), 0.02 * speed),
        (peak_acceleration, np.abs(acceleration).max(axis=0), 0.02 * peak_acceleration),
    ):
        assert np.all(largest <= bound)
        assert np.all(bound <= largest + slack)


def test_trajectory_interpolates_the_series():
    motion = create_series()
    trajectory = motion.trajectory(2)
    time = np.linspace(0.0, trajectory.duration, 7777)
    for values, exact, tolerance in zip(trajectory.at(time), motion.at(time), (1e-8, 1e-7, 1e-5), strict=True):
        assert np.abs(values - exact).max() <= tolerance * np.abs(exact).max()


def test_scaling_and_shifting_a_series():
    motion = create_series()
    time = np.linspace(0.0, 3.0, 11)
    position, velocity, acceleration = motion.at(time)
    other = motion.scaled([2.0, 0.5, 1.0]).shifted([0.0, 0.0, 1.0]).at(time)
    np.testing.assert_allclose(other[0], motion.offset + (position - motion.offset) * [2.0, 0.5, 1.0] + [0, 0, 1])
    np.testing.assert_allclose(other[1], velocity * [2.0, 0.5, 1.0], atol=1e-12)
    np.testing.assert_allclose(motion.scaled(3.0).at(time)[2], 3 * acceleration, atol=1e-12)


def test_refuses_trajectories_that_do_not_start_at_rest():
    zero = np.zeros((1, 2))
    with pytest.raises(TrajectoryError, match=r"starts with velocity 1 of joint 'a'"):
        FourierSeries(("a",), 0.1, np.zeros(1), np.array([[1.0, 0.0]]), zero).trajectory()
    with pytest.raises(TrajectoryError, match=r"starts with acceleration 1.257 of joint 'a'"):
        FourierSeries(("a",), 0.1, np.zeros(1), zero, np.array([[0.0, 1.0]])).trajectory()


def test_refuses_invalid_series():
    with pytest.raises(TrajectoryError, match="harmonics is 1; it must be at least 2"):
        FourierSeries.at_rest(("a",), 0.1, np.ones((1, 1)), np.ones((1, 1)))
    with pytest.raises(TrajectoryError, match="base_frequency is -1 Hz; it must be positive"):
        FourierSeries.at_rest(("a",), -1.0, np.ones((1, 2)), np.ones((1, 2)))


@pytest.mark.parametrize(("frequency", "harmonics"), [(0.01, 2), (0.05, 10), (0.37, 5), (4.0, 3)])
def test_series_derivatives_match_finite_differences(frequency, harmonics):
    """Central differences agree for any base frequency and number of harmonics; derivatives vanish at the ends."""
    rng = np.random.default_rng(harmonics)
    motion = FourierSeries.at_rest(JOINTS, frequency, *rng.standard_normal((2, 3, harmonics))).shifted([1.0, 0.0, -2.0])
    time = rng.uniform(0.0, 3 * motion.period, 50)
    step = 1e-5 * motion.period / harmonics
    later = motion.at(time + step)
    earlier = motion.at(time - step)
    derivatives = (*motion.at(time)[1:], motion.jerk(time))
    for after, before, exact in zip(later, earlier, derivatives, strict=True):
        np.testing.assert_allclose((after - before) / (2 * step), exact, rtol=0, atol=1e-5 * np.abs(exact).max())
    for values in motion.at([0.0, motion.period, 7 * motion.period])[1:]:
        np.testing.assert_allclose(values, 0.0, atol=1e-9)
    np.testing.assert_allclose(motion.at(time)[0], motion.at(time + 2 * motion.period)[0], atol=1e-9)


def write_series(motion, path, digits=9):
    """Write a file with rounded coefficients and return the path."""
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


def test_series_rounded_to_nine_digits_still_rests(tmp_path):
    motion = create_series()
    read = FourierSeries.read(write_series(motion, tmp_path / "plan.yaml"))
    assert (read.joint_names, read.base_frequency) == (JOINTS, BASE_HZ)
    time = np.linspace(0.0, motion.period, 100)
    for values, expected in zip(read.at(time), motion.at(time), strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-7)
    for values in read.at([0.0])[1:]:
        np.testing.assert_allclose(values, 0.0, atol=1e-12)
    read.trajectory(3)


def test_saved_series_round_trips(tmp_path):
    motion = create_series()
    read = FourierSeries.read(motion.save(tmp_path / "new" / "series.yaml"))
    assert (read.joint_names, read.base_frequency) == (JOINTS, BASE_HZ)
    for part in ("offset", "sine", "cosine"):
        np.testing.assert_allclose(getattr(read, part), getattr(motion, part), rtol=0, atol=1e-14)


def test_reading_does_not_force_series_to_rest(tmp_path):
    """A series that deviates from rest by more than missing digits is read unchanged, but is not a valid motion."""
    read = FourierSeries.read(write_series(create_series(), tmp_path / "s.yaml", digits=2))
    np.testing.assert_allclose(read.sine, np.round(create_series().sine, 2))
    with pytest.raises(TrajectoryError, match="starts with velocity"):
        read.trajectory()


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
def test_refuses_malformed_series_files(tmp_path, change, message):
    path = write_series(create_series(), tmp_path / "s.yaml")
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **change}))
    with pytest.raises(TrajectoryError, match=message) as error:
        FourierSeries.read(path)
    assert str(path) in str(error.value)
