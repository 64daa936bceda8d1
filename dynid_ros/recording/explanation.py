"""A fault that would make the torque model fit better."""

from __future__ import annotations

from dataclasses import dataclass

from dynid_ros.recording.finding import Finding, Kind, Severity

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
