"""Recordings of flexible joints: motors on a uniform clock, links on that of their sensor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.ndimage import median_filter, uniform_filter1d

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.recording import Recording
from dynid_ros.recording.recording import MOVED
from dynid_ros.recording.uniform_motion import joint_motions, resample_channels
from dynid_ros.signals import LowPass, Motion, choose_cutoff
from dynid_ros.signals.periodic import FourierSeries, base_frequency
from dynid_ros.signals.spectra import COUNT_TOLERANCE, power_density, squared_hann

MIN_DEFLECTION = 1e-9
"""Range of motor less link, rad or m, below which the driver copied one from the other."""
MIN_LINK_SLOPE = 0.5
MAX_LINK_SLOPE = 2.0
"""Motion of a link by that of its motor. In slow motion both go together."""
DEGREES = 180.0 / np.pi


def check_links(motors: Recording, time: NDArray, link: NDArray) -> None:
    """Refuse positions that cannot be those of links.

    Args:
        motors: Recording with the motors' positions.
        time: Times (M,) on about the motors' clock, s.
        link: Positions (M, n), rad or m; NaN where unknown.

    Raises:
        IdentificationError: There is no overlap in time, a joint has no positions, or positions are the motor's own, of
            the opposite sign or in another unit; names the joint.
    """
    inside = (time >= motors.time[0]) & (time <= motors.time[-1])
    if inside.sum() < 10:
        raise IdentificationError(
            f"{motors.source}: positions of links are from {time[0]:.3f} to {time[-1]:.3f} s on the robot's clock, "
            f"motors from {motors.time[0]:.3f} to {motors.time[-1]:.3f} s: they do not overlap; record both at once"
        )
    at = CubicSpline(motors.time, motors.position)(time[inside])
    for i, joint in enumerate(motors.joint_names):
        values = link[inside, i]
        known = np.isfinite(values)
        where = f"{motors.source}: joint '{joint}'"
        if known.sum() < 10:
            raise IdentificationError(
                f"{where} has no positions of its link while the motors move; see that its markers are in view, or "
                "leave it out of the model"
            )
        motor = at[known, i]
        values = values[known]
        deflection = values - motor
        if np.ptp(deflection) < MIN_DEFLECTION:
            raise IdentificationError(
                f"{where}: the link's positions are those of its motor; the driver seems to copy them: give a "
                "measurement behind the gear, or take the joint as rigid with `identify links`"
            )
        if np.ptp(motor) < MOVED:
            continue
        slope = float(np.polyfit(motor, values, 1)[0])
        if slope < 0:
            raise IdentificationError(
                f"{where}: its link moves against its motor; the axis or the camera's frame is mirrored: correct the "
                "sign, or the direction of the axis in the URDF"
            )
        if not MIN_LINK_SLOPE < slope < MAX_LINK_SLOPE:
            unit = "degrees" if DEGREES / 2 < slope < 2 * DEGREES else "another unit, or another joint's"
            unit = "millimetres" if 500 < slope < 2000 else unit
            raise IdentificationError(
                f"{where}: its link moves {slope:.3g} times as far as its motor; the positions seem to be in {unit}: "
                "expected rad or m, and the motor's position seen from the link (divided by the gear ratio)"
            )


# Harmonics of periodic motors, without the noise at all other frequencies.


FIRST_HARMONICS = 8
"""Number of harmonics of the series that finds the base frequency."""
MIN_HARMONIC_SIGMAS = 5.0
"""Amplitude of a significant harmonic, in standard errors."""
COMMANDED_DIGITS = 4
MAX_COMMANDED_ERROR = 4.0
"""Digits of a commanded frequency or period, and its largest distance from the estimate in standard errors."""
MAX_SERIES_RESIDUAL = 1.3
"""Residual of a series, in parts of the noise, up to which motors count as periodic."""


def periodic_motors(time: NDArray, position: NDArray, noise: NDArray, band: float) -> FourierSeries | None:
    """Return the significant harmonics of the motors' positions (N, n); None if the motion does not repeat.

    Args:
        time: Times (N,), uniform, s.
        position: Positions (N, n) as measured.
        noise: Standard deviations (n,) of their noise.
        band: Highest frequency of a harmonic, Hz.
    """
    moving = np.ptp(position, axis=0) > 20.0 * noise
    if not moving.any():
        return None
    try:
        found = base_frequency(time, position[:, moving], FIRST_HARMONICS)
        rough = FourierSeries.fit(time, position, found, max(1, int(band / found)))
        found = _as_commanded(rough, noise, time)
        series = FourierSeries.fit(time, position, found, max(1, int(band / found)))
    except RecordingError:
        return None
    if (series.residual > MAX_SERIES_RESIDUAL * noise + 1e-12).any():
        return None
    least = MIN_HARMONIC_SIGMAS * noise * np.sqrt(2.0 / len(time))
    kept = np.hypot(series.cosines, series.sines) > least
    return replace(series, cosines=np.where(kept, series.cosines, 0.0), sines=np.where(kept, series.sines, 0.0))


def _as_commanded(series: FourierSeries, noise: NDArray, time: NDArray) -> float:
    """Return the base frequency, or a round frequency or period close to it, because motions are commanded so.

    The data must agree: over a record the phase of the highest harmonic magnifies errors of the base frequency.
    """
    order = np.arange(1, series.n_harmonics + 1)[:, None]
    squares = (order**2 * (series.cosines**2 + series.sines**2)).sum(axis=0)
    known = (2 * np.pi) ** 2 * len(time) * np.ptp(time) ** 2 / 24 * (squares / np.maximum(noise, 1e-12) ** 2).sum()
    frequency = series.base_frequency
    for place in range(2, COMMANDED_DIGITS + 1):
        for near in (float(f"{frequency:.{place - 1}e}"), 1 / float(f"{1 / frequency:.{place - 1}e}")):
            if abs(near - frequency) < MAX_COMMANDED_ERROR / np.sqrt(known):
                return near
    return frequency


def motion_of(series: FourierSeries, time: NDArray) -> Motion:
    """Return position, velocity and acceleration, (N, n) each."""
    return Motion(*(series.evaluate(time, order) for order in range(3)))


MOTION_OVER_BAND = 2.0
"""Cutoff frequency of the motors' motion over the highest compared frequency, where the motion must be undamped."""
BAND_OVER_MOTION = 1.6
"""Highest compared frequency over that of the motors' motion: friction and springs respond beyond it."""
MAX_CUTOFF_OF_NYQUIST = 0.8
"""Highest cutoff frequency, in parts of half the sampling rate."""
MIN_BAND_HZ = 5.0
"""Hz."""
LINE_WINDOW_S = 8.0
LINE_NEIGHBOURHOOD_HZ = 1.5
"""Length of the averaged periodograms that show lines; and how far the frequencies to either side of one reach."""
MIN_LINE_CONTRAST = 100.0
"""Power density of a line over the median of the frequencies around it: noise alone stays below 15."""
MIN_LINE_SHARE = 0.999
"""Part of the acceleration's energy that lines up to the highest that counts must hold."""
COMPARED_POWER_SHARE = 0.995
"""Part of the power of each joint's motion that the compared frequencies must hold."""
MIN_POWER_OVER_NOISE = 30.0
"""Power of an acceleration at a frequency over that of the encoders' noise, from which the frequency is compared. There
noise draws the inertia of a motor to zero by at most a thirtieth."""
ROUNDING_RANGE = 1e-9
"""Range of a resting joint's positions by rounding, relative to the largest position."""
LOWEST_BINS = 3
"""Number of the lowest frequencies, which are always compared: means, with zeros and gravity, and their neighbours."""
BETWEEN_LINES = 4
"""Stride of the frequencies that are compared between the lines of a periodic motion."""
SUFFICIENT_RATE_HZ = 250.0
"""Sufficient sampling rate, Hz: faster recordings are decimated."""
CLOCK_MARGIN_S = 0.05
"""Length of both ends of a run without comparison of the links, s: their clock may yet be moved by so much."""
MAX_STEP_S = 2e-3
FEW_JOINTS = 1
"""Longest step of the prediction, s, of so many joints; with more of them samples are the steps, to save time."""
MIN_MOTION_ENERGY = 0.2
"""Mean over the joints and a second of squared velocity, each over its own mean square, above which a motion is under
way. Around starts and stops friction differs: breakaway, and torque that a controller leaves behind."""
MIN_STRETCH_S = 1.0
"""Shortest stretch without gaps, s."""
MIN_SPLINE_SAMPLES = 4
"""Smallest number of samples of a cubic spline."""


@dataclass(frozen=True, eq=False)
class Compared:
    """Samples and frequencies that are compared.

    Attributes:
        window: Samples; whole periods where the motion repeats.
        bins: Numbers of the frequencies, in units of one over the window's duration.
        lines: Numbers of the lines of periodic motors, where their motion has noise that is estimated. Between the
            lines their motion has no noise. Empty for other motions, which have noise everywhere.
        tones: Angular frequencies (h,) of these lines, rad/s.
    """

    window: slice
    bins: NDArray
    lines: NDArray = field(default_factory=lambda: np.empty(0, dtype=int))
    tones: NDArray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, eq=False)
class Run:
    """Stretch of motion without gaps.

    Attributes:
        source: Name of the file, for messages.
        step: Time between samples, s.
        time: Times (N,), uniform, on the robot's clock, s.
        motor: Motion of the motors, smoothed, (N, n) each.
        parts: Number of steps between two samples in the prediction of the links.
        fine: Positions ((N - 1) parts + 1, n) of the motors at all of these steps.
        torque: Torques (N, n) of the motors, as recorded.
        link_time: Times (M,) on the clock of the links' sensor, s.
        link: Measured positions (M, n) of the links; NaN where unknown.
        same_clock: Whether the links' times are on the robot's clock.
        offset: Initial offset from `link_time` to the robot's clock, s.
        band: Highest compared frequency, Hz.
        compared: Samples and frequencies that are compared.
        motor_noise: Standard deviations (n,) of the motors' positions, as if measured at these times alone.
    """

    source: str
    step: float
    time: NDArray
    motor: Motion
    parts: int
    fine: NDArray
    torque: NDArray
    link_time: NDArray
    link: NDArray
    same_clock: bool
    offset: float
    band: float
    compared: Compared
    motor_noise: NDArray

    @property
    def n_joints(self) -> int:
        """Number of joints n."""
        return self.torque.shape[1]

    def link_spline(self, joint: int, clock: float = 0.0) -> CubicSpline | None:
        """Return a spline of a link's measured position over the robot's time; None where too few samples are known.

        Args:
            joint: Number of the joint, from 0.
            clock: Correction of `offset`, s.
        """
        known = np.isfinite(self.link[:, joint])
        if known.sum() < MIN_SPLINE_SAMPLES:
            return None
        return CubicSpline(self.link_time[known] + self.offset + clock, self.link[known, joint])


def runs(
    recording: Recording,
    link_time: NDArray,
    link: NDArray,
    *,
    same_clock: bool,
    offset: float = 0.0,
    band: float | None = None,
    most: float = np.inf,
) -> list[Run]:
    """Return the stretches of a recording in which its joints move.

    Args:
        recording: Positions and torques of the motors.
        link_time: Times (M,), s.
        link: Positions (M, n) of the links.
        same_clock: Whether the links' times are on the robot's clock.
        offset: Robot's clock minus that of the links' sensor, s.
        band: Highest compared frequency, Hz; None: chosen from the motion.
        most: Longest part of each stretch, from its start, s.

    Raises:
        IdentificationError: No stretch is long enough.
        RecordingError: There is no motion, or there are too few samples.
    """
    n = recording.n_joints
    series = resample_channels(recording, np.hstack([recording.position, recording.torque]))
    stride = max(1, int(series.rate / SUFFICIENT_RATE_HZ + COUNT_TOLERANCE))
    step = stride * series.step
    highest = MAX_CUTOFF_OF_NYQUIST / step / 2
    is_chosen = band is None
    if band is None:
        longest = max((segment.values[:, :n] for segment in series.segments), key=len)
        motion_end = choose_cutoff(longest, series.rate).low_pass.cutoff
        band = max(BAND_OVER_MOTION * max(motion_end, highest_line(longest, series.rate)), MIN_BAND_HZ)
    band = min(band, highest / MOTION_OVER_BAND)
    low_pass = LowPass(MOTION_OVER_BAND * band, series.rate)
    edge = low_pass.edge
    found = []
    parts = [part for part in series.segments if len(part.time) > 2 * edge + MIN_STRETCH_S * series.rate]
    for segment, motion in zip(parts, joint_motions([part.values[:, :n] for part in parts], low_pass), strict=True):
        moving = moving_rows(motion, series.rate)
        rows = slice(max(moving.start, edge), min(moving.stop, len(segment.time) - edge))
        if rows.stop - rows.start < MIN_STRETCH_S * series.rate:
            continue
        rows = slice(rows.start, round(min(rows.stop, rows.start + most * series.rate)))
        raw = segment.values[rows, :n]
        every = segment.time[rows]
        smooth = Motion(*(x[rows] for x in motion))
        at = every[::stride]
        # The low-pass leaves its share of the noise in.
        noise = np.std(raw - smooth.position, axis=0) / np.sqrt(1.0 - 2.0 * low_pass.cutoff / series.rate)
        harmonics = periodic_motors(every, raw, noise, band)
        smooth = Motion(*(x[::stride] for x in smooth)) if harmonics is None else motion_of(harmonics, at)
        margin = 0 if same_clock else int(CLOCK_MARGIN_S / step + COUNT_TOLERANCE)
        window = slice(margin, len(at) - margin)
        if harmonics is None:
            within = Motion(*(x[window] for x in smooth))
            compared = Compared(window, _bins(within, noise / np.sqrt(stride), step, band))
        else:
            compared = _at_lines(harmonics, window, step, band)
        divisions = max(1, int(np.ceil(step / MAX_STEP_S - COUNT_TOLERANCE))) if n <= FEW_JOINTS else 1
        grid = at[0] + step / divisions * np.arange((len(at) - 1) * divisions + 1)
        # Smooth motors are between samples where a spline has them.
        fine: NDArray = CubicSpline(at, smooth.position)(grid) if harmonics is None else harmonics.evaluate(grid)
        near = (link_time + offset > at[0]) & (link_time + offset < at[-1])
        found.append(
            Run(
                source=recording.source,
                step=step,
                time=at,
                motor=smooth,
                parts=divisions,
                fine=fine,
                torque=_decimated(segment.values[:, n:], series.rate, stride)[rows][::stride],
                link_time=link_time[near],
                link=link[near],
                same_clock=same_clock,
                offset=offset,
                band=band,
                compared=compared,
                motor_noise=noise / np.sqrt(stride),
            )
        )
    if not found:
        raise IdentificationError(
            f"{recording.source}: no stretch of motion without a gap is longer than {MIN_STRETCH_S:g} s; record longer"
        )
    if is_chosen and not any(len(run.compared.lines) for run in found):
        # Beyond the highest compared frequency accelerations are noise, which a lower cutoff frequency takes out. Short
        # stretches keep the higher one, because its ends are shorter.
        ends = [run.compared.bins[-1] / (run.compared.window.stop - run.compared.window.start) for run in found]
        band = max(max(ends) / step, MIN_BAND_HZ)
        shortest = MIN_STRETCH_S + 2 * LowPass(MOTION_OVER_BAND * band, series.rate).edge * series.step
        if min(np.ptp(run.time) for run in found) > shortest:
            return runs(recording, link_time, link, same_clock=same_clock, offset=offset, band=band, most=most)
    return found


def highest_line(position: NDArray, rate: float) -> float:
    """Return the highest frequency of the sinusoids in positions (N, n) at a rate in Hz; 0 for other motions.

    Between the lines of few sinusoids the spectrum falls to the noise, which looks like the end of a smooth spectrum. A
    line exceeds the frequencies around it. Lines with a small share of the acceleration's energy do not count.
    """
    length = min(len(position), round(LINE_WINDOW_S * rate))
    frequency, density = power_density(position, rate, squared_hann(length))
    around = max(1, round(LINE_NEIGHBOURHOOD_HZ / frequency[1]))
    floor = median_filter(density, size=(2 * around + 1, 1), mode="nearest")
    lines = np.where(density > MIN_LINE_CONTRAST * floor, density, 0.0) * frequency[:, None] ** 4
    energy = np.cumsum(lines, axis=0)
    if not energy[-1].any():
        return 0.0
    ends = [np.searchsorted(own, MIN_LINE_SHARE * own[-1]) for own in energy.T if own[-1] > 0]
    return float(frequency[max(ends)])


def _decimated(torque: NDArray, rate: float, stride: int) -> NDArray:
    """Return torques (N, n), low-pass filtered for keeping every `stride`-th sample."""
    if stride == 1 or not np.isfinite(torque).all():
        return torque
    return LowPass(MAX_CUTOFF_OF_NYQUIST * rate / stride / 2, rate).filter(torque)


def _at_lines(harmonics: FourierSeries, window: slice, step: float, band: float) -> Compared:
    """Return whole periods and the frequencies at and around the lines; others show the start of the links."""
    frequency = harmonics.base_frequency
    periods = int((window.stop - window.start) * step * frequency + COUNT_TOLERANCE)
    window = slice(window.start, window.start + round(periods / frequency / step))
    last = int(band * (window.stop - window.start) * step + COUNT_TOLERANCE)
    lines = periods * np.arange(1, int(band / frequency + COUNT_TOLERANCE) + 1)
    bins = np.unique([*range(LOWEST_BINS), *lines, *(lines - 1), *(lines + 1), *range(0, last, BETWEEN_LINES)])
    lines = lines[lines <= last]
    moved = np.flatnonzero((np.hypot(harmonics.cosines, harmonics.sines) > 0).any(axis=1)[: len(lines)])
    return Compared(window, bins[bins <= last], lines[moved], 2 * np.pi * frequency * (1 + moved))


def _bins(motion: Motion, noise: NDArray, step: float, band: float) -> NDArray:
    """Return the frequencies that hold nearly all of the motors' motion, velocity and acceleration.

    The others add next to nothing. At them the encoders' noise would look like motion and draw inertias to zero. So the
    acceleration must exceed that of white noise (n,) of positions. It is not that of the positions' spectrum, which
    falls slowly where the motors do not return to their first positions.
    """
    rate = np.fft.rfftfreq(len(motion.position), step)
    rate = rate[rate <= band * (1 + COUNT_TOLERANCE)]
    moves = np.ptp(motion.position, axis=0) > ROUNDING_RANGE * np.abs(motion.position).max()
    power, _, acceleration_power = (
        np.abs(np.fft.rfft(values - values.mean(axis=0), axis=0)[: len(rate), moves]) ** 2 for values in motion
    )
    chosen = np.zeros(len(rate), dtype=bool)
    for order in (0, 2, 4):
        for own in (power * rate[:, None] ** order).T:
            ranked = np.argsort(own)[::-1]
            share = np.cumsum(own[ranked])
            chosen[ranked[: np.searchsorted(share, COMPARED_POWER_SHARE * share[-1]) + 1]] = True
    noise_power = len(motion.position) * noise[moves] ** 2 * (2 * np.pi * rate[:, None]) ** 4
    chosen &= (acceleration_power > MIN_POWER_OVER_NOISE * noise_power).any(axis=1)
    chosen[:LOWEST_BINS] = True
    return np.flatnonzero(chosen)


def moving_rows(motion: Motion, rate: float) -> slice:
    """Return the rows from the first to the last at which the motion is under way; rate in Hz."""
    squares = motion.velocity**2
    mean = squares.mean(axis=0)
    moves = mean > 0
    if not moves.any():
        return slice(0, 0)
    energy = (squares[:, moves] / mean[moves]).mean(axis=1)
    rows = np.flatnonzero(uniform_filter1d(energy, min(len(energy), round(rate)), mode="nearest") > MIN_MOTION_ENERGY)
    return slice(int(rows[0]), int(rows[-1]) + 1)
