"""A recording with motor and link positions as uniform, filtered signals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.recording import Recording
from dynid_ros.signals import LowPass, choose_cutoff, filtered_motion, resample, sample_times

CUTOFFS = (5.0, 10.0)
"""Lowest and highest cut-off, Hz: friction turns round faster than the motion; above, a torque that vibrates is mostly
noise beside the torsion that it makes."""
HIGHEST = 0.3
"""Highest cut-off, in parts of half the rate."""
MOTION_OVER_TERMS = 2.5
"""Motion is filtered less than the terms, which are functions of it: torsion, torque and terms pass one filter."""


@dataclass(frozen=True, eq=False)
class TorsionRun:
    """Signals of a recording on a uniform grid; (M, n) each, NaN in columns that were not recorded.

    Attributes:
        time: (M,) s.
        rate: Hz.
        position: of the motors, seen through the gears, filtered for differentiation, rad.
        velocity: rad/s.
        acceleration: rad/s^2.
        torque: of the motors, times the gear ratio, as recorded, N m.
        torsion: motor less link position as recorded, rad; NaN where there is no link encoder.
        low_pass: for torsion and all its terms.
        settled: samples that are far enough from the ends.

    """

    time: NDArray
    rate: float
    position: NDArray
    velocity: NDArray
    acceleration: NDArray
    torque: NDArray
    torsion: NDArray
    low_pass: LowPass
    settled: slice


def torsion_run(recording: Recording, cutoff: float) -> TorsionRun:
    """Signals of a recording, low-pass filtered at `cutoff`, Hz.

    Raises:
        IdentificationError: gaps, or a recording that is too short for the filter.

    """
    n = recording.n_joints
    link = recording.link_position
    torsion = np.full_like(recording.position, np.nan) if link is None else recording.position - link
    series = np.hstack([recording.position, recording.torque, torsion])
    grid, rate, values = _uniform(recording, series)
    try:
        low_pass = LowPass(cutoff, rate)
        kept = low_pass.kept(len(values))
        motion = filtered_motion(values[:, :n], LowPass(MOTION_OVER_TERMS * cutoff, rate))
    except RecordingError as error:
        raise IdentificationError(f"{recording.source}: {error}") from error
    settled = slice(kept.start, kept.stop)
    return TorsionRun(grid, rate, *motion, values[:, n : 2 * n], values[:, 2 * n :], low_pass, settled)


def torsion_cutoff(recordings: tuple[Recording, ...]) -> float:
    """Cut-off for all recordings, Hz: what the fastest motion needs, within limits.

    Raises:
        IdentificationError: no joint moves.

    """
    found, highest = [], np.inf
    for recording in recordings:
        _, rate, values = _uniform(recording, recording.position)
        highest = min(highest, HIGHEST * rate / 2)
        try:
            found.append(choose_cutoff(values, rate).low_pass.cutoff)
        except RecordingError as error:
            raise IdentificationError(f"{recording.source}: {error}") from error
    return float(min(np.clip(max(found), *CUTOFFS), highest))


def _uniform(recording: Recording, values: NDArray) -> tuple[NDArray, float, NDArray]:
    """Times (M,), rate and values (M, k) of a recording without gaps."""
    try:
        series = resample(sample_times(recording.time, recording.position).time, values)
    except RecordingError as error:
        raise IdentificationError(f"{recording.source}: {error}") from error
    if len(series.segments) > 1:
        raise IdentificationError(
            f"{recording.source}: samples are missing from {series.gaps[0, 0]:.3f} to {series.gaps[0, 1]:.3f} s; "
            "give the parts before and after as recordings of their own"
        )
    return series.segments[0].time, series.rate, series.segments[0].values
