"""Recordings that a low-pass has cut before: of the torques alone, or of everything."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.signal import welch
from scipy.signal.windows import hann

from dynid_ros.recording.explanation import Explanation
from dynid_ros.recording.finding import Finding
from dynid_ros.recording.motion_samples import MotionSamples
from dynid_ros.recording.torque_fit import Terms, TorqueEquations, TorqueModel
from dynid_ros.signals import LowPass, Resampled

LOW_PASSED: Final = "low-passed"
CUTOFFS = (0.2, 0.3, 0.4, 0.5, 0.7)
"""Cut-offs that are tried, in parts of the bandwidth of the positions, each with both orders."""
ORDERS = (1, 4)
SEEN = 0.3
"""Gain from which the model fits better through a low-pass; sound recordings stay below 0.06."""
SAMPLES = 3000
"""More than elsewhere: thinning would fold what is above the cut-off."""
NOTHING = 1e-9
"""Part of the power that counts as none: sensors have more noise."""
CLOSE = 4.0
"""A low-pass does harm if it ends so close above the motion, in parts of the positions' bandwidth."""
RESOLUTION = 8.0
"""Length of the averaged periodograms, s."""


def check_contents(samples: MotionSamples, source: str) -> Iterator[Finding]:
    """A warning if neither positions nor torques hold anything above the band of the motion."""
    highest = max(_contents(part) for part in samples.uniform.values())
    if highest < CLOSE * samples.bandwidth:
        yield Finding(
            "warning",
            source,
            f"positions and torques hold nothing above {highest:.2g} Hz, not even noise: they were low-passed close to "
            "the band of the motion, which biases what is fitted",
            "record what the sensors give, and let the identification filter it",
            LOW_PASSED,
        )


def low_pass_explanation(model: TorqueModel, samples: MotionSamples) -> Iterator[Explanation]:
    """What a low-pass of the torques within the band of the motion would explain."""
    samples = samples.thinned(SAMPLES)
    terms = model.terms(samples)

    def misfit(rigid: NDArray, drive: NDArray) -> float:
        equations = TorqueEquations(Terms(rigid, drive, terms.moving), samples.torque, model.robot.chain.prismatic)
        return equations.fit().misfit

    misfits = {}
    for cutoff, order in product(CUTOFFS, ORDERS):
        low_pass = cutoff * samples.bandwidth, order
        drive = _filtered(samples, terms.drive, *low_pass)
        # Positions that were low-passed too leave only the steps of friction to be so.
        misfits[low_pass] = min(misfit(_filtered(samples, terms.rigid, *low_pass), drive), misfit(terms.rigid, drive))
    best = min(misfits, key=lambda low_pass: misfits[low_pass])
    gain = misfit(terms.rigid, terms.drive) - misfits[best]
    if gain > SEEN:
        yield Explanation(
            LOW_PASSED,
            gain,
            f"the torques look low-passed at about {best[0]:.2g} Hz, which cuts the motion; positions are not",
            "record torques without that filter, or low-pass positions by the same one",
            severity="warning",
        )


def _filtered(samples: MotionSamples, columns: NDArray, cutoff: float, order: int) -> NDArray:
    parts = []
    first = 0
    for stretch in samples.stretches:
        time = stretch.time[stretch.kept]
        part = columns[first : first + len(time)]
        first += len(time)
        rate = 1 / (time[1] - time[0]) if len(time) > 1 else np.inf
        parts.append(LowPass(min(cutoff, 0.45 * rate), rate, order).filter(part) if len(time) > 1 else part)
    return np.concatenate(parts)


def _contents(uniform: Resampled) -> float:
    """Frequency above which no channel holds anything, Hz."""
    longest = max((s.values for s in uniform.segments), key=len)
    window = hann(min(len(longest), int(RESOLUTION * uniform.rate)), sym=False) ** 2
    frequency, density = welch(longest, uniform.rate, window, axis=0, detrend="linear")
    above = np.cumsum(density[::-1], axis=0)[::-1] > NOTHING * density.sum(axis=0)
    return float(frequency[np.max(np.flatnonzero(above.any(axis=1)), initial=0)])
