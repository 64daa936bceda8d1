"""Findings about a recording, and explanations: faults whose correction lets the torque model fit better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

MISSING: Final = "missing torque"
CONSTANT: Final = "constant channel"
CLIPPED: Final = "clipped channel"
VELOCITY: Final = "velocity"

ABSURD: Final = "absurd value"

LITTLE_MOTION: Final = "too little motion"

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

STAMPS: Final = "time stamps"

Severity = Literal["error", "warning"]
Kind = Literal[
    "too short",
    "cut off",
    "time stamps",
    "gaps",
    "repeated rows",
    "missing torque",
    "constant channel",
    "clipped channel",
    "frozen torque",
    "position step",
    "velocity",
    "beyond limits",
    "absurd value",
    "too little motion",
    "moving hand",
    "motor current",
    "gravity compensated",
    "gravity direction",
    "wrong sign",
    "swapped joints",
    "position ratio",
    "link origin",
    "encoder zero",
    "time lag",
    "low-passed",
    "drift",
    "load change",
    "falling torque",
    "other robot",
]
"""Kinds of faults; docs/checks.md describes each."""


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
    kind: Kind

    def __str__(self) -> str:
        return f"{self.where}: {self.message}; {self.fix}"


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

    kind: Kind
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
            where = f"{source}, {noun} {_listed(self.joints)}"
        return Finding(self.severity, where, self.message, self.fix, self.kind)


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(f"'{name}'" for name in names)
