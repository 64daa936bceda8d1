"""Maximum likelihood for flexible joints from all measured signals of links and motors.

These are output errors, not equation errors. The links' motion is predicted from that of the motors, so no noisy
measurement is differentiated or enters a regressor, and residuals are weighed by the sensors' noise, whatever its
colour (Pintelon and Schoukens 2012, chapter 9). The harmonics of periodic motor positions are estimated along. Other
motions are taken as recorded, and their noise appears in the residuals of torques and links, by which it is weighed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import minimize, search
from dynid_ros.estimation.rank import scaled_eigh
from dynid_ros.identification.flexible.flexible_parameters import LINK_TERMS, Layout
from dynid_ros.identification.flexible.run_residuals import Channel, RunResiduals, RunTerms
from dynid_ros.identification.flexible.runs import FEW_JOINTS, Run
from dynid_ros.identification.flexible.spring_fit import white_noise
from dynid_ros.progress import each

# Densities of noise of links and motors at every frequency, and the matrices that make residuals white.


SMOOTHING = (30, 0.3)
"""Frequencies to either side over which a density is averaged, and the smallest share of the frequency's own number. A
density of few frequencies follows the residuals, and standard errors come out a third too small at 6 frequencies."""
MIN_DENSITY = 1e-6
"""Smallest spectral density of noise, in parts of its mean."""
MIN_NOISE_FRACTION = 1e-3
"""Smallest noise that a search starts with, in parts of the standard deviation of the torque or the deflection."""


def sensor_whiteners(run: Run, channels: Sequence[Channel]) -> dict[int, NDArray]:
    """Return the whiteners (F, c, c) of each joint for white noise of its sensors, by differences of neighbours.

    A search starts with these. Densities of the residuals would count errors of the initial parameters as noise, and
    the search would stay at its start.
    """
    found = {}
    for joint, own in channels_by_joint(channels).items():
        deflection = run.link[:, joint] - np.interp(run.link_time + run.offset, run.time, run.motor.position[:, joint])
        scales = []
        for channel in own:
            values = run.link[:, joint] if channel.kind == "link" else run.torque[:, joint]
            size = np.nanstd(deflection) if channel.kind == "link" else np.std(values)
            noise = white_noise(values[np.isfinite(values)])
            scales.append(1.0 / max(noise, MIN_NOISE_FRACTION * float(size), 1e-150))
        found[joint] = np.tile(np.diag(scales).astype(complex), (len(own[0].residual), 1, 1))
    return found


def channels_by_joint(channels: Sequence[Channel]) -> dict[int, list[Channel]]:
    """Return the channels of each joint in the order of the joints."""
    joints = sorted({channel.joint for channel in channels})
    return {joint: [channel for channel in channels if channel.joint == joint] for joint in joints}


def whiteners(run: Run, channels: Sequence[Channel]) -> dict[int, NDArray]:
    """Return for each joint the matrices (F, c, c) that make the noise of its c channels white with variance one.

    The density of noise is that of the residuals, averaged over neighbouring frequencies. It is one matrix for link and
    motor together, because the noise of a motor's encoder, from which the prediction starts, is in the residuals of
    both. The lines of a periodic motion are left out, because errors of the model gather there.
    """
    lines = run.compared.lines
    found = {}
    for joint, own in channels_by_joint(channels).items():
        spectra = np.stack([channel.residual for channel in own], axis=1)
        counted = np.ones(len(spectra))
        if len(lines):
            every = np.arange(len(spectra))[:, None]
            counted[(np.abs(every - lines) <= 1).any(axis=1)] = 0.0
        density = _averaged(spectra, counted)
        density += np.diag(MIN_DENSITY * np.einsum("fcc->c", density).real / len(density) + 1e-300)
        found[joint] = np.linalg.inv(np.linalg.cholesky(density))
    return found


def _averaged(spectra: NDArray, counted: NDArray) -> NDArray:
    """Return the products (F, c, c) of the spectra (F, c), averaged over the neighbours that count (F,)."""
    power = spectra[:, :, None] * spectra[:, None, :].conj() * counted[:, None, None]
    bins = np.arange(len(power))
    half = np.maximum(SMOOTHING[0], SMOOTHING[1] * bins).astype(int)
    while True:
        first = np.maximum(bins - half, 0)
        last = np.minimum(bins + half + 1, len(power))
        numbers = np.concatenate([[0.0], np.cumsum(counted)])
        count = numbers[last] - numbers[first]
        few = (count < SMOOTHING[0]) & (last - first < len(power))
        if not few.any():
            break
        half = np.where(few, 2 * half, half)
    total = np.concatenate([np.zeros((1, *power.shape[1:])), np.cumsum(power, axis=0)])
    return (total[last] - total[first]) / np.maximum(count, 1.0)[:, None, None]


FIRST_WEIGHTINGS = 2
MAX_WEIGHTINGS = 8
"""Number of estimates of the densities of noise without stiction and with long steps, and largest number of all."""
APPROACH_TOLERANCE = 1.0
ROUGH_TOLERANCE = 0.1
FINAL_TOLERANCE = 0.005
"""Predicted gains of log-likelihood that end the searches in a part of the runs, of the first weightings in all runs,
and of all other weightings: 1.4, 0.4 and 0.1 standard errors. Long steps of several joints make the likelihood uneven
by more than the last one, so their searches end with the second one."""
SENSOR_TOLERANCE = 0.005
"""Predicted gain, in parts of the cost, that ends a search with the noise of the sensors. Errors of the model exceed
that noise, and where links stick they make this cost uneven by up to a percent."""
MAX_SETTLED_GAIN = 0.02
"""Gain of a search after which densities are estimated no more: the densities and the parameters agree."""
MIN_STIFFNESS_FRACTION = 0.1
"""Softest spring of a search, in parts of the initial stiffness."""
MIN_HAT_COMPLEMENT = 0.05
"""Smallest part of a residual that a fit leaves at an influential frequency: less is rounding."""
NULL_EIGENVALUE = 1e-10
"""Eigenvalue of the information, in units of its diagonal, below which a direction is undetermined."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Maximum of the likelihood.

    Attributes:
        values: Parameters (p,) of the arm.
        covariance: Covariance (p, p); infinite variances of undetermined parameters.
        runs: Parameters (size,) of each run.
        run_errors: Standard errors (size,) of each run's parameters.
        channels: Residuals by run.
        information: Information (p, p) of the arm's parameters with unknown parameters of the runs.
        condition_number: Condition number of the information's square root, columns scaled.
        iterations: Number of steps.
        misfit: Mean square of the whitened residuals at the compared frequencies: about one for a good model.
        left: Sum of the logarithms of all channels' RMS residuals there; the less likely of two solutions has more.
    """

    values: NDArray
    covariance: NDArray
    runs: list[NDArray]
    run_errors: list[NDArray]
    channels: list[list[Channel]]
    information: NDArray
    condition_number: float
    iterations: int
    misfit: float
    left: float


class OutputError:
    """Likelihood of stretches of motion, each with its terms, at parameters in the order of a layout."""

    def __init__(self, layout: Layout, runs: Sequence[Run], terms: Sequence[RunTerms]) -> None:
        self.layout = layout
        self.residuals = [RunResiduals(layout, run, own) for run, own in zip(runs, terms, strict=True)]
        self._final_tolerance = FINAL_TOLERANCE if layout.robot.n_joints <= FEW_JOINTS else ROUGH_TOLERANCE

    def left(self, values: NDArray) -> float:
        """Return the sum of the logarithms of all channels' RMS residuals at parameters (p,) and the runs' starts.

        Raises:
            IdentificationError: No motion was found for them.
        """
        return self._left(self._channels(values, [run.start() for run in self.residuals]))

    def _left(self, channels: list[list[Channel]]) -> float:
        return sum(
            float(np.log(channel.rms_at(run.run.compared.bins) + 1e-150))
            for run, found in zip(self.residuals, channels, strict=True)
            for channel in found
        )

    def approach(self, start: NDArray) -> tuple[NDArray, list[NDArray]]:
        """Return the parameters (p,) of the arm and the named ones of each run after the first weightings."""
        values = start.copy()
        own = [run.start() for run in self.residuals]
        channels = self._channels(values, own)
        for weighting in range(FIRST_WEIGHTINGS):
            weights = self._weights(channels, first=weighting == 0)
            relative = SENSOR_TOLERANCE if weighting == 0 else 0.0
            values, own, channels, *_ = self._search(values, own, channels, weights, APPROACH_TOLERANCE, relative)
        return values, self.named(own)

    def named(self, own: Sequence[NDArray]) -> list[NDArray]:
        """Return the named parameters of each run."""
        return [run.named(mine) for run, mine in zip(self.residuals, own, strict=True)]

    def score(self, values: NDArray, own: list[NDArray], places: NDArray) -> tuple[NDArray, NDArray]:
        """Return the step of each of some parameters if it were free, and the gain of that step (s,).

        Args:
            values: Parameters (p,) that maximize the likelihood over all other parameters.
            own: Parameters of each run there.
            places: Numbers (s,) of the parameters, each of which is judged alone.

        Returns:
            Steps (s,), and gains (s,) of twice the log-likelihood: zero where it hardly depends on a parameter.
        """
        channels = self._refined(values, own)
        information, gradient = self._normal(own, channels, self._weights(channels, first=False))
        others = np.setdiff1d(np.arange(len(gradient)), places)
        basis = _determined_basis(information[np.ix_(others, others)])
        across = information[np.ix_(places, others)] @ basis
        alone = np.diagonal(information)[places]
        known = alone - (across**2).sum(axis=1)
        slope = gradient[places] - across @ (basis.T @ gradient[others])
        shows = known > NULL_EIGENVALUE * alone
        known = np.where(shows, known, np.inf)
        return slope / known, slope**2 / known

    def omitted_torque(
        self, solution: Solution, run: int, joint: int, torques: NDArray
    ) -> tuple[NDArray, NDArray, float]:
        """Return the first-order effect of torques (N, e) of a motor that the model lacks.

        Returns:
            Their amplitudes (e,), the change (p,) of the parameters, and the gain of twice the log-likelihood.
        """
        p = len(solution.values)
        weights = self._weights(solution.channels, first=False)
        information, gradient = self._normal(solution.runs, solution.channels, weights)
        one = self.residuals[run]
        begin = p + sum(other.size for other in self.residuals[:run])
        rows = np.r_[0:p, begin : begin + one.size]
        joints = _by_joint(solution.channels[run], weights[run], one.run.compared.bins)
        own, chosen = next(pair for pair in joints if pair[0][0].joint == joint)
        spectra = np.zeros((len(chosen.bins), len(own), torques.shape[1]), dtype=complex)
        spectra[:, [channel.kind for channel in own].index("motor")] = one.spectrum(torques)
        added = (chosen.whiteners @ spectra).reshape(-1, torques.shape[1])
        residual = _white_residual(own, chosen).ravel()
        columns = _white_columns(own, chosen).reshape(len(residual), -1)
        across = np.zeros((torques.shape[1], len(gradient)))
        across[:, rows] = (added.conj().T @ columns).real
        basis = _determined_basis(information)
        reduced = across @ basis
        slope = (added.conj().T @ residual).real - reduced @ (basis.T @ gradient)
        known = (added.conj().T @ added).real - reduced @ reduced.T
        amplitudes, *_ = np.linalg.lstsq(known, slope, rcond=NULL_EIGENVALUE)
        return amplitudes, -(basis @ (reduced.T @ amplitudes))[:p], float(slope @ amplitudes)

    def solve(self, start: NDArray, near: tuple[NDArray, list[NDArray]] | None = None) -> Solution:
        """Search from parameters (p,), or from a result of `approach` if it predicts all runs better.

        Raises:
            IdentificationError: No motion was found for the start.
        """
        values = start.copy()
        own = [run.start() for run in self.residuals]
        iterations = 0
        channels = self._channels(values, own)
        first = 0
        if near is not None:
            weights = self._weights(channels, first=True)
            other = [run.start(named) for run, named in zip(self.residuals, near[1], strict=True)]
            found = self._channels(near[0], other)
            if self._cost(other, found, weights) < self._cost(own, channels, weights):
                values = near[0]
                own = other
                channels = found
                first = FIRST_WEIGHTINGS
        for weighting in each(range(first, MAX_WEIGHTINGS)):
            final = weighting >= FIRST_WEIGHTINGS
            if weighting == FIRST_WEIGHTINGS:
                channels = self._refined(values, own)
            weights = self._weights(channels, first=weighting == 0)
            tolerance = self._final_tolerance if final else ROUGH_TOLERANCE
            relative = SENSOR_TOLERANCE if weighting == 0 else 0.0
            values, own, channels, used, gain = self._search(values, own, channels, weights, tolerance, relative)
            iterations += used
            if final and gain < max(MAX_SETTLED_GAIN, tolerance):
                break
        weights = self._weights(channels, first=False)
        return self._solution(values, own, channels, weights, iterations)

    def search_rival(self, start: NDArray, best: list[list[Channel]]) -> Solution:
        """Search once from parameters (p,), weighed by the noise in the residuals of the best fit so far, by run.

        Raises:
            IdentificationError: No motion was found for the start.
        """
        own = [run.start() for run in self.residuals]
        channels = self._refined(start, own)
        weights = self._weights(best, first=False)
        values, own, channels, iterations, _ = self._search(start, own, channels, weights, self._final_tolerance)
        return self._solution(values, own, channels, self._weights(channels, first=False), iterations)

    def _weights(self, channels: list[list[Channel]], *, first: bool) -> list[dict[int, NDArray]]:
        make = sensor_whiteners if first else whiteners
        return [make(run.run, found) for run, found in zip(self.residuals, channels, strict=True)]

    def _channels(self, values: NDArray, own: Sequence[NDArray]) -> list[list[Channel]]:
        return [run.channels(values, mine) for run, mine in zip(self.residuals, own, strict=True)]

    def _refined(self, values: NDArray, own: Sequence[NDArray]) -> list[list[Channel]]:
        """Estimate stiction from now on, with short steps of few joints, and return the residuals."""
        for run in self.residuals:
            run.refine()
        return self._channels(values, own)

    def _search(  # noqa: PLR0917
        self,
        values: NDArray,
        own: list[NDArray],
        channels: list[list[Channel]],
        weights: list[dict[int, NDArray]],
        tolerance: float,
        relative_tolerance: float = 0.0,
    ) -> tuple[NDArray, list[NDArray], list[list[Channel]], int, float]:
        cuts = np.cumsum([len(values), *map(len, own[:-1])])

        def split(parameters: NDArray) -> tuple[NDArray, list[NDArray]]:
            arm, *by_run = np.split(parameters, cuts)
            return arm, by_run

        def evaluate(parameters: NDArray) -> tuple[list[list[Channel]], float]:
            arm, by_run = split(parameters)
            try:
                trial = self._channels(arm, by_run)
            except IdentificationError:
                return channels, np.inf
            return trial, self._cost(by_run, trial, weights)

        for run in self.residuals:
            run.renew()

        def keep() -> None:
            for run in self.residuals:
                run.keep()

        steps = search(
            np.concatenate([values, *own]),
            channels,
            self._cost(own, channels, weights),
            lower=np.concatenate([self._least_values(values), *(run.least for run in self.residuals)]),
            tolerance=tolerance,
            relative_tolerance=relative_tolerance,
            normal_equations=lambda parameters, state: self._normal(split(parameters)[1], state, weights),
            accept=keep,
        )
        (end,) = minimize([steps], lambda trials: [None if trial is None else evaluate(trial) for trial in trials])
        return *split(end.values), end.state, end.iterations, end.gain

    def _least_values(self, values: NDArray) -> NDArray:
        """Return the lower bounds (p,): dry friction brakes, and springs hold."""
        found = np.full(len(values), -np.inf)
        for term in ("coulomb", "motor_coulomb"):
            if term in self.layout.motor_terms or term in LINK_TERMS:
                found[self.layout.index(term)] = 0.0
        stiffness = self.layout.index("stiffness")
        found[stiffness] = MIN_STIFFNESS_FRACTION * values[stiffness]
        return found

    def _misfit(
        self, own: Sequence[NDArray], channels: list[list[Channel]], weights: list[dict[int, NDArray]]
    ) -> float:
        """Return the mean square of the whitened residuals, at least one: the excess is due to errors of the model."""
        rows = sum(
            2 * len(run.run.compared.bins) * len(found) for run, found in zip(self.residuals, channels, strict=True)
        )
        unknowns = len(self.layout.names) + sum(run.size for run in self.residuals)
        return max(1.0, 2 * self._cost(own, channels, weights) / max(rows - unknowns, 1))

    def _widening(
        self,
        information: NDArray,
        covariance: NDArray,
        channels: list[list[Channel]],
        weights: list[dict[int, NDArray]],
    ) -> NDArray:
        """Return the factors (p + sizes,), at least one, of the standard errors by the residuals of single frequencies.

        This is a sandwich estimate (MacKinnon and White 1985, HC2). Errors of the model, as of friction, act at some
        frequencies much more than noise, in all joints at once. Where few frequencies hold all information, the fit
        hides most of that. HC2 is right on average with noise alone; a jackknife is half as wide again.
        """
        p = len(self.layout.names)
        at = p
        variance = np.zeros(len(covariance))
        scale = np.sqrt(np.maximum(np.diagonal(information), 1e-300))
        inverse = np.linalg.pinv(information / np.outer(scale, scale), rcond=NULL_EIGENVALUE, hermitian=True)
        inverse /= np.outer(scale, scale)
        for run, found, weight in zip(self.residuals, channels, weights, strict=True):
            rows = np.r_[0:p, at : at + run.size]
            bins = run.run.compared.bins
            joints = list(_by_joint(found, weight, bins))
            residual = np.concatenate([_white_residual(own, chosen) for own, chosen in joints], axis=1)
            columns = np.concatenate([_white_columns(own, chosen) for own, chosen in joints], axis=1)
            for left, by in zip(residual, columns, strict=True):
                matrix = np.concatenate([by.real, by.imag])
                gain = inverse[:, rows] @ matrix.T
                kept = np.eye(len(matrix)) - matrix @ gain[rows]
                eigenvalues, vectors = np.linalg.eigh((kept + kept.T) / 2)
                along = vectors.T @ np.concatenate([left.real, left.imag])
                variance += (gain @ vectors @ (along / np.sqrt(np.maximum(eigenvalues, MIN_HAT_COMPLEMENT)))) ** 2
            at += run.size
        return np.sqrt(np.maximum(1.0, variance / np.maximum(np.diagonal(covariance), 1e-300)))

    def _cost(self, own: Sequence[NDArray], channels: list[list[Channel]], weights: list[dict[int, NDArray]]) -> float:
        """Return half the squares of all white residuals and of the corrections of the motors' motion."""
        total = 0.0
        for run, mine, found, weight in zip(self.residuals, own, channels, weights, strict=True):
            for channels_of, chosen in _by_joint(found, weight, run.run.compared.bins):
                total += 0.5 * float(np.sum(np.abs(_white_residual(channels_of, chosen)) ** 2))
            total += 0.5 * float(np.sum(run.prior * mine**2))
        return total

    def _normal(
        self, own: Sequence[NDArray], channels: list[list[Channel]], weights: list[dict[int, NDArray]]
    ) -> tuple[NDArray, NDArray]:
        """Return information (p + sizes, p + sizes) and gradient (p + sizes,)."""
        p = len(self.layout.names)
        size = p + sum(run.size for run in self.residuals)
        information = np.zeros((size, size))
        gradient = np.zeros(size)
        at = p
        for run, mine, found, weight in zip(self.residuals, own, channels, weights, strict=True):
            rows = np.r_[0:p, at : at + run.size]
            for channels_of, chosen in _by_joint(found, weight, run.run.compared.bins):
                residual = _white_residual(channels_of, chosen)
                columns = _white_columns(channels_of, chosen)
                stacked = columns.reshape(-1, columns.shape[2])
                information[np.ix_(rows, rows)] += (stacked.conj().T @ stacked).real
                gradient[rows] += (stacked.conj().T @ residual.ravel()).real
            information[rows[p:], rows[p:]] += run.prior
            gradient[rows[p:]] -= run.prior * mine
            at += run.size
        return information, gradient

    def _solution(
        self,
        values: NDArray,
        own: list[NDArray],
        channels: list[list[Channel]],
        weights: list[dict[int, NDArray]],
        iterations: int,
    ) -> Solution:
        p = len(values)
        information, _ = self._normal(own, channels, weights)
        eigenvalues, vectors, scale = scaled_eigh(information)
        poor = eigenvalues < NULL_EIGENVALUE
        inverse = (vectors[:, ~poor] / eigenvalues[~poor]) @ vectors[:, ~poor].T
        misfit = self._misfit(own, channels, weights)
        covariance = misfit * inverse / np.outer(scale, scale)
        widening = self._widening(information, covariance, channels, weights)
        covariance = covariance * np.outer(widening, widening)
        lost = (np.diagonal(information) == 0) | ((vectors[:, poor] ** 2).sum(axis=1) > 1e-6)
        covariance[lost] = covariance[:, lost] = 0.0
        covariance[lost, lost] = np.inf
        errors = np.sqrt(np.diagonal(covariance))
        run_errors = np.split(errors[p:], np.cumsum([len(mine) for mine in own])[:-1])
        nuisance = information[p:, p:]
        reduced = information[:p, :p] - information[:p, p:] @ np.linalg.pinv(nuisance) @ information[p:, :p]
        small = max(eigenvalues[0], 0.0)
        condition = float(np.sqrt(eigenvalues[-1] / small)) if small > 0 else np.inf
        left = self._left(channels)
        return Solution(
            values, covariance[:p, :p], own, run_errors, channels, reduced, condition, iterations, misfit, left
        )


def _determined_basis(information: NDArray) -> NDArray:
    """Return the determined directions (p, r) of the parameters, scaled to standard errors of one."""
    eigenvalues, vectors, scale = scaled_eigh(information)
    kept = eigenvalues > NULL_EIGENVALUE
    return vectors[:, kept] / np.sqrt(eigenvalues[kept]) / scale[:, None]


class _Chosen(NamedTuple):
    """Compared frequencies (B,) and the whiteners (B, c, c) of a joint's residuals there."""

    bins: NDArray
    whiteners: NDArray


def _by_joint(
    channels: Sequence[Channel], weights: dict[int, NDArray], bins: NDArray
) -> Iterator[tuple[list[Channel], _Chosen]]:
    """Yield the channels of each joint with their whiteners, which count the other half of a real signal's spectrum."""
    # A spectrum holds each frequency twice, except for the mean.
    twice = np.where(bins > 0, np.sqrt(2.0), 1.0)
    for joint, matrix in weights.items():
        own = [channel for channel in channels if channel.joint == joint]
        yield own, _Chosen(bins, matrix[bins] * twice[:, None, None])


def _white_residual(channels: Sequence[Channel], chosen: _Chosen) -> NDArray:
    """Return the white residuals (B, c) of a joint's channels."""
    residual = np.stack([channel.residual[chosen.bins] for channel in channels], axis=1)
    return np.einsum("bcd,bd->bc", chosen.whiteners, residual)


def _white_columns(channels: Sequence[Channel], chosen: _Chosen) -> NDArray:
    """Return their white derivatives (B, c, p)."""
    return chosen.whiteners @ np.stack([channel.columns for channel in channels], axis=1)
