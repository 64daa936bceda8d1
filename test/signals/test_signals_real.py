"""Test signal processing on recordings of real arms in the folder DYNID_DATA."""

import os
from pathlib import Path

import numpy as np
import pytest

from dynid_ros.signals import LowPass, choose_cutoff, filtered_motion, resample, sample_times, stale_rows, time_lag

DATA = Path(os.environ.get("DYNID_DATA", "unset"))
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="no real recordings: DYNID_DATA is not set")


@pytest.mark.parametrize("run", [1, 2])
def test_finds_the_steady_clock_of_the_kuka(run):
    data = np.load(DATA / f"kuka_lwr4/develop/measurements_{run}.npz")
    times = sample_times(data["t"], data["q"])
    assert times.steady
    assert np.diff(times.time) == pytest.approx(0.005, rel=1e-3)


def test_finds_the_velocity_lag_of_the_panda():
    data = np.load(DATA / "franka_panda/develop/exciting_1.npz")
    fresh = ~stale_rows(np.hstack([data["q"], data["torque"]]))
    uniform = resample(data["t"][fresh], np.hstack([data["q"], data["dq"]])[fresh])
    (segment,) = uniform.segments
    q, dq = np.hsplit(segment.values, 2)
    estimate = time_lag(filtered_motion(q, LowPass(8.0, uniform.rate)).velocity, dq, uniform.rate)
    assert estimate.lag == pytest.approx(0.006, abs=0.001)
    assert estimate.standard_error < 0.0003


@pytest.mark.parametrize(
    ("file", "lowest", "highest"),
    [("ur10e/develop/20_02_10-30sec_12harm", 3, 10), ("kuka_lwr4/develop/measurements_1", 3, 10)],
)
def test_chooses_usual_cutoff_frequencies(file, lowest, highest):
    data = np.load(DATA / f"{file}.npz")
    uniform = resample(sample_times(data["t"], data["q"]).time, data["q"])
    (segment,) = uniform.segments
    choice = choose_cutoff(segment.values, uniform.rate)
    assert lowest < choice.low_pass.cutoff < highest
