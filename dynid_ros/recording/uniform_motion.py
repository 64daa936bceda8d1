"""Recordings as uniformly sampled motion and torque, ready for a regressor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.polynomial.polynomial import polyfit, polyval
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.files.disk_arrays import column_ranges, new_array, row_blocks, stack_columns, take_rows
from dynid_ros.recording import Recording
from dynid_ros.recording.recording import MOVED, practically_zero
from dynid_ros.signals import Cutoff, LowPass, Motion, Resampled, choose_cutoff, filtered_motion, resample
from dynid_ros.signals.driver_filter import DriverFilter
from dynid_ros.signals.low_pass import STENCIL
from dynid_ros.signals.resampling import SampleTimes, Segment, judged_times, spline_at, used_times

MIN_START_FRACTION = 0.01
"""Smallest displacement of a joint that has started, as a fraction of its travel; noise is smaller."""
MIN_CUTOFF_HZ = 7.0
"""Smallest cutoff frequency that is chosen. Torque has a wider band than the motion, because friction reverses: with a
filter as narrow as the band of slow motion, friction and inertia cannot be distinguished. The results of a UR10e and a
KUKA are the same for all cutoffs above 5 Hz; those of a Panda improve up to 10 Hz."""
MAX_CUTOFF_HZ = 20.0
"""Largest cutoff frequency that is chosen. Above it, links and gears bend, and servo vibrations count as motion: with a
low-pass at 58 to 78 Hz, the width of its spectrum, the prediction error of the unfiltered torque of a Stäubli TX40 is
larger by a quarter to a half."""
MOTION_CUTOFF_RATIO = 2.5
"""Ratio of the cutoff frequency of the motion to that of the equations, so that the motion is not damped there."""
MAX_CUTOFF_OF_NYQUIST = 0.8
"""Largest cutoff frequency, as a fraction of half the sampling rate."""
MIN_STRETCH_EDGES = 16
"""Smallest length of the longest stretch without a gap, in edges of the low-pass of the positions."""
MAX_POSITION = 1e5
"""Largest position of a joint, rad or m."""
MAX_TORQUE = 1e7
"""Largest torque of a joint, N m or N."""


def joint_motions(positions: Sequence[NDArray], low_pass: LowPass | Sequence[LowPass]) -> list[Motion]:
    """Return the motions of stretches of a recording, each with positions (M, n), rad or m, M >= 7.

    One low-pass serves all joints, or each joint has its own.

    A joint that rests in all stretches gets a constant position. Otherwise the noise of its sensor would look like a
    direction of motion, on which friction depends, and like distinct poses, which separate gravity from an offset.
    """
    motions = [_smoothed_motion(stretch, low_pass) for stretch in positions]
    if motions:
        ranges = [column_ranges(motion.position) for motion in motions]
        low = np.min([low for low, _ in ranges], axis=0)
        high = np.max([high for _, high in ranges], axis=0)
        still = high - low < MOVED
        for motion in motions:
            motion.position[:, still] = (low + high)[still] / 2
            motion.velocity[:, still] = motion.acceleration[:, still] = 0.0
    return motions


def motion_rows(motion: Motion) -> slice:
    """Return the rows from the first to the last at which a joint moves, including starts and stops.

    A motion starts once a joint is farther from its first position than a fraction of its travel; its end is found in
    the same way backward in time.
    """
    position = motion.position
    travel = np.subtract(*column_ranges(position)[::-1])
    far = np.where(travel > MOVED, MIN_START_FRACTION * travel, np.inf)
    start = first_far_row(position, far)
    return slice(0, 0) if start is None else slice(start, len(position) - (first_far_row(position[::-1], far) or 0))


def first_far_row(position: NDArray, far: NDArray) -> int | None:
    """Return the first row of positions (N, n) at which a joint is farther than `far` (n,) from the first row."""
    for rows in row_blocks(len(position)):
        is_far = np.any(np.abs(position[rows] - position[0]) > far, axis=1)
        if is_far.any():
            return rows.start + int(np.argmax(is_far))
    return None


def _smoothed_motion(position: NDArray, low_pass: LowPass | Sequence[LowPass]) -> Motion:
    """Return the motion of positions (M, n) by one low-pass, or by one for each joint."""
    low_passes = [low_pass] * position.shape[1] if isinstance(low_pass, LowPass) else list(low_pass)
    distinct = list(dict.fromkeys(low_passes))
    if len(distinct) == 1:
        return _continued_motion(position, distinct[0], slice(None))
    motion = Motion(*(new_array(*position.shape) for _ in range(3)))
    for shared in distinct:
        columns = [j for j, own in enumerate(low_passes) if own == shared]
        for target, values in zip(motion, _continued_motion(position, shared, columns), strict=True):
            for rows in row_blocks(len(position)):
                target[rows, columns] = values[rows]
    return motion


def _continued_motion(position: NDArray, low_pass: LowPass, columns: slice | list[int]) -> Motion:
    """Return the motion of columns of positions (M, n), continued beyond both ends before they are filtered.

    A cubic is fitted to each end. The usual point-symmetric continuation would lose the acceleration at the ends.
    """
    edge = low_pass.edge
    fitted = np.arange(min(len(position), max(edge, STENCIL))) / edge
    beyond = np.arange(-edge, 0) / edge
    # The last positions are fitted in reverse order, so that both ends are extrapolated to negative abscissae.
    before, after = (
        polyval(beyond, polyfit(fitted, end[: len(fitted), columns], 3)).T for end in (position, position[::-1])
    )
    continued = new_array(len(position) + 2 * edge, before.shape[1])
    continued[:edge] = before
    for rows in row_blocks(len(position)):
        continued[edge + rows.start : edge + rows.stop] = position[rows, columns]
    continued[edge + len(position) :] = after[::-1]
    motion = filtered_motion(continued, low_pass)
    return Motion(*(values[edge : edge + len(position)] for values in motion))


@dataclass(frozen=True, eq=False)
class LinkSegment:
    """Motion and torque without a gap.

    Attributes:
        time: (M,) uniform times, s.
        motion: position, velocity and acceleration (M, n).
        torque: (M, n) torques as recorded.
        rate: sampling rate, Hz.
    """

    time: NDArray
    motion: Motion
    torque: NDArray
    rate: float


_segments: WeakKeyDictionary[Recording, tuple[tuple[float, float], list[LinkSegment]]] = WeakKeyDictionary()
"""Cutoff frequencies, Hz, and segments of the last request for each recording."""


@dataclass(frozen=True)
class LinkSignals:
    """Filters of recordings, the same for fit, validation and prediction.

    Attributes:
        cutoff: cutoff frequency of torque and all columns of the regressor, Hz.
        motion_cutoff: largest cutoff frequency of positions before differentiation, Hz; of a joint whose accelerations
            would be noisy it is lower, see `Cutoff.smoothing_cutoffs`.
        reason: explanation of the choice of `cutoff`.
        driver: filter that the driver applies to the torque; None: no filter.
    """

    cutoff: float
    motion_cutoff: float
    reason: str = "given"
    driver: DriverFilter | None = None

    @classmethod
    def choose(
        cls, recordings: Sequence[Recording], cutoff: float | None = None, motion_cutoff: float | None = None
    ) -> LinkSignals:
        """Choose the cutoff frequencies, Hz, that are None, from the spectra of the motions.

        Raises:
            IdentificationError: no joint moves, or a cutoff frequency is impossible at the rate of the recordings.
            RecordingError: there are too few samples.
        """
        reason = "given"
        rates = []
        choices = []
        for recording in recordings:
            series = uniform_positions(recording)
            rates.append(series.rate)
            if cutoff is None:
                try:
                    choices.append(_motion_band(recording))
                except RecordingError as error:
                    raise IdentificationError(f"{recording.source}: {error}") from error
        largest_cutoff = MAX_CUTOFF_OF_NYQUIST * min(rates) / 2
        if cutoff is None:
            widest = max(choices, key=lambda choice: choice.low_pass.cutoff)
            cutoff = widest.low_pass.cutoff
            reason = widest.reason
            if cutoff < MIN_CUTOFF_HZ:
                cutoff = MIN_CUTOFF_HZ
                reason += f" Torque reaches beyond the motion: {cutoff:g} Hz."
            if cutoff > MAX_CUTOFF_HZ:
                cutoff = MAX_CUTOFF_HZ
                reason += f" Links bend at such frequencies: {cutoff:g} Hz."
            if cutoff > largest_cutoff / 2:
                cutoff = largest_cutoff / 2
                reason += f" {min(rates):.4g} samples per second allow {cutoff:.3g} Hz."
        motion_cutoff = min(MOTION_CUTOFF_RATIO * cutoff, largest_cutoff) if motion_cutoff is None else motion_cutoff
        reason += _noisy_joints(recordings, choices, cutoff, motion_cutoff)
        for name, value in (("cutoff", cutoff), ("motion_cutoff", motion_cutoff)):
            if not 0 < value <= largest_cutoff:
                raise IdentificationError(
                    f"{name} is {value:g} Hz; expected one above 0 and up to {largest_cutoff:.3g} Hz, "
                    f"{100 * MAX_CUTOFF_OF_NYQUIST:.0f} % of half the slowest recording's rate of {min(rates):.4g} Hz"
                )
        if motion_cutoff < cutoff:
            raise IdentificationError(
                f"motion_cutoff is {motion_cutoff:g} Hz, below the cutoff of {cutoff:g} Hz: torques would be compared "
                "where the motion is damped; raise it, or lower cutoff"
            )
        return cls(float(cutoff), float(motion_cutoff), reason)

    def segments(self, recording: Recording) -> list[LinkSegment]:
        """Return the uniform segments of a recording, without standstill at its ends.

        Raises:
            IdentificationError: a joint has no torque, nothing moves, or no segment is long enough.
        """
        cutoffs = self.cutoff, self.motion_cutoff
        known_cutoffs, segments = _segments.get(recording, (None, []))
        if known_cutoffs != cutoffs:
            require_torque(recording)
            segments = self.segments_with(recording, recording.torque)
            _segments[recording] = cutoffs, segments
        return list(segments)

    def segments_with(self, recording: Recording, channels: NDArray) -> list[LinkSegment]:
        """Return uniform segments with other channels (N, c) in place of the torque, NaN where unknown.

        Raises:
            IdentificationError: nothing moves, or no segment is long enough.
        """
        n = recording.n_joints
        series = _uniform(recording, stack_columns([recording.position, channels]))
        low_passes = self._motion_filters(series, recording)
        edge = max(low_pass.edge for low_pass in low_passes)
        parts = [part for part in series.segments if len(part.time) > 2 * edge + STENCIL]
        motions = joint_motions([part.values[:, :n] for part in parts], low_passes)
        if parts and not any(np.any(column_ranges(motion.velocity)) for motion in motions):
            raise IdentificationError(
                f"{recording.source}: all joints are at rest, none covers {MOVED:g} rad or m; record motion"
            )
        segments = []
        for part, motion in zip(parts, motions, strict=True):
            moving = motion_rows(motion)
            # The filter distorts `edge` rows at both ends of a stretch, except where the arm rests there.
            rows = slice(max(moving.start, edge), min(moving.stop, len(part.time) - edge))
            if rows.stop > rows.start:
                selected = Motion(*(values[rows] for values in motion))
                segments.append(LinkSegment(part.time[rows], selected, part.values[rows, n:], series.rate))
        if not segments:
            raise IdentificationError(
                f"{recording.source}: no stretch of motion is longer than the {2 * edge / series.rate:.2g} s "
                f"that a low-pass at {self.motion_cutoff:.3g} Hz spoils; record longer, without gaps"
            )
        return segments

    def motion_at_samples(self, recording: Recording) -> Motion:
        """Return the motion (N, n) at every recorded sample, so that predictions can be compared there.

        For isolated samples between gaps, velocity and acceleration are interpolated between their neighbours.

        Raises:
            IdentificationError: there are too few samples, or the rate is too low for the motion's cutoff frequency.
        """
        series = uniform_positions(recording)
        low_passes = self._motion_filters(series, recording)
        time, _ = row_times(recording)
        result = Motion(*(new_array(*recording.position.shape) for _ in range(3)))
        is_known = np.zeros(len(time), bool)
        for rows in row_blocks(len(time)):
            result.position[rows] = recording.position[rows]
        parts = [part for part in series.segments if len(part.time) >= STENCIL]
        for part, motion in zip(parts, joint_motions([part.values for part in parts], low_passes), strict=True):
            rows = _rows_between(time, part, series.step)
            is_known[rows] = True
            for target, values in zip(result, motion, strict=True):
                _interpolate(part.time, values, time[rows], target[rows])
        if not is_known.any():
            raise IdentificationError(
                f"{recording.source}: no {STENCIL} samples follow each other without a gap; record again"
            )
        for values in result[1:]:
            for column in values.T:
                column[~is_known] = np.interp(time[~is_known], time[is_known], column[is_known])
        return result

    def reported(self, torque: NDArray, rate: float) -> NDArray:
        """Return torques (N, …) of uniform samples at a rate, Hz, filtered as the driver filters them."""
        return torque if self.driver is None else self.driver.filter(torque, rate)

    def reported_at_samples(self, recording: Recording, torque: NDArray) -> NDArray:
        """Return the torques (N, n) at the recorded samples, filtered as the driver filters them."""
        if self.driver is None:
            return torque
        result = np.array(torque)
        series = _uniform(recording, torque)
        time, _ = row_times(recording)
        for part in series.segments:
            rows = _rows_between(time, part, series.step)
            _interpolate(part.time, self.driver.filter(part.values, series.rate), time[rows], result[rows])
        return result

    def settling(self, rate: float) -> int:
        """Return the settling time of the driver's filter at a rate, Hz, as a number of samples."""
        return 0 if self.driver is None else self.driver.settling(rate)

    def _motion_filters(self, series: Resampled, recording: Recording) -> list[LowPass]:
        """Return the low-pass of each joint's positions, with a lower cutoff frequency where noise does harm."""
        rate = series.rate
        if self.motion_cutoff >= rate / 2:
            raise IdentificationError(
                f"{recording.source}: {rate:.4g} samples per second are too few for the motion cut-off of "
                f"{self.motion_cutoff:.3g} Hz that the model was identified with; record faster"
            )
        widest = LowPass(self.motion_cutoff, rate)
        try:
            cutoffs = _motion_band(recording).smoothing_cutoffs(self.cutoff, self.motion_cutoff)
        except RecordingError:  # too short for a spectrum, or nothing moves
            return [widest] * recording.n_joints
        # The edge is inversely proportional to the cutoff frequency.
        longest = max(len(part.time) for part in series.segments)
        lowest = min(MIN_STRETCH_EDGES * widest.edge / longest, 1.0) * self.motion_cutoff
        return [LowPass(float(cutoff), rate) for cutoff in np.maximum(cutoffs, lowest)]


_bands: WeakKeyDictionary[Recording, Cutoff] = WeakKeyDictionary()
"""Band of the motion in each recording."""


def _motion_band(recording: Recording) -> Cutoff:
    """Return the band of the motion in the longest stretch of a recording.

    Raises:
        RecordingError: the stretch is too short, or no joint moves.
    """
    if recording not in _bands:
        series = uniform_positions(recording)
        _bands[recording] = choose_cutoff(max((part.values for part in series.segments), key=len), series.rate)
    return _bands[recording]


def _noisy_joints(recordings: Sequence[Recording], bands: Sequence[Cutoff], cutoff: float, motion_cutoff: float) -> str:
    """Return a sentence on the joints whose positions are smoothed further, or an empty text."""
    smoothed: dict[str, float] = {}
    for recording, band in zip(recordings, bands, strict=False):  # bands are not looked for if the cutoff is given
        for name, own in zip(recording.joint_names, band.smoothing_cutoffs(cutoff, motion_cutoff), strict=True):
            if own < motion_cutoff:
                smoothed[name] = min(own, smoothed.get(name, np.inf))
    if not smoothed:
        return ""
    words = ", ".join(f"{name} {own:.2g} Hz" for name, own in smoothed.items())
    return f" Noise of positions would count as acceleration, so they pass a narrower low-pass: {words}."


def _rows_between(time: NDArray, part: Segment, step: float) -> slice:
    """Return the rows whose increasing times (N,), s, lie within a segment with steps of `step` s."""
    first = int(np.searchsorted(time, part.time[0] - step / 2))
    return slice(first, int(np.searchsorted(time, part.time[-1] + step, side="right")))


def _interpolate(known: NDArray, values: NDArray, time: NDArray, result: NDArray) -> None:
    """Write values (M, n) at known times (M,), s, to a result (K, n) at other increasing times, by a cubic spline."""
    rows = np.arange(len(known))
    for block in row_blocks(len(time)):
        result[block] = spline_at(known, values, np.ones(values.shape[1], bool), rows, time[block])


def require_torque(recording: Recording) -> None:
    """Check that a recording has a torque for each joint, and a nonzero torque for each joint that moves.

    Raises:
        IdentificationError: joints lack a torque, and the message names them; or the torque was computed from commands
            whose delay is unknown.
    """
    if recording.delay_is_unknown:
        raise IdentificationError(
            f"{recording.source}: its torque is computed from commands, and the delay with which they act is unknown; "
            "give it (--command-delay, EffortConvention(delay=...)), or estimate it by `with_estimated_delay`"
        )
    has_torque = np.isfinite(column_ranges(recording.torque)[0])
    if not has_torque.all():
        lacking = [name for name, exists in zip(recording.joint_names, has_torque, strict=True) if not exists]
        raise IdentificationError(
            f"{recording.source}: no torque of joint(s) {', '.join(lacking)}; "
            "record effort, or name the topic of the torques"
        )
    is_zero = practically_zero(recording.torque) & (np.subtract(*column_ranges(recording.position)[::-1]) > MOVED)
    if is_zero.any():
        names = [name for name, zero in zip(recording.joint_names, is_zero, strict=True) if zero]
        raise IdentificationError(
            f"{recording.source}: the torque of joint(s) {', '.join(names)} is practically zero in all samples though "
            "they move; let the driver fill it, or leave these joints out of the model"
        )


def uniform_positions(recording: Recording) -> Resampled:
    """Return the positions of a recording at uniform times."""
    return _uniform(recording, recording.position)


def _uniform(recording: Recording, values: NDArray) -> Resampled:
    """Return values (N, c) of a recording at uniform times, after checking the magnitude of positions and torques."""
    if recording.n_samples < 10:
        raise IdentificationError(f"{recording.source}: only {recording.n_samples} samples; record longer")
    for name, series, largest, unit in (
        ("position", recording.position, MAX_POSITION, "rad or m"),
        ("torque", recording.torque, MAX_TORQUE, "N m or N"),
    ):
        if np.nanmax(np.abs(column_ranges(series)), initial=0.0) > largest:
            sample, joint = np.argwhere(np.abs(series) > largest)[0]
            raise IdentificationError(
                f"{recording.source}: {name} of {recording.joint_names[joint]} is {series[sample, joint]:g} at "
                f"t = {recording.time[sample]:g} s; expected {unit}: correct the unit, or leave such samples out"
            )
    try:
        return resample_channels(recording, values)
    except RecordingError as error:
        raise IdentificationError(f"{recording.source}: {error}") from error


def resample_channels(recording: Recording, values: NDArray) -> Resampled:
    """Return channels (N, c) of a recording at uniform times, computed without the rows that a logger repeated.

    Raises:
        RecordingError: too few samples follow each other without a gap, or the time stamps are too noisy.
    """
    time, fresh = row_times(recording)
    return resample(time[fresh], take_rows(values, fresh))


def row_times(recording: Recording) -> tuple[NDArray, NDArray]:
    """Return the times (N,) of the rows, s, and a mask (N,) of the rows that a logger did not merely repeat.

    Raises:
        RecordingError: the time stamps are too noisy.
    """
    return used_times(recording.time, *judged_sample_times(recording))


_judged: WeakKeyDictionary[Recording, tuple[SampleTimes, NDArray]] = WeakKeyDictionary()


def judged_sample_times(recording: Recording) -> tuple[SampleTimes, NDArray]:
    """Return the times of the samples, and a mask (N,) of the rows that are samples; see `judged_times`."""
    if recording not in _judged:
        _judged[recording] = judged_times(recording.time, recording.position, recording.torque)
    return _judged[recording]
