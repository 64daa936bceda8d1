"""Torques that are constant, or fall to exactly zero, for stretches of the motion."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb, erf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import CheckSettings, Finding, recording_check
from dynid_ros.files.disk_arrays import read_column
from dynid_ros.recording.recording import Recording
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
