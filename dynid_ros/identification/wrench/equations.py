"""Equations of a load from a wrist force/torque sensor (Atkeson, An and Hollerbach 1986, eqs. 8 and 25 to 27)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.equations import EquationBlock, Equations
from dynid_ros.identification.links.equations import LinkEquations
from dynid_ros.identification.links.integral_equations import PERIODS, STEPS
from dynid_ros.identification.links.integral_form import window_weights
from dynid_ros.identification.samples import SampleRules, dwells
from dynid_ros.identification.wrench.columns import WrenchColumns
from dynid_ros.identification.wrench.frame import AXES
from dynid_ros.identification.wrench.track import WrenchTrack
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import blocks
from dynid_ros.model.regressor import of_features, tip_motion, wrench_features
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSegment, LinkSignals
from dynid_ros.signals import LowPass, central_differences, sample_times


class WrenchEquations(LinkEquations[WrenchColumns]):
    """Wrenches that the tip exerts on the load, and every column, through the same low-pass.

    Args:
        robot: its tip link is the sensor.
        signals: cut-offs.
        recordings: with the robot's joints in its order; their torques are not used.
        tracks: readings of the sensor, one per recording.
        lags: by how much later than the joints' the sensor's clock is, s, one per recording.

    """

    def __init__(
        self,
        robot: RobotModel,
        signals: LinkSignals,
        recordings: Sequence[Recording],
        tracks: Sequence[WrenchTrack],
        lags: Sequence[float],
    ):
        self.robot, self._tracks, self._lags = robot, tracks, lags
        super().__init__(signals, recordings)

    def _segments(self, number: int, recording: Recording) -> list[LinkSegment]:
        track = self._tracks[number]
        time = sample_times(recording.time, recording.position).time + self._lags[number]
        parts = self.signals.segments_with(recording, track.at(time))
        return [replace(part, torque=self._with_slope(part, track)) for part in parts]

    def _with_slope(self, part: LinkSegment, track: WrenchTrack) -> NDArray:
        """(M, 12): wrenches on the load in the tip's axes, and their derivatives."""
        wrench = track.on_load(self.robot, part.motion.position, part.torque)
        return np.hstack([wrench, central_differences(wrench, 1 / part.rate)[0]])

    def _block(
        self, columns: WrenchColumns, recording: int, part: LinkSegment, low_pass: LowPass, kept: NDArray
    ) -> EquationBlock:
        return self._complete(columns, super()._block(columns, recording, part, low_pass, kept))

    def _complete(self, columns: WrenchColumns, block: EquationBlock) -> EquationBlock:
        """With columns of the sensor beside those of the load."""
        wrench, slope = np.hsplit(block.torque, 2)
        start, end = self.spans[block.recording]
        course = 2 * (block.time - start) / (end - start) - 1
        rows, torque = columns.with_sensor(block.rows, wrench, slope, course, block.recording)
        return replace(block, rows=rows, torque=torque)


class IntegralWrenchEquations(WrenchEquations):
    """Means over Hann windows in place of the low-pass: they need no acceleration."""

    def blocks(self, columns: WrenchColumns) -> Iterator[EquationBlock]:
        """All equations, in flat memory."""
        for owner, part in zip(self._owner, self.segments, strict=True):
            # Simpson's rule is best for even numbers.
            length = max(2 * round(PERIODS * part.rate / self.signals.cutoff / 2), STEPS)
            if length + 1 > len(part.time):
                continue
            of_twist, of_rest, hop = window_weights(length + 1, 1 / part.rate, "hann")
            scale = length / part.rate / 2
            starts = np.arange(0, len(part.time) - length, hop)
            for group in blocks(len(starts)):
                first = starts[group][0]
                inside = starts[group][:, None] - first + np.arange(length + 1)
                rows = slice(first, first + inside[-1, -1] + 1)
                twist, rest = self._features(part, rows)
                features = np.einsum("l,fwl->fw", of_rest, rest[:, inside])
                features[:6] += np.einsum("l,fwl->fw", of_twist, twist[:, inside])
                impulse = np.einsum("l,wlc->wc", of_rest, part.torque[rows][inside])
                middle = starts[group] + length // 2
                block = EquationBlock(
                    int(owner),
                    part.time[middle],
                    self._speed(part, middle),
                    self._kinds.of(*self._state(part, middle)),
                    columns.of_wrench(of_features(features / scale)),
                    impulse / scale,
                )
                yield self._complete(columns, block)

    def _features(self, part: LinkSegment, rows: slice) -> tuple[NDArray, NDArray]:
        """Twists (6, N), and what wrenches are linear in but for the derivative of the twist, (12, N)."""
        q, qd = part.motion.position[rows], part.motion.velocity[rows]
        moved = tip_motion(self.robot.chain, self.robot.gravity, q, qd, np.zeros_like(qd))
        return moved.velocity, wrench_features(moved.velocity, moved.weight)


class StaticWrenchEquations(Equations[WrenchColumns]):
    """Mean wrenches of rests.

    Raises:
        IdentificationError: no joint rests long enough.

    """

    def __init__(
        self,
        robot: RobotModel,
        recordings: Sequence[Recording],
        tracks: Sequence[WrenchTrack],
        rules: SampleRules | None = None,
    ):
        rules = rules or SampleRules()
        self.robot = robot
        self.spans = [(float(part.time[0]), float(part.time[-1])) for part in recordings]
        self._rests = [_rests(robot, part, track, rules) for part, track in zip(recordings, tracks, strict=True)]
        self.sizes = [len(time) for time, *_ in self._rests]
        if not any(self.sizes):
            raise IdentificationError(
                f"{', '.join(part.source for part in recordings)}: no rest of at least {rules.minimum_dwell:g} s with "
                "wrenches in it; record poses with dwells, or identify from motion"
            )

    def blocks(self, columns: WrenchColumns) -> Iterator[EquationBlock]:
        """All equations."""
        for recording, (time, position, wrench) in enumerate(self._rests):
            if not len(time):
                continue
            still = np.zeros_like(position)
            start, end = self.spans[recording]
            course = 2 * (time - start) / (end - start) - 1
            load = columns.rows(position, still, still)
            rows, torque = columns.with_sensor(load, wrench, np.zeros_like(wrench), course, recording)
            yield EquationBlock(recording, time, np.zeros(len(time)), None, rows, torque)


def _rests(
    robot: RobotModel, recording: Recording, track: WrenchTrack, rules: SampleRules
) -> tuple[NDArray, NDArray, NDArray]:
    """Time (M,), position (M, n) and wrench on the load (M, 6) of each rest."""
    wrenches = track.at(recording.time)
    found = []
    for rows in dwells(recording, rules):
        known = np.isfinite(wrenches[rows]).all(axis=1)
        if known.any():
            found.append([x[rows][known].mean(axis=0) for x in (recording.time, recording.position, wrenches)])
    if not found:
        return np.empty(0), np.empty((0, robot.n_joints)), np.empty((0, len(AXES)))
    time, q, wrench = (np.array(values) for values in zip(*found, strict=True))
    return time, q, track.on_load(robot, q, wrench)
