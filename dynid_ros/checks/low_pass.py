"""Low-passes that cut a recording before it was written: of the torques alone, or of everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import LOW_PASSED, Explanation, Finding
from dynid_ros.checks.motion_samples import MotionSamples, motion_samples
from dynid_ros.checks.torque_model import TorqueFit, TorqueModel, TorqueProblem
from dynid_ros.recording.recording import Recording
from dynid_ros.signals import Resampled
from dynid_ros.signals.driver_filter import DriverFilter
from dynid_ros.signals.spectra import power_density, squared_hann

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

MIN_RIGID_GAIN = 1.9
"""Smallest gain that a change of the torques must bring in two joints by rigid motion alone. In slow motion, unmodelled
friction reaches 1.8; faults that matter bring 2 and more."""
CUTOFF_FRACTIONS = (0.25, 0.5, 1.0)
"""Cutoff frequencies that are tried first, as fractions of the bandwidth of the positions."""
CUTOFF_REFINEMENTS = (1.4, 1.2, 1.1, 1.05)
"""Factors by which the best cutoff of each kind is multiplied or divided, one after the other."""
FILTERS = (
    DriverFilter(1.0, order=1, zero_phase=True),
    DriverFilter(1.0, order=4, zero_phase=True),
    DriverFilter(1.0, order=1),
    DriverFilter(1.0, order=2),
)
"""Kinds of filters that are tried, each at separate cutoff frequencies."""
MIN_FILTER_GAIN = 0.3
"""Smallest gain of a low-pass; sound recordings stay below 0.06."""
MIN_CERTAIN_GAIN = 1.0
"""Smallest gain, with presliding friction in the model, that exceeds the effect of noise of positions."""
MIN_SECOND_JOINT_GAIN = 0.1
"""Smallest gain of the joint with the second largest gain: a filter acts on all joints, friction on one."""
MIN_SURE_GAIN = 0.8
"""Smallest gain, after presliding friction and noise of positions, for which the identification of links applies the
filter by default. All 250 sound recordings, also with unmodelled friction, stay below 0.6."""
MIN_SURE_SECOND_GAIN = 0.4
"""Smallest second largest gain of a joint for the same purpose; sound recordings stay below 0.3."""
MAX_FILTER_SAMPLES = 1500
"""More samples than for other checks: thinning would fold higher frequencies."""
MOTION_POWER_SHARE = 0.99
"""Share of the power of the velocities that is the motion."""
NOISE_BANDWIDTH_RATIO = 2.5
"""Ratio of the bandwidths of accelerations and velocities above which the accelerations contain noise."""
ZERO_POWER_SHARE = 1e-9
"""Largest share of the power that counts as zero: sensors have more noise."""
MAX_CUTOFF_RATIO = 4.0
"""Largest cutoff frequency that does harm, as a multiple of the positions' bandwidth."""
MAX_CONTENTS_OF_NYQUIST = 0.8
"""Largest frequency of the contents that shows a low-pass, as a fraction of half the sampling rate."""
PERIODOGRAM_S = 8.0
"""Length of the averaged periodograms."""


def shows_in_rigid_torques(changed: NDArray, rigid: NDArray, fit: TorqueFit, moving: NDArray) -> bool:
    """Return whether a change of the rigid torques exceeds the residual in two judged joints, or in the only one.

    Args:
        changed: (M, n) changed rigid torques.
        rigid: (M, n) rigid torques.
        fit: fit with its residual.
        moving: (M, n) mask of the rows to use.
    """
    judged = np.isfinite(fit.rms)
    square = np.mean((changed - rigid)[:, judged] ** 2, axis=0, where=moving[:, judged])
    gains = np.zeros(len(judged))
    gains[judged] = 0.5 * np.log1p(square / np.maximum(fit.rms[judged] ** 2, np.finfo(float).tiny))
    return bool(np.sort(gains)[-2:][0] > MIN_RIGID_GAIN)


def check_contents(samples: MotionSamples, source: str) -> Iterator[Finding]:
    """Yield a warning if neither positions nor torques hold anything above the band of the motion.

    Half of the sampling rate is the highest possible frequency, and does not show a low-pass.
    """
    highest, part = max(((_highest_frequency(part), part) for part in samples.uniform.values()), key=lambda it: it[0])
    if highest < min(MAX_CUTOFF_RATIO * samples.bandwidth, MAX_CONTENTS_OF_NYQUIST * part.rate / 2):
        yield Finding(
            "warning",
            source,
            f"positions and torques hold nothing above {highest:.2g} Hz, not even noise: they were low-passed close to "
            "the band of the motion, which biases what is fitted",
            "record what the sensors give, and let the identification filter it",
            LOW_PASSED,
        )


class TorqueLowPass(NamedTuple):
    """Low-pass of the torques within the band of the motion.

    Attributes:
        driver: filter that fits best.
        gain: gain of the model through the filter.
        sure: whether the identification of links may apply the filter by default.
    """

    driver: DriverFilter
    gain: float
    sure: bool


def low_pass_explanation(model: TorqueModel, samples: MotionSamples) -> Iterator[Explanation]:
    """Yield the explanation by a low-pass of the torques within the band of the motion."""
    low_pass = find_low_pass(model, samples)
    if low_pass is not None:
        option = f"torque_filter {low_pass.driver}"
        if low_pass.sure:
            option += " is what the identification of links takes by itself"
        yield Explanation(
            LOW_PASSED,
            low_pass.gain,
            f"the torques look low-passed at about {low_pass.driver.cutoff:.2g} Hz, which cuts the motion; positions "
            "are not",
            f"record torques without that filter, or pass the model through it: {option}",
            severity="warning",
        )


def find_low_pass(model: TorqueModel, samples: MotionSamples) -> TorqueLowPass | None:
    """Return the low-pass that cut the torques.

    Returns None if friction, noise of positions or nothing at all explains as much.
    """
    samples = samples.thinned(MAX_FILTER_SAMPLES)
    problem = TorqueProblem(model, samples)
    plain = _FilterSearch(problem)
    gain = problem.fit.misfit - plain.best()[1].misfit
    if gain <= MIN_FILTER_GAIN:
        return None
    # Friction that builds up slowly looks low-passed.
    search = _FilterSearch(problem.presliding)
    driver, fit = search.refined()
    # Noise of the positions looks low-passed too. Torques that were not, passed through the same filter, show it.
    both = search.through(driver, search.filtered(samples.torque, driver))
    given = min(both, problem.presliding.fit, key=lambda fit: fit.misfit)
    gain_beside_noise = given.misfit - fit.misfit
    second_gain = given.shared_gain(fit)
    sure = gain_beside_noise > MIN_SURE_GAIN and second_gain > MIN_SURE_SECOND_GAIN
    if not sure:
        columns = problem.terms.rigid
        rigid = columns @ fit.rigid[: columns.shape[2]]
        if not shows_in_rigid_torques(search.filtered(rigid, driver), rigid, fit, problem.terms.moving):
            return None
        certain = problem.presliding.fit.misfit - fit.misfit > MIN_CERTAIN_GAIN
        shared = gain_beside_noise > MIN_FILTER_GAIN and second_gain > MIN_SECOND_JOINT_GAIN
        if not certain and not shared:
            return None
        # Most of the accelerations may be noise of positions. A filter that cuts noise does not cut the motion.
        band = _motion_band(samples)
        noisy = samples.bandwidth > NOISE_BANDWIDTH_RATIO * band
        if noisy and driver.cutoff is not None and driver.cutoff > band:
            return None
    return TorqueLowPass(driver, max(gain, problem.fit.misfit - plain.through(driver).misfit), sure)


def sure_low_pass(robot: RobotModel, recordings: Sequence[Recording]) -> DriverFilter | None:
    """Return the low-pass that surely cut the torques of recordings, with the robot's joints in its order, or None."""
    samples = motion_samples(recordings)
    low_pass = None if samples is None else find_low_pass(TorqueModel(robot), samples)
    return low_pass.driver if low_pass is not None and low_pass.sure else None


class _FilterSearch:
    """Search for the low-pass of the torques through which a model fits best."""

    def __init__(self, problem: TorqueProblem):
        self._terms = problem.terms
        self._samples = problem.samples

    def best(self) -> tuple[DriverFilter, TorqueFit]:
        """Return the best of the filters that are tried first, and its fit."""
        return min((self._best_of_kind(kind) for kind in FILTERS), key=lambda it: it[1].misfit)

    def refined(self) -> tuple[DriverFilter, TorqueFit]:
        """Return the best filter, each kind at its best cutoff frequency, and its fit."""
        candidates = []
        for kind in FILTERS:
            best = self._best_of_kind(kind)
            for factor in CUTOFF_REFINEMENTS:
                cutoff = best[0].cutoff or np.inf
                best = min(best, *self._fits(kind, (cutoff * factor, cutoff / factor)), key=lambda it: it[1].misfit)
            candidates.append(best)
        best = min(candidates, key=lambda it: it[1].misfit)
        return replace(best[0], cutoff=float(f"{best[0].cutoff:.3g}")), best[1]

    def through(self, low_pass: DriverFilter, torque: NDArray | None = None) -> TorqueFit:
        """Fit the model through a filter; positions may have passed it too, which leaves the steps of friction.

        Args:
            low_pass: filter of the driver.
            torque: (M, n) torques; None: as recorded.
        """
        terms = self._terms if torque is None else replace(self._terms, torque=torque)
        only_drive = replace(terms, drive=self.filtered(terms.drive, low_pass))
        both = replace(only_drive, rigid=self.filtered(terms.rigid, low_pass))
        return min(both.fit, only_drive.fit, key=lambda fit: fit.misfit)

    def filtered(self, columns: NDArray, low_pass: DriverFilter) -> NDArray:
        """Return columns (M, …) through a filter, stretch by stretch."""
        parts = []
        for time, part in self._samples.by_stretch(columns):
            rate = 1 / (time[1] - time[0]) if len(time) > 1 else np.inf
            parts.append(low_pass.filter(part, rate))
        return np.concatenate(parts)

    def _best_of_kind(self, kind: DriverFilter) -> tuple[DriverFilter, TorqueFit]:
        cutoffs = [fraction * self._samples.bandwidth for fraction in CUTOFF_FRACTIONS]
        return min(self._fits(kind, cutoffs), key=lambda it: it[1].misfit)

    def _fits(self, kind: DriverFilter, cutoffs: Sequence[float]) -> list[tuple[DriverFilter, TorqueFit]]:
        filters = [replace(kind, cutoff=cutoff) for cutoff in cutoffs]
        return [(low_pass, self.through(low_pass)) for low_pass in filters]


def _motion_band(samples: MotionSamples) -> float:
    """Return the frequency below which each joint has most of the power of its velocity, Hz."""
    bands = []
    for j in np.flatnonzero(samples.moving.any(axis=0)):
        stretch = max(samples.stretches, key=lambda s: float(np.sum(s.velocity[:, j] ** 2)))
        rate = 1 / (stretch.time[1] - stretch.time[0])
        frequency, density = power_density(stretch.velocity[:, [j]], rate, np.ones(len(stretch.time)), degree=0)
        power = np.cumsum(density)
        bands.append(float(frequency[np.searchsorted(power, MOTION_POWER_SHARE * power[-1])]))
    return max(bands, default=0.0)


def _highest_frequency(uniform: Resampled) -> float:
    """Return the frequency above which no channel holds anything, Hz."""
    longest = max((s.values for s in uniform.segments), key=len)
    window = squared_hann(min(len(longest), int(PERIODOGRAM_S * uniform.rate)))
    frequency, density = power_density(longest, uniform.rate, window)
    above = np.cumsum(density[::-1], axis=0)[::-1] > ZERO_POWER_SHARE * density.sum(axis=0)
    return float(frequency[np.max(np.flatnonzero(above.any(axis=1)), initial=0)])
