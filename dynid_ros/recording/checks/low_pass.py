"""Recordings that a low-pass has cut before: of the torques alone, or of everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.recording.checks.finding import LOW_PASSED, Explanation, Finding
from dynid_ros.recording.checks.torque_fit import (
    MotionSamples,
    Terms,
    TorqueEquations,
    TorqueFit,
    TorqueModel,
    TorqueProblem,
    motion_samples,
)
from dynid_ros.recording.recording import Recording
from dynid_ros.signals import Resampled
from dynid_ros.signals.driver_filter import DriverFilter
from dynid_ros.signals.spectra import power_density, squared_hann

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

MIN_RIGID_GAIN = 1.9
"""Gain that what is done to the torques must bring in two joints by rigid motion alone. In slow motion, friction that
no model has gets as far as 1.8; faults that matter bring 2 and more."""


def shows_in_rigid_torques(changed: NDArray, rigid: NDArray, fit: TorqueFit, moving: NDArray) -> bool:
    """Whether what turns the rigid torques (M, n) into `changed` shows above what the fit leaves.

    In two of the joints that are judged, or in the only one.
    """
    judged = np.isfinite(fit.rms)
    square = np.mean((changed - rigid)[:, judged] ** 2, axis=0, where=moving[:, judged])
    gains = np.zeros(len(judged))
    gains[judged] = 0.5 * np.log1p(square / np.maximum(fit.rms[judged] ** 2, np.finfo(float).tiny))
    return bool(np.sort(gains)[-2:][0] > MIN_RIGID_GAIN)


CUTOFF_FRACTIONS = (0.25, 0.5, 1.0)
"""Cut-offs that are tried first, in parts of the bandwidth of the positions."""
CUTOFF_REFINEMENTS = (1.4, 1.2, 1.1, 1.05)
"""Factors by which the best of each kind is then moved, either way, one after the other."""
FILTERS = (
    DriverFilter(1.0, order=1, zero_phase=True),
    DriverFilter(1.0, order=4, zero_phase=True),
    DriverFilter(1.0, order=1),
    DriverFilter(1.0, order=2),
)
"""Kinds that are tried, each at cut-offs of its own."""
MIN_FILTER_GAIN = 0.3
"""Gain from which the model fits better through a low-pass; sound recordings stay below 0.06."""
MIN_SURE_GAIN = 1.0
"""Gain, with friction that builds up allowed for, from which no noise of positions explains it."""
MIN_SECOND_JOINT_GAIN = 0.1
"""Gain of the second joint from which it is a filter and not one joint's friction."""
SURE_BETTER, SURE_SHARED = 0.8, 0.4
"""The two gains, friction that builds up and noise of positions allowed for, from which a model is passed through a
filter that nobody asked for. Of 250 sound recordings, of friction that no model has too, none has more than 0.6 and
0.3."""
MAX_SAMPLES = 1500
"""More than elsewhere: thinning would fold what is above the cut-off."""
MOTION_POWER_SHARE = 0.99
"""Part of the power of the velocities that is the motion."""
NOISE_BANDWIDTH_RATIO = 2.5
"""Accelerations hold noise if they reach so many times further."""
ZERO_POWER_SHARE = 1e-9
"""Part of the power that counts as none: sensors have more noise."""
MAX_CUTOFF_RATIO = 4.0
"""A low-pass does harm if it ends so close above the motion, in parts of the positions' bandwidth."""
MAX_CONTENTS_OF_NYQUIST = 0.8
"""… and below this part of half the sampling rate."""
PERIODOGRAM_S = 8.0
"""Length of the averaged periodograms, s."""


def check_contents(samples: MotionSamples, source: str) -> Iterator[Finding]:
    """Yield a warning if neither positions nor torques hold anything above the band of the motion.

    Half of the sampling rate is no low-pass: nothing can be held above.
    """
    highest, part = max(((_contents(part), part) for part in samples.uniform.values()), key=lambda pair: pair[0])
    if highest < min(MAX_CUTOFF_RATIO * samples.bandwidth, MAX_CONTENTS_OF_NYQUIST * part.rate / 2):
        yield Finding(
            "warning",
            source,
            f"positions and torques hold nothing above {highest:.2g} Hz, not even noise: they were low-passed close to "
            "the band of the motion, which biases what is fitted",
            "record what the sensors give, and let the identification filter it",
            LOW_PASSED,
        )


class FoundLowPass(NamedTuple):
    """A low-pass of the torques within the band of the motion.

    Attributes:
        driver: the low-pass.
        gain: by how much better the model fits through it.
        sure: whether the model may be passed through it unasked.
    """

    driver: DriverFilter
    gain: float
    sure: bool


def low_pass_explanation(model: TorqueModel, samples: MotionSamples) -> Iterator[Explanation]:
    """What a low-pass of the torques within the band of the motion would explain."""
    found = find_low_pass(model, samples)
    if found is not None:
        way = f"torque_filter {found.driver}" + " is what the identification of links takes by itself" * found.sure
        yield Explanation(
            LOW_PASSED,
            found.gain,
            f"the torques look low-passed at about {found.driver.cutoff:.2g} Hz, which cuts the motion; positions are "
            "not",
            f"record torques without that filter, or pass the model through it: {way}",
            severity="warning",
        )


def find_low_pass(model: TorqueModel, samples: MotionSamples) -> FoundLowPass | None:
    """The low-pass that cut the torques; None where friction, noise of positions or nothing at all explains as much."""
    samples = samples.thinned(MAX_SAMPLES)
    problem = TorqueProblem(model, samples)
    plain = _Search(problem)
    gain = plain.given.misfit - plain.best()[1].misfit
    if gain <= MIN_FILTER_GAIN:
        return None
    # Friction that builds up slowly looks low-passed, and nothing else does.
    search = _Search(problem.presliding)
    found, fit = search.refined()
    # Noise of the positions does too: so the torques, if they were not, through the same low-pass.
    both = search.through(found, search.filtered(samples.torque, found))
    given = min(both, search.given, key=lambda fit: fit.misfit)
    better, shared = given.misfit - fit.misfit, given.shared_gain(fit)
    sure = better > SURE_BETTER and shared > SURE_SHARED
    if not sure:
        rigid = plain.terms.rigid @ fit.rigid[: plain.terms.rigid.shape[2]]
        if not shows_in_rigid_torques(search.filtered(rigid, found), rigid, fit, search.terms.moving):
            return None
        if search.given.misfit - fit.misfit <= MIN_SURE_GAIN and not (
            better > MIN_FILTER_GAIN and shared > MIN_SECOND_JOINT_GAIN
        ):
            return None
    # Noise of positions may be most of their accelerations: what cuts that does not cut the motion.
    band = _motion_band(samples)
    if (
        not sure
        and found.cutoff is not None
        and found.cutoff > band
        and samples.bandwidth > NOISE_BANDWIDTH_RATIO * band
    ):
        return None
    return FoundLowPass(found, max(gain, plain.given.misfit - plain.through(found).misfit), sure)


def sure_low_pass(robot: RobotModel, recordings: Sequence[Recording]) -> DriverFilter | None:
    """The low-pass that surely cut the torques of recordings with the robot's joints in its order, if one did."""
    samples = motion_samples(recordings)
    found = None if samples is None else find_low_pass(TorqueModel(robot), samples)
    return found.driver if found is not None and found.sure else None


class _Search:
    """Fits of the model through low-passes of the torques.

    Args:
        problem: torque problem without a low-pass.
    """

    def __init__(self, problem: TorqueProblem):
        self.terms = problem.terms
        self.given = problem.fit
        self._samples = problem.samples
        self._prismatic = problem.robot.chain.prismatic

    def best(self) -> tuple[DriverFilter, TorqueFit]:
        """The filter that fits best of all that are tried first, and the fit."""
        return min((self._best_of(kind) for kind in FILTERS), key=lambda it: it[1].misfit)

    def refined(self) -> tuple[DriverFilter, TorqueFit]:
        """The same, each kind at its best cut-off."""
        found = []
        for kind in FILTERS:
            best = self._best_of(kind)
            for factor in CUTOFF_REFINEMENTS:
                cutoff = best[0].cutoff or np.inf
                best = min(best, *self._fits(kind, (cutoff * factor, cutoff / factor)), key=lambda it: it[1].misfit)
            found.append(best)
        best = min(found, key=lambda it: it[1].misfit)
        return replace(best[0], cutoff=float(f"{best[0].cutoff:.3g}")), best[1]

    def _best_of(self, kind: DriverFilter) -> tuple[DriverFilter, TorqueFit]:
        cutoffs = [share * self._samples.bandwidth for share in CUTOFF_FRACTIONS]
        return min(self._fits(kind, cutoffs), key=lambda it: it[1].misfit)

    def _fits(self, kind: DriverFilter, cutoffs: Sequence[float]) -> list[tuple[DriverFilter, TorqueFit]]:
        filters = [replace(kind, cutoff=cutoff) for cutoff in cutoffs]
        return [(each, self.through(each)) for each in filters]

    def through(self, low_pass: DriverFilter, torque: NDArray | None = None) -> TorqueFit:
        """The fit through it; positions may have passed it too, which leaves the steps of friction."""
        torque = self._samples.torque if torque is None else torque
        drive, rigid = (self.filtered(columns, low_pass) for columns in (self.terms.drive, self.terms.rigid))
        fits = self._fit(rigid, drive, torque), self._fit(self.terms.rigid, drive, torque)
        return min(fits, key=lambda fit: fit.misfit)

    def _fit(self, rigid: NDArray, drive: NDArray, torque: NDArray) -> TorqueFit:
        return TorqueEquations(Terms(rigid, drive, self.terms.moving), torque, self._prismatic).fit()

    def filtered(self, columns: NDArray, low_pass: DriverFilter) -> NDArray:
        """The same shape (M, …)."""
        parts = []
        for time, part in self._samples.by_stretch(columns):
            rate = 1 / (time[1] - time[0]) if len(time) > 1 else np.inf
            parts.append(low_pass.filter(part, rate))
        return np.concatenate(parts)


def _motion_band(samples: MotionSamples) -> float:
    """Frequency below which each joint has most of the power of its velocity, Hz."""
    bands = []
    for j in np.flatnonzero(samples.moving.any(axis=0)):
        stretch = max(samples.stretches, key=lambda s: float(np.sum(s.velocity[:, j] ** 2)))
        rate = 1 / (stretch.time[1] - stretch.time[0])
        frequency, density = power_density(stretch.velocity[:, [j]], rate, np.ones(len(stretch.time)), degree=0)
        power = np.cumsum(density)
        bands.append(float(frequency[np.searchsorted(power, MOTION_POWER_SHARE * power[-1])]))
    return max(bands, default=0.0)


def _contents(uniform: Resampled) -> float:
    """Frequency above which no channel holds anything, Hz."""
    longest = max((s.values for s in uniform.segments), key=len)
    window = squared_hann(min(len(longest), int(PERIODOGRAM_S * uniform.rate)))
    frequency, density = power_density(longest, uniform.rate, window)
    above = np.cumsum(density[::-1], axis=0)[::-1] > ZERO_POWER_SHARE * density.sum(axis=0)
    return float(frequency[np.max(np.flatnonzero(above.any(axis=1)), initial=0)])
