"""Recordings as a few hundred low-passed samples of motion and torque: what models are held against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.errors import RecordingError
from dynid_ros.recording.recording import Recording
from dynid_ros.signals import LowPass, Resampled, choose_cutoff, filtered_motion, resample, sample_times, stale_rows

SHARE = 0.99
"""Part of the acceleration that the low-pass of the positions keeps: more lets noise in."""
CUTOFFS = (0.5, 12.0)
"""Bounds of its cut-off, Hz: arms are not excited beyond."""
WIDER = 3.0
"""Torques hold products of motions: their cut-off is so many times higher."""
FASTEST = 0.2
"""Highest cut-off of the positions, in parts of the rate."""
REVERSAL = 0.005
"""Speed within which friction reverses, rad/s or m/s."""
ROUNDING = 1e-9
RESTING = (0.001, 0.02)
"""A joint rests below this speed, rad/s or m/s, and below this part of its highest."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Samples without a gap at a uniform rate, of one recording; rows of its arrays are (N, n).

    Attributes:
        part: which recording.
        time: (N,) s.
        position, velocity, acceleration: low-passed.
        torque, direction: low-passed less; direction is the sign of the velocity.
        kept: the samples to use, without the ends that the low-pass spoils.

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

    Attributes:
        uniform: the recordings that they come from, by their index; values are positions and torques (N, 2 n).
        stretches: of them, low-passed.
        bandwidth: cut-off of the positions, Hz.
        time: (M,) on the clock of each recording, s.
        part: (M,) which recording.
        position, velocity, acceleration, torque, direction: (M, n); see `Stretch`. A torque that was not recorded is 0.
        alive: (M, n) True where the torque is neither missing nor a constant.
        moving: (M, n) True where it is alive and friction is not that of rest.

    """

    def __init__(self, uniform: Mapping[int, Resampled], stretches: Sequence[Stretch], bandwidth: float):
        self.uniform = uniform
        self.stretches = tuple(stretches)
        self.bandwidth = bandwidth
        self.time = self._kept("time")
        self.part = np.repeat([s.part for s in stretches], [len(s.time[s.kept]) for s in stretches])
        self.position, self.velocity, self.acceleration, self.torque, self.direction = (
            self._kept(name) for name in ("position", "velocity", "acceleration", "torque", "direction")
        )
        speed = np.abs(self.velocity)
        alive = {part: _alive(recording) for part, recording in uniform.items()}
        self.alive = np.array([alive[part] for part in self.part])
        self.moving = self.alive & (speed > np.maximum(RESTING[0], RESTING[1] * speed.max(axis=0)))

    def __len__(self) -> int:
        return len(self.time)

    def thinned(self, limit: int) -> MotionSamples:
        """About `limit` of them at most, evenly."""
        factor = -(-len(self) // limit)
        stretches = [replace(s, kept=slice(s.kept.start, s.kept.stop, s.kept.step * factor)) for s in self.stretches]
        return MotionSamples(self.uniform, stretches, self.bandwidth)

    def wide(self, rate: float) -> LowPass:
        """The low-pass of torques and directions at this rate, Hz."""
        return _low_passes(self.bandwidth, rate)[1]

    def delayed_torque(self, lag: float) -> NDArray:
        """(M, n) torque `lag` s later."""
        return np.concatenate(
            [
                spline(np.clip(s.time[s.kept] + lag, s.time[0], s.time[-1]))
                for s, spline in zip(self.stretches, self._splines, strict=True)
            ]
        )

    def shifted(self, values: NDArray, lag: float) -> NDArray:
        """(M, n) from values (M, n) at these samples: `lag` s later, linearly in between."""
        return np.concatenate(
            [
                np.column_stack([np.interp(time + lag, time, column) for column in part.T])
                for time, part in self.by_stretch(values)
            ]
        )

    def by_stretch(self, values: NDArray) -> Iterator[tuple[NDArray, NDArray]]:
        """Times (K,) of the samples of each stretch, s, and what belongs to them of values (M, …)."""
        first = 0
        for s in self.stretches:
            time = s.time[s.kept]
            yield time, values[first : first + len(time)]
            first += len(time)

    @cached_property
    def _splines(self) -> list[CubicSpline]:
        return [CubicSpline(s.time, s.torque) for s in self.stretches]

    def _kept(self, name: str) -> NDArray:
        return np.concatenate([getattr(s, name)[s.kept] for s in self.stretches])


def motion_samples(recordings: Sequence[Recording]) -> MotionSamples | None:
    """Samples of all recordings in which something moves; None if nothing does.

    Positions are low-passed to the band of the motion, torques and the directions of friction to a wider one, all
    without phase. Recordings share the filters.
    """
    uniform: dict[int, Resampled] = {}
    cutoffs = []
    for i, part in enumerate(recordings):
        try:
            uniform[i] = _uniform(part)
            longest = max((s.values for s in uniform[i].segments), key=len)
            cutoffs.append(choose_cutoff(longest[:, : part.n_joints], uniform[i].rate, SHARE).low_pass.cutoff)
        except RecordingError:  # too short, or nothing moves
            uniform.pop(i, None)
    if not uniform:
        return None
    cutoff = float(np.clip(max(cutoffs), *CUTOFFS))
    stretches = [stretch for i, part in uniform.items() for stretch in _stretches(i, part, cutoff)]
    return MotionSamples(uniform, stretches, cutoff) if stretches else None


def _uniform(recording: Recording) -> Resampled:
    """Positions and torques (N, 2 n) on a uniform grid, a torque that was never recorded 0.

    Raises:
        RecordingError: too few samples without a gap.

    """
    torque = np.where(np.isfinite(recording.torque).any(axis=0), recording.torque, 0.0)
    values = np.hstack([recording.position, torque])
    fresh = ~stale_rows(values)
    time = sample_times(recording.time[fresh], recording.position[fresh]).time
    return resample(time, values[fresh])


def _alive(uniform: Resampled) -> NDArray:
    """(n,) False for torques that are constant, but for the rounding of splines."""
    torque = np.concatenate([np.hsplit(segment.values, 2)[1] for segment in uniform.segments])
    return np.ptp(torque, axis=0) > ROUNDING * np.abs(torque).max(axis=0)


def _stretches(part: int, uniform: Resampled, cutoff: float) -> Iterator[Stretch]:
    narrow, wide = _low_passes(cutoff, uniform.rate)
    for segment in uniform.segments:
        try:
            kept = narrow.kept(len(segment.time))
        except RecordingError:
            continue
        n = segment.values.shape[1] // 2
        motion = filtered_motion(segment.values[:, :n], narrow)
        direction = np.tanh(motion.velocity / REVERSAL)
        torque, direction = np.split(wide.filter(np.hstack([segment.values[:, n:], direction])), 2, axis=1)
        kept = slice(kept.start, kept.stop, wide.decimation)
        yield Stretch(part, segment.time, *motion, torque, direction, kept)


def _low_passes(cutoff: float, rate: float) -> tuple[LowPass, LowPass]:
    """Those of the positions and of the torques."""
    narrow = LowPass(min(cutoff, FASTEST * rate), rate)
    return narrow, LowPass(min(WIDER * narrow.cutoff, 2 * FASTEST * rate), rate)
