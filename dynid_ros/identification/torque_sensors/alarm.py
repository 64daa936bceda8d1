"""A torque sensor that reads other than it did."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from dynid_ros.identification.torque_sensors.drift import Drift


@dataclass(frozen=True)
class DriftAlarm:
    """A sensor that reads other than its reference says.

    Attributes:
        joint: its name.
        cause: "gain", "offset" or "gain and offset".
        gain, offset: what they are now; N m per unit of the reading, and readings.
        gain_change, offset_change: against the reference; 0 for the one that need not have changed.
        gain_std, offset_std: standard errors of the changes.
        since: time of the first sample that it shows in, s.
        time: when the alarm was raised, s.

    """

    joint: str
    cause: str
    gain: float
    offset: float
    gain_change: float
    offset_change: float
    gain_std: float
    offset_std: float
    since: float
    time: float

    @classmethod
    def of(cls, joint: str, reference: tuple[float, float], drift: Drift, since: float, time: float) -> DriftAlarm:
        """From the drift of a sensor against its reference gain and offset."""
        gain = 1 / (1 / reference[0] + drift.sensitivity)
        causes = [name for name, change in (("gain", drift.sensitivity), ("offset", drift.offset)) if change]
        return cls(
            joint=joint,
            cause=" and ".join(causes),
            gain=gain,
            offset=reference[1] + drift.offset,
            gain_change=gain - reference[0],
            offset_change=drift.offset,
            gain_std=drift.sensitivity_std * gain**2,
            offset_std=drift.offset_std,
            since=since,
            time=time,
        )

    def __str__(self) -> str:
        what = []
        if "gain" in self.cause:
            share = self.gain_change / (self.gain - self.gain_change)
            what.append(f"gain by {share:+.1%} to {self.gain:.5g}")
        if "offset" in self.cause:
            what.append(f"offset by {self.offset_change:+.3g} to {self.offset:.4g}")
        return f"torque sensor of '{self.joint}' drifted: {' and '.join(what)}, since t = {self.since:.1f} s"

    def document(self) -> dict:
        """Plain data."""
        return asdict(self)
