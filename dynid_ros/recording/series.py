"""Measurements recorded with the joint states, each on its own time stamps."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from dynid_ros.errors import RecordingError


def require_increasing(time: np.ndarray, source: str, remedy: str) -> None:
    """Refuse time stamps (N,), s, that repeat, go backward or are not finite."""
    bad = np.flatnonzero(~((np.diff(time) > 0) & np.isfinite(time[1:])))
    if not np.isfinite(time[0]):
        raise RecordingError(f"{source}: time of sample 0 is {time[0]}; {remedy}")
    if bad.size:
        i = int(bad[0])
        kind = "repeats" if time[i + 1] == time[i] else "goes backward" if time[i + 1] < time[i] else "is not a number"
        raise RecordingError(
            f"{source}: time {kind} at sample {i + 1}: {time[i + 1]:.9f} s after {time[i]:.9f} s "
            f"({bad.size} such samples); {remedy}"
        )


AnySeries = TypeVar("AnySeries", bound="_Series")


@dataclass(frozen=True, eq=False)
class _Series:
    """Series of samples: arrays with a row per sample, and a `frame_id`."""

    time: np.ndarray

    def between(self: AnySeries, start: float, end: float) -> AnySeries:
        """Return the samples with start <= time <= end, s."""
        keep = (self.time >= start) & (self.time <= end)
        rows = {field.name: getattr(self, field.name)[keep] for field in fields(self) if field.name != "frame_id"}
        return replace(self, **rows)


@dataclass(frozen=True, eq=False)
class WrenchSeries(_Series):
    """Wrenches of one sensor, in the order of reception and with the recorded stamps.

    Attributes:
        time: (N,) time on the recording's clock, s.
        force: (N, 3) force in the sensor's frame, N.
        torque: (N, 3) torque in the sensor's frame, N m.
        frame_id: name of the sensor's frame.

    Raises:
        RecordingError: an array does not contain numbers, or has another shape.
    """

    force: np.ndarray
    torque: np.ndarray
    frame_id: str = ""

    def __post_init__(self) -> None:
        _set_arrays(self, force=3, torque=3)


@dataclass(frozen=True, eq=False)
class ImuSeries(_Series):
    """Accelerations of one IMU.

    Attributes:
        time: (N,) time on the recording's clock, s.
        acceleration: (N, 3) acceleration in the sensor's frame, m/s^2; it points upwards at rest.
        frame_id: name of the sensor's frame.

    Raises:
        RecordingError: an array does not contain numbers, or has another shape.
    """

    acceleration: np.ndarray
    frame_id: str = ""

    def __post_init__(self) -> None:
        _set_arrays(self, acceleration=3)


@dataclass(frozen=True, eq=False)
class PoseSeries(_Series):
    """Poses of one rigid body or marker; NaN where it was not seen. Infinite numbers become NaN.

    Attributes:
        time: (N,) time on the recording's clock, s.
        position: (N, 3) position, m.
        quaternion: (N, 4) orientation as x, y, z, w.
        frame_id: name of the frame of position and orientation.

    Raises:
        RecordingError: an array does not contain numbers, or has another shape.
    """

    position: np.ndarray
    quaternion: np.ndarray
    frame_id: str = ""

    def __post_init__(self) -> None:
        _set_arrays(self, position=3, quaternion=4)
        for name in ("position", "quaternion"):
            array = getattr(self, name)
            object.__setattr__(self, name, np.where(np.isinf(array), np.nan, array))


@dataclass(frozen=True, eq=False)
class CommandSeries:
    """Commands of the joints, each valid until the next.

    Drives in MIT mode receive more than positions. Their torque is stiffness · (position - measured position) + damping
    · (velocity - measured velocity) + effort.

    Attributes:
        time: (K,) time on the recording's clock, s.
        position: (K, n) positions, rad or m; NaN where a command does not include a joint.
        velocity: (K, n) velocities, rad/s or m/s; None: not commanded.
        effort: (K, n) feed-forward torques, N m or N; None: not commanded.
        stiffness: (K, n) gains of the position error, N m/rad or N/m; None: unknown.
        damping: (K, n) gains of the velocity error, N m s/rad or N s/m; None: unknown.

    Raises:
        RecordingError: an array does not contain numbers or has another shape, or time does not increase.
    """

    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray | None = None
    effort: np.ndarray | None = None
    stiffness: np.ndarray | None = None
    damping: np.ndarray | None = None

    def __post_init__(self) -> None:
        width = np.shape(self.position)[-1] if np.ndim(self.position) == 2 else 1
        _set_arrays(self, **dict.fromkeys(("position", *self.further), width))
        if len(self.time):
            require_increasing(self.time, "command", "remove the repeated or misplaced commands")

    @property
    def further(self) -> dict[str, np.ndarray]:
        """Arrays (K, n) besides the positions, by the names of their attributes."""
        names = ("velocity", "effort", "stiffness", "damping")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def select(self, columns: Sequence[int]) -> "CommandSeries":
        """Select the joints in these columns, in this order."""
        further = {name: values[:, columns] for name, values in self.further.items()}
        return replace(self, position=self.position[:, columns], **further)

    def between(self, start: float, end: float) -> "CommandSeries":
        """Return the commands that are valid between start and end, s, with the last one before start."""
        first = max(int(np.searchsorted(self.time, start, side="right")) - 1, 0)
        kept = slice(first, int(np.searchsorted(self.time, end, side="right")))
        further = {name: values[kept] for name, values in self.further.items()}
        return replace(self, time=self.time[kept], position=self.position[kept], **further)

    def path(self, column: int, *, linear: bool = False) -> "CommandPath":
        """Return the set-points of one joint; commands that do not include it are left out."""
        values = self.position[:, column]
        own = np.isfinite(values)
        return CommandPath(self.time[own], values[own], linear)


@dataclass(frozen=True, eq=False)
class CommandPath:
    """Commanded value of one joint as a function of time.

    Attributes:
        time: (K,) s.
        position: (K,) finite values.
        linear: whether the value goes straight from one command to the next; otherwise it is held.
    """

    time: np.ndarray
    position: np.ndarray
    linear: bool = False

    def integral(self, time: np.ndarray) -> np.ndarray:
        """Return the integral from the first command to times (...), s; the first command extends backwards."""
        at = np.clip(np.searchsorted(self.time, time, side="right") - 1, 0, len(self.time) - 1)
        since = time - self.time[at]
        slopes, whole = self._pieces
        return whole[at] + since * (self.position[at] + slopes[at] * (since > 0) * since / 2)

    @cached_property
    def _pieces(self) -> tuple[np.ndarray, np.ndarray]:
        """Slope (K,) after each command, and integral (K,) up to it."""
        step = np.diff(self.time)
        rise = np.diff(self.position) if self.linear else np.zeros(len(step))
        whole = np.concatenate([[0.0], np.cumsum(step * (self.position[:-1] + rise / 2))])
        return np.append(rise / np.maximum(step, 1e-12), 0.0), whole

    def at(self, time: np.ndarray) -> np.ndarray:
        """Return the set-points at times (...)."""
        if self.linear:
            return np.interp(time, self.time, self.position)
        return self.position[np.clip(np.searchsorted(self.time, time, side="right") - 1, 0, len(self.time) - 1)]


def _set_arrays(series: WrenchSeries | PoseSeries | ImuSeries | CommandSeries, **widths: int) -> None:
    """Convert the fields to arrays of numbers: time (N,), the others (N, width)."""
    count = np.size(series.time)
    for name, shape in [("time", (count,)), *((name, (count, width)) for name, width in widths.items())]:
        try:
            array = np.asarray(getattr(series, name), dtype=float)
        except (TypeError, ValueError) as error:
            raise RecordingError(f"{name} of a series does not hold numbers: {error}") from error
        if array.shape != shape:
            raise RecordingError(f"{name} of a series has shape {array.shape}; expected {shape}")
        object.__setattr__(series, name, array)
