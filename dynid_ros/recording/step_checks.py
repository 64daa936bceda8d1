"""Length, gaps and repeated rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid_ros.recording.finding import Finding
from dynid_ros.recording.recording import Recording
from dynid_ros.signals import stale_rows

MINIMUM_SAMPLES = 10
"""Fewer tell nothing about velocity or noise."""
FEW_SAMPLES = 100
"""Fewer average noise badly: their mean is no better than a tenth of one sample's noise."""
REGULAR_STEPS = 0.98
"""A clock is regular if this share of its steps lies within a quarter of the median step; then a step of 1.5 medians
is a lost sample. Without a regular clock only a long step is one: 10 medians and 20 ms, a tenth of a 5 Hz period."""
REPEATED = 0.02
"""Share of the rows that may repeat the row before while the arm moves."""
MOVING = 0.02
"""An arm moves if a joint is faster over some rows, rad/s or m/s."""
NEIGHBOURS = 10


def check_steps(recording: Recording) -> Iterator[Finding]:
    """Too few samples, a file cut off, gaps between samples, rows that repeat the row before."""
    yield from _check_length(recording)
    if recording.n_samples > MINIMUM_SAMPLES:
        yield from _check_gaps(recording)
        yield from _check_repetition(recording)


def _check_length(recording: Recording) -> Iterator[Finding]:
    if recording.n_samples < FEW_SAMPLES:
        yield Finding(
            "error" if recording.n_samples < MINIMUM_SAMPLES else "warning",
            recording.source,
            f"only {recording.n_samples} samples",
            "record longer",
            "too short",
        )
    if recording.truncated:
        yield Finding(
            "warning",
            recording.source,
            f"the file is cut off: {recording.duration:.1f} s could be read",
            "its recorder was killed; record again if the end of the motion matters",
            "cut off",
        )


def _check_gaps(recording: Recording) -> Iterator[Finding]:
    steps = np.diff(recording.time)
    step = float(np.median(steps))
    regular = np.mean(np.abs(steps - step) < step / 4) >= REGULAR_STEPS
    gaps = np.flatnonzero(steps > (1.5 * step if regular else max(10 * step, 0.02)))
    if gaps.size:
        longest = gaps[np.argmax(steps[gaps])]
        lost = np.sum(np.round(steps[gaps] / step) - 1)
        yield Finding(
            "warning",
            recording.source,
            f"{gaps.size} gaps, about {lost:.0f} samples lost; the longest is {steps[longest] * 1e3:.0f} ms at "
            f"t = {recording.time[longest]:.3f} s, where the step is {step * 1e3:.3g} ms",
            "record with a deep queue and reliable QoS, on a machine with time to spare",
            "gaps",
        )


def _check_repetition(recording: Recording) -> Iterator[Finding]:
    """A robot at rest with coarse sensors repeats itself too: rows count while it moves."""
    values = np.hstack([recording.position, recording.velocity, recording.torque])
    values = values[:, np.isfinite(values).all(axis=0)]
    travel = np.abs(recording.position[NEIGHBOURS:] - recording.position[:-NEIGHBOURS]).max(axis=1)
    moving = travel > MOVING * (recording.time[NEIGHBOURS:] - recording.time[:-NEIGHBOURS])
    repeated = stale_rows(values)[NEIGHBOURS:][moving]
    if repeated.size >= FEW_SAMPLES and np.mean(repeated) > REPEATED:
        yield Finding(
            "warning",
            recording.source,
            f"{100 * np.mean(repeated):.0f} % of its rows only repeat the row before, though the arm moves",
            "record as fast as the driver publishes, each message once; differentiate positions without these rows",
            "repeated rows",
        )
