"""One fault of a recording."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]
Kind = Literal[
    "too short",
    "cut off",
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
    "time lag",
    "low-passed",
    "drift",
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
