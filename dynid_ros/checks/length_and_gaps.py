"""Too few samples, wrong clocks, gaps, repeated rows, and torques that are constant or zero for stretches."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb, erf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import ABSURD, REPEATED_ROWS, CheckSettings, Finding, Severity, recording_check
from dynid_ros.files.disk_arrays import read_column, row_blocks
from dynid_ros.recording.recording import Recording
from dynid_ros.recording.uniform_motion import judged_sample_times
from dynid_ros.signals import stale_rows
from dynid_ros.signals.resampling import STAMPS_FIX
from dynid_ros.signals.spectra import true_runs

FROZEN: Final = "frozen torque"
MIN_STRETCH_S = 0.05
"""Shortest stretch of a constant torque; drops to zero may be shorter."""
MIN_STRETCH_SAMPLES = 10
"""Smallest number of samples in a stretch; drops to zero may have fewer."""
MIN_MOTION = 0.01
"""Smallest motion of the arm meanwhile, rad or m."""
NEIGHBOURING_SAMPLES = 40
"""Number of samples on each side that show how the channel varies there."""
NOISE_ORDER = 3
"""Order of the differences that show the noise."""
MIN_ALTERNATING_SHARE = 0.5
"""Smallest share of these differences that change sign, for noise."""
MAX_PROBABILITY = 1e-8
"""Largest probability that noise repeats one value for so long, for a stretch that is constant by a fault."""
MIN_NOISE_STEPS = 2.5
"""Smallest range of the noise, in steps of the sensor: two, and a half for rounding."""
MIN_JUMP_RATIO = 4.0
"""Smallest jump after a stretch without noise, as a multiple of the typical step."""
REVERSAL_SAMPLES = 3
"""Number of samples about the end of a stretch within which a joint that reverses, starts or stops explains a jump."""
MIN_DROP_STEPS = 8.0
"""Smallest torque next to a drop to zero, in typical steps."""
MIN_DROPS = 3
"""Smallest number of drops to zero that are not by chance."""
MIN_DROP_FRACTION = 0.02
"""Smallest torque next to a drop to zero, as a fraction of the joint's largest."""


@recording_check(rank=30)
def check_torque_stretches(recording: Recording, _settings: CheckSettings) -> Iterator[Finding]:
    """Yield a warning for each joint whose torque is constant while the arm moves, or drops to zero."""
    if recording.n_samples < 2 * NEIGHBOURING_SAMPLES:
        return
    for j, joint in enumerate(recording.joint_names):
        torque = read_column(recording.torque, j)
        if not np.isfinite(torque).any() or np.nanmin(torque) == np.nanmax(torque):
            continue
        drops = _find_drops(recording, torque)
        frozen = [] if drops else _find_frozen(recording, j, torque)
        for stretches, what in ((drops, "falls to exactly 0"), (frozen, "stands still")):
            if stretches:
                samples = sum(last - first for first, last in stretches)
                plural = "es" if len(stretches) > 1 else ""
                yield Finding(
                    "warning",
                    f"{recording.source}, joint '{joint}'",
                    f"its torque {what} in {len(stretches)} stretch{plural}, {samples} samples "
                    f"({100 * samples / len(torque):.2g} %) while the arm moves, first at "
                    f"t = {recording.time[stretches[0][0]]:.3f} s",
                    "the sensor or its connection fails for moments: mend it, or leave these samples out",
                    FROZEN,
                )


def _find_frozen(recording: Recording, j: int, torque: NDArray) -> list[tuple[int, int]]:
    """Return the stretches, first sample and end, in which joint j's torque (N,) is constant by a fault."""
    steps = np.abs(np.diff(torque))
    resolution = float(np.min(steps[steps > 0]))
    # An extreme is a limit, which `check_channels` judges.
    limits = np.nanmin(torque), np.nanmax(torque)
    stretches = [(first, last + 1) for first, last in true_runs(steps == 0) if torque[first] not in limits]
    return [stretch for stretch in stretches if _is_frozen(recording, j, resolution, *stretch)]


def _is_frozen(recording: Recording, j: int, resolution: float, first: int, last: int) -> bool:
    """Return whether joint j's torque, in steps of `resolution` N m, is constant by a fault in a stretch of samples."""
    if last - first < MIN_STRETCH_SAMPLES or recording.time[last - 1] - recording.time[first] < MIN_STRETCH_S:
        return False
    torque = recording.torque[:, j]
    position = recording.position[first:last]
    moved = np.ptp(position, axis=0)
    # A repeated row shows nothing about this channel.
    fresh = np.count_nonzero(np.any(np.diff(position, axis=0) != 0, axis=1)) >= MIN_STRETCH_SAMPLES // 2
    if not fresh or moved.max() < MIN_MOTION:
        return False
    around = [torque[max(0, first - NEIGHBOURING_SAMPLES) : first], torque[last : last + NEIGHBOURING_SAMPLES]]
    around = [values for values in around if len(values) > NEIGHBOURING_SAMPLES // 4 and np.isfinite(values).all()]
    if not around:
        return False
    if max(_repetition_probability(values, resolution, last - first) for values in around) < MAX_PROBABILITY:
        return True
    # Without noise, a stretch is a fault if the torque jumps afterwards while no joint reverses.
    steps = np.abs(np.concatenate([np.diff(values) for values in around]))
    if last == len(torque) or not np.any(steps):
        return False
    near = np.diff(recording.position[max(first, last - REVERSAL_SAMPLES) : last + REVERSAL_SAMPLES], axis=0)
    reverses = (near.min(axis=0) * near.max(axis=0) <= 0) & (near.min(axis=0) < near.max(axis=0))
    steady = not reverses[j] if moved[j] > MIN_MOTION else not reverses.any()
    # A single sample after which the torque rests as before is no jump.
    jump = np.min(np.abs(torque[last : last + 2] - torque[first]))
    return bool(steady and jump > MIN_JUMP_RATIO * np.median(steps[steps > 0]))


def _repetition_probability(values: NDArray, resolution: float, length: int) -> float:
    """Return the probability that a channel with the noise of these values (N,) repeats one value so often.

    Whatever the mean, independent Gaussian noise rounds to the same value with a probability of at most
    erf(resolution / (2 sqrt(2) sigma)). The probability is 1 without noise.
    """
    steps = np.diff(values)
    # Noise below the resolution shows only where the mean lies between two steps of the sensor.
    if np.ptp(values) < MIN_NOISE_STEPS * resolution:
        return 1.0
    differences = np.diff(steps, NOISE_ORDER - 1)
    if np.mean(differences[1:] * differences[:-1] < 0) < MIN_ALTERNATING_SHARE:
        return 1.0
    sigma = np.median(np.abs(differences)) / 0.6745 / np.sqrt(comb(2 * NOISE_ORDER, NOISE_ORDER))
    if not sigma:
        return 1.0
    # A value that the sensor holds for several samples counts once.
    held = len(values) / (1 + np.count_nonzero(steps))
    return float(erf(resolution / (2 * np.sqrt(2) * sigma)) ** (length / held))


def _find_drops(recording: Recording, torque: NDArray) -> list[tuple[int, int]]:
    """Return the stretches of exact zeros between torques far from zero, while the arm moves, if there are enough."""
    zero = torque == 0
    if not zero.any() or zero.all():
        return []
    steps = np.abs(np.diff(torque[~zero]))
    typical = float(np.nanmedian(steps[steps > 0])) if np.any(steps > 0) else 0.0
    far = max(MIN_DROP_STEPS * typical, MIN_DROP_FRACTION * float(np.nanmax(np.abs(torque))))
    drops = []
    for first, last in true_runs(zero):
        around = [torque[k] for k in (first - 1, last) if 0 <= k < len(torque)]
        passes_through = not (min(around) > far or max(around) < -far)
        near = slice(max(0, first - NEIGHBOURING_SAMPLES), last + NEIGHBOURING_SAMPLES)
        if not passes_through and np.ptp(recording.position[near], axis=0).max() > MIN_MOTION:
            drops.append((int(first), int(last)))
    long = any(last - first >= MIN_STRETCH_SAMPLES for first, last in drops)
    return drops if len(drops) >= MIN_DROPS or long else []


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
