"""Offset and drift between the clocks of a camera and a robot, from one motion that both have recorded."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.signals.lag import SMALLEST_POWER, ShiftedCopies, compare
from dynid_ros.signals.low_pass import LowPass
from dynid_ros.signals.resampling import GapSpline, contiguous
from dynid_ros.signals.spectra import correlate, peaks

MIN_CORRELATION = 0.9
"""Smallest correlation of the best joint: links follow their motors."""
MAX_MIRRORED_CORRELATION = -0.5
"""Correlation below which a joint turns the wrong way."""
MAX_VARIANCE_RATIO = 1.2
"""Largest ratio of the residuals' variances of two equally good fits."""
FIRST_WINDOW_S = 60.0
"""Time at the middle of a record within which a drift shifts the motion by a fraction of a period."""
MAX_STEP_S = 0.02
"""Largest shift of any sample in one iteration."""
MAX_ITERATIONS = 15
MAX_CONDITION = 1e12
"""Largest condition number of the information on offset and drift."""


class ClockFit(NamedTuple):
    """Estimated shift between two clocks.

    Attributes:
        shift: (1,) offset, or (2,) offset and drift.
        copies: fit of the link angles as copies of the motor angles.
    """

    shift: NDArray
    copies: ShiftedCopies

    @property
    def evidence(self) -> float:
        """Twice the log likelihood ratio to independent motions."""
        unexplained = np.maximum(1 - self.copies.correlation**2, 1e-15)
        return -float(np.sum(self.copies.n_samples * np.log(unexplained)))

    @property
    def mirrored(self) -> NDArray:
        """Indices of the joints that turn the wrong way, from 0."""
        return np.flatnonzero(self.copies.correlation < MAX_MIRRORED_CORRELATION)

    def as_good_as(self, other: "ClockFit") -> bool:
        """Return whether no joint has a clearly larger residual."""
        seen = (self.copies.n_samples > 0) & (other.copies.n_samples > 0)
        return bool(np.all(self.copies.noise[seen] < MAX_VARIANCE_RATIO * other.copies.noise[seen]))

    def standard_errors(self, reach: int) -> NDArray:
        """Return the standard errors of the shift, infinite if undetermined (`reach`: see `ShiftedCopies`)."""
        if not np.linalg.cond(self.copies.information) < MAX_CONDITION:
            return np.full(len(self.shift), np.inf)
        return self.copies.standard_errors(reach)


def fit_clock(motor: GapSpline, time: NDArray, angles: NDArray, shift: NDArray, middle: float) -> ClockFit:
    """Refine a shift with an error below a quarter of a period, by Gauss-Newton iterations.

    Args:
        motor: splines of n angles on the first clock.
        time: (M,) times on the second clock, s.
        angles: (M, n) angles on the second clock, NaN where unknown.
        shift: (1,) offset, or (2,) offset and drift: s, and s per s since `middle`.
        middle: time at which the drift is zero, s.
    """
    factors = np.column_stack([np.ones(len(time)), time - middle])[:, : len(shift)]

    def compared(shift: NDArray) -> ShiftedCopies:
        at = time + factors @ shift
        return compare(motor(at), motor(at, 1), angles, factors)

    copies = compared(shift)
    for _ in range(MAX_ITERATIONS):
        if not np.linalg.cond(copies.information) < MAX_CONDITION:
            break
        step = np.linalg.solve(copies.information, copies.score.sum(axis=0))
        step /= max(1.0, np.max(np.abs(factors @ step)) / MAX_STEP_S)
        shift = shift + step
        copies = compared(shift)
        if np.max(np.abs(factors @ step)) < 1e-8:
            break
    return ClockFit(shift, copies)


def fit_outwards(
    motor: GapSpline, time: NDArray, angles: NDArray, offset: float, middle: float, *, drift: bool
) -> ClockFit:
    """Fit from the middle of a long record to its ends, which a drift shifts by more than a period; see `fit_clock`."""
    shift = np.array([offset])
    half = FIRST_WINDOW_S / 2
    while drift and half < (time[-1] - time[0]) / 2:
        rows = np.abs(time - middle) <= half
        fit = fit_clock(motor, time[rows], angles[rows], np.append(shift, 0.0)[:2], middle)
        # Without motion in the middle, the shift stays.
        if np.max(np.abs(fit.copies.correlation)) > MIN_CORRELATION:
            shift = fit.shift
        half *= 2
    return fit_clock(motor, time, angles, shift, middle)


GRID_STEP_S = 0.02
HALF_SPEED_STEPS = 2
"""Half the number of steps for a speed: noise of the angles is small, and motion below 10 Hz is resolved."""
MIN_OVERLAP = 0.25
"""Smallest overlap, as a fraction of the shorter record: in a shorter one, motions correlate by chance."""
MIN_EVIDENCE_FRACTION = 0.2
"""Smallest evidence for an offset to refine, as a fraction of the largest."""
MAX_CANDIDATES = 20
"""Largest number of offsets to refine."""


def candidate_lags(reference: GapSpline, signal: GapSpline, longest: tuple[float, float]) -> NDArray:
    """Return the lags with the best match of speeds, best first, s; empty if the records do not overlap.

    With a lag τ, the signal at time s after its first sample belongs to the reference at time s + τ after its first
    sample. Evidence is the log likelihood ratio of gain · reference + noise to noise alone, summed over all columns,
    with gains of either sign.

    Args:
        reference: splines of n columns.
        signal: splines of n columns.
        longest: smallest and largest lag to consider, s.
    """
    a = _speeds(reference)
    b = _speeds(signal)
    lags = np.arange(1 - len(b), len(a))
    count = np.zeros(len(lags))
    evidence = np.zeros(len(lags))
    for x, y in zip(a.T, b.T, strict=True):
        (in_x, filled_x), (in_y, filled_y) = _filled(x), _filled(y)
        pairs = (in_x, in_y), (filled_x, filled_y), (filled_x**2, in_y), (in_x, filled_y**2)
        overlap, product, power_x, power_y = (correlate(p, q) for p, q in pairs)
        overlap = np.round(overlap)
        # Smaller powers are rounding errors of the transform.
        floor = 1e-9 * np.sum(filled_x**2) * np.sum(filled_y**2)
        power = power_x * power_y
        correlation = product**2 / np.maximum(power, max(floor, SMALLEST_POWER)) * (power > floor)
        evidence -= overlap * np.log1p(-np.clip(correlation, 0.0, 1 - 1e-9))
        count = np.maximum(count, overlap)
    shortest = MIN_OVERLAP * min(len(a), len(b))
    allowed = (
        (count >= shortest)
        & (lags * GRID_STEP_S >= longest[0] - GRID_STEP_S)
        & (lags * GRID_STEP_S <= longest[1] + GRID_STEP_S)
    )
    evidence = np.where(allowed, evidence, 0.0)
    if not evidence.any():
        return np.zeros(0)
    found = peaks(np.concatenate([[0.0], evidence, [0.0]])) - 1
    found = found[evidence[found] >= MIN_EVIDENCE_FRACTION * evidence.max()]
    return lags[found[np.argsort(-evidence[found])][:MAX_CANDIDATES]] * GRID_STEP_S


def _filled(column: NDArray) -> tuple[NDArray, NDArray]:
    return np.isfinite(column).astype(float), np.nan_to_num(column)


def _speeds(record: GapSpline) -> NDArray:
    """Return the speeds (K, n) from the first to the last sample; NaN next to gaps."""
    grid = np.arange(record.time[0], record.time[-1], GRID_STEP_S)
    angles = record(grid)
    speeds = np.full_like(angles, np.nan)
    speeds[HALF_SPEED_STEPS:-HALF_SPEED_STEPS] = angles[2 * HALF_SPEED_STEPS :] - angles[: -2 * HALF_SPEED_STEPS]
    return speeds


MAX_CLOCK_DRIFT = 1e-4
"""Largest relative drift of two quartz clocks, and largest standard error of a drift that is estimated."""
MAX_OFFSET_ERROR_S = 0.02
"""Largest standard error of an offset that is returned."""
MAX_CANDIDATE_SAMPLES = 2000
"""Number of samples by which candidates are compared."""
MAX_MOTION_RATIO = 1.6
"""Largest ratio of the mean square of successive differences to the variance (von Neumann 1941) for motion; 2 for
noise."""
KINEMATIC = (
    "Offset by kinematics alone: links behind springs lag their motors, by about (viscous friction of the link) / "
    "stiffness and more by Coulomb friction; identify the joints' dynamics with the offset free."
)


class ClockAlignment(NamedTuple):
    """Relation of two clocks: robot_time = camera_time + offset + drift · (camera_time − middle).

    Attributes:
        offset: offset, s.
        drift: drift, s per s; 0 if the record does not determine it.
        middle: middle of the camera's record, on its clock, s.
        standard_errors: (2,) standard errors of offset and drift; NaN for an undetermined drift. They allow for
            residuals that are correlated in time and between joints (for more than 0.2 s, they are 10 to 20 % too
            small), but not for the lag of links behind their motors.
        correlation: (n,) correlation between link and motor angles; NaN for joints without samples.
        remarks: remarks, one sentence each.
    """

    offset: float
    drift: float
    middle: float
    standard_errors: NDArray
    correlation: NDArray
    remarks: tuple[str, ...]

    def to_robot(self, camera_time: ArrayLike) -> NDArray:
        """Convert times on the camera's clock to the robot's clock, s."""
        time = np.asarray(camera_time, dtype=float)
        return time + self.offset + self.drift * (time - self.middle)


def align_clocks(
    reference_time: ArrayLike,
    reference: ArrayLike,
    time: ArrayLike,
    values: ArrayLike,
    *,
    longest: float | None = None,
    drift: bool = True,
    cutoff: float | None = None,
) -> ClockAlignment:
    """Estimate offset and drift between two clocks by kinematics alone, with links as copies of their motors.

    Maximum likelihood of values_j(t) = gain_j · reference_j(robot time of t) + offset_j + noise, with gains, offsets
    and noise levels of all joints free; cubic splines between samples, so a fraction of a sample is resolved.

    **Behind a spring the link is no delayed copy of its motor.** Viscous friction v on the link's side of a stiffness k
    delays slow motion by v/k, Coulomb friction c by about 4 c / (π k) over the speed's amplitude, and near the
    resonance gain and phase differ altogether. A simulated link of v/k = 1.5 ms came out 1.6 ms late without and 2 to
    3 ms with Coulomb friction, a hundred standard errors of a stiff arm. So the result is for stiff joints, and a start
    for compliant ones: an identification of the joint's dynamics finds the offset with them.

    Args:
        reference_time: (N,) increasing times on the robot's clock, s.
        reference: (N, n) motor angles, rad or m.
        time: (M,) increasing times on the camera's clock, which may have started at any time, s.
        values: (M, n) link angles with the signs of the motors, NaN where unknown.
        longest: largest offset to consider in either direction, s; None: any with an overlap of a quarter of the
            shorter record.
        drift: whether to estimate the drift too, if the record determines it to 100 ppm.
        cutoff: cutoff frequency of a low-pass that excludes a resonance, Hz; None: without a low-pass.

    Raises:
        RecordingError: the records do not overlap, no joint moves, the motions do not match, or a joint's angle has the
            wrong sign.
    """
    motor, _, turning = _record(reference_time, reference, cutoff, "motor angles")
    link, angles, swinging = _record(time, values, cutoff, "link angles")
    if motor.n_columns != link.n_columns:
        raise RecordingError(
            f"cannot align {link.n_columns} link angles with {motor.n_columns} motor angles: expected as many"
        )
    start = motor.time[0] - link.time[0]
    middle = float(np.mean(np.asarray(time, dtype=float)[[0, -1]]))
    some = slice(None, None, max(1, len(link.time) // MAX_CANDIDATE_SAMPLES))
    bounds = (-np.inf, np.inf) if longest is None else (-longest - start, longest - start)
    fits = [
        fit_outwards(motor, link.time[some], angles[some], start + lag, middle, drift=drift)
        for lag in candidate_lags(motor, link, bounds)
    ]
    fits = [fit for fit in fits if longest is None or abs(fit.shift[0]) <= longest]
    if not fits:
        raise RecordingError(_apart(motor, link, longest))
    moving = turning & swinging
    best, remarks = _choose(fits, moving, longest)
    reach = 0 if cutoff is None else int(2 / (cutoff * np.median(np.diff(link.time))))
    best, errors, more = _refine(motor, link.time, angles, best, middle, drift=drift, reach=reach)
    correlation = np.where(best.copies.n_samples > 0, best.copies.correlation, np.nan)
    remarks += [*more, *_doubts(correlation, moving), KINEMATIC]
    offset, rate = np.append(best.shift, 0.0)[:2]
    return ClockAlignment(float(offset), float(rate), middle, errors, correlation, tuple(remarks))


def _record(time: ArrayLike, values: ArrayLike, cutoff: float | None, name: str) -> tuple[GapSpline, NDArray, NDArray]:
    """Return the spline of a record, its values (M, n) at the times of the spline, and a mask (n,) of moving joints."""
    values = np.asarray(values, dtype=float)
    try:
        spline = GapSpline(time, values)
    except RecordingError as error:
        raise RecordingError(f"{name}: {error}") from error
    if cutoff is not None:
        step = float(np.median(np.diff(spline.time)))
        grid = np.arange(spline.time[0], spline.time[-1], step)
        values = _slow(grid, spline(grid), LowPass(cutoff, 1 / step))
        spline = GapSpline(grid, values)
    moving = np.array([_moves(column) for column in values.T])
    if not moving.any():
        slow = "" if cutoff is None else f" slower than {cutoff:g} Hz"
        raise RecordingError(
            f"no motion{slow} in the {name}: nothing aligns the clocks; record a motion of all joints, "
            "with dwells before and after"
        )
    return spline, values, moving


def _moves(angles: NDArray) -> bool:
    steps = np.diff(angles)
    known = angles[np.isfinite(angles)]
    steps = steps[np.isfinite(steps)]
    return bool(steps.size and np.mean(steps**2) < MAX_MOTION_RATIO * np.var(known))


def _slow(grid: NDArray, values: NDArray, low_pass: LowPass) -> NDArray:
    """Return the low-passed values, NaN near ends and gaps."""
    slow = np.full_like(values, np.nan)
    for column, result in zip(values.T, slow.T, strict=True):
        for rows in contiguous(grid, np.isfinite(column), 1 / low_pass.rate):
            inner = slice(low_pass.edge, len(rows) - low_pass.edge)
            if len(rows) > 2 * low_pass.edge:
                result[rows[inner]] = low_pass.filter(column[rows])[inner]
    return slow


def _choose(fits: list[ClockFit], moving: NDArray, longest: float | None) -> tuple[ClockFit, list[str]]:
    """Return the fit with most evidence; of equally good ones, such as periods apart, that of the smallest offset."""
    best = max(fits, key=lambda fit: fit.evidence)
    good = [best, *(fit for fit in fits if fit is not best and fit.as_good_as(best))]
    good = [fit for fit in good if not fit.mirrored.size] or good
    best = min(good, key=lambda fit: abs(fit.shift[0]))
    correlation = best.copies.correlation
    matching = np.max(correlation) > MIN_CORRELATION or (
        moving.any() and np.all(correlation[moving] < -MIN_CORRELATION)
    )
    if not matching:
        where = "wherever the records overlap" if longest is None else f"within {longest:g} s"
        raise RecordingError(
            f"the motions do not match {where}: at the best offset, {best.shift[0]:.3f} s, no joint correlates by more "
            f"than {np.max(correlation):.2f}; give records of the same motion, joints in the same order, or a larger "
            "longest"
        )
    if best.mirrored.size:
        joints = ", ".join(f"{j + 1} (correlation {correlation[j]:.3f})" for j in best.mirrored)
        raise RecordingError(
            f"link angles with the wrong sign: joint {joints}, counted from 1; turn the axis around, or check the "
            "order of the joints"
        )
    offsets = np.unique(np.round([fit.shift[0] for fit in good], 3))
    if len(offsets) == 1:
        return best, []
    period = np.min(np.diff(offsets))
    return best, [
        f"Offset ambiguous: the motion repeats after {period:.3f} s, and neither its start nor its stop decides "
        f"between {len(offsets)} offsets from {offsets[0]:.3f} to {offsets[-1]:.3f} s. The smallest, "
        f"{best.shift[0]:.3f} s, was taken; record the standstill before or after the motion with both, or give a "
        f"longest below {period / 2:.3g} s."
    ]


def _refine(
    motor: GapSpline, time: NDArray, angles: NDArray, start: ClockFit, middle: float, *, drift: bool, reach: int
) -> tuple[ClockFit, NDArray, list[str]]:
    """Refine a fit with all samples and, if determined, the drift; return it with standard errors (2,) and remarks."""
    remarks = []
    if drift:
        fit = fit_clock(motor, time, angles, np.append(start.shift, 0.0)[:2], middle)
        errors = fit.standard_errors(reach)
        if errors[1] < MAX_CLOCK_DRIFT:
            if abs(fit.shift[1]) > MAX_CLOCK_DRIFT + 3 * errors[1]:
                remarks.append(
                    f"Drift of {1e6 * fit.shift[1]:.0f} ppm: quartz clocks differ by less; check the camera's rate."
                )
            return fit, errors, remarks
        remarks.append(
            f"Drift not determined, taken as 0: {time[-1] - time[0]:.3g} s determine it to "
            f"{1e6 * errors[1]:.0f} ppm, and "
            f"clocks differ by less than {1e6 * MAX_CLOCK_DRIFT:.0f} ppm; record longer."
        )
    fit = fit_clock(motor, time, angles, start.shift[:1], middle)
    (error,) = fit.standard_errors(reach)
    if not error < MAX_OFFSET_ERROR_S:
        raise RecordingError(
            f"the motion does not determine the time, only to {error:.2g} s: at constant speed, one offset is like "
            "another; record a motion that starts, stops and turns"
        )
    return fit, np.array([error, np.nan]), remarks


def _doubts(correlation: NDArray, moving: NDArray) -> list[str]:
    """Return a remark if links hardly follow their motors."""
    joints = [f"{j + 1} ({correlation[j]:.2f})" for j in np.flatnonzero(moving & (correlation < MIN_CORRELATION))]
    if not joints:
        return []
    return [
        f"Link angles hardly follow the motors (joint, counted from 1, and correlation): {', '.join(joints)}; check "
        "the order of the joints, or choose a cutoff well below the resonance."
    ]


def _apart(motor: GapSpline, link: GapSpline, longest: float | None) -> str:
    if longest is None:
        return "the motions do not match: no joint moves in both link angles and motor angles where the records overlap"
    start, end, robot_start, robot_end = *link.time[[0, -1]], *motor.time[[0, -1]]
    return (
        f"no best offset within {longest:g} s: the camera's record is from {start:.3f} to {end:.3f} s on its clock, "
        f"the robot's from {robot_start:.3f} to {robot_end:.3f} s; give a larger longest, or None for clocks that "
        "started at different times"
    )
