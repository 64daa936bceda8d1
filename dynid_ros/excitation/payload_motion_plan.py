"""A planned test motion for a payload."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.excitation.experiment import OfTrajectory
from dynid_ros.trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class ToolTurn:
    """Turns of the tool about one of its axes.

    Attributes:
        axis: "x", "y" or "z" of the tip's frame.
        lowest: angle that it turns to, rad.
        highest: angle that it turns to, rad.
        acceleration: largest angular acceleration, rad/s².
        start: time in the motion, s.
        end: time in the motion, s.

    """

    axis: str
    lowest: float
    highest: float
    acceleration: float
    start: float
    end: float


@dataclass(frozen=True, eq=False)
class PayloadMotionPlan(OfTrajectory):
    """What `PayloadMotion.plan` returns.

    Attributes:
        trajectory: the whole motion; how the arm gets to its start is not part of it.
        pose: (n,) where all turns start and end.
        turns: in order of time.
        dwells: (D, 2) starts and ends of the rests, s.
        rank: of the load's ten columns of the regressor, on the whole motion.
        static_rank: of the columns of mass and mass moments, on the rests.
        condition_number: of the ten columns at unit norm; infinite where the rank is lower.
        expressions: combinations of the load's parameters that the motion tells, as `BaseParameters` has them.
        skipped: reason for each axis without a turn.
        warnings: what will weaken the identification, or is not known.

    """

    trajectory: Trajectory
    pose: NDArray
    turns: tuple[ToolTurn, ...]
    dwells: NDArray
    rank: int
    static_rank: int
    condition_number: float
    expressions: tuple[str, ...]
    skipped: dict[str, str]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML: times in s from the start of the motion, angles in rad."""
        return {
            "format": "dynid-payload-motion/1",
            "duration": round(self.duration, 4),
            "pose": dict(zip(self.trajectory.joint_names, np.round(self.pose, 6).tolist(), strict=True)),
            "rank": self.rank,
            "static_rank": self.static_rank,
            "condition_number": round(self.condition_number, 3),
            "parameters": list(self.expressions),
            "turns": [
                {
                    "axis": t.axis,
                    "lowest": round(t.lowest, 6),
                    "highest": round(t.highest, 6),
                    "acceleration": round(t.acceleration, 4),
                    "start": round(t.start, 4),
                    "end": round(t.end, 4),
                }
                for t in self.turns
            ],
            "dwells": [{"start": round(start, 4), "end": round(end, 4)} for start, end in self.dwells.tolist()],
            "skipped": dict(self.skipped),
            "warnings": list(self.warnings),
        }

    def summary(self) -> str:
        """Lines of text: duration, each axis' range and acceleration, ranks and condition number, warnings."""
        lines = [f"{self.duration:.1f} s, {len(self.dwells)} dwells"]
        for t in self.turns:
            low, high = np.rad2deg([t.lowest, t.highest])
            lines.append(f"about {t.axis} of the tool: {low:.0f} to {high:.0f}°, up to {t.acceleration:.1f} rad/s²")
        lines.append(
            f"rank {self.rank} of the load's 10 parameters, condition number {self.condition_number:.1f}; at rest "
            f"{self.static_rank} of 4"
        )
        lines += [f"about {axis} of the tool: no turn, {reason}" for axis, reason in self.skipped.items()]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)
