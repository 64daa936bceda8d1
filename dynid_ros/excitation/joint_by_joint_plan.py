"""A planned motion of one joint after the other."""

from dataclasses import dataclass

import numpy as np

from dynid_ros.excitation.experiment import OfTrajectory
from dynid_ros.excitation.stepped_rotation import Dwell
from dynid_ros.trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class JointMove:
    """One joint moving while the others hold.

    Attributes:
        joint: its name.
        motion: "sinusoid" or "steps".
        frequency: of the sine, Hz; None for steps.
        centre: middle of its range, rad or m.
        amplitude: to either side of it, rad or m.
        start: time in the motion, s.
        end: time in the motion, s.

    """

    joint: str
    motion: str
    frequency: float | None
    centre: float
    amplitude: float
    start: float
    end: float


@dataclass(frozen=True)
class JointByJointPlan(OfTrajectory):
    """What `JointByJoint.plan` returns.

    Attributes:
        trajectory: the whole motion; how the arm gets to its start is not part of it.
        moves: in order of time.
        dwells: rests of the steps, each with the direction that its joint came from.
        units: "rad" or "m" for each joint.
        skipped: reason for each joint that does not move, or not at every frequency.
        warnings: what is not known.

    """

    trajectory: Trajectory
    moves: tuple[JointMove, ...]
    dwells: tuple[Dwell, ...]
    units: tuple[str, ...]
    skipped: dict[str, str]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML: times in s from the start of the motion, positions in rad or m, frequencies in Hz."""
        return {
            "format": "dynid-joint-by-joint/1",
            "duration": round(self.duration, 4),
            "moves": [
                {
                    "joint": m.joint,
                    "motion": m.motion,
                    "frequency": m.frequency if m.frequency is None else float(m.frequency),
                    "centre": round(m.centre, 6),
                    "amplitude": round(m.amplitude, 6),
                    "start": round(m.start, 4),
                    "end": round(m.end, 4),
                }
                for m in self.moves
            ],
            "dwells": [dwell.as_dict() for dwell in self.dwells],
            "skipped": dict(self.skipped),
            "warnings": list(self.warnings),
        }

    def summary(self) -> str:
        """Lines of text: duration, range of each move, joints left out and why, warnings."""
        lines = [f"{self.duration:.1f} s, {len(self.moves)} moves, {len(self.dwells)} dwells"]
        units = dict(zip(self.trajectory.joint_names, self.units, strict=True))
        for m in self.moves:
            ends = np.array([m.centre - m.amplitude, m.centre + m.amplitude])
            low, high = (f"{np.rad2deg(end):.0f}°" if units[m.joint] == "rad" else f"{end:.3f} m" for end in ends)
            how = "in steps" if m.frequency is None else f"at {m.frequency:g} Hz"
            lines.append(f"{m.joint}: {low} to {high} {how}")
        lines += [f"{name}: left out, {reason}" for name, reason in self.skipped.items()]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)
