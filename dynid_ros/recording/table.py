"""What a CSV table and a NPZ archive have in common: named columns that become a recording."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.recording.effort import EffortConvention

TIME_NAMES = ("t", "time")
QUANTITIES = {
    "position": ("position", "pos", "q"),
    "velocity": ("velocity", "vel", "dq", "qd"),
    "torque": ("torque", "tau", "effort"),
    "current": ("current",),
    "link_position": ("link_position",),
}


@dataclass(frozen=True)
class Table:
    """Columns of a table: clock (N,) in s and, per quantity (a key of QUANTITIES), an array (N, n) of all joints."""

    source: str
    joint_names: tuple[str, ...]
    clock: np.ndarray
    columns: dict[str, np.ndarray]

    def fields(self, convention: EffortConvention) -> dict[str, Any]:
        """Fields of a `Recording`, efforts as recorded; time starts at 0, where the table's clock shows `start_time`.

        Raises:
            RecordingError: time is no column; only motor currents are there and the convention has no gains.

        """
        if self.clock.ndim != 1:
            raise RecordingError(f"{self.source}: time has shape {self.clock.shape}; expected one column, (N,)")
        unknown = np.full(self.columns["position"].shape, np.nan)
        return {
            "joint_names": self.joint_names,
            "time": self.clock - self.clock[:1],
            "position": self.columns["position"],
            "velocity": self.columns.get("velocity", unknown),
            "torque": self._effort(convention, unknown),
            "start_time": float(self.clock[0]) if self.clock.size else 0.0,
            "link_position": self.columns.get("link_position"),
            "source": self.source,
        }

    def _effort(self, convention: EffortConvention, unknown: np.ndarray) -> np.ndarray:
        if convention.kind == "motor_current" and "current" in self.columns:
            return self.columns["current"]
        if "torque" not in self.columns and "current" in self.columns:
            raise RecordingError(
                f"{self.source} has motor currents and no torques; give effort_convention 'motor_current' with gains "
                "(N m / A, one per joint)"
            )
        return self.columns.get("torque", unknown)


def joint_names_of_columns(count: int, joint_names: Sequence[str] | None, source: str) -> tuple[str, ...]:
    """Names for unnamed columns: the caller's, in column order.

    Raises:
        RecordingError: no names were given, or another number of them.

    """
    if joint_names is None:
        raise RecordingError(f"{source} does not name its {count} joints; give joint_names in the order of its columns")
    if len(joint_names) != count:
        raise RecordingError(
            f"{source} has {count} columns of position, but {len(joint_names)} joint_names were given "
            f"({', '.join(joint_names)}); the file does not name its joints, so there must be one name per column"
        )
    return tuple(joint_names)
