"""Convention of the recorded effort: torque, motor current, torque without gravity, or the command of a drive."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid_ros.errors import RecordingError

GRAVITY_COMPENSATED = "gravity_compensated"
MAX_COMMAND_DELAY_S = 1.0
"""Longest delay of a command: a longer one means a recording with two clocks."""
IMPEDANCE = "impedance"
EFFORT_KINDS = ("torque", "motor_current", GRAVITY_COMPENSATED, IMPEDANCE)


@dataclass(frozen=True)
class EffortConvention:
    """Meaning of the recorded effort.

    Args:
        kind: "torque": joint torque in N m with gravity. "motor_current": current in A, converted to joint torque by
            `gains`. "gravity_compensated": the driver has subtracted its own gravity model. "impedance": the torque of
            drives in MIT mode, computed from their commands by `impedance`; the recorded effort is ignored.
        gains: gains at the joints, N m / A, in the order of the joint names; for motor_current only. A negative gain
            belongs to a motor that turns against its joint.
        residual: whether the torque without gravity is requested; for gravity_compensated.
        readings: whether the currents without gains are requested; for motor_current.
        stiffness: gains of the position error, N m/rad (N/m), one for all joints or one per joint; for impedance. None:
            the commands contain them.
        damping: gains of the velocity error, N m s/rad (N s/m), likewise.
        delay: time after which a command acts, s; for impedance. None: estimated where the arm is known.

    Raises:
        RecordingError: the kind is unknown, or gains are missing, unexpected, zero or not finite.
    """

    kind: str
    gains: Sequence[float] | None = None
    residual: bool = False
    readings: bool = False
    stiffness: Sequence[float] | None = None
    damping: Sequence[float] | None = None
    delay: float | None = None

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
        self._check_impedance()

    def _check_impedance(self) -> None:
        """Convert the gains of drives to tuples, and refuse impossible ones."""
        given = [name for name in ("stiffness", "damping", "delay") if getattr(self, name) is not None]
        if given and self.kind != IMPEDANCE:
            raise RecordingError(f"effort_convention '{self.kind}' takes no {', '.join(given)}; they are for impedance")
        if self.delay is not None and not 0.0 <= self.delay <= MAX_COMMAND_DELAY_S:
            raise RecordingError(
                f"effort_convention: the delay of commands is {self.delay:g} s; expected 0 to {MAX_COMMAND_DELAY_S:g} s"
            )
        for name in set(given) - {"delay"}:
            gains = np.atleast_1d(np.asarray(getattr(self, name), dtype=float))
            if gains.ndim != 1 or not np.all(np.isfinite(gains) & (gains >= 0)):
                raise RecordingError(
                    f"effort_convention: {name} must be finite and not negative, one for all joints or one per joint; "
                    f"got {getattr(self, name)}"
                )
            object.__setattr__(self, name, tuple(gains.tolist()))

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
        if self.kind == IMPEDANCE:
            raise RecordingError(
                "effort_convention 'impedance': torques follow from commands, which joint states do not contain; use a "
                "recording with command_topic"
            )
        if self.gains is None:
            return effort
        if len(self.gains) != effort.shape[1]:
            raise RecordingError(
                f"effort_convention has {len(self.gains)} gains for {effort.shape[1]} joints; give one per joint"
            )
        return effort * np.asarray(self.gains)
