"""Planned rests in a set of poses."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.excitation.experiment import OfTrajectory
from dynid_ros.trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class PoseDwell:
    """A rest of the whole arm.

    Attributes:
        pose: number of the pose, in the order of the visits.
        direction: 1 where all joints arrived moving upwards, -1 downwards, 0 where each came from its own side.
        start: time of arrival, s.
        end: time of departure, s.

    """

    pose: int
    direction: int
    start: float
    end: float


@dataclass(frozen=True, eq=False)
class PoseSetPlan(OfTrajectory):
    """What `PoseSet.plan` returns.

    Attributes:
        trajectory: the whole motion; how the arm gets to its start is not part of it.
        poses: (K, n) in the order of the visits, rad or m.
        dwells: in order of time.
        target: what the poses are for, "gravity" or "load".
        rank: combinations of parameters and offsets that the poses tell.
        possible_rank: that poses within the limits can tell.
        condition_number: of their regressor, see `pose_choice.condition_number`.
        log_determinant: of their information, see `pose_choice.told`.
        warnings: what will weaken the identification, or is not known.

    """

    trajectory: Trajectory
    poses: NDArray
    dwells: tuple[PoseDwell, ...]
    target: str
    rank: int
    possible_rank: int
    condition_number: float
    log_determinant: float
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML: times in s from the start of the motion, positions in rad or m."""
        names = self.trajectory.joint_names
        return {
            "format": "dynid-pose-set/1",
            "duration": round(self.duration, 4),
            "target": self.target,
            "rank": self.rank,
            "possible_rank": self.possible_rank,
            "condition_number": round(self.condition_number, 3),
            "log_determinant": round(self.log_determinant, 4),
            "poses": [dict(zip(names, np.round(pose, 6).tolist(), strict=True)) for pose in self.poses],
            "dwells": [
                {"pose": d.pose, "direction": d.direction, "start": round(d.start, 4), "end": round(d.end, 4)}
                for d in self.dwells
            ],
            "warnings": list(self.warnings),
        }

    def summary(self) -> str:
        """Lines of text: duration, number of poses, rank and condition number, warnings."""
        lines = [
            f"{self.duration:.1f} s, {len(self.poses)} poses, {len(self.dwells)} dwells",
            f"{self.target}: {self.rank} of {self.possible_rank} combinations of parameters and offsets are told, "
            f"condition number {self.condition_number:.1f}",
        ]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)
