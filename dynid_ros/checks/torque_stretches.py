"""Torques that stand still, or fall to exactly zero, for stretches of the motion."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb, erf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import Finding
from dynid_ros.recording.recording import Recording
from dynid_ros.signals.spectra import true_runs

FROZEN: Final = "frozen torque"
MIN_STRETCH_S = 0.05
"""Shortest stretch, s; drops to zero may be shorter."""
MIN_STRETCH_SAMPLES = 10
"""Smallest number of samples in a stretch; drops to zero may have fewer."""
MIN_MOTION = 0.01
"""The arm moves by more meanwhile, rad or m."""
NEIGHBOURING_SAMPLES = 40
"""Samples on each side that say how the channel varies there."""
ORDER, ZIGZAG = 3, 0.5
"""Noise is what the differences of this order show; they are noise where more of them turn back."""
BY_CHANCE = 1e-8
"""A stretch is of noise that stood still if noise repeats itself so long with less probability."""
FEWEST_STEPS = 2.5
"""Steps of the sensor, and half a one for rounding, that noise must span to be known."""
JUMP, TURN = 4.0, 3
"""With less noise: after a stretch the torque jumps by more than so many of its typical steps, and no joint that could
make it jump turns back, starts or stops within so many samples."""
MIN_DROP_STEPS = 8.0
"""Drops to zero come from torques so many typical steps away."""
MIN_DROPS = 3
"""So many drops to zero are not by chance."""
MIN_DROP_FRACTION = 0.02
"""They come from torques beyond this part of the joint's largest."""


def check_torque_stretches(recording: Recording) -> Iterator[Finding]:
    """A warning for each joint whose torque stands still while the arm moves, or drops to zero."""
    if recording.n_samples < 2 * NEIGHBOURING_SAMPLES:
        return
    for j, joint in enumerate(recording.joint_names):
        torque = recording.torque[:, j]
        if not np.isfinite(torque).any() or np.nanmin(torque) == np.nanmax(torque):
            continue
        where = f"{recording.source}, joint '{joint}'"
        drops = _drops(recording, torque)
        # An extreme is a limit, judged elsewhere.
        limits = np.nanmin(torque), np.nanmax(torque)
        runs = [] if drops else [(a, b + 1) for a, b in true_runs(np.diff(torque) == 0) if torque[a] not in limits]
        resolution = _resolution(torque)
        frozen = [run for run in runs if _is_frozen(recording, j, resolution, *run)]
        for stretches, what in ((drops, "falls to exactly 0"), (frozen, "stands still")):
            if stretches:
                samples = sum(last - first for first, last in stretches)
                yield Finding(
                    "warning",
                    where,
                    f"its torque {what} in {len(stretches)} stretch{'es' * (len(stretches) > 1)}, {samples} samples "
                    f"({100 * samples / len(torque):.2g} %) while the arm moves, first at "
                    f"t = {recording.time[stretches[0][0]]:.3f} s",
                    "the sensor or its connection fails for moments: mend it, or leave these samples out",
                    FROZEN,
                )


def _is_frozen(recording: Recording, j: int, resolution: float, first: int, last: int) -> bool:
    """Whether joint j's torque, in steps of `resolution` N m, stands still from one sample to another by a fault."""
    if last - first < MIN_STRETCH_SAMPLES or recording.time[last - 1] - recording.time[first] < MIN_STRETCH_S:
        return False
    torque, position = recording.torque[:, j], recording.position[first:last]
    moved = np.ptp(position, axis=0)
    # A row that only comes again is no news of this channel.
    fresh = np.count_nonzero(np.any(np.diff(position, axis=0) != 0, axis=1)) >= MIN_STRETCH_SAMPLES // 2
    if not fresh or moved.max() < MIN_MOTION:
        return False
    around = [torque[max(0, first - NEIGHBOURING_SAMPLES) : first], torque[last : last + NEIGHBOURING_SAMPLES]]
    around = [values for values in around if len(values) > NEIGHBOURING_SAMPLES // 4 and np.isfinite(values).all()]
    if not around:
        return False
    if max(_chance(values, resolution, last - first) for values in around) < BY_CHANCE:
        return True
    # Little noise, or none: then it stood still if it jumps afterwards, but not because a joint turns back.
    steps = np.abs(np.concatenate([np.diff(values) for values in around]))
    if last == len(torque) or not np.any(steps):
        return False
    near = np.diff(recording.position[max(first, last - TURN) : last + TURN], axis=0)
    turns = (near.min(axis=0) * near.max(axis=0) <= 0) & (near.min(axis=0) < near.max(axis=0))
    quiet = not turns[j] if moved[j] > MIN_MOTION else not turns.any()
    # Not for a sample alone, after which it rests as before.
    jump = np.min(np.abs(torque[last : last + 2] - torque[first]))
    return bool(quiet and jump > JUMP * np.median(steps[steps > 0]))


def _resolution(torque: NDArray) -> float:
    """Return the smallest step of a torque (N,) that is not constant, N m."""
    steps = np.abs(np.diff(torque))
    return float(np.min(steps[steps > 0]))


def _chance(values: NDArray, resolution: float, length: int) -> float:
    """Probability that a channel with the noise of these values repeats one value so often; 1 without noise.

    Whatever the mean, independent Gaussian noise rounds to the same value with erf(resolution / (2 sqrt(2) sigma)) at
    most.
    """
    steps = np.diff(values)
    # Noise below the resolution shows only where the mean lies between two steps of the sensor.
    if np.ptp(values) < FEWEST_STEPS * resolution:
        return 1.0
    high = np.diff(steps, ORDER - 1)
    if np.mean(high[1:] * high[:-1] < 0) < ZIGZAG:
        return 1.0
    sigma = np.median(np.abs(high)) / 0.6745 / np.sqrt(comb(2 * ORDER, ORDER))
    if not sigma:
        return 1.0
    # Values that the sensor gives several times are one.
    held = len(values) / (1 + np.count_nonzero(steps))
    return float(erf(resolution / (2 * np.sqrt(2) * sigma)) ** (length / held))


def _drops(recording: Recording, torque: NDArray) -> list[tuple[int, int]]:
    """Stretches of exact zeros between torques far from zero, while the arm moves; none if there are few."""
    zero = torque == 0
    if not zero.any() or zero.all():
        return []
    steps = np.abs(np.diff(torque[~zero]))
    typical = float(np.nanmedian(steps[steps > 0])) if np.any(steps > 0) else 0.0
    far = max(MIN_DROP_STEPS * typical, MIN_DROP_FRACTION * float(np.nanmax(np.abs(torque))))
    found = []
    for first, last in true_runs(zero):
        around = [torque[k] for k in (first - 1, last) if 0 <= k < len(torque)]
        # Not where it passes through zero.
        if not (min(around) > far or max(around) < -far):
            continue
        near = slice(max(0, first - NEIGHBOURING_SAMPLES), last + NEIGHBOURING_SAMPLES)
        if np.ptp(recording.position[near], axis=0).max() > MIN_MOTION:
            found.append((int(first), int(last)))
    long = any(last - first >= MIN_STRETCH_SAMPLES for first, last in found)
    return found if len(found) >= MIN_DROPS or long else []
