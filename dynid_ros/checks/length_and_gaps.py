"""Too few samples, files cut off, wrong clocks, gaps, and rows that only repeat the row before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from dynid_ros.checks.finding import ABSURD, REPEATED_ROWS, CheckSettings, Finding, Severity, recording_check
from dynid_ros.files.disk_arrays import row_blocks
from dynid_ros.recording.recording import Recording
from dynid_ros.recording.uniform_motion import judged_sample_times
from dynid_ros.signals import stale_rows
from dynid_ros.signals.resampling import STAMPS_FIX

TOO_SHORT: Final = "too short"
CUT_OFF: Final = "cut off"
STAMPS: Final = "time stamps"
GAPS: Final = "gaps"
MIN_SAMPLES = 10
"""Smallest number of samples that shows velocity and noise."""
FEW_SAMPLES = 100
"""Number of samples below which noise averages badly: their mean is no better than a tenth of one sample's noise."""
REGULAR_STEPS = 0.98
"""Smallest share of the steps of a regular clock that lie within a quarter of the median step."""
MIN_GAP_STEPS = 1.5
"""Smallest gap of a regular clock, as a multiple of the median step."""
MIN_IRREGULAR_GAP_STEPS = 10.0
"""Smallest gap of an irregular clock, as a multiple of the median step."""
MIN_IRREGULAR_GAP_S = 0.02
"""Smallest gap of an irregular clock: a tenth of a 5 Hz period."""
MIN_WRONG_UNIT_STEP_S = 0.2
"""Smallest median step of times in another unit."""
MIN_WRONG_UNIT_TRAVEL = 0.05
"""Smallest travel of a recording with times in another unit, rad or m."""
MAX_WRONG_UNIT_SPEED = 0.01
"""Largest speed of a recording with times in another unit, rad/s or m/s: poses that were recorded one by one differ by
more."""
MAX_SPEED = 25.0
"""Largest plausible speed of a joint, rad/s or m/s."""
MIN_REPORTED_JITTER = 0.1
"""Smallest RMS deviation of the stamps from the clock that is used, in steps, to report."""
TIME_UNITS = {"ms": 1e3, "µs": 1e6, "ns": 1e9}
"""Units of time that are mistaken for s, as multiples per s."""
MAX_REPEATED_SHARE = 0.02
"""Largest share of the rows that may repeat the row before while the arm moves."""
MIN_MOVING_SPEED = 0.02
"""Smallest speed of a moving joint, over several rows, rad/s or m/s."""
SPEED_ROWS = 10


@recording_check(rank=10)
def check_steps(recording: Recording, settings: CheckSettings) -> Iterator[Finding]:
    """Yield findings about length, clock, gaps and repetitions; noise of the stamps harms a fit of motion only."""
    yield from _check_length(recording)
    if recording.clock_remark:
        yield Finding(
            "warning",
            recording.source,
            recording.clock_remark,
            "let the driver fill the stamp of each message with the time at which it read the robot",
            STAMPS,
        )
    if recording.n_samples > MIN_SAMPLES:
        yield from _check_time_unit(recording)
        yield from _check_stamps(recording, settings.motion)
        yield from _check_gaps(recording)
        yield from _check_repetition(recording)


def _check_length(recording: Recording) -> Iterator[Finding]:
    if recording.n_samples < FEW_SAMPLES:
        yield Finding(
            "error" if recording.n_samples < MIN_SAMPLES else "warning",
            recording.source,
            f"only {recording.n_samples} samples",
            "record longer",
            TOO_SHORT,
        )
    if recording.truncated:
        yield Finding(
            "warning",
            recording.source,
            f"the file is cut off: {recording.duration:.1f} s could be read",
            "its recorder was killed; record again if the end of the motion matters",
            CUT_OFF,
        )


def _check_time_unit(recording: Recording) -> Iterator[Finding]:
    """Yield an error for samples far apart between which next to nothing moves, though much does in the end."""
    step = float(np.median(np.diff(recording.time)))
    if step < MIN_WRONG_UNIT_STEP_S or np.ptp(recording.position, axis=0).max() < MIN_WRONG_UNIT_TRAVEL:
        return
    travel = np.abs(np.diff(recording.position, axis=0))
    speed = float(np.percentile(travel.max(axis=1), 99.0)) / step
    for unit, factor in TIME_UNITS.items():
        plausible = speed * factor < MAX_SPEED and step / factor < MIN_WRONG_UNIT_STEP_S
        if speed < MAX_WRONG_UNIT_SPEED and plausible:
            yield Finding(
                "error",
                recording.source,
                f"its samples are {step:.3g} s apart, and no joint is faster than {speed:.2g} rad/s (m/s)",
                f"time must be in s; as {unit} it would make sense: divide it by {factor:g}",
                ABSURD,
            )
            return


def _check_stamps(recording: Recording, motion: bool) -> Iterator[Finding]:
    """Yield a finding about noise of the time stamps that another clock removes, or that spoils the motion."""
    times, fresh = judged_sample_times(recording)
    fault = times.fault()
    jitter = float(np.std(recording.time[fresh] - times.time)) / float(np.median(np.diff(times.time)))
    if fault or (times.mended and jitter > MIN_REPORTED_JITTER):
        severity: Severity = "error" if fault and motion else "warning"
        yield Finding(severity, recording.source, fault or times.reason, STAMPS_FIX, STAMPS)


def _check_gaps(recording: Recording) -> Iterator[Finding]:
    """Yield a warning about lost samples; without a regular clock only a long step is a gap."""
    steps = np.diff(recording.time)
    step = float(np.median(steps))
    regular = np.mean(np.abs(steps - step) < step / 4) >= REGULAR_STEPS
    smallest = MIN_GAP_STEPS * step if regular else max(MIN_IRREGULAR_GAP_STEPS * step, MIN_IRREGULAR_GAP_S)
    gaps = np.flatnonzero(steps > smallest)
    if gaps.size:
        longest = gaps[np.argmax(steps[gaps])]
        lost = np.sum(np.round(steps[gaps] / step) - 1)
        yield Finding(
            "warning",
            recording.source,
            f"{gaps.size} gaps, about {lost:.0f} samples lost; the longest is {steps[longest] * 1e3:.0f} ms at "
            f"t = {recording.time[longest]:.3f} s, where the step is {step * 1e3:.3g} ms",
            "record with a deep queue and reliable QoS, on a machine with time to spare",
            GAPS,
        )


def _check_repetition(recording: Recording) -> Iterator[Finding]:
    """Yield a warning about repeated rows while the robot moves; at rest, coarse sensors repeat themselves too."""
    channels = (recording.position, recording.velocity, recording.torque)
    complete = [
        np.all([np.isfinite(channel[rows]).all(axis=0) for rows in row_blocks(len(channel))], axis=0)
        for channel in channels
    ]
    columns = [channel[:, j] for channel, known in zip(channels, complete, strict=True) for j in np.flatnonzero(known)]
    position = recording.position
    travel = np.concatenate(
        [
            np.abs(position[SPEED_ROWS:][rows] - position[rows]).max(axis=1)
            for rows in row_blocks(len(position) - SPEED_ROWS)
        ]
    )
    moving = travel > MIN_MOVING_SPEED * (recording.time[SPEED_ROWS:] - recording.time[:-SPEED_ROWS])
    repeated = stale_rows(*columns)[SPEED_ROWS:][moving]
    if repeated.size >= FEW_SAMPLES and np.mean(repeated) > MAX_REPEATED_SHARE:
        yield Finding(
            "warning",
            recording.source,
            f"{100 * np.mean(repeated):.0f} % of its rows only repeat the row before, though the arm moves",
            "record as fast as the driver publishes, each message once; differentiate positions without these rows",
            REPEATED_ROWS,
        )
