"""Findings about a recording, and explanations: faults whose correction lets the torque model fit better."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from dynid_ros.recording.recording import Recording

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

# Kinds of faults that several modules report; others are constants of their modules. docs/checks.md describes each.
MISSING: Final = "missing torque"
CONSTANT: Final = "constant channel"
CLIPPED: Final = "clipped channel"
REPEATED_ROWS: Final = "repeated rows"
ABSURD: Final = "absurd value"
CURRENT: Final = "motor current"
SIGN: Final = "wrong sign"
COMPENSATED: Final = "gravity compensated"
DIRECTION: Final = "gravity direction"
SWAP: Final = "swapped joints"
LAG: Final = "time lag"
LOW_PASSED: Final = "low-passed"
DRIFT: Final = "drift"
LOAD_CHANGE: Final = "load change"
OTHER_ROBOT: Final = "other robot"

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """Fault of a recording and its remedy.

    Attributes:
        severity: "error" for a recording that must not be fitted, "warning" for one to be examined first.
        where: file, and the joint or topic in the file.
        message: description of the fault.
        fix: remedy.
        kind: name of this kind of fault, as in docs/checks.md.
    """

    severity: Severity
    where: str
    message: str
    fix: str
    kind: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}; {self.fix}"


@dataclass(frozen=True)
class CheckSettings:
    """Settings of a check of a recording.

    Attributes:
        robot: robot model whose joints the recording has, in this order; None: the recording is checked alone.
        motion: whether the fit needs motion, as for inertias and friction.
    """

    robot: RobotModel | None = None
    motion: bool = False


RecordingCheck = Callable[[Recording, CheckSettings], Iterable[Finding]]
RECORDING_CHECKS: list[tuple[int, RecordingCheck]] = []
"""Checks of single recordings, with the rank by which they are sorted."""


def recording_check(rank: int) -> Callable[[RecordingCheck], RecordingCheck]:
    """Register a function as a check of single recordings, which `check` calls in the order of the ranks."""

    def register(function: RecordingCheck) -> RecordingCheck:
        RECORDING_CHECKS.append((rank, function))
        return function

    return register


MIN_WARNING_GAIN = 0.5
"""Smallest gain of an explanation for a warning: sound recordings of real arms stay below 0.45."""
MIN_ERROR_GAIN = 0.8
"""Smallest gain of an explanation for an error: faults that matter exceed 1."""


@dataclass(frozen=True)
class Explanation:
    """Hypothesis about a fault, with its gain in fit.

    Attributes:
        kind: kind of the finding.
        gain: decrease of the sum over joints of log(residual rms).
        message: description of the fault.
        fix: remedy.
        joints: names of the affected joints; empty for all.
        severity: severity of the finding.
    """

    kind: str
    gain: float
    message: str
    fix: str
    joints: tuple[str, ...] = ()
    severity: Severity = "error"

    def finding(self, source: str) -> Finding:
        """Return the finding to report for the recording `source`."""
        where = source
        if self.joints:
            noun = "joints" if len(self.joints) > 1 else "joint"
            names = " and ".join(f"'{name}'" for name in self.joints)
            where = f"{source}, {noun} {names}"
        return Finding(self.severity, where, self.message, self.fix, self.kind)
