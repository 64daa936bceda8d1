"""Lag between torques and positions, and low-passes that cut a recording: of the torques alone, or of everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import LAG, LOW_PASSED, Explanation, Finding
from dynid_ros.checks.jackknife import Change, Jackknife
from dynid_ros.checks.motion_samples import MAX_REST_SPEED, MotionSamples, motion_samples
from dynid_ros.checks.torque_model import TorqueFit, TorqueModel, TorqueProblem, TorqueTerms, fit_together
from dynid_ros.estimation.cross_validation import FoldGrams
from dynid_ros.estimation.normal_equations import Columns, NormalEquations
from dynid_ros.files.disk_arrays import read_column, row_blocks
from dynid_ros.recording.recording import Recording
from dynid_ros.recording.uniform_motion import MIN_CUTOFF_HZ
from dynid_ros.signals import Resampled
from dynid_ros.signals.driver_filter import (
    MIN_FILTER_GAIN_PER_JOINT,
    DriverFilter,
    FilterChoice,
    Passage,
    choose_driver_filter,
    filters_at,
)
from dynid_ros.signals.spectra import power_density, squared_hann

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

MIN_RIGID_GAIN = 1.9
"""Smallest gain that a change of the torques must bring in two joints by rigid motion alone. In slow motion, unmodelled
friction reaches 1.8; faults that matter bring 2 and more."""
SCREENED_CUTOFF_RATIOS = (0.25, 0.5, 1.0)
"""Cutoff frequencies that are fitted first, as ratios to the bandwidth of the positions."""
SCREENED_SMOOTHING_RATIOS = (2.0, 4.0)
"""Further cutoff frequencies of zero-phase filters: above the band of the motion they still smooth friction."""
SCREENED_KINDS = (
    DriverFilter(1.0, order=1, zero_phase=True),
    DriverFilter(1.0, order=4, zero_phase=True),
    DriverFilter(1.0, order=1),
    DriverFilter(1.0, order=2),
)
"""Kinds of filters that are fitted first. A filter that hardly fits better cannot predict much better."""
ROTOR_COLUMN = 2
"""Column of the rotor among the columns of a drive, which are in the order of `TorqueModel.terms`."""
MAX_FILTER_SAMPLES = 1500
"""More samples than for other checks: thinning would fold higher frequencies."""
FAST_SAMPLE_QUANTILE = 0.6
"""Quantile of speed above which a sample is fast: folds predict fast motion from slow motion."""
MOTION_POWER_SHARE = 0.99
"""Share of the power of the velocities that is the motion."""
NOISE_BANDWIDTH_RATIO = 2.5
"""Ratio of the bandwidths of accelerations and velocities above which the accelerations contain noise. A filter that
cuts noise of the positions does not cut the motion."""
ZERO_POWER_SHARE = 1e-9
"""Largest share of the power that counts as zero: sensors have more noise."""
MAX_CONTENTS_RATIO = 4.0
"""Largest cutoff frequency that does harm, as a multiple of the positions' bandwidth."""
MAX_CONTENTS_OF_NYQUIST = 0.8
"""Largest frequency of the contents that shows a low-pass, as a fraction of half the sampling rate."""
STEEP_END_SHARES = (1e-5, 1e-9)
"""Shares of a torque's power above the beginning and the end of the steep part of its spectrum."""
MAX_STEEP_END_RATIO = 3.0
"""Largest ratio of these frequencies behind a zero-phase low-pass: four recordings that were filtered have 1.4 to 2.0.
Torques of eight robots without such a filter have noise up to half of the sampling rate."""
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
    if highest < min(MAX_CONTENTS_RATIO * samples.bandwidth, MAX_CONTENTS_OF_NYQUIST * part.rate / 2):
        yield Finding(
            "warning",
            source,
            f"positions and torques hold nothing above {highest:.2g} Hz, not even noise: they were low-passed close to "
            "the band of the motion, which biases what is fitted",
            "record what the sensors give, and let the identification filter it",
            LOW_PASSED,
        )


def check_steep_end(samples: MotionSamples, source: str) -> Iterator[Finding]:
    """Yield a warning if all torques were low-passed below the smallest cutoff frequency of the equations of links."""
    driver = steep_end(samples)
    if driver is not None and driver.cutoff is not None and driver.cutoff < MIN_CUTOFF_HZ:
        yield Finding(
            "warning",
            source,
            f"torques end at about {driver.cutoff:.2g} Hz, without the noise that the positions have above it: they "
            "look low-passed without phase, which rounds the reversals of friction",
            "record torques without that filter, or pass the model through it, which the identification of links does "
            f"where held-out samples support it: torque_filter {driver}",
            LOW_PASSED,
        )


def low_pass_explanation(problem: TorqueProblem, samples: MotionSamples) -> Iterator[Explanation]:
    """Yield the explanation by a low-pass of the torques."""
    low_pass = find_low_pass(problem.model, samples)
    if low_pass is not None:
        driver = low_pass.choice.driver
        phase = "without phase" if driver.zero_phase else "by the driver"
        yield Explanation(
            LOW_PASSED,
            low_pass.gain,
            f"torques look low-passed {phase} at {driver.cutoff:.2g} Hz, order {driver.order}: through this filter the "
            f"model predicts held-out samples with {-np.expm1(-low_pass.choice.gain):.0%} less squared error",
            "record torques without that filter, or pass the model through it, which the identification of links does "
            f"where held-out samples support it: torque_filter {driver}",
            severity="warning",
        )


class TorqueLowPass(NamedTuple):
    """Low-pass that the torques seem to have passed.

    Attributes:
        choice: filter with its gain in prediction.
        gain: decrease of the misfit by the filter.
    """

    choice: FilterChoice
    gain: float


def find_low_pass(model: TorqueModel, samples: MotionSamples) -> TorqueLowPass | None:
    """Return the low-pass of the torques that held-out samples support, or None.

    Friction that builds up slowly looks low-passed, so the model contains presliding friction.
    """
    search = _LowPassedModels(TorqueProblem(model, samples.thinned(MAX_FILTER_SAMPLES)))
    start = search.screen()
    if start is None or not search.grams.folds:
        return None
    choice = choose_driver_filter(search.losses, search.grams, search.bandwidth, start)
    return None if choice is None else TorqueLowPass(choice, search.fit_gain(choice.driver))


def screen_low_pass(robot: RobotModel, recordings: Sequence[Recording]) -> tuple[DriverFilter, float] | None:
    """Return the low-pass that fits the torques best, and the bandwidth of the motion, Hz.

    Returns None if no low-pass can predict the torques better than models without one.

    Args:
        robot: the arm.
        recordings: recordings with the robot's joints in its order.
    """
    samples = motion_samples(recordings)
    if samples is None:
        return None
    search = _LowPassedModels(TorqueProblem(TorqueModel(robot), samples.thinned(MAX_FILTER_SAMPLES)))
    driver = search.screen() or steep_end(samples)
    return None if driver is None else (driver, search.bandwidth)


def steep_end(samples: MotionSamples) -> DriverFilter | None:
    """Return the zero-phase low-pass after which the spectra of all torques would end as they do, or None.

    Friction and noise fall off slowly: the power above a frequency f is proportional to about f⁻³. Behind a zero-phase
    low-pass of order 2 or more the remaining power falls by four orders of magnitude within an octave. Accelerations
    without noise, as of a simulation, or with the same end do not show a filter of the torques.
    """
    cutoffs = []
    for uniform in samples.uniform.values():
        position, torque = np.hsplit(max((s.values for s in uniform.segments), key=len), 2)
        frequency, density = _spectrum(torque, uniform.rate)
        above = np.cumsum(density[::-1], axis=0)[::-1]
        highest = 0.0
        for power in above[:, above[0] > 0].T:
            start, end = (frequency[np.flatnonzero(power > share * power[0])[-1]] for share in STEEP_END_SHARES)
            if end > min(MAX_STEEP_END_RATIO * start, MAX_CONTENTS_OF_NYQUIST * uniform.rate / 2):
                return None
            cutoffs.append(start)
            highest = max(highest, end)
        acceleration = frequency[:, None] ** 4 * _spectrum(position, uniform.rate)[1]
        noise = acceleration[frequency > highest].sum(axis=0)
        if not np.any(noise > STEEP_END_SHARES[0] * acceleration.sum(axis=0)):
            return None
    return DriverFilter(float(f"{np.median(cutoffs):.3g}"), order=4, zero_phase=True) if cutoffs else None


def _spectrum(values: NDArray, rate: float) -> tuple[NDArray, NDArray]:
    """Return frequencies (K,), Hz, and power densities (K, c) of uniform samples (N, c) at a rate, Hz."""
    return power_density(values, rate, squared_hann(min(len(values), round(PERIODOGRAM_S * rate))))


class _TermColumns(NamedTuple):
    """Columns of the torque model of each joint, see `NormalEquations`."""

    of_joint: list[NDArray]


class _LowPassedModels:
    """Torque models, with presliding friction, whose torque passes a filter.

    Args:
        problem: torque model of a recording.

    Attributes:
        bandwidth: bandwidth of the motion without noise of the positions, Hz.
    """

    def __init__(self, problem: TorqueProblem):
        self._plain = problem
        self._samples = problem.samples
        self._n_link_columns = problem.terms.rigid.shape[2]
        band = _motion_band(problem.samples)
        noisy = problem.samples.bandwidth > NOISE_BANDWIDTH_RATIO * band
        self.bandwidth = band if noisy else problem.samples.bandwidth

    @cached_property
    def _terms(self) -> TorqueTerms:
        """Columns with presliding friction."""
        return self._plain.presliding.terms

    def screen(self) -> DriverFilter | None:
        """Return the filter that fits best, or None if its gain is below that which a filter must have."""
        drivers = filters_at(SCREENED_KINDS, self.bandwidth, SCREENED_CUTOFF_RATIOS, SCREENED_SMOOTHING_RATIOS)
        plain = self._plain.terms
        filtered = fit_together(self._filtered(plain, Passage(driver)).equations for driver in drivers)
        fits = [fit.misfit for fit in filtered]
        driver = drivers[int(np.argmin(fits))]
        # The misfit is half the logarithm of the squared error.
        required = 0.5 * MIN_FILTER_GAIN_PER_JOINT * max(len(plain.equations.judged) - 1, 1)
        if plain.fit.misfit - min(fits) < required:
            return None
        rival = Passage(driver.causal_above(self.bandwidth), of_friction_alone=True)
        friction_alone = self._through(rival).fit
        without = min(self._terms.fit.misfit, friction_alone.misfit)
        return driver if without - self._through(Passage(driver)).fit.misfit >= required else None

    def fit_gain(self, driver: DriverFilter) -> float:
        """Return the decrease of the misfit by a filter, with or without presliding friction, whichever is larger."""
        plain = self._filtered(self._plain.terms, Passage(driver)).fit
        return max(
            self._plain.fit.misfit - plain.misfit,
            self._terms.fit.misfit - self._through(Passage(driver)).fit.misfit,
        )

    @cached_property
    def grams(self) -> FoldGrams:
        """Normal equations of the folds without a filter."""
        return self._grams(self._terms)

    def losses(self, passages: Sequence[Passage]) -> list[NDArray]:
        """Return the mean squared errors on held-out samples (F, n), with the systematic error, of each hypothesis."""
        n_link_columns = self._terms.rigid.shape[2]
        n = self._terms.torque.shape[1]
        size = n_link_columns + n + n * self._terms.drive.shape[2]
        nonnegative = np.arange(size) >= n_link_columns + n
        penalty = np.zeros((size, size))
        judged = np.isin(np.arange(n), self._terms.equations.judged)
        floor = self._terms.equations.floor
        losses = []
        for passage in passages:
            grams = self._grams(self._through(passage)) if passage.driver else self.grams
            error = grams.losses(np.arange(size), penalty, np.zeros(size), nonnegative) * grams.noise**2
            losses.append(np.where(judged, error + floor**2, 1.0))
        return losses

    def _through(self, passage: Passage) -> TorqueTerms:
        return self._filtered(self._terms, passage)

    def _filtered(self, terms: TorqueTerms, passage: Passage) -> TorqueTerms:
        if passage.driver is None:
            return terms
        rigid = self._pass(terms.rigid, passage.driver)
        drive = self._pass(terms.drive, passage.driver)
        if passage.of_friction_alone:
            rigid[:, :, : self._n_link_columns] = terms.rigid[:, :, : self._n_link_columns]
            drive[:, :, ROTOR_COLUMN] = terms.drive[:, :, ROTOR_COLUMN]
        return replace(terms, rigid=rigid, drive=drive)

    def _pass(self, columns: NDArray, driver: DriverFilter) -> NDArray:
        """Return columns (M, …) through a filter, stretch by stretch."""
        parts = []
        for time, part in self._samples.by_stretch(columns):
            rate = 1 / (time[1] - time[0]) if len(time) > 1 else np.inf
            parts.append(driver.filter(part, rate))
        return np.concatenate(parts)

    def _grams(self, terms: TorqueTerms) -> FoldGrams:
        """Return the normal equations of the folds of a model."""
        n = terms.torque.shape[1]
        k = terms.drive.shape[2]
        links = np.arange(terms.rigid.shape[2])
        first_drive = len(links) + n
        columns = _TermColumns(
            [
                np.array([*links, len(links) + j, *range(first_drive + j * k, first_drive + (j + 1) * k)])
                for j in range(n)
            ]
        )
        parts, recording = np.unique(self._samples.part, return_inverse=True)
        factors = NormalEquations(cast("Columns", columns), np.bincount(recording))
        group_of_first = np.cumsum([0, *factors.stretches])
        velocity = self._samples.velocity
        speed = np.max(np.abs(velocity) / np.maximum(velocity.std(axis=0), MAX_REST_SPEED), axis=1)
        fast = speed >= np.quantile(speed, FAST_SAMPLE_QUANTILE)
        for part in range(len(parts)):
            rows = np.flatnonzero(recording == part)
            stretch = np.arange(len(rows)) * factors.stretches[part] // len(rows)
            group = 2 * (group_of_first[part] + stretch) + fast[rows]
            for label in np.unique(group):
                own = rows[group == label]
                moving = terms.moving[own]
                matrices = [
                    np.column_stack([terms.rigid[own, j], np.ones(len(own)), terms.drive[own, j]]) * moving[:, [j]]
                    for j in range(n)
                ]
                factors.add(int(label), matrices, terms.torque[own] * moving)
        fit = self._terms.fit
        return FoldGrams(factors, np.hypot(np.where(np.isfinite(fit.rms), fit.rms, 1.0), self._terms.equations.floor))


def _motion_band(samples: MotionSamples) -> float:
    """Return the frequency below which each joint has most of the power of its velocity, Hz."""
    energy = np.array(
        [
            sum(np.sum(stretch.velocity[rows] ** 2, axis=0) for rows in row_blocks(len(stretch.time)))
            for stretch in samples.stretches
        ]
    )
    bands = []
    for j in np.flatnonzero(samples.moving.any(axis=0)):
        stretch = samples.stretches[int(np.argmax(energy[:, j]))]
        velocity = read_column(stretch.velocity, int(j))
        power = np.cumsum(np.abs(np.fft.rfft(velocity - velocity.mean())) ** 2)
        bin_width = 1 / (len(velocity) * (stretch.time[1] - stretch.time[0]))
        bands.append(float(bin_width * np.searchsorted(power, MOTION_POWER_SHARE * power[-1])))
    return max(bands, default=samples.bandwidth)


def _highest_frequency(uniform: Resampled) -> float:
    """Return the frequency above which no channel holds anything, Hz."""
    frequency, density = _spectrum(max((s.values for s in uniform.segments), key=len), uniform.rate)
    above = np.cumsum(density[::-1], axis=0)[::-1] > ZERO_POWER_SHARE * density.sum(axis=0)
    return float(frequency[np.max(np.flatnonzero(above.any(axis=1)), initial=0)])


MAX_TRIED_LAG_S = 0.3
TRIED_STEP_S = 0.03
REFINED_STEP_FRACTION = 0.2
"""Step of the second search, as a fraction of the first."""
MIN_LAG_S = 0.01
"""Smallest lag to report: filters in the drives of sound recordings make up to 7 ms."""
MIN_EXAMINED_GAIN = 0.04
"""Smallest gain for which a lag is examined further: friction that the model lacks can simulate it."""
MIN_SECOND_JOINT_GAIN = 0.15
"""Smallest gain of the joint with the second largest gain."""
MIN_CERTAIN_GAIN = 1.2
"""Smallest gain, with presliding friction in the model, of a lag that the jackknife may confirm: in slow motion
friction simulates 0.8."""
HALF_DERIVATIVE_STEP_S = 0.005
"""Half of the time over which torques are differentiated."""
MIN_FIRST_ORDER_FRACTION = 0.5
"""Smallest first-order estimate of a lag, as a fraction of the lag: for fast motion it is too small."""
MIN_MOVING_JOINTS = 2
"""A single moving joint shows the lag of its friction only."""


def lag_explanation(problem: TorqueProblem) -> Iterator[Explanation]:
    """Yield the lag of the torques that fits them best, if it is long enough to matter."""
    samples = problem.samples
    if np.count_nonzero(np.isfinite(problem.fit.rms)) < MIN_MOVING_JOINTS:
        return
    lag, fit = _best_lag(problem)
    gain = problem.fit.misfit - fit.misfit
    if abs(lag) < MIN_LAG_S or gain < MIN_EXAMINED_GAIN:
        return
    # A lag of friction alone is friction that builds up; the rigid torques must show the lag as well.
    presliding = problem.presliding
    lag, fit = _best_lag(presliding)
    if abs(lag) < MIN_LAG_S or presliding.fit.shared_gain(fit) < MIN_SECOND_JOINT_GAIN:
        return
    columns = problem.terms.rigid
    rigid = columns @ fit.rigid[: columns.shape[2]]
    if shows_in_rigid_torques(samples.shifted(rigid, lag), rigid, fit, problem.terms.moving) or (
        presliding.fit.misfit - fit.misfit >= MIN_CERTAIN_GAIN and _is_certain(jackknifed_lag(presliding), lag)
    ):
        later, earlier = ("torques", "positions") if lag > 0 else ("positions", "torques")
        at_least = "at least " if abs(lag) > MAX_TRIED_LAG_S - TRIED_STEP_S else ""
        yield Explanation(
            LAG,
            gain,
            f"{later} come {at_least}{abs(lag) * 1e3:.0f} ms after the {earlier} that they belong to",
            "take both from one message with one time stamp and without a filter in between, or shift one of them",
            severity="warning",
        )


def jackknifed_lag(problem: TorqueProblem) -> Change:
    """Estimate the lag of the torques, s, to first order, with its standard error."""
    step = HALF_DERIVATIVE_STEP_S
    samples = problem.samples
    rate = (samples.delayed_torque(step) - samples.delayed_torque(-step)) / (2 * step)
    return Jackknife(problem.terms, -rate[:, :, None]).estimate([0])


def _is_certain(change: Change, lag: float) -> bool:
    """Return whether the first-order estimate of a lag is certain, and about as large as the lag that fits best."""
    return change.certain and change.values[0] * lag > MIN_FIRST_ORDER_FRACTION * lag**2


def _best_lag(problem: TorqueProblem) -> tuple[float, TorqueFit]:
    """Return the lag that fits best, s, and the fit with it."""
    steps = round(MAX_TRIED_LAG_S / TRIED_STEP_S)
    lag = _minimize(problem, TRIED_STEP_S * np.arange(-steps, steps + 1))
    lag = _minimize(problem, lag + REFINED_STEP_FRACTION * TRIED_STEP_S * np.arange(-4, 5))
    return lag, fits_with_lags(problem, [lag])[0]


def fits_with_lags(problem: TorqueProblem, lags: Iterable[float]) -> list[TorqueFit]:
    """Fit torques that come later by each of several lags, s."""
    return fit_together(problem.equations.explaining(problem.samples.delayed_torque(lag)) for lag in lags)


def _minimize(problem: TorqueProblem, lags: NDArray) -> float:
    """Return the vertex of the parabola through the smallest misfit and its neighbours."""
    values = [fit.misfit for fit in fits_with_lags(problem, lags)]
    k = int(np.argmin(values))
    if not 0 < k < len(lags) - 1:
        return float(lags[k])
    left, middle, right = values[k - 1 : k + 2]
    return float(lags[k] + (lags[k + 1] - lags[k]) * 0.5 * (left - right) / (left - 2 * middle + right))
