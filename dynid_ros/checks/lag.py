"""Lag between torques and positions: the shift of the torques in time that fits them best."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import LAG, Explanation
from dynid_ros.checks.jackknife import Change, Jackknife
from dynid_ros.checks.low_pass import shows_in_rigid_torques
from dynid_ros.checks.torque_model import TorqueFit, TorqueProblem

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

    def fit(lag: float) -> TorqueFit:
        return problem.equations.explaining(problem.samples.delayed_torque(lag)).fit()

    def misfit(lag: float) -> float:
        return fit(lag).misfit

    steps = round(MAX_TRIED_LAG_S / TRIED_STEP_S)
    lag = _minimize(misfit, TRIED_STEP_S * np.arange(-steps, steps + 1))
    lag = _minimize(misfit, lag + REFINED_STEP_FRACTION * TRIED_STEP_S * np.arange(-4, 5))
    return lag, fit(lag)


def _minimize(misfit: Callable[[float], float], lags: NDArray) -> float:
    """Return the vertex of the parabola through the smallest misfit and its neighbours."""
    values = [misfit(lag) for lag in lags]
    k = int(np.argmin(values))
    if not 0 < k < len(lags) - 1:
        return float(lags[k])
    left, middle, right = values[k - 1 : k + 2]
    return float(lags[k] + (lags[k + 1] - lags[k]) * 0.5 * (left - right) / (left - 2 * middle + right))
