"""Ramps and timeout of the compensation."""

import math
from dataclasses import dataclass

from dynid_ros.errors import ControlError

MAX_FAULT_RAMP_TIME = 3.0  # launch kills a process 5 s after it asked it to end
MAX_HOLD_ON_SILENCE = 1.0  # s for which a torque may still be right for a pose that nobody sees


@dataclass(frozen=True)
class Timing:
    """Durations in seconds.

    Attributes:
        ramp_time: of a ramp in or out on request.
        fault_ramp_time: of the way to zero after a fault, or before the process ends.
        timeout: age of the oldest joint state that may still be acted on.
        hold_on_silence: for which the torque is held before the way to zero, where joint states are late and nothing
            else is wrong.

    """

    ramp_time: float = 2.0
    fault_ramp_time: float = 0.5
    timeout: float = 0.2
    hold_on_silence: float = 0.0

    def __post_init__(self) -> None:
        for name in ("ramp_time", "fault_ramp_time", "timeout"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ControlError(f"{name} is {value}; expected a number of seconds above 0")
        if self.fault_ramp_time > MAX_FAULT_RAMP_TIME:
            raise ControlError(
                f"fault_ramp_time is {self.fault_ramp_time:g} s; expected at most {MAX_FAULT_RAMP_TIME:g} s, "
                "because a process that must end is killed soon after"
            )
        if not 0.0 <= self.hold_on_silence <= MAX_HOLD_ON_SILENCE:
            raise ControlError(f"hold_on_silence is {self.hold_on_silence}; expected 0 to {MAX_HOLD_ON_SILENCE:g} s")
