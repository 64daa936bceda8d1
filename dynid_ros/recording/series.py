"""Measurements that come beside the joint states, each on its own time stamps."""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class WrenchSeries:
    """Wrenches of one sensor: time (N,) in s on the recording's clock, force (N, 3) in N, torque (N, 3) in N m.

    Values are in the sensor's frame `frame_id`, in the order received and with the stamps as recorded.
    """

    time: np.ndarray
    force: np.ndarray
    torque: np.ndarray
    frame_id: str = ""

    def between(self, start: float, end: float) -> "WrenchSeries":
        """Samples with start <= time <= end, s."""
        keep = (self.time >= start) & (self.time <= end)
        return replace(self, time=self.time[keep], force=self.force[keep], torque=self.torque[keep])


@dataclass(frozen=True, eq=False)
class PoseSeries:
    """Poses of one rigid body or marker: time (N,) in s on the recording's clock, position (N, 3) in m.

    `quaternion` (N, 4) is x, y, z, w. Both are in the frame `frame_id`; NaN where a marker was not seen.
    """

    time: np.ndarray
    position: np.ndarray
    quaternion: np.ndarray
    frame_id: str = ""

    def between(self, start: float, end: float) -> "PoseSeries":
        """Samples with start <= time <= end, s."""
        keep = (self.time >= start) & (self.time <= end)
        return replace(self, time=self.time[keep], position=self.position[keep], quaternion=self.quaternion[keep])
