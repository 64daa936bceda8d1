"""Readings of a wrist sensor at the times of the joints' samples."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.identification.wrench.frame import AXES, Convention, Frame, sensor_wrench, tip_rotations, turned
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.series import WrenchSeries
from dynid_ros.signals import LowPass, Segment, resample, sample_times, stale_rows

FASTER = 1.2
"""Rate over that of the joints from which on a sensor is low-passed before it is sampled at theirs."""
PASSED = 0.4
"""Cut-off of that low-pass in parts of the joints' rate."""


@dataclass(frozen=True, eq=False)
class WrenchTrack:
    """Stretches of readings without a gap, on a uniform grid.

    Attributes:
        segments: values (M, 6) in the frame and with the sign that were recorded.
        frame: of the wrenches.
        convention: who exerts them.
        turn: (3, 3) axes of the sensor in the tip's, as columns.

    """

    segments: tuple[Segment, ...]
    frame: Frame
    convention: Convention
    turn: NDArray = field(default_factory=lambda: np.eye(3))

    @classmethod
    def of(
        cls, series: WrenchSeries, recording: Recording, frame: Frame, convention: Convention, where: str
    ) -> WrenchTrack:
        """Readings of a series that passed `require_sound`.

        Raises:
            IdentificationError: no stretch without a gap.

        """
        values = np.hstack([series.force, series.torque])
        fresh = ~stale_rows(values) & np.isfinite(values).all(axis=1)
        values = values[fresh]
        try:
            uniform = resample(sample_times(series.time[fresh], values).time, values)
        except RecordingError as error:
            raise IdentificationError(f"{where}: {error}") from error
        rate = 1 / float(np.median(np.diff(recording.time)))
        segments = uniform.segments
        if uniform.rate > FASTER * rate and PASSED * rate < uniform.rate / 2:
            low_pass = LowPass(PASSED * rate, uniform.rate)
            segments = tuple(Segment(part.time, low_pass.filter(part.values)) for part in segments)
        return cls(segments, frame, convention)

    def at(self, time: NDArray) -> NDArray:
        """(N, 6) at times (N,), s, on the sensor's clock; NaN where nothing was read."""
        found = np.full((len(time), len(AXES)), np.nan)
        for part in self.segments:
            inside = (time >= part.time[0]) & (time <= part.time[-1])
            found[inside] = CubicSpline(part.time, part.values)(time[inside])
        return found

    def on_load(self, robot: RobotModel, q: NDArray, wrench: NDArray) -> NDArray:
        """Readings (N, 6) at positions (N, n) as wrenches on the load in the axes of the tip."""
        sensed = sensor_wrench(wrench, tip_rotations(robot, q), self.frame)
        on_load = -sensed if self.convention == "load_on_sensor" else sensed
        return turned(on_load, np.broadcast_to(self.turn, (len(q), 3, 3)))
