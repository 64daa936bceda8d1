"""Find motions that a robot repeats, within a recording or in several, and measure how far its torques differ.

Runs are compared at equal times since the start of the motion. The clocks of two recordings may be shifted, but a
motion at another speed has no constant shift and is no repetition. A run with another load is no repetition either:
its difference is the torque of a body at the tip. The floor is the smallest RMS residual that any model can have. The
difference d of two runs has twice the variance of one run, so the floor is the RMS of d over √2.

Neighbouring differences are correlated. The squared floor of N samples has N / (1 + 2 Σ ρ_k²) degrees of freedom,
with the autocorrelation ρ_k of d (Bartlett 1946). A change of offset or friction between two runs is one event,
however long the runs are: this part of d has as many degrees of freedom as it has coefficients. Both parts together
have the degrees of freedom of Satterthwaite (1946).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.identification.link_prediction import compare
from dynid_ros.identified.links import LinkModel
from dynid_ros.identified.validation import MIN_FLOOR_DOF, Repeatability
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSegment, LinkSignals
from dynid_ros.signals import LowPass
from dynid_ros.signals.spectra import COUNT_TOLERANCE, correlate, longest_run

SEARCH_RATE_HZ = 20.0
"""Sampling rate of the search for repetitions."""
PROBE_S = 4.0
"""Duration of a piece of motion that is searched for, s."""
MAX_PROBES = 12
"""Number of pieces of each stretch that are searched for."""
MAX_STRETCHES = 24
"""Largest number of stretches that are compared; the longest are used, as pauses of a logger make many short ones."""
MAX_RUN_S = 600.0
"""Longest part of a stretch that is compared, which bounds memory and time: ten minutes show how a robot repeats."""
MAX_PATH_DIFFERENCE = 0.01
"""Largest RMS difference of position between repetitions, over the spread of the positions. A trajectory that is run
again differs by 0.001, the start of a motion from rest by more than 0.01, another trajectory of the same style by
0.5."""
NEAR_PATH = 0.2
"""Largest RMS difference of a candidate before its shift is refined, over the spread: half a sample of the search."""
MIN_PROBE_TRAVEL = 0.1
"""Smallest standard deviation of a joint in a piece that is searched for, over that in all recordings."""
MATCH_WINDOW_S = 1.0
"""Duration over which the squared difference of positions is averaged, s."""
MIN_REPEATED_S = 3.0
"""Shortest repeated stretch, s."""
MIN_SPEED_RATIO = 0.05
"""Speed over RMS speed that at least one joint must exceed, because standstill is not a repeated motion."""
MAX_LOAD_SHARE = 0.5
"""Largest share of the difference that a body at the tip may explain by chance, after a change of friction."""
MAX_LOAD_SAMPLES = 5000
"""Largest number of samples to which the torque of a body is fitted, to bound the memory."""
SAMPLES_PER_EQUATION = 3
"""Samples of a run per sample that the decimation of the low-pass would leave."""
MAX_CORRELATION_S = 3.0
"""Longest lag of the autocorrelation of the differences, s."""
COPY_RATIO = 1e-6
"""Difference of torque, over its spread, of a recording that is a copy of another one."""
CHAINED_PAIRS_FACTOR = 1.5
"""Divisor of the degrees of freedom if consecutive pairs share a run: their differences have a correlation of −1/2."""


@dataclass(frozen=True, eq=False)
class _Run:
    """Stretch of motion without a gap.

    Attributes:
        recording: index of the recording.
        time: (M,) uniform times, s.
        position, velocity, acceleration: (M, n) motion.
        torque: (M, n) torque after the low-pass; NaN near the ends.
    """

    recording: int
    time: NDArray
    position: NDArray
    velocity: NDArray
    acceleration: NDArray
    torque: NDArray

    @classmethod
    def from_segment(cls, recording: int, segment: LinkSegment, signals: LinkSignals) -> _Run:
        """Return the begin of a segment, decimated so that cubic splines still restore the low-passed signals."""
        low_pass = LowPass(signals.cutoff, segment.rate)
        count = min(len(segment.time), round(MAX_RUN_S * segment.rate))
        torque = np.full((count, segment.torque.shape[1]), np.nan)
        if count > 2 * low_pass.edge:
            inner = slice(low_pass.edge, count - low_pass.edge)
            torque[inner] = low_pass.filter(segment.torque[:count])[inner]
        kept = slice(0, count, max(1, low_pass.decimation // SAMPLES_PER_EQUATION))
        position, velocity, acceleration = (np.array(values[kept]) for values in segment.motion)
        return cls(recording, segment.time[kept], position, velocity, acceleration, torque[kept].copy())

    @property
    def period(self) -> float:
        """Sampling period, s."""
        return float(self.time[1] - self.time[0])


class _Scales(NamedTuple):
    """Spread of the positions (n,) and RMS of the velocities (n,) in all runs."""

    position: NDArray
    speed: NDArray


@dataclass(frozen=True, eq=False)
class _Pair:
    """Motion that occurs in two runs.

    Attributes:
        first, second: the runs, which may be the same.
        rows: (K,) samples of the first run that are repeated.
        times: (K,) times of the second run at these samples, s.
        difference: (K, n) torque of the first run minus that of the second.
    """

    first: _Run
    second: _Run
    rows: NDArray
    times: NDArray
    difference: NDArray


def measure_repeatability(
    robot: RobotModel,
    signals: LinkSignals,
    recordings: Sequence[Recording],
    model: LinkModel | None = None,
    judged: Sequence[int] = (),
) -> Repeatability | None:
    """Return how far torques differ between repetitions of a motion; None: no motion is repeated.

    Args:
        robot: arm with nominal links.
        signals: filters of the equations.
        recordings: recordings of this arm.
        model: identified arm whose residual is compared with the floor; None: no model.
        judged: indices of the recordings that were not fitted. Only their residuals count, if they contain repetitions;
            otherwise those of all recordings.
    """
    selected = [recording.select(robot.joint_names) for recording in recordings]
    runs = [
        _Run.from_segment(number, segment, signals)
        for number, recording in enumerate(selected)
        for segment in signals.segments(recording)
        if segment.time[-1] - segment.time[0] > PROBE_S
    ]
    if not runs:
        return None
    runs = sorted(sorted(runs, key=lambda run: -len(run.time))[:MAX_STRETCHES], key=lambda run: run.recording)
    pairs = [pair for pair in _pairs(runs) if not _carries_another_load(robot, pair)]
    if not pairs:
        return None
    torque = np.concatenate([run.torque[np.isfinite(run.torque).all(axis=1)] for run in runs])
    spread = torque.std(axis=0)
    squared, drift, dof = _floor_statistics(pairs)
    floor = np.sqrt(squared / 2)
    is_copy = floor <= COPY_RATIO * np.maximum(spread, np.finfo(float).tiny)
    floor[is_copy | (dof < MIN_FLOOR_DOF)] = np.nan
    if not np.isfinite(floor).any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        explainable = np.clip(1 - (floor / spread) ** 2, 0.0, 1.0)
    numbers = sorted({run.recording for pair in pairs for run in (pair.first, pair.second)})
    return Repeatability(
        recordings=tuple(selected[number].source for number in numbers),
        seconds=float(sum(_seconds(pair) for pair in pairs)),
        joint_names=tuple(robot.joint_names),
        units=tuple("N" if prismatic else "N m" for prismatic in robot.chain.prismatic),
        floor=floor,
        dof=dof,
        explainable=np.where(np.isfinite(floor), explainable, np.nan),
        residual=np.full(len(floor), np.nan) if model is None else _residual(model, selected, pairs, judged),
        drift=np.where(np.isfinite(floor), drift, np.nan),
    )


def _seconds(pair: _Pair) -> float:
    return len(pair.rows) * pair.first.period


# Search: find pieces of a run in all runs, refine the shift between the runs, and compare the whole overlap.


def _pairs(runs: Sequence[_Run]) -> list[_Pair]:
    """Return the motions that are repeated between recordings; if there are none, those within a recording.

    Repetitions in different recordings are preferred, because a model must hold in all recordings.
    """
    spread = np.concatenate([run.position for run in runs]).std(axis=0)
    if not spread.any():
        return []
    scales = _Scales(
        np.where(spread > 0, spread, 1.0),
        np.sqrt(np.mean(np.concatenate([run.velocity for run in runs]) ** 2, axis=0)),
    )
    combinations = list(combinations_with_replacement(runs, 2))
    for is_within in (False, True):
        compared = [pair for pair in combinations if (pair[0].recording == pair[1].recording) is is_within]
        repeated = [
            pair
            for first, second in compared
            for shift in _shifts(first, second, scales)
            if (pair := _compare(first, second, _refined(first, second, shift, scales), scales)) is not None
        ]
        if repeated:
            return _without_overlaps(repeated)
    return []


def _without_overlaps(pairs: Sequence[_Pair]) -> list[_Pair]:
    """Return the longest pairs such that each sample occurs at most once as first and at most once as second."""
    kept: list[_Pair] = []
    for pair in sorted(pairs, key=lambda pair: (-len(pair.rows), pair.times[0])):
        if not any(
            (pair.first is other.first and _overlap(pair.rows, other.rows))
            or (pair.second is other.second and _overlap(pair.times, other.times))
            for other in kept
        ):
            kept.append(pair)
    return kept


def _overlap(values: NDArray, others: NDArray) -> bool:
    return bool(values[0] < others[-1] and values[-1] > others[0])


def _shifts(first: _Run, second: _Run, scales: _Scales) -> list[float]:
    """Return shifts, s, to add to times of the first run at which the second run repeats a piece of it."""
    path = _coarse(first, scales)
    other = _coarse(second, scales)
    length = int(PROBE_S * SEARCH_RATE_HZ)
    if min(len(path), len(other)) <= length:
        return []
    energy = np.concatenate([[0.0], np.cumsum(np.sum(other**2, axis=1))])
    starts = np.unique(np.linspace(0, len(path) - length, MAX_PROBES).astype(int))
    shifts: list[float] = []
    for start in starts:
        probe = path[start : start + length]
        if probe.std(axis=0).max() < MIN_PROBE_TRAVEL:
            continue
        # Mean square distance at each place in the other run: |p - o|² = |p|² + |o|² - 2 p·o.
        columns = zip(other.T, probe.T, strict=True)
        product = sum(correlate(column, piece)[length - 1 : len(other)] for column, piece in columns)
        distance = np.sum(probe**2) + energy[length:] - energy[:-length] - 2 * product
        distance = np.maximum(distance, 0.0) / probe.size
        if first is second:
            # A smooth motion resembles itself at small shifts: skip that minimum, and search forward only.
            beyond = np.flatnonzero(distance[start:] > NEAR_PATH**2)
            distance[: start + (beyond[0] if beyond.size else len(distance))] = np.inf
        place = int(np.argmin(distance)) if len(distance) else 0
        # The tolerance allows for an error of half a sample in the shift, which is refined later.
        if distance[place] < NEAR_PATH**2:
            shifts.append(float(second.time[0] - first.time[0]) + (place - int(start)) / SEARCH_RATE_HZ)
    distinct: list[float] = []
    for shift in sorted(shifts):
        if not distinct or shift - distinct[-1] > 2 / SEARCH_RATE_HZ:
            distinct.append(shift)
    return distinct


def _coarse(run: _Run, scales: _Scales) -> NDArray:
    """Return positions (K, n) at the rate of the search, in units of their spread."""
    time = np.arange(run.time[0], run.time[-1], 1 / SEARCH_RATE_HZ)
    return np.stack([np.interp(time, run.time, column) for column in (run.position / scales.position).T], axis=1)


def _refined(first: _Run, second: _Run, shift: float, scales: _Scales) -> float:
    """Return the shift with the smallest squared difference of position, by Gauss-Newton steps."""
    spline = CubicSpline(second.time, second.position)
    refined = shift
    for _ in range(4):
        inside = _inside(first.time + refined, second.time)
        if not inside.any():
            return shift
        times = first.time[inside] + refined
        error = (first.position[inside] - spline(times)) / scales.position
        slope = spline(times, 1) / scales.position
        # Samples that are no repetition must not affect the shift.
        near = np.sqrt(np.mean(error**2, axis=1)) < NEAR_PATH
        power = np.sum(slope[near] ** 2)
        if not power > 0:
            return shift
        refined += float(np.sum(slope[near] * error[near]) / power)
    return refined if abs(refined - shift) < 2 / SEARCH_RATE_HZ else shift


def _inside(times: NDArray, range_of: NDArray) -> NDArray:
    """Return a mask of the times from the first to the last time of another series."""
    return (times >= range_of[0]) & (times <= range_of[-1])


def _compare(first: _Run, second: _Run, shift: float, scales: _Scales) -> _Pair | None:
    """Return the longest stretch of the first run that the second run repeats `shift` seconds later, or None."""
    times = first.time + shift
    known = np.isfinite(second.torque).all(axis=1)
    if not known.any():
        return None
    inside = _inside(times, second.time[known]) & np.isfinite(first.torque).all(axis=1)
    period = first.period
    half = max(1, int(MATCH_WINDOW_S / period / 2 + COUNT_TOLERANCE))
    if np.count_nonzero(inside) <= 2 * half:
        return None
    squares = np.full(len(times), np.inf)
    path = CubicSpline(second.time, second.position)(times[inside])
    squares[inside] = np.mean(((first.position[inside] - path) / scales.position) ** 2, axis=1)
    agreeing = np.zeros(len(times), dtype=bool)
    agreeing[half:-half] = sliding_window_view(squares, 2 * half + 1).mean(axis=1) < MAX_PATH_DIFFERENCE**2
    start, length = longest_run(agreeing)
    rows = np.arange(start, start + length)
    # Standstill is not a repeated motion.
    rows = rows[(np.abs(first.velocity[rows]) > MIN_SPEED_RATIO * scales.speed).any(axis=1)]
    if len(rows) * period < MIN_REPEATED_S:
        return None
    # The low-passed torque is smooth, so a cubic spline between its samples restores it.
    torque = CubicSpline(second.time[known], second.torque[known])(times[rows])
    return _Pair(first, second, rows, times[rows], first.torque[rows] - torque)


# Statistics of the differences.


def _friction_change(pair: _Pair, joint: int) -> NDArray:
    """Return orthonormal columns (K, 3), or fewer, that span changes of offset, dry and viscous friction."""
    velocity = pair.first.velocity[pair.rows, joint]
    columns = np.column_stack([np.ones(len(velocity)), np.sign(velocity), velocity])
    left, singular, _ = np.linalg.svd(columns, full_matrices=False)
    return left[:, singular > 1e-9 * singular[0]]


def _carries_another_load(robot: RobotModel, pair: _Pair) -> bool:
    """Return whether a body at the tip explains most of the difference that a change of friction does not explain."""
    every = 1 + len(pair.rows) // MAX_LOAD_SAMPLES
    pair = _Pair(pair.first, pair.second, pair.rows[::every], pair.times[::every], pair.difference[::every])
    motion = (getattr(pair.first, name)[pair.rows] for name in ("position", "velocity", "acceleration"))
    body = robot.torque_regressor(*motion)[..., -PARAMETERS_PER_LINK:]
    targets: list[NDArray] = []
    columns: list[NDArray] = []
    for joint in range(robot.n_joints):
        basis = _friction_change(pair, joint)
        difference = pair.difference[:, joint]
        rest = difference - basis @ (basis.T @ difference)
        rms = np.sqrt(np.mean(rest**2))
        if rms > 0:
            body_torque = body[:, joint]
            targets.append(rest / rms)
            columns.append((body_torque - basis @ (basis.T @ body_torque)) / rms)
    if not targets:
        return False
    matrix = np.concatenate(columns)
    solution = np.linalg.lstsq(matrix, np.concatenate(targets), rcond=1e-6)[0]
    residual = np.column_stack([target - rows @ solution for target, rows in zip(targets, columns, strict=True)])
    n_independent = float(_independent_samples(residual, _lag_count(pair)).sum())
    # The mean square of each target is 1; ten parameters explain a part of it by chance.
    unexplained = np.mean(residual**2) * n_independent / max(n_independent - PARAMETERS_PER_LINK, 1.0)
    return bool(1 - unexplained > MAX_LOAD_SHARE)


def _lag_count(pair: _Pair) -> int:
    """Return the number of lags of the autocorrelation of a pair's difference."""
    period = (pair.times[-1] - pair.times[0]) / (len(pair.times) - 1)
    return max(1, min(len(pair.rows) // 4, int(MAX_CORRELATION_S / period + COUNT_TOLERANCE)))


def _independent_samples(values: NDArray, lags: int) -> NDArray:
    """Return the numbers (n,) of independent samples whose mean square is as certain as that of values (K, n)."""
    count = len(values)
    independent = []
    for column in values.T:
        products = correlate(column, column)[count - 1 : count + lags]
        correlation = products[1:] / max(products[0], np.finfo(float).tiny)
        # Squares of chance correlations have a mean of 1 / count.
        independent.append(count / (1 + 2 * max(0.0, float(np.sum(correlation**2 - 1 / count)))))
    return np.array(independent)


def _floor_statistics(pairs: Sequence[_Pair]) -> tuple[NDArray, NDArray, NDArray]:
    """Return the mean square (n,) of all differences, the share (n,) of drift in it, and its degrees of freedom (n,).

    Drift is the change of offset and friction between the two runs of a pair.
    """
    n = pairs[0].difference.shape[1]
    count = sum(len(pair.rows) for pair in pairs)
    parts = {name: np.zeros(n) for name in ("drift", "rest", "drift_error", "rest_error")}
    for pair in pairs:
        rest = pair.difference.copy()
        share = len(pair.rows) / count
        for joint in range(n):
            basis = _friction_change(pair, joint)
            change = basis @ (basis.T @ rest[:, joint])
            rest[:, joint] -= change
            square = share * np.mean(change**2)
            parts["drift"][joint] += square
            parts["drift_error"][joint] += square**2 / basis.shape[1]
        square = share * np.mean(rest**2, axis=0)
        parts["rest"] += square
        parts["rest_error"] += square**2 / _independent_samples(rest, _lag_count(pair))
    # Satterthwaite: dof = (Σ s)² / Σ (s² / dof_s) for the mean squares s of all parts.
    total = parts["drift"] + parts["rest"]
    with np.errstate(divide="ignore", invalid="ignore"):
        dof = total**2 / (parts["drift_error"] + parts["rest_error"])
        drift = parts["drift"] / total
    return total, drift, np.nan_to_num(dof) / (CHAINED_PAIRS_FACTOR if len(pairs) > 1 else 1.0)


def _residual(
    model: LinkModel, recordings: Sequence[Recording], pairs: Sequence[_Pair], judged: Sequence[int]
) -> NDArray:
    """Return the RMS residual (n,) of the model on both runs of the repeated motions, in `judged` if possible."""
    spans = [
        (run.recording, float(times[0]), float(times[-1]))
        for pair in pairs
        for run, times in ((pair.first, pair.first.time[pair.rows]), (pair.second, pair.times))
    ]
    spans = [span for span in spans if span[0] in judged] or spans
    errors = []
    for number in sorted({span[0] for span in spans}):
        time, measured, predicted = compare(model, recordings[number])
        inside = np.any([(time >= start) & (time <= end) for index, start, end in spans if index == number], axis=0)
        errors.append((measured - predicted)[inside])
    return np.sqrt(np.mean(np.concatenate(errors) ** 2, axis=0))
