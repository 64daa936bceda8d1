"""Convention of the recorded effort: torque, motor current, or torque without gravity."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid_ros.errors import RecordingError

GRAVITY_COMPENSATED = "gravity_compensated"
EFFORT_KINDS = ("torque", "motor_current", GRAVITY_COMPENSATED)


@dataclass(frozen=True)
class EffortConvention:
    """Meaning of the recorded effort.

    Args:
        kind: "torque": joint torque in N m with gravity. "motor_current": current in A, converted to joint torque by
            `gains`. "gravity_compensated": the driver has subtracted its own gravity model.
        gains: gains at the joints, N m / A, in the order of the joint names; for motor_current only. A negative gain
            belongs to a motor that turns against its joint.
        residual: whether the torque without gravity is requested; for gravity_compensated.
        readings: whether the currents without gains are requested; for motor_current.

    Raises:
        RecordingError: the kind is unknown, or gains are missing, unexpected, zero or not finite.
    """

    kind: str
    gains: Sequence[float] | None = None
    residual: bool = False
    readings: bool = False

    def __post_init__(self) -> None:
        if self.kind not in EFFORT_KINDS:
            raise RecordingError(
                f"effort_convention '{self.kind}' is unknown; expected one of {', '.join(EFFORT_KINDS)}"
            )
        wanted = self.kind == "motor_current" and not self.readings
        if wanted != (self.gains is not None):
            raise RecordingError(
                f"effort_convention '{self.kind}' {'needs' if wanted else 'takes no'} gains; "
                "gains (N m / A, one per joint) belong to motor_current"
            )
        if self.gains is not None:
            gains = np.asarray(self.gains, dtype=float)
            if gains.ndim != 1 or not np.all(np.isfinite(gains)) or np.any(gains == 0):
                raise RecordingError(f"effort_convention: gains must be finite and not zero, N m / A; got {self.gains}")
            object.__setattr__(self, "gains", tuple(gains.tolist()))

    def to_torque(self, effort: np.ndarray) -> np.ndarray:
        """Convert recorded effort (N, n) to joint torque (N, n), N m, with gravity unless `residual` is set.

        Raises:
            RecordingError: the number of gains is not n, or gravity is not in the effort.
        """
        if self.kind == GRAVITY_COMPENSATED and not self.residual:
            raise RecordingError(
                "effort_convention 'gravity_compensated': gravity is not in the recorded effort, so neither torques "
                "nor gravity parameters can be found from it, but a load that the driver does not know; switch the "
                "driver's compensation off, or record its uncompensated torque and give that as torque_topic"
            )
        if self.gains is None:
            return effort
        if len(self.gains) != effort.shape[1]:
            raise RecordingError(
                f"effort_convention has {len(self.gains)} gains for {effort.shape[1]} joints; give one per joint"
            )
        return effort * np.asarray(self.gains)
