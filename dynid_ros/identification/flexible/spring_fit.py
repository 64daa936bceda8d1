"""Fit of a spring law to noisy deflection and torque (Lightcap and Banks 2007, section IV.C, extended).

Regression of torque on deflection is biased low by the noise of the deflection. Here each residual r = tau - f(d - o)
is weighed by the effective variance s^2 = s_tau^2 + f'^2 s_d^2 (Deming's regression for a linear law). The noise s_d of
the deflection is given or estimated from its high frequencies. The remaining misfit is that of the torque, s_tau:
noise, friction and errors of the reconstruction. Noises of torque and deflection must be independent, so the torque is
built from filtered signals.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import Jackknife, jackknife, time_blocks
from dynid_ros.estimation.estimate import half_width, interval
from dynid_ros.model.spring import SPRINGS, Spring

# Checked deflection and torque of a spring, averaged as far as they are smooth.


MIN_SAMPLES = 50
MAX_SAMPLES = 2000
"""Number of samples that are used where neighbours are not averaged."""
MAX_LOST_VARIANCE = 1e-3
"""Part of the deflection's variance that averages of neighbours may lose."""
DIFFERENCES = 6
"""Order of the differences that isolate white noise on a smooth signal; its variance grows by binomial(12, 6)."""
VARIANCE_GROWTH = 924.0


def white_noise(values: NDArray) -> float:
    """Return the standard deviation of white noise on a smooth signal (N,) by its differences of sixth order."""
    return float(np.sqrt(np.mean(np.diff(values, DIFFERENCES) ** 2) / VARIANCE_GROWTH))


@dataclass(frozen=True, eq=False)
class SpringData:
    """N samples of a spring.

    Attributes:
        deflection: Deflections (N,), rad or m.
        torque: Torques (N,), N m or N.
        runs: Run (N,) of each sample, counted from 0.
        noise: Standard deviation of the deflection.
    """

    deflection: NDArray
    torque: NDArray
    runs: NDArray
    noise: float

    def kept(self, samples: NDArray | slice) -> "SpringData":
        """Return some of the samples."""
        return replace(self, deflection=self.deflection[samples], torque=self.torque[samples], runs=self.runs[samples])

    def averaged(self, width: int) -> tuple["SpringData", float]:
        """Return means of so many neighbours, and the variance of the deflection about them."""
        parts = []
        inside = []
        for run in range(self.runs.max() + 1):
            own = np.flatnonzero(self.runs == run)
            rows = own[: len(own) // width * width].reshape(-1, width)
            d = self.deflection[rows]
            parts.append((d.mean(axis=1), self.torque[rows].mean(axis=1), np.full(len(rows), run)))
            inside.append(np.var(d, axis=1, ddof=1))
        d, tau, runs = (np.concatenate(values) for values in zip(*parts, strict=True))
        return SpringData(d, tau, runs, self.noise / np.sqrt(width)), float(np.concatenate(inside).mean())


def spring_data(
    deflection: ArrayLike, torque: ArrayLike, laws: Sequence[str], runs: ArrayLike | None, noise: float | None
) -> SpringData:
    """Return the samples to fit; arguments and errors as of `fit_spring`."""
    d = np.asarray(deflection, dtype=float)
    tau = np.asarray(torque, dtype=float)
    numbers = np.zeros(d.shape, dtype=int) if runs is None else np.asarray(runs)
    unknown = [law for law in laws if law not in SPRINGS]
    if unknown or not laws:
        raise IdentificationError(
            f"spring: no law {', '.join(unknown) or 'given'}; expected some of {', '.join(SPRINGS)}"
        )
    if d.ndim != 1 or tau.shape != d.shape or numbers.shape != d.shape or len(d) < MIN_SAMPLES:
        raise IdentificationError(
            f"spring: deflection {d.shape}, torque {tau.shape} and runs {numbers.shape} do not fit; "
            f"expected (N,) each, of at least {MIN_SAMPLES} samples"
        )
    for name, values in (("deflection", d), ("torque", tau)):
        if not np.isfinite(values).all():
            sample = int(np.argmax(~np.isfinite(values)))
            raise IdentificationError(f"spring: {name} is {values[sample]} at sample {sample}; leave such samples out")
    names, numbers = np.unique(numbers, return_inverse=True)
    parts = [numbers == run for run in range(len(names))]
    if min(np.sum(part) for part in parts) < 2 * DIFFERENCES:
        raise IdentificationError(f"spring: a run has fewer than {2 * DIFFERENCES} samples; leave it out")
    white = noise is None
    if noise is None:
        noise = float(np.sqrt(np.mean([white_noise(d[part]) ** 2 for part in parts])))
    scatter = float(np.sqrt(np.mean([np.var(d[part]) for part in parts])))
    if not scatter**2 > 2 * noise**2:
        raise IdentificationError(
            f"spring: the deflection scatters {scatter / noise:.3g} times as much as its noise alone, so it does not "
            "show the spring: load the joint more, or measure its link better"
        )
    if not np.std(tau) > 0:
        raise IdentificationError("spring: the torque is constant, so it does not show the spring; move the joint")
    data = SpringData(d, tau, numbers, noise)
    return _smoothed(data, scatter) if white else data.kept(slice(None, None, max(1, len(d) // MAX_SAMPLES)))


def _smoothed(data: SpringData, scatter: float) -> SpringData:
    """Average as many neighbours as the deflection hardly changes in: white noise shrinks, the law stays."""
    found = data
    width = 2
    while len(data.torque) >= 2 * width * MIN_SAMPLES:
        averaged, inside = data.averaged(width)
        if inside - data.noise**2 > MAX_LOST_VARIANCE * scatter**2 or min(np.bincount(averaged.runs)) < 2 * DIFFERENCES:
            break
        found = averaged
        width = 2 * width
    return found


# Stiffness: a value with an interval, or "undetermined" with bounds and the reason.


MAX_INTERVAL_RATIO = 3.0
"""Ratio of the ends of an interval above which a stiffness is undetermined: half an order of magnitude."""


@dataclass(frozen=True)
class Stiffness:
    """Stiffness of a joint by its compliance, which is deflection over torque; zero is rigid.

    Attributes:
        compliance: Deflection over torque, rad/(N m); m/N of a prismatic joint.
        compliance_interval: Ends of its 95 % interval.
        reason: Reason why the stiffness is not determined; empty where it is.
    """

    compliance: float
    compliance_interval: tuple[float, float]
    reason: str
    unit: str = "N m/rad"

    @classmethod
    def from_error(cls, compliance: float, standard_error: float, dof: float, unit: str = "N m/rad") -> "Stiffness":
        """Judge a compliance by its standard error, rad/(N m), of so many degrees of freedom."""
        half = float(half_width(standard_error, dof))
        return cls.from_interval(compliance, (float(compliance - half), float(compliance + half)), unit)

    @classmethod
    def from_interval(cls, compliance: float, interval: tuple[float, float], unit: str = "N m/rad") -> "Stiffness":
        """Judge a compliance by its interval of 95 %, rad/(N m)."""
        low, high = interval
        if not math.isfinite(high - low):
            low = -math.inf
            high = math.inf
            reason = "the recording does not determine the compliance"
        elif high < 0:
            reason = "the joint seems to bend against the torque: something else moves the deflection"
        elif low <= 0:
            reason = "the compliance is not distinguished from zero: the joint may be rigid"
        elif high > MAX_INTERVAL_RATIO * low:
            reason = f"the interval spans a factor of {high / low:.2g}"
        else:
            reason = ""
        return cls(float(compliance), (low, high), reason, unit)

    @property
    def determined(self) -> bool:
        """Whether the stiffness has a value."""
        return not self.reason

    @property
    def value(self) -> float:
        """Stiffness, N m/rad or N/m; NaN where undetermined."""
        return 1 / self.compliance if self.determined else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of 95 %: up to infinity where the joint may be rigid, from 0 without a lower bound."""
        low, high = self.compliance_interval
        return (1 / high if high > 0 else 0.0, 1 / low if low > 0 else math.inf)

    def __str__(self) -> str:
        """Return a sentence without a full stop."""
        low, high = self.interval
        if self.determined:
            return f"{self.value:.3g} {self.unit}, 95 % interval {low:.3g} to {high:.3g}"
        if low == 0:
            return f"undetermined ({self.reason})"
        bound = f"at least {low:.3g}" if math.isinf(high) else f"between {low:.3g} and {high:.3g}"
        return f"undetermined, {bound} {self.unit} ({self.reason})"


MAX_ROUNDS = 10
SPRING_UNIT_POWERS = {"stiffness": (1, -1), "cubic": (1, -3), "dead_zone": (0, 1)}
"""Powers of torque and deflection in the unit of a value."""
PLAYS = (0.1, 0.3, 0.6)
"""Quantiles of the deflection from which searches for the play start, because its misfit has several minima."""


@dataclass(frozen=True, eq=False)
class SpringFit:
    """Fitted law of a spring.

    Attributes:
        law: Key of `SPRINGS`.
        values: Values (p,) in the order of `names`.
        covariance: Covariance (p, p) by a jackknife over blocks of time.
        dof: Degrees of freedom of the covariance.
        offsets: Zero offsets (R,) of each run's deflection.
        r_squared: Squared correlation of the law's torque with the measured one; the paper's r^2 for a linear law.
        residual_rms: RMS residual of the torque.
        deflection_noise: Standard deviation of the deflection in the weights.
        stiffness: Stiffness by the first value.
        held_out_rms: RMS error of the torque in held-out blocks without the effect of the deflection's noise, by law.
        reason: Reason for this law.
    """

    law: str
    values: NDArray
    covariance: NDArray
    dof: int
    offsets: NDArray
    r_squared: float
    residual_rms: float
    deflection_noise: float
    stiffness: Stiffness
    held_out_rms: dict[str, float]
    reason: str

    @property
    def spring(self) -> Spring:
        """Law of the spring."""
        return SPRINGS[self.law]()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values."""
        return self.spring.names

    @property
    def standard_errors(self) -> NDArray:
        """Standard errors (p,) of the values."""
        return np.sqrt(np.diag(self.covariance))

    def confidence_intervals(self, level: float = 0.95) -> NDArray:
        """Return confidence intervals (p, 2) by Student's distribution."""
        return interval(self.values, self.standard_errors, self.dof, level)

    def torque(self, deflection: ArrayLike) -> NDArray:
        """Return the torques (N,) of deflections (N,) without offset."""
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
        deflection: Deflections (N,) q_m - q, rad or m, with an unknown constant per run (zeros of the encoders).
        torque: Torques (N,) of the spring, N m or N.
        laws: Keys of `SPRINGS`, simplest first. A later one is chosen if it predicts held-out blocks better by more
            than the standard error of the difference.
        runs: Run (N,) of each sample; None: one run.
        deflection_noise: Standard deviation; None: of white noise, by differences of the sixth order. It is required
            for a filtered deflection, whose differences do not show it.

    Raises:
        IdentificationError: Shapes do not fit, values are not finite, a law is unknown, there are too few samples, or
            the deflection does not exceed its noise.
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
            f"torque in blocks that were left out is off by {held_out[law]:.3g} (N m or N) with {law}, by "
            f"{held_out[fit.law]:.3g} with {fit.law}: {'a' if better else 'no'} gain beyond chance"
        )
        fit, errors = (other, other_errors) if better else (fit, errors)
    return replace(fit, held_out_rms=held_out, reason=reason)


def _fit(data: SpringData, law: str) -> tuple[SpringFit, NDArray]:
    """Return the fit, and the squared error of each block of time when it was held out."""
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
        spread.dof,
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
    """Judge by the regression of deflection on torque whether the joint yields, then by the fit how much."""
    yielding = Stiffness.from_error(inverse, float(spread.standard_errors[-1]), spread.dof)
    if yielding.compliance_interval[0] <= 0 or stiffness <= 0:
        return yielding
    return Stiffness.from_error(1 / stiffness, float(spread.standard_errors[0]) / stiffness**2, spread.dof)


def _solve(data: SpringData, law: str, start: NDArray | None = None) -> tuple[NDArray, NDArray]:
    """Return values (p,) and offsets (R,) that minimize the residuals over their effective variance."""
    spring = SPRINGS[law]()
    count = len(spring.names)
    width = float(np.std(data.deflection))
    height = float(np.std(data.torque))
    unit = np.array([height ** SPRING_UNIT_POWERS[n][0] * width ** SPRING_UNIT_POWERS[n][1] for n in spring.names])
    zero = np.array([data.deflection[data.runs == run].mean() for run in range(data.runs.max() + 1)])
    noise = (data.noise / width) ** 2
    misfit = 1.0

    def scaled(x: NDArray) -> tuple[NDArray, NDArray]:
        bent = (data.deflection - zero[data.runs]) / width - x[count:][data.runs]
        values = x[:count]
        return data.torque / height - spring.torque(bent, values), spring.tangent(bent, values) ** 2 * noise

    def weighted(x: NDArray) -> NDArray:
        residual, variance = scaled(x)
        return residual / np.sqrt(misfit + variance)

    starts = _starts(data, law, zero, width, height) if start is None else [start / unit]
    best = np.empty(0)
    least = np.inf
    for values in starts:
        x = np.append(values, np.zeros(len(zero)))
        misfit = 1.0
        for _ in range(MAX_ROUNDS):
            x = least_squares(weighted, x).x
            residual, variance = scaled(x)
            updated = max(float(np.mean(residual**2) - np.mean(variance)), 1e-6)
            settled = abs(updated - misfit) < 1e-4 * updated
            misfit = updated
            if settled:
                break
        error = float(np.mean(residual**2))
        if error < least:
            best = x
            least = error
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
    """Return the mean square residual of the torque without the deflection's noise, which would favour soft springs."""
    slope = SPRINGS[law]().tangent(data.deflection - offsets[data.runs], values)
    return float(np.mean(_residual(data, law, values, offsets) ** 2) - np.mean(slope**2) * data.noise**2)


def _inverse_regression(data: SpringData) -> float:
    """Return the slope of deflection over torque, which noise of the deflection does not bias."""
    parts = [data.runs == run for run in np.unique(data.runs)]
    tau = np.concatenate([data.torque[part] - data.torque[part].mean() for part in parts])
    return float(np.concatenate([data.deflection[part] for part in parts]) @ tau / (tau @ tau))


def _rms(squares: NDArray) -> float:
    return float(np.sqrt(max(squares.mean(), 0.0)))
