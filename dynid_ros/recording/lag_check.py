"""Time between torques and the positions that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.recording.explanation import Explanation
from dynid_ros.recording.motion_samples import MotionSamples
from dynid_ros.recording.presliding import shows_in_rigid_torques, with_presliding
from dynid_ros.recording.torque_fit import Terms, TorqueEquations, TorqueFit, TorqueModel

LAG: Final = "time lag"
LONGEST, STEP = 0.3, 0.03
"""Lags that are tried, s."""
REFINED = 0.2
"""Steps of the second round, in parts of STEP."""
SMALLEST = 0.01
"""Smallest lag to report, s: filters in the drives of sound recordings make up to 7 ms."""
SEEN = 0.04
"""Gain from which a lag is looked at more closely: friction that the model lacks can feign it."""
SHARED = 0.15
"""Gain of the second joint from which it is a lag."""
JOINTS = 2
"""One moving joint alone shows no lag, but its friction's."""


def lag_explanation(
    model: TorqueModel, samples: MotionSamples, terms: Terms, given: TorqueFit
) -> Iterator[Explanation]:
    """The lag of the torques that explains them best, if it is long enough to matter."""
    prismatic = model.robot.chain.prismatic
    if np.count_nonzero(np.isfinite(given.rms)) < JOINTS:
        return
    lag, found = _best_lag(terms, samples, prismatic)
    gain = given.misfit - found.misfit
    if abs(lag) < SMALLEST or gain < SEEN:
        return
    # Is it one of all that moves, or of friction alone?
    columns = terms.rigid
    terms = with_presliding(terms, samples)
    given = TorqueEquations(terms, samples.torque, prismatic).fit()
    lag, found = _best_lag(terms, samples, prismatic)
    rigid = columns @ found.rigid[: columns.shape[2]]
    if (
        abs(lag) >= SMALLEST
        and given.shared_gain(found) >= SHARED
        and shows_in_rigid_torques(samples.shifted(rigid, lag), rigid, found, terms.moving)
    ):
        later, earlier = ("torques", "positions") if lag > 0 else ("positions", "torques")
        at_least = "at least " if abs(lag) > LONGEST - STEP else ""
        yield Explanation(
            LAG,
            gain,
            f"{later} come {at_least}{abs(lag) * 1e3:.0f} ms after the {earlier} that they belong to",
            "take both from one message with one time stamp and without a filter in between, or shift one of them",
            severity="warning",
        )


def _best_lag(terms: Terms, samples: MotionSamples, prismatic: NDArray) -> tuple[float, TorqueFit]:
    """The lag, s, and the fit with it."""
    equations = TorqueEquations(terms, samples.torque, prismatic)

    def fit(lag: float) -> TorqueFit:
        return equations.explaining(samples.delayed_torque(lag)).fit()

    def misfit(lag: float) -> float:
        return fit(lag).misfit

    lag = _lowest(misfit, STEP * np.arange(-round(LONGEST / STEP), round(LONGEST / STEP) + 1))
    lag = _lowest(misfit, lag + REFINED * STEP * np.arange(-4, 5))
    return lag, fit(lag)


def _lowest(misfit: Callable[[float], float], lags: NDArray) -> float:
    """Vertex of the parabola through the lowest of the misfits and its neighbours."""
    values = [misfit(lag) for lag in lags]
    k = int(np.argmin(values))
    if not 0 < k < len(lags) - 1:
        return float(lags[k])
    left, middle, right = values[k - 1 : k + 2]
    return float(lags[k] + (lags[k + 1] - lags[k]) * 0.5 * (left - right) / (left - 2 * middle + right))
