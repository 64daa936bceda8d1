"""Filtered equations of motion from recordings, a block of samples at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.normal_equations import AnyColumns
from dynid_ros.identification.equations import EquationBlock, Equations
from dynid_ros.identification.motion_kinds import MotionKinds
from dynid_ros.model.arrays import blocks
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSegment, LinkSignals
from dynid_ros.signals import LowPass

BLOCK_EDGES = 8
"""Samples in a block, in filter edges: both its edges are computed twice."""
FAST = 0.6
"""Quantile of speed above which a sample is fast: to see how a model does beyond the speeds that it was fitted to."""


class LinkEquations(Equations[AnyColumns]):
    """The equations Y x = τ of several recordings.

    Args:
        signals: cut-offs.
        recordings: with the robot's joints in its order.

    Attributes:
        n_samples: equations per joint after decimation.
        speed_rms: (n,) RMS velocity of each joint, rad/s or m/s.

    Raises:
        IdentificationError: nothing is left of a recording.

    """

    def __init__(self, signals: LinkSignals, recordings: Sequence[Recording]):
        self.signals = signals
        parts = [self._segments(number, recording) for number, recording in enumerate(recordings)]
        self.segments = [segment for part in parts for segment in part]
        self.spans = [(part[0].time[0], part[-1].time[-1]) for part in parts]
        self._owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        squares = sum(np.sum(part.motion.velocity**2, axis=0) for part in self.segments)
        self.speed_rms = np.sqrt(squares / sum(len(part.time) for part in self.segments))
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
        self.fast = float(np.quantile(np.concatenate(speeds), FAST))
        self._kinds = MotionKinds([self._state(part, kept_rows(part, low)) for part, low in self._filtered()])

    def blocks(self, columns: AnyColumns) -> Iterator[EquationBlock]:
        """All equations, in flat memory."""
        for owner, (part, low_pass) in zip(self._owner, self._filtered(), strict=True):
            kept = np.arange(len(part.time))[kept_rows(part, low_pass)]
            step = max(1, BLOCK_EDGES * low_pass.edge // low_pass.decimation)
            for start in range(0, len(kept), step):
                yield self._block(columns, int(owner), part, low_pass, kept[start : start + step])

    @property
    def noise_factor(self) -> float:
        """Of what the low-pass leaves of white noise, see `LowPass.noise_factor`."""
        return float(np.mean([low_pass.noise_factor for low_pass in self._filters]))

    def _segments(self, number: int, recording: Recording) -> list[LinkSegment]:  # noqa: ARG002 - for those who need it
        return self.signals.segments(recording)

    def _filtered(self) -> Iterator[tuple[LinkSegment, LowPass]]:
        return zip(self.segments, self._filters, strict=True)

    def _speed(self, part: LinkSegment, rows: slice | NDArray) -> NDArray:
        return (np.abs(part.motion.velocity[rows]) / self._speed_unit).max(axis=1)

    def _state(self, part: LinkSegment, rows: slice | NDArray) -> tuple[NDArray, NDArray]:
        return part.motion.position[rows], part.motion.velocity[rows]

    def _block(
        self, columns: AnyColumns, recording: int, part: LinkSegment, low_pass: LowPass, kept: NDArray
    ) -> EquationBlock:
        # Twice the edge, so that what a block does not see is below 1e-4 of a step there.
        first = max(0, kept[0] - 2 * low_pass.edge)
        last = min(len(part.time), kept[-1] + 2 * low_pass.edge + 1)
        pieces = []
        for block in blocks(last - first):
            window = slice(first + block.start, min(first + block.stop, last))
            pieces.append(columns.rows(*(x[window] for x in part.motion)))
        rows = [low_pass.filter(np.concatenate(joint))[kept - first] for joint in zip(*pieces, strict=True)]
        torque = low_pass.filter(part.torque[first:last])[kept - first]
        kind = self._kinds.of(*self._state(part, kept))
        return EquationBlock(recording, part.time[kept], self._speed(part, kept), kind, rows, torque)


def kept_rows(part: LinkSegment, low_pass: LowPass) -> slice:
    """Samples of a segment that make equations."""
    size = len(part.time)
    return low_pass.kept(size) if size > 2 * low_pass.edge else slice(0, 0)
