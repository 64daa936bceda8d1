"""Linear equations Y x = τ of many samples, one block at a time, from recordings or from samples of motion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Generic

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.vq import kmeans, vq

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.normal_equations import AnyColumns, NormalEquations
from dynid_ros.files.disk_arrays import pick_rows, release_pages, row_blocks
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import blocks, joint_samples, require_finite
from dynid_ros.model.friction_terms import Memory
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSegment, LinkSignals
from dynid_ros.signals import LowPass, Motion
from dynid_ros.signals.driver_filter import Passage
from dynid_ros.signals.spectra import COUNT_TOLERANCE

MAX_KINDS = 10
"""Largest number of kinds. More kinds would make standard errors more certain, but successive kinds would lie within
the correlation time of the residuals."""
SAMPLES_PER_KIND = 10
"""Smallest mean number of samples of a kind."""
MAX_CLUSTERED_SAMPLES = 2000
"""Number of samples that suffices to find the kinds."""
BLOCK_EDGES = 8
"""Length of a block, in edges of the filter; the edges of neighbouring blocks overlap and are computed twice."""
WINDOW_REACHES = 4
"""Length of a window, in reaches of its filters, for the comparison of several filters of the driver."""
SEARCH_RATE_RATIO = 8.0
"""Smallest ratio of the sampling rate in such a window to the cutoff frequency, as delays are interpolated linearly."""
MIN_RATE_OF_CUTOFF = 12.0
"""Smallest rate at which torques of the links are evaluated, as a multiple of the cutoff frequency of the positions:
less than 1e-9 of their power lies above half of it. Friction reverses within a sample and is evaluated at each one."""
FAST_QUANTILE = 0.6
"""Quantile of speed above which a sample is fast; fast samples show how a model extrapolates beyond fitted speeds."""


@dataclass(frozen=True, eq=False)
class EquationBlock:
    """Equations of consecutive samples; both sides passed the same filter and decimation.

    Attributes:
        recording: index of the recording.
        time: (M,) s.
        speed: (M,) largest joint speed, each relative to the RMS speed of that joint.
        kind: (M,) kind of motion, see `MotionKinds`; None: not distinguished.
        rows: regressor rows (M, k_j) of each joint j.
        torque: (M, n) N m or N.
    """

    recording: int
    time: NDArray
    speed: NDArray
    kind: NDArray | None
    rows: list[NDArray]
    torque: NDArray


class Equations(ABC, Generic[AnyColumns]):
    """Equations of one or more recordings.

    Attributes:
        sizes: number of equations per joint of each recording.
        spans: first and last time of each recording, s.
        fast: speed above which a sample is fast, in units of `EquationBlock.speed`.
        share: (n,) weight of each joint's equations relative to full weight, or one number for all joints.
    """

    sizes: Sequence[int] | NDArray
    spans: Sequence[tuple[float, float]]
    fast: float = np.inf
    share: float | NDArray = 1.0

    @property
    def noise_factor(self) -> float:
        """Factor by which the equations' correlation raises the effective standard deviation of independent noise."""
        return 1.0

    def loosened(self, noise: NDArray) -> Equations[AnyColumns]:  # noqa: ARG002 - for subclasses
        """Return equations with less weight where more is unknown than the noise (n,), such as friction."""
        return self

    @abstractmethod
    def blocks(self, columns: AnyColumns) -> Iterator[EquationBlock]:
        """Yield all equations in blocks, so that memory does not grow with their number."""

    def factors(self, columns: AnyColumns) -> NormalEquations[AnyColumns]:
        """Return the compressed equations."""
        factors = NormalEquations(columns, self.sizes, self.share)
        for block in self.blocks(columns):
            self._add(block, factors)
        return factors

    def _add(self, block: EquationBlock, factors: NormalEquations[AnyColumns]) -> None:
        """Add the equations of a block to the groups and kinds of motion of its samples."""
        recording = block.recording
        # A group is a stretch of time of a recording; slow and fast samples make separate groups.
        start, end = self.spans[recording]
        count = factors.stretches[recording]
        index = np.clip(((block.time - start) / (end - start) * count + COUNT_TOLERANCE).astype(int), 0, count - 1)
        group = 2 * (sum(factors.stretches[:recording]) + index) + (block.speed >= self.fast)
        for labels, add in ((group, factors.add), (block.kind, factors.add_kind)):
            for label in () if labels is None else np.unique(labels):
                members = np.flatnonzero(labels == label)
                # A slice of consecutive samples takes no copy.
                is_consecutive = members[-1] - members[0] == len(members) - 1
                rows = slice(members[0], members[-1] + 1) if is_consecutive else members
                add(int(label), [matrix[rows] for matrix in block.rows], block.torque[rows])


# Kinds of motion: samples with similar positions and velocities of all joints.


class MotionKinds:
    """K-means clusters of positions and velocities, each joint's in units of its standard deviation.

    A kind is a stretch of a motion together with all its repetitions in all recordings.

    Args:
        motions: position and velocity (M, n) of each of several motions.
    """

    def __init__(self, motions: Sequence[tuple[NDArray, NDArray]]):
        every = max(1, sum(len(position) for position, _ in motions) // MAX_CLUSTERED_SAMPLES)
        states = np.concatenate([np.hstack([position[::every], velocity[::every]]) for position, velocity in motions])
        self._middle = states.mean(axis=0)
        self._size = states.std(axis=0)
        self._size[self._size == 0] = 1.0
        count = int(np.clip(len(states) // SAMPLES_PER_KIND, 1, MAX_KINDS))
        states = (states - self._middle) / self._size
        # The search starts from states at regular times, not random ones: the same motion always gives the same kinds.
        self._centers, _ = kmeans(states, states[(2 * np.arange(count) + 1) * len(states) // (2 * count)])

    def of(self, position: NDArray, velocity: NDArray) -> NDArray:
        """Return the kind (M,) of each sample of position and velocity (M, n)."""
        return vq((np.hstack([position, velocity]) - self._middle) / self._size, self._centers)[0]


# Filtered equations of motion from recordings, a block of samples at a time.


class LinkEquations(Equations[AnyColumns]):
    """Equations Y x = τ of several recordings, after the low-pass.

    Args:
        signals: filters of motion and torque.
        recordings: recordings with the robot's joints in its order.

    Attributes:
        segments: uniform stretches of all recordings, in order.
        n_samples: number of equations per joint after decimation.
        speed_rms: (n,) RMS velocity of each joint, rad/s or m/s.
        motion: positions, velocities and accelerations (N, n) of each stretch of consecutive samples.

    Raises:
        IdentificationError: no stretch of motion is long enough for the low-pass.
    """

    def __init__(self, signals: LinkSignals, recordings: Sequence[Recording]):
        self.signals = signals
        parts = [self._segments(number, recording) for number, recording in enumerate(recordings)]
        self.segments = [segment for part in parts for segment in part]
        self.spans = [(part[0].time[0], part[-1].time[-1]) for part in parts]
        self._owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        squares = sum(
            np.sum(part.motion.velocity[rows] ** 2, axis=0)
            for part in self.segments
            for rows in row_blocks(len(part.time))
        )
        self.speed_rms = np.sqrt(squares / sum(len(part.time) for part in self.segments))
        self.motion = [part.motion for part in self.segments]
        self._speed_unit = np.where(self.speed_rms > 0, self.speed_rms, 1.0)
        self._filters = [LowPass(signals.cutoff, part.rate) for part in self.segments]
        speeds = [self._speed(part, kept_rows(part, low)) for part, low in self._filtered()]
        self.sizes = np.bincount(self._owner, [len(speed) for speed in speeds]).astype(int)
        if not self.sizes.any():
            longest = max(len(part.time) / part.rate for part in self.segments)
            raise IdentificationError(
                f"{recordings[0].source}: the longest stretch of motion is {longest:.3g} s, all of which a low-pass at "
                f"{signals.cutoff:.3g} Hz spoils; record longer, without gaps"
            )
        self.n_samples = int(self.sizes.sum())
        self._every = 1
        self.fast = float(np.quantile(np.concatenate(speeds), FAST_QUANTILE))
        self._kinds = MotionKinds([self._state(part, kept_rows(part, low)) for part, low in self._filtered()])

    def blocks(self, columns: AnyColumns) -> Iterator[EquationBlock]:
        """Yield all equations in blocks; `thinned` equations yield only blocks at regular distances."""
        number = 0
        for owner, (part, low_pass) in zip(self._owner, self._filtered(), strict=True):
            kept = np.arange(len(part.time))[kept_rows(part, low_pass)]
            step = max(1, BLOCK_EDGES * low_pass.edge // low_pass.decimation)
            memory = columns.memory(part.motion.position)
            for start in range(0, len(kept), step):
                number += 1
                if number % self._every:
                    continue
                yield self._block(columns, int(owner), part, low_pass, kept[start : start + step], memory=memory)
                release_pages()

    def thinned(self, max_samples: float) -> LinkEquations[AnyColumns]:
        """Return equations with blocks at regular distances only, if they have many more samples than `max_samples`.

        An infinite limit restores all equations.
        """
        every = max(1, round(self.n_samples / max_samples))
        if every == self._every:
            return self
        thinned = copy(self)
        thinned._every = every
        return thinned

    def factors_through(
        self, columns: AnyColumns, passages: Sequence[Passage], friction_columns: Sequence[NDArray], max_samples: int
    ) -> list[NormalEquations[AnyColumns]]:
        """Return compressed equations for each of several filters of the driver, which act on the columns.

        The low-pass precedes the filters of the driver, so that they act on few samples: linear filters commute.

        Args:
            columns: columns of the equations.
            passages: hypotheses on the filter of the driver, one for each of the returned equations.
            friction_columns: mask (k_j,) of the columns of friction of each joint j.
            max_samples: approximate number of equations per joint; longer recordings contribute only windows at regular
                distances.
        """
        sums = [NormalEquations(columns, self.sizes, self.share) for _ in passages]
        drivers = [passage.driver for passage in passages if passage.driver is not None]
        every = max(1, round(self.n_samples / max_samples))
        number = 0
        for owner, (part, low_pass) in zip(self._owner, self._filtered(), strict=True):
            kept = np.arange(len(part.time))[kept_rows(part, low_pass)]
            step = _divisor(low_pass.decimation, part.rate / (SEARCH_RATE_RATIO * low_pass.cutoff))
            reach = 2 * low_pass.edge + max((driver.settling(part.rate) for driver in drivers), default=0)
            size = max(1, WINDOW_REACHES * reach // low_pass.decimation)
            memory = columns.memory(part.motion.position)
            for start in range(0, len(kept), size):
                number += 1
                if number % every:
                    continue
                chosen = kept[start : start + size]
                first = max(chosen[0] % step, chosen[0] - reach // step * step)
                window = slice(first, min(len(part.time), chosen[-1] + reach + 1))
                rows = [low_pass.filter(joint)[::step] for joint in self._rows(columns, part, window, memory)]
                torque = low_pass.filter(part.torque[window])[chosen - first]
                inner = (chosen - first) // step
                kind = self._kinds.of(*self._state(part, chosen))
                block = EquationBlock(
                    int(owner),
                    part.time[chosen],
                    self._speed(part, chosen),
                    kind,
                    [joint[inner] for joint in rows],
                    torque,
                )
                for passage, factors in zip(passages, sums, strict=True):
                    passed = block.rows
                    if passage.driver is not None:
                        passed = [passage.driver.filter(joint, part.rate / step)[inner] for joint in rows]
                    if passage.of_friction_alone:
                        passed = [
                            np.where(mask, new, old)
                            for mask, new, old in zip(friction_columns, passed, block.rows, strict=True)
                        ]
                    self._add(replace(block, rows=passed), factors)
        return sums

    @property
    def noise_factor(self) -> float:
        """Factor by which the low-pass reduces white noise, see `LowPass.noise_factor`."""
        return float(np.mean([low_pass.noise_factor for low_pass in self._filters]))

    def _segments(self, number: int, recording: Recording) -> list[LinkSegment]:  # noqa: ARG002 - for subclasses
        return self.signals.segments(recording)

    def _filtered(self) -> Iterator[tuple[LinkSegment, LowPass]]:
        return zip(self.segments, self._filters, strict=True)

    def _speed(self, part: LinkSegment, rows: slice | NDArray) -> NDArray:
        return (np.abs(pick_rows(part.motion.velocity, rows)) / self._speed_unit).max(axis=1)

    def _state(self, part: LinkSegment, rows: slice | NDArray) -> tuple[NDArray, NDArray]:
        return pick_rows(part.motion.position, rows), pick_rows(part.motion.velocity, rows)

    def _block(
        self,
        columns: AnyColumns,
        recording: int,
        part: LinkSegment,
        low_pass: LowPass,
        kept: NDArray,
        *,
        memory: Memory,
    ) -> EquationBlock:
        """Return the filtered equations of the samples `kept` (M,) of a segment."""
        # Twice the edge: then less than 1e-4 of a step response lies outside the window.
        reach = 2 * low_pass.edge + self.signals.settling(part.rate)
        first = max(0, kept[0] - reach)
        last = min(len(part.time), kept[-1] + reach + 1)
        window = slice(first, last)
        if isinstance(columns, (LinkColumns, TorqueColumns)) and self.signals.driver is None:
            motion = Motion(*(values[window] for values in part.motion))
            before = {key: direction[window] for key, direction in memory.items()}
            every = max(1, int(part.rate / (MIN_RATE_OF_CUTOFF * self.signals.motion_cutoff) + COUNT_TOLERANCE))
            rows = columns.filtered_rows(
                motion, before, lambda signal, n: low_pass.select(signal, kept - first, n), every
            )
        else:
            joints = self._rows(columns, part, window, memory)
            rows = [low_pass.select(self.signals.reported(joint, part.rate), kept - first) for joint in joints]
        torque = low_pass.select(part.torque[window], kept - first)
        kind = self._kinds.of(*self._state(part, kept))
        return EquationBlock(recording, part.time[kept], self._speed(part, kept), kind, rows, torque)

    def _rows(self, columns: AnyColumns, part: LinkSegment, window: slice, memory: Memory) -> Iterator[NDArray]:
        """Yield the unfiltered rows (M, k_j) of each joint j in a window of a segment."""
        pieces = []
        for block in blocks(window.stop - window.start):
            piece = slice(window.start + block.start, min(window.start + block.stop, window.stop))
            before = {key: direction[piece] for key, direction in memory.items()}
            position, velocity, acceleration = (values[piece] for values in part.motion)
            pieces.append(columns.rows(position, velocity, acceleration, before))
        for joint in zip(*pieces, strict=True):
            yield np.concatenate(joint)


def _divisor(number: int, limit: float) -> int:
    """Return the largest divisor of a number that is at most a limit; at least 1."""
    return max(
        divisor for divisor in range(1, number + 1) if number % divisor == 0 and (divisor <= limit or divisor == 1)
    )


def kept_rows(part: LinkSegment, low_pass: LowPass) -> slice:
    """Return the samples of a segment that become equations: decimated, and without the edges of the low-pass."""
    size = len(part.time)
    return low_pass.kept(size) if size > 2 * low_pass.edge else slice(0, 0)


# Equations of samples whose motion and torque are given.


class SampleEquations(Equations[AnyColumns]):
    """Equations of samples (N, n) of q, qd, qdd and torque, neither filtered nor decimated.

    Args:
        kinds: whether to distinguish `MotionKinds`, for standard errors that allow for correlated residuals.

    Attributes:
        speed_rms: (n,) RMS velocity of each joint, rad/s or m/s.
        motion: positions, velocities and accelerations (N, n) of each stretch of consecutive samples.

    Raises:
        ModelError: the arrays have different shapes.
        IdentificationError: there are no samples, or some values are not finite.
    """

    def __init__(
        self,
        robot: RobotModel,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        torque: ArrayLike,
        *,
        kinds: bool = True,
    ):
        arrays = {"q": q, "qd": qd, "qdd": qdd, "torque": torque}
        self._samples = joint_samples(robot.joint_names, **arrays)
        size = len(self._samples[0])
        if not size:
            raise IdentificationError("q has no samples; record motion")
        require_finite(robot.joint_names, IdentificationError, **dict(zip(arrays, self._samples, strict=True)))
        self.sizes = [size]
        self.spans = [(0.0, float(size))]
        position, velocity = self._samples[:2]
        self._kinds = MotionKinds([(position, velocity)]) if kinds else None
        self.speed_rms = np.sqrt(np.einsum("ij,ij->j", velocity, velocity) / size)
        self.motion = [self._samples[:3]]

    def thinned(self, max_samples: float) -> SampleEquations[AnyColumns]:  # noqa: ARG002 - like `LinkEquations`
        """Return all equations: samples that need no filter take little time."""
        return self

    def blocks(self, columns: AnyColumns) -> Iterator[EquationBlock]:
        """Yield all equations in blocks; the time of a sample is its index."""
        memory = columns.memory(self._samples[0])
        for window in blocks(self.sizes[0]):
            *motion, torque = (array[window] for array in self._samples)
            time = window.start + np.arange(len(torque))
            kind = None if self._kinds is None else self._kinds.of(*motion[:2])
            before = {key: direction[window] for key, direction in memory.items()}
            yield EquationBlock(
                0, time, np.zeros(len(torque)), kind, columns.rows(motion[0], motion[1], motion[2], before), torque
            )


class TorqueColumns:
    """Columns that are torques of known parameters: each joint has one column for each set of parameters.

    Args:
        columns: columns of the parameters.
        values: values (k, m) of m sets of parameters.

    Attributes:
        of_joint: indices (m,) of the columns of each joint.
        memory: function from positions (N, n) to the state of friction with memory, as of `columns`.
    """

    def __init__(self, columns: LinkColumns, values: NDArray):
        self.of_joint = [np.arange(values.shape[1]) for _ in columns.of_joint]
        self.memory = columns.memory
        self._columns = columns
        self._values = values

    def rows(self, q: NDArray, qd: NDArray, qdd: NDArray, memory: Memory | None = None) -> list[NDArray]:
        """Return the torques (N, m) of each joint in a motion (N, n)."""
        rows = self._columns.rows(q, qd, qdd, memory)
        return [matrix @ self._values[indices] for matrix, indices in zip(rows, self._columns.of_joint, strict=True)]

    def filtered_rows(
        self, motion: Sequence[NDArray], memory: Memory, select: Callable[[NDArray, int], NDArray], every: int
    ) -> list[NDArray]:
        """Return the filtered torques (K, m) of each joint; arguments are those of `LinkColumns.filtered_rows`.

        Torques of links and turns of gravity are smooth and evaluated at every `every`-th sample, friction at each one.
        """
        smooth = []
        rough = []
        parts = self._columns.column_parts(motion, memory, every)
        for (links, friction, turns), indices in zip(parts, self._columns.of_joint, strict=True):
            ends = np.cumsum([links.shape[1], friction.shape[1]])
            of_links, of_friction, of_turns = np.split(self._values[indices], ends)
            smooth.append(links @ of_links + turns @ of_turns)
            rough.append(friction @ of_friction)
        filtered = select(np.hstack(smooth), every) + select(np.hstack(rough), 1)
        return np.split(filtered, len(smooth), axis=1)
