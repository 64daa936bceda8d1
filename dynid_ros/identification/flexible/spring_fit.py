"""A spring law fitted to deflection and spring torque, both noisy: Lightcap & Banks 2007, section IV.C, with more care.

Regression of torque on deflection is biased low by the noise of the deflection. Here each sample's residual
r = tau - f(d - o) is weighed by what torque and deflection leave of it together, s^2 = s_tau^2 + f'^2 s_d^2 (effective
variance; Deming's regression for a linear law). The noise s_d of the deflection is given or told by its high
frequencies; what misfit remains is the torque's, s_tau, friction and all that the reconstruction lacks. Noises of
torque and deflection are taken as independent: build the torque from filtered signals.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares

from dynid_ros.estimation.estimate import interval
from dynid_ros.estimation.jackknife import Jackknife, jackknife, time_blocks
from dynid_ros.identification.flexible.spring_data import SpringData, spring_data
from dynid_ros.identification.flexible.spring_stiffness import Stiffness
from dynid_ros.model.spring import SPRINGS, Spring

ROUNDS = 10
UNITS = {"stiffness": (1, -1), "cubic": (1, -3), "dead_zone": (0, 1)}
"""Powers of torque and deflection that make the unit of a value."""
PLAYS = (0.1, 0.3, 0.6)
"""Quantiles of the deflection from which a search for the play starts: its misfit has several minima."""


@dataclass(frozen=True, eq=False)
class SpringFit:
    """A fitted law.

    Attributes:
        law: key of `SPRINGS`.
        values: (p,) in the order of `names`.
        covariance: (p, p), from blocks of time left out.
        freedom: degrees of freedom of the covariance.
        offsets: (R,) constant part of each run's deflection that is no deflection, rad.
        r_squared: squared correlation of the law's torque with the given one; the paper's r^2 for a linear law.
        residual_rms: of the torque, N m.
        deflection_noise: standard deviation that was allowed for, rad.
        stiffness: what may be said of the first value.
        held_out_rms: misfit of the torque in blocks that were left out, beyond what the deflection's noise makes, N m,
            by law.
        reason: why this law.

    """

    law: str
    values: NDArray
    covariance: NDArray
    freedom: int
    offsets: NDArray
    r_squared: float
    residual_rms: float
    deflection_noise: float
    stiffness: Stiffness
    held_out_rms: dict[str, float]
    reason: str

    @property
    def spring(self) -> Spring:
        """The law."""
        return SPRINGS[self.law]()

    @property
    def names(self) -> tuple[str, ...]:
        """Of the values."""
        return self.spring.names

    @property
    def standard_errors(self) -> NDArray:
        """(p,) of the values."""
        return np.sqrt(np.diag(self.covariance))

    def confidence_intervals(self, level: float = 0.95) -> NDArray:
        """(p, 2) by Student's distribution."""
        return interval(self.values, self.standard_errors, self.freedom, level)

    def torque(self, deflection: ArrayLike) -> NDArray:
        """Torque (N,), N m, of deflections (N,) without offset, rad."""
        return self.spring.torque(np.asarray(deflection, dtype=float), self.values)


def fit_spring(
    deflection: ArrayLike,
    torque: ArrayLike,
    laws: str | Sequence[str] = "linear",
    *,
    runs: ArrayLike | None = None,
    deflection_noise: float | None = None,
) -> SpringFit:
    """Fit a law, or the one of several that predicts best.

    Args:
        deflection: (N,) q_m - q, rad, with an unknown constant per run (zeros of the encoders).
        torque: (N,) of the spring, N m.
        laws: keys of `SPRINGS`, simplest first. A later one is taken only where it predicts blocks that were left out
            better by more than the standard error of the difference.
        runs: (N,) run of each sample; None: one run.
        deflection_noise: standard deviation, rad; None: of white noise, from differences of the sixth order. Give it
            where the deflection was filtered: no differences show it then.

    Raises:
        IdentificationError: shapes, values that are not finite, a law that is unknown, too few samples, or a
            deflection that is not above its noise.

    """
    laws = (laws,) if isinstance(laws, str) else tuple(laws)
    data = spring_data(deflection, torque, laws, runs, deflection_noise)
    fit, errors = _fit(data, laws[0])
    held_out = {fit.law: _rms(errors)}
    reason = "the only law asked for"
    for law in laws[1:]:
        other, other_errors = _fit(data, law)
        held_out[law] = _rms(other_errors)
        gain = errors - other_errors
        better = gain.mean() > np.std(gain, ddof=1) / np.sqrt(len(gain))
        reason = (
            f"torque in blocks that were left out is off by {held_out[law]:.3g} N m with {law}, by "
            f"{held_out[fit.law]:.3g} N m with {fit.law}: {'a' if better else 'no'} gain beyond chance"
        )
        fit, errors = (other, other_errors) if better else (fit, errors)
    return replace(fit, held_out_rms=held_out, reason=reason)


def _fit(data: SpringData, law: str) -> tuple[SpringFit, NDArray]:
    """The fit, and the misfit of each block of time when it was left out, (N m)^2."""
    values, offsets = _solve(data, law)
    residual = _residual(data, law, values, offsets)
    blocks = time_blocks(data.runs)
    errors: list[float] = []

    def without(kept: NDArray) -> NDArray:
        found, zeros = _solve(data.kept(kept), law, start=values)
        errors.append(_misfit(data.kept(~kept), law, found, zeros))
        return np.append(found, _inverse_regression(data.kept(kept)))

    spread = jackknife(without, blocks)
    error = np.mean(residual**2)
    fit = SpringFit(
        law,
        values,
        spread.covariance[:-1, :-1],
        spread.freedom,
        offsets,
        float(np.corrcoef(data.torque - residual, data.torque)[0, 1] ** 2),
        float(np.sqrt(error)),
        data.noise,
        _stiffness(float(values[0]), _inverse_regression(data), spread),
        {},
        "",
    )
    return fit, np.array(errors)


def _stiffness(stiffness: float, inverse: float, spread: Jackknife) -> Stiffness:
    """By the regression of deflection on torque whether the joint yields at all, then by the fit how much."""
    shown = Stiffness.of(inverse, float(spread.standard_errors[-1]), spread.freedom)
    if shown.compliance_interval[0] <= 0 or stiffness <= 0:
        return shown
    return Stiffness.of(1 / stiffness, float(spread.standard_errors[0]) / stiffness**2, spread.freedom)


def _solve(data: SpringData, law: str, start: NDArray | None = None) -> tuple[NDArray, NDArray]:
    """Values (p,) and offsets (R,) of least residuals over their effective variance."""
    spring = SPRINGS[law]()
    count = len(spring.names)
    width, height = float(np.std(data.deflection)), float(np.std(data.torque))
    unit = np.array([height ** UNITS[n][0] * width ** UNITS[n][1] for n in spring.names])
    zero = np.array([data.deflection[data.runs == run].mean() for run in range(data.runs.max() + 1)])
    noise, misfit = (data.noise / width) ** 2, 1.0

    def scaled(x: NDArray) -> tuple[NDArray, NDArray]:
        bent = (data.deflection - zero[data.runs]) / width - x[count:][data.runs]
        values = x[:count]
        return data.torque / height - spring.torque(bent, values), spring.tangent(bent, values) ** 2 * noise

    def weighted(x: NDArray) -> NDArray:
        residual, variance = scaled(x)
        return residual / np.sqrt(misfit + variance)

    starts = _starts(data, law, zero, width, height) if start is None else [start / unit]
    best, least = np.empty(0), np.inf
    for values in starts:
        x, misfit = np.append(values, np.zeros(len(zero))), 1.0
        for _ in range(ROUNDS):
            x = least_squares(weighted, x).x
            residual, variance = scaled(x)
            updated = max(float(np.mean(residual**2) - np.mean(variance)), 1e-6)
            settled, misfit = abs(updated - misfit) < 1e-4 * updated, updated
            if settled:
                break
        error = float(np.mean(residual**2))
        if error < least:
            best, least = x, error
    return best[:count] * unit, zero + best[count:] * width


def _starts(data: SpringData, law: str, zero: NDArray, width: float, height: float) -> list[NDArray]:
    bent = (data.deflection - zero[data.runs]) / width
    slope = float(bent @ (data.torque / height - np.mean(data.torque) / height) / (bent @ bent))
    if law == "dead_zone":
        return [np.array([slope, play]) for play in (0.0, *np.quantile(np.abs(bent), PLAYS))]
    return [np.append(slope, np.zeros(len(SPRINGS[law].names) - 1))]


def _residual(data: SpringData, law: str, values: NDArray, offsets: NDArray) -> NDArray:
    return data.torque - SPRINGS[law]().torque(data.deflection - offsets[data.runs], values)


def _misfit(data: SpringData, law: str, values: NDArray, offsets: NDArray) -> float:
    """Mean square residual of the torque without what the deflection's noise adds: that would favour soft springs."""
    slope = SPRINGS[law]().tangent(data.deflection - offsets[data.runs], values)
    return float(np.mean(_residual(data, law, values, offsets) ** 2) - np.mean(slope**2) * data.noise**2)


def _inverse_regression(data: SpringData) -> float:
    """Slope of deflection over torque, rad/(N m): noise of the deflection does not bias it."""
    parts = [data.runs == run for run in np.unique(data.runs)]
    tau = np.concatenate([data.torque[part] - data.torque[part].mean() for part in parts])
    return float(np.concatenate([data.deflection[part] for part in parts]) @ tau / (tau @ tau))


def _rms(squares: NDArray) -> float:
    return float(np.sqrt(max(squares.mean(), 0.0)))
