"""Low-passed samples of motion and torque, a few hundred, that all checks of the torque model share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.errors import RecordingError
from dynid_ros.files.disk_arrays import (
    ROWS_PER_BLOCK,
    column_ranges,
    map_blocks,
    new_array,
    pick_rows,
    release_pages,
    row_blocks,
    stack_columns,
)
from dynid_ros.model.friction_terms import dahl_direction
from dynid_ros.recording.recording import Recording, practically_zero
from dynid_ros.recording.uniform_motion import resample_channels
from dynid_ros.signals import LowPass, Resampled, choose_cutoff, filtered_motion
from dynid_ros.signals.resampling import SPLINE_REACH
from dynid_ros.signals.spectra import COUNT_TOLERANCE

MAX_SAMPLES = 800
"""Number of samples that suffices to prefer one hypothesis to another."""
MIN_ACCELERATION_SHARE = 0.99
"""Share of the power of the acceleration that the low-pass of the positions keeps; a larger one lets noise in."""
CUTOFF_RANGE_HZ = (0.5, 12.0)
"""Bounds of the cutoff frequency of the positions: arms are not excited beyond."""
TORQUE_CUTOFF_RATIO = 3.0
"""Ratio of the cutoff frequency of the torques to that of the positions: torques contain products of motions."""
MAX_CUTOFF_OF_RATE = 0.2
"""Largest cutoff frequency of the positions, as a fraction of the sampling rate."""
REVERSAL_SPEED = 0.005
"""Speed within which friction reverses, rad/s or m/s."""
MAX_REST_SPEED = 0.001
"""Largest speed of a joint at rest, rad/s or m/s."""
MAX_REST_SPEED_FRACTION = 0.02
"""Largest speed of a joint at rest, as a fraction of its largest speed."""
MIN_VARIATION = 1e-9
"""Smallest variation of a torque that is not constant, as a fraction of its magnitude: splines round."""
PRESLIDING_DISTANCES = (0.003, 0.02)
"""Distances over which friction may build up after a reversal, rad or m."""
FRICTION_STEP_S = 0.01
"""Time step of presliding friction."""
GAIN_ERROR = 0.02
"""Standard deviation of the relative error of a joint's torque gain."""
DELAY_ERROR_S = 0.004
"""Standard deviation of the delay of the torques: filters in the drives of sound recordings make up to 7 ms."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Uniform samples of one recording without a gap; rows of its arrays are (N, n).

    Attributes:
        part: index of the recording.
        time: (N,) time, s.
        position, velocity, acceleration: low-passed motion.
        torque, direction: torque, and sign of the velocity, low-passed at a higher cutoff frequency.
        kept: samples to use, without the ends that the low-pass spoils.
    """

    part: int
    time: NDArray
    position: NDArray
    velocity: NDArray
    acceleration: NDArray
    torque: NDArray
    direction: NDArray
    kept: slice


class MotionSamples:
    """M samples of n joints from all stretches.

    Args:
        uniform: uniform positions and torques (N, 2 n) of the recordings, by their index.
        stretches: low-passed stretches of these recordings.
        bandwidth: cutoff frequency of the positions, Hz.

    Attributes:
        time: (M,) time on the clock of each recording, s.
        part: (M,) index of the recording.
        position, velocity, acceleration, torque, direction: (M, n), see `Stretch`. A torque that was not recorded is 0.
        alive: (M, n) mask of the torques that are neither missing nor constant.
        moving: (M, n) mask of the samples that are alive and whose friction is not that of rest.
    """

    def __init__(self, uniform: Mapping[int, Resampled], stretches: Sequence[Stretch], bandwidth: float):
        self.uniform = uniform
        self.stretches = tuple(stretches)
        self.bandwidth = bandwidth
        self.time = self._kept("time")
        self.part = np.repeat([s.part for s in stretches], [len(s.time[s.kept]) for s in stretches])
        self.position = self._kept("position")
        self.velocity = self._kept("velocity")
        self.acceleration = self._kept("acceleration")
        self.torque = self._kept("torque")
        self.direction = self._kept("direction")
        alive = {part: _varying_torques(recording) for part, recording in uniform.items()}
        self.alive = np.array([alive[part] for part in self.part])
        speed = np.abs(self.velocity)
        self.moving = self.alive & (speed > np.maximum(MAX_REST_SPEED, MAX_REST_SPEED_FRACTION * speed.max(axis=0)))

    def __len__(self) -> int:
        return len(self.time)

    def thinned(self, limit: int) -> MotionSamples:
        """Return about `limit` of the samples at most, at even distances."""
        factor = -(-len(self) // limit)
        stretches = [replace(s, kept=slice(s.kept.start, s.kept.stop, s.kept.step * factor)) for s in self.stretches]
        return MotionSamples(self.uniform, stretches, self.bandwidth)

    def torque_low_pass(self, rate: float) -> LowPass:
        """Return the low-pass of torques and directions at a sampling rate, Hz."""
        return _low_passes(self.bandwidth, rate)[1]

    def delayed_torque(self, lag: float) -> NDArray:
        """Return the torques (M, n) `lag` s later."""
        return np.concatenate(
            [
                _interpolate(s.time, s.torque, np.clip(s.time[s.kept] + lag, s.time[0], s.time[-1]))
                for s in self.stretches
            ]
        )

    def disturbed_torques(self) -> list[NDArray]:
        """Return torques (M, n) with one systematic error each: of the gain of a joint, or of a common delay."""
        joints = np.arange(self.torque.shape[1])
        gains = [np.where(joints == j, 1.0 + GAIN_ERROR, 1.0) for j in joints]
        return [*(self.torque * gain for gain in gains), self.delayed_torque(DELAY_ERROR_S)]

    def shifted(self, values: NDArray, lag: float) -> NDArray:
        """Return values (M, n) at the samples `lag` s later, by linear interpolation."""
        return np.concatenate(
            [
                np.column_stack([np.interp(time + lag, time, column) for column in part.T])
                for time, part in self.by_stretch(values)
            ]
        )

    def by_stretch(self, values: NDArray) -> Iterator[tuple[NDArray, NDArray]]:
        """Yield the times (K,) of each stretch, s, and its part of values (M, …)."""
        first = 0
        for s in self.stretches:
            time = s.time[s.kept]
            yield time, values[first : first + len(time)]
            first += len(time)

    @cached_property
    def presliding(self) -> tuple[NDArray, NDArray]:
        """Friction that the model lacks: presliding friction (M, n, 2), and later friction and speed (M, n, 2)."""
        built_up = self._dahl_friction()
        # The derivative of the direction is the change of friction that comes later.
        later = np.concatenate([_slopes(s.time, s.direction, s.kept) for s in self.stretches])
        return built_up, np.stack([later, np.abs(self.velocity)], axis=2)

    def _dahl_friction(self) -> NDArray:
        """Return Dahl's friction (M, n, 2) of unit size and each distance, low-passed as the torques are."""
        parts = []
        for stretch in self.stretches:
            step = float(stretch.time[1] - stretch.time[0])
            every = max(1, int(FRICTION_STEP_S / step + COUNT_TOLERANCE))
            position = pick_rows(stretch.position, slice(None, None, every))
            friction = [dahl_direction(q, distance) for q in position.T for distance in PRESLIDING_DISTANCES]
            uniform = new_array(len(stretch.time), len(friction))
            for rows in row_blocks(len(uniform)):
                for j, column in enumerate(friction):
                    uniform[rows, j] = np.interp(stretch.time[rows], stretch.time[::every], column)
            parts.append(pick_rows(self.torque_low_pass(1 / step).filter(uniform), stretch.kept))
        return np.concatenate(parts).reshape(len(self), -1, len(PRESLIDING_DISTANCES))

    def _kept(self, name: str) -> NDArray:
        return np.concatenate([pick_rows(getattr(s, name), s.kept) for s in self.stretches])


def _interpolate(time: NDArray, values: NDArray, at: NDArray) -> NDArray:
    """Return values (N, n) at times (K,) by cubic splines through the samples about each of them; steps are even."""
    if len(time) < ROWS_PER_BLOCK:
        return CubicSpline(time, values)(at)
    width = 2 * SPLINE_REACH
    place = (at - time[0]) / (time[1] - time[0])
    first = np.clip(place.astype(int) - SPLINE_REACH, 0, len(time) - width)
    # Most times are at the same place between two samples.
    places, group = np.unique(np.round(place - first, 5), return_inverse=True)
    weights = CubicSpline(np.arange(width), np.eye(width))(places)[group]
    result = np.empty((len(at), values.shape[1]))
    for rows in row_blocks(len(at), ROWS_PER_BLOCK // width):
        windows = values[first[rows, None] + np.arange(width)]
        result[rows] = np.einsum("kw,kwn->kn", weights[rows], windows)
    release_pages()
    return result


def _slopes(time: NDArray, values: NDArray, kept: slice) -> NDArray:
    """Return the derivative (K, n) of values (N, n) at the kept samples, which are none of the ends."""
    rows = np.arange(len(time))[kept]
    return (pick_rows(values, rows + 1) - pick_rows(values, rows - 1)) / (time[rows + 1] - time[rows - 1])[:, None]


def motion_samples(recordings: Sequence[Recording]) -> MotionSamples | None:
    """Return the samples of all recordings with motion; None without motion.

    Positions are low-passed to the band of the motion, torques and the directions of friction to a wider one, all with
    zero phase. All recordings share the filters.
    """
    if len(recordings) > 1:
        return _compute_samples(recordings)
    recording = recordings[0]
    if recording not in _samples_of:
        _samples_of[recording] = _compute_samples(recordings)
    return _samples_of[recording]


_samples_of: WeakKeyDictionary[Recording, MotionSamples | None] = WeakKeyDictionary()
"""Samples of single recordings, which several checks share."""


def _compute_samples(recordings: Sequence[Recording]) -> MotionSamples | None:
    uniform: dict[int, Resampled] = {}
    cutoffs = []
    for i, part in enumerate(recordings):
        try:
            measured = np.isfinite(column_ranges(part.torque)[0]) & ~practically_zero(part.torque)
            channels = stack_columns([part.position, part.torque])
            if not measured.all():
                channels[:, part.n_joints + np.flatnonzero(~measured)] = 0.0
            uniform[i] = resample_channels(part, channels)
            longest = max((s.values for s in uniform[i].segments), key=len)
            choice = choose_cutoff(longest[:, : part.n_joints], uniform[i].rate, MIN_ACCELERATION_SHARE)
            cutoffs.append(choice.low_pass.cutoff)
        except RecordingError:  # too short, or nothing moves
            uniform.pop(i, None)
    if not uniform:
        return None
    cutoff = float(np.clip(max(cutoffs), *CUTOFF_RANGE_HZ))
    stretches = [stretch for i, part in uniform.items() for stretch in _stretches(i, part, cutoff)]
    return MotionSamples(uniform, stretches, cutoff) if stretches else None


def _varying_torques(uniform: Resampled) -> NDArray:
    """Return a mask (n,) of the torques that are not constant, apart from rounding."""
    ranges = [column_ranges(np.hsplit(segment.values, 2)[1]) for segment in uniform.segments]
    low = np.min([low for low, _ in ranges], axis=0)
    high = np.max([high for _, high in ranges], axis=0)
    return high - low > MIN_VARIATION * np.maximum(-low, high)


def _stretches(part: int, uniform: Resampled, cutoff: float) -> Iterator[Stretch]:
    """Yield the low-passed stretches of a recording that are longer than the ends that the low-pass spoils."""
    motion_low_pass, torque_low_pass = _low_passes(cutoff, uniform.rate)
    for segment in uniform.segments:
        try:
            kept = motion_low_pass.kept(len(segment.time))
        except RecordingError:
            continue
        position, torque = np.hsplit(segment.values, 2)
        motion = filtered_motion(position, motion_low_pass)
        direction = map_blocks(lambda velocity: np.tanh(velocity / REVERSAL_SPEED), motion.velocity, reach=0)
        torque, direction = np.hsplit(torque_low_pass.filter(stack_columns([torque, direction])), 2)
        kept = slice(kept.start, kept.stop, torque_low_pass.decimation)
        yield Stretch(part, segment.time, *motion, torque, direction, kept)


def _low_passes(cutoff: float, rate: float) -> tuple[LowPass, LowPass]:
    """Return the low-pass of the positions and that of the torques."""
    motion = LowPass(min(cutoff, MAX_CUTOFF_OF_RATE * rate), rate)
    return motion, LowPass(min(TORQUE_CUTOFF_RATIO * motion.cutoff, 2 * MAX_CUTOFF_OF_RATE * rate), rate)
