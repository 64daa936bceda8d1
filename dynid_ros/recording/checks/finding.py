"""A fault of a recording; one that would make the torque model fit better."""

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
    """What is wrong and what to do about it.

    Attributes:
        severity: "error": nothing should be fitted to this; "warning": look at it first.
        where: the file, and the joint or topic in it.
        message: what was found.
        fix: the way out.
        kind: name of this kind of fault, as in docs/checks.md.
    """

    severity: Severity
    where: str
    message: str
    fix: str
    kind: Kind

    def __str__(self) -> str:
        return f"{self.where}: {self.message}; {self.fix}"


LIKELY, CLEAR = 0.5, 0.8
"""Gains from which a fault of the arm's model is worth a warning and an error: sound recordings of real arms stay below
0.45, faults that matter are above 1."""


@dataclass(frozen=True)
class Explanation:
    """One hypothesis and what speaks for it.

    Attributes:
        kind: of the finding.
        gain: how much it lowers the sum over joints of log(residual rms).
        message: what is wrong.
        fix: the way out.
        joints: names of the joints it is about; none: all.
        severity: of the finding.
    """

    kind: Kind
    gain: float
    message: str
    fix: str
    joints: tuple[str, ...] = ()
    severity: Severity = "error"

    def finding(self, source: str) -> Finding:
        """What to report."""
        where = f"{source}, joint{'s' * (len(self.joints) > 1)} {_listed(self.joints)}" if self.joints else source
        return Finding(self.severity, where, self.message, self.fix, self.kind)


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(f"'{name}'" for name in names)
