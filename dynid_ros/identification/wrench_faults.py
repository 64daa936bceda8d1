"""Detection of faults of a force/torque sensor: axes, units, gains, a jump or drift of the bias, a changed load.

With a rigid load and a fault-free sensor, forces and torques are linear in the acceleration a of the sensor minus
gravity, in the sensor's axes,

    f = m a + …,    τ = mc × a + …,

where … are terms of the angular motion. Here both are fitted with arbitrary matrices, f = A a + … + b and τ = B a + … +
b. Wrong axes or gains then leave no residuals, but a bias b that changes with time does. The matrices reveal axes and
gains: for a fault-free sensor A is the mass times a rotation Q, and B is Q times a skew-symmetric matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.rank import MOTION_RANK_TOLERANCE
from dynid_ros.identification.wrench_frame import SENSOR_AXES, WRENCH_UNITS

MAX_LEFT_FRACTION = 0.5
"""Largest fraction of the RMS residual that remains if a fault explains it. In simulated recordings of fault-free
sensors on elastic arms, with a fitted jump 0.65 or more remains of ten to thirty rests, with a fitted drift 0.74 or
more; of a motion 0.98 or more remains with either. If the bias jumps, a fitted jump leaves at most 0.01 at rest and
0.15 in motion; if it drifts, a fitted drift leaves at most 0.17 and 0.08."""

MIN_STEP_FRACTION = 0.05
"""Smallest jump of a bias that is refused, as a fraction of the load's force or torque."""

MIN_DRIFT_FRACTION = 0.1
"""Smallest drift that is estimated and reported, as a fraction of the load's force or torque."""

MAX_DRIFT_FRACTION = 0.3
"""Largest drift that is corrected. A real sensor that warmed up had 0.2."""

DRIFT_DEGREE = 2
"""Degree of the polynomial of time that a drifting bias follows."""

MIN_LOAD_CHANGE = 0.03
"""Smallest relative change of A or B that counts as a change of the load."""

MIN_RESTS_OF_LOAD = 5
"""Smallest number of samples before and after a change of the load: fewer do not determine a load."""

MIN_GAIN_DIFFERENCE = 0.04
MIN_TORQUE_GAIN_DIFFERENCE = 0.1
MIN_GAIN_ERRORS = 6.0
"""Smallest relative differences of gains of force and of torque that are faults, and smallest difference in standard
deviations of a gain's error. Elastic joints imitate a difference of 0.05 of a torque."""

MIN_SHARE_OF_MATRIX = 0.3
"""Smallest entry of B, as a fraction of the largest one, from which a gain is determined."""

MIN_SIGNIFICANCE = 8.0
"""Smallest ratio of a matrix, or of a difference of gains, to its standard error."""

MAX_CENTER_M = 1.0
"""Largest plausible distance of a load's centre from the sensor."""

MAX_SYMMETRIC_FRACTION = 0.3
"""Symmetric fraction of B above which the axes of the torque are checked."""

MAX_UNEXPLAINED_FRACTION = 0.5
"""Residual of a fit, as a fraction of the readings' variation, above which it is refused unless noise explains it."""

MAX_NOISE_RATIO = 3.0
"""Ratio of the residual of a fit to the noise of a single reading, up to which noise explains the residual."""

MAX_SAMPLES = 1500
"""Largest number of samples that are fitted."""
MAX_CANDIDATES = 60
"""Approximate number of times in a recording at which a change is tried."""
MIN_FREEDOM = 4
"""Smallest number of degrees of freedom of a valid fit, for each axis."""

WRENCH_PARTS = (slice(0, 3), slice(3, 6))
KIND_NAMES = ("force", "torque")
SIGNED_PERMUTATIONS = [
    np.diag(signs) @ np.eye(3)[list(order)]
    for order in permutations(range(3))
    for signs in product((1.0, -1.0), repeat=3)
]


class Drift(NamedTuple):
    """Drift of a sensor's bias.

    Attributes:
        sizes: (6,) range of the bias within a recording, N and N m; 0 for an axis without notable drift.
        fraction: largest range, as a fraction of the load's force or torque.
    """

    sizes: NDArray
    fraction: float

    @property
    def text(self) -> str:
        """Axes that drift, with their sizes."""
        shown = [k for k, size in enumerate(self.sizes) if size > 0]
        return ", ".join(f"{SENSOR_AXES[k]} by {self.sizes[k]:.2g} {WRENCH_UNITS[k]}" for k in shown)


@dataclass(frozen=True, eq=False)
class LinearReadings:
    """Readings of a sensor with a load, and the columns in which they are linear.

    Attributes:
        time: (N,) times, s.
        recording: (N,) index of the recording.
        acceleration: (N, 3) acceleration a of the sensor minus gravity, in the stated axes of the sensor, m/s².
        other: columns (N, ·) of the angular motion, for force and for torque; empty at rest.
        wrench: (N, 6) force and torque, N and N m.
        drift: degree of the polynomial of time that the bias is assumed to follow.
    """

    time: NDArray
    recording: NDArray
    acceleration: NDArray
    other: tuple[NDArray, NDArray]
    wrench: NDArray
    drift: int = 0

    def thinned(self) -> LinearReadings:
        """Return at most `MAX_SAMPLES` of the readings, at regular distances."""
        rows = slice(None, None, -(-len(self.time) // MAX_SAMPLES))
        force, torque = self.other
        return replace(
            self,
            time=self.time[rows],
            recording=self.recording[rows],
            acceleration=self.acceleration[rows],
            other=(force[rows], torque[rows]),
            wrench=self.wrench[rows],
        )

    @property
    def biases(self) -> NDArray:
        """Columns (N, r) of the biases, one per recording."""
        return (self.recording[:, None] == np.unique(self.recording)).astype(float)

    @property
    def course(self) -> NDArray:
        """Normalised time (N,), from −1 to 1 in each recording."""
        course = np.zeros(len(self.time))
        for number in np.unique(self.recording):
            rows = self.recording == number
            time = self.time[rows]
            course[rows] = 2 * (time - time[0]) / max(np.ptp(time), 1e-9) - 1
        return course

    def design(self, kind: int, *more: NDArray) -> NDArray:
        """Return the columns (N, k) of force (kind 0) or torque (kind 1); those of the acceleration come first."""
        return np.hstack([self.acceleration, self.other[kind], self.biases, *self.powers(self.drift), *more])

    def powers(self, degree: int) -> list[NDArray]:
        """Return powers 1 to `degree` of the normalised time, each (N, r) with one column per recording."""
        return [self.biases * self.course[:, None] ** power for power in range(1, degree + 1)]


@dataclass(frozen=True, eq=False)
class _Fit:
    """Least-squares fit of force and torque with arbitrary matrices A and B.

    Attributes:
        solutions: (k, 3) coefficients of the columns, for force and for torque.
        errors: (k, 3) standard errors of the coefficients, for force and for torque.
        squares: sum of the mean squared residuals of force and torque, relative to their squared `sizes`.
        sizes: (2,) RMS variation of force and torque by the acceleration, N and N m.
    """

    solutions: tuple[NDArray, NDArray]
    errors: tuple[NDArray, NDArray]
    squares: float
    sizes: NDArray

    def matrix(self, kind: int) -> NDArray:
        """Return the matrix (3, 3) A of force (kind 0) or B of torque (kind 1)."""
        return self.solutions[kind][:3].T

    def is_shown(self, kind: int) -> bool:
        """Return whether the matrix of a kind is significant."""
        return bool(np.linalg.norm(self.matrix(kind)) > MIN_SIGNIFICANCE * np.linalg.norm(self.errors[kind][:3]))


def _fitted(readings: LinearReadings, *more: NDArray, sizes: NDArray | None = None) -> _Fit | None:
    """Return a fit, or None if there are too few samples to determine its errors.

    Args:
        readings: readings of the sensor.
        more: additional columns (N, ·) by which a fault is explained.
        sizes: (2,) scales of the residuals; None: those of this fit.
    """
    solutions = []
    errors = []
    squares = []
    loads = []
    for kind, axes in enumerate(WRENCH_PARTS):
        design = readings.design(kind, *more)
        right = readings.wrench[:, axes]
        scale = np.maximum(np.linalg.norm(design, axis=0), 1e-12)
        left, singular, vectors = np.linalg.svd(design / scale, full_matrices=False)
        used = singular > MOTION_RANK_TOLERANCE * singular[0]
        freedom = len(right) - int(used.sum())
        if freedom < MIN_FREEDOM:
            return None
        inverse = (vectors[used].T / singular[used]) / scale[:, None]
        solution = inverse @ (left[:, used].T @ right)
        residual = np.sum((right - design @ solution) ** 2, axis=0) / freedom
        solutions.append(solution)
        errors.append(np.sqrt(np.sum(inverse**2, axis=1)[:, None] * residual))
        squares.append(residual.sum())
        loads.append(np.linalg.norm(np.std(design[:, :3] @ solution[:3], axis=0)))
    sizes = np.array(loads) if sizes is None else sizes
    return _Fit(
        (solutions[0], solutions[1]),
        (errors[0], errors[1]),
        float(np.sum(squares / np.maximum(sizes, 1e-9) ** 2)),
        sizes,
    )


def find_faults(readings: LinearReadings, source: str, gain_error: float) -> Drift | None:
    """Refuse readings of a sensor with a fault; return the drift of its bias if it can be corrected, or None.

    Args:
        readings: readings at rest, or in motion; then all signals have passed the same low-pass.
        source: name of the recordings, for messages.
        gain_error: standard deviation of the relative error of each axis' gain.

    Raises:
        IdentificationError: the sensor has a fault, which the message names.
    """
    readings = readings.thinned()
    fit = _fitted(readings)
    if fit is None:
        return None
    drift = _changing_bias(readings, fit, source)
    if drift is not None or not readings.other[0].size:
        # At rest, even a drift that is too small to report could look like an error of a gain.
        fit = _fitted(readings, *readings.powers(DRIFT_DEGREE)) or fit
    if not fit.is_shown(0):
        return None
    for fault in (*_wrong_axes(fit), *_wrong_units(fit), *_wrong_gains(fit, gain_error)):
        raise IdentificationError(f"{source}: {fault}")
    return drift


# A bias or a load that changes during a recording.


def _changing_bias(readings: LinearReadings, fit: _Fit, source: str) -> Drift | None:
    """Refuse a bias that jumps, and at rest a load that changes; return a notable drift, or None.

    Each explanation is fitted: a drift, and a jump or a change of the load at each candidate time. The explanation that
    leaves the smallest residual counts.
    """
    limit = MAX_LEFT_FRACTION**2 * fit.squares
    drifting = _fitted(readings, *readings.powers(DRIFT_DEGREE), sizes=fit.sizes)
    drift_squares = np.inf if drifting is None else drifting.squares
    moments = [after[:, None].astype(float) for after in _moments(readings)]
    jump_squares, jump_index, jumping = _best(readings, fit, [(after,) for after in moments])
    enough = [after for after in moments if min(after.sum(), (1.0 - after).sum()) >= MIN_RESTS_OF_LOAD]
    columns = [(after, after * readings.acceleration) for after in enough]
    load_squares, load_index, loaded = _best(readings, fit, columns)
    # Stricter limits, as a change of the load has more unknowns than a jump or a drift.
    load_limit = min(limit, MAX_LEFT_FRACTION**2 * drift_squares, MAX_LEFT_FRACTION * jump_squares)
    if loaded is not None and load_squares < load_limit:
        changes = [np.linalg.norm(solution[-3:]) for solution in loaded.solutions]
        change = max(changes / np.array([np.linalg.norm(loaded.matrix(kind)) for kind in range(2)]))
        if readings.other[0].size:
            return None  # `require_steady` has a better test for a load that changes in motion
        if change > MIN_LOAD_CHANGE:
            raise IdentificationError(
                f"{source}: the load changed at about t = {_first_time(readings, enough[load_index]):.1f} s: it "
                "slipped, or was picked up or dropped. Fasten it, or identify the time before and the time after apart"
            )
    if jumping is not None and jumping.is_shown(0) and jump_squares < min(limit, drift_squares):
        sizes = np.concatenate([np.abs(solution[-1]) for solution in jumping.solutions])
        if np.max(sizes / np.repeat(fit.sizes, 3)) > MIN_STEP_FRACTION:
            raise IdentificationError(
                f"{source}: the bias changed at about t = {_first_time(readings, moments[jump_index]):.1f} s, "
                f"{_largest(sizes)}: the sensor was zeroed, or hit. Zero it before the recording only, and record "
                "again, or identify the time before and the time after apart"
            )
    if drifting is None or drift_squares >= limit or not drifting.is_shown(0):
        return None
    drift = _drift(readings, drifting)
    if drift.fraction > MAX_DRIFT_FRACTION:
        raise IdentificationError(
            f"{source}: the bias drifts ({drift.text}), which is {drift.fraction:.0%} of the load's part of the "
            "readings: let the sensor warm up, and record again"
        )
    return drift if drift.fraction > MIN_DRIFT_FRACTION else None


def _best(
    readings: LinearReadings, fit: _Fit, columns: Sequence[tuple[NDArray, ...]]
) -> tuple[float, int, _Fit | None]:
    """Return the squares of the best fit among those with additional columns, its index, and the fit."""
    fits = [_fitted(readings, *more, sizes=fit.sizes) for more in columns]
    squares = [np.inf if candidate is None else candidate.squares for candidate in fits]
    best = int(np.argmin(squares)) if squares else 0
    return (squares[best], best, fits[best]) if squares else (np.inf, 0, None)


def _drift(readings: LinearReadings, drifting: _Fit) -> Drift:
    """Return the drift according to a fit with powers of time."""
    powers = np.hstack(readings.powers(DRIFT_DEGREE))
    paths = np.hstack([powers @ solution[-powers.shape[1] :] for solution in drifting.solutions])
    numbers = np.unique(readings.recording)
    sizes = np.max([np.ptp(paths[readings.recording == number], axis=0) for number in numbers], axis=0)
    shares = sizes / np.repeat(drifting.sizes, 3)
    return Drift(np.where(shares > MIN_DRIFT_FRACTION / 2, sizes, 0.0), float(shares.max()))


def _moments(readings: LinearReadings) -> Iterator[NDArray]:
    """Yield a mask (N,) of the samples after each candidate time of a change."""
    for number in np.unique(readings.recording):
        rows = np.flatnonzero(readings.recording == number)
        least = max(2, len(rows) // 20)
        every = max(1, len(rows) // MAX_CANDIDATES)
        for first in rows[least : len(rows) - least + 1 : every]:
            yield (readings.recording == number) & (np.arange(len(readings.time)) >= first)


def _first_time(readings: LinearReadings, after: NDArray) -> float:
    """Return the time of a change, halfway between the samples before and after it, s."""
    first = int(np.argmax(after))
    return float((readings.time[max(first - 1, 0)] + readings.time[first]) / 2)


def _largest(sizes: NDArray) -> str:
    """Describe the jumps of the axes that jump most."""
    shown = [k for k in np.argsort(-sizes) if sizes[k] > 0.2 * sizes[WRENCH_PARTS[k // 3]].max()]
    return ", ".join(f"{SENSOR_AXES[k]} by {sizes[k]:.2g} {WRENCH_UNITS[k]}" for k in sorted(shown))


# Axes, units and gains, from the matrices A and B.


def _wrong_axes(fit: _Fit) -> Iterator[str]:
    """Yield a sentence on axes that are reversed or exchanged."""
    turn = _orthogonal(fit.matrix(0))
    of_force = _nearest(turn)
    of_torque = _axes_of_torque(fit, of_force, of_force.T @ turn) if fit.is_shown(1) else of_force
    proper = np.linalg.det(of_force) > 0
    if proper and np.array_equal(of_torque, of_force):
        return
    if np.array_equal(of_force, -np.eye(3)) and np.array_equal(of_torque, of_force):
        yield (
            "the load's mass would be below zero: the wrenches have the other sign; set the other convention "
            "('load_on_sensor' or 'sensor_on_load')"
        )
        return
    # A rotation of all axes by 90 or 180 degrees is due to the mounting, not a fault.
    changes = [_named(0, of_force), _named(1, of_torque)]
    if proper:
        changes = [_named(1, of_torque @ of_force.T)]
    yield (
        f"{' and '.join(text for text in changes if text)}: correct the driver's axes, which must be right-handed and "
        "those of the sensor's link in the URDF"
    )


def _orthogonal(matrix: NDArray) -> NDArray:
    """Return the orthogonal matrix nearest to a matrix (3, 3), its polar factor."""
    left, _, right = np.linalg.svd(matrix)
    return left @ right


def _nearest(turn: NDArray) -> NDArray:
    """Return the signed permutation of the same handedness that is nearest to an orthogonal matrix (3, 3)."""
    same = [axes for axes in SIGNED_PERMUTATIONS if np.linalg.det(axes) * np.linalg.det(turn) > 0]
    return max(same, key=lambda axes: float(np.sum(axes * turn)))


def _axes_of_torque(fit: _Fit, of_force: NDArray, turn: NDArray) -> NDArray:
    """Return the signed permutation of the torque's axes: that of the force, unless another one fits much better."""
    matrix = fit.matrix(1)

    def symmetric(axes: NDArray) -> float:
        """Return the symmetric fraction of B in these axes; zero for a fault-free sensor."""
        aligned = turn.T @ axes.T @ matrix
        return float(np.linalg.norm(aligned + aligned.T) / (2 * np.linalg.norm(matrix)))

    fraction = symmetric(of_force)
    if fraction < MAX_SYMMETRIC_FRACTION:
        return of_force
    # Among permutations that fit about equally well, take the one that changes fewest axes.
    scores = [(symmetric(axes), -float(np.trace(of_force.T @ axes)), k) for k, axes in enumerate(SIGNED_PERMUTATIONS)]
    least = min(score for score, *_ in scores)
    if least > MAX_LEFT_FRACTION * fraction:
        return of_force
    *_, best = min((change, score, k) for score, change, k in scores if score < least + 0.1)
    return SIGNED_PERMUTATIONS[best]


def _named(kind: int, axes: NDArray) -> str:
    """Describe a signed permutation of the axes of force or torque."""
    names = SENSOR_AXES[WRENCH_PARTS[kind]]
    order = np.argmax(np.abs(axes), axis=1)
    signs = axes[range(3), order]
    exchanged = [names[k] for k in range(3) if order[k] != k]
    reversed_ = [names[k] for k in range(3) if signs[k] < 0]
    texts = []
    if exchanged:
        texts.append(f"{_list(exchanged)} are exchanged")
    if reversed_:
        texts.append(f"{_list(reversed_)} {'have' if len(reversed_) > 1 else 'has'} the other sign")
    return ", ".join(texts)


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _wrong_units(fit: _Fit) -> Iterator[str]:
    """Yield a sentence on wrong units, by which the load's centre would be implausibly far from the sensor."""
    distance = np.linalg.norm(fit.matrix(1)) / np.sqrt(2) / (np.linalg.norm(fit.matrix(0)) / np.sqrt(3))
    if fit.is_shown(1) and distance > MAX_CENTER_M:
        yield (
            f"the load's centre would be {distance:.3g} m from the sensor: torques are in N mm instead of N m, or "
            "forces in kN; publish N and N m"
        )


def _wrong_gains(fit: _Fit, gain_error: float) -> Iterator[str]:
    """Yield sentences on axes whose gains differ from those of the other axes."""
    turn = _orthogonal(fit.matrix(0))
    rows = np.linalg.norm(fit.matrix(0), axis=1)
    errors = np.linalg.norm(fit.errors[0][:3], axis=0)
    typical = float(np.median(rows))
    ratios = rows / typical
    limit = max(MIN_GAIN_DIFFERENCE, MIN_GAIN_ERRORS * gain_error)
    for axis in np.argsort(-np.abs(ratios - 1)):
        if _differ(ratios[axis], errors[axis] / typical, limit):
            yield (
                f"{SENSOR_AXES[axis]} reads {ratios[axis]:.2f} of what the other axes read of the same load: "
                "correct its gain"
            )
    if not fit.is_shown(1):
        return
    skew = fit.matrix(1) @ turn.T
    deviation = float(np.max(fit.errors[1][:3]))
    for first, second in ((0, 1), (0, 2), (1, 2)):
        one = skew[first, second]
        other = skew[second, first]
        if min(abs(one), abs(other)) < MIN_SHARE_OF_MATRIX * np.abs(skew).max():
            continue
        ratio = abs(one / other)
        limit = max(MIN_TORQUE_GAIN_DIFFERENCE, np.sqrt(2) * MIN_GAIN_ERRORS * gain_error)
        if _differ(ratio, deviation * np.hypot(1 / one, 1 / other) * ratio, limit):
            low, high = (first, second) if ratio < 1 else (second, first)
            yield (
                f"{SENSOR_AXES[3 + low]} reads {min(ratio, 1 / ratio):.2f} of what {SENSOR_AXES[3 + high]} reads of "
                "the same load: correct their gains"
            )


def _differ(ratio: float, error: float, limit: float) -> bool:
    """Return whether a ratio of gains differs from one by more than a limit, and significantly."""
    return abs(ratio - 1) > max(limit, MIN_SIGNIFICANCE * error)


def refuse_unexplained(residual: NDArray, variation: NDArray, noise: NDArray, source: str) -> None:
    """Refuse readings that no load explains.

    Args:
        residual: (6,) RMS residual of the fit of a load.
        variation: (6,) RMS of the readings about their mean.
        noise: (6,) noise of a single reading.
        source: name of the recordings, for messages.

    Raises:
        IdentificationError: residuals exceed the limits.
    """
    for kind, axes in enumerate(WRENCH_PARTS):
        left, size, white = (float(np.linalg.norm(values[axes])) for values in (residual, variation, noise))
        if left > MAX_UNEXPLAINED_FRACTION * size and left > MAX_NOISE_RATIO * white:
            unit = WRENCH_UNITS[3 * kind]
            raise IdentificationError(
                f"{source}: no load explains the readings: a residual of {left:.3g} {unit} is left of the "
                f"{size:.3g} {unit} that {KIND_NAMES[kind]} varies by. Does anything else touch or pull the load, "
                "or is the sensor not at the tip link?"
            )
